#include "unit.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "base/rand.h"
#include "base/str.h"

static void whole_numbers_are_read_to_their_limits(void **state)
{
	int64_t i;
	uint64_t u;

	(void)state;
	assert_true(str_to_i64(STR("0"), &i) && i == 0);
	assert_true(str_to_i64(STR("-0"), &i) && i == 0);
	assert_true(str_to_i64(STR("+17"), &i) && i == 17);
	assert_true(str_to_i64(STR("007"), &i) && i == 7);
	assert_true(str_to_i64(STR("9223372036854775807"), &i) && i == INT64_MAX);
	assert_true(str_to_i64(STR("-9223372036854775808"), &i) && i == INT64_MIN);
	assert_true(str_to_u64(STR("18446744073709551615"), &u) && u == UINT64_MAX);
	assert_true(str_to_u64(STR("0"), &u) && u == 0);
}

static void what_is_not_a_whole_number_is_refused_and_changes_nothing(void **state)
{
	static const char *const bad[] = {"",
					  "-",
					  " 1",
					  "1 ",
					  "1.0",
					  "1e3",
					  "0x1",
					  "--1",
					  "+-1",
					  "1_000",
					  "a",
					  "1a",
					  "9223372036854775808",
					  "-9223372036854775809",
					  "99999999999999999999",
					  "\xd9\xa1"};
	int64_t i = 42;
	uint64_t u = 42;

	(void)state;
	for (size_t k = 0; k < COUNT(bad); k++)
		if (str_to_i64(str_from(bad[k]), &i))
			fail_msg("'%s' was taken", bad[k]);
	assert_false(str_to_i64((struct str){"1\0002", 3}, &i));
	assert_int_equal(i, 42);
	assert_false(str_to_u64(STR("18446744073709551616"), &u));
	assert_false(str_to_u64(STR("-1"), &u));
	assert_false(str_to_u64(STR("+1"), &u));
	assert_false(str_to_u64(STR("184467440737095516150"), &u));
	assert_int_equal(u, 42);
}

static void decimals_are_read(void **state)
{
	static const struct {
		const char *text;
		double value;
	} cases[] = {
		{"0", 0.0},
		{"1", 1.0},
		{"-1.5", -1.5},
		{"+2.25", 2.25},
		{".5", 0.5},
		{"5.", 5.0},
		{"1e3", 1000.0},
		{"1E+3", 1000.0},
		{"1e-3", 0.001},
		{"0.1", 0.1},
		{"123456789.987654321", 123456789.987654321},
		{"3.141592653589793238462643383279", 3.141592653589793238462643383279},
		{"9007199254740993", 9007199254740992.0},
		{"18446744073709551616", 18446744073709551616.0},
		{"1e22", 1e22},
		{"1e23", 1e23},
		{"1.7976931348623157e308", 1.7976931348623157e308},
		{"5e-324", 5e-324},
		{"1e-400", 0.0},
		{"0e999999999999", 0.0},
		{"00012", 12.0},
		{"100000000000000000000000000000000000e-35", 1.0},
		{"0.00000000000000000000000000000000000000000001", 1e-44},
	};
	double v;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		v = -1;
		if (!str_to_double(str_from(cases[i].text), &v) ||
		    memcmp(&v, &cases[i].value, sizeof(v)) != 0)
			fail_msg("'%s' gave %.17g", cases[i].text, v);
	}
	assert_true(str_to_double(STR("-0"), &v) && v == 0 && signbit(v));
}

static void what_is_not_a_finite_decimal_is_refused_and_changes_nothing(void **state)
{
	static const char *const bad[] = {
		"",	 ".",
		"-",	 "+",
		"e5",	 "1e",
		"1e+",	 "1e1.5",
		"1.2.3", "0x10",
		"0x1p3", "inf",
		"-inf",	 "nan",
		"NaN",	 "infinity",
		"1e309", "-1e400",
		"1,5",	 " 1",
		"1 ",	 "1f",
		"--1",	 "1e--1",
		"1e5x",	 "\xe2\x88\x92\x31",
		"1_0",	 "1e99999999999999999999",
		".e1",	 "1..2",
	};
	double v = 42;

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++)
		if (str_to_double(str_from(bad[i]), &v))
			fail_msg("'%s' was taken as %g", bad[i], v);
	assert_false(str_to_double((struct str){"1\0", 2}, &v));
	assert_true(v == 42);
}

static void a_decimal_of_unreasonable_length_is_refused(void **state)
{
	char text[1025];
	double v = 42;

	(void)state;
	memset(text, '1', sizeof(text));
	text[1] = '.';
	assert_true(str_to_double((struct str){text, 1023}, &v));
	assert_true(fabs(v - 1.1111111) < 1e-6);
	v = 42;
	assert_false(str_to_double((struct str){text, 1024}, &v));
	assert_true(v == 42);
}

static void only_the_view_is_read(void **state)
{
	double v;
	int64_t i;

	(void)state;
	assert_true(str_to_double((struct str){"1.2345", 3}, &v) && v == 1.2);
	assert_true(str_to_double((struct str){"1e300000", 5}, &v) && v == 1e300);
	assert_true(str_to_i64((struct str){"1234", 2}, &i) && i == 12);
}

static void every_double_survives_the_way_through_text(void **state)
{
	uint64_t seed = rand_u64();
	struct rng rng;

	(void)state;
	rng_seed(&rng, seed);
	for (int i = 0; i < 20000; i++) {
		char text[64];
		double v, back;
		uint64_t bits = rng_next(&rng);

		/* Half of them of everyday size, which takes the fast way. */
		if (i % 2)
			v = (double)(int64_t)(bits >> 24) / 1e6;
		else
			memcpy(&v, &bits, sizeof(v));
		if (!isfinite(v))
			continue;
		snprintf(text, sizeof(text), "%.17g", v);
		if (!str_to_double(str_from(text), &back) || memcmp(&v, &back, sizeof(v)) != 0)
			fail_msg("seed %" PRIu64 ": '%s' came back as %.17g", seed, text, back);
		snprintf(text, sizeof(text), "%.6f", v);
		double expected = strtod(text, NULL);
		if (!str_to_double(str_from(text), &back) || expected != back)
			fail_msg("seed %" PRIu64 ": '%s' came back as %.17g", seed, text, back);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_numbers_are_read_to_their_limits),
		cmocka_unit_test(what_is_not_a_whole_number_is_refused_and_changes_nothing),
		cmocka_unit_test(decimals_are_read),
		cmocka_unit_test(what_is_not_a_finite_decimal_is_refused_and_changes_nothing),
		cmocka_unit_test(a_decimal_of_unreasonable_length_is_refused),
		cmocka_unit_test(only_the_view_is_read),
		cmocka_unit_test(every_double_survives_the_way_through_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
