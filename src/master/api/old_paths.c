/*
 * The paths of the web service of the tool that regatta replaced, in the same format: plain
 * text.  A log's name is "<run>/<node>.log"; it is looked up (the run in the store, the node in
 * the run's plan) and never used as a path.
 */
#include "master/api/api.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "link/frame.h"
#include "link/layout.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/streams.h"
#include "store/logfile.h"

#define TEXT "text/plain; charset=utf-8"
#define LIST_MAX_RUNS 1000 /* per answer; the Link header has the URL of the next page */
#define LIST_MAX_BYTES (16u << 20)

int old_status(struct api_call *c, struct err *err)
{
	CLEANUP(freep) char *path = path_join(c->m->home, LAYOUT_MASTER_LOG);
	CLEANUP(close_fdp) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, errno, LAYOUT_MASTER_LOG);
	http_reply_file(c->x, 200, TEXT, TAKE_FD(fd), 0, st.st_size);
	return 0;
}

struct log_list {
	const struct master *m;
	struct buf text;
	int runs;
	const char *last; /* id of the last run in the text */
};

/* Lists the log directory of the run: loading up to a thousand runs would take much longer. */
static bool list_run(void *ctx, const struct run_row *row)
{
	struct log_list *l = ctx;
	CLEANUP(freep)
	char *path = xasprintf("%s/" LAYOUT_RUNS "/%s/" LAYOUT_LOGS, l->m->home, row->id);
	struct dirent **names;
	int n = scandir(path, &names, NULL, alphasort);
	size_t before = l->text.n;

	for (int i = 0; i < n; i++) {
		if (str_ends(str_from(names[i]->d_name), STR(".log")))
			buf_printf(&l->text, "%s/%s\n", row->id, names[i]->d_name);
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	/* Only whole runs: the next page begins with this one. */
	if (l->text.overflow) {
		l->text.n = before;
		return false;
	}
	l->runs++;
	l->last = row->id;
	return true;
}

int old_list_logs(struct api_call *c, struct err *err)
{
	struct log_list l = {.m = c->m};
	struct str before = query_get(&c->req->query, "before", STR(""));
	int64_t before_no = 0;
	char next[256];

	if (before.n &&
	    store_run_find(c->m->store, before, c->arena, &before_no, &c->ids, &c->nids, err) < 0)
		return -1;
	buf_init(&l.text, LIST_MAX_BYTES);
	int rc = store_runs_each(c->m->store, false, before_no, LIST_MAX_RUNS, c->arena, list_run,
				 &l, err);
	if (rc == 0 && l.last && (l.runs == LIST_MAX_RUNS || l.text.overflow)) {
		snprintf(next, sizeof(next), "</list_logs?before=%s>; rel=\"next\"", l.last);
		http_add_header(c->x, "Link", next);
	}
	if (rc == 0)
		http_reply(c->x, 200, TEXT, buf_str(&l.text));
	buf_release(&l.text);
	return rc;
}

/* "trainer-0.err.log" -> rank and stream; -1 if the run has no such log. */
static int log_of(struct live_run *lr, struct str file, enum stream *ret_stream)
{
	/* ".err.log" ends with ".log" as well: the longest suffix that leaves the name of a node
	 * is the right one. */
	for (int s = STREAMS - 1; s >= 0; s--) {
		struct str suffix = str_from(stream_suffix((enum stream)s));
		if (file.n <= suffix.n || !str_ends(file, suffix))
			continue;
		int process, rank = run_find_process(lr, (struct str){file.p, file.n - suffix.n},
						     &process);
		if (rank < 0)
			continue;
		*ret_stream = stream_of(process, (enum stream)s);
		return rank;
	}
	return -1;
}

int old_log(struct api_call *c, struct err *err)
{
	struct str file = c->params[1], run = c->params[0];
	enum stream stream = STREAM_OUT;
	uint64_t size = 0;
	char name[LOG_NAME_MAX];
	int fd = -1, rc = -1;

	/* The name is one part of the path, with its '/' percent-encoded. */
	if (!file.p) {
		file = run;
		run = str_cut(&file, '/');
		c->params[0] = run;
	}
	struct live_run *lr = file.p && run.n ? api_run(c, err) : NULL;
	if (!lr)
		return err_set(err, ERR_NOT_FOUND, "no such log: /list_logs names them");
	int rank = str_is(run, lr->row.id) ? log_of(lr, file, &stream) : -1;
	if (rank < 0) {
		err_set(err, ERR_NOT_FOUND, "no such log: /list_logs names them");
	} else {
		run_log_name(lr, rank, 1, stream, name);
		rc = logfile_open_read(lr->logs_dir, name, &fd, &size, err);
	}
	live_run_done(lr);
	if (rc == 0)
		http_reply_file(c->x, 200, TEXT, fd, 0, (int64_t)size);
	return rc;
}

int old_cleanup(struct api_call *c, struct err *err)
{
	(void)err;
	runs_cancel_all(c->m, "cancelled: cleanup was asked for");
	http_reply(c->x, 200, TEXT, STR("cleanup in progress\n"));
	return 0;
}
