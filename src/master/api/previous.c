#include "master/api/previous.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/below.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "master/api/api.h"
#include "master/api/outputs.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/streams.h"

#define LIST_SUFFIX ".list"
#define LINE_MAX_BYTES (16 * 1024)

void previous_add(const char *uploads, const char *label, const struct previous_file *f)
{
	CLEANUP(freep) char *path = xasprintf("%s/%s" LIST_SUFFIX, uploads, label);
	CLEANUP(buf_release) struct buf line = {0};
	CLEANUP(close_fdp)
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct jsonw w;

	buf_init(&line, LINE_MAX_BYTES);
	jsonw_init(&w, &line);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "path", f->path);
	jsonw_kint(&w, "size", (int64_t)f->size);
	jsonw_kz(&w, "sha256", f->sha256);
	jsonw_kint(&w, "mode", (int64_t)f->mode);
	jsonw_close(&w);
	buf_addc(&line, '\n');
	if (fd >= 0 && !line.overflow)
		(void)file_write_all(fd, line.p, line.n, NULL);
}

static char *list_path(const struct live_run *lr, int rank, int attempt)
{
	CLEANUP(freep) char *uploads = outputs_uploads_dir(lr);
	char label[LOG_NAME_MAX];

	run_log_base(lr, rank, attempt, label);
	return xasprintf("%s/%s" LIST_SUFFIX, uploads, label);
}

int previous_attempt(const struct live_run *lr, int rank)
{
	for (int attempt = lr->core->nodes[rank].attempt; attempt > 0; attempt--) {
		CLEANUP(freep) char *path = list_path(lr, rank, attempt);

		if (file_exists(path))
			return attempt;
	}
	return 0;
}

static int open_file(const struct live_run *lr, int rank, int attempt, struct str name,
		     struct err *err)
{
	char label[LOG_NAME_MAX];

	if (!output_path_ok(name))
		return err_set(err, ERR_INVALID,
			       "'path' must be the name of a file below the outputs, without '..'");
	run_log_base(lr, rank, attempt, label);
	CLEANUP(freep) char *dir = xasprintf("%s/" LAYOUT_OUTPUTS "/%s", lr->dir, label);
	CLEANUP(freep) char *path = xstrndup(name.p, name.n);
	CLEANUP(close_fdp) int top = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	CLEANUP(close_fdp) int fd = top < 0 ? -1 : below_open(top, path);

	return fd < 0 ? err_errno(err, errno, "open '%.100s'", path) : TAKE_FD(fd);
}

static int open_list(const struct live_run *lr, int rank, int attempt, struct err *err)
{
	CLEANUP(freep) char *path = list_path(lr, rank, attempt);
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_errno(err, errno, "open the list of outputs") : fd;
}

int api_node_previous(struct api_call *c, struct err *err)
{
	struct live_run *lr = map_get(c->m->runs, c->params[0]);
	int rank = lr ? run_find_rank(lr, c->params[1]) : -1;
	struct str path = query_get(&c->req->query, "path", (struct str){0});
	uint64_t attempt;

	if (rank < 0)
		return err_set(err, ERR_DENIED, "no such run or node");
	if (!str_to_u64(query_get(&c->req->query, "attempt", STR("")), &attempt) || attempt < 1 ||
	    attempt > (uint64_t)lr->core->nodes[rank].attempt)
		return err_set(err, ERR_INVALID,
			       "'attempt' must be the number of an attempt that was started");
	int fd = path.p ? open_file(lr, rank, (int)attempt, path, err)
			: open_list(lr, rank, (int)attempt, err);

	return fd < 0 ? -1 : api_reply_part(c, fd, err);
}
