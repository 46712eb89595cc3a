#include "metrics/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "metrics/compare_internal.h"
#include "metrics/distribution.h"

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

void compare_sort(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_value);
}

double *compare_sorted(struct values from)
{
	double *v = xmalloc(from.n * sizeof(*v));

	memcpy(v, from.v, from.n * sizeof(*v));
	compare_sort(v, from.n);
	return v;
}

static int check_arm(struct values arm, const char *which, struct err *err)
{
	if (arm.n == 0)
		return err_set(err, ERR_INVALID, "the %s has no values", which);
	if (arm.n > COMPARE_MAX_VALUES)
		return err_set(err, ERR_INVALID, "the %s has %zu values: at most %d are compared",
			       which, arm.n, COMPARE_MAX_VALUES);
	for (size_t i = 0; i < arm.n; i++)
		if (!isfinite(arm.v[i]))
			return err_set(err, ERR_INVALID, "value %zu of the %s is not finite", i + 1,
				       which);
	return 0;
}

int compare_check(struct values a, struct values b, struct err *err)
{
	if (check_arm(a, "baseline", err) < 0)
		return -1;
	return check_arm(b, "candidate", err);
}

double values_quantile_sorted(struct values sorted, double q)
{
	if (sorted.n == 0 || !(q >= 0 && q <= 1))
		return NAN;
	double at = q * (double)(sorted.n - 1);
	size_t i = (size_t)at;
	double part = at - (double)i;

	if (part == 0 || i + 1 >= sorted.n)
		return sorted.v[i];
	return sorted.v[i] * (1 - part) + sorted.v[i + 1] * part;
}

double values_quantile(struct values v, double q)
{
	CLEANUP(freep) double *s = v.n > 0 ? compare_sorted(v) : NULL;

	return values_quantile_sorted((struct values){s, v.n}, q);
}

/* Twice the U of b (a whole number, as ties count one half), and the sum of t^3 - t over the ties of both arms. */
static uint64_t count_wins(const double *a, size_t na, const double *b, size_t nb, double *ret_ties)
{
	uint64_t twice = 0;
	size_t i = 0, j = 0;
	double ties = 0;

	while (j < nb || i < na) {
		double v = j == nb || (i < na && a[i] < b[j]) ? a[i] : b[j];
		size_t ta = 0, tb = 0;

		while (i + ta < na && a[i + ta] == v)
			ta++;
		while (j + tb < nb && b[j + tb] == v)
			tb++;
		twice += 2 * (uint64_t)tb * i + (uint64_t)ta * tb;
		double t = (double)(ta + tb);
		ties += t * t * t - t;
		i += ta;
		j += tb;
	}
	*ret_ties = ties;
	return twice;
}

/*
 * How many of the equally likely orders of na + nb values have each U, from 0 to na * nb.  Owned.  The
 * counts are the coefficients of the Gaussian binomial, built by n multiplications and n
 * exact divisions of a polynomial; below 2^53 for all sizes that are allowed here.
 */
static double *exact_counts(size_t na, size_t nb, double *ret_all)
{
	size_t small = na < nb ? na : nb, large = na < nb ? nb : na, top = na * nb;
	double *count = xcalloc(top + 1, sizeof(*count)), all = 0;

	count[0] = 1;
	for (size_t k = 1; k <= small; k++) {
		for (size_t i = top; i >= large + k; i--) /* times 1 - x^(large + k) */
			count[i] -= count[i - large - k];
		for (size_t i = k; i <= top; i++) /* over 1 - x^k */
			count[i] += count[i - k];
	}
	for (size_t i = 0; i <= top; i++)
		all += count[i];
	*ret_all = all;
	return count;
}

/* P(U >= u). */
static double exact_tail(size_t na, size_t nb, size_t u)
{
	double above = 0, all;
	CLEANUP(freep) double *count = exact_counts(na, nb, &all);

	for (size_t i = u; i <= na * nb; i++)
		above += count[i];
	return above / all;
}

int mann_whitney(struct values a, struct values b, struct mann_whitney *ret, struct err *err)
{
	if (compare_check(a, b, err) < 0)
		return -1;

	CLEANUP(freep) double *sa = compare_sorted(a);
	CLEANUP(freep) double *sb = compare_sorted(b);
	double ties, p, na = (double)a.n, nb = (double)b.n, n = na + nb;
	uint64_t twice = count_wins(sa, a.n, sb, b.n, &ties), pairs = (uint64_t)a.n * b.n;
	uint64_t larger = twice > 2 * pairs - twice ? twice : 2 * pairs - twice;
	bool exact = ties == 0 && pairs <= COMPARE_EXACT_MAX;

	if (exact) {
		p = 2 * exact_tail(a.n, b.n, (size_t)(larger / 2));
	} else {
		double spread = sqrt(na * nb / 12 * (n + 1 - ties / (n * (n - 1))));
		double off = (double)larger / 2 - na * nb / 2 - 0.5;

		p = spread > 0 ? 2 * normal_tail(off / spread) : 1;
	}
	*ret = (struct mann_whitney){.u = (double)twice / 2, .p = p < 1 ? p : 1, .exact = exact};
	return 0;
}

struct ranked {
	double p;
	size_t at;
};

static int by_p(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	if (a->p != b->p)
		return a->p < b->p ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

void holm_adjust(const double *p, size_t n, double *adjusted)
{
	CLEANUP(freep) struct ranked *r = xcalloc(n + 1, sizeof(*r));
	double so_far = 0;

	for (size_t i = 0; i < n; i++)
		r[i] = (struct ranked){.p = p[i], .at = i};
	qsort(r, n, sizeof(*r), by_p);
	for (size_t i = 0; i < n; i++) {
		double scaled = r[i].p * (double)(n - i);

		if (scaled > so_far)
			so_far = scaled;
		adjusted[r[i].at] = so_far < 1 ? so_far : 1;
	}
}

/* The largest p-value up to alpha that n against n values can give; 0 if there is none.  Few values
 * have few p-values: 4 against 4 jump from 0.029 to 0.057. */
static double attained_level(size_t n, double alpha)
{
	double above = 0, all;

	if (n * n > COMPARE_EXACT_MAX)
		return alpha;
	CLEANUP(freep) double *count = exact_counts(n, n, &all);
	for (size_t u = n * n; 2 * (above + count[u]) <= alpha * all && u > 0; u--)
		above += count[u];
	return 2 * above / all;
}

double detectable_effect(size_t n, double cv, double alpha, double power)
{
	double level = n < 2 ? 0 : attained_level(n, alpha), df = 2 * (double)n - 2;

	if (!(level > 0))
		return INFINITY;
	double t = student_quantile(1 - level / 2, df) + student_quantile(power, df);
	return t * cv * sqrt(2 / (double)n) / sqrt(3 / M_PI);
}

size_t values_warm_up(struct values series)
{
	size_t size = series.n >= 50 ? 5 : 1, n = series.n / size, best = 0;
	double sum = 0, squares = 0, least = INFINITY;

	if (series.n < 8)
		return 0;
	/* From the end: mean and error of the last k batches, with growing k; a tie keeps more values.  Relative to
	 * the last value, so that a large offset costs no precision. */
	double offset = series.v[n * size - 1];
	for (size_t d = n; d-- > 0;) {
		double batch = 0;

		for (size_t i = 0; i < size; i++)
			batch += (series.v[d * size + i] - offset) / (double)size;
		sum += batch;
		squares += batch * batch;
		double k = (double)(n - d);
		double error = (squares - sum * sum / k) / (k * k);
		if (d <= n / 2 && error <= least) {
			least = error;
			best = d;
		}
	}
	return best * size;
}
