#include "unit.h"

#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

static void every_scalar_value_goes_both_ways(void **state)
{
	(void)state;
	for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
		char text[4];
		uint32_t back = 0;
		size_t n = utf8_encode(cp, text);

		if (cp >= 0xd800 && cp <= 0xdfff) {
			assert_int_equal(n, 0);
			continue;
		}
		if (utf8_decode(text, n, &back) != n || back != cp || n == 0)
			fail_msg("U+%04X came back as U+%04X", cp, back);
		/* A byte less is not a character. */
		if (n > 1 && utf8_decode(text, n - 1, &back) != 0)
			fail_msg("U+%04X was taken in part", cp);
	}
}

static void nothing_above_unicode_is_written(void **state)
{
	char text[4];

	(void)state;
	assert_int_equal(utf8_encode(0x110000, text), 0);
	assert_int_equal(utf8_encode(UINT32_MAX, text), 0);
	assert_int_equal(utf8_decode(text, 0, &(uint32_t){0}), 0);
}

static void every_text_of_two_bytes_is_judged_rightly(void **state)
{
	(void)state;
	for (unsigned a = 0; a < 256; a++)
		for (unsigned b = 0; b < 256; b++) {
			char text[2] = {(char)a, (char)b};
			bool right = (a < 0x80 && b < 0x80) ||
				     (a >= 0xc2 && a <= 0xdf && b >= 0x80 && b <= 0xbf);

			if (str_is_utf8((struct str){text, 2}) != right)
				fail_msg("%02x %02x", a, b);
		}
}

static void every_text_of_three_bytes_is_judged_rightly(void **state)
{
	(void)state;
	/* The table of Unicode 3.9, D92, for the first two bytes of three. */
	for (unsigned a = 0xe0; a <= 0xff; a++)
		for (unsigned b = 0; b < 256; b++)
			for (unsigned c = 0x7e; c <= 0xc1; c++) {
				char text[3] = {(char)a, (char)b, (char)c};
				unsigned low = a == 0xe0 ? 0xa0 : 0x80;
				unsigned high = a == 0xed ? 0x9f : 0xbf;
				bool right = a <= 0xef && b >= low && b <= high && c >= 0x80 &&
					     c <= 0xbf;

				if (str_is_utf8((struct str){text, 3}) != right)
					fail_msg("%02x %02x %02x", a, b, c);
			}
}

static void every_first_half_of_four_bytes_is_judged_rightly(void **state)
{
	(void)state;
	for (unsigned a = 0xf0; a <= 0xff; a++)
		for (unsigned b = 0; b < 256; b++) {
			char text[4] = {(char)a, (char)b, (char)0x80, (char)0xbf};
			unsigned low = a == 0xf0 ? 0x90 : 0x80;
			unsigned high = a == 0xf4 ? 0x8f : 0xbf;
			bool right = a <= 0xf4 && b >= low && b <= high;

			if (str_is_utf8((struct str){text, 4}) != right)
				fail_msg("%02x %02x", a, b);
			text[3] = 'x';
			assert_false(str_is_utf8((struct str){text, 4}));
		}
}

static void a_bad_byte_is_found_wherever_it_stands(void **state)
{
	char text[40];

	(void)state;
	for (size_t n = 1; n <= sizeof(text); n++)
		for (size_t at = 0; at < n; at++) {
			memset(text, 'a', sizeof(text));
			assert_true(str_is_utf8((struct str){text, n}));
			text[at] = (char)0x80;
			assert_false(str_is_utf8((struct str){text, n}));
		}
	assert_true(str_is_utf8((struct str){NULL, 0}));
	assert_true(str_is_utf8(STR("aaaaaaa\xe2\x82\xac"
				    "aaaaaaaaaa\xf0\x9f\x9a\xa3")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_scalar_value_goes_both_ways),
		cmocka_unit_test(nothing_above_unicode_is_written),
		cmocka_unit_test(every_text_of_two_bytes_is_judged_rightly),
		cmocka_unit_test(every_text_of_three_bytes_is_judged_rightly),
		cmocka_unit_test(every_first_half_of_four_bytes_is_judged_rightly),
		cmocka_unit_test(a_bad_byte_is_found_wherever_it_stands),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
