/* A user's regular expression finds its lines, and cannot hang. */
#include "unit.h"

#include "base/err.h"
#include "metrics/grep.h"

static void lines_have_it_or_not(void **state)
{
	static const struct {
		const char *re;
		struct str line;
		int want;
	} cases[] = {
		{"loss", STR("a loss of"), 1}, {"^loss", STR("a loss of"), 0},
		{"s\\d$", STR("loss1"), 1},    {"^$", {0}, 1},
		{"a.b", {"a\0b", 3}, 1},       {"\\xff", STR("\xff"), 1},
	};
	struct err err;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct grep *g = grep_new(cases[i].re, &err);
		assert_non_null(g);
		assert_int_equal(grep_line(g, cases[i].line, &err), cases[i].want);
		grep_free(g);
	}
}

static void what_is_no_expression_is_refused_with_its_place(void **state)
{
	struct err err;

	(void)state;
	assert_null(grep_new("a(b", &err));
	assert_int_equal(err.kind, ERR_INVALID);
	assert_string_equal(
		err.msg,
		"not a regular expression: 'a(b': missing closing parenthesis at offset 3");
}

static void too_many_steps_are_an_error(void **state)
{
	struct err err;
	struct grep *g = grep_new("^(a|a)*$", &err);

	(void)state;
	assert_int_equal(grep_line(g, STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"), &err),
			 -1);
	assert_int_equal(err.kind, ERR_CAPACITY);
	grep_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_have_it_or_not),
		cmocka_unit_test(what_is_no_expression_is_refused_with_its_place),
		cmocka_unit_test(too_many_steps_are_an_error),
	};

	return cmocka_run_group_tests_name("grep", tests, NULL, NULL);
}
