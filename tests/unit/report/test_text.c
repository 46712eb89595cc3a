/* Outside bytes in a page and in a table, and numbers as text. */
#include "unit.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/rand.h"
#include "report/text.h"

typedef void (*add_fn)(struct buf *out, struct str text);

static void assert_text(add_fn add, struct str in, const char *want)
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, 1u << 20);
	add(&b, in);
	if (!str_is(buf_str(&b), want))
		fail_msg("got '%.*s', expected '%s'", STR_ARG(buf_str(&b)), want);
}

static void a_page_gets_no_markup_from_outside(void **state)
{
	(void)state;
	assert_text(html_text, STR("<script>alert(1)</script>"),
		    "&lt;script&gt;alert(1)&lt;/script&gt;");
	assert_text(html_text, STR("\" onload='x' &amp;"), "&quot; onload=&#39;x&#39; &amp;amp;");
	assert_text(html_text, STR("</title></style><!--"), "&lt;/title&gt;&lt;/style&gt;&lt;!--");
	assert_text(html_text, STR("plain é 漢"), "plain é 漢");
	assert_text(html_text, STR(""), "");
}

static void bytes_that_a_browser_must_not_see_are_shown_as_text(void **state)
{
	(void)state;
	assert_text(html_text, STR("a\0b\x1b[31m"), "a\\x00b\\x1b[31m");
	assert_text(html_text, STR("\xff\xfe<"), "\\xff\\xfe&lt;");
	assert_text(html_text, STR("\u202eevil"), "\\u{202e}evil");
	assert_text(html_text, STR("\xc0\xbcscript\xc0\xbe"), "\\xc0\\xbcscript\\xc0\\xbe");
}

static void lines_stay_lines(void **state)
{
	(void)state;
	assert_text(html_lines, STR("a<b\n\nc"), "a&lt;b\n\nc\n");
	assert_text(html_lines, STR("a\r\n"), "a\\x0d\n");
	assert_text(html_lines, STR(""), "");
}

/* Rule: no outside text comes through with a character that means something in HTML. */
static void random_bytes_never_give_markup(void **state)
{
	struct rng rng;
	char in[64];

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < 20000; i++) {
		CLEANUP(buf_release) struct buf b = {0};
		size_t n = rng_next(&rng) % sizeof(in);
		for (size_t k = 0; k < n; k++)
			in[k] = (char)(rng_next(&rng) >> 24);
		buf_init(&b, 4096);
		html_text(&b, (struct str){in, n});
		for (size_t k = 0; k < b.n; k++)
			if (strchr("<>\"'", b.p[k]) ||
			    ((unsigned char)b.p[k] < 0x20 && b.p[k] != '\t'))
				fail_msg("round %d: byte %02x", i, (unsigned char)b.p[k]);
		assert_true(str_is_utf8(buf_str(&b)));
	}
}

static void a_field_is_quoted_where_rfc_4180_wants_it(void **state)
{
	(void)state;
	assert_text(csv_text, STR("loss"), "loss");
	assert_text(csv_text, STR("a,b"), "\"a,b\"");
	assert_text(csv_text, STR("say \"x\""), "\"say \"\"x\"\"\"");
	assert_text(csv_text, STR("two\nlines"), "\"two\nlines\"");
	assert_text(csv_text, STR("cr\rhere"), "\"cr\rhere\"");
	assert_text(csv_text, STR(""), "");
	assert_text(csv_text, STR("a=b"), "a=b");
}

static void a_field_is_never_a_formula(void **state)
{
	(void)state;
	assert_text(csv_text, STR("=cmd|' /C calc'!A0"), "\"'=cmd|' /C calc'!A0\"");
	assert_text(csv_text, STR("+1"), "\"'+1\"");
	assert_text(csv_text, STR("-1,2"), "\"'-1,2\"");
	assert_text(csv_text, STR("@SUM(A1)"), "\"'@SUM(A1)\"");
	assert_text(csv_text, STR("\t=1"), "\"'\t=1\"");
	assert_text(csv_text, STR("\r=1\""), "\"'\r=1\"\"\"");
}

static void assert_number(double v, const char *want)
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, 4096);
	number_exact(&b, v);
	if (!str_is(buf_str(&b), want))
		fail_msg("%.17g: got '%.*s', expected '%s'", v, STR_ARG(buf_str(&b)), want);
}

static void numbers_are_as_short_as_they_can_be(void **state)
{
	(void)state;
	assert_number(0, "0");
	assert_number(-0.0, "0");
	assert_number(1, "1");
	assert_number(-12, "-12");
	assert_number(0.1, "0.1");
	assert_number(-0.05, "-0.05");
	assert_number(99.9991, "99.9991");
	assert_number(0.1 + 0.2, "0.30000000000000004");
	assert_number(1e300, "1e+300");
	assert_number(5e-324, "5e-324");
	assert_number(1e-6, "1e-06");
	assert_number((double)NAN, "nan");
	assert_number((double)INFINITY, "inf");
	assert_number((double)-INFINITY, "-inf");
}

/* Rule: what is written reads back as the same number. */
static void numbers_come_back_as_they_were(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 11);
	for (int i = 0; i < 200000; i++) {
		CLEANUP(buf_release) struct buf b = {0};
		uint64_t bits = rng_next(&rng);
		double v = 0;
		if (i % 2)
			memcpy(&v, &bits, sizeof(v));
		else /* decimals as jobs print them */
			v = (double)(int64_t)(bits % 2000000000) / 1e6 - 1000;
		if (!isfinite(v))
			continue;
		buf_init(&b, 4096);
		number_exact(&b, v);
		if (strtod(b.p, NULL) != v)
			fail_msg("%.17g became %s", v, b.p);
	}
}

static void times_are_written_in_utc_with_milliseconds(void **state)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct time_text last = {0};

	(void)state;
	buf_init(&b, 4096);
	time_add(&b, &last, 0);
	buf_addc(&b, ' ');
	time_add(&b, &last, 7);
	buf_addc(&b, ' ');
	time_add(&b, &last, 1794780443999);
	buf_addc(&b, ' ');
	time_add(&b, &last, 1794780444001);
	assert_string_equal(
		b.p, "1970-01-01T00:00:00.000Z 1970-01-01T00:00:00.007Z 2026-11-15T22:07:23.999Z "
		     "2026-11-15T22:07:24.001Z");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_page_gets_no_markup_from_outside),
		cmocka_unit_test(bytes_that_a_browser_must_not_see_are_shown_as_text),
		cmocka_unit_test(lines_stay_lines),
		cmocka_unit_test(random_bytes_never_give_markup),
		cmocka_unit_test(a_field_is_quoted_where_rfc_4180_wants_it),
		cmocka_unit_test(a_field_is_never_a_formula),
		cmocka_unit_test(numbers_are_as_short_as_they_can_be),
		cmocka_unit_test(numbers_come_back_as_they_were),
		cmocka_unit_test(times_are_written_in_utc_with_milliseconds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
