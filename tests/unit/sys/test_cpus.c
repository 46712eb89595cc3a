/* The CPUs of a machine, and the shares that the processes of a node have. */
#include "sys/cpus.h"

#include <string.h>

#include "base/arena.h"
#include "unit.h"

static struct cpus of(const int *numbers)
{
	struct cpus c = {0};

	for (; *numbers >= 0; numbers++)
		CPU_SET_S((size_t)*numbers, sizeof(c.v), c.v);
	return c;
}

#define CPUS(...) of((const int[]){__VA_ARGS__, -1})

/* Rule: shares follow each other, none overlaps another, and all CPUs are given. */
static void the_shares_of_processes(void **state)
{
	static const struct {
		struct {
			int v[8];
		} all;
		int n;
		const char *want;
	} cases[] = {
		{{{0, 1, -1}}, 2, "0 1"},
		{{{0, 1, 2, 3, -1}}, 2, "0-1 2-3"},
		{{{0, 1, 2, 3, 4, -1}}, 2, "0-1 2-4"},
		{{{0, 1, 2, 3, 4, -1}}, 3, "0 1-2 3-4"},
		{{{2, 5, 6, 1030, -1}}, 2, "2,5 6,1030"}, /* those of the agent's own affinity */
		{{{0, 1, 2, -1}}, 3, "0 1 2"},
		{{{7, -1}}, 1, "7"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct arena *a = arena_new();
		struct cpus all = of(cases[i].all.v), one;
		const char *text = "";

		for (int k = 0; k < cases[i].n; k++) {
			assert_true(cpus_share(&all, cases[i].n, k, &one));
			text = arena_printf(a, "%s%s%s", text, k ? " " : "", cpus_text(&one, a));
		}
		assert_string_equal(text, cases[i].want);
		arena_free(a);
	}
}

/* Rule: where there are fewer CPUs than processes none has a share. */
static void fewer_cpus_than_processes(void **state)
{
	struct cpus all = CPUS(0, 1), one;

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_false(cpus_share(&all, 3, i, &one));
}

static void the_text_of_a_set(void **state)
{
	struct arena *a = arena_new();
	struct cpus none = {0}, some = CPUS(0, 1, 3, 8, 9, 10, CPUS_MAX - 1);

	(void)state;
	assert_string_equal(cpus_text(&none, a), "");
	assert_string_equal(cpus_text(&some, a), "0-1,3,8-10,8191");
	arena_free(a);
}

/* Rule: who is bound to its own CPUs has the same ones as before. */
static void a_process_is_bound(void **state)
{
	struct cpus before, one, after;

	(void)state;
	assert_true(cpus_allowed(&before));
	assert_true(cpus_share(&before, 1, 0, &one));
	assert_memory_equal(&one, &before, sizeof(one));
	cpus_share(&before, CPU_COUNT_S(sizeof(before.v), before.v), 0, &one);
	assert_int_equal(cpus_bind(&one), 0);
	assert_true(cpus_allowed(&after));
	assert_memory_equal(&after, &one, sizeof(one));
	assert_int_equal(cpus_bind(&before), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_shares_of_processes),
		cmocka_unit_test(fewer_cpus_than_processes),
		cmocka_unit_test(the_text_of_a_set),
		cmocka_unit_test(a_process_is_bound),
	};

	return cmocka_run_group_tests_name("cpus", tests, NULL, NULL);
}
