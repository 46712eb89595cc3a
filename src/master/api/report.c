/* Handlers of reports and comparisons. */
#include "master/api/api.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/path.h"
#include "fmt/jsonw.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/source_state.h"
#include "master/suites.h"
#include "master/upkeep/feed.h"
#include "master/upkeep/finish.h"
#include "master/upkeep/reports.h"
#include "master/upkeep/suite_files.h"
#include "report/comparison.h"
#include "report/suite_report.h"

#define REVISIONS_PER_ARM 16 /* runs that are looked at */
#define REVISIONS_MAX_BYTES (32u << 10)
#define ANSWER_MAX_BYTES (64u << 20)
#define MAX_METRIC_NAMES 64 /* a query has no more pairs */

/* Takes over fd. */
static void reply_file(struct http_exchange *x, enum report_want want, int fd, int64_t size)
{
	bool table = want == REPORT_TABLE;

	if (table)
		http_add_header(x, "Content-Disposition", "attachment; filename=\"metrics.csv\"");
	http_reply_file(x, 200, table ? "text/csv; charset=utf-8" : "text/html; charset=utf-8", fd,
			0, size);
}

static void reply_names(struct http_exchange *x, const struct report_result *r)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct jsonw w;

	buf_init(&text, 64u << 10);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "id", r->run_id);
	jsonw_kz(&w, "dir", r->dir);
	jsonw_key(&w, "files");
	jsonw_open(&w, '[');
	jsonw_z(&w, report_file_name(REPORT_PAGE));
	jsonw_z(&w, report_file_name(REPORT_TABLE));
	jsonw_z(&w, "summary.json");
	jsonw_close(&w);
	jsonw_close(&w);
	buf_addc(&text, '\n');
	http_reply(x, 200, "application/json", buf_str(&text));
}

static void report_made(void *ctx, const struct report_result *r)
{
	struct http_exchange *x = ctx;

	if (r->err->kind != ERR_NONE)
		api_reply_error(x, r->err);
	else if (r->want == REPORT_BOTH)
		reply_names(x, r);
	else
		reply_file(x, r->want, r->fd, r->size);
}

/* Answers with the file that was made at the end of the run, if it exists. */
static bool reply_made(struct api_call *c, const struct live_run *lr, enum report_want want)
{
	CLEANUP(freep) char *path = path_join(lr->dir, report_file_name(want));
	CLEANUP(close_fdp) int fd = -1;
	struct stat sb;

	if (!lr->ended)
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &sb) < 0 || !S_ISREG(sb.st_mode))
		return false;
	reply_file(c->x, want, TAKE_FD(fd), sb.st_size);
	return true;
}

static int answer(struct api_call *c, enum report_want want, struct err *err)
{
	struct live_run *lr = api_run(c, err);
	int rc = 0;

	if (!lr)
		return -1;
	if (want == REPORT_BOTH)
		run_write_records(lr);
	if (want == REPORT_BOTH || !reply_made(c, lr, want))
		rc = reports_start(c->m->reports, lr, want, report_made, c->x, err);
	live_run_done(lr);
	return rc;
}

int api_run_report(struct api_call *c, struct err *err)
{
	struct str files = query_get(&c->req->query, "files", STR("0"));

	if (!str_is(files, "0") && !str_is(files, "1"))
		return err_set(err, ERR_INVALID, "'files' must be 0 or 1");
	return answer(c, str_is(files, "1") ? REPORT_BOTH : REPORT_PAGE, err);
}

int api_run_metrics_csv(struct api_call *c, struct err *err)
{
	return answer(c, REPORT_TABLE, err);
}

struct compare_task {
	struct arena *a;
	struct comparison *c;
	struct http_exchange *x;
	struct buf text;
	const char **ids; /* candidates for a word that means several runs */
	size_t nids;
	struct err err;
};

static void compare_points(void *ctx, size_t series, const struct report_point *p, size_t n)
{
	struct compare_task *t = ctx;
	comparison_points(t->c, series, p, n);
}

static void compare_end(void *ctx)
{
	struct compare_task *t = ctx;
	(void)comparison_end(t->c, &t->text, &t->err);
}

static void task_free(struct compare_task *t)
{
	comparison_free(t->c);
	buf_release(&t->text);
	arena_free(t->a);
	free(t);
}

static void compare_done(void *ctx, const struct err *read_err)
{
	struct compare_task *t = ctx;

	if (t->err.kind == ERR_NONE && read_err->kind != ERR_NONE)
		t->err = *read_err;
	if (t->err.kind == ERR_NONE && t->text.overflow)
		err_set(&t->err, ERR_QUOTA, "the comparison is too large: choose metrics by name");
	if (t->err.kind == ERR_NONE)
		http_reply(t->x, 200, "application/json", buf_str(&t->text));
	else
		api_reply_error(t->x, &t->err);
	task_free(t);
}

static int query_flag(const struct url_query *q, const char *name, bool *ret, struct err *err)
{
	struct str text = query_get(q, name, STR("0"));

	*ret = str_is(text, "1");
	if (*ret || str_is(text, "0"))
		return 0;
	return err_set(err, ERR_INVALID, "'%s' must be 0 or 1", name);
}

/* Copies the strings into the arena, because the query is freed with the call. */
static int read_options(const struct url_query *q, struct arena *a, struct comparison_options *o,
			struct err *err)
{
	struct str *arms = arena_array(a, struct str, QUERY_MAX_PAIRS);
	struct str *metrics = arena_array(a, struct str, MAX_METRIC_NAMES);
	struct str threshold = query_get(q, "threshold", STR(""));
	struct str use = query_get(q, "use", STR("median"));

	*o = (struct comparison_options){
		.arms = arms, .metrics = metrics, .threshold_pct = COMPARISON_THRESHOLD_PCT};
	for (size_t i = 0; i < q->n; i++) {
		if (str_is(q->v[i].name, "run"))
			arms[o->narms++] = arena_str(a, q->v[i].value);
		else if (str_is(q->v[i].name, "metric"))
			metrics[o->nmetrics++] = arena_str(a, q->v[i].value);
	}
	if (!compare_use_from(use, &o->use))
		return err_set(err, ERR_INVALID, "'use' must be median, mean, last or best");
	if (threshold.n && (!str_to_double(threshold, &o->threshold_pct) || o->threshold_pct < 0))
		return err_set(err, ERR_INVALID,
			       "'threshold' must be a number of percent, 0 or more");
	if (query_flag(q, "samples", &o->samples, err) < 0)
		return -1;
	return query_flag(q, "no_test", &o->no_test, err);
}

#define SUITE_WORD "suite:"

static bool is_suite_word(struct str word)
{
	return str_starts(word, STR(SUITE_WORD));
}

/* The words name suites, with or without "suite:" in front. */
static int find_suites(struct api_call *c, struct arena *a, struct comparison_options *o,
		       struct err *err)
{
	struct suite_report_facts *facts = arena_array(a, struct suite_report_facts, o->narms + 1);

	for (size_t i = 0; i < o->narms; i++) {
		struct str word = o->arms[i];

		if (is_suite_word(word))
			word = (struct str){word.p + strlen(SUITE_WORD),
					    word.n - strlen(SUITE_WORD)};
		struct live_suite *ls = suites_find(c->m->suites, word, err);
		if (!ls)
			return -1;
		suite_facts(ls, a, &facts[i]);
		live_suite_done(ls);
	}
	o->suites = facts;
	return 0;
}

/* Words with "suite:" are suites; others are, if they are no runs. */
static int open_comparison(struct api_call *c, struct compare_task *t, struct comparison_options *o,
			   struct err *err)
{
	size_t suites = 0;
	struct err why = {0};

	for (size_t i = 0; i < o->narms; i++)
		suites += is_suite_word(o->arms[i]);
	if (suites && suites < o->narms)
		return err_set(err, ERR_INVALID, "a suite can only be compared with suites");
	if (suites && find_suites(c, t->a, o, err) < 0)
		return -1;
	if (comparison_open(c->m->store, o, t->a, &t->c, &t->ids, &t->nids, err) == 0)
		return 0;
	if (suites || err->kind != ERR_NOT_FOUND || o->narms < 2 ||
	    o->narms > COMPARISON_MAX_ARMS || find_suites(c, t->a, o, &why) < 0)
		return -1;
	return comparison_open(c->m->store, o, t->a, &t->c, &t->ids, &t->nids, err);
}

/* Runs of different commits are no repeats of each other, and a difference may come from there. */
static void note_revisions(struct compare_task *t, const char *home)
{
	CLEANUP(buf_release) struct buf b = {0};
	const char *label, *run, *first = NULL;
	bool differ = false;

	buf_init(&b, REVISIONS_MAX_BYTES);
	buf_addz(&b, "git revisions differ:");
	for (size_t arm = 0; (label = comparison_label(t->c, arm)); arm++) {
		const char *said = NULL;

		for (size_t i = 0; i < REVISIONS_PER_ARM && (run = comparison_run(t->c, arm, i));
		     i++) {
			const char *now = source_state_short(home, run, t->a);

			now = now ? now : "unknown";
			first = first ? first : now;
			differ |= strcmp(now, first) != 0;
			if (!said || strcmp(now, said) != 0)
				buf_printf(&b, "%s %s", said || arm == 0 ? said ? "," : "" : ";",
					   now);
			said = now;
		}
		if (said)
			buf_printf(&b, " (%s)", label);
	}
	if (differ && !b.overflow)
		comparison_note(t->c, arena_str(t->a, buf_str(&b)).p);
}

int api_compare(struct api_call *c, struct err *err)
{
	struct compare_task *t = xcalloc(1, sizeof(*t));
	struct comparison_options o;

	t->a = arena_new();
	buf_init(&t->text, ANSWER_MAX_BYTES);
	if (read_options(&c->req->query, t->a, &o, err) < 0 || open_comparison(c, t, &o, err) < 0) {
		/* The candidates must outlive the task's arena. */
		c->ids = t->nids ? arena_array(c->arena, const char *, t->nids) : NULL;
		for (c->nids = 0; c->nids < t->nids; c->nids++)
			c->ids[c->nids] = arena_strdup(c->arena, t->ids[c->nids]);
		task_free(t);
		return -1;
	}
	note_revisions(t, c->m->home);
	t->x = c->x;
	const int64_t *series;
	size_t n = comparison_series(t->c, &series);
	feed_start(c->m->feeder, &(struct feed_job){.series = series,
						    .nseries = n,
						    .points = compare_points,
						    .end = compare_end,
						    .done = compare_done,
						    .ctx = t});
	return 0;
}
