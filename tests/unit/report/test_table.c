/* The comparison as a table for people. */
#include "spec/golden.h"

#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

static struct doc *load(struct arena *a, const char *name)
{
	CLEANUP(buf_release) struct buf b;
	struct err err = {0};
	struct doc *d = NULL;

	buf_init(&b, GOLDEN_MAX);
	if (file_read(golden_path(a, name), &b, &err) < 0 ||
	    json_parse(arena_str(a, buf_str(&b)), a, &d, &err) < 0)
		fail_msg("%s: %s", name, err.msg);
	return d;
}

static void the_table_is_that_of_the_golden_file(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	(void)state;
	for (int arms = 2; arms <= 3; arms++)
		for (int width = 0; width <= 80; width += 80) {
			CLEANUP(buf_release) struct buf out = {0};
			struct style st = {.width = width};
			buf_init(&out, GOLDEN_MAX);
			compare_render(
				load(a, arena_printf(a, "golden/report/compare%d.json", arms)), &st,
				&out);
			golden_check(
				golden_path(a, arena_printf(a, "golden/report/compare%d.%d.txt",
							    arms, width)),
				buf_str(&out));
		}
}

/* Rule: what a side costs stands behind it, as far as it is known. */
static void the_costs_stand_behind_the_sides(void **state)
{
	static const char answer[] =
		"{\"arms\":[{\"label\":\"a\",\"runs\":[\"a-1\",\"a-2\"],\"cost\":{\"runs\":2,\"usd\":0.5,"
		"\"usd_per_step\":0.00013,\"usd_per_1k_samples\":0.2}},"
		"{\"label\":\"b\",\"runs\":[\"b-1\"],\"cost\":{\"runs\":1,\"usd\":1.25,"
		"\"usd_per_step\":null,\"usd_per_1k_samples\":null}},"
		"{\"label\":\"c\",\"runs\":[\"c-1\"],\"cost\":null}],\"metrics\":[]}";
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = {0};
	struct err err = {0};
	struct doc *d;

	(void)state;
	buf_init(&out, GOLDEN_MAX);
	assert_int_equal(json_parse(str_from(answer), a, &d, &err), 0);
	compare_render(d, &st, &out);
	buf_addc(&out, '\0');
	assert_string_equal(out.p, "baseline  a (2 runs): 0.5000 USD a run, 0.00013 USD per step, "
				   "0.2 USD per 1,000 samples\n"
				   "other     b (1 run): 1.2500 USD\n"
				   "other     c (1 run)\n"
				   "no metrics to compare\n");
}

/* Rule: an answer of another shape gives a poor table, never a crash. */
static void an_odd_answer_is_survived(void **state)
{
	static const char *const answers[] = {
		"{}",
		"{\"runs\":[],\"metrics\":[]}",
		"{\"metrics\":[{\"rows\":[{},{}]},{}]}",
		"{\"arms\":[{}],\"notes\":[1,\"\\u001b[31m\"]}",
		"{\"metrics\":[{\"name\":\"\\u0007\",\"rows\":[{},{\"ci_pct\":[1]}]}]}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(answers); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf out = {0};
		struct style st = {0};
		struct err err = {0};
		struct doc *d;
		buf_init(&out, GOLDEN_MAX);
		assert_int_equal(json_parse(str_from(answers[i]), a, &d, &err), 0);
		compare_render(d, &st, &out);
		assert_null(memchr(out.p, 0x1b, out.n));
		assert_null(memchr(out.p, 0x07, out.n));
		assert_true(out.n > 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_table_is_that_of_the_golden_file),
		cmocka_unit_test(the_costs_stand_behind_the_sides),
		cmocka_unit_test(an_odd_answer_is_survived),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
