/* A comparison as the API shows it; docs/compare.md names the keys.  This shape only grows. */
#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "fmt/jsonw.h"
#include "report/comparison_internal.h"
#include "report/suite_report.h"

#define MOST_NOTES 10 /* about missing metrics of the variants of suites */
#define MOST_RUNS 100 /* the most runs per arm that the advice names */

static const char *label_of(const struct compare_arm *arm)
{
	return arm->runs.n == 1 && !arm->suite ? arm->runs.v[0].id : arm->label;
}

const char *comparison_label(const struct comparison *c, size_t arm)
{
	return arm < c->o.narms ? label_of(&c->arms[arm]) : NULL;
}

const char *comparison_run(const struct comparison *c, size_t arm, size_t i)
{
	return arm < c->o.narms && i < c->arms[arm].runs.n ? c->arms[arm].runs.v[i].id : NULL;
}

void comparison_note(struct comparison *c, const char *note)
{
	*vec_push(&c->notes) = note;
}

static double share(double usd, double n)
{
	return n > 0 ? usd / n : (double)NAN;
}

/* Of the runs that have a price.  A run without steps does not count for the cost of a step, nor one
 * without samples for theirs. */
static void cost_to_json(const struct compare_arm *arm, struct jsonw *w)
{
	double usd = 0, stepped_usd = 0, steps = 0, sampled_usd = 0, samples = 0;
	int64_t n = 0;

	for (size_t i = 0; i < arm->runs.n; i++) {
		const struct compare_run *r = &arm->runs.v[i];

		if (r->usd <= 0)
			continue;
		n++;
		usd += r->usd;
		stepped_usd += r->steps > 0 ? r->usd : 0;
		steps += r->steps;
		sampled_usd += r->samples > 0 ? r->usd : 0;
		samples += r->samples;
	}
	jsonw_key(w, "cost");
	if (n == 0) {
		jsonw_null(w);
		return;
	}
	jsonw_open(w, '{');
	jsonw_kint(w, "runs", n);
	jsonw_kdouble(w, "usd", share(usd, (double)n));
	jsonw_kdouble(w, "usd_per_step", share(stepped_usd, steps));
	jsonw_kdouble(w, "usd_per_1k_samples", share(sampled_usd, samples / 1000));
	jsonw_close(w);
}

static void arms_to_json(const struct comparison *c, struct jsonw *w)
{
	jsonw_key(w, "runs");
	jsonw_open(w, '[');
	for (size_t i = 0; i < c->o.narms; i++)
		jsonw_z(w, label_of(&c->arms[i]));
	jsonw_close(w);
	jsonw_key(w, "arms");
	jsonw_open(w, '[');
	for (size_t i = 0; i < c->o.narms; i++) {
		jsonw_open(w, '{');
		jsonw_kz(w, "label", label_of(&c->arms[i]));
		jsonw_key(w, "runs");
		jsonw_open(w, '[');
		for (size_t k = 0; k < c->arms[i].runs.n; k++)
			jsonw_z(w, c->arms[i].runs.v[k].id);
		jsonw_close(w);
		jsonw_kint(w, "left_out", (int64_t)c->arms[i].left_out);
		cost_to_json(&c->arms[i], w);
		jsonw_close(w);
	}
	jsonw_close(w);
}

/* The variants that are held against each other, with their name in each suite. */
static void pairs_to_json(const struct comparison *c, struct jsonw *w)
{
	if (!c->pairs.n)
		return;
	jsonw_key(w, "variants");
	jsonw_open(w, '[');
	for (size_t i = 0; i < c->pairs.n; i++) {
		jsonw_open(w, '{');
		jsonw_kz(w, "name", c->pairs.v[i].name);
		jsonw_key(w, "of");
		jsonw_open(w, '[');
		for (size_t k = 0; k < c->o.narms; k++) {
			int v = c->pairs.v[i].variant[k];

			jsonw_z(w, v >= 0 ? c->o.suites[k].variants[v].name : NULL);
		}
		jsonw_close(w);
		jsonw_close(w);
	}
	jsonw_close(w);
}

static void pair(struct jsonw *w, const char *key, double low, double high)
{
	jsonw_key(w, key);
	if (isnan(low) || isnan(high)) {
		jsonw_null(w);
		return;
	}
	jsonw_open(w, '[');
	jsonw_double(w, low);
	jsonw_double(w, high);
	jsonw_close(w);
}

/* The keys of a row; a metric has them too, from its worst row. */
static void difference_to_json(const struct compare_metric *m, const struct compare_row *r,
			       struct jsonw *w)
{
	double base = fabs(m->rows[0].median), scale = base > 0 ? 100 / base : (double)NAN;

	jsonw_kdouble(w, "diff", r->diff);
	jsonw_kdouble(w, "diff_pct", r->diff * scale);
	pair(w, "ci", r->low, r->high);
	pair(w, "ci_pct", r->low * scale, r->high * scale);
	jsonw_kdouble(w, "p", r->p);
	jsonw_kdouble(w, "p_holm", r->p_holm);
	jsonw_kz(w, "verdict", compare_verdict_name(r->verdict));
	jsonw_kdouble(w, "mde_pct", r->mde * 100);
	jsonw_kz(w, "test", r->test);
	jsonw_kbool(w, "exact", r->exact);
	jsonw_kbool(w, "too_few", r->too_few);
	jsonw_kbool(w, "fails", r->fails);
}

static int weight(const struct compare_row *r)
{
	static const int weights[] = {[COMPARE_BETTER] = 0,
				      [COMPARE_SAME] = 1,
				      [COMPARE_UNCLEAR] = 2,
				      [COMPARE_WORSE] = 3};

	return weights[r->verdict] + (r->fails ? 1 : 0);
}

static void metric_to_json(const struct comparison *c, const struct compare_metric *m,
			   struct jsonw *w)
{
	const struct compare_row *worst = &m->rows[1];

	jsonw_open(w, '{');
	jsonw_kz(w, "name", m->name);
	if (c->pairs.n)
		jsonw_kz(w, "variant", c->pairs.v[m->pair].name);
	jsonw_kz(w, "better", m->better == BETTER_LOWER ? "lower" : "higher");
	jsonw_key(w, "rows");
	jsonw_open(w, '[');
	for (size_t k = 0; k < c->o.narms; k++) {
		const struct compare_row *r = &m->rows[k];
		jsonw_open(w, '{');
		jsonw_kz(w, "run", label_of(&c->arms[k]));
		jsonw_kint(w, "n", (int64_t)r->n);
		jsonw_kdouble(w, "median", r->median);
		jsonw_kdouble(w, "mean", r->mean);
		jsonw_kint(w, "samples", (int64_t)m->sides[k].samples.n);
		jsonw_kint(w, "warm_up", (int64_t)m->sides[k].dropped);
		jsonw_kbool(w, "missing", r->n == 0);
		if (k > 0)
			difference_to_json(m, r, w);
		jsonw_close(w);
		if (k > 0 && weight(r) > weight(worst))
			worst = r;
	}
	jsonw_close(w);
	jsonw_kz(w, "baseline", label_of(&c->arms[0]));
	difference_to_json(m, worst, w);
	jsonw_close(w);
}

static void note_left_out(const struct comparison *c, const struct compare_arm *arm, size_t n,
			  const char *which, struct jsonw *w)
{
	if (n)
		jsonw_z(w, arena_printf(c->a, "%s: %zu run%s that %s %s left out", label_of(arm), n,
					n == 1 ? "" : "s", which, n == 1 ? "is" : "are"));
}

static void note_arms(const struct comparison *c, struct jsonw *w)
{
	for (size_t i = 0; i < c->o.narms; i++) {
		const struct compare_arm *arm = &c->arms[i];
		size_t failed = 0;
		for (size_t k = 0; k < arm->runs.n; k++)
			failed += !arm->runs.v[k].succeeded;
		note_left_out(c, arm, arm->left_out, "did not succeed", w);
		note_left_out(c, arm, arm->removed,
			      arm->removed == 1 ? "was removed" : "were removed", w);
		if (failed)
			jsonw_z(w, arena_printf(c->a, "%s: %zu of its runs did not succeed",
						label_of(arm), failed));
	}
}

/* A variant that a suite does not have was named before. */
static bool has_variant(const struct comparison *c, const struct compare_metric *m, size_t arm)
{
	return !c->pairs.n || c->pairs.v[m->pair].variant[arm] >= 0;
}

static void note_missing(const struct comparison *c, struct jsonw *w)
{
	size_t more = 0, said = 0;

	for (size_t i = 0; i < c->metrics.n; i++)
		for (size_t k = 0; k < c->o.narms; k++) {
			const struct compare_metric *m = &c->metrics.v[i];

			if (m->rows[k].n || !has_variant(c, m, k))
				continue;
			if (c->pairs.n && said++ >= MOST_NOTES) {
				more++;
				continue;
			}
			jsonw_z(w, arena_printf(c->a, "metric '%s' is missing in %s%s%s", m->name,
						label_of(&c->arms[k]), c->pairs.n ? ": " : "",
						c->pairs.n ? c->pairs.v[m->pair].name : ""));
		}
	if (more)
		jsonw_z(w, arena_printf(c->a, "%zu more are missing", more));
	for (size_t i = 0; i < c->o.nmetrics; i++) {
		bool found = false;
		for (size_t k = 0; k < c->metrics.n; k++)
			found |= str_is(c->o.metrics[i], c->metrics.v[k].name);
		if (!found)
			jsonw_z(w, arena_printf(c->a, "no run has a metric '%.*s'",
						STR_ARG(c->o.metrics[i])));
	}
}

static void note_tests(const struct comparison *c, struct jsonw *w)
{
	bool alone = false, few = false;
	size_t need = 2;

	for (size_t i = 0; i < c->metrics.n; i++)
		for (size_t k = 1; k < c->o.narms; k++) {
			const struct compare_row *r = &c->metrics.v[i].rows[k];
			bool samples = strcmp(r->test, "samples") == 0;
			alone |= samples;
			few |= !r->missing && !samples && r->too_few;
		}
	if (alone)
		jsonw_z(w,
			c->o.samples
				? "samples of one run are not independent: the test takes them as if they were"
				: "samples of one run are not independent: repeat the runs for a "
				  "verdict, or take the samples at their word with --samples");
	size_t tests = c->tests ? c->tests : c->metrics.n * (c->o.narms - 1);
	while (need < MOST_RUNS && compare_least_p(need, need) * (double)tests > COMPARE_ALPHA)
		need++;
	if (few)
		jsonw_z(w,
			arena_printf(
				c->a,
				"too few runs to test: %zu in each group are the least for %zu test%s%s",
				need, tests, tests == 1 ? "" : "s",
				c->o.no_test ? "; the threshold alone decides" : ""));
}

void comparison_to_json(const struct comparison *c, struct buf *out)
{
	struct jsonw w;
	bool fails = false;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	arms_to_json(c, &w);
	compare_params_to_json(c, &w);
	pairs_to_json(c, &w);
	jsonw_kz(&w, "use", compare_use_name(c->o.use));
	jsonw_kdouble(&w, "threshold_pct", c->o.threshold_pct);
	jsonw_kdouble(&w, "alpha", COMPARE_ALPHA);
	jsonw_kdouble(&w, "power", COMPARE_POWER);
	jsonw_kint(&w, "tests", (int64_t)c->tests);
	jsonw_key(&w, "metrics");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < c->metrics.n; i++) {
		metric_to_json(c, &c->metrics.v[i], &w);
		for (size_t k = 1; k < c->o.narms; k++)
			fails |= c->metrics.v[i].rows[k].fails;
	}
	jsonw_close(&w);
	jsonw_key(&w, "notes");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < c->notes.n; i++)
		jsonw_z(&w, c->notes.v[i]);
	note_arms(c, &w);
	note_missing(c, &w);
	note_tests(c, &w);
	jsonw_close(&w);
	jsonw_kbool(&w, "fails", fails);
	jsonw_close(&w);
	buf_addc(out, '\n');
}
