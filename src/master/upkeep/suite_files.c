#include "master/upkeep/suite_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "link/layout.h"
#include "master/internal.h"
#include "master/suites.h"
#include "master/upkeep/feed.h"
#include "report/suite_report.h"

#define SUMMARY_MAX_BYTES (64u << 20)
#define FILE_MAX_BYTES (4u << 20)

void suite_link_run(const struct live_suite *ls, int index)
{
	const struct suite_entry *e = &ls->core->entries[index];
	CLEANUP(freep)
	char *dir = xasprintf("%s/experiments/%s", ls->dir, ls->plan.variants[e->variant].name);
	CLEANUP(freep) char *link = xasprintf("%s/%d", dir, e->repeat + 1);
	CLEANUP(freep) char *to = xasprintf("../../../../" LAYOUT_RUNS "/%s", ls->runs[index]);
	struct err err = {0};

	if (unlink(link) < 0 && errno == ENOENT && file_mkdir_p(dir, 0700, &err) < 0)
		log_warn("suite %s: %s", ls->row.id, err.msg);
	else if (symlink(to, link) < 0)
		log_warn("suite %s: link '%s': errno %d", ls->row.id, link, errno);
}

/* ---- the report ---- */

enum { PAGE, TABLE, FILES };
static const char *const names[FILES] = {[PAGE] = "report.html", [TABLE] = "table.csv"};

struct files_task {
	struct arena *a;
	struct suite_report_facts facts;
	struct suite_report *report;
	char *dir;
	char *temporary[FILES];
	int fds[FILES];
	struct buf json; /* summary.json, without its last brace until the figures are known */
	suite_files_fn done;
	void *ctx;
	bool keep; /* the files in place stay */
	struct err err;
};

static void task_free(struct files_task *t)
{
	for (int i = 0; i < FILES; i++) {
		if (t->fds[i] >= 0)
			close(t->fds[i]);
		if (t->temporary[i])
			unlink(t->temporary[i]);
		free(t->temporary[i]);
	}
	suite_report_free(t->report);
	buf_release(&t->json);
	arena_free(t->a);
	free(t->dir);
	free(t);
}

static int open_files(struct files_task *t, struct err *err)
{
	static unsigned number;

	for (int i = 0; i < FILES; i++) {
		t->temporary[i] =
			xasprintf("%s/.%s.%d-%u", t->dir, names[i], (int)getpid(), number++);
		t->fds[i] = open(t->temporary[i],
				 O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (t->fds[i] < 0)
			return err_errno(err, errno, "make '%s'", t->temporary[i]);
	}
	return 0;
}

static void take_points(void *ctx, size_t series, const struct report_point *p, size_t n)
{
	struct files_task *t = ctx;

	suite_report_points(t->report, series, p, n);
}

static void make_report(void *ctx)
{
	struct files_task *t = ctx;

	buf_addc(&t->json, ',');
	if (suite_report_end(t->report, t->fds[PAGE], t->fds[TABLE], &t->json, &t->err) == 0)
		buf_addz(&t->json, "}\n");
}

static int put_in_place(struct files_task *t, struct err *err)
{
	CLEANUP(freep) char *summary = path_join(t->dir, "summary.json");

	for (int i = 0; i < FILES; i++) {
		CLEANUP(freep) char *path = path_join(t->dir, names[i]);

		if (rename(t->temporary[i], path) < 0)
			return err_errno(err, errno, "rename to '%s'", path);
		free(t->temporary[i]);
		t->temporary[i] = NULL;
	}
	return file_write_atomic(summary, buf_str(&t->json), 0600, false, err);
}

static void files_made(void *ctx, const struct err *read_err)
{
	struct files_task *t = ctx;

	if (t->err.kind == ERR_NONE && read_err->kind != ERR_NONE)
		t->err = *read_err;
	if (t->err.kind == ERR_NONE && t->json.overflow)
		err_set(&t->err, ERR_CAPACITY, "the summary has more than %u MiB",
			SUMMARY_MAX_BYTES >> 20);
	if (t->err.kind == ERR_NONE && !t->keep)
		(void)put_in_place(t, &t->err);
	if (t->done)
		t->done(t->ctx, buf_str(&t->json), &t->err);
	else if (t->err.kind != ERR_NONE)
		log_warn("suite %s: report: %s", t->facts.id, t->err.msg);
	task_free(t);
}

/* ---- its facts, copied: the suite may be gone when they are used ---- */

static void take_variants(const struct live_suite *ls, struct arena *a,
			  struct suite_report_facts *f)
{
	const struct suite *s = &ls->plan;

	f->keys = arena_array(a, const char *, (size_t)s->nkeys + 1);
	for (; f->nkeys < s->nkeys; f->nkeys++)
		f->keys[f->nkeys] = arena_strdup(a, s->keys[f->nkeys]);
	f->naxes = s->naxes;
	f->variants = arena_array(a, struct suite_report_variant, (size_t)s->n);
	for (; f->nvariants < s->n; f->nvariants++) {
		const struct suite_variant *from = &s->variants[f->nvariants];
		struct suite_report_variant *v = &f->variants[f->nvariants];

		v->name = arena_strdup(a, from->name);
		v->baseline = from->baseline;
		v->experiment = from->experiment >= 0;
		v->params = arena_array(a, const char *, (size_t)s->nkeys + 1);
		for (int k = 0; k < s->nkeys; k++)
			if (from->values[k])
				v->params[k] = suite_value_text(from->values[k], a);
	}
}

static void take_runs(const struct live_suite *ls, struct arena *a, struct suite_report_facts *f)
{
	f->runs = arena_array(a, struct suite_report_run, (size_t)ls->core->n);
	for (; f->nruns < ls->core->n; f->nruns++) {
		const struct suite_entry *e = &ls->core->entries[f->nruns];

		f->runs[f->nruns] = (struct suite_report_run){
			.variant = e->variant,
			.repeat = e->repeat,
			.run = ls->runs[f->nruns] ? arena_strdup(a, ls->runs[f->nruns]) : NULL,
			.state = entry_state_name(e->state),
			.cause = arena_strdup(a, e->cause),
			.succeeded = e->state == ENTRY_SUCCEEDED,
		};
	}
}

static const char *read_file(const struct live_suite *ls, struct arena *a)
{
	CLEANUP(freep) char *path = path_join(ls->dir, "suite.toml");
	CLEANUP(buf_release) struct buf text = {0};
	struct err ignored;

	buf_init(&text, FILE_MAX_BYTES);
	return file_read(path, &text, &ignored) == 0 ? arena_strndup(a, text.p, text.n) : NULL;
}

void suite_facts(const struct live_suite *ls, struct arena *a, struct suite_report_facts *f)
{
	const struct strs *metrics = &ls->plan.report.metric;
	const struct core_suite *c = ls->core;
	const char **names_of = arena_array(a, const char *, metrics->n + 1);

	*f = (struct suite_report_facts){0};
	f->id = arena_strdup(a, ls->row.id);
	f->state = suite_phase_name(c->phase);
	f->cause = *c->cause ? arena_strdup(a, c->cause) : NULL;
	f->on_exit = *c->closed ? arena_strdup(a, c->closed) : NULL;
	f->file = read_file(ls, a);
	f->created_ms = ls->row.created_ms;
	f->ended = ls->row.ended_ms > 0;
	f->elapsed_ms = (f->ended ? ls->row.ended_ms : clock_wall_ms()) - ls->row.created_ms;
	f->cost_usd = (double)(c->spent_micro + c->active_micro) / 1e6;
	for (size_t i = 0; i < metrics->n; i++)
		names_of[i] = arena_strdup(a, metrics->v[i]);
	f->metrics = names_of;
	f->nmetrics = metrics->n;
	take_variants(ls, a, f);
	take_runs(ls, a, f);
}

static struct files_task *files_task_new(struct live_suite *ls, bool keep, suite_files_fn done,
					 void *ctx)
{
	struct files_task *t = xcalloc(1, sizeof(*t));

	*t = (struct files_task){
		.a = arena_new(), .done = done, .ctx = ctx, .keep = keep, .fds = {-1, -1}};
	t->dir = xstrdup(ls->dir);
	buf_init(&t->json, SUMMARY_MAX_BYTES);
	suite_facts(ls, t->a, &t->facts);
	suite_to_json(ls, false, &t->json);
	if (t->json.n)
		t->json.n--; /* the last brace: figures follow */
	if (open_files(t, &t->err) == 0)
		(void)suite_report_open(ls->m->store, &t->facts, t->a, &t->report, &t->err);
	return t;
}

static void start(struct files_task *t, struct feeder *feeder)
{
	const int64_t *series;

	if (t->err.kind != ERR_NONE) {
		files_made(t, &(struct err){0});
		return;
	}
	size_t n = suite_report_series(t->report, &series);
	feed_start(feeder, &(struct feed_job){.series = series,
					      .nseries = n,
					      .points = take_points,
					      .end = make_report,
					      .done = files_made,
					      .ctx = t});
}

void suite_write_files(struct live_suite *ls, suite_files_fn done, void *ctx)
{
	start(files_task_new(ls, false, done, ctx), ls->m->feeder);
}

void suite_renew_files(struct live_suite *ls, suite_files_fn done, void *ctx)
{
	struct files_task *t = files_task_new(ls, false, done, ctx);

	if (!ls->ended || t->err.kind != ERR_NONE || !suite_report_lost_all(t->report)) {
		start(t, ls->m->feeder);
		return;
	}
	task_free(t);
	suite_read_summary(ls, done, ctx);
}

/* Is this the summary of the suite's last end? */
static bool is_current(const struct live_suite *ls, struct str summary)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *doc;

	return ls->row.ended_ms && json_parse(summary, a, &doc, NULL) == 0 &&
	       doc_int(doc, "ended_ms", 0) == ls->row.ended_ms;
}

void suite_read_summary(struct live_suite *ls, suite_files_fn done, void *ctx)
{
	CLEANUP(freep) char *path = path_join(ls->dir, "summary.json");
	CLEANUP(buf_release) struct buf text = {0};
	struct err err = {0};

	buf_init(&text, SUMMARY_MAX_BYTES);
	if (ls->ended && file_read(path, &text, &err) == 0 && is_current(ls, buf_str(&text)))
		done(ctx, buf_str(&text), &(struct err){0});
	else
		start(files_task_new(ls, true, done, ctx), ls->m->feeder);
}
