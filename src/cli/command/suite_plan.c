#include "cli/command/suite_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/command/suite_history.h"
#include "cli/command/suite_input.h"
#include "cli/show/table.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "metrics/compare.h"

#define USUAL_SCATTER 0.02 /* where nothing is known */
#define MAX_REPEATS_TRIED 1000
#define HOUR_MS 3600000.0

struct plan_variant {
	const char *name, *job, *job_name;
	int nodes;
	double usd_per_hour;
	int64_t max_runtime_ms;
	const struct doc *params; /* NULL: none */
	double usual_ms;	  /* of earlier runs; 0: not known */
};

struct planning {
	const struct cli_call *c;
	struct suite_input in;
	struct plan_variant *v;
	const struct suite_history *history;
};

/* What the plan of a run says about its price. */
static double usd_per_hour(const struct job_input *job)
{
	CLEANUP(buf_release) struct buf text = {0};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *plan;

	if (!job->plan.prices_as_of)
		return 0;
	buf_init(&text, CLI_MAX_TEXT);
	plan_to_json(&job->plan, "run", a, &text);
	if (json_parse(buf_str(&text), a, &plan, NULL) < 0)
		return 0;
	return doc_num(doc_table(plan, "cost"), "per_hour", 0);
}

static int add_variant(void *ctx, int i, struct job_input *job)
{
	struct planning *p = ctx;
	const struct suite_variant *v = &p->in.suite.variants[i];
	const struct doc *params = doc_table(job->doc, "params");

	p->v[i] = (struct plan_variant){
		.name = v->name,
		.job = v->job,
		.job_name = arena_strdup(p->in.a, job->job->name),
		.nodes = job->plan.crew.n,
		.usd_per_hour = usd_per_hour(job),
		.max_runtime_ms = job->job->max_runtime_ms,
		.params = params ? doc_copy(p->in.a, params) : NULL,
	};
	return 0;
}

/* ---- what earlier runs tell ---- */

static void read_history(struct planning *p)
{
	size_t n = (size_t)p->in.suite.n;
	struct history_variant *v = arena_array(p->in.a, struct history_variant, n + 1);

	for (size_t i = 0; i < n; i++)
		v[i] = (struct history_variant){.name = p->v[i].name,
						.job_name = p->v[i].job_name,
						.nodes = p->v[i].nodes,
						.params = p->v[i].params};
	p->history = suite_history_read(p->c, v, n, p->in.a);
	for (size_t i = 0; i < n; i++)
		p->v[i].usual_ms = suite_history_usual_ms(p->history, i);
}

/* How many tests against a baseline the report will make, of every metric. */
static int tests_of(const struct planning *p, size_t metrics)
{
	int n = 0;

	for (int i = 0; i < p->in.suite.n; i++)
		n += p->in.suite.variants[i].baseline >= 0;
	n *= metrics ? (int)metrics : 1;
	return n ? n : 1;
}

struct precision {
	const char *metric; /* the first of the report, or of earlier runs; NULL: not known */
	double known;	    /* how far runs scatter; 0: not known */
	double cv;	    /* what is taken for it */
	double alpha;	    /* of one test, so that Holm's correction finds the first of them */
	int tests;
	double sees; /* the relative difference; infinite: too few repeats for any */
};

static struct precision precision_of(const struct planning *p)
{
	const struct strs *named = &p->in.suite.report.metric;
	struct precision x = {0};
	size_t metrics = suite_history_metrics(p->history, &x.metric);

	if (named->n) {
		x.metric = named->v[0];
		metrics = named->n;
	}
	x.known = suite_history_scatter(p->history, x.metric);
	x.cv = x.known > 0 ? x.known : USUAL_SCATTER;
	x.tests = tests_of(p, metrics);
	x.alpha = COMPARE_ALPHA / x.tests;
	x.sees = detectable_effect((size_t)p->in.suite.runs.repeats, x.cv, x.alpha, COMPARE_POWER);
	return x;
}

/* ---- the plan ---- */

struct plan_totals {
	double ms, most_ms; /* of all runs, one after the other; most: by max_runtime */
	double usd, most_usd;
	bool known, bounded, priced;
};

static struct plan_totals add_up(const struct planning *p)
{
	struct plan_totals t = {.known = true, .bounded = true};

	for (int i = 0; i < p->in.suite.n; i++) {
		const struct plan_variant *v = &p->v[i];
		double n = (double)p->in.suite.runs.repeats;

		t.known = t.known && v->usual_ms > 0;
		t.bounded = t.bounded && v->max_runtime_ms > 0;
		t.priced = t.priced || v->usd_per_hour > 0;
		t.ms += n * v->usual_ms;
		t.most_ms += n * (double)v->max_runtime_ms;
		t.usd += n * v->usual_ms / HOUR_MS * v->usd_per_hour;
		t.most_usd += n * (double)v->max_runtime_ms / HOUR_MS * v->usd_per_hour;
	}
	return t;
}

static double parallel_of(const struct planning *p)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN) / p->in.nodes;

	if (p->in.suite.parallel > 0)
		return (double)p->in.suite.parallel;
	return !p->in.here ? 16 : cpus > 1 ? (double)cpus : 1;
}

static void span_text(double ms, char out[static 32])
{
	clock_format_span((int64_t)ms, out);
}

static void add_time(const struct planning *p, const struct plan_totals *t, struct buf *out)
{
	double k = parallel_of(p);
	char text[32];

	buf_addz(out, "time      ");
	span_text(t->ms / k, text);
	if (t->known)
		buf_printf(out, "about %s, as earlier runs took", text);
	else
		buf_addz(out, "not known: there are no earlier runs of every job");
	span_text(t->most_ms / k, text);
	if (t->bounded)
		buf_printf(out, "; at most %s by max_runtime", text);
	buf_addc(out, '\n');
}

static void add_cost(const struct planning *p, const struct plan_totals *t, struct buf *out)
{
	double limit = p->in.suite.runs.max_cost;

	buf_addz(out, "cost      ");
	if (!t->priced)
		buf_addz(out, "nothing: the machines are yours");
	else if (t->known)
		buf_printf(out, "about %.2f USD", t->usd);
	else
		buf_addz(out, "not known");
	if (t->priced && t->bounded)
		buf_printf(out, "; at most %.2f USD by max_runtime", t->most_usd);
	if (limit > 0)
		buf_printf(out, "; stops at max_cost, %.2f USD", limit);
	buf_addc(out, '\n');
}

/* The fewest repeats that show this relative difference; 0: too many. */
static int repeats_for(double effect, const struct precision *x)
{
	for (int n = 2; n <= MAX_REPEATS_TRIED; n++)
		if (detectable_effect((size_t)n, x->cv, x->alpha, COMPARE_POWER) <= effect)
			return n;
	return 0;
}

/* A round figure below the effect that is seen now: 2 % below 3.1 %. */
static double next_goal(double effect)
{
	static const double goals[] = {0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001};

	for (size_t i = 0; i < sizeof(goals) / sizeof(goals[0]); i++)
		if (goals[i] < effect * 0.9)
			return goals[i];
	return goals[7];
}

static void add_power(const struct planning *p, struct buf *out)
{
	int64_t n = p->in.suite.runs.repeats;
	const struct precision x = precision_of(p);
	double goal = next_goal(isfinite(x.sees) ? x.sees : 1);
	int more = repeats_for(goal, &x);

	buf_addz(out, "precision ");
	if (isfinite(x.sees))
		buf_printf(out, "%" PRId64 " repeats see %.*f %%", n, x.sees < 0.1, x.sees * 100);
	else
		buf_printf(out, "%" PRId64 " repeat%s: too few for a test", n, n == 1 ? "" : "s");
	if (more > n)
		buf_printf(out, "; %d would see %.2g %%", more, goal * 100);
	if (x.tests > 1)
		buf_printf(out, ", in %d tests", x.tests);
	if (x.known > 0)
		buf_printf(out, " (earlier runs scatter by %.2g %% in %s)\n", x.known * 100,
			   x.metric);
	else
		buf_printf(out, " (if runs scatter by %.0f %%: no earlier runs tell)\n",
			   USUAL_SCATTER * 100);
}

static void add_table(const struct planning *p, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "VARIANT", .min = 12},
		{.title = "JOB"},
		{.title = "NODES", .right = true},
		{.title = "RUNS", .right = true},
		{.title = "USUALLY", .right = true},
		{.title = "USD/H", .right = true},
		{.title = "AFTER"},
	};
	const struct suite *s = &p->in.suite;
	struct table t;

	table_init(&t, p->in.a, columns, sizeof(columns) / sizeof(columns[0]));
	for (int i = 0; i < s->n; i++) {
		const struct plan_variant *v = &p->v[i];
		CLEANUP(buf_release) struct buf after = {0};
		char span[32];

		buf_init(&after, 64 * 1024);
		for (int k = 0; k < s->variants[i].nafter; k++)
			buf_printf(&after, "%s%s", k ? ", " : "",
				   s->variants[s->variants[i].after[k]].name);
		span_text(v->usual_ms, span);
		table_cellz(&t, v->name);
		table_cellz(&t, v->job);
		table_cellf(&t, "%d", v->nodes);
		table_cellf(&t, "%" PRId64, s->runs.repeats);
		table_cellz(&t, v->usual_ms > 0 ? span : NULL);
		table_cellf(&t, "%.3g", v->usd_per_hour);
		table_cell(&t, buf_str(&after));
	}
	table_render(&t, st, out);
}

static void plan_text(const struct planning *p, struct buf *out)
{
	const struct suite *s = &p->in.suite;
	struct style st = style_detect(STDOUT_FILENO);
	struct plan_totals t = add_up(p);
	int runs = suite_runs(s);

	buf_printf(out, "%s: %d variant%s, %" PRId64 " repeat%s: %d run%s, %.0f at a time, %s\n",
		   s->name, s->n, s->n == 1 ? "" : "s", s->runs.repeats,
		   s->runs.repeats == 1 ? "" : "s", runs, runs == 1 ? "" : "s", parallel_of(p),
		   s->runs.order == ORDER_INTERLEAVED ? "interleaved" : "as written");
	add_table(p, &st, out);
	add_time(p, &t, out);
	add_cost(p, &t, out);
	add_power(p, out);
}

static void plan_json(const struct planning *p, struct buf *out)
{
	const struct suite *s = &p->in.suite;
	struct plan_totals t = add_up(p);
	const struct precision x = precision_of(p);
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "name", s->name);
	jsonw_kint(&w, "repeats", s->runs.repeats);
	jsonw_kint(&w, "runs", suite_runs(s));
	jsonw_kint(&w, "parallel", (int64_t)parallel_of(p));
	jsonw_kdouble(&w, "about_ms", t.known ? t.ms / parallel_of(p) : (double)NAN);
	jsonw_kdouble(&w, "at_most_ms", t.bounded ? t.most_ms / parallel_of(p) : (double)NAN);
	jsonw_kdouble(&w, "about_usd", t.known || !t.priced ? t.usd : (double)NAN);
	jsonw_kdouble(&w, "at_most_usd", t.bounded || !t.priced ? t.most_usd : (double)NAN);
	jsonw_kz(&w, "metric", x.metric);
	jsonw_kdouble(&w, "scatter", x.known > 0 ? x.known : (double)NAN);
	jsonw_kint(&w, "tests", x.tests);
	jsonw_kdouble(&w, "sees", x.sees);
	jsonw_key(&w, "variants");
	jsonw_open(&w, '[');
	for (int i = 0; i < s->n; i++) {
		jsonw_open(&w, '{');
		jsonw_kz(&w, "name", p->v[i].name);
		jsonw_kz(&w, "job", p->v[i].job);
		jsonw_kint(&w, "nodes", p->v[i].nodes);
		jsonw_kdouble(&w, "usd_per_hour", p->v[i].usd_per_hour);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

int suite_plan(const struct cli_call *c, const char *path)
{
	struct planning p = {.c = c};
	CLEANUP(buf_release) struct buf out = {0};
	int code = suite_input_read(path, &p.in);

	if (code != 0)
		return code;
	buf_init(&out, CLI_MAX_TEXT);
	p.v = arena_array(p.in.a, struct plan_variant, (size_t)p.in.suite.n);
	code = suite_input_each(&p.in, c, add_variant, &p);
	if (code == 0) {
		read_history(&p);
		if (c->output == OUTPUT_JSON)
			plan_json(&p, &out);
		else
			plan_text(&p, &out);
		code = cli_print(&out);
	}
	suite_input_release(&p.in);
	return code;
}
