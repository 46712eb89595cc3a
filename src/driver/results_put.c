#include "driver/results.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/file.h"
#include "base/map.h"
#include "base/path.h"
#include "driver/object_store.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "net/digest.h"

#define INDEX_MAX ((size_t)256 * 1024 * 1024)
#define INDEX_VERSION 1

struct results_upload {
	const char *dir;
	const struct results_place *at;
	struct object_store *st; /* of <url><run>/ */
	const struct deadline *d;
	struct arena *a;
	struct map *there; /* name -> struct object */
	struct buf index;
	struct jsonw w;
	struct results_sum sum;
};

/* What S3's own pages and browsers show as text. */
static const char *type_of(const char *name)
{
	static const struct {
		const char *end, *type;
	} types[] = {
		{".json", "application/json"}, {".jsonl", "text/plain; charset=utf-8"},
		{".html", "text/html"},	       {".csv", "text/csv"},
		{".log", "text/plain"},	       {".toml", "text/plain; charset=utf-8"},
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(dot, types[i].end) == 0)
			return types[i].type;
	return NULL;
}

static bool ends_with(struct str s, const char *end)
{
	size_t n = strlen(end);

	return s.n >= n && memcmp(s.p + s.n - n, end, n) == 0;
}

/* Directories of nodes, secrets, files that are being written, and what says that the copy is made stay
 * here. */
static bool stays_here(const char *name)
{
	struct str rest = str_from(name), first = str_cut(&rest, '/');

	if (rest.p)
		return ends_with(first, LAYOUT_NODE_SUFFIX);
	return first.p[0] == '.' || str_is(first, LAYOUT_SECRETS) ||
	       str_is(first, LAYOUT_RESULTS) || str_is(first, LAYOUT_METRICS_SENT) ||
	       str_is(first, RESULTS_INDEX);
}

static int note_object(void *ctx, const struct object *o, struct err *err)
{
	struct results_upload *u = ctx;
	struct object *copy = arena_new_of(u->a, struct object);

	(void)err;
	*copy = *o;
	copy->name = arena_strdup(u->a, o->name);
	map_put(u->there, str_from(copy->name), copy);
	return 0;
}

/* Another install may have a run of the same name in the same store. */
static int check_index(struct results_upload *u, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *index;

	buf_init(&text, INDEX_MAX);
	if (!map_get(u->there, STR(RESULTS_INDEX)))
		return 0;
	if (object_get_text(u->st, RESULTS_INDEX, &text, u->d, err) < 0)
		return -1;
	if (json_parse_limited(buf_str(&text), INDEX_MAX, 8 * RESULTS_MAX_FILES, u->a, &index,
			       NULL) < 0 ||
	    str_is(doc_str(index, "install", STR("")), u->at->install))
		return 0;
	return err_set(err, ERR_CONFLICT,
		       "%s%s/ has the results of another installation's run of this name",
		       u->at->url, u->at->run);
}

static void add_to_index(struct results_upload *u, const char *name, const struct stat *st,
			 const char *sha256)
{
	jsonw_open(&u->w, '{');
	jsonw_kz(&u->w, "path", name);
	jsonw_kint(&u->w, "size", st->st_size);
	jsonw_kz(&u->w, "sha256", sha256);
	if (st->st_mode & S_IXUSR)
		jsonw_kbool(&u->w, "executable", true);
	jsonw_close(&u->w);
	u->sum.files++;
	u->sum.bytes += (uint64_t)st->st_size;
}

static int put_one(struct results_upload *u, const char *name, struct err *err)
{
	CLEANUP(freep) char *path = path_join(u->dir, name);
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	const struct object *there = map_get(u->there, str_from(name));
	struct object_options o = {.type = type_of(name), .keep_days = u->at->keep_days};
	char sha256[SHA256_TEXT];
	struct stat st;
	int same = 0;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (sha256_fd_hex(fd, sha256, NULL, err) < 0)
		return err_wrap(err, "read '%s'", path);
	if (there && u->st)
		same = object_is_file(u->st, there, fd, (uint64_t)st.st_size, err);
	if (same < 0 || (!same && u->st &&
			 object_put_file(u->st, name, fd, (uint64_t)st.st_size, &o, u->d, err) < 0))
		return -1;
	u->sum.sent += !same;
	add_to_index(u, name, &st, sha256);
	return 0;
}

static int put_files(struct results_upload *u, struct err *err)
{
	char **names;
	size_t n;
	int rc = 0;

	if (file_list_tree(u->dir, RESULTS_MAX_FILES, &names, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n && rc == 0; i++)
		if (!stays_here(names[i]))
			rc = put_one(u, names[i], err);
	file_list_free(names, n);
	return rc;
}

static int put_all(struct results_upload *u, struct err *err)
{
	const struct object_options o = {.type = "application/json", .keep_days = u->at->keep_days};

	if (u->st &&
	    (object_list(u->st, "", u->d, note_object, u, err) < 0 || check_index(u, err) < 0))
		return -1;
	jsonw_init(&u->w, &u->index);
	jsonw_open(&u->w, '{');
	jsonw_kint(&u->w, "version", INDEX_VERSION);
	jsonw_kz(&u->w, "run", u->at->run);
	jsonw_kz(&u->w, "install", u->at->install);
	jsonw_key(&u->w, "files");
	jsonw_open(&u->w, '[');
	if (put_files(u, err) < 0)
		return -1;
	jsonw_close(&u->w);
	jsonw_close(&u->w);
	if (u->index.overflow)
		return err_set(err, ERR_CAPACITY, "the run has too many files");
	if (u->st)
		return object_put_text(u->st, RESULTS_INDEX, buf_str(&u->index), &o, u->d, err);
	CLEANUP(freep) char *path = path_join(u->dir, RESULTS_INDEX);

	return file_write_atomic(path, buf_str(&u->index), 0600, true, err);
}

static int make(struct results_upload *u, struct results_sum *ret, struct err *err)
{
	u->a = arena_new();
	u->there = map_new();
	buf_init(&u->index, INDEX_MAX);
	int rc = put_all(u, err);

	buf_release(&u->index);
	map_free(u->there);
	arena_free(u->a);
	*ret = u->sum;
	return rc;
}

int results_index(const char *dir, const struct results_place *at, struct results_sum *ret,
		  struct err *err)
{
	struct results_upload u = {.dir = dir, .at = at};

	return make(&u, ret, err);
}

bool results_file_ok(const char *name)
{
	return path_is_below(str_from(name)) &&
	       (strcmp(name, RESULTS_INDEX) == 0 || !stays_here(name));
}

int results_put(const char *dir, const struct results_place *at, const struct deadline *d,
		struct results_sum *ret, struct err *err)
{
	CLEANUP(freep) char *url = xasprintf("%s%s/", at->url, at->run);
	CLEANUP(object_store_freep) struct object_store *st = NULL;
	const struct object_access who = {.credentials = at->credentials, .own = true};
	struct results_upload u = {.dir = dir, .at = at, .d = d};

	if (object_store_open(url, &who, d, &st, err) < 0)
		return err_wrap(err, "results to %.100s", at->url);
	u.st = st;
	return make(&u, ret, err) < 0 ? err_wrap(err, "results to %.100s", at->url) : 0;
}
