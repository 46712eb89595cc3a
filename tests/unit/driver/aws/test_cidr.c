#include "unit.h"

#include <string.h>

#include "driver/aws/cidr.h"

static struct cidr range(const char *text)
{
	struct cidr c;

	if (!cidr_parse(str_from(text), &c))
		fail_msg("'%s' is no range", text);
	return c;
}

static void a_range_is_read_and_written(void **state)
{
	static const char *const good[] = {"10.0.0.0/8", "172.31.16.0/20", "1.2.3.4/32",
					   "0.0.0.0/0"};
	static const char *const bad[] = {
		"10.0.0.0", "10.0.0.1/8", "10.0.0.0/33",  "10.0.0.0/-1",	  "300.0.0.0/8",
		"10.0.0/8", "",		  "10.0.0.0/8/8", "1.2.3.4.5.6.7.8.9/32", "10.0.0.0/",
		"fe80::/64"};
	char text[CIDR_TEXT];
	struct cidr c;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		cidr_text(range(good[i]), text);
		assert_string_equal(text, good[i]);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		if (cidr_parse(str_from(bad[i]), &c))
			fail_msg("'%s' was taken", bad[i]);
}

static void ranges_overlap_if_one_holds_the_other(void **state)
{
	(void)state;
	assert_true(cidr_overlap(range("10.0.0.0/8"), range("10.9.0.0/16")));
	assert_true(cidr_overlap(range("10.9.0.0/16"), range("10.0.0.0/8")));
	assert_true(cidr_overlap(range("0.0.0.0/0"), range("10.9.0.0/16")));
	assert_false(cidr_overlap(range("10.0.0.0/9"), range("10.128.0.0/9")));
	assert_true(cidr_overlap(range("10.0.0.0/28"), range("10.0.0.0/28")));
}

static void a_subnet_is_as_large_as_its_run(void **state)
{
	static const struct {
		int machines, bits;
	} rows[] = {{1, 28},  {6, 28},	  {7, 27},    {22, 27},	  {23, 26},	{54, 26},
		    {55, 25}, {1000, 22}, {1014, 22}, {1015, 21}, {1000000, 16}};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(cidr_bits_for(rows[i].machines), rows[i].bits);
}

static void a_free_range_touches_nobodys(void **state)
{
	struct cidr space = range("172.31.0.0/16"), got;
	struct cidr taken[] = {range("172.31.0.0/20"), range("172.31.255.240/28"),
			       range("172.31.255.0/25"), range("172.31.255.128/26")};
	char text[CIDR_TEXT];

	(void)state;
	assert_true(cidr_free(&space, 1, taken, COUNT(taken), 28, 0, &got));
	cidr_text(got, text);
	assert_string_equal(text, "172.31.255.224/28");
	assert_true(cidr_free(&space, 1, taken, COUNT(taken), 24, 0, &got));
	cidr_text(got, text);
	assert_string_equal(text, "172.31.254.0/24");
	assert_true(cidr_free(&space, 1, taken, COUNT(taken), 26, 0, &got));
	cidr_text(got, text);
	assert_string_equal(text, "172.31.254.192/26");
	assert_true(cidr_free(&space, 1, NULL, 0, 16, 0, &got));
	assert_false(cidr_free(&space, 1, taken, COUNT(taken), 16, 0, &got));
	assert_false(cidr_free(&space, 1, NULL, 0, 15, 0, &got));
}

static void every_range_is_used_before_there_is_none(void **state)
{
	struct cidr spaces[] = {range("10.0.0.0/26"), range("10.1.0.0/27")}, taken[6];
	size_t n = 0;

	(void)state;
	while (n < COUNT(taken)) {
		assert_true(cidr_free(spaces, 2, taken, n, 28, n * 7, &taken[n]));
		for (size_t i = 0; i < n; i++)
			assert_false(cidr_overlap(taken[i], taken[n]));
		n++;
	}
	struct cidr got;

	assert_false(cidr_free(spaces, 2, taken, n, 28, 0, &got));
	assert_false(cidr_free(spaces, 0, NULL, 0, 28, 0, &got));
}

static void who_skips_others_finds_others(void **state)
{
	struct cidr space = range("10.0.0.0/26"), taken = range("10.0.0.0/28"), got;
	static const char *const wanted[] = {"10.0.0.48/28", "10.0.0.32/28", "10.0.0.16/28",
					     "10.0.0.48/28", "10.0.0.32/28", "10.0.0.16/28"};
	char text[CIDR_TEXT];

	(void)state;
	for (size_t i = 0; i < COUNT(wanted); i++) {
		assert_true(cidr_free(&space, 1, &taken, 1, 28, i, &got));
		cidr_text(got, text);
		assert_string_equal(text, wanted[i]);
	}
	space = range("0.0.0.0/0");
	assert_true(cidr_free(&space, 1, &taken, 1, 16, UINT64_MAX, &got));
	assert_false(cidr_overlap(got, taken));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_is_read_and_written),
		cmocka_unit_test(ranges_overlap_if_one_holds_the_other),
		cmocka_unit_test(a_subnet_is_as_large_as_its_run),
		cmocka_unit_test(a_free_range_touches_nobodys),
		cmocka_unit_test(every_range_is_used_before_there_is_none),
		cmocka_unit_test(who_skips_others_finds_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
