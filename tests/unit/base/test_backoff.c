/* Pauses between tries: random, growing, bounded, and short again after a success. */
#include "unit.h"

#include "base/backoff.h"

static void a_pause_is_within_a_span_that_doubles_up_to_its_limit(void **state)
{
	static const int64_t spans[] = {50, 100, 200, 300, 300};
	struct backoff b;

	(void)state;
	for (int round = 0; round < 200; round++) {
		backoff_init(&b, 50, 300);
		for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
			int64_t pause = backoff_next(&b);

			assert_true(pause >= 0 && pause <= spans[i]);
		}
	}
}

static void pauses_differ_from_one_who_waits_to_the_next(void **state)
{
	bool differ = false;

	(void)state;
	for (int i = 0; i < 50 && !differ; i++) {
		struct backoff a, b;

		backoff_init(&a, 5000, 5000);
		backoff_init(&b, 5000, 5000);
		differ = backoff_next(&a) != backoff_next(&b);
	}
	assert_true(differ);
}

static void a_success_makes_pauses_short_again(void **state)
{
	struct backoff b;

	(void)state;
	backoff_init(&b, 2, 1000000);
	for (int i = 0; i < 20; i++)
		backoff_next(&b);
	backoff_reset(&b);
	assert_true(backoff_next(&b) <= 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pause_is_within_a_span_that_doubles_up_to_its_limit),
		cmocka_unit_test(pauses_differ_from_one_who_waits_to_the_next),
		cmocka_unit_test(a_success_makes_pauses_short_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
