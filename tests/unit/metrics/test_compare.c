/*
 * Figures from SciPy 1.17 (mannwhitneyu, bootstrap), NumPy (quantile) and
 * statsmodels 0.15 (multipletests, TTestIndPower).
 */
#include "unit.h"

#include <math.h>
#include <string.h>
#include "base/err.h"
#include "metrics/compare.h"
#include "seed.h"

static void near(double got, double want, double absolute)
{
	if (!(fabs(got - want) <= absolute))
		fail_msg("got %.17g, expected %.17g", got, want);
}

/* Value i of an arm is ((i * mul + add) % mod) / 8 + shift: exact in binary, the same in Python. */
struct recipe {
	size_t n, mul, add, mod;
};

static struct values cook(const struct recipe *r, double shift, double *out)
{
	for (size_t i = 0; i < r->n; i++)
		out[i] = (double)((i * r->mul + r->add) % r->mod) / 8 + shift;
	return (struct values){out, r->n};
}

/* Baseline, candidate, its shift; exact; U and p. */
static const struct {
	struct recipe a, b;
	double shift;
	bool exact;
	double u, p;
} rank_rows[] = {
	{{1, 7, 3, 1009}, {4, 11, 5, 1009}, 0.0625, true, 4.0, 0.4},
	{{3, 7, 3, 1009}, {3, 11, 5, 1009}, 50.0625, true, 9.0, 0.1},
	{{4, 701, 3, 1009}, {4, 11, 5, 1009}, -100.0625, true, 0.0, 0.02857142857142857},
	{{5, 389, 3, 1009}, {5, 577, 11, 1009}, 0.0625, true, 12.0, 1.0},
	{{7, 389, 3, 1009}, {9, 577, 11, 1009}, 20.0625, true, 38.0, 0.5360139860139861},
	{{10, 389, 3, 1009}, {10, 577, 11, 1009}, 30.0625, true, 67.0, 0.21756262313537858},
	{{10, 389, 3, 1009}, {10, 577, 11, 1009}, 0.0625, true, 45.0, 0.7393643508194593},
	{{20, 389, 3, 1009}, {20, 577, 11, 1009}, 25.0625, true, 264.0, 0.0859140199856938},
	{{20, 1, 0, 1009}, {20, 1, 0, 1009}, 500.0625, true, 400.0, 1.4508889103849684e-11},
	{{10, 389, 3, 1009}, {40, 577, 11, 1009}, 12.0625, true, 238.0, 0.3687312959516555},
	{{1, 389, 500, 1009}, {400, 577, 11, 1009}, 0.0625, true, 197.0, 0.9875311720698285},
	{{400, 389, 3, 1009}, {1, 577, 1000, 1009}, 0.0625, true, 399.0, 0.00997506234413965},
	{{21, 389, 3, 1009}, {20, 577, 11, 1009}, 25.0625, false, 273.0, 0.10307473035553542},
	{{100, 389, 3, 1009}, {80, 577, 11, 1009}, 9.0625, false, 4271.0, 0.4361528252238418},
	{{300, 389, 3, 1009}, {500, 577, 11, 1009}, 1.0625, false, 75843.0, 0.7900424152094722},
	{{5, 3, 1, 7}, {6, 5, 2, 7}, 0.0, false, 15.0, 1.0},
	{{10, 3, 1, 7}, {12, 5, 2, 7}, 0.5, false, 110.0, 0.0010220081973610568},
	{{40, 3, 1, 5}, {50, 2, 1, 5}, 0.125, false, 1360.0, 0.0029780867886367453},
	{{6, 1, 1, 1}, {7, 1, 1, 1}, 0.0, false, 21.0, 1.0},
	{{6, 1, 1, 1}, {7, 1, 1, 1}, 1.0, false, 42.0, 0.0007205896319716217},
	{{2, 1, 0, 1009}, {2, 1, 0, 1009}, 0.0, false, 2.0, 1.0},
	{{200, 389, 3, 1009}, {200, 389, 3, 1009}, 10.0, false, 23004.0, 0.009380618513787914},
};

static void rank_tests_agree_to_nine_digits(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rank_rows); i++) {
		double va[500], vb[500];
		struct values a = cook(&rank_rows[i].a, 0, va),
			      b = cook(&rank_rows[i].b, rank_rows[i].shift, vb);
		struct mann_whitney mw;

		assert_int_equal(mann_whitney(a, b, &mw, NULL), 0);
		assert_int_equal(mw.exact, rank_rows[i].exact);
		near(mw.u, rank_rows[i].u, 0);
		near(mw.p, rank_rows[i].p, 1e-9 * rank_rows[i].p);

		/* The other way round: the same p, the other U. */
		assert_int_equal(mann_whitney(b, a, &mw, NULL), 0);
		near(mw.p, rank_rows[i].p, 1e-9 * rank_rows[i].p);
		near(mw.u, (double)(a.n * b.n) - rank_rows[i].u, 0);
	}
}

static void arms_that_cannot_be_compared_are_refused(void **state)
{
	static const double good[] = {1, 2}, with_nan[] = {1, NAN}, with_inf[] = {INFINITY};
	static double huge[COMPARE_MAX_VALUES + 1];
	static const struct {
		struct values a, b;
		const char *message;
	} rows[] = {
		{{good, 0}, {good, 2}, "the baseline has no values"},
		{{good, 2}, {good, 0}, "the candidate has no values"},
		{{good, 2}, {with_nan, 2}, "value 2 of the candidate is not finite"},
		{{with_inf, 1}, {good, 2}, "value 1 of the baseline is not finite"},
		{{huge, COUNT(huge)},
		 {good, 2},
		 "the baseline has 100001 values: at most 100000 are compared"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct mann_whitney mw = {.p = 7};
		struct interval in = {.low = 7};
		struct err err = {0};

		assert_int_equal(mann_whitney(rows[i].a, rows[i].b, &mw, &err), -1);
		assert_string_equal(err.msg, rows[i].message);
		assert_int_equal(err.kind, ERR_INVALID);
		assert_int_equal(median_difference(rows[i].a, rows[i].b, 0.95, 10, 1, &in, &err),
				 -1);
		near(mw.p + in.low, 14, 0);
	}
}

/* SciPy with 100,000 resamples; ours agree within one step of the grid that medians live on. */
static void bootstrap_intervals_agree_with_scipy(void **state)
{
	static const struct {
		struct recipe a, b;
		double shift, estimate, low, high, slack;
	} rows[] = {
		{{15, 389, 3, 1009}, {15, 577, 11, 1009}, 10.0625, 15.3125, -29.6875, 61.8125, 3},
		{{10, 389, 3, 1009}, {13, 577, 11, 1009}, -40, -38.5625, -89.25, 13.375, 3},
		{{30, 389, 3, 1009}, {25, 577, 11, 1009}, 60, 60.3125, 23.5625, 93.375, 3},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		double va[50], vb[50];
		struct values a = cook(&rows[i].a, 0, va), b = cook(&rows[i].b, rows[i].shift, vb);
		struct interval in;

		assert_int_equal(median_difference(a, b, 0.95, 100000, 1, &in, NULL), 0);
		near(in.estimate, rows[i].estimate, 0);
		near(in.low, rows[i].low, rows[i].slack);
		near(in.high, rows[i].high, rows[i].slack);
	}
}

static void the_same_seed_gives_the_same_interval(void **state)
{
	static const double va[] = {10, 11, 12, 13, 9, 10.5, 11.5},
			    vb[] = {12, 13, 14, 15, 11, 12.5};
	struct values a = {va, COUNT(va)}, b = {vb, COUNT(vb)};
	struct interval one, two, other;

	(void)state;
	assert_int_equal(median_difference(a, b, 0.9, 200, 7, &one, NULL), 0);
	assert_int_equal(median_difference(a, b, 0.9, 200, 7, &two, NULL), 0);
	assert_memory_equal(&one, &two, sizeof(one));
	assert_true(one.low <= one.estimate && one.estimate <= one.high);
	assert_int_equal(median_difference(a, b, 0.99, 200, 8, &other, NULL), 0);
	assert_true(other.high - other.low >= one.high - one.low);
}

static void intervals_of_constant_arms_are_a_point(void **state)
{
	static const double fives[] = {5, 5, 5, 5}, two[] = {2};
	struct interval in;

	(void)state;
	assert_int_equal(median_difference((struct values){two, 1}, (struct values){fives, 4}, 0.95,
					   100, 1, &in, NULL),
			 0);
	near(in.estimate, 3, 0);
	near(in.low, 3, 0);
	near(in.high, 3, 0);
}

static void a_senseless_request_for_an_interval_is_refused(void **state)
{
	static const double v[] = {1, 2, 3};
	struct values arm = {v, 3};
	struct interval in;
	struct err err;

	(void)state;
	assert_int_equal(median_difference(arm, arm, 1, 100, 1, &in, &err), -1);
	assert_string_equal(err.msg, "a confidence of 1 is not between 0 and 1");
	assert_int_equal(median_difference(arm, arm, NAN, 100, 1, &in, &err), -1);
	assert_int_equal(median_difference(arm, arm, 0.95, 0, 1, &in, &err), -1);
	assert_int_equal(median_difference(arm, arm, 0.95, COMPARE_MAX_RESAMPLES + 1, 1, &in, &err),
			 -1);
	assert_string_equal(err.msg, "100001 resamples: from 1 to 100000 are allowed");
}

/* Roughly normal, by the sum of twelve. */
static double noise(struct rng *rng)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += random_unit(rng);
	return sum;
}

static void intervals_cover_the_true_difference_about_as_often_as_promised(void **state)
{
	struct rng rng;
	int covered = 0, rounds = 400;

	(void)state;
	seed_rng(&rng);
	for (int round = 0; round < rounds; round++) {
		double a[20], b[20];
		struct interval in;

		for (size_t i = 0; i < 20; i++) {
			a[i] = 100 + noise(&rng);
			b[i] = 103 + noise(&rng);
		}
		assert_int_equal(median_difference((struct values){a, 20}, (struct values){b, 20},
						   0.95, 1000, rng_next(&rng), &in, NULL),
				 0);
		covered += in.low <= 3 && in.high >= 3;
	}
	print_message("# %d of %d intervals hold the true difference\n", covered, rounds);
	assert_true(covered >= rounds * 90 / 100);
	assert_true(covered < rounds);
}

/* Two arms of one source: the share of alarms is the level that was asked for, not more. */
static void equal_arms_raise_an_alarm_no_more_often_than_alpha(void **state)
{
	struct rng rng;
	int alarms = 0, found = 0, rounds = 2000;

	(void)state;
	seed_rng(&rng);
	for (int round = 0; round < rounds; round++) {
		double a[10], b[10], slower[10];
		struct mann_whitney mw;

		for (size_t i = 0; i < 10; i++) {
			a[i] = 100 + noise(&rng);
			b[i] = 100 + noise(&rng);
			slower[i] = 102 + noise(&rng); /* 2 % at a scatter of 1 % */
		}
		assert_int_equal(
			mann_whitney((struct values){a, 10}, (struct values){b, 10}, &mw, NULL), 0);
		alarms += mw.p <= COMPARE_ALPHA;
		assert_int_equal(mann_whitney((struct values){a, 10}, (struct values){slower, 10},
					      &mw, NULL),
				 0);
		found += mw.p <= COMPARE_ALPHA;
	}
	print_message("# %d alarms, %d found, of %d\n", alarms, found, rounds);
	assert_true(alarms <= rounds * 6 / 100);
	assert_true(alarms >= rounds * 2 / 100);
	assert_true(found >= rounds * 95 / 100);
}

static void holm_agrees_with_statsmodels(void **state)
{
	static const struct {
		size_t n;
		double p[6], want[6];
	} rows[] = {
		{4, {0.01, 0.04, 0.03, 0.005}, {0.03, 0.06, 0.06, 0.02}},
		{1, {0.5}, {0.5}},
		{3, {0.02, 0.02, 0.02}, {0.06, 0.06, 0.06}},
		{6, {0.9, 0.8, 0.001, 0.4, 0.03, 0.0499}, {1, 1, 0.006, 1, 0.15, 0.1996}},
		{0, {0}, {0}},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		double got[6];

		holm_adjust(rows[i].p, rows[i].n, got);
		for (size_t k = 0; k < rows[i].n; k++)
			near(got[k], rows[i].want[k], 1e-15);
		memcpy(got, rows[i].p, sizeof(got)); /* in place */
		holm_adjust(got, rows[i].n, got);
		for (size_t k = 0; k < rows[i].n; k++)
			near(got[k], rows[i].want[k], 1e-15);
	}
}

static void detectable_effects_agree_with_the_power_of_the_t_test(void **state)
{
	/* statsmodels' d for 80 % power at 5 %, over the efficiency of the rank test. */
	static const double rows[][2] = {{20, 0.9303360287208388}, {100, 0.4074263887284332}};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		double got =
			detectable_effect((size_t)rows[i][0], 0.01, COMPARE_ALPHA, COMPARE_POWER);

		near(got, 0.01 * rows[i][1], 0.01 * rows[i][1] * 0.015);
	}
	for (size_t n = 0; n < 4; n++) /* 3 against 3 gives p = 0.1 at best */
		assert_true(detectable_effect(n, 0.01, COMPARE_ALPHA, COMPARE_POWER) == INFINITY);
	assert_true(detectable_effect(100000, 0.01, COMPARE_ALPHA, COMPARE_POWER) < 2e-4);
}

/* Rule: few runs, whose p-values are far apart, show the effect about as often as it says. */
static void a_detectable_effect_is_detected_with_its_power(void **state)
{
	enum { ROUNDS = 4000 };
	struct rng rng;

	(void)state;
	seed_rng(&rng);
	for (size_t n = 4; n <= 10; n++) {
		double effect = detectable_effect(n, 0.02, COMPARE_ALPHA, COMPARE_POWER);
		int found = 0;

		for (int round = 0; round < ROUNDS; round++) {
			double a[10], b[10];
			struct mann_whitney mw;

			for (size_t i = 0; i < n; i++) {
				a[i] = 1 + 0.02 * noise(&rng);
				b[i] = 1 + effect + 0.02 * noise(&rng);
			}
			assert_int_equal(mann_whitney((struct values){a, n}, (struct values){b, n},
						      &mw, NULL),
					 0);
			found += mw.p <= COMPARE_ALPHA;
		}
		near((double)found / ROUNDS, 0.78, 0.05);
	}
}

static void quantiles_agree_with_numpy(void **state)
{
	static const double v[] = {3.5, 1.25, 9.0, -2.0, 4.75, 8.0, 0.5}, pair[] = {2, 1};
	static const double rows[][2] = {{0, -2},    {0.1, -0.5}, {0.25, 0.875}, {0.5, 3.5},
					 {0.9, 8.4}, {0.95, 8.7}, {1, 9}};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		near(values_quantile((struct values){v, COUNT(v)}, rows[i][0]), rows[i][1], 1e-14);
	near(values_quantile((struct values){pair, 2}, 0.5), 1.5, 0);
	near(values_quantile((struct values){pair, 2}, 0.99), 1.99, 1e-14);
	near(values_quantile((struct values){pair, 1}, 0.99), 2, 0);
	assert_true(isnan(values_quantile((struct values){pair, 0}, 0.5)));
	assert_true(isnan(values_quantile((struct values){pair, 2}, 1.5)));
	assert_true(isnan(values_quantile((struct values){pair, 2}, NAN)));
}

/* By the definition: for each d the mean's squared standard error of what is left. */
static size_t warm_up_slowly(const double *v, size_t count)
{
	size_t size = count >= 50 ? 5 : 1, n = count / size, best = 0;
	double least = INFINITY, batch[200];

	for (size_t i = 0; i < n; i++) {
		batch[i] = 0;
		for (size_t k = 0; k < size; k++)
			batch[i] += v[i * size + k] / (double)size;
	}
	for (size_t d = 0; d <= n / 2; d++) {
		double mean = 0, error = 0, left = (double)(n - d);

		for (size_t i = d; i < n; i++)
			mean += batch[i] / left;
		for (size_t i = d; i < n; i++)
			error += (batch[i] - mean) * (batch[i] - mean) / (left * left);
		if (error < least) {
			least = error;
			best = d;
		}
	}
	return best * size;
}

static void warm_up_is_dropped_and_steady_series_are_kept(void **state)
{
	double v[200];
	struct rng rng;

	(void)state;
	for (size_t i = 0; i < 200; i++)
		v[i] = 1e6 + (i < 40 ? 1000.0 - 20 * (double)i : 0) + (double)(i % 3);
	assert_int_equal(values_warm_up((struct values){v, 200}), 40);
	for (size_t i = 0; i < 20; i++)
		v[i] = i < 4 ? 50 : 10 + (double)(i % 2);
	assert_int_equal(values_warm_up((struct values){v, 20}), 4);
	for (size_t i = 0; i < 200; i++)
		v[i] = 7;
	assert_int_equal(values_warm_up((struct values){v, 200}), 0);
	v[0] = 1000;
	assert_int_equal(values_warm_up((struct values){v, 7}), 0); /* too few to judge */
	assert_int_equal(values_warm_up((struct values){v, 8}), 1);
	assert_int_equal(values_warm_up((struct values){v, 0}), 0);

	seed_rng(&rng);
	for (int round = 0; round < 300; round++) {
		size_t n = 8 + rng_below(&rng, 193);

		for (size_t i = 0; i < n; i++)
			v[i] = noise(&rng) + 30 * exp(-(double)i / (1 + 10 * random_unit(&rng)));
		size_t got = values_warm_up((struct values){v, n});
		assert_int_equal(got, warm_up_slowly(v, n));
		assert_true(got <= n / 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rank_tests_agree_to_nine_digits),
		cmocka_unit_test(arms_that_cannot_be_compared_are_refused),
		cmocka_unit_test(bootstrap_intervals_agree_with_scipy),
		cmocka_unit_test(the_same_seed_gives_the_same_interval),
		cmocka_unit_test(intervals_of_constant_arms_are_a_point),
		cmocka_unit_test(a_senseless_request_for_an_interval_is_refused),
		cmocka_unit_test(intervals_cover_the_true_difference_about_as_often_as_promised),
		cmocka_unit_test(equal_arms_raise_an_alarm_no_more_often_than_alpha),
		cmocka_unit_test(holm_agrees_with_statsmodels),
		cmocka_unit_test(detectable_effects_agree_with_the_power_of_the_t_test),
		cmocka_unit_test(a_detectable_effect_is_detected_with_its_power),
		cmocka_unit_test(quantiles_agree_with_numpy),
		cmocka_unit_test(warm_up_is_dropped_and_steady_series_are_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
