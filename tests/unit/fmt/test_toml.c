#include "fmt_test.h"

#include <math.h>

/* Values that the vectors do not spell out for people. */

static void a_small_job_file_is_read(void **state)
{
	(void)state;
	assert_parses_to(
		toml_parse,
		STR("name = \"ctr\" # a comment\n"
		    "env = { BATCH = '512', a.b = 1 }\n"
		    "\n"
		    "[roles.trainer]\r\n"
		    "count = 4\n"
		    "command = [\n  'python3', # first\n  'train.py',\n]\n"
		    "[[data]]\nsrc = '''a\nb'''\n[[data]]\n[data.sub]\nx = 1_000.5\n"),
		"{\"name\":\"ctr\",\"env\":{\"BATCH\":\"512\",\"a\":{\"b\":1}},\"roles\":{\"trainer\":{\"count\":4,\"command\":[\"python3\",\"train.py\"]}},\"data\":[{\"src\":\"a\\nb\"},{\"sub\":{\"x\":1000.5}}]}");
}

static void an_empty_text_is_an_empty_table(void **state)
{
	(void)state;
	assert_parses_to(toml_parse, STR(""), "{}");
	assert_parses_to(toml_parse, STR("\xEF\xBB\xBF# only a comment"), "{}");
}

static void dates_and_times_keep_their_text(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	static const char *const times[] = {
		"1979-05-27",
		"07:32:00",
		"07:32:60",
		"1979-05-27T07:32:00Z",
		"1979-05-27 07:32:00.999-07:00",
		"2000-02-29",
		"2024-02-29t00:00:00z",
	};
	(void)state;

	for (size_t i = 0; i < COUNT(times); i++) {
		CLEANUP(freep) char *text = xasprintf("t = %s # when", times[i]);
		const struct doc *t = doc_get(parse_ok(toml_parse, a, str_from(text)), "t");

		assert_int_equal(t->type, DOC_TIME);
		assert_string_equal(t->s.p, times[i]);
	}
}

static void days_that_do_not_exist_are_refused(void **state)
{
	static const char *const times[] = {
		"1900-02-29",
		"2023-02-29",
		"2023-04-31",
		"2023-13-01",
		"2023-00-01",
		"2023-01-00",
		"24:00:00",
		"23:60:00",
		"23:59:61",
		"2023-01-01T00:00:00+24:00",
		"2023-01-01T00:00:00+00:60",
		"07:32:00.",
		"07:32",
		"07:32:00Z",
		"1979-05-27T",
		"1979-05-27T07:32:00+0700",
	};
	(void)state;

	for (size_t i = 0; i < COUNT(times); i++) {
		CLEANUP(freep) char *text = xasprintf("t = %s", times[i]);
		CLEANUP(freep)
		char *message = xasprintf(
			"1:5: found '%s', expected a value (not a valid number, date or time)",
			times[i]);

		assert_refused(toml_parse, str_from(text), message);
	}
}

static void numbers_have_their_many_forms(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct doc *d = parse_ok(
		toml_parse, a,
		STR("a = +1_000\nb = 0xDEAD_beef\nc = 0o17\nd = 0b1_0\ne = -0\n"
		    "f = 6.6_2e-3_4\ng = -inf\nh = +nan\ni = 0x7fffffffffffffff\nj = 1e5\nk = -0.0"));
	assert_int_equal(doc_int(d, "a", 0), 1000);
	assert_int_equal(doc_int(d, "b", 0), 0xdeadbeef);
	assert_int_equal(doc_int(d, "c", 0), 15);
	assert_int_equal(doc_int(d, "d", 0), 2);
	assert_int_equal(doc_int(d, "e", 1), 0);
	assert_true(doc_num(d, "f", 0) == 6.62e-34);
	assert_true(doc_num(d, "g", 0) == -INFINITY);
	assert_true(isnan(doc_num(d, "h", 0)));
	assert_int_equal(doc_int(d, "i", 0), INT64_MAX);
	assert_int_equal(doc_get(d, "j")->type, DOC_FLOAT);
	assert_true(signbit(doc_num(d, "k", 1)));
}

static void bad_numbers_are_refused(void **state)
{
	static const char *const numbers[] = {
		"1__0",	 "_1",	"1_",	"1_.0", "1._0", "1.",	".1",
		"01",	 "+-1", "-0x1", "0x",	"0x_1", "0x1_", "0x1__2",
		"0xg",	 "0o8", "0b2",	"1e",	"1e_1", "1.e1", "0x8000000000000000",
		"1e1.0", "+",	"-",	"1-1",	"0X1",
	};
	(void)state;

	for (size_t i = 0; i < COUNT(numbers); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(freep) char *text = xasprintf("n = %s", numbers[i]);
		struct err err = {0};
		struct doc *d;

		if (toml_parse(str_from(text), a, &d, &err) == 0)
			fail_msg("accepted: %s", text);
	}
	assert_refused(
		toml_parse, STR("n = 9223372036854775808"),
		"1:5: found 9223372036854775808, expected a number within 64 bits (-2^63 to 2^63-1)");
	assert_refused(toml_parse, STR("n = 1e400"),
		       "1:5: found 1e400, expected a number within a 64-bit float");
}

static void strings_have_their_four_forms(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct doc *d = parse_ok(toml_parse, a,
				 STR("a = \"\\b\\t\\n\\f\\r\\\"\\\\\\u00e9\\U0001F6A3\"\n"
				     "b = 'C:\\x'\n"
				     "c = \"\"\"\r\none\r\ntwo \\\r\n   \n\n three\"\"\"\"\"\n"
				     "d = ''''quoted'''''\n"
				     "e = \"\"\"\"\"\"\n"
				     "f = \"\\u0000\"\n"));
	assert_string_equal(doc_str(d, "a", STR("")).p, "\b\t\n\f\r\"\\\xc3\xa9\xf0\x9f\x9a\xa3");
	assert_string_equal(doc_str(d, "b", STR("")).p, "C:\\x");
	assert_string_equal(doc_str(d, "c", STR("")).p, "one\ntwo three\"\"");
	assert_string_equal(doc_str(d, "d", STR("")).p, "'quoted''");
	assert_int_equal(doc_str(d, "e", STR("x")).n, 0);
	assert_int_equal(doc_str(d, "f", STR("")).n, 1);
}

/* Positions. */

static void every_value_and_key_knows_its_place(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct doc *d = parse_ok(toml_parse, a,
				 STR("a.b = [ 1,\n  '''x\ny''', {c = 2} ]\n"
				     "  [roles.trainer]\ncount = 4\n[[ data ]]\nx=1\n"));
	assert_pos(d->pos, 1, 1);
	assert_pos(d->table.v[0].key_pos, 1, 1);
	const struct doc *b = doc_get(doc_get(d, "a"), "b");
	assert_pos(doc_get(d, "a")->table.v[0].key_pos, 1, 3);
	assert_pos(b->pos, 1, 7);
	assert_pos(b->array.v[1]->pos, 2, 3);
	assert_pos(b->array.v[2]->pos, 3, 7);
	assert_pos(b->array.v[2]->table.v[0].value->pos, 3, 12);
	assert_pos(doc_get(d, "roles")->pos, 4, 4);
	const struct doc *trainer = doc_get(doc_get(d, "roles"), "trainer");
	assert_pos(trainer->pos, 4, 3);
	assert_pos(trainer->table.v[0].key_pos, 5, 1);
	assert_pos(trainer->table.v[0].value->pos, 5, 9);
	assert_pos(doc_array(d, "data")->array.v[0]->pos, 6, 1);
}

/* Who may extend a table. */

static void tables_may_be_completed_once(void **state)
{
	(void)state;
	assert_parses_to(toml_parse, STR("[a.b]\nx=1\n[a]\ny=2\n[a.c]\n"),
			 "{\"a\":{\"b\":{\"x\":1},\"y\":2,\"c\":{}}}");
	assert_parses_to(toml_parse, STR("[a]\nb.c=1\nb.d=2\n[a.b.e]\nx=3\n"),
			 "{\"a\":{\"b\":{\"c\":1,\"d\":2,\"e\":{\"x\":3}}}}");
	assert_parses_to(toml_parse, STR("[a.b.c]\n[a]\nb.x=1\n"),
			 "{\"a\":{\"b\":{\"c\":{},\"x\":1}}}");
	assert_parses_to(toml_parse, STR("[[a]]\n[[a.b]]\n[a.b.c]\n[[a.b]]\n[[a]]\n[[a.b]]\n"),
			 "{\"a\":[{\"b\":[{\"c\":{}},{}]},{\"b\":[{}]}]}");
	assert_parses_to(toml_parse, STR("a = {b.c=1, b.d=2}"),
			 "{\"a\":{\"b\":{\"c\":1,\"d\":2}}}");
	assert_parses_to(toml_parse, STR("[\"a.b\"]\n'' = 1\n"), "{\"a.b\":{\"\":1}}");
}

static void nothing_is_defined_twice(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"a=1\na=2",
		 "2:1: found the key 'a' again, expected it once (first at 1:1, as a value)"},
		{"[a]\n[a]",
		 "2:2: found the key 'a' again, expected it once (first at 1:2, as a [table])"},
		{"a.b=1\n[a]",
		 "2:2: found the key 'a' again, expected it once (first at 1:1, as a table of "
		 "dotted keys)"},
		{"[a]\n[[a]]",
		 "2:3: found the key 'a' again, expected it once (first at 1:2, as a [table])"},
		{"[[a]]\n[a]",
		 "2:2: found the key 'a' again, expected it once (first at 1:3, as a list of "
		 "[[tables]])"},
		{"a={}\n[a.b]",
		 "2:2: found the key 'a' again, expected it once (first at 1:1, as a value)"},
		{"a={}\na.b=1",
		 "2:1: found the key 'a' again, expected it once (first at 1:1, as a value)"},
		{"a=[]\n[[a]]",
		 "2:3: found the key 'a' again, expected it once (first at 1:1, as a value)"},
		{"a=[{}]\n[a.b]",
		 "2:2: found the key 'a' again, expected it once (first at 1:1, as a value)"},
		{"a={b={}, b.c=1}",
		 "1:10: found the key 'b' again, expected it once (first at 1:4, as a value)"},
		{"[a.b]\n[a]\nb.c=1",
		 "3:1: found the key 'b' again, expected it once (first at 1:4, as a [table])"},
		{"[a.b]\n[a]\nb=1",
		 "3:1: found the key 'b' again, expected it once (first at 1:4, as a [table])"},
		{"[a.b.c]\n[a]\nb.x=1\n[a.b]",
		 "4:4: found the key 'b' again, expected it once (first at "
		 "1:4, as a table of dotted keys)"},
		{"[a.b]\na=1\n[a]\n[[a.b]]",
		 "4:5: found the key 'b' again, expected it once (first at 1:4, as a [table])"},
		{"[[a.b]]\n[a]\nb.c=1",
		 "3:1: found the key 'b' again, expected it once (first at 1:5, as a "
		 "list of [[tables]])"},
		{"[a.b]\n[[a]]",
		 "2:3: found the key 'a' again, expected it once (first at 1:2, as a table)"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_refused(toml_parse, str_from(cases[i].text), cases[i].message);
}

/* What is refused. */

static void broken_text_is_refused_where_it_breaks(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"a", "1:2: found the end of the text, expected '=' after the key"},
		{"a = ", "1:5: found the end of the text, expected a value"},
		{"a = yes", "1:5: found 'yes', expected a value (a string needs quotes)"},
		{"a = 1 b = 2", "1:7: found 'b', expected the end of the line"},
		{"a = \"x\ny\"",
		 "1:7: found the end of the line, expected the closing quote of the string"},
		{"a = 'x",
		 "1:7: found the end of the text, expected the closing quote of the string"},
		{"a = '''x",
		 "1:9: found the end of the text, expected the three closing quotes of the string"},
		{"a = \"\"\"x\\q\"\"\"",
		 "1:10: found 'q', expected one of b t n f r \" \\ u U after a backslash"},
		{"a = \"\\e\"",
		 "1:7: found 'e', expected one of b t n f r \" \\ u U after a backslash"},
		{"a = \"\\u12\"", "1:10: found '\"', expected four hexadecimal digits after \\u"},
		{"a = \"\\U0012\"",
		 "1:12: found '\"', expected eight hexadecimal digits after \\U"},
		{"a = \"\\uD800\"", "1:6: found U+D800, expected a Unicode scalar value"},
		{"a = \"\\U00110000\"", "1:6: found U+110000, expected a Unicode scalar value"},
		{"a = [1 2]", "1:8: found '2', expected ',' or ']'"},
		{"a = [1,", "1:8: found the end of the text, expected a value"},
		{"a = [,]", "1:6: found ',', expected a value"},
		{"a = {b=1,}", "1:10: found '}', expected a key"},
		{"a = {b=1\n}",
		 "1:9: found the end of the line, expected ',' or '}' on the same line"},
		{"a = {b=1",
		 "1:9: found the end of the text, expected ',' or '}' on the same line"},
		{"[a", "1:3: found the end of the text, expected ']' or '.'"},
		{"[a}", "1:3: found '}', expected ']' or '.'"},
		{"[[a]", "1:5: found the end of the text, expected ']]'"},
		{"[a]]", "1:4: found ']', expected the end of the line"},
		{"[]", "1:2: found ']', expected a key"},
		{"[a.]", "1:4: found ']', expected a key"},
		{"= 1", "1:1: found '=', expected a key"},
		{"\xc3\xa9 = 1", "1:1: found '\xc3\xa9', expected a key"},
		{"\"\"\"a\"\"\" = 1", "1:3: found '\"', expected '=' after the key"},
		{"\"a\nb\" = 1",
		 "1:3: found the end of the line, expected the closing quote of the string"},
		{"a = 1\r", "1:6: found the control character 0x0d, expected the end of the line"},
		{"# \x01", "1:3: found the control character 0x01, expected the text of a comment"},
		{"[a] # \x7f",
		 "1:7: found the control character 0x7f, expected the text of a comment"},
		{"a = [ # \x02\n]",
		 "1:9: found the control character 0x02, expected the text of a comment"},
		{"a = [ 1 # \x02\n]",
		 "1:11: found the control character 0x02, expected the text of a comment"},
		{"a = '\x1b'",
		 "1:6: found the control character 0x1b, expected the closing quote of the string"},
		{"a = '\xff'", "1:6: found the byte 0xff, expected UTF-8 text"},
		{"a = # x", "1:5: found '#', expected a value"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_refused(toml_parse, str_from(cases[i].text), cases[i].message);
}

/* Limits. */

static void depth_is_limited_however_it_is_made(void **state)
{
	static const struct {
		const char *start, *open, *middle, *close;
		int most; /* of `open` */
	} ways[] = {
		{"a = ", "[", "", "]", DOC_MAX_DEPTH - 1},
		{"a = ", "{a=", "1", "}", DOC_MAX_DEPTH - 1},
		{"", "a.", "a = 1", "", DOC_MAX_DEPTH - 1},
		{"[", "a.", "a]", "", DOC_MAX_DEPTH - 2},
		{"[[", "a.", "a]]", "", DOC_MAX_DEPTH - 3},
		{"[a]\n", "a.", "a = 1", "", DOC_MAX_DEPTH - 2},
		{"[[a]]\n[a.", "a.", "a]", "", DOC_MAX_DEPTH - 4},
		{"[[a]]\n[a.b]\n", "a.", "a = 1", "", DOC_MAX_DEPTH - 4},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(ways); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf b;
		struct err err = {0};
		struct doc *d;

		buf_init(&b, 1 << 20);
		buf_addz(&b, ways[i].start);
		add_nested(&b, ways[i].most, ways[i].open, ways[i].middle, ways[i].close);
		parse_ok(toml_parse, a, buf_str(&b));
		buf_reset(&b);
		buf_addz(&b, ways[i].start);
		add_nested(&b, ways[i].most + 1, ways[i].open, ways[i].middle, ways[i].close);
		assert_int_equal(toml_parse(buf_str(&b), a, &d, &err), -1);
		assert_non_null(strstr(err.msg, ": found "));
		assert_non_null(strstr(err.msg, "more than 64"));
	}
	/* On the way, not at the last part. */
	CLEANUP(buf_release) struct buf b;

	buf_init(&b, 1 << 20);
	buf_addz(&b, "[[a]]\n[a.");
	add_nested(&b, DOC_MAX_DEPTH - 2, "a.", "a]", "");
	assert_refused(toml_parse, buf_str(&b),
		       "2:126: found more than 64 levels, expected at most that many");
}

static void depth_is_counted_anew_for_each_statement(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	(void)state;

	buf_init(&b, 1 << 20);
	for (int i = 0; i < 500; i++)
		buf_printf(&b, "a.b%d = [{x.y = [1]}]\n", i);
	for (int i = 0; i < 500; i++)
		buf_printf(&b, "[c.d%d.e]\nx.y.z = 1\n", i);
	parse_ok(toml_parse, a, buf_str(&b));
}

static void the_number_of_values_is_limited(void **state)
{
	CLEANUP(buf_release) struct buf b;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};
	struct doc *d;
	(void)state;

	buf_init(&b, 1 << 20);
	buf_addz(&b, "a=[");
	for (int i = 0; i < DOC_MAX_NODES; i++)
		buf_addz(&b, "1,");
	buf_addz(&b, "]");
	assert_refused(toml_parse, buf_str(&b),
		       "1:200000: found more than 100000 values, expected at most that many");
	buf_reset(&b);
	buf_addz(&b, "a=[");
	for (int i = 0; i < DOC_MAX_NODES; i++)
		buf_addz(&b, "true,");
	assert_refused(toml_parse, buf_str(&b),
		       "1:499994: found more than 100000 values, expected at most that many");
	/* The other statements that make values. */
	static const char *const lines[] = {
		"[[a]]\n",  "[[a.b]]\n",      "[a%d]\n",   "a%d.b=1\n",	     "a%d=''\n",
		"a%d={}\n", "[[a]]\n[a.b]\n", "[b%d.c]\n", "a%d=01:01:01\n", "[b%d.c.d]\n"};

	for (size_t l = 0; l < COUNT(lines); l++) {
		buf_reset(&b);
		for (int i = 0; b.n < DOC_MAX_BYTES - 32; i++) {
			const char *number = strstr(lines[l], "%d");

			if (!number) {
				buf_addz(&b, lines[l]);
				continue;
			}
			buf_add(&b, lines[l], (size_t)(number - lines[l]));
			buf_printf(&b, "%x%s", (unsigned)i, number + 2);
		}
		/* Few of them reach the limit in a mebibyte; none may go wrong. */
		if (toml_parse(buf_str(&b), a, &d, &err) < 0)
			assert_non_null(strstr(err.msg, "found more than 100000 values"));
	}
}

static void the_length_of_a_text_is_limited(void **state)
{
	CLEANUP(buf_release) struct buf b;
	(void)state;

	buf_init(&b, 1 << 21);
	for (int i = 0; i <= DOC_MAX_BYTES; i++)
		buf_addc(&b, '\n');
	assert_refused(toml_parse, buf_str(&b),
		       "1:1: found a text of 1048577 bytes, expected at most 1048576");
}

/* Round trips. */

static void what_doc_to_toml_writes_reads_back_the_same(void **state)
{
	struct rng r;
	(void)state;

	seed_rng(&r);
	for (int i = 0; i < 3000; i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf text;
		CLEANUP(buf_release) struct buf again;
		struct doc_kinds kinds = {.times = true, .special_floats = true};
		struct doc *d = doc_generate_table(&r, a, kinds, 5);

		buf_init(&text, 1 << 20);
		buf_init(&again, 1 << 20);
		doc_to_toml(d, &text);
		struct doc *back = parse_ok(toml_parse, a, buf_str(&text));
		if (!doc_same(d, back))
			fail_msg("another tree:\n%s", buf_str(&text).p);
		doc_to_toml(back, &again);
		assert_true(str_eq(buf_str(&text), buf_str(&again)));
		/* On one line, too. */
		buf_reset(&again);
		buf_addz(&again, "d = ");
		doc_value_to_toml(d, &again);
		assert_null(memchr(again.p, '\n', again.n));
		back = parse_ok(toml_parse, a, buf_str(&again));
		if (!doc_same(d, doc_get(back, "d")))
			fail_msg("another tree:\n%s", buf_str(&again).p);
	}
}

static void damaged_text_never_breaks_the_reader(void **state)
{
	struct rng r;
	(void)state;

	seed_rng(&r);
	for (int i = 0; i < 3000; i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf text;
		CLEANUP(buf_release) struct buf json;
		struct err err = {0};
		struct doc *d;
		int line, col;

		buf_init(&text, 1 << 20);
		buf_init(&json, 1 << 20);
		doc_to_toml(doc_generate_table(&r, a, (struct doc_kinds){.times = true}, 4), &text);
		text_mutate(&r, &text);
		if (toml_parse(buf_str(&text), a, &d, &err) < 0) {
			assert_int_equal(sscanf(err.msg, "%d:%d: found ", &line, &col), 2);
			continue;
		}
		doc_to_json(d, &json);
		parse_ok(json_parse, a, buf_str(&json));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_small_job_file_is_read),
		cmocka_unit_test(an_empty_text_is_an_empty_table),
		cmocka_unit_test(dates_and_times_keep_their_text),
		cmocka_unit_test(days_that_do_not_exist_are_refused),
		cmocka_unit_test(numbers_have_their_many_forms),
		cmocka_unit_test(bad_numbers_are_refused),
		cmocka_unit_test(strings_have_their_four_forms),
		cmocka_unit_test(every_value_and_key_knows_its_place),
		cmocka_unit_test(tables_may_be_completed_once),
		cmocka_unit_test(nothing_is_defined_twice),
		cmocka_unit_test(broken_text_is_refused_where_it_breaks),
		cmocka_unit_test(depth_is_limited_however_it_is_made),
		cmocka_unit_test(depth_is_counted_anew_for_each_statement),
		cmocka_unit_test(the_number_of_values_is_limited),
		cmocka_unit_test(the_length_of_a_text_is_limited),
		cmocka_unit_test(what_doc_to_toml_writes_reads_back_the_same),
		cmocka_unit_test(damaged_text_never_breaks_the_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
