#include "unit.h"

#include <math.h>
#include "metrics/stats.h"
#include "seed.h"

static void assert_near(double got, double want)
{
	double scale = fabs(want) > 1 ? fabs(want) : 1;

	if (!(fabs(got - want) <= 1e-12 * scale))
		fail_msg("got %.17g, expected %.17g", got, want);
}

static struct stats of(const double *v, size_t n)
{
	struct stats s = {0};

	for (size_t i = 0; i < n; i++)
		stats_add(&s, v[i]);
	return s;
}

static void figures_of_a_small_series(void **state)
{
	static const double v[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct stats s = of(v, COUNT(v));

	(void)state;
	assert_int_equal(s.count, 8);
	assert_near(s.first, 2);
	assert_near(s.last, 9);
	assert_near(s.min, 2);
	assert_near(s.max, 9);
	assert_near(s.mean, 5);
	assert_near(stats_stddev(&s), sqrt(32.0 / 7));
}

static void one_value_has_no_spread_and_none_has_no_best(void **state)
{
	struct stats s = {0};

	(void)state;
	assert_true(isnan(stats_best(&s, BETTER_LOWER)));
	assert_near(stats_stddev(&s), 0);
	stats_add(&s, -3);
	assert_near(stats_stddev(&s), 0);
	assert_near(s.min, -3);
	assert_near(s.max, -3);
}

static void a_large_offset_does_not_eat_the_spread(void **state)
{
	struct stats s = {0};

	(void)state;
	for (int i = 0; i < 1000; i++)
		stats_add(&s, 1e9 + (i % 2 ? 1 : -1));
	assert_true(fabs(stats_stddev(&s) - 1.0005003753) < 1e-6);
}

static void best_follows_the_direction(void **state)
{
	static const double v[] = {3, 1, 2};
	struct stats s = of(v, COUNT(v));

	(void)state;
	assert_near(stats_best(&s, BETTER_LOWER), 1);
	assert_near(stats_best(&s, BETTER_HIGHER), 3);
	assert_near(stats_best(&s, BETTER_UNKNOWN), 2);
}

static void merging_equals_adding_all(void **state)
{
	struct rng rng;

	(void)state;
	seed_rng(&rng);
	for (int round = 0; round < 200; round++) {
		double v[60];
		size_t n = rng_below(&rng, COUNT(v) + 1), cut = rng_below(&rng, n + 1);

		for (size_t i = 0; i < n; i++)
			v[i] = (random_unit(&rng) - 0.5) * 1000;
		struct stats all = of(v, n), left = of(v, cut), right = of(v + cut, n - cut);
		stats_merge(&left, &right);
		assert_int_equal(left.count, all.count);
		assert_near(left.first, all.first);
		assert_near(left.last, all.last);
		assert_near(left.min, all.min);
		assert_near(left.max, all.max);
		assert_true(fabs(left.mean - all.mean) < 1e-9);
		assert_true(fabs(stats_stddev(&left) - stats_stddev(&all)) < 1e-9);
	}
}

static void the_direction_is_guessed_from_the_name(void **state)
{
	static const struct {
		const char *name;
		enum better better;
	} rows[] = {
		{"loss", BETTER_LOWER},
		{"val_loss", BETTER_LOWER},
		{"ValLoss", BETTER_LOWER},
		{"error_rate", BETTER_LOWER},
		{"step_time", BETTER_LOWER},
		{"Latency p99", BETTER_LOWER},
		{"forward_ms", BETTER_LOWER},
		{"epoch_s", BETTER_LOWER},
		{"EPOCH_S", BETTER_LOWER},
		{"accuracy", BETTER_HIGHER},
		{"images/sec", BETTER_HIGHER},
		{"samples_per_s", BETTER_HIGHER},
		{"tokens_per_sec", BETTER_HIGHER},
		{"_summary", BETTER_HIGHER},
		{"s", BETTER_HIGHER},
		{"", BETTER_HIGHER},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (better_guess(str_from(rows[i].name)) != rows[i].better)
			fail_msg("wrong guess for '%s'", rows[i].name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_of_a_small_series),
		cmocka_unit_test(one_value_has_no_spread_and_none_has_no_best),
		cmocka_unit_test(a_large_offset_does_not_eat_the_spread),
		cmocka_unit_test(best_follows_the_direction),
		cmocka_unit_test(merging_equals_adding_all),
		cmocka_unit_test(the_direction_is_guessed_from_the_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
