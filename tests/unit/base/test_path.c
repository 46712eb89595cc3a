#include "unit.h"

#include <string.h>

#include "base/path.h"

static void joining_puts_one_slash_between(void **state)
{
	static const struct {
		const char *a, *b, *joined;
	} cases[] = {
		{"a", "b", "a/b"},
		{"a/", "b", "a/b"},
		{"a", "/b", "/b"},
		{"", "b", "b"},
		{"a", "", "a"},
		{"/", "b", "/b"},
		{"", "", ""},
		{"a/b", "c/d", "a/b/c/d"},
		{"a", "../b", "a/../b"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *p = path_join(cases[i].a, cases[i].b);
		assert_string_equal(p, cases[i].joined);
		free(p);
	}
}

static void cleaning_folds_dots_and_slashes(void **state)
{
	static const struct {
		const char *path, *clean;
	} cases[] = {
		{"", "."},
		{".", "."},
		{"./", "."},
		{"/", "/"},
		{"//", "/"},
		{"/.", "/"},
		{"/..", "/"},
		{"/../../a", "/a"},
		{"a", "a"},
		{"a/", "a"},
		{"a//b", "a/b"},
		{"a/./b", "a/b"},
		{"a/b/..", "a"},
		{"a/..", "."},
		{"a/../b", "b"},
		{"a/../..", ".."},
		{"..", ".."},
		{"../..", "../.."},
		{"../../..", "../../.."},
		{"ab/..", "."},
		{"x/ab/..", "x"},
		{"../a/..", ".."},
		{"../../a", "../../a"},
		{"a/b/../../c", "c"},
		{"a/b/../../../c", "../c"},
		{"/a/b/../../../c", "/c"},
		{"...", "..."},
		{"a/...", "a/..."},
		{"..a/b", "..a/b"},
		{"/a/../b/", "/b"},
		{"./../a", "../a"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *p = path_clean(cases[i].path);
		if (strcmp(p, cases[i].clean) != 0)
			fail_msg("'%s' became '%s'", cases[i].path, p);
		/* What is clean stays as it is. */
		char *again = path_clean(p);
		assert_string_equal(again, p);
		free(again);
		free(p);
	}
}

static void only_plain_relative_names_are_below(void **state)
{
	static const char *const below[] = {"a",   "a/b",   ".hidden", "..a",
					    "a..", "a/...", "a b",     "./a"};
	static const char *const not_below[] = {"",	  "/",	  "/a", "..", "../a",  "a/..",
						"a/../b", "a//b", "a/", "//", "a/b/.."};

	(void)state;
	for (size_t i = 0; i < COUNT(below); i++)
		if (!path_is_below(str_from(below[i])))
			fail_msg("'%s' was refused", below[i]);
	for (size_t i = 0; i < COUNT(not_below); i++)
		if (path_is_below(str_from(not_below[i])))
			fail_msg("'%s' was taken", not_below[i]);
	assert_false(path_is_below(STR("a\0b")));
	assert_false(path_is_below((struct str){NULL, 0}));
	assert_true(path_is_below((struct str){"ab/..", 2}));
}

static void the_base_is_what_follows_the_last_slash(void **state)
{
	(void)state;
	assert_string_equal(path_base("a/b/c.txt"), "c.txt");
	assert_string_equal(path_base("c.txt"), "c.txt");
	assert_string_equal(path_base("/c"), "c");
	assert_true(str_is(path_source_name(STR("https://h/a/c?v=1/2")), "c"));
	assert_true(str_is(path_source_name(STR("s3://b/a/c/")), "c"));
	assert_string_equal(path_base("a/"), "");
	assert_string_equal(path_base(""), "");
}

struct match_case {
	const char *pattern, *name;
	bool matches;
};

static void check(const struct match_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (path_match(cases[i].pattern, cases[i].name) != cases[i].matches)
			fail_msg("'%s' and '%s'", cases[i].pattern, cases[i].name);
}

static void stars_and_question_marks_stay_within_a_part(void **state)
{
	static const struct match_case cases[] = {
		{"", "", true},
		{"", "a", false},
		{"a", "", false},
		{"a", "a", true},
		{"a", "ab", false},
		{"*", "", true},
		{"*", "abc", true},
		{"*", "a/b", false},
		{"*.txt", "a.txt", true},
		{"*.txt", ".txt", true},
		{"*.txt", "a/b.txt", false},
		{"*.txt", "a.txt.gz", false},
		{"a*b*c", "aXbYbZc", true},
		{"a*b*c", "abc", true},
		{"a*b*c", "aXbYcZ", false},
		{"a*/b", "ab/b", true},
		{"a*/b", "ab/c", false},
		{"a/*/c", "a/b/c", true},
		{"a/*/c", "a/b/b/c", false},
		{"a/*/c", "a//c", true},
		{"?", "a", true},
		{"?", "/", false},
		{"?", "", false},
		{"a?c", "a/c", false},
		{"a?c", "abc", true},
		{"?", "\xe6\xbc\xa2", true},
		{"??", "\xe6\xbc\xa2", false},
		{"?", "\xff", true},
		{"***", "abc", true},
		{"a**b", "aXb", true},
		{"a**b", "aX/Xb", false},
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void two_stars_go_to_any_depth(void **state)
{
	static const struct match_case cases[] = {
		{"**", "a", true},
		{"**", "a/b/c", true},
		{"**", "", false},
		{"model/**", "model/a", true},
		{"model/**", "model/a/b/c", true},
		{"model/**", "model", false},
		{"model/**", "models/a", false},
		{"**/a", "a", true},
		{"**/a", "b/c/a", true},
		{"**/a", "ba", false},
		{"**/a", "a/b", false},
		{"a/**/b", "a/b", true},
		{"a/**/b", "a/x/y/b", true},
		{"a/**/b", "a/xb", false},
		{"a/**/b", "ab", false},
		{"**/*.log", "x.log", true},
		{"**/*.log", "a/b/x.log", true},
		{"**/*.log", "a/b.log/x", false},
		{"**/a/**/b", "x/a/y/a/z/b", true},
		{"**/a/**/b", "x/a/y/a/z/c", false},
		{"**/a*/b*c", "ab/bd/ax/bxc", true},
		{"**/**/a", "a", true},
		{"**/**", "a", true},
		{"a/**/**/b", "a/q/b", true},
		{"*/**/x", "a/x", true},
		{"*/**/x", "x", false},
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void brackets_match_one_of_a_set(void **state)
{
	static const struct match_case cases[] = {
		{"[a-c]", "b", true},
		{"[a-c]", "d", false},
		{"[!a-c]", "d", true},
		{"[^a-c]", "b", false},
		{"[abc]x", "bx", true},
		{"[]]", "]", true},
		{"[!]]", "]", false},
		{"[a-]", "-", true},
		{"[-a]", "-", true},
		{"[a-c]", "", false},
		{"[!a]", "/", false},
		{"[/]", "/", false},
		{"[abc", "[abc", true},
		{"[abc", "a", false},
		{"[a/b]", "[a/b]", true},
		{"[!a]", "!", true},
		{"[!a]", "[", true},
		{"[!]]", "x", true},
		{"[^]]", "x", true},
		{"[0-9]*", "7x", true},
		{"[0-9]*", "x7", false},
		{"[\xc3\xa0-\xc3\xa9]", "\xc3\xa1", true},
		{"[\xc3\xa0-\xc3\xa9]", "\xc3\xad", false},
		{"[b-a]", "a", false},
		{"x[a-c][d-f]", "xbe", true},
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void a_backslash_takes_the_next_character_as_it_is(void **state)
{
	static const struct match_case cases[] = {
		{"\\*", "*", true},    {"\\*", "a", false},    {"a\\?", "a?", true},
		{"a\\?", "ab", false}, {"\\[a]", "[a]", true}, {"\\\\", "\\", true},
		{"a\\", "a\\", true},
	};

	(void)state;
	check(cases, COUNT(cases));
}

static void a_hostile_pattern_ends_soon(void **state)
{
	char pattern[801], name[2001];

	(void)state;
	for (size_t i = 0; i < 800; i += 2)
		memcpy(pattern + i, "a*", 2);
	pattern[798] = 'b';
	pattern[799] = '\0';
	memset(name, 'a', 2000);
	name[2000] = '\0';
	assert_false(path_match(pattern, name));

	for (size_t i = 0; i < 800; i += 5)
		memcpy(pattern + i, "**/a/", 5);
	pattern[800] = '\0';
	for (size_t i = 0; i < 2000; i += 2)
		memcpy(name + i, "a/", 2);
	name[1999] = 'b';
	assert_false(path_match(pattern, name));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(joining_puts_one_slash_between),
		cmocka_unit_test(cleaning_folds_dots_and_slashes),
		cmocka_unit_test(only_plain_relative_names_are_below),
		cmocka_unit_test(the_base_is_what_follows_the_last_slash),
		cmocka_unit_test(stars_and_question_marks_stay_within_a_part),
		cmocka_unit_test(two_stars_go_to_any_depth),
		cmocka_unit_test(brackets_match_one_of_a_set),
		cmocka_unit_test(a_backslash_takes_the_next_character_as_it_is),
		cmocka_unit_test(a_hostile_pattern_ends_soon),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
