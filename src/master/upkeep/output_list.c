#include "master/upkeep/output_list.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/below.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "net/digest.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define LOOKED_AT 16 /* directories of nodes that the loop looks into */

struct lister {
	int top; /* the directory of the outputs */
	bool sums;
	int64_t bytes;
	struct jsonw w;
};

static void add_link(struct lister *l, const char *name, const char *target)
{
	jsonw_open(&l->w, '{');
	jsonw_kz(&l->w, "path", name);
	jsonw_kint(&l->w, "size", 0);
	jsonw_kz(&l->w, "link", target);
	jsonw_close(&l->w);
}

static int add_file(struct lister *l, const char *name, int fd, const struct stat *st,
		    struct err *err)
{
	char sha256[SHA256_TEXT];

	if (l->sums && sha256_fd_hex(fd, sha256, NULL, err) < 0)
		return err_wrap(err, "read '%.100s'", name);
	jsonw_open(&l->w, '{');
	jsonw_kz(&l->w, "path", name);
	jsonw_kint(&l->w, "size", st->st_size);
	jsonw_kint(&l->w, "mode", st->st_mode & 0777);
	jsonw_kz(&l->w, "sha256", l->sums ? sha256 : NULL);
	jsonw_close(&l->w);
	l->bytes += st->st_size;
	return 0;
}

/* A name that is gone, because the node of a live run goes on, is left out. */
static int add_name(struct lister *l, const char *name, struct err *err)
{
	CLEANUP(close_fdp) int fd = below_open(l->top, name);
	char target[PATH_MAX];
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		return S_ISREG(st.st_mode) ? add_file(l, name, fd, &st, err) : 0;
	if (errno != ELOOP)
		return errno == ENOENT ? 0 : err_errno(err, errno, "open '%.100s'", name);
	ssize_t n = readlinkat(l->top, name, target, sizeof(target) - 1);

	if (n < 0)
		return errno == ENOENT ? 0 : err_errno(err, errno, "read '%.100s'", name);
	target[n] = '\0';
	add_link(l, name, target);
	return 0;
}

static int add_names(struct lister *l, const struct deadline *d, struct err *err)
{
	char **names = NULL;
	size_t n = 0;
	int dir = fcntl(l->top, F_DUPFD_CLOEXEC, 3), rc = 0;

	if (dir < 0)
		return err_errno(err, errno, "open the outputs");
	if (file_list_tree_and_links(dir, OUTPUT_LIST_MAX_FILES, &names, &n, err) < 0)
		return err_wrap(err, "list the outputs");
	for (size_t i = 0; i < n && rc == 0; i++)
		rc = deadline_check(d, "list the outputs", err) < 0 ||
				     add_name(l, names[i], err) < 0
			     ? -1
			     : 0;
	file_list_free(names, n);
	return rc;
}

static int make_list(const char *run_dir, bool sums, const struct deadline *d, struct buf *ret,
		     struct err *err)
{
	CLEANUP(freep) char *path = path_join(run_dir, LAYOUT_OUTPUTS);
	CLEANUP(close_fdp) int top = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct lister l = {.top = top, .sums = sums};

	if (top < 0 && errno != ENOENT)
		return err_errno(err, errno, "open '%s'", path);
	jsonw_init(&l.w, ret);
	jsonw_open(&l.w, '{');
	jsonw_key(&l.w, "files");
	jsonw_open(&l.w, '[');
	if (top >= 0 && add_names(&l, d, err) < 0)
		return -1;
	jsonw_close(&l.w);
	jsonw_kint(&l.w, "bytes", l.bytes);
	jsonw_close(&l.w);
	buf_addc(ret, '\n');
	return ret->overflow ? err_set(err, ERR_QUOTA, "the list of outputs is too large") : 0;
}

int output_list_now(const char *run_dir, const struct deadline *d, struct buf *ret, struct err *err)
{
	return make_list(run_dir, false, d, ret, err);
}

static bool is_empty(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(closedirp) DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return false;
	return true;
}

/* Is there anything in the outputs of a node?  Every node has a directory there.  After `most` of them
 * without anything the answer is yes. */
static bool may_have_outputs(const char *run_dir, size_t most)
{
	CLEANUP(freep) char *path = path_join(run_dir, LAYOUT_OUTPUTS);
	CLEANUP(closedirp) DIR *dir = opendir(path);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' && (most-- == 0 || !is_empty(dirfd(dir), e->d_name)))
			return true;
	return false;
}

int output_list_read(const char *run_dir, const struct deadline *d, struct buf *ret,
		     struct err *err)
{
	CLEANUP(freep) char *path = path_join(run_dir, LAYOUT_OUTPUT_LIST);

	if (file_exists(path))
		return file_read(path, ret, err);
	if (make_list(run_dir, true, d, ret, err) < 0)
		return -1;
	return may_have_outputs(run_dir, SIZE_MAX)
		       ? file_write_atomic(path, buf_str(ret), 0600, false, err)
		       : 0;
}

/* ---- at the end of a run ---- */

struct list_task {
	char *dir, *run;
	struct err err;
};

static void work(void *arg, const struct deadline *d)
{
	struct list_task *t = arg;
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, OUTPUT_LIST_MAX_BYTES);
	(void)output_list_read(t->dir, d, &text, &t->err);
}

/* A run that was removed meanwhile, or a master that leaves, is no reason for a word. */
static void work_done(void *arg, enum err_kind how)
{
	struct list_task *t = arg;

	if (how == ERR_NONE && t->err.kind != ERR_NONE && t->err.kind != ERR_CANCELLED &&
	    file_exists(t->dir))
		log_warn("run %s: list of outputs: %s", t->run, t->err.msg);
	free(t->dir);
	free(t->run);
	free(t);
}

void output_list_run_ended(struct live_run *lr)
{
	if (!lr->m->pools || !may_have_outputs(lr->dir, LOOKED_AT))
		return;
	struct list_task *t = xcalloc(1, sizeof(*t));

	t->dir = xstrdup(lr->dir);
	t->run = xstrdup(lr->row.id);
	workers_submit(pools_get(lr->m->pools, "outputs", 1), work, work_done, t, -1);
}
