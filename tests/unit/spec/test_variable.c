/* Names of variables, patterns of names, and files of variables. */
#include "unit.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "spec/variable.h"

static void reads(const char *text, size_t n, const char *const (*want)[2])
{
	struct arena *a = arena_new();
	struct env_list list = {0};
	struct err err = {0};

	if (variables_parse(".env", str_from(text), a, &list, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(list.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_string_equal(list.v[i].name, want[i][0]);
		assert_string_equal(list.v[i].value, want[i][1]);
	}
	arena_free(a);
}

static void refuses(const char *text, const char *want)
{
	struct arena *a = arena_new();
	struct env_list list = {0};
	struct err err = {0};

	assert_int_equal(variables_parse(".env", str_from(text), a, &list, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_string_equal(err.msg, want);
	arena_free(a);
}

static void a_file_has_comments_quotes_and_exports(void **state)
{
	static const char *const want[][2] = {
		{"A", "1"},	   {"B", "two words"}, {"C", "x#y"}, {"D", "a # b"},
		{"E", "$A \\n"},   {"F", "l1\nl2"},    {"G", ""},    {"H", "say \"hi\" $X \\d"},
		{"I", "up\ndown"}, {"J", ""},	       {"K", "a=b"},
	};

	(void)state;
	reads("\xef\xbb\xbf# first\n"
	      "A=1\r\n"
	      "\n"
	      "  B = two words   # why\n"
	      "C=x#y\n"
	      "D=\"a # b\" # c\n"
	      "E='$A \\n'\n"
	      "F=\"l1\\nl2\"\n"
	      "G=\n"
	      "export H=\"say \\\"hi\\\" \\$X \\d\"\n"
	      "I='up\n"
	      "down'\n"
	      "J=#nothing\n"
	      "K=a=b",
	      11, want);
}

static void of_two_lines_with_one_name_the_last_counts(void **state)
{
	static const char *const want[][2] = {{"A", "3"}, {"B", "2"}};

	(void)state;
	reads("A=1\nB=2\nA=3\n", 2, want);
	reads("", 0, NULL);
}

static void a_wrong_line_is_named(void **state)
{
	(void)state;
	refuses("A=1\n\nhunter2\n", ".env:3: expected NAME=VALUE");
	refuses("A='x\ny\n\nB=1\n", ".env:1: the quote ' is not closed");
	refuses("A=\"x\" y\n",
		".env:1: there is more after the closing quote: quote the whole value");
	refuses("A='1\n2'\n1B=1\n",
		".env:3: '1B' cannot be the name of a variable: use letters, digits and _, and no digit first");
	refuses("REGATTA_RUN=1\n",
		".env:1: 'REGATTA_RUN': names that start with REGATTA_ are set by regatta itself: choose another");
	refuses("A=\xff\n", ".env:1: the value of A is not UTF-8 text");
}

static void a_value_may_be_as_long_as_linux_takes(void **state)
{
	static char text[VARIABLE_MAX + 16];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "A=", 2);
	text[VARIABLE_MAX] = '\n';
	text[VARIABLE_MAX + 1] = '\0';
	struct arena *a = arena_new();
	struct env_list list = {0};

	assert_int_equal(variables_parse(".env", str_from(text), a, &list, NULL), 0);
	assert_int_equal(strlen(list.v[0].value), VARIABLE_MAX - 2);
	arena_free(a);
	text[VARIABLE_MAX] = 'x';
	refuses(text,
		".env:1: 'A' is longer than the 131071 bytes that Linux takes: put it in a file");
}

static void a_pattern_has_at_least_one_character_of_a_name(void **state)
{
	const char *v[] = {"WANDB_*", "HF_TOKE?"};
	const struct strs patterns = {v, 2};

	(void)state;
	assert_true(variable_pattern_ok(STR("WANDB_*")));
	assert_true(variable_pattern_ok(STR("*_PROXY")));
	assert_false(variable_pattern_ok(STR("*")));
	assert_false(variable_pattern_ok(STR("")));
	assert_false(variable_pattern_ok(STR("A B")));
	assert_false(variable_pattern_ok(STR("[A-Z]X")));
	assert_true(variable_matches(&patterns, STR("WANDB_MODE")));
	assert_true(variable_matches(&patterns, STR("HF_TOKEN")));
	assert_false(variable_matches(&patterns, STR("HF_TOKENS")));
	assert_false(variable_matches(&patterns, STR("XWANDB_MODE")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_has_comments_quotes_and_exports),
		cmocka_unit_test(of_two_lines_with_one_name_the_last_counts),
		cmocka_unit_test(a_wrong_line_is_named),
		cmocka_unit_test(a_value_may_be_as_long_as_linux_takes),
		cmocka_unit_test(a_pattern_has_at_least_one_character_of_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
