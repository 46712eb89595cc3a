#include "unit.h"

#include <string.h>

#include "base/str.h"

static const struct str none = {NULL, 0};

static void texts_are_equal_by_length_and_bytes(void **state)
{
	(void)state;
	assert_true(str_eq(STR("a\0b"), STR("a\0b")));
	assert_false(str_eq(STR("a\0b"), STR("a\0c")));
	assert_false(str_eq(STR("ab"), STR("abc")));
	assert_true(str_eq(none, STR("")));
	assert_true(str_is(STR("key"), "key"));
	assert_false(str_is(STR("key"), "keys"));
	assert_true(str_is(none, ""));
	assert_true(str_eq(str_from(NULL), none));
}

static void prefixes_and_suffixes_are_found(void **state)
{
	(void)state;
	assert_true(str_starts(STR("s3://bucket"), STR("s3://")));
	assert_false(str_starts(STR("s3:/"), STR("s3://")));
	assert_true(str_starts(none, none));
	assert_true(str_ends(STR("job.toml"), STR(".toml")));
	assert_false(str_ends(STR("toml"), STR(".toml")));
	assert_false(str_ends(STR("job.tomx"), STR(".toml")));
	assert_true(str_ends(none, STR("")));
}

static void trimming_takes_white_space_from_both_ends(void **state)
{
	(void)state;
	assert_true(str_is(str_trim(STR(" \t\r\n\v\f a b \n")), "a b"));
	assert_true(str_is(str_trim(STR("   ")), ""));
	assert_true(str_is(str_trim(STR("x")), "x"));
	assert_int_equal(str_trim(none).n, 0);
	/* Only ASCII white space. */
	assert_int_equal(str_trim(STR("\xc2\xa0")).n, 2);
}

static void cutting_walks_through_the_fields(void **state)
{
	struct str s = STR("a,,b");

	(void)state;
	assert_true(str_is(str_cut(&s, ','), "a"));
	assert_true(str_is(str_cut(&s, ','), ""));
	assert_true(str_is(str_cut(&s, ','), "b"));
	assert_null(s.p);
	assert_int_equal(str_cut(&s, ',').n, 0);
	assert_null(s.p);
}

static void a_separator_at_the_end_leaves_one_empty_field(void **state)
{
	struct str s = STR("a,");

	(void)state;
	assert_true(str_is(str_cut(&s, ','), "a"));
	assert_non_null(s.p);
	assert_int_equal(s.n, 0);
	assert_int_equal(str_cut(&s, ',').n, 0);
	assert_null(s.p);
}

static void the_last_line_is_the_last_with_something_on_it(void **state)
{
	(void)state;
	assert_true(str_is(str_last_line(STR("a\n b c \n\n \n")), "b c"));
	assert_true(str_is(str_last_line(STR("one")), "one"));
	assert_true(str_is(str_last_line(STR(" \n")), ""));
	assert_true(str_is(str_last_line((struct str){NULL, 0}), ""));
}

static void distance_counts_edits_and_swaps(void **state)
{
	static const struct {
		const char *a, *b;
		size_t edits;
	} cases[] = {
		{"", "", 0},	      {"count", "count", 0},	   {"cuont", "count", 1},
		{"coun", "count", 1}, {"counts", "count", 1},	   {"kount", "count", 1},
		{"", "abc", 3},	      {"kitten", "sitting", 3},	   {"ab", "ba", 1},
		{"abcd", "badc", 2},  {"strategy", "stratgey", 1}, {"abc", "xyz", 3},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str a = str_from(cases[i].a), b = str_from(cases[i].b);
		assert_int_equal(str_distance(a, b, 10), cases[i].edits);
		assert_int_equal(str_distance(b, a, 10), cases[i].edits);
	}
}

static void distance_stops_counting_after_the_maximum(void **state)
{
	char longer[300];

	(void)state;
	memset(longer, 'a', sizeof(longer));
	assert_int_equal(str_distance(STR("abcdef"), STR("uvwxyz"), 2), 3);
	assert_int_equal(str_distance(STR("a"), STR("b"), 0), 1);
	assert_int_equal(str_distance((struct str){longer, 300}, STR("a"), 2), 3);
	assert_int_equal(str_distance((struct str){longer, 300}, (struct str){longer, 300}, 2), 0);
	assert_int_equal(str_distance((struct str){longer, 128}, (struct str){longer, 127}, 2), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_equal_by_length_and_bytes),
		cmocka_unit_test(prefixes_and_suffixes_are_found),
		cmocka_unit_test(trimming_takes_white_space_from_both_ends),
		cmocka_unit_test(cutting_walks_through_the_fields),
		cmocka_unit_test(a_separator_at_the_end_leaves_one_empty_field),
		cmocka_unit_test(the_last_line_is_the_last_with_something_on_it),
		cmocka_unit_test(distance_counts_edits_and_swaps),
		cmocka_unit_test(distance_stops_counting_after_the_maximum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
