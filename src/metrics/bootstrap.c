/*
 * The bootstrap of a difference of medians.  A resample is drawn as counts over the
 * sorted arm, so its median is found by one walk and nothing is sorted again.
 */
#include "metrics/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/rand.h"
#include "metrics/compare_internal.h"
#include "metrics/distribution.h"

struct arm {
	double *v; /* sorted */
	size_t n;
	uint32_t *count; /* how often each was drawn */
};

static void arm_init(struct arm *arm, struct values from)
{
	arm->n = from.n;
	arm->v = compare_sorted(from);
	arm->count = xcalloc(arm->n, sizeof(*arm->count));
}

static void arm_release(struct arm *arm)
{
	free(arm->v);
	free(arm->count);
}

static double arm_median(const struct arm *arm)
{
	return values_quantile_sorted((struct values){arm->v, arm->n}, 0.5);
}

static double draw_median(struct arm *arm, struct rng *rng)
{
	size_t seen = 0, i = 0, lower = (arm->n - 1) / 2, upper = arm->n / 2;

	memset(arm->count, 0, arm->n * sizeof(*arm->count));
	/* Two draws from one random number.  Their bias, below n / 2^32, is negligible. */
	for (size_t k = 0; k < arm->n; k += 2) {
		uint64_t x = rng_next(rng);

		arm->count[(x >> 32) * arm->n >> 32]++;
		if (k + 1 < arm->n)
			arm->count[(x & UINT32_MAX) * arm->n >> 32]++;
	}
	while (seen + arm->count[i] <= lower)
		seen += arm->count[i++];
	double low = arm->v[i];
	while (seen + arm->count[i] <= upper)
		seen += arm->count[i++];
	return low / 2 + arm->v[i] / 2;
}

/* The median of the arm without its value `out`: the indices from there on are one higher. */
static double median_without(const struct arm *arm, size_t out)
{
	size_t n = arm->n - 1, lower = (n - 1) / 2, upper = n / 2;

	lower += lower >= out;
	upper += upper >= out;
	return arm->v[lower] / 2 + arm->v[upper] / 2;
}

/* Adds the arm's part to the second and third moments of the jackknife's influence values. */
static void add_influence(const struct arm *arm, double *m2, double *m3)
{
	double mean = 0, n = (double)arm->n;

	if (arm->n < 2)
		return;
	for (size_t i = 0; i < arm->n; i++)
		mean += median_without(arm, i) / n;
	for (size_t i = 0; i < arm->n; i++) {
		double u = (n - 1) * (mean - median_without(arm, i)) / n;

		*m2 += u * u;
		*m3 += u * u * u;
	}
}

/* How far the percentile `p` moves by the bias z0 and the acceleration. */
static double shifted(double p, double z0, double acceleration)
{
	double z = z0 + normal_quantile(p);

	return normal_cdf(z0 + z / (1 - acceleration * z));
}

/* The acceleration: b's influence has the sign of the difference, a's the opposite. */
static double acceleration(const struct arm *a, const struct arm *b)
{
	double m2 = 0, m3_a = 0, m3_b = 0;

	add_influence(a, &m2, &m3_a);
	add_influence(b, &m2, &m3_b);
	return m2 > 0 ? (m3_b - m3_a) / (6 * m2 * sqrt(m2)) : NAN;
}

static double bias(const double *drawn, size_t n, double estimate)
{
	size_t below = 0, equal = 0;

	for (size_t i = 0; i < n; i++) {
		below += drawn[i] < estimate;
		equal += drawn[i] == estimate;
	}
	return normal_quantile(((double)below + (double)equal / 2) / (double)n);
}

static void read_interval(struct values sorted, const struct arm *a, const struct arm *b,
			  double confidence, struct interval *out)
{
	double low = (1 - confidence) / 2, high = 1 - low;
	double z0 = bias(sorted.v, sorted.n, out->estimate), acc = acceleration(a, b);
	double l = shifted(low, z0, acc), h = shifted(high, z0, acc);

	/* Undefined when all draws lie on one side or no value has influence. */
	if (isfinite(z0) && isfinite(acc) && l < h) {
		low = l;
		high = h;
	}
	out->low = values_quantile_sorted(sorted, low);
	out->high = values_quantile_sorted(sorted, high);
}

int median_difference(struct values a, struct values b, double confidence, size_t resamples,
		      uint64_t seed, struct interval *ret, struct err *err)
{
	struct arm arm_a, arm_b;
	struct rng rng;

	if (!(confidence > 0 && confidence < 1))
		return err_set(err, ERR_INVALID, "a confidence of %g is not between 0 and 1",
			       confidence);
	if (resamples == 0 || resamples > COMPARE_MAX_RESAMPLES)
		return err_set(err, ERR_INVALID, "%zu resamples: from 1 to %d are allowed",
			       resamples, COMPARE_MAX_RESAMPLES);
	if (compare_check(a, b, err) < 0)
		return -1;

	CLEANUP(freep) double *drawn = xmalloc(resamples * sizeof(*drawn));
	arm_init(&arm_a, a);
	arm_init(&arm_b, b);
	rng_seed(&rng, seed);
	for (size_t i = 0; i < resamples; i++) {
		double in_a = draw_median(&arm_a, &rng);

		drawn[i] = draw_median(&arm_b, &rng) - in_a;
	}
	compare_sort(drawn, resamples);
	ret->estimate = arm_median(&arm_b) - arm_median(&arm_a);
	read_interval((struct values){drawn, resamples}, &arm_a, &arm_b, confidence, ret);
	arm_release(&arm_a);
	arm_release(&arm_b);
	return 0;
}
