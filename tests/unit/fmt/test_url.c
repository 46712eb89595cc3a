#include "fmt_test.h"

#include "fmt/url.h"

static void only_unreserved_bytes_stay(void **state)
{
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, 1000);
	url_encode(&out, STR("AZaz09-._~ /?#[]@!$&'()*+,;=%\"\0\xc3\xa9"));
	assert_string_equal(
		buf_str(&out).p,
		"AZaz09-._~%20%2F%3F%23%5B%5D%40%21%24%26%27%28%29%2A%2B%2C%3B%3D%25%22%00%C3%A9");
}

static void decoding_is_strict(void **state)
{
	static const struct {
		const char *text;
		bool plus;
		const char *decoded; /* NULL: refused */
	} cases[] = {
		{"a%20b", false, "a b"}, {"a+b", false, "a+b"},		{"a+b", true, "a b"},
		{"%2B", true, "+"},	 {"%c3%A9", false, "\xc3\xa9"}, {"", false, ""},
		{"%", false, NULL},	 {"%2", false, NULL},		{"%2g", false, NULL},
		{"%-1", false, NULL},	 {"% 1", false, NULL},		{"a%00b", false, NULL},
		{"%%20", false, NULL},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(buf_release) struct buf out;

		buf_init(&out, 1000);
		bool good = url_decode(&out, str_from(cases[i].text), cases[i].plus);
		assert_int_equal(good, cases[i].decoded != NULL);
		if (good)
			assert_string_equal(buf_str(&out).p, cases[i].decoded);
	}
	CLEANUP(buf_release) struct buf out;

	buf_init(&out, 1000);
	assert_false(url_decode(&out, STR("a\0b"), false));
}

static void more_than_the_buffer_holds_is_refused(void **state)
{
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, 2);
	assert_false(url_decode(&out, STR("abc"), false));
}

static void any_text_survives_the_round_trip(void **state)
{
	struct rng r;
	(void)state;

	seed_rng(&r);
	for (int i = 0; i < 2000; i++) {
		CLEANUP(buf_release) struct buf text;
		CLEANUP(buf_release) struct buf coded;
		CLEANUP(buf_release) struct buf back;
		size_t n = (size_t)rng_below(&r, 40);

		buf_init(&text, 100);
		buf_init(&coded, 1000);
		buf_init(&back, 100);
		for (size_t j = 0; j < n; j++)
			buf_addc(&text, (char)(1 + rng_below(&r, 255)));
		url_encode(&coded, buf_str(&text));
		assert_true(url_decode(&back, buf_str(&coded), rng_below(&r, 2)));
		assert_true(str_eq(buf_str(&text), buf_str(&back)));
	}
}

static void a_query_is_a_list_of_pairs(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct url_query q;
	(void)state;

	assert_true(query_parse(STR("a=1&b=x+y%26z&&flag&a=2&e=&=v&c=d=e&"), a, &q));
	assert_int_equal(q.n, 7);
	assert_true(str_is(query_get(&q, "a", STR("none")), "1"));
	assert_true(str_is(query_get(&q, "b", STR("none")), "x y&z"));
	assert_true(str_is(query_get(&q, "flag", STR("none")), ""));
	assert_true(str_is(query_get(&q, "e", STR("none")), ""));
	assert_true(str_is(query_get(&q, "c", STR("none")), "d=e"));
	assert_true(str_is(query_get(&q, "", STR("none")), "v"));
	assert_true(str_is(query_get(&q, "zz", STR("none")), "none"));
}

static void an_empty_query_has_no_pairs(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct url_query q;
	(void)state;

	assert_true(query_parse(STR(""), a, &q));
	assert_int_equal(q.n, 0);
	assert_true(query_parse((struct str){0}, a, &q));
	assert_int_equal(q.n, 0);
	assert_true(query_parse(STR("&&"), a, &q));
	assert_int_equal(q.n, 0);
}

static void a_bad_query_is_refused(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf text;
	struct url_query q = {.n = 99};
	(void)state;

	assert_false(query_parse(STR("a=%zz"), a, &q));
	assert_false(query_parse(STR("%=1"), a, &q));
	assert_false(query_parse(STR("a=%00"), a, &q));
	buf_init(&text, 1 << 20);
	for (int i = 0; i < QUERY_MAX_PAIRS; i++)
		buf_addz(&text, "a=1&");
	assert_int_equal(q.n, 99);
	assert_true(query_parse(buf_str(&text), a, &q));
	assert_int_equal(q.n, QUERY_MAX_PAIRS);
	buf_addz(&text, "a=1");
	assert_false(query_parse(buf_str(&text), a, &q));
	buf_reset(&text);
	for (int i = 0; i < 70000; i++)
		buf_addc(&text, 'a');
	assert_false(query_parse(buf_str(&text), a, &q));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_unreserved_bytes_stay),
		cmocka_unit_test(decoding_is_strict),
		cmocka_unit_test(more_than_the_buffer_holds_is_refused),
		cmocka_unit_test(any_text_survives_the_round_trip),
		cmocka_unit_test(a_query_is_a_list_of_pairs),
		cmocka_unit_test(an_empty_query_has_no_pairs),
		cmocka_unit_test(a_bad_query_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
