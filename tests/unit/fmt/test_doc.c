#include "fmt_test.h"

#include <math.h>

static const char example[] =
	"s = 'text'\ni = 7\nf = 1.5\nb = true\na = [1]\nt = {x = 1}\nwhen = 1979-05-27\n";

/* Parsing by name. */

static void the_name_of_a_file_says_its_format(void **state)
{
	static const struct {
		const char *name, *text;
	} cases[] = {
		{"job.toml", "a = 1"},
		{"dir/job.yaml", "a: 1"},
		{"job.yml", "a: 1"},
		{"job.json", "{\"a\": 1}"},
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};
	struct doc *d;
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(
			doc_parse_named(cases[i].name, str_from(cases[i].text), a, &d, &err), 0);
		assert_int_equal(d->array.n, 1);
		assert_int_equal(doc_int(d->array.v[0], "a", 0), 1);
	}
	assert_int_equal(doc_parse_named("job.yaml", STR("a: 1\n---\nb: 2\n"), a, &d, &err), 0);
	assert_int_equal(d->array.n, 2);
	assert_int_equal(doc_int(d->array.v[1], "b", 0), 2);
	assert_int_equal(doc_parse_named("job.toml", STR("a: 1"), a, &d, &err), -1);
	assert_string_equal(err.msg, "1:2: found ':', expected '=' after the key");
}

static void another_name_is_an_error_that_lists_the_known_ones(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err = {0};
	struct doc *d;
	(void)state;

	assert_int_equal(doc_parse_named("job.ini", STR(""), a, &d, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_string_equal(err.msg,
			    "'job.ini': expected a name that ends in .toml, .yaml, .yml or .json");
}

static void every_type_has_a_name(void **state)
{
	(void)state;
	assert_string_equal(doc_type_name(DOC_NULL), "null");
	assert_string_equal(doc_type_name(DOC_BOOL), "boolean");
	assert_string_equal(doc_type_name(DOC_INT), "whole number");
	assert_string_equal(doc_type_name(DOC_FLOAT), "number");
	assert_string_equal(doc_type_name(DOC_STRING), "string");
	assert_string_equal(doc_type_name(DOC_TIME), "date or time");
	assert_string_equal(doc_type_name(DOC_ARRAY), "list");
	assert_string_equal(doc_type_name(DOC_TABLE), "table");
}

/* Reading. */

static void a_value_of_its_type_is_read(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = parse_ok(toml_parse, a, str_from(example));
	(void)state;

	assert_true(str_is(doc_str(d, "s", STR("")), "text"));
	assert_int_equal(doc_int(d, "i", 0), 7);
	assert_true(doc_num(d, "f", 0) == 1.5);
	assert_true(doc_num(d, "i", 0) == 7.0);
	assert_true(doc_bool(d, "b", false));
	assert_int_equal(doc_array(d, "a")->array.n, 1);
	assert_int_equal(doc_int(doc_table(d, "t"), "x", 0), 1);
}

static void a_value_of_another_type_is_not_there(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = parse_ok(toml_parse, a, str_from(example));
	(void)state;

	assert_true(str_is(doc_str(d, "i", STR("x")), "x"));
	assert_true(str_is(doc_str(d, "when", STR("x")), "x"));
	assert_int_equal(doc_int(d, "f", -1), -1);
	assert_int_equal(doc_int(d, "s", -1), -1);
	assert_true(doc_num(d, "s", -1) == -1);
	assert_true(doc_bool(d, "i", true));
	assert_null(doc_array(d, "t"));
	assert_null(doc_table(d, "a"));
}

static void what_is_absent_gives_the_fallback(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = parse_ok(toml_parse, a, str_from(example));
	(void)state;

	assert_null(doc_get(d, "none"));
	assert_null(doc_get(NULL, "s"));
	assert_null(doc_get(doc_get(d, "i"), "s"));
	assert_int_equal(doc_int(NULL, "i", 3), 3);
	assert_true(str_is(doc_str(d, "none", STR("x")), "x"));
	assert_null(doc_table(NULL, "t"));
}

/* Building. */

static void a_set_key_replaces_the_old_value_in_its_place(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	struct doc *d = doc_new(a, DOC_TABLE);
	char key[] = "two";
	(void)state;

	buf_init(&out, 1000);
	doc_set(a, d, STR("one"), doc_new_int(a, 1));
	doc_set(a, d, str_from(key), doc_new_bool(a, true));
	doc_set(a, d, STR("one"), doc_new_str(a, STR("x")));
	key[0] = 'X'; /* keys are copied */
	doc_to_json(d, &out);
	assert_string_equal(buf_str(&out).p, "{\"one\":\"x\",\"two\":true}");
}

static void arrays_grow(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *d = doc_new(a, DOC_ARRAY);
	(void)state;

	for (int i = 0; i < 1000; i++)
		doc_append(a, d, doc_new_int(a, i));
	assert_int_equal(d->array.n, 1000);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(d->array.v[i]->i, i);
	assert_int_equal(doc_new(a, DOC_STRING)->s.n, 0);
	assert_non_null(doc_new(a, DOC_STRING)->s.p);
}

static void a_path_makes_the_tables_on_its_way(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	struct doc *d = parse_ok(toml_parse, a, STR("[roles.trainer]\ncount = 1\nspot = true"));
	struct err err = {0};
	(void)state;

	buf_init(&out, 1000);
	assert_int_equal(doc_set_path(a, d, STR("roles.trainer.count"), doc_new_int(a, 8), &err),
			 0);
	assert_int_equal(doc_set_path(a, d, STR("roles.ps.count"), doc_new_int(a, 2), &err), 0);
	assert_int_equal(doc_set_path(a, d, STR("env.\"A.B\""), doc_new_str(a, STR("x")), &err), 0);
	assert_int_equal(doc_set_path(a, d, STR("name"), doc_new_str(a, STR("n")), &err), 0);
	doc_to_json(d, &out);
	assert_string_equal(
		buf_str(&out).p,
		"{\"roles\":{\"trainer\":{\"count\":8,\"spot\":true},\"ps\":{\"count\":2}},\"env\":{\"A.B\":\"x\"},\"name\":\"n\"}");
}

static void a_bad_path_changes_nothing(void **state)
{
	static const struct {
		const char *path, *message;
	} cases[] = {
		{"name.x", "key 'name.x': 'name' is a string, not a table"},
		{"roles.list.x.y", "key 'roles.list.x.y': 'list' is a list, not a table"},
		{"", "key '': 1:1: found the end of the text, expected a key"},
		{"a..b", "key 'a..b': 1:3: found '.', expected a key"},
		{"a b", "key 'a b': 1:3: found 'b', expected '.' or the end of the key"},
		{"a.", "key 'a.': 1:3: found the end of the text, expected a key"},
		{"a.'b",
		 "key 'a.'b': 1:5: found the end of the text, expected the closing quote of the string"},
		{"\xff", "key '\\xff': 1:1: found the byte 0xff, expected UTF-8 text"},
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	struct doc *d = parse_ok(toml_parse, a, STR("name = 'n'\n[roles]\nlist = []"));
	(void)state;

	buf_init(&out, 1000);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct err err = {0};

		assert_int_equal(
			doc_set_path(a, d, str_from(cases[i].path), doc_new_int(a, 1), &err), -1);
		assert_int_equal(err.kind, ERR_INVALID);
		assert_string_equal(err.msg, cases[i].message);
	}
	doc_to_json(d, &out);
	assert_string_equal(buf_str(&out).p, "{\"name\":\"n\",\"roles\":{\"list\":[]}}");
}

static void a_path_cannot_make_a_tree_too_deep(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf path;
	struct doc *d = doc_new(a, DOC_TABLE),
		   *deep = parse_ok(json_parse, a, STR("[[{\"a\":[1]}]]"));
	struct err err = {0};
	(void)state;

	buf_init(&path, 1000);
	add_nested(&path, DOC_MAX_DEPTH - 5, "a.", "a", "");
	assert_int_equal(doc_set_path(a, d, buf_str(&path), deep, &err), 0);
	buf_addz(&path, ".a");
	assert_int_equal(doc_set_path(a, doc_new(a, DOC_TABLE), buf_str(&path), deep, &err), -1);
	assert_non_null(strstr(err.msg, "more than 64 levels"));
	/* The root itself must be a table. */
	assert_int_equal(doc_set_path(a, doc_new_int(a, 1), STR("x"), deep, &err), -1);
	assert_string_equal(err.msg, "key 'x': 'the document' is a whole number, not a table");
}

/* Printing. */

static void toml_has_values_before_tables(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, 10000);
	doc_to_toml(
		parse_ok(
			json_parse, a,
			STR("{\"t\":{\"x\":1,\"sub\":{\"y\":[1,{\"z\":null,\"w\":2},null,{}]}},\"v\":\"a\\nb\",\"n\":null,\"only\":{\"a\":{},\"b\":{\"c\":1.0}},\"l\":[{\"q\":1},{\"r\":{\"s\":2}}],\"e\":[],\"odd "
			    "key\":{\"k.k\":true,\"\":-0.0}}")),
		&out);
	assert_string_equal(buf_str(&out).p, "v = \"a\\nb\"\n"
					     "e = []\n"
					     "\n[t]\nx = 1\n"
					     "\n[t.sub]\ny = [1, { w = 2 }, {}]\n"
					     "\n[only.a]\n"
					     "\n[only.b]\nc = 1.0\n"
					     "\n[[l]]\nq = 1\n"
					     "\n[[l]]\n"
					     "\n[l.r]\ns = 2\n"
					     "\n[\"odd key\"]\n\"k.k\" = true\n\"\" = -0.0\n");
}

static void toml_of_a_plain_value_is_that_value(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, 1000);
	doc_to_toml(parse_ok(json_parse, a, STR("[1,\"\\u007f\\u0001\",{\"a\":[]}]")), &out);
	assert_string_equal(buf_str(&out).p, "[1, \"\\u007F\\u0001\", { a = [] }]");
	buf_reset(&out);
	doc_to_toml(doc_new_str(a, STR("bad \xff byte")), &out);
	assert_string_equal(buf_str(&out).p, "\"bad \xEF\xBF\xBD byte\"");
	buf_reset(&out);
	doc_to_toml(doc_new(a, DOC_NULL), &out);
	assert_int_equal(out.n, 0);
}

/* A version is no number, but many write it as one. */
static void a_float_is_printed_as_it_was_written(void **state)
{
	static const struct {
		parse_fn *parse;
		const char *text, *json;
	} cases[] = {
		{toml_parse, "v = [3.10, +1_0.50, 1e-3, 0.0]", "{\"v\":[3.10,10.50,1e-3,0.0]}"},
		{yaml_parse, "v: [3.10, .50, 1., +2.50, 1e-3]", "{\"v\":[3.10,0.5,1.0,2.5,1e-3]}"},
		{json_parse, "{\"v\":[3.10,-2.50E+3]}", "{\"v\":[3.10,-2.50E+3]}"},
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, 1000);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct doc *d = parse_ok(cases[i].parse, a, str_from(cases[i].text));

		assert_true(doc_array(d, "v")->array.v[0]->f == 3.1);
		assert_parses_to(cases[i].parse, str_from(cases[i].text), cases[i].json);
		buf_reset(&out);
		doc_to_toml(d, &out);
		assert_true(str_starts(buf_str(&out), STR("v = [3.10, ")));
	}
}

static void json_has_null_for_what_it_cannot_say(void **state)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, 1000);
	doc_to_json(parse_ok(toml_parse, a, STR("a = [inf, -inf, nan]\nt = 07:32:00")), &out);
	assert_string_equal(buf_str(&out).p, "{\"a\":[null,null,null],\"t\":\"07:32:00\"}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_of_a_file_says_its_format),
		cmocka_unit_test(another_name_is_an_error_that_lists_the_known_ones),
		cmocka_unit_test(every_type_has_a_name),
		cmocka_unit_test(a_value_of_its_type_is_read),
		cmocka_unit_test(a_value_of_another_type_is_not_there),
		cmocka_unit_test(what_is_absent_gives_the_fallback),
		cmocka_unit_test(a_set_key_replaces_the_old_value_in_its_place),
		cmocka_unit_test(arrays_grow),
		cmocka_unit_test(a_path_makes_the_tables_on_its_way),
		cmocka_unit_test(a_bad_path_changes_nothing),
		cmocka_unit_test(a_path_cannot_make_a_tree_too_deep),
		cmocka_unit_test(toml_has_values_before_tables),
		cmocka_unit_test(toml_of_a_plain_value_is_that_value),
		cmocka_unit_test(a_float_is_printed_as_it_was_written),
		cmocka_unit_test(json_has_null_for_what_it_cannot_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
