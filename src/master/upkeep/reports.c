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
#include "fmt/jsonw.h"
#include "master/api/api.h"
#include "master/upkeep/feed.h"
#include "master/upkeep/report_facts.h"
#include "report/report.h"
#include "sys/loop.h"

#define FILES 2
#define DUE_FIRST_MS 5
#define DUE_LOOK_MS 100
#define DUE_MAX 5000

static const struct {
	const char *name, *type;
	enum report_want want;
} files[FILES] = {
	{"report.html", "text/html; charset=utf-8", REPORT_PAGE},
	{"metrics.csv", "text/csv; charset=utf-8", REPORT_TABLE},
};

struct task {
	struct master *m;
	struct arena *a;
	struct report_run run;
	struct report *report;
	enum report_want want;
	struct http_exchange *x; /* NULL: nobody waits */
	char *dir;
	char *temporary[FILES];
	int fds[FILES];
	bool keep; /* the run has ended, or its files are what was asked for */
	bool ended;
	bool due; /* the next one waits for it */
	struct err err;
};

static void task_free(struct task *t)
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

static int open_files(struct task *t, struct err *err)
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
	struct task *t = ctx;
	report_points(t->report, series, p, n);
}

static void work_end(void *ctx)
{
	struct task *t = ctx;
	(void)report_end(t->report, &t->err);
}

static int put_in_place(struct task *t, struct err *err)
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

static void reply_names(struct task *t)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct jsonw w;

	buf_init(&text, 64u << 10);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "id", t->run.id);
	jsonw_kz(&w, "dir", t->dir);
	jsonw_key(&w, "files");
	jsonw_open(&w, '[');
	for (int i = 0; i < FILES; i++)
		jsonw_z(&w, files[i].name);
	jsonw_z(&w, "summary.json");
	jsonw_close(&w);
	jsonw_close(&w);
	buf_addc(&text, '\n');
	http_reply(t->x, 200, "application/json", buf_str(&text));
}

static void reply(struct task *t)
{
	struct stat sb;
	int i = t->want == REPORT_TABLE;

	if (t->err.kind == ERR_NONE && t->want != REPORT_BOTH && fstat(t->fds[i], &sb) < 0)
		err_errno(&t->err, errno, "look at the report");
	if (t->err.kind != ERR_NONE)
		api_reply_error(t->x, &t->err);
	else if (t->want == REPORT_BOTH)
		reply_names(t);
	else
		report_reply(t->x, t->want, TAKE_FD(t->fds[i]), sb.st_size);
}

/* The files of a run that went on while they were made must not stay as its last. */
static void make_again_if_ended(const struct task *t)
{
	struct err err = {0};
	struct live_run *lr = NULL;
	const char **ids;
	size_t n;

	if (t->ended || !t->keep || t->err.kind != ERR_NONE)
		return;
	lr = live_run_find(t->m, str_from(t->run.id), t->a, &ids, &n, &err);
	if (lr && lr->ended && report_start(lr, REPORT_BOTH, NULL, &err) < 0)
		log_warn("run %s: report: %s", t->run.id, err.msg);
	if (lr)
		live_run_done(lr);
}

static void done(void *ctx, const struct err *read_err)
{
	struct task *t = ctx;

	if (t->err.kind == ERR_NONE && read_err->kind != ERR_NONE)
		t->err = *read_err;
	if (t->err.kind == ERR_NONE && t->keep)
		(void)put_in_place(t, &t->err);
	if (t->x)
		reply(t);
	else if (t->err.kind != ERR_NONE)
		log_warn("run %s: report: %s", t->run.id, t->err.msg);
	make_again_if_ended(t);
	if (t->due) {
		t->m->report_busy = false;
		loop_timer_set(t->m->report_timer, 0);
	}
	task_free(t);
}

static int start(struct live_run *lr, enum report_want want, struct http_exchange *x, bool due,
		 struct err *err)
{
	struct task *t = xcalloc(1, sizeof(*t));

	t->a = arena_new();
	t->want = want;
	t->dir = xstrdup(lr->dir);
	t->m = lr->m;
	t->ended = lr->ended;
	t->keep = lr->ended || want == REPORT_BOTH;
	for (int i = 0; i < FILES; i++)
		t->fds[i] = -1;
	if (open_files(t, err) < 0) {
		task_free(t);
		return -1;
	}
	t->x = x;
	t->due = due;
	report_facts(lr, t->a, &t->run);
	t->report = report_new(&t->run, t->fds[0], t->fds[1]);
	int64_t *keys = arena_array(t->a, int64_t, t->run.nseries + 1);
	for (size_t i = 0; i < t->run.nseries; i++)
		keys[i] = t->run.series[i].series;
	feed_start(lr->m, &(struct feed_job){.series = keys,
					     .nseries = t->run.nseries,
					     .points = work_points,
					     .end = work_end,
					     .done = done,
					     .ctx = t});
	return 0;
}

int report_start(struct live_run *lr, enum report_want want, struct http_exchange *x,
		 struct err *err)
{
	return start(lr, want, x, false, err);
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

/*
 * Most of them are short and many, and the page costs as much as the run: theirs are made when nothing runs,
 * one after the other, or when very many wait.
 */
static void next_due(void *ctx)
{
	struct master *m = ctx;
	struct err err = {0};

	if (!m->workers || m->report_busy || !m->reports_due.n)
		return;
	if (runs_active(m) && m->reports_due.n < DUE_MAX) {
		loop_timer_set(m->report_timer, DUE_LOOK_MS);
		return;
	}
	/* The newest first: it is the one that somebody may look for. */
	struct live_run *lr = live_run_load(m, m->reports_due.v[--m->reports_due.n], &err);

	m->report_busy = lr && start(lr, REPORT_BOTH, NULL, true, &err) == 0;
	if (!m->report_busy) {
		if (err.kind != ERR_NOT_FOUND) /* removed meanwhile */
			log_warn("report: %s", err.msg);
		loop_timer_set(m->report_timer, 0);
	}
	if (lr)
		live_run_done(lr);
}

void report_later(struct master *m, int64_t no)
{
	if (!m->report_timer)
		m->report_timer = loop_timer_new(m->loop, next_due, m);
	*vec_push(&m->reports_due) = no;
	if (!m->report_busy)
		loop_timer_set(m->report_timer, DUE_FIRST_MS);
}

void reports_close(struct master *m)
{
	m->report_timer = loop_timer_free(m->report_timer);
	vec_release(&m->reports_due);
}

void report_at_end(struct live_run *lr)
{
	struct err err = {0};

	if (!lr->m->workers)
		return; /* leaving: the next master finds that it is missing */
	if (!has_samples(lr))
		report_later(lr->m, lr->row.no);
	else if (report_start(lr, REPORT_BOTH, NULL, &err) < 0)
		log_warn("run %s: report: %s", lr->row.id, err.msg);
}

void report_reply(struct http_exchange *x, enum report_want want, int fd, int64_t size)
{
	if (want == REPORT_TABLE)
		http_add_header(x, "Content-Disposition", "attachment; filename=\"metrics.csv\"");
	http_reply_file(x, 200, files[want == REPORT_TABLE].type, fd, 0, size);
}
