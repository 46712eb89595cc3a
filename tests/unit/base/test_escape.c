#include "unit.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/escape.h"
#include "base/rand.h"
#include "base/utf8.h"

static void expect(struct str in, const char *out)
{
	struct buf b;

	buf_init(&b, 4096);
	escape_terminal(&b, in);
	assert_string_equal(buf_str(&b).p, out);
	assert_int_equal(b.n, strlen(out));
	buf_release(&b);
}

/* The code points that may never reach a terminal, written independently of the code under test. */
static bool is_forbidden(uint32_t cp)
{
	return (cp < 0x20 && cp != '\t') || (cp >= 0x7f && cp < 0xa0) || cp == 0x061c ||
	       cp == 0x200e || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e) ||
	       (cp >= 0x2066 && cp <= 0x2069) || cp == 0x2028 || cp == 0x2029;
}

static void assert_harmless(struct str out)
{
	for (size_t i = 0; i < out.n;) {
		uint32_t cp = 0;
		size_t len = utf8_decode(out.p + i, out.n - i, &cp);

		if (!len)
			fail_msg("a byte that is not UTF-8 got out");
		if (is_forbidden(cp))
			fail_msg("U+%04X got out", cp);
		i += len;
	}
}

static void printable_text_stays_as_it_is(void **state)
{
	(void)state;
	expect(STR(""), "");
	expect(STR("loss=0.5\tstep 3 \\x1b ~"), "loss=0.5\tstep 3 \\x1b ~");
	expect(STR("na\xc3\xafve \xe2\x82\xac \xe6\xbc\xa2 \xf0\x9f\x9a\xa3"),
	       "na\xc3\xafve \xe2\x82\xac \xe6\xbc\xa2 \xf0\x9f\x9a\xa3");
	/* Joiners belong to scripts and pictures. */
	expect(STR("\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb"),
	       "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb");
}

static void control_bytes_are_spelled_out(void **state)
{
	(void)state;
	expect(STR("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
	expect(STR("\x1b]0;title\x07"), "\\x1b]0;title\\x07");
	expect(STR("a\nb\r\0c\x7f"), "a\\x0ab\\x0d\\x00c\\x7f");
}

static void c1_controls_are_spelled_out_raw_and_encoded(void **state)
{
	(void)state;
	expect(STR("\x9b"
		   "31m"),
	       "\\x9b31m");
	expect(STR("\xc2\x9b"
		   "31m"),
	       "\\u{009b}31m");
	expect(STR("\xc2\x85"), "\\u{0085}");
	expect(STR("\xc2\xa0"), "\xc2\xa0");
}

static void text_that_reads_otherwise_than_it_is_written_is_spelled_out(void **state)
{
	(void)state;
	expect(STR("a\xe2\x80\xae"
		   "b"),
	       "a\\u{202e}b");
	expect(STR("\xe2\x81\xa6"), "\\u{2066}");
	expect(STR("\xd8\x9c"), "\\u{061c}");
	expect(STR("\xe2\x80\xa8"), "\\u{2028}");
	expect(STR("\xf3\xa0\x81\x81"), "\\u{e0041}");
	expect(STR("\xf4\x8f\xbf\xbf"), "\\u{10ffff}");
	expect(STR("\xef\xbb\xbf"), "\\u{feff}");
}

static void bad_bytes_are_spelled_out_one_by_one(void **state)
{
	(void)state;
	expect(STR("\xff\xc3"), "\\xff\\xc3");
	expect(STR("\xe2\x82"
		   "a"),
	       "\\xe2\\x82a");
	/* An overlong ESC is not a way in. */
	expect(STR("\xc0\x9b"), "\\xc0\\x9b");
	expect(STR("\xe0\x80\x9b"), "\\xe0\\x80\\x9b");
	expect(STR("\xed\xa0\x80"), "\\xed\\xa0\\x80");
}

static void no_code_point_gets_out_that_a_terminal_obeys(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 64);
	for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
		char text[4];
		size_t n = utf8_encode(cp, text);

		if (!n)
			continue;
		buf_reset(&b);
		escape_terminal(&b, (struct str){text, n});
		assert_harmless(buf_str(&b));
		if (is_forbidden(cp) && b.p[0] != '\\')
			fail_msg("U+%04X was not spelled out", cp);
	}
	buf_release(&b);
}

static void no_random_bytes_get_out_that_a_terminal_obeys(void **state)
{
	uint64_t seed = rand_u64();
	struct rng rng;
	struct buf b;

	(void)state;
	print_message("seed %" PRIu64 "\n", seed);
	rng_seed(&rng, seed);
	buf_init(&b, 4096);
	for (int i = 0; i < 20000; i++) {
		static const unsigned char nasty[] = {0x1b, 0x9b, 0xc2, 0x80, 0xe2, 0x81, 0xa6,
						      0xae, 0xd8, 0x9c, 0xf3, 0xa0, 0xc0, 0xff};
		char text[32];
		size_t n = (size_t)rng_below(&rng, sizeof(text));

		for (size_t k = 0; k < n; k++)
			text[k] = rng_below(&rng, 2) ? (char)nasty[rng_below(&rng, sizeof(nasty))]
						     : (char)rng_next(&rng);
		buf_reset(&b);
		escape_terminal(&b, (struct str){text, n});
		assert_false(b.overflow);
		assert_harmless(buf_str(&b));
	}
	buf_release(&b);
}

static void a_full_buffer_says_so(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 6);
	escape_terminal(&b, STR("ab\x1b\x1b"));
	assert_true(b.overflow);
	assert_string_equal(b.p, "ab\\x1b");
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(printable_text_stays_as_it_is),
		cmocka_unit_test(control_bytes_are_spelled_out),
		cmocka_unit_test(c1_controls_are_spelled_out_raw_and_encoded),
		cmocka_unit_test(text_that_reads_otherwise_than_it_is_written_is_spelled_out),
		cmocka_unit_test(bad_bytes_are_spelled_out_one_by_one),
		cmocka_unit_test(no_code_point_gets_out_that_a_terminal_obeys),
		cmocka_unit_test(no_random_bytes_get_out_that_a_terminal_obeys),
		cmocka_unit_test(a_full_buffer_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
