/* The mathematics of a suite: figures of runs and variants, tests against the baseline, scaling. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "report/suite_internal.h"

#define CONFIDENCE 0.95
#define BOOTSTRAP_SEED 20260101 /* the same suite gives the same intervals */
#define MAX_NODES 4096		/* items of one run and metric */

static struct values figures_of(const struct suite_cell *c)
{
	return values_of(c->figures.v, c->figures.n);
}

/* The figures of all runs: the items of a run stand together. */
static void run_figures(struct suite_report *r)
{
	struct compare_item *group = xcalloc(MAX_NODES, sizeof(*group));

	for (size_t i = 0, end; i < r->items.n; i = end) {
		for (end = i; end < r->items.n && r->items.v[end].run == r->items.v[i].run;)
			end++;
		for (size_t m = 0; m < r->metrics.n; m++) {
			struct compare_side side = {0};
			size_t n = 0;

			for (size_t k = i; k < end && n < MAX_NODES; k++)
				if (r->items.v[k].metric == m)
					group[n++] = r->items.v[k];
			if (n)
				r->metrics.v[m].of_run[r->items.v[i].run] = compare_figure(
					group, n, USE_MEDIAN, r->metrics.v[m].better, &side);
			vec_release(&side.samples);
		}
	}
	free(group);
}

static void describe(struct suite_cell *c)
{
	struct stats s = {0};

	c->p = c->p_holm = c->diff_pct = c->low_pct = c->high_pct = (double)NAN;
	c->speedup = c->efficiency = c->cv = (double)NAN;
	for (size_t i = 0; i < c->figures.n; i++)
		stats_add(&s, c->figures.v[i]);
	bool any = s.count > 0;

	c->median = values_quantile(figures_of(c), 0.5);
	c->mean = any ? s.mean : (double)NAN;
	c->min = any ? s.min : (double)NAN;
	c->max = any ? s.max : (double)NAN;
	if (s.count > 1 && s.mean != 0)
		c->cv = stats_stddev(&s) / fabs(s.mean);
}

/* Against the baseline: the test that a comparison of the two variants makes. */
static int test(struct suite_report *r, const struct suite_metric *m, int v, struct err *err)
{
	struct suite_cell *c = &m->cells[v];
	const struct suite_cell *base = &m->cells[r->f->variants[v].baseline];
	double scale = base->median != 0 ? 100 / fabs(base->median) : (double)NAN;
	struct mann_whitney mw;
	struct interval ci;

	c->diff_pct = (c->median - base->median) * scale;
	if (c->figures.n < 2 || base->figures.n < 2)
		return 0;
	if (mann_whitney(figures_of(base), figures_of(c), &mw, err) < 0 ||
	    median_difference(figures_of(base), figures_of(c), CONFIDENCE, COMPARE_RESAMPLES,
			      BOOTSTRAP_SEED, &ci, err) < 0)
		return err_wrap(err, "metric '%s'", m->name);
	c->p = mw.p;
	c->low_pct = ci.low * scale;
	c->high_pct = ci.high * scale;
	r->tests++;
	return 0;
}

/* Holm's correction over all tests of the suite. */
static void adjust(struct suite_report *r)
{
	double *p = xcalloc(r->tests + 1, sizeof(*p));

	for (int pass = 0; pass < 2; pass++) {
		size_t n = 0;

		for (size_t m = 0; m < r->metrics.n; m++)
			for (int v = 0; v < r->f->nvariants; v++) {
				struct suite_cell *c = &r->metrics.v[m].cells[v];

				if (isnan(c->p))
					continue;
				if (pass == 0)
					p[n++] = c->p;
				else
					c->p_holm = p[n++];
			}
		if (pass == 0)
			holm_adjust(p, n, p);
	}
	free(p);
}

static void judge(struct suite_report *r, const struct suite_metric *m, int v)
{
	struct suite_cell *c = &m->cells[v];
	const struct suite_cell *base = &m->cells[r->f->variants[v].baseline];
	const struct compare_facts facts = {
		.tested = !isnan(c->p) &&
			  compare_least_p(base->figures.n, c->figures.n) * (double)r->tests <=
				  COMPARE_ALPHA,
		.significant = c->p_holm <= COMPARE_ALPHA,
		.lower_is_better = m->better == BETTER_LOWER,
		.diff = c->median - base->median,
		.diff_pct = c->diff_pct,
		.low_pct = c->low_pct,
		.high_pct = c->high_pct,
		.threshold_pct = COMPARISON_THRESHOLD_PCT,
	};

	c->tested = facts.tested;
	c->verdict = compare_judge(&facts);
	/* A p-value that could not have reached alpha is not reported. */
	if (!c->tested)
		c->p_holm = (double)NAN;
}

/* ---- scaling ---- */

/* The axis of counts, the last part of whose key is "count"; -1: there is none. */
static int count_axis(const struct suite_report_facts *f)
{
	for (int k = 0; k < f->naxes; k++) {
		const char *dot = strrchr(f->keys[k], '.');

		if (strcmp(dot ? dot + 1 : f->keys[k], "count") == 0)
			return k;
	}
	return -1;
}

static double count_of(const struct suite_report_facts *f, int v, int axis)
{
	double n = (double)NAN;
	const char *text = f->variants[v].params[axis];

	return text && str_to_double(str_from(text), &n) && n > 0 ? n : (double)NAN;
}

/* Do two variants differ in this key only? */
static bool same_but(const struct suite_report_facts *f, int x, int y, int axis)
{
	for (int k = 0; k < f->nkeys; k++) {
		const char *a = f->variants[x].params[k], *b = f->variants[y].params[k];

		if (k != axis && (!a != !b || (a && strcmp(a, b) != 0)))
			return false;
	}
	return true;
}

static void scale(struct suite_report *r, const struct suite_metric *m, int v, int axis)
{
	const struct suite_report_facts *f = r->f;
	double n = count_of(f, v, axis), least = n;
	int base = v;

	for (int x = 0; x < f->nvariants && isfinite(n); x++)
		if (count_of(f, x, axis) < least && same_but(f, x, v, axis) &&
		    isfinite(m->cells[x].median)) {
			least = count_of(f, x, axis);
			base = x;
		}
	struct suite_cell *c = &m->cells[v];
	double mine = c->median, theirs = m->cells[base].median;

	if (!isfinite(n) || !isfinite(mine) || mine <= 0 || theirs <= 0)
		return;
	c->speedup = m->better == BETTER_LOWER ? theirs / mine : mine / theirs;
	c->efficiency = c->speedup / (n / least);
}

int suite_figures(struct suite_report *r, struct err *err)
{
	int axis = count_axis(r->f);

	run_figures(r);
	for (size_t i = 0; i < r->metrics.n; i++) {
		struct suite_metric *m = &r->metrics.v[i];

		for (int k = 0; k < r->f->nruns; k++)
			if (isfinite(m->of_run[k]))
				*vec_push(&m->cells[r->f->runs[k].variant].figures) = m->of_run[k];
		for (int v = 0; v < r->f->nvariants; v++)
			describe(&m->cells[v]);
		for (int v = 0; v < r->f->nvariants; v++)
			if (r->f->variants[v].baseline >= 0 && test(r, m, v, err) < 0)
				return -1;
		for (int v = 0; axis >= 0 && v < r->f->nvariants; v++)
			scale(r, m, v, axis);
	}
	adjust(r);
	for (size_t i = 0; i < r->metrics.n; i++)
		for (int v = 0; v < r->f->nvariants; v++)
			if (r->f->variants[v].baseline >= 0)
				judge(r, &r->metrics.v[i], v);
	return 0;
}
