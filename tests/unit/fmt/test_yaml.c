#include "fmt_test.h"

#include <math.h>

static void block_and_flow_style_are_read(void **state)
{
	(void)state;
	assert_parses_to(
		yaml_parse,
		STR("name: ctr # a comment\n"
		    "env: {BATCH: '512', \"N\": 5}\n"
		    "roles:\n"
		    "  trainer:\n"
		    "    count: 4\n"
		    "    command: [python3, train.py]\n"
		    "data:\n"
		    "- src: |\n    a\n    b\n"
		    "- src: >-\n    a\n    b\n"
		    "-\n"),
		"{\"name\":\"ctr\",\"env\":{\"BATCH\":\"512\",\"N\":5},\"roles\":{\"trainer\":{\"count\":4,\"command\":[\"python3\",\"train.py\"]}},\"data\":[{\"src\":\"a\\nb\\n\"},{\"src\":\"a "
		"b\"},null]}");
}

static void a_document_may_be_marked_and_versioned(void **state)
{
	(void)state;
	assert_parses_to(yaml_parse, STR("%YAML 1.2\n---\na: 1\n...\n"), "{\"a\":1}");
	assert_parses_to(yaml_parse,
			 STR("\xEF\xBB\xBF"
			     "a: 1\n"),
			 "{\"a\":1}");
}

static void nothing_is_null(void **state)
{
	(void)state;
	assert_parses_to(yaml_parse, STR(""), "null");
	assert_parses_to(yaml_parse, STR("# only a comment\n"), "null");
	assert_parses_to(yaml_parse, STR("---\n"), "null");
}

/* The 1.2 core schema. */

static void plain_scalars_have_the_types_of_the_core_schema(void **state)
{
	(void)state;
	assert_parses_to(yaml_parse, STR("[~, null, Null, NULL, nULL]"),
			 "[null,null,null,null,\"nULL\"]");
	assert_parses_to(yaml_parse, STR("[true, True, TRUE, false, False, FALSE, tRUE]"),
			 "[true,true,true,false,false,false,\"tRUE\"]");
	assert_parses_to(yaml_parse, STR("[0, -1, +12, 007, 0o17, 0xFf, 0x, 0o8, 0xg, -0x1, 1_0]"),
			 "[0,-1,12,7,15,255,\"0x\",\"0o8\",\"0xg\",\"-0x1\",\"1_0\"]");
	assert_parses_to(
		yaml_parse, STR("[1.5, 1., .5, -2e3, +1E-2, 1.e1, ., e1, 1e, 1e+, 1.2.3, -, +.]"),
		"[1.5,1.0,0.5,-2e3,0.01,10.0,\".\",\"e1\",\"1e\",\"1e+\",\"1.2.3\",\"-\",\"+.\"]");
	assert_parses_to(yaml_parse, STR("[-9223372036854775808, 0x7fffffffffffffff]"),
			 "[-9223372036854775808,9223372036854775807]");
}

static void special_floats_are_floats(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct doc *d = parse_ok(yaml_parse, a, STR("[.inf, -.INF, +.Inf, .nan, .NaN]"));
	assert_true(d->array.v[0]->f == INFINITY);
	assert_true(d->array.v[1]->f == -INFINITY);
	assert_true(d->array.v[2]->f == INFINITY);
	assert_true(d->array.v[3]->type == DOC_FLOAT && isnan(d->array.v[3]->f));
	assert_true(isnan(d->array.v[4]->f));
}

static void yes_no_on_off_are_strings(void **state)
{
	(void)state;
	assert_parses_to(yaml_parse, STR("[yes, no, on, off, Yes, NO, y, n]"),
			 "[\"yes\",\"no\",\"on\",\"off\",\"Yes\",\"NO\",\"y\",\"n\"]");
}

static void dates_and_times_of_day_are_strings(void **state)
{
	(void)state;
	assert_parses_to(yaml_parse, STR("[2001-12-14, 12:30:45]"),
			 "[\"2001-12-14\",\"12:30:45\"]");
}

static void quoted_and_block_scalars_are_strings(void **state)
{
	(void)state;
	assert_parses_to(yaml_parse,
			 STR("- '1'\n- \"true\"\n- |-\n  null\n- ''\n- \"\\0\\e\\x41\\u00e9\"\n"),
			 "[\"1\",\"true\",\"null\",\"\",\"\\u0000\\u001bA\xc3\xa9\"]");
}

static void keys_are_text_as_written(void **state)
{
	(void)state;
	assert_parses_to(yaml_parse, STR("8080: a\ntrue: b\n'': c\n\"<<\": d\n? x\n: e\n"),
			 "{\"8080\":\"a\",\"true\":\"b\",\"\":\"c\",\"<<\":\"d\",\"x\":\"e\"}");
}

/* Positions. */

static void every_value_and_key_knows_its_place_in_bytes(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	struct doc *d = parse_ok(yaml_parse, a,
				 STR("# \xe2\x82\xac\n"
				     "\xc3\xa9: [1, '\xe2\x82\xac', 2]\r\n"
				     "b:\n"
				     "  c:\n"
				     "  - x\n"
				     "d:\n"
				     "e: 1\n"));
	assert_pos(d->pos, 2, 1);
	assert_pos(d->table.v[0].key_pos, 2, 1);
	assert_pos(d->table.v[0].value->pos, 2, 5);
	assert_pos(d->table.v[0].value->array.v[1]->pos, 2, 9);
	assert_pos(d->table.v[0].value->array.v[2]->pos, 2, 16);
	assert_pos(d->table.v[1].key_pos, 3, 1);
	assert_pos(doc_get(d, "b")->pos, 4, 3);
	assert_pos(doc_get(doc_get(d, "b"), "c")->array.v[0]->pos, 5, 5);
	assert_int_equal(doc_get(d, "d")->pos.line, 6);
	assert_pos(d->table.v[3].key_pos, 7, 1);
}

/* What is refused. */

static void an_alias_is_a_copy_with_the_positions_of_its_anchor(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	assert_parses_to(yaml_parse, STR("a: &x 1\nb: *x\nc: [*x, *x]\n"),
			 "{\"a\":1,\"b\":1,\"c\":[1,1]}");
	assert_parses_to(yaml_parse, STR("a: &x 1\nb: &x 2\nc: *x\n"), "{\"a\":1,\"b\":2,\"c\":2}");
	struct doc *d = parse_ok(yaml_parse, a, STR("a: &x\n  k: [v]\nb: *x\n"));
	const struct doc *b = doc_get(d, "b");

	assert_ptr_not_equal(b, doc_get(d, "a"));
	assert_string_equal(doc_get(b, "k")->array.v[0]->s.p, "v");
	assert_pos(d->table.v[1].key_pos, 3, 1);
	assert_pos(b->pos, 1, 4);
	assert_pos(b->table.v[0].key_pos, 2, 3);
	assert_pos(doc_get(b, "k")->array.v[0]->pos, 2, 7);
}

static void a_merge_key_brings_the_keys_that_the_table_lacks(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	(void)state;

	assert_parses_to(yaml_parse, STR("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\n"),
			 "{\"x\":{\"a\":1,\"b\":2},\"y\":{\"b\":3,\"a\":1}}");
	assert_parses_to(yaml_parse, STR("y: {b: 3, <<: [{a: 1, b: 2}, {a: 4, c: 5}]}\n"),
			 "{\"y\":{\"b\":3,\"a\":1,\"c\":5}}");
	assert_parses_to(yaml_parse, STR("{'<<': 1}"), "{\"<<\":1}");
	struct doc *d = parse_ok(yaml_parse, a, STR("x: &x\n  a: 1\ny:\n  <<: *x\n"));

	assert_pos(doc_get(d, "y")->table.v[0].key_pos, 2, 3);
}

static void a_text_may_have_several_documents(void **state)
{
	assert_parses_to(yaml_parse_documents, STR("a: 1\n---\nb: 2\n...\n---\n- c\n"),
			 "[{\"a\":1},{\"b\":2},[\"c\"]]");
	assert_parses_to(yaml_parse_documents, STR("---\n---\na: 1\n---\n# nothing\n"),
			 "[{\"a\":1}]");
	assert_parses_to(yaml_parse_documents, STR(""), "[null]");
	assert_parses_to(yaml_parse, STR("a: 1\n---\n"), "{\"a\":1}");
	(void)state;
}

/* Nine levels of nine aliases each would be 3.5e8 values; one long string is many bytes. */
static void a_short_text_cannot_stand_for_a_huge_tree(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf b;
	struct err err = {0};
	struct doc *d;
	(void)state;

	buf_init(&b, 1 << 20);
	buf_addz(&b, "a0: &a0 [1]\n");
	for (int i = 1; i < 9; i++)
		buf_printf(&b, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
			   i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	assert_int_equal(yaml_parse(buf_str(&b), a, &d, &err), -1);
	assert_non_null(strstr(err.msg, "found more than 100000 values"));
	buf_reset(&b);
	buf_addz(&b, "a: &a ");
	for (int i = 0; i < 1000; i++)
		buf_addz(&b, "0123456789abcdef");
	buf_addz(&b, "\nb: [");
	for (int i = 0; i < 100; i++)
		buf_addz(&b, "*a, ");
	buf_addz(&b, "*a]\n");
	assert_int_equal(yaml_parse(buf_str(&b), a, &d, &err), -1);
	assert_non_null(strstr(err.msg, "found aliases that stand for more than 1048576 bytes"));
	buf_reset(&b);
	buf_addz(&b, "a: &k ");
	add_nested(&b, 40, "[", "", "]");
	buf_addz(&b, "\nb: ");
	add_nested(&b, 40, "[", "*k", "]");
	assert_int_equal(yaml_parse(buf_str(&b), a, &d, &err), -1);
	assert_non_null(strstr(err.msg, "found more than 64 levels"));
}

static void a_tree_is_printed_in_block_style(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, 1 << 20);
	doc_to_yaml(
		parse_ok(
			yaml_parse, a,
			STR("{a: {b: [1, {c: x, d: [z]}, [2, 3], {}], e: []}, f: 'yes', g: repo/img:1, "
			    "h: 'a: b', i: '', 'k 1': '1', l: null, m: \"x\\ny\"}")),
		&out);
	assert_string_equal(buf_str(&out).p, "a:\n"
					     "  b:\n"
					     "  - 1\n"
					     "  - c: x\n"
					     "    d:\n"
					     "    - z\n"
					     "  - - 2\n"
					     "    - 3\n"
					     "  - {}\n"
					     "  e: []\n"
					     "f: \"yes\"\n"
					     "g: repo/img:1\n"
					     "h: \"a: b\"\n"
					     "i: \"\"\n"
					     "\"k 1\": \"1\"\n"
					     "l: null\n"
					     "m: \"x\\ny\"\n");
}

static void what_doc_to_yaml_writes_reads_the_same(void **state)
{
	struct rng r;
	size_t read = 0;
	(void)state;

	seed_rng(&r);
	for (int i = 0; i < 1000; i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf text;
		struct doc *d = doc_generate(&r, a, (struct doc_kinds){.nulls = true}, 4);

		buf_init(&text, 1 << 20);
		doc_to_yaml(d, &text);
		/* As below: characters that libyaml refuses, and keys that are too long for it. */
		if (memchr(text.p, 0x7f, text.n) || strstr(text.p, "\xe2\x80\xa8") || text.n > 1000)
			continue;
		struct doc *back = parse_ok(yaml_parse, a, buf_str(&text));

		assert_true(doc_same(d, back));
		read++;
	}
	assert_true(read > 100);
}

static void what_is_not_plain_data_is_refused_where_it_stands(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"&x a: 1\n", "1:1: found an anchor at a key, expected one at a value"},
		{"a: 1\nb: *x\n", "2:4: found the alias 'x', expected one of an anchor before it"},
		{"b: *x\na: &x 1\n",
		 "1:4: found the alias 'x', expected one of an anchor before it"},
		{"a: &x [*x]\n", "1:8: found the alias 'x', expected one of an anchor before it"},
		{"a: &x {b: *x}\n",
		 "1:11: found the alias 'x', expected one of an anchor before it"},
		{"a: &x b\n*x : 1\n", "2:1: found an alias as a key, expected text"},
		{"a: !!str 1\n", "1:4: found a tag, expected a value without one"},
		{"a: ! 1\n", "1:4: found a tag, expected a value without one"},
		{"a: !x [1]\n", "1:4: found a tag, expected a value without one"},
		{"a: !!map {b: 1}\n", "1:4: found a tag, expected a value without one"},
		{"!!str a: 1\n", "1:1: found a tag, expected a value without one"},
		{"%TAG ! tag:x,2000:\n---\na: 1\n",
		 "1:1: found a %TAG directive, expected a document without tags"},
		{"a:\n  <<: b\n",
		 "2:7: found a string after the merge key '<<', expected a table or a list of tables"},
		{"<<: [{a: 1}, 2]\n",
		 "1:14: found a whole number after the merge key '<<', expected a table or a list of "
		 "tables"},
		{"<<: {a: 1}\n<<: {b: 1}\n",
		 "2:1: found the key '<<' again, expected it once (first at 1:1)"},
		{"a: 1\n---\nb: 2\n", "3:1: found a second document, expected one in a file"},
		{"a: &x 1\n---\nb: *x\n",
		 "3:4: found the alias 'x', expected one of an anchor before it"},
		{"? [a]\n: 1\n", "1:3: found a list as a key, expected text"},
		{"{{a: 1}: 2}\n", "1:2: found a table as a key, expected text"},
		{"?\n: 1\n", "1:2: found an empty key, expected text before the ':'"},
		{"a: 1\n\xc3\xa9: 2\na: 3\n",
		 "3:1: found the key 'a' again, expected it once (first at 1:1)"},
		{"{a: 1, 'a': 2}\n",
		 "1:8: found the key 'a' again, expected it once (first at 1:2)"},
		{"a: 9223372036854775808\n",
		 "1:4: found the number 9223372036854775808, expected one that "
		 "fits 64 bits (a string needs quotes)"},
		{"a: 0xffffffffffffffffff\n",
		 "1:4: found the number 0xffffffffffffffffff, expected one that "
		 "fits 64 bits (a string needs quotes)"},
		{"a: 1e999\n",
		 "1:4: found the number 1e999, expected one that fits 64 bits (a string needs quotes)"},
		{"a: '\xff'\n", "1:5: found the byte 0xff, expected UTF-8 text"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_refused(yaml_parse, str_from(cases[i].text), cases[i].message);
}

static void broken_text_is_refused_in_the_words_of_the_parser(void **state)
{
	static const struct {
		const char *text, *message;
	} cases[] = {
		{"a: [1, 2\nb: 3\n",
		 "2:2: found ':': did not find expected ',' or ']' (while parsing a flow "
		 "sequence)"},
		{"a:\n\t- 1\n",
		 "2:1: found a tab: found character that cannot start any token (while "
		 "scanning for the next token)"},
		{"a: \"x\n",
		 "2:1: found the end of the text: found unexpected end of stream (while scanning "
		 "a quoted scalar)"},
		{"\xc3\xa9: 1\n\xc3\xa9\xc3\xa9 \x01",
		 "2:6: found the control character 0x01: control characters are not allowed"},
		{"a: b: c\n", "1:5: found ':': mapping values are not allowed in this context"},
		{"a: 1\n b: 2\n", "2:3: found ':': mapping values are not allowed in this context"},
		{"a\nb: 1\n\n", "2:2: found ':': mapping values are not allowed in this context"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++)
		assert_refused(yaml_parse, str_from(cases[i].text), cases[i].message);
}

static void what_the_parser_finds_while_reading_ahead_has_its_place_too(void **state)
{
	CLEANUP(buf_release) struct buf b;
	(void)state;

	/* The bad byte is behind the first buffer that libyaml fills, so events were read before. */
	buf_init(&b, 1 << 20);
	for (int i = 0; i < 5000; i++)
		buf_printf(&b, "\xc3\xa9%d: 1\n", i);
	buf_addz(&b, "a: \xc3\xa9\x01\n");
	assert_refused(
		yaml_parse, buf_str(&b),
		"5001:6: found the control character 0x01: control characters are not allowed");
}

/* Limits. */

static void depth_is_limited(void **state)
{
	static const struct {
		const char *open, *middle, *close;
	} ways[] = {{"[", "", "]"}, {"{a: ", "1", "}"}, {"- ", "1", ""}};
	(void)state;

	for (size_t i = 0; i < COUNT(ways); i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf b;
		struct err err = {0};
		struct doc *d;

		buf_init(&b, 1 << 20);
		add_nested(&b, DOC_MAX_DEPTH, ways[i].open, ways[i].middle, ways[i].close);
		parse_ok(yaml_parse, a, buf_str(&b));
		buf_reset(&b);
		add_nested(&b, DOC_MAX_DEPTH + 1, ways[i].open, ways[i].middle, ways[i].close);
		assert_int_equal(yaml_parse(buf_str(&b), a, &d, &err), -1);
		assert_non_null(strstr(err.msg, ": found more than 64 levels"));
		buf_reset(&b);
		add_nested(&b, 100000, ways[i].open, ways[i].middle, ways[i].close);
		assert_int_equal(yaml_parse(buf_str(&b), a, &d, &err), -1);
	}
}

static void the_number_of_values_is_limited(void **state)
{
	CLEANUP(buf_release) struct buf b;
	(void)state;

	buf_init(&b, 1 << 20);
	buf_addc(&b, '[');
	for (int i = 0; i < DOC_MAX_NODES; i++)
		buf_addz(&b, "1,");
	buf_addz(&b, "1]");
	assert_refused(yaml_parse, buf_str(&b),
		       "1:200000: found more than 100000 values, expected at most that many");
	buf_reset(&b);
	for (int i = 0; i < DOC_MAX_NODES; i++)
		buf_addz(&b, "- []\n");
	assert_refused(yaml_parse, buf_str(&b),
		       "100000:3: found more than 100000 values, expected at most that many");
}

static void the_length_of_a_text_is_limited(void **state)
{
	CLEANUP(buf_release) struct buf b;
	(void)state;

	buf_init(&b, 1 << 21);
	for (int i = 0; i <= DOC_MAX_BYTES; i++)
		buf_addc(&b, '\n');
	assert_refused(yaml_parse, buf_str(&b),
		       "1:1: found a text of 1048577 bytes, expected at most 1048576");
}

static void directives_cannot_eat_the_time(void **state)
{
	CLEANUP(buf_release) struct buf b;
	(void)state;

	buf_init(&b, 1 << 20);
	for (int i = 0; b.n < DOC_MAX_BYTES - 32; i++)
		buf_printf(&b, "%%TAG !a%x! x\n", (unsigned)i);
	buf_addz(&b, "---\na: 1\n");
	assert_refused(yaml_parse, buf_str(&b),
		       "17:1: found a %TAG directive, expected a document without tags");
	/* In a string it is text. */
	assert_parses_to(yaml_parse, STR("\"a\n%TAG b\"\n"), "\"a %TAG b\"");
}

/* JSON is YAML, but for what YAML 1.1 thinks of DEL, NEL and line separators. */

static void what_doc_to_json_writes_reads_the_same_as_yaml(void **state)
{
	struct rng r;
	size_t read = 0;
	(void)state;

	seed_rng(&r);
	for (int i = 0; i < 3000; i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf text;
		struct doc *d = doc_generate(&r, a, (struct doc_kinds){.nulls = true}, 4), *back;
		struct err err = {0};

		buf_init(&text, 1 << 20);
		doc_to_json(d, &text);
		bool foreign = memchr(text.p, 0x7f, text.n) || strstr(text.p, "\xe2\x80\xa8");
		bool long_key = text.n > 1000; /* libyaml wants a key's ':' within 1024 bytes */

		if (foreign || long_key) {
			if (yaml_parse(buf_str(&text), a, &back, &err) < 0)
				assert_int_equal(err.kind, ERR_INVALID);
			continue;
		}
		assert_true(doc_same(d, parse_ok(yaml_parse, a, buf_str(&text))));
		read++;
	}
	assert_true(read > 1000);
}

static void damaged_text_never_breaks_the_reader(void **state)
{
	struct rng r;
	(void)state;

	seed_rng(&r);
	for (int i = 0; i < 3000; i++) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		CLEANUP(buf_release) struct buf text;
		struct err err = {0};
		struct doc *d;
		int line, col;

		buf_init(&text, 1 << 20);
		doc_to_json(doc_generate(&r, a, (struct doc_kinds){.nulls = true}, 4), &text);
		text_mutate(&r, &text);
		if (yaml_parse(buf_str(&text), a, &d, &err) < 0) {
			assert_int_equal(sscanf(err.msg, "%d:%d: found ", &line, &col), 2);
			assert_true(line > 0 && col > 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(block_and_flow_style_are_read),
		cmocka_unit_test(a_document_may_be_marked_and_versioned),
		cmocka_unit_test(nothing_is_null),
		cmocka_unit_test(plain_scalars_have_the_types_of_the_core_schema),
		cmocka_unit_test(special_floats_are_floats),
		cmocka_unit_test(yes_no_on_off_are_strings),
		cmocka_unit_test(dates_and_times_of_day_are_strings),
		cmocka_unit_test(quoted_and_block_scalars_are_strings),
		cmocka_unit_test(keys_are_text_as_written),
		cmocka_unit_test(every_value_and_key_knows_its_place_in_bytes),
		cmocka_unit_test(an_alias_is_a_copy_with_the_positions_of_its_anchor),
		cmocka_unit_test(a_merge_key_brings_the_keys_that_the_table_lacks),
		cmocka_unit_test(a_text_may_have_several_documents),
		cmocka_unit_test(a_short_text_cannot_stand_for_a_huge_tree),
		cmocka_unit_test(a_tree_is_printed_in_block_style),
		cmocka_unit_test(what_doc_to_yaml_writes_reads_the_same),
		cmocka_unit_test(what_is_not_plain_data_is_refused_where_it_stands),
		cmocka_unit_test(broken_text_is_refused_in_the_words_of_the_parser),
		cmocka_unit_test(what_the_parser_finds_while_reading_ahead_has_its_place_too),
		cmocka_unit_test(depth_is_limited),
		cmocka_unit_test(the_number_of_values_is_limited),
		cmocka_unit_test(the_length_of_a_text_is_limited),
		cmocka_unit_test(directives_cannot_eat_the_time),
		cmocka_unit_test(what_doc_to_json_writes_reads_the_same_as_yaml),
		cmocka_unit_test(damaged_text_never_breaks_the_reader),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
