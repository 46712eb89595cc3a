#include "unit.h"

#include "core/core.h"
#include "sim/sim.h"

#define SEEDS 2000

static void no_seed_breaks_an_invariant(void **state)
{
	struct sim_result r;
	int verdicts[4] = {0}, crashes = 0, gone = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		sim_run(seed, 8, 0, &r);
		if (r.broken)
			print_message("seed %llu: %s\n", (unsigned long long)seed, r.what);
		assert_false(r.broken);
		gone += r.gone;
		if (!r.gone)
			verdicts[r.verdict]++;
		crashes += r.crashes;
	}
	/* A simulation in which nothing goes wrong, or nothing goes right, proves nothing. */
	assert_true(verdicts[VERDICT_SUCCEEDED] > SEEDS / 4);
	assert_true(verdicts[VERDICT_FAILED] > SEEDS / 50);
	assert_true(verdicts[VERDICT_CANCELLED] > SEEDS / 50);
	assert_true(crashes > SEEDS / 4);
	assert_true(gone > SEEDS / 100);
	assert_int_equal(verdicts[VERDICT_NONE], 0);
}

static void no_seed_breaks_an_invariant_of_suites(void **state)
{
	int crashes = 0, faults = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct sim_result r, again;

		sim_suite(seed, 0, &r);
		if (r.broken)
			print_message("seed %llu: %s\n", (unsigned long long)seed, r.what);
		assert_false(r.broken);
		sim_suite(seed, 0, &again);
		assert_int_equal(r.hash, again.hash);
		crashes += r.crashes;
		faults += r.faults;
	}
	assert_true(crashes > SEEDS);
	assert_true(faults > SEEDS);
}

static void the_same_seed_gives_the_same_history(void **state)
{
	struct sim_result a, b, c;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		sim_run(seed, 6, 0, &a);
		sim_run(seed, 6, 0, &b);
		assert_int_equal(a.hash, b.hash);
		assert_int_equal(a.events, b.events);
		sim_run(seed + 1, 6, 0, &c);
		assert_int_not_equal(a.hash, c.hash);
	}
}

static void a_large_gang_ends_too(void **state)
{
	struct sim_result r;

	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		sim_run(seed, 300, 0, &r);
		assert_false(r.broken);
	}
}

/* Many nodes have much to say: that is no hot loop. */
static void a_gang_of_thousands_is_no_hot_loop(void **state)
{
	struct sim_result r;

	(void)state;
	sim_run(6, 2600, 0, &r);
	if (r.broken)
		print_message("%s\n", r.what);
	assert_false(r.broken);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_seed_breaks_an_invariant),
		cmocka_unit_test(no_seed_breaks_an_invariant_of_suites),
		cmocka_unit_test(the_same_seed_gives_the_same_history),
		cmocka_unit_test(a_large_gang_ends_too),
		cmocka_unit_test(a_gang_of_thousands_is_no_hot_loop),
	};
	return cmocka_run_group_tests_name("sim", tests, NULL, NULL);
}
