/* The mathematics of a comparison: test, correction, verdict. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "report/comparison_internal.h"

#define CONFIDENCE 0.95
#define BOOTSTRAP_SEED 20260101 /* the same comparison gives the same interval */
#define BOOTSTRAP_WORK 10000000 /* values drawn in all; large arms get fewer resamples ... */
#define BOOTSTRAP_LEAST 200	/* ... but not below this */

const char *compare_verdict_name(enum compare_verdict v)
{
	static const char *const names[] = {[COMPARE_UNCLEAR] = "unclear",
					    [COMPARE_SAME] = "same",
					    [COMPARE_BETTER] = "better",
					    [COMPARE_WORSE] = "worse"};
	return names[v];
}

static bool beyond(const struct compare_facts *f)
{
	/* From a baseline of 0 any step is infinitely large. */
	return isnan(f->diff_pct) ? f->diff != 0 : fabs(f->diff_pct) > f->threshold_pct;
}

static enum compare_verdict direction(const struct compare_facts *f)
{
	if (f->diff == 0)
		return COMPARE_SAME;
	return (f->diff < 0) == f->lower_is_better ? COMPARE_BETTER : COMPARE_WORSE;
}

enum compare_verdict compare_judge(const struct compare_facts *f)
{
	if (!f->tested) {
		if (!f->no_test)
			return COMPARE_UNCLEAR;
		return beyond(f) ? direction(f) : COMPARE_SAME;
	}
	if (f->alone)
		return COMPARE_UNCLEAR;
	/* NaN compares false: without a scale nothing is "the same". */
	if (f->low_pct >= -f->threshold_pct && f->high_pct <= f->threshold_pct)
		return COMPARE_SAME;
	return f->significant ? direction(f) : COMPARE_UNCLEAR;
}

bool compare_fails(const struct compare_facts *f)
{
	return compare_judge(f) == COMPARE_WORSE && beyond(f);
}

static double mean_of(struct values v)
{
	struct stats st = {0};

	for (size_t i = 0; i < v.n; i++)
		stats_add(&st, v.v[i]);
	return v.n ? st.mean : (double)NAN;
}

static double variance_of(struct values v)
{
	struct stats st = {0};

	for (size_t i = 0; i < v.n; i++)
		stats_add(&st, v.v[i]);
	return stats_stddev(&st) * stats_stddev(&st);
}

double compare_least_p(size_t na, size_t nb)
{
	double orders = 1;

	for (size_t i = 1; i <= na && orders < 1e18; i++)
		orders = orders * (double)(nb + i) / (double)i;
	return 2 / orders;
}

/* Which values are tested, and the test's name. */
static const char *choose_test(const struct comparison *c, const struct compare_metric *m,
			       size_t arm, struct values *ret_a, struct values *ret_b)
{
	const struct compare_side *a = &m->sides[0], *b = &m->sides[arm];
	bool single = a->figures.n == 1 && b->figures.n == 1;

	*ret_a = values_of(a->figures.v, a->figures.n);
	*ret_b = values_of(b->figures.v, b->figures.n);
	if ((single || c->o.samples) && c->o.use == USE_MEDIAN && a->samples.n > 1 &&
	    b->samples.n > 1) {
		*ret_a = values_of(a->samples.v, a->samples.n);
		*ret_b = values_of(b->samples.v, b->samples.n);
		return "samples";
	}
	return a->figures.n >= 2 && b->figures.n >= 2 ? "runs" : "none";
}

static size_t resamples_for(size_t values)
{
	size_t n = BOOTSTRAP_WORK / values;

	return n > COMPARE_RESAMPLES ? COMPARE_RESAMPLES
	       : n < BOOTSTRAP_LEAST ? BOOTSTRAP_LEAST
				     : n;
}

static int test_row(struct comparison *c, struct compare_metric *m, size_t arm, struct err *err)
{
	struct compare_row *r = &m->rows[arm];
	struct values a, b;
	struct mann_whitney mw;
	struct interval ci;

	r->p = r->p_holm = r->low = r->high = r->mde = r->diff = (double)NAN;
	r->test = "none";
	r->missing = !m->sides[0].figures.n || !m->sides[arm].figures.n;
	if (r->missing)
		return 0;
	r->test = choose_test(c, m, arm, &a, &b);
	r->diff = r->median - m->rows[0].median;
	if (strcmp(r->test, "none") == 0)
		return 0;
	if (mann_whitney(a, b, &mw, err) < 0 ||
	    median_difference(a, b, CONFIDENCE, resamples_for(a.n + b.n), BOOTSTRAP_SEED, &ci,
			      err) < 0)
		return err_wrap(err, "metric '%s'", m->name);
	r->p = mw.p;
	r->exact = mw.exact;
	r->diff = ci.estimate;
	r->low = ci.low;
	r->high = ci.high;
	c->tests++;
	return 0;
}

static void adjust(struct comparison *c)
{
	double *p = xcalloc(c->tests + 1, sizeof(*p));
	size_t n = 0;

	for (int pass = 0; pass < 2; pass++) {
		n = 0;
		for (size_t i = 0; i < c->metrics.n; i++)
			for (size_t k = 1; k < c->o.narms; k++) {
				struct compare_row *r = &c->metrics.v[i].rows[k];
				if (isnan(r->p))
					continue;
				if (pass == 0)
					p[n++] = r->p;
				else
					r->p_holm = p[n++];
			}
		if (pass == 0)
			holm_adjust(p, n, p);
	}
	free(p);
}

static void judge_row(struct comparison *c, struct compare_metric *m, size_t arm)
{
	struct compare_row *r = &m->rows[arm];
	double base = fabs(m->rows[0].median), scale = base > 0 ? 100 / base : (double)NAN;
	struct values a, b;
	bool samples = strcmp(r->test, "samples") == 0;

	if (r->missing)
		return;
	choose_test(c, m, arm, &a, &b);
	/* With Holm's correction the smallest p is multiplied by the number of tests. */
	r->too_few = isnan(r->p) || compare_least_p(a.n, b.n) * (double)c->tests > COMPARE_ALPHA;
	if (!isnan(r->p) && base > 0 && (!samples || c->o.samples)) {
		double cv = sqrt((variance_of(a) + variance_of(b)) / 2) / base;
		r->mde = detectable_effect(a.n < b.n ? a.n : b.n, cv,
					   COMPARE_ALPHA / (double)c->tests, COMPARE_POWER);
	}
	struct compare_facts f = {
		.tested = !r->too_few,
		.alone = samples && !c->o.samples,
		.significant = r->p_holm <= COMPARE_ALPHA,
		.no_test = c->o.no_test,
		.lower_is_better = m->better == BETTER_LOWER,
		.diff = r->diff,
		.diff_pct = r->diff * scale,
		.low_pct = r->low * scale,
		.high_pct = r->high * scale,
		.threshold_pct = c->o.threshold_pct,
	};
	if (f.alone && c->o.no_test)
		f.tested = false;
	r->verdict = compare_judge(&f);
	r->fails = compare_fails(&f);
	/* A p-value that could not have reached alpha is not reported. */
	if (r->too_few)
		r->p = r->p_holm = (double)NAN;
}

/* The summary of an arm: of its figures, or of its samples where these are tested. */
static void describe(struct comparison *c, struct compare_metric *m, size_t arm)
{
	const struct compare_side *s = &m->sides[arm];
	struct compare_row *r = &m->rows[arm];
	struct values v = values_of(s->figures.v, s->figures.n);

	if (c->o.samples)
		v = values_of(s->samples.v, s->samples.n);
	r->n = s->figures.n;
	r->median = values_quantile(v, 0.5);
	r->mean = mean_of(s->figures.n == 1 && s->samples.n ? values_of(s->samples.v, s->samples.n)
							    : v);
}

int comparison_end(struct comparison *c, struct buf *out, struct err *err)
{
	compare_figures(c);
	for (size_t i = 0; i < c->metrics.n; i++) {
		for (size_t k = 0; k < c->o.narms; k++)
			describe(c, &c->metrics.v[i], k);
		for (size_t k = 1; k < c->o.narms; k++)
			if (test_row(c, &c->metrics.v[i], k, err) < 0)
				return -1;
	}
	adjust(c);
	for (size_t i = 0; i < c->metrics.n; i++)
		for (size_t k = 1; k < c->o.narms; k++)
			judge_row(c, &c->metrics.v[i], k);
	comparison_to_json(c, out);
	return 0;
}
