#include "unit.h"

#include <string.h>

#include "master/api/limiter.h"

static struct limiter *l;

static int make(void **state)
{
	(void)state;
	l = limiter_new();
	return 0;
}

static int drop(void **state)
{
	(void)state;
	assert_null(limiter_free(l));
	return 0;
}

static int passed(const char *address, int tries, int64_t now_ms)
{
	int n = 0;

	for (int i = 0; i < tries; i++)
		n += limiter_failed(l, str_from(address), now_ms);
	return n;
}

/* Rule: ten failures a second and address. */

static void a_burst_passes_and_no_more(void **state)
{
	(void)state;
	assert_int_equal(passed("a", 50, 1000), LIMITER_BURST);
	assert_int_equal(passed("a", 50, 1099), 0);
}

static void failures_are_won_back_with_time(void **state)
{
	(void)state;
	assert_int_equal(passed("a", 50, 1000), LIMITER_BURST);
	assert_int_equal(passed("a", 50, 1100), 1);
	assert_int_equal(passed("a", 50, 1600), 5);
	assert_int_equal(passed("a", 50, 1000000), LIMITER_BURST);
}

static void a_stream_of_failures_passes_at_the_rate(void **state)
{
	int n = 0;

	(void)state;
	for (int64_t t = 0; t < 10000; t++)
		n += limiter_failed(l, STR("a"), t);
	assert_in_range(n, 10 * LIMITER_BURST, 11 * LIMITER_BURST);
}

static void one_address_does_not_count_for_another(void **state)
{
	(void)state;
	assert_int_equal(passed("a", 50, 1000), LIMITER_BURST);
	assert_int_equal(passed("b", 50, 1000), LIMITER_BURST);
	assert_int_equal(passed("a", 1, 1000), 0);
}

static void the_one_that_failed_longest_ago_is_forgotten(void **state)
{
	char name[32];

	(void)state;
	for (int i = 0; i < LIMITER_ADDRESSES; i++) {
		snprintf(name, sizeof(name), "10.0.%d.%d", i / 256, i % 256);
		assert_int_equal(passed(name, 50, 1000 + i), LIMITER_BURST);
	}
	assert_int_equal(passed("new", 1, 3000), 1); /* in the place of 10.0.0.0 */
	assert_int_equal(passed("10.0.3.255", 1, 2024), 0);
	assert_int_equal(passed("10.0.0.0", 1, 2024), 1);
}

int main(void)
{
#define test(t) cmocka_unit_test_setup_teardown(t, make, drop)
	const struct CMUnitTest tests[] = {
		test(a_burst_passes_and_no_more),
		test(failures_are_won_back_with_time),
		test(a_stream_of_failures_passes_at_the_rate),
		test(one_address_does_not_count_for_another),
		test(the_one_that_failed_longest_ago_is_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
