/* Handlers of the files of a run: the list of those that it has kept, each of them, and the size of all. */
#include "master/api/api.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/below.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/results.h"
#include "link/layout.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/upkeep/output_list.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define LIST_THREADS 2
#define HEADER_MAX 8192

struct list_call {
	struct http_exchange *x;
	char *dir;
	bool ended;
	struct buf text;
	struct err err;
};

static void list_work(void *arg, const struct deadline *d)
{
	struct list_call *t = arg;

	(void)(t->ended ? output_list_read : output_list_now)(t->dir, d, &t->text, &t->err);
}

static void list_done(void *arg, enum err_kind how)
{
	struct list_call *t = arg;

	if (how != ERR_NONE)
		err_set(&t->err, ERR_UNAVAILABLE, "the master is about to stop");
	if (t->err.kind == ERR_NONE)
		http_reply(t->x, 200, "application/json", buf_str(&t->text));
	else
		api_reply_error(t->x, &t->err);
	buf_release(&t->text);
	free(t->dir);
	free(t);
}

static void size_work(void *arg, const struct deadline *d)
{
	struct list_call *t = arg;

	(void)d;
	buf_printf(&t->text, "{\"bytes\":%lld}\n", (long long)file_tree_bytes(t->dir));
}

static int answer_by(struct api_call *c, work_fn work, struct err *err)
{
	struct live_run *lr = api_run(c, err);

	if (!lr)
		return -1;
	struct list_call *t = xcalloc(1, sizeof(*t));

	t->x = c->x;
	t->dir = xstrdup(lr->dir);
	t->ended = lr->ended;
	buf_init(&t->text, OUTPUT_LIST_MAX_BYTES);
	live_run_done(lr);
	workers_submit(pools_get(c->m->pools, "output-lists", LIST_THREADS), work, list_done, t,
		       -1);
	return 0;
}

int api_run_outputs(struct api_call *c, struct err *err)
{
	return answer_by(c, list_work, err);
}

int api_run_size(struct api_call *c, struct err *err)
{
	return answer_by(c, size_work, err);
}

/* No link is followed: the file it points to has a name of its own in the list. */
static int open_output(const char *run_dir, const char *path, struct err *err)
{
	CLEANUP(freep) char *dir = path_join(run_dir, LAYOUT_OUTPUTS);
	CLEANUP(close_fdp) int top = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(close_fdp) int fd = top < 0 ? -1 : below_open(top, path);
	struct stat st;

	if (fd < 0 && errno != ENOENT && errno != ELOOP && errno != ENOTDIR)
		return err_errno(err, errno, "open '%.100s'", path);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_NOT_FOUND, "the run has no output file '%.100s'", path);
	return TAKE_FD(fd);
}

int api_run_output(struct api_call *c, struct err *err)
{
	struct str name = query_get(&c->req->query, "path", STR(""));
	CLEANUP(freep) char *path = xstrndup(name.p, name.n);
	CLEANUP(buf_release) struct buf header = {0};

	/* Any name that a job gave a file on this machine. */
	if (!path_is_below(name))
		return err_set(err, ERR_INVALID,
			       "'path' must be the name of a file below the outputs, without '..'");
	struct live_run *lr = api_run(c, err);

	if (!lr)
		return -1;
	int fd = open_output(lr->dir, path, err);

	live_run_done(lr);
	if (fd < 0)
		return -1;
	buf_init(&header, HEADER_MAX);
	buf_addz(&header, "attachment; filename*=UTF-8''");
	url_encode(&header, str_from(path_base(path)));
	http_add_header(c->x, "Content-Disposition", header.p);
	return api_reply_part(c, fd, err);
}

/* A file of the results of a run that this master keeps for the one that handed the run over (driver/results.h). */
int api_run_result(struct api_call *c, struct err *err)
{
	struct str name = query_get(&c->req->query, "path", STR(""));
	CLEANUP(freep) char *path = xstrndup(name.p, name.n);
	CLEANUP(close_fdp) int fd = -1;

	if (strlen(path) != name.n || !results_file_ok(path))
		return err_set(err, ERR_INVALID,
			       "'path' must be the name of a file of the results");
	struct live_run *lr = api_run(c, err);

	if (!lr)
		return -1;
	CLEANUP(freep) char *index = path_join(lr->dir, RESULTS_INDEX);
	CLEANUP(close_fdp) int top = open(lr->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (top >= 0 && lr->ended && file_exists(index))
		fd = below_open(top, path);
	live_run_done(lr);
	return fd >= 0 ? api_reply_part(c, TAKE_FD(fd), err)
		       : err_set(err, ERR_NOT_FOUND,
				 "this master keeps no results '%.100s' of the run", path);
}
