#include "fmt_test.h"

#include <math.h>

/* Values. */

static void every_kind_of_value_is_read(void **state)
{
	(void)state;
	assert_parses_to(
		json_parse,
		STR(" { \"a\" : [ 1 , -2.5e3 , \"x\" , true , false , null , { } , [ ] ] } "),
		"{\"a\":[1,-2.5e3,\"x\",true,false,null,{},[]]}");
}

static void any_value_may_stand_alone(void **state)
{
	(void)state;
	assert_parses_to(json_parse, STR("\"x\""), "\"x\"");
	assert_parses_to(json_parse, STR("7"), "7");
	assert_parses_to(json_parse, STR("null\n"), "null");
}

static void keys_keep_their_order(void **state)
{
	(void)state;
	assert_parses_to(json_parse, STR("{\"z\":1,\"a\":2,\"\":3}"), "{\"z\":1,\"a\":2,\"\":3}");
}

static void a_number_without_fraction_is_whole(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	assert_int_equal(parse_ok(json_parse, a, STR("-9223372036854775808"))->i, INT64_MIN);
	assert_int_equal(parse_ok(json_parse, a, STR("9223372036854775807"))->i, INT64_MAX);
	assert_int_equal(parse_ok(json_parse, a, STR("-0"))->type, DOC_INT);
	assert_int_equal(parse_ok(json_parse, a, STR("1e0"))->type, DOC_FLOAT);
	assert_int_equal(parse_ok(json_parse, a, STR("1.0"))->type, DOC_FLOAT);
	assert_true(parse_ok(json_parse, a, STR("5e-324"))->f == 5e-324);
}

static void escapes_become_utf8(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct doc *d = parse_ok(json_parse, a,
				 STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\u20AC\\uD83D\\udea3\""));
	assert_string_equal(d->s.p, "\"\\/\b\f\n\r\t\xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\xa3");
	d = parse_ok(json_parse, a, STR("\"a\\u0000b\""));
	assert_int_equal(d->s.n, 3);
	assert_memory_equal(d->s.p, "a\0b", 4);
}

static void a_byte_order_mark_at_the_start_is_skipped(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct doc *d = parse_ok(json_parse, a, STR("\xEF\xBB\xBF[1]"));
	assert_pos(d->pos, 1, 1);
}

/* Positions. */

static void every_value_and_key_knows_its_place(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct doc *d =
		parse_ok(json_parse, a, STR("{\n  \"\xc3\xa9\": [1,\r\n  {\"b\": \"x\"}]\n}"));
	assert_pos(d->pos, 1, 1);
	assert_pos(d->table.v[0].key_pos, 2, 3);
	struct doc *list = d->table.v[0].value;
	assert_pos(list->pos, 2, 9); /* the é is two bytes */
	assert_pos(list->array.v[0]->pos, 2, 10);
	assert_pos(list->array.v[1]->pos, 3, 3);
	assert_pos(list->array.v[1]->table.v[0].value->pos, 3, 9);
}

/* What is refused. */

static void broken_text_is_refused_where_it_breaks(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"", "1:1: found the end of the text, expected a value"},
		{"{\"a\": yes}", "1:7: found 'yes', expected a value (a string needs quotes)"},
		{"{'a': 1}", "1:2: found ''', expected a name in quotes or '}'"},
		{"[1,]", "1:4: found ']', expected a value after the comma"},
		{"{\"a\":1,}", "1:8: found '}', expected a name in quotes after the comma"},
		{"{\"a\" 1}", "1:6: found '1', expected ':'"},
		{"[1 2]", "1:4: found '2', expected ',' or ']'"},
		{"{\"a\":1 \"b\":2}", "1:8: found '\"', expected ',' or '}'"},
		{"[1", "1:3: found the end of the text, expected ',' or ']'"},
		{"{\"a\":1", "1:7: found the end of the text, expected ',' or '}'"},
		{"{", "1:2: found the end of the text, expected a name in quotes or '}'"},
		{"\"ab", "1:4: found the end of the text, expected the end of the string"},
		{"\"a\nb\"", "1:3: found the end of the line, expected the end of the string"},
		{"\"a\tb\"", "1:3: found a tab, expected the end of the string"},
		{"\"a\x01\"",
		 "1:3: found the control character 0x01, expected the end of the string"},
		{"{\"a", "1:4: found the end of the text, expected the end of the string"},
		{"1 2", "1:3: found '2', expected the end of the text"},
		{"\n\n  \xc3\xa9", "3:3: found '\xc3\xa9', expected a value"},
		{"// no", "1:1: found '/', expected a value"},
		{"nul", "1:1: found 'nul', expected a value (a string needs quotes)"},
		{"NaN", "1:1: found 'NaN', expected a value (a string needs quotes)"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_refused(json_parse, str_from(cases[i].text), cases[i].message);
}

static void bad_numbers_are_refused(void **state)
{
	static const char *const words[] = {"01",  "-",	   "+1",  "1.",	  ".5", "1e",
					    "1e+", "0x10", "-01", "1.e3", "1_0"};
	(void)state;

	for (size_t i = 0; i < COUNT(words); i++) {
		CLEANUP(freep)
		char *message = xasprintf(
			"1:1: found '%s', expected a value (a string needs quotes)", words[i]);

		assert_refused(json_parse, str_from(words[i]), message);
	}
	assert_refused(
		json_parse, STR("[9223372036854775808]"),
		"1:2: found 9223372036854775808, expected a number within 64 bits (-2^63 to 2^63-1)");
	assert_refused(json_parse, STR("1e999"),
		       "1:1: found 1e999, expected a number within a 64-bit float");
}

static void bad_escapes_are_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"\"\\x\"",
		 "1:3: found 'x', expected one of \" \\ / b f n r t u after a backslash"},
		{"\"\\",
		 "1:3: found the end of the text, expected one of \" \\ / b f n r t u after a backslash"},
		{"\"\\u12\"", "1:6: found '\"', expected four hexadecimal digits after \\u"},
		{"\"\\u\xc3\xa9\"",
		 "1:4: found '\xc3\xa9', expected four hexadecimal digits after \\u"},
		{"\"\\u00g0\"", "1:6: found 'g', expected four hexadecimal digits after \\u"},
		{"\"\\ud800\\x0041\"", "1:2: found half of a surrogate pair, expected both"},
		{"\"\\ud800xu0041\"", "1:2: found half of a surrogate pair, expected both"},
		{"\"\\ud800\"", "1:2: found half of a surrogate pair, expected both"},
		{"\"\\udc00\"", "1:2: found half of a surrogate pair, expected both"},
		{"\"\\ud800\\u0041\"", "1:2: found half of a surrogate pair, expected both"},
		{"\"\\ud800\\u00\"",
		 "1:12: found '\"', expected four hexadecimal digits after \\u"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_refused(json_parse, str_from(cases[i].text), cases[i].message);
}

static void a_duplicate_key_is_refused(void **state)
{
	(void)state;
	assert_refused(json_parse, STR("{\"a\":1,\n \"\\u0061\":2}"),
		       "2:2: found the key 'a' again, expected it once (first at 1:2)");
	assert_parses_to(json_parse, STR("{\"a\":{\"a\":1},\"b\":{\"a\":1}}"),
			 "{\"a\":{\"a\":1},\"b\":{\"a\":1}}");
}

static void a_duplicate_is_found_in_a_table_of_any_size(void **state)
{
	(void)state;
	for (int n = 1; n < 40; n++) {
		for (int twice = 0; twice < n; twice++) {
			CLEANUP(buf_release) struct buf b;
			char message[120];
			int first = 0, last;

			buf_init(&b, 10000);
			buf_addz(&b, "{\"inner\":{\"k0\":0}");
			for (int i = 0; i < n; i++) {
				buf_addc(&b, ',');
				first = i == twice ? (int)b.n + 1 : first;
				buf_printf(&b, "\"k%d\":%d", i, i);
			}
			last = (int)b.n + 2;
			buf_printf(&b, ",\"k%d\":0}", twice);
			snprintf(
				message, sizeof(message),
				"1:%d: found the key 'k%d' again, expected it once (first at 1:%d)",
				last, twice, first);
			assert_refused(json_parse, buf_str(&b), message);
		}
	}
}

static void bytes_that_are_not_utf8_are_refused(void **state)
{
	(void)state;
	assert_refused(json_parse, STR("[\n\"\xff\"]"),
		       "2:2: found the byte 0xff, expected UTF-8 text");
	assert_refused(json_parse, STR("\"\xed\xa0\x80\""),
		       "1:2: found the byte 0xed, expected UTF-8 text");
	assert_refused(json_parse, STR("\"\xc0\x80\""),
		       "1:2: found the byte 0xc0, expected UTF-8 text");
	assert_refused(json_parse, STR("\"\xc3"), "1:2: found the byte 0xc3, expected UTF-8 text");
}

static void what_a_message_shows_cannot_steer_a_terminal(void **state)
{
	(void)state;
	assert_refused(json_parse, STR("{\"\\u001b[2J\":1,\"\\u001b[2J\":2}"),
		       "1:16: found the key '\\x1b[2J' again, expected it once (first at 1:2)");
	assert_refused(json_parse, STR("\xe2\x80\xae"), "1:1: found '\\u{202e}', expected a value");
}

static void a_long_word_is_cut_in_the_message(void **state)
{
	(void)state;
	assert_refused(
		json_parse, STR("abcdefghijabcdefghijabcdefghijabcdefghijabcdefghij"),
		"1:1: found 'abcdefghijabcdefghijabcdefghijabcdefghij...', expected a value (a string needs quotes)");
	/* Not in the middle of a character. */
	assert_refused(
		json_parse,
		STR("{\"abcdefghijabcdefghijabcdefghijabcdefghi\xe2\x82\xacxyz\":1,\"abcdefghijabcdefghijabcdefghijabcdefghi\xe2\x82\xacxyz\":1}"),
		"1:52: found the key 'abcdefghijabcdefghijabcdefghijabcdefghi...' again, expected it "
		"once (first at 1:2)");
}

/* Limits. */

static void depth_is_limited(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	(void)state;

	buf_init(&b, 1 << 20);
	add_nested(&b, DOC_MAX_DEPTH, "[", "", "]");
	parse_ok(json_parse, a, buf_str(&b));
	buf_reset(&b);
	add_nested(&b, DOC_MAX_DEPTH + 1, "[", "", "]");
	assert_refused(json_parse, buf_str(&b),
		       "1:65: found more than 64 levels, expected at most that many");
	buf_reset(&b);
	add_nested(&b, DOC_MAX_DEPTH + 1, "{\"a\":", "1", "}");
	assert_refused(json_parse, buf_str(&b),
		       "1:321: found more than 64 levels, expected at most that many");
	/* Beside each other is not within each other. */
	buf_reset(&b);
	buf_addc(&b, '[');
	for (int i = 0; i < 1000; i++)
		buf_addz(&b, "[],");
	buf_addz(&b, "0]");
	parse_ok(json_parse, a, buf_str(&b));
}

static void the_number_of_values_is_limited(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	(void)state;

	buf_init(&b, 1 << 20);
	buf_addc(&b, '[');
	for (int i = 0; i < DOC_MAX_NODES - 2; i++)
		buf_addz(&b, "1,");
	size_t n = b.n;
	buf_addz(&b, "1]");
	parse_ok(json_parse, a, buf_str(&b));
	b.n = n;
	buf_addz(&b, "1,1]");
	assert_refused(json_parse, buf_str(&b),
		       "1:200000: found more than 100000 values, expected at most that many");
	buf_reset(&b);
	buf_addc(&b, '[');
	for (int i = 0; i < DOC_MAX_NODES; i++)
		buf_addz(&b, "[],");
	assert_refused(json_parse, buf_str(&b),
		       "1:299999: found more than 100000 values, expected at most that many");
}

static void the_length_of_a_text_is_limited(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	(void)state;

	buf_init(&b, 1 << 21);
	for (int i = 0; i < DOC_MAX_BYTES - 1; i++)
		buf_addc(&b, ' ');
	buf_addc(&b, '1');
	assert_int_equal(parse_ok(json_parse, a, buf_str(&b))->i, 1);
	buf_addc(&b, ' ');
	assert_refused(json_parse, buf_str(&b),
		       "1:1: found a text of 1048577 bytes, expected at most 1048576");
}

/* Round trips. */

static void what_doc_to_json_writes_reads_back_the_same(void **state)
{
	struct rng r;
	(void)state;

	seed_rng(&r);
	for (int i = 0; i < 3000; i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf text;
		CLEANUP(buf_release) struct buf again;
		struct doc *d = doc_generate(&r, a, (struct doc_kinds){.nulls = true}, 5);

		buf_init(&text, 1 << 20);
		buf_init(&again, 1 << 20);
		doc_to_json(d, &text);
		struct doc *back = parse_ok(json_parse, a, buf_str(&text));
		assert_true(doc_same(d, back));
		doc_to_json(back, &again);
		assert_true(str_eq(buf_str(&text), buf_str(&again)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_value_is_read),
		cmocka_unit_test(any_value_may_stand_alone),
		cmocka_unit_test(keys_keep_their_order),
		cmocka_unit_test(a_number_without_fraction_is_whole),
		cmocka_unit_test(escapes_become_utf8),
		cmocka_unit_test(a_byte_order_mark_at_the_start_is_skipped),
		cmocka_unit_test(every_value_and_key_knows_its_place),
		cmocka_unit_test(broken_text_is_refused_where_it_breaks),
		cmocka_unit_test(bad_numbers_are_refused),
		cmocka_unit_test(bad_escapes_are_refused),
		cmocka_unit_test(a_duplicate_key_is_refused),
		cmocka_unit_test(a_duplicate_is_found_in_a_table_of_any_size),
		cmocka_unit_test(bytes_that_are_not_utf8_are_refused),
		cmocka_unit_test(what_a_message_shows_cannot_steer_a_terminal),
		cmocka_unit_test(a_long_word_is_cut_in_the_message),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(the_number_of_values_is_limited),
		cmocka_unit_test(the_length_of_a_text_is_limited),
		cmocka_unit_test(what_doc_to_json_writes_reads_back_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
