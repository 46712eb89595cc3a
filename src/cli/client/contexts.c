#include "cli/client/contexts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/suggest.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"

#define CURRENT "current"
#define SUFFIX ".json"
#define MAX_NAME 64 /* also the id of a run that was handed over */
#define MAX_CONTEXTS 1000
#define MAX_FILE (64 * 1024)

static bool is_name(struct str s)
{
	if (s.n == 0 || s.n > MAX_NAME)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool inside = i > 0 && i + 1 < s.n && strchr("-_.", c) && c;
		if (!islower((unsigned char)c) && !isdigit((unsigned char)c) && !inside)
			return false;
	}
	return true;
}

int context_check_name(const char *name, struct err *err)
{
	if (is_name(str_from(name)))
		return 0;
	return err_set(
		err, ERR_INVALID,
		"'%.60s' cannot be the name of a context: use a-z, 0-9 and, inside, - _ . (at most %d)",
		name, MAX_NAME);
}

static char *directory(const char *home)
{
	return path_join(home, LAYOUT_CONTEXTS);
}

static char *file_of(const char *home, const char *name)
{
	CLEANUP(freep) char *dir = directory(home);

	return xasprintf("%s/%s" SUFFIX, dir, name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int context_list(const char *home, struct arena *a, const char ***ret_names, size_t *ret_n,
		 struct err *err)
{
	CLEANUP(freep) char *path = directory(home);
	const char **names = arena_array(a, const char *, MAX_CONTEXTS);
	struct dirent *e;
	size_t n = 0;
	DIR *d = opendir(path);

	if (!d && errno != ENOENT)
		return err_errno(err, errno, "read '%s'", path);
	while (d && n < MAX_CONTEXTS && (e = readdir(d))) {
		struct str name = str_from(e->d_name);
		if (!str_ends(name, STR(SUFFIX)))
			continue;
		name.n -= strlen(SUFFIX);
		if (is_name(name))
			names[n++] = arena_str(a, name).p;
	}
	if (d)
		closedir(d);
	qsort(names, n, sizeof(*names), by_name);
	*ret_names = names;
	*ret_n = n;
	return 0;
}

static int unknown(const char *home, const char *name, struct arena *a, struct err *err)
{
	const char **names = NULL;
	size_t n = 0;

	(void)context_list(home, a, &names, &n, NULL);
	const char *near = suggest_word(names, n, str_from(name));
	if (near)
		return err_set(err, ERR_NOT_FOUND, "no context '%.60s': did you mean '%s'?", name,
			       near);
	return err_set(
		err, ERR_NOT_FOUND,
		"no context '%.60s': 'regatta context list' lists them, 'regatta context add' "
		"adds one",
		name);
}

/* Refuses a file that others can read, because the token is no secret then, or that another user wrote. */
static int check_private(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_errno(err, errno, "'%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "'%s' is not a file", path);
	if (st.st_uid != geteuid())
		return err_set(err, ERR_DENIED, "'%s' belongs to another user (uid %u)", path,
			       (unsigned)st.st_uid);
	if (st.st_mode & 077)
		return err_set(
			err, ERR_DENIED,
			"'%.150s' is open to others (mode %04o): chmod 600 it, and take a new "
			"token",
			path, (unsigned)(st.st_mode & 07777));
	return 0;
}

static int read_private(const char *path, struct buf *out, struct err *err)
{
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	size_t n = 0;

	if (fd < 0)
		return err_errno(err, errno, "read '%s'", path);
	if (check_private(fd, path, err) < 0)
		return -1;
	char *p = buf_reserve(out, MAX_FILE - 1);
	if (!p || file_pread_full(fd, p, MAX_FILE - 1, 0, &n, err) < 0)
		return -1;
	buf_commit(out, n);
	return 0;
}

int context_read(const char *home, const char *name, struct arena *a, struct context *ret,
		 struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct err ignored = {0};
	struct doc *d;

	err = err ? err : &ignored; /* its kind is looked at */
	if (context_check_name(name, err) < 0)
		return -1;
	CLEANUP(freep) char *path = file_of(home, name);
	buf_init(&text, MAX_FILE);
	if (read_private(path, &text, err) < 0)
		return err->kind == ERR_NOT_FOUND ? unknown(home, name, a, err) : -1;
	if (json_parse(arena_str(a, buf_str(&text)), a, &d, err) < 0)
		return err_wrap(err, "'%s'", path);
	struct str url = doc_str(d, "url", STR("")), pin = doc_str(d, "pin", STR("")),
		   token = doc_str(d, "token", STR("")), run = doc_str(d, "run", STR("")),
		   region = doc_str(d, "region", STR(""));
	if (!url.n || !token.n)
		return err_set(
			err, ERR_INVALID,
			"'%s' has no url or no token: 'regatta context add %s' writes it anew",
			path, name);
	*ret = (struct context){
		.url = arena_str(a, url).p,
		.pin = pin.n ? arena_str(a, pin).p : NULL,
		.token = arena_str(a, token).p,
		.run = run.n ? arena_str(a, run).p : NULL,
		.region = region.n ? arena_str(a, region).p : NULL,
	};
	return 0;
}

static int make_directory(const char *home, struct err *err)
{
	CLEANUP(freep) char *dir = directory(home);

	if (file_mkdir_p(dir, 0700, err) < 0)
		return err_wrap(err, "make the directory of contexts (REGATTA_HOME)");
	return 0;
}

int context_write(const char *home, const char *name, const struct context *c, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct jsonw w;

	if (context_check_name(name, err) < 0 || make_directory(home, err) < 0)
		return -1;
	buf_init(&text, MAX_FILE);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "url", c->url);
	if (c->pin)
		jsonw_kz(&w, "pin", c->pin);
	jsonw_kz(&w, "token", c->token);
	if (c->run)
		jsonw_kz(&w, "run", c->run);
	if (c->region)
		jsonw_kz(&w, "region", c->region);
	jsonw_close(&w);
	buf_addc(&text, '\n');
	CLEANUP(freep) char *path = file_of(home, name);
	int rc = text.overflow ? err_set(err, ERR_INVALID, "the url, pin or token is too long")
			       : file_write_atomic(path, buf_str(&text), 0600, true, err);
	explicit_bzero(text.p, text.n);
	return rc;
}

int context_remove(const char *home, const char *name, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	if (context_check_name(name, err) < 0)
		return -1;
	CLEANUP(freep) char *path = file_of(home, name);
	if (unlink(path) == 0)
		return 0;
	return errno == ENOENT ? unknown(home, name, a, err)
			       : err_errno(err, errno, "remove '%s'", path);
}

int context_current(const char *home, struct arena *a, const char **ret_name, struct err *err)
{
	CLEANUP(freep) char *dir = directory(home);
	CLEANUP(freep) char *path = path_join(dir, CURRENT);
	CLEANUP(buf_release) struct buf text = {0};
	struct err why;

	buf_init(&text, MAX_FILE);
	if (file_read(path, &text, &why) < 0) {
		*ret_name = CONTEXT_LOCAL;
		if (why.kind == ERR_NOT_FOUND)
			return 0;
		*err = why;
		return -1;
	}
	struct str name = str_trim(buf_str(&text));
	if (!is_name(name))
		return err_set(
			err, ERR_INVALID,
			"'%s' has no name of a context: 'regatta context use' writes it anew",
			path);
	*ret_name = arena_str(a, name).p;
	return 0;
}

int context_use(const char *home, const char *name, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *dir = directory(home);
	CLEANUP(freep) char *path = path_join(dir, CURRENT);
	struct context c;

	if (strcmp(name, CONTEXT_LOCAL) == 0) {
		if (unlink(path) < 0 && errno != ENOENT && errno != ENOTDIR)
			return err_errno(err, errno, "remove '%s'", path);
		return 0;
	}
	if (context_read(home, name, a, &c, err) < 0)
		return -1;
	const char *line = arena_printf(a, "%s\n", name);
	return file_write_atomic(path, str_from(line), 0600, true, err);
}
