#include "master/upkeep/reports.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/path.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/upkeep/feed.h"
#include "master/upkeep/report_facts.h"
#include "report/report.h"
#include "sys/loop.h"

#define FILES 2
#define DUE_FIRST_MS 5
#define DUE_CHECK_MS 100
#define DUE_MAX 5000

static const struct {
	const char *name;
	enum report_want want;
} files[FILES] = {
	{"report.html", REPORT_PAGE},
	{"metrics.csv", REPORT_TABLE},
};

struct reports {
	struct master *m;
	VEC(int64_t) due; /* ended runs whose report is made when no run is active */
	struct loop_timer *timer;
	bool busy; /* the report of one of them is being made */
};

struct report_task {
	struct reports *reports;
	struct arena *a;
	struct report_run run;
	struct report *report;
	enum report_want want;
	report_done_fn done; /* NULL: nobody waits for the result */
	void *ctx;
	char *dir;
	char *temporary[FILES];
	int fds[FILES];
	/* Keep the files: the run has ended, or the caller asked for files. */
	bool keep;
	bool ended;
	bool due; /* it is one of reports.due, and the next one waits for it */
	struct err err;
};

static void task_free(struct report_task *t)
{
	for (int i = 0; i < FILES; i++) {
		if (t->fds[i] >= 0)
			close(t->fds[i]);
		if (t->temporary[i])
			unlink(t->temporary[i]);
		free(t->temporary[i]);
	}
	report_free(t->report);
	arena_free(t->a);
	free(t->dir);
	free(t);
}

static int open_files(struct report_task *t, struct err *err)
{
	static unsigned number;

	for (int i = 0; i < FILES; i++) {
		if (!(t->want & files[i].want))
			continue;
		char *path =
			xasprintf("%s/.%s.%d-%u", t->dir, files[i].name, (int)getpid(), number++);
		int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0) {
			err_errno(err, errno, "make '%s'", path);
			free(path);
			return -1;
		}
		t->temporary[i] = path;
		t->fds[i] = fd;
	}
	return 0;
}

static void work_points(void *ctx, size_t series, const struct report_point *p, size_t n)
{
	struct report_task *t = ctx;
	report_points(t->report, series, p, n);
}

static void work_end(void *ctx)
{
	struct report_task *t = ctx;
	(void)report_end(t->report, &t->err);
}

static int put_in_place(struct report_task *t, struct err *err)
{
	for (int i = 0; i < FILES; i++) {
		if (!t->temporary[i])
			continue;
		CLEANUP(freep) char *path = path_join(t->dir, files[i].name);
		if (rename(t->temporary[i], path) < 0)
			return err_errno(err, errno, "rename to '%s'", path);
		free(t->temporary[i]);
		t->temporary[i] = NULL;
	}
	return 0;
}

static void tell(struct report_task *t)
{
	struct report_result result = {
		.err = &t->err, .run_id = t->run.id, .dir = t->dir, .want = t->want, .fd = -1};
	int i = t->want == REPORT_TABLE;
	struct stat sb;

	if (t->err.kind == ERR_NONE && t->want != REPORT_BOTH && fstat(t->fds[i], &sb) < 0)
		err_errno(&t->err, errno, "stat the report");
	if (t->err.kind == ERR_NONE && t->want != REPORT_BOTH) {
		result.fd = TAKE_FD(t->fds[i]);
		result.size = sb.st_size;
	}
	t->done(t->ctx, &result);
}

/* A report that was begun before its run ended is not final: it is made again. */
static void make_again_if_ended(const struct report_task *t)
{
	struct err err = {0};
	struct live_run *lr = NULL;

	if (t->ended || !t->keep || t->err.kind != ERR_NONE)
		return;
	lr = live_run_exact(t->reports->m, t->run.id, t->a, &err);
	if (lr && lr->ended && reports_start(t->reports, lr, REPORT_BOTH, NULL, NULL, &err) < 0)
		log_warn("run %s: report: %s", t->run.id, err.msg);
	if (lr)
		live_run_done(lr);
}

static void made(void *ctx, const struct err *read_err)
{
	struct report_task *t = ctx;

	if (t->err.kind == ERR_NONE && read_err->kind != ERR_NONE)
		t->err = *read_err;
	if (t->err.kind == ERR_NONE && t->keep)
		(void)put_in_place(t, &t->err);
	if (t->done)
		tell(t);
	else if (t->err.kind != ERR_NONE)
		log_warn("run %s: report: %s", t->run.id, t->err.msg);
	make_again_if_ended(t);
	if (t->due) {
		t->reports->busy = false;
		loop_timer_set(t->reports->timer, 0);
	}
	task_free(t);
}

static struct report_task *task_new(struct reports *r, const struct live_run *lr,
				    enum report_want want)
{
	struct report_task *t = xcalloc(1, sizeof(*t));

	t->a = arena_new();
	t->want = want;
	t->dir = xstrdup(lr->dir);
	t->reports = r;
	t->ended = lr->ended;
	t->keep = lr->ended || want == REPORT_BOTH;
	for (int i = 0; i < FILES; i++)
		t->fds[i] = -1;
	return t;
}

/* Takes over t. */
static int task_start(struct report_task *t, struct live_run *lr, struct err *err)
{
	if (open_files(t, err) < 0) {
		task_free(t);
		return -1;
	}
	report_facts(lr, t->a, &t->run);
	t->report = report_new(&t->run, t->fds[0], t->fds[1]);
	int64_t *keys = arena_array(t->a, int64_t, t->run.nseries + 1);
	for (size_t i = 0; i < t->run.nseries; i++)
		keys[i] = t->run.series[i].series;
	feed_start(lr->m->feeder, &(struct feed_job){.series = keys,
						     .nseries = t->run.nseries,
						     .points = work_points,
						     .end = work_end,
						     .done = made,
						     .ctx = t});
	return 0;
}

int reports_start(struct reports *r, struct live_run *lr, enum report_want want,
		  report_done_fn done, void *ctx, struct err *err)
{
	struct report_task *t = task_new(r, lr, want);

	t->done = done;
	t->ctx = ctx;
	return task_start(t, lr, err);
}

int reports_start_due(struct reports *r, struct live_run *lr, report_done_fn done, void *ctx,
		      struct err *err)
{
	size_t n = 0;

	for (size_t i = 0; i < r->due.n; i++)
		if (r->due.v[i] != lr->row.no)
			r->due.v[n++] = r->due.v[i];
	r->due.n = n;
	return reports_start(r, lr, REPORT_BOTH, done, ctx, err);
}

static bool has_samples(const struct live_run *lr)
{
	struct str key;
	void *value;

	for (size_t i = 0; map_at(lr->series, &i, &key, &value);)
		if (((const struct live_series *)value)->row.count)
			return true;
	return false;
}

/* ---- runs without samples ---- */

static int start_due(struct reports *r, struct live_run *lr, struct err *err)
{
	struct report_task *t = task_new(r, lr, REPORT_BOTH);

	t->due = true;
	return task_start(t, lr, err);
}

/*
 * Runs without samples are mostly short and many, and a page takes as long as such a run: their
 * pages are made one after the other when no run is active, or when very many wait.
 */
static void next_due(void *ctx)
{
	struct reports *r = ctx;
	struct err err = {0};

	if (!r->m->pools || r->busy || !r->due.n)
		return;
	if (runs_active(r->m) && r->due.n < DUE_MAX) {
		loop_timer_set(r->timer, DUE_CHECK_MS);
		return;
	}
	/* The newest first: a user is most likely to look at it. */
	struct live_run *lr = live_run_load(r->m, r->due.v[--r->due.n], &err);

	r->busy = lr && start_due(r, lr, &err) == 0;
	if (!r->busy) {
		if (err.kind != ERR_NOT_FOUND) /* the run was removed meanwhile */
			log_warn("report: %s", err.msg);
		loop_timer_set(r->timer, 0);
	}
	if (lr)
		live_run_done(lr);
}

void reports_add(struct reports *r, int64_t no)
{
	*vec_push(&r->due) = no;
	if (!r->busy)
		loop_timer_set(r->timer, DUE_FIRST_MS);
}

bool reports_waiting(const struct reports *r)
{
	return r->due.n > 0;
}

void reports_run_ended(struct reports *r, struct live_run *lr)
{
	struct err err = {0};

	if (!r->m->pools)
		return; /* the master stops: the next one finds that the report is missing */
	if (!has_samples(lr))
		reports_add(r, lr->row.no);
	else if (reports_start(r, lr, REPORT_BOTH, NULL, NULL, &err) < 0)
		log_warn("run %s: report: %s", lr->row.id, err.msg);
}

const char *report_file_name(enum report_want want)
{
	return files[want == REPORT_TABLE].name;
}

struct reports *reports_new(struct master *m)
{
	struct reports *r = xcalloc(1, sizeof(*r));

	r->m = m;
	r->timer = loop_timer_new(m->loop, next_due, r);
	return r;
}

struct reports *reports_free(struct reports *r)
{
	if (!r)
		return NULL;
	loop_timer_free(r->timer);
	vec_release(&r->due);
	free(r);
	return NULL;
}
