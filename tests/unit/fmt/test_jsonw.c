#include "fmt_test.h"

#include <float.h>
#include <math.h>

#include "fmt/jsonw.h"

struct fixture {
	struct buf out;
	struct jsonw w;
};

static void fixture_init(struct fixture *f)
{
	buf_init(&f->out, 1 << 16);
	jsonw_init(&f->w, &f->out);
}

static void fixture_release(struct fixture *f)
{
	buf_release(&f->out);
}

static void commas_stand_between_values_only(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	(void)state;

	fixture_init(&f);
	jsonw_open(&f.w, '{');
	jsonw_kstr(&f.w, "s", STR("x"));
	jsonw_kz(&f.w, "z", "y");
	jsonw_kz(&f.w, "none", NULL);
	jsonw_kint(&f.w, "i", INT64_MIN);
	jsonw_kdouble(&f.w, "d", 0.5);
	jsonw_kbool(&f.w, "t", true);
	jsonw_key(&f.w, "list");
	jsonw_open(&f.w, '[');
	jsonw_open(&f.w, '[');
	jsonw_close(&f.w);
	jsonw_open(&f.w, '{');
	jsonw_close(&f.w);
	jsonw_null(&f.w);
	jsonw_bool(&f.w, false);
	jsonw_raw(&f.w, STR("{\"raw\":1}"));
	jsonw_int(&f.w, -1);
	jsonw_z(&f.w, "z");
	jsonw_close(&f.w);
	jsonw_key_str(&f.w, (struct str){"lasting", 4});
	jsonw_str(&f.w, STR(""));
	jsonw_close(&f.w);
	assert_string_equal(
		buf_str(&f.out).p,
		"{\"s\":\"x\",\"z\":\"y\",\"none\":null,\"i\":-9223372036854775808,\"d\":0.5,\"t\":true,\"list\":[[],{},null,false,{\"raw\":1},-1,\"z\"],\"last\":\"\"}");
}

static void text_is_escaped(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	(void)state;

	fixture_init(&f);
	jsonw_str(&f.w, STR("\"\\/\b\f\n\r\t\x01\x1f\x7f\0\xc3\xa9\xf0\x9f\x9a\xa3"));
	assert_string_equal(
		buf_str(&f.out).p,
		"\"\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000\xc3\xa9\xf0\x9f\x9a\xa3\"");
}

static void bytes_that_are_not_utf8_are_replaced(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	(void)state;

	fixture_init(&f);
	jsonw_str(&f.w, STR("a\xff\xc3"
			    "b\xed\xa0\x80\xe2\x82"));
	assert_string_equal(buf_str(&f.out).p,
			    "\"a\xEF\xBF\xBD\xEF\xBF\xBD"
			    "b\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
	assert_true(str_is_utf8(buf_str(&f.out)));
}

static void doubles_are_as_short_as_they_can_be(void **state)
{
	static const struct {
		double d;
		const char *text;
	} cases[] = {
		{0.1, "0.1"},
		{1.0, "1.0"},
		{-0.0, "-0.0"},
		{100.0, "100.0"},
		{1e22, "1e+22"},
		{1e15, "1e+15"},
		{123456789012345.0, "123456789012345.0"},
		{0.1 + 0.2, "0.30000000000000004"},
		{5e-324, "5e-324"},
		{DBL_MIN, "2.2250738585072014e-308"},
		{DBL_MAX, "1.7976931348623157e+308"},
		{1e-7, "1e-07"},
		{NAN, "null"},
		{INFINITY, "null"},
		{-INFINITY, "null"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(fixture_release) struct fixture f;

		fixture_init(&f);
		jsonw_double(&f.w, cases[i].d);
		assert_string_equal(buf_str(&f.out).p, cases[i].text);
	}
}

static void every_double_reads_back_as_itself(void **state)
{
	struct rng r;
	(void)state;

	seed_rng(&r);
	for (int i = 0; i < 20000; i++) {
		CLEANUP(fixture_release) struct fixture f;
		uint64_t bits = rng_next(&r) >> (rng_below(&r, 4) == 0 ? 12 : 0);
		double d;

		memcpy(&d, &bits, sizeof(d));
		if (!isfinite(d))
			continue;
		fixture_init(&f);
		jsonw_double(&f.w, d);
		double back = strtod(buf_str(&f.out).p, NULL);
		assert_memory_equal(&back, &d, sizeof(d));
	}
}

static void a_full_buffer_says_so(void **state)
{
	struct buf out;
	struct jsonw w;
	(void)state;

	buf_init(&out, 8);
	jsonw_init(&w, &out);
	jsonw_open(&w, '[');
	for (int i = 0; i < 100; i++)
		jsonw_int(&w, 12345);
	jsonw_close(&w);
	assert_true(out.overflow);
	assert_true(out.n <= 8);
	buf_release(&out);
}

static void any_parsed_tree_can_be_written(void **state)
{
	CLEANUP(fixture_release) struct fixture f;
	(void)state;

	fixture_init(&f);
	for (int i = 0; i < JSONW_MAX_DEPTH; i++)
		jsonw_open(&f.w, '[');
	for (int i = 0; i < JSONW_MAX_DEPTH; i++)
		jsonw_close(&f.w);
	assert_int_equal(f.out.n, 2 * JSONW_MAX_DEPTH);
	assert_true(JSONW_MAX_DEPTH > DOC_MAX_DEPTH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commas_stand_between_values_only),
		cmocka_unit_test(text_is_escaped),
		cmocka_unit_test(bytes_that_are_not_utf8_are_replaced),
		cmocka_unit_test(doubles_are_as_short_as_they_can_be),
		cmocka_unit_test(every_double_reads_back_as_itself),
		cmocka_unit_test(a_full_buffer_says_so),
		cmocka_unit_test(any_parsed_tree_can_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
