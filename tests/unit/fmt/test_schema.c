#include "fmt_test.h"

#include "schema_example.h"

#include "base/suggest.h"

struct fixture {
	struct arena *a;
	struct problems ps;
	struct example out;
};

static int setup(void **state)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	f->a = arena_new();
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	arena_free(f->a);
	free(f);
	return 0;
}

static bool load(struct fixture *f, const char *toml)
{
	const struct doc *d = parse_ok(toml_parse, f->a, str_from(toml));

	f->ps = (struct problems){0};
	memset(&f->out, 0xff, sizeof(f->out));
	return schema_load(&example_schema, d, &f->out, f->a, &f->ps);
}

static void load_good(struct fixture *f, const char *toml)
{
	if (!load(f, toml))
		fail_msg("%s", f->ps.v[0].text);
	assert_int_equal(f->ps.n, 0);
}

/* "name = 'n'" and this text have exactly these problems, as problems_print shows them. */
static void load_bad(struct fixture *f, const char *toml, const char *printed)
{
	CLEANUP(freep) char *text = xasprintf("name = 'n'\n%s", toml);
	CLEANUP(buf_release) struct buf out;

	buf_init(&out, 1 << 20);
	assert_false(load(f, text));
	problems_print(&f->ps, "f", &out);
	assert_string_equal(buf_str(&out).p, printed);
}

/* Loading. */

static void every_type_of_field_is_loaded(void **state)
{
	struct fixture *f = *state;
	const struct example *o = &f->out;

	load_good(
		f,
		"text = 'x'\nname = 'a-1'\nflag = false\ncount = -5\ncost = 7\ngrace = '2h'\n"
		"memory = '1MiB'\nmode = 'higher'\ntags = 'one'\ncommand = ['a', 'b c']\n"
		"env = { S = 's', I = 5, F = 3.10, B = true, T = 07:32:00 }\n"
		"[limits]\ngrace = '5s'\nnote = 'n'\n"
		"[roles.ps]\ncommand = 'x'\n[roles.trainer]\ncount = 4\ncommand = 'y z'\nspot = false\n"
		"[meters.\"train.Loss_1\"]\ntitle = 'tt'\n"
		"[[data]]\nsrc = 'a'\n[[data]]\nsrc = 'b'\nshard = true\n");
	assert_string_equal(o->text, "x");
	assert_string_equal(o->name, "a-1");
	assert_false(o->flag);
	assert_int_equal(o->count, -5);
	assert_pos(o->count_pos, 4, 9);
	assert_true(o->cost == 7.0);
	assert_int_equal(o->grace_ms, 7200000);
	assert_int_equal(o->memory, 1048576);
	assert_int_equal(o->mode, 2);
	assert_int_equal(o->tags.n, 1);
	assert_string_equal(o->tags.v[0], "one");
	assert_int_equal(o->command.n, 2);
	assert_string_equal(o->command.v[1], "b c");
	static const char *const env[] = {"S",	  "s", "I",    "5", "F",
					  "3.10", "B", "true", "T", "07:32:00"};

	assert_int_equal(o->env.n, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_string_equal(o->env.v[i].name, env[2 * i]);
		assert_string_equal(o->env.v[i].value, env[2 * i + 1]);
	}
	assert_int_equal(o->limits.grace_ms, 5000);
	assert_string_equal(o->limits.note, "n");
}

static void maps_and_lists_become_arrays(void **state)
{
	struct fixture *f = *state;

	load_good(f,
		  "name = 'n'\n[roles.ps]\ncommand = 'x'\n[roles.trainer]\ncount = 4\ncommand = 'y "
		  "z'\nspot = false\n"
		  "[meters.\"train.Loss_1\"]\ntitle = 'tt'\n"
		  "[[data]]\nsrc = 'a'\n[[data]]\nsrc = 'b'\nshard = true\n");
	const struct role *roles = f->out.roles.v;
	const struct meter *meters = f->out.meters.v;
	const struct item *data = f->out.data.v;

	assert_int_equal(f->out.roles.n, 2);
	assert_string_equal(roles[0].name, "ps");
	assert_int_equal(roles[0].count, 1);
	assert_false(roles[0].spot_set);
	assert_pos(roles[0].pos, 2, 1);
	assert_string_equal(roles[1].name, "trainer");
	assert_int_equal(roles[1].count, 4);
	assert_int_equal(roles[1].command.n, 2);
	assert_true(roles[1].spot_set);
	assert_int_equal(f->out.meters.n, 1);
	assert_string_equal(meters[0].name, "train.Loss_1");
	assert_int_equal(f->out.data.n, 2);
	assert_string_equal(data[1].src, "b");
	assert_true(data[1].shard);
	assert_pos(data[1].pos, 12, 1);
}

static void json_of_a_struct_is_that_of_its_table(void **state)
{
	static const char *const texts[] = {
		"name = 'n'\n",
		"name = 'n'\nflag = false\ncount = -5\ntags = ['one', 'two']\nenv = { S = 's' }\n"
		"[limits]\nnote = 'm'\n[roles.ps]\ncommand = 'x'\n[roles.trainer]\nspot = false\n"
		"command = 'y'\n[[data]]\nsrc = 'a\"'\n[[data]]\nsrc = 'b'\nshard = true\n",
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CLEANUP(buf_release) struct buf text;

		buf_init(&text, 1 << 20);
		load_good(f, texts[i]);
		schema_to_json(&example_schema, &f->out, &text);
		assert_string_equal(
			buf_str(&text).p,
			doc_json_text(f->a, schema_to_doc(&example_schema, &f->out, f->a)));
	}
	assert_true(load(f, texts[1]) && f->out.data.n == 2); /* the last had a list */
}

static void what_is_absent_has_its_default(void **state)
{
	struct fixture *f = *state;
	const struct example *o = &f->out;

	load_good(f, "name = 'n'");
	assert_string_equal(o->text, "plain text");
	assert_true(o->flag);
	assert_int_equal(o->count, 3);
	assert_pos(o->count_pos, 0, 0);
	assert_true(o->cost == 2.5);
	assert_int_equal(o->grace_ms, 90000);
	assert_int_equal(o->memory, INT64_C(2) << 30);
	assert_int_equal(o->mode, 1);
	assert_int_equal(o->tags.n, 2);
	assert_string_equal(o->tags.v[1], "b");
	assert_int_equal(o->command.n, 2);
	assert_string_equal(o->command.v[1], "hello world");
	assert_int_equal(o->env.n, 1);
	assert_string_equal(o->env.v[0].value, "1");
	/* An absent table has its defaults and misses nothing. */
	assert_int_equal(o->limits.grace_ms, 10000);
	assert_null(o->limits.note);
	assert_int_equal(o->roles.n, 0);
	assert_int_equal(o->data.n, 0);
}

static void no_document_at_all_gives_the_defaults(void **state)
{
	struct fixture *f = *state;

	assert_true(schema_load(&example_schema, NULL, &f->out, f->a, &f->ps));
	assert_int_equal(f->out.count, 3);
}

static void a_value_with_a_problem_is_as_if_absent(void **state)
{
	struct fixture *f = *state;

	assert_false(load(f, "name = 'n'\ncount = 'x'\nlimits = 3\nflag = 1"));
	assert_int_equal(f->ps.n, 3);
	assert_int_equal(f->out.count, 3);
	assert_pos(f->out.count_pos, 0, 0);
	assert_true(f->out.flag);
	assert_int_equal(f->out.limits.grace_ms, 10000);
}

static void nothing_is_zero_in_every_unit(void **state)
{
	struct fixture *f = *state;

	load_good(f, "name = 'n'\ngrace = 0\nmemory = 4096");
	assert_int_equal(f->out.grace_ms, 0);
	assert_int_equal(f->out.memory, 4096);
	load_good(f, "name = 'n'\ngrace = '0'");
	assert_int_equal(f->out.grace_ms, 0);
}

static void values_without_a_place_take_that_of_their_key(void **state)
{
	struct fixture *f = *state;
	struct doc *d = doc_new(f->a, DOC_TABLE);

	doc_set(f->a, d, STR("name"), doc_new_str(f->a, STR("n")));
	doc_set(f->a, d, STR("count"), doc_new_int(f->a, 5));
	d->table.v[1].key_pos = (struct doc_pos){7, 3};
	assert_true(schema_load(&example_schema, d, &f->out, f->a, &f->ps));
	assert_pos(f->out.count_pos, 7, 3);
}

/* Problems. */

static void an_unknown_key_gets_a_suggestion(void **state)
{
	struct fixture *f = *state;

	load_bad(f, "cuont = 1\n[roles.trainer]\ncommand = 'x'\ncuont = 1\nSpot = true\n",
		 "f:2:1: unknown key 'cuont': did you mean 'count'?\n"
		 "f:5:1: unknown key 'cuont' in roles.trainer: did you mean 'count'?\n"
		 "f:6:1: unknown key 'Spot' in roles.trainer: did you mean 'spot'?\n");
	load_bad(
		f, "[roles.trainer]\ncommand = 'x'\nxyzzy = 1\n[[data]]\nsrc = 'a'\npath = 1\n",
		"f:4:1: unknown key 'xyzzy' in roles.trainer: the known keys are count, command, spot\n"
		"f:7:1: unknown key 'path' in data[0]: the known keys are src, shard\n");
	load_bad(f, "xyzzy = 1", "f:2:1: unknown key 'xyzzy'\n");
}

static void a_wrong_type_says_what_was_expected_and_what_came(void **state)
{
	static const struct {
		const char *toml, *printed;
	} cases[] = {
		{"text = 1", "f:2:8: text: expected a string, got the whole number 1\n"},
		{"flag = 'yes'", "f:2:8: flag: expected true or false, got the string \"yes\"\n"},
		{"count = 'x'", "f:2:9: count: expected a whole number, got the string \"x\"\n"},
		{"count = 1.5", "f:2:9: count: expected a whole number, got the number 1.5\n"},
		{"cost = true", "f:2:8: cost: expected a number, got true\n"},
		{"cost = nan", "f:2:8: cost: expected a number, got the number nan\n"},
		{"grace = 90",
		 "f:2:9: grace: expected a duration such as \"90s\" or \"2h\", got the whole "
		 "number 90\n"},
		{"grace = '9 s'",
		 "f:2:9: grace: expected a duration such as \"90s\" or \"2h\", got the "
		 "string \"9 s\"\n"},
		{"memory = 'big'",
		 "f:2:10: memory: expected a size such as \"512MiB\" or \"2GiB\", got the "
		 "string \"big\"\n"},
		{"memory = -1",
		 "f:2:10: memory: expected a size such as \"512MiB\" or \"2GiB\", got the "
		 "whole number -1\n"},
		{"mode = 1",
		 "f:2:8: mode: expected one of auto, lower or higher, got the whole number 1\n"},
		{"mode = 'up'",
		 "f:2:8: mode: expected one of auto, lower or higher, got the string \"up\"\n"},
		{"mode = 'hihger'",
		 "f:2:8: mode: expected one of auto, lower or higher, got the string "
		 "\"hihger\": did you mean 'higher'?\n"},
		{"tags = 1",
		 "f:2:8: tags: expected a string or a list of strings, got the whole number 1\n"},
		{"tags = ['a', 2, []]",
		 "f:2:14: tags[1]: expected a string, got the whole number 2\n"
		 "f:2:17: tags[2]: expected a string, got a list\n"},
		{"command = {}",
		 "f:2:11: command: expected a command as a list of strings or one string, "
		 "got a table\n"},
		{"command = ['a', 3]",
		 "f:2:17: command[1]: expected a string, got the whole number 3\n"},
		{"env = []", "f:2:7: env: expected a table of names and strings, got a list\n"},
		{"env = { A = [] }",
		 "f:2:13: env.A: expected a string, a number or true or false, got a list\n"},
		{"env = { A = -inf, B = nan }",
		 "f:2:13: env.A: expected a string, a finite number or true or false, got the number -inf\n"
		 "f:2:23: env.B: expected a string, a finite number or true or false, got the number nan\n"},
		{"env = { 'A B' = 1, '' = 2, 'A=' = 3 }",
		 "f:2:9: env.A B: expected the name of a variable (no blanks, no '=')\n"
		 "f:2:20: env.: expected the name of a variable (no blanks, no '=')\n"
		 "f:2:28: env.A=: expected the name of a variable (no blanks, no '=')\n"},
		{"limits = 07:32:00",
		 "f:2:10: limits: expected a table, got the date or time 07:32:00\n"},
		{"roles = []",
		 "f:2:9: roles: expected tables by name, as in [roles.NAME], got a list\n"},
		{"roles.a = 1", "f:2:11: roles.a: expected a table, got the whole number 1\n"},
		{"data = {}", "f:2:8: data: expected a list of tables, got a table\n"},
		{"data = [1]", "f:2:9: data[0]: expected a table, got the whole number 1\n"},
		{"[roles.trainer]\ncommand = 'x'\ncount = 'x'",
		 "f:4:9: roles.trainer.count: expected a whole number, got the string \"x\"\n"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++)
		load_bad(f, cases[i].toml, cases[i].printed);
}

static void null_is_a_wrong_type(void **state)
{
	struct fixture *f = *state;
	struct doc *d = parse_ok(yaml_parse, f->a, STR("name: n\ncount:\n"));

	assert_false(schema_load(&example_schema, d, &f->out, f->a, &f->ps));
	assert_string_equal(f->ps.v[0].text, "count: expected a whole number, got null");
}

static void out_of_range_says_the_range(void **state)
{
	static const struct {
		const char *toml, *printed;
	} cases[] = {
		{"count = 101",
		 "f:2:9: count: expected a whole number from -5 to 100, got the whole number 101\n"},
		{"count = -6",
		 "f:2:9: count: expected a whole number from -5 to 100, got the whole number -6\n"},
		{"cost = -0.5",
		 "f:2:8: cost: expected a number from 0 to 1000, got the number -0.5\n"},
		{"cost = 1001",
		 "f:2:8: cost: expected a number from 0 to 1000, got the whole number 1001\n"},
		{"grace = '3h'",
		 "f:2:9: grace: expected a duration such as \"90s\" or \"2h\" from 0s to 2h, "
		 "got the string \"3h\"\n"},
		{"[limits]\nnote = 'x'\ngrace = '10ms'",
		 "f:4:9: limits.grace: expected a duration such as \"90s\" or \"2h\" from 1s to 1h30m, got "
		 "the string \"10ms\"\n"},
		{"memory = 1000",
		 "f:2:10: memory: expected a size such as \"512MiB\" or \"2GiB\" from 1KiB "
		 "to 1TiB, got the whole number 1000\n"},
		{"memory = '16EiB'",
		 "f:2:10: memory: expected a size such as \"512MiB\" or \"2GiB\", got "
		 "the string \"16EiB\"\n"},
		{"memory = '10EiB'",
		 "f:2:10: memory: expected a size such as \"512MiB\" or \"2GiB\" from "
		 "1KiB to 1TiB, got the string \"10EiB\"\n"},
		{"tags = ['a','b','c','d']",
		 "f:2:8: tags: expected a string or a list of strings from 0 to "
		 "3 items, got a list\n"},
		{"command = ' '",
		 "f:2:11: command: expected a command as a list of strings or one string "
		 "that is not empty, got the string \" \"\n"},
		{"command = []",
		 "f:2:11: command: expected a command as a list of strings or one string "
		 "that is not empty, got a list\n"},
		{"env = {A=1,B=1,C=1,D=1,E=1,F=1}",
		 "f:2:7: env: expected a table of names and strings from "
		 "0 to 5 entries, got a table\n"},
		{"meters.a.title = 'x'",
		 "f:2:18: meters.a.title: expected a string from 2 to 5 bytes, got "
		 "the string \"x\"\n"},
		{"data = [{src='a'},{src='a'},{src='a'},{src='a'}]",
		 "f:2:8: data: expected a list of tables from 0 to 3 tables, got a list\n"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++)
		load_bad(f, cases[i].toml, cases[i].printed);
}

static void every_type_that_has_a_length_can_be_limited(void **state)
{
	static const struct field fields[] = {
		{.name = "name",
		 .type = FIELD_NAME,
		 .offset = offsetof(struct example, name),
		 .min = 3,
		 .max = 5},
		{.name = "tags",
		 .type = FIELD_STRS,
		 .offset = offsetof(struct example, tags),
		 .min = 2,
		 .max = 0},
		{.name = "count",
		 .type = FIELD_INT,
		 .offset = offsetof(struct example, count),
		 .min = 5,
		 .max = 0},
		{.name = "cost", .type = FIELD_FLOAT, .offset = offsetof(struct example, cost)},
		{.name = "sub",
		 .type = FIELD_TABLE,
		 .offset = offsetof(struct example, limits),
		 .sub = &limits_schema,
		 .min = 2,
		 .max = 9},
		{.name = NULL},
	};
	const struct schema sc = {.name = "x", .size = sizeof(struct example), .fields = fields};
	struct fixture *f = *state;
	CLEANUP(buf_release) struct buf out;
	struct doc *d = parse_ok(
		toml_parse, f->a,
		STR("name = 'ab'\ntags = 'a'\ncount = 4\ncost = -1e300\nsub = {note = 'x'}\n"));

	buf_init(&out, 10000);
	assert_false(schema_load(&sc, d, &f->out, f->a, &f->ps));
	problems_print(&f->ps, "f", &out);
	assert_string_equal(
		buf_str(&out).p,
		"f:1:8: name: expected a name of a-z, 0-9 and - (at most 40, a letter or digit at both ends) "
		"from 3 to 5 bytes, got the string \"ab\"\n"
		"f:2:8: tags: expected a string or a list of strings of at least 2 items, got the string \"a\"\n"
		"f:3:9: count: expected a whole number of at least 5, got the whole number 4\n"
		"f:5:7: sub: expected a table from 2 to 9 entries, got a table\n");
	assert_true(f->out.cost == -1e300);
}

static void a_missing_key_names_its_table(void **state)
{
	struct fixture *f = *state;

	load_bad(f, "[roles.trainer]\n[limits]\n[[data]]\nsrc = 'a'\n[[data]]\n",
		 "f:2:1: missing key 'command' in roles.trainer\n"
		 "f:3:1: missing key 'note' in limits\n"
		 "f:6:1: missing key 'src' in data[1]\n");
	assert_false(load(f, ""));
	assert_string_equal(f->ps.v[0].text, "missing key 'name'");
	assert_pos(f->ps.v[0].pos, 1, 1);
}

static void names_have_one_form(void **state)
{
	static const char *const good[] = {"a", "0", "a-b", "a--b",
					   "abcdefghijabcdefghijabcdefghijabcdefghij"};
	static const char *const bad[] = {
		"",    "-",   "a-",  "-a",	 "A",
		"a_b", "a.b", "a b", "\xc3\xa9", "abcdefghijabcdefghijabcdefghijabcdefghijk"};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(good); i++) {
		CLEANUP(freep) char *text = xasprintf("name = '%s'", good[i]);

		load_good(f, text);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		CLEANUP(freep) char *text = xasprintf("name = '%s'", bad[i]);

		assert_false(load(f, text));
		assert_non_null(strstr(f->ps.v[0].text, "name: expected a name of a-z, 0-9 and -"));
	}
}

static void the_keys_of_a_map_are_names(void **state)
{
	struct fixture *f = *state;

	load_bad(
		f, "[roles.Trainer]\ncommand = 'x'\n[meters.'a/b']\n[meters.\"\\u001b\"]\n",
		"f:2:8: roles: expected a name of a-z, 0-9 and - (at most 40, a letter or digit at both "
		"ends), got 'Trainer'\n"
		"f:4:9: meters: expected a name of letters, digits and _ . - (at most 64), got 'a/b'\n"
		"f:5:9: meters: expected a name of letters, digits and _ . - (at most 64), got '\\x1b'\n");
	assert_int_equal(f->out.roles.n, 1);
}

static void keys_that_the_caller_checks_may_be_anything_but_nul(void **state)
{
	static const struct field fields[] = {
		{.name = "m",
		 .type = FIELD_MAP,
		 .offset = offsetof(struct example, meters),
		 .sub = &meter_schema,
		 .keys = KEYS_ANY},
		{.name = NULL},
	};
	const struct schema sc = {.name = "x", .size = sizeof(struct example), .fields = fields};
	struct fixture *f = *state;
	struct doc *d = parse_ok(toml_parse, f->a, STR("[m.'a / b']\n[m.\"\\u0000\"]\n"));

	assert_false(schema_load(&sc, d, &f->out, f->a, &f->ps));
	assert_int_equal(f->ps.n, 1);
	assert_string_equal(f->ps.v[0].text, "m: expected a name without a NUL byte, got '\\x00'");
}

static void a_nul_byte_in_a_string_is_a_problem(void **state)
{
	struct fixture *f = *state;

	load_bad(
		f,
		"text = \"a\\u0000b\"\ntags = [\"\\u0000\"]\nenv = {A = \"\\u0000\"}\ncommand = \"\\u0000\"\n",
		"f:2:8: text: expected text, found a NUL byte in it\n"
		"f:3:9: tags[0]: expected text, found a NUL byte in it\n"
		"f:4:12: env.A: expected text, found a NUL byte in it\n"
		"f:5:11: command: expected text, found a NUL byte in it\n");
	load_bad(f, "tags = \"\\u0000\"\n", "f:2:8: tags: expected text, found a NUL byte in it\n");
}

static void a_map_cannot_be_endless(void **state)
{
	struct fixture *f = *state;
	CLEANUP(buf_release) struct buf text;

	buf_init(&text, 1 << 20);
	buf_addz(&text, "name = 'n'\n");
	for (int i = 0; i <= SCHEMA_MAX_ITEMS; i++)
		buf_printf(&text, "[meters.a%d]\n", i);
	assert_false(load(f, text.p));
	assert_int_equal(f->ps.n, 1);
	assert_string_equal(f->ps.v[0].text,
			    "meters: expected tables by name from 0 to 4096 entries, got a table");
	assert_int_equal(f->out.meters.n, 0);
}

static void what_is_no_table_is_a_problem(void **state)
{
	struct fixture *f = *state;
	struct doc *d = parse_ok(json_parse, f->a, STR("[1]"));

	assert_false(schema_load(&example_schema, d, &f->out, f->a, &f->ps));
	assert_string_equal(f->ps.v[0].text, "expected a table of keys, got a list");
	assert_int_equal(f->out.count, 3);
}

static void a_default_that_its_row_refuses_is_seen(void **state)
{
	static const struct field fields[] = {
		{.name = "a", .type = FIELD_INT, .fallback = "x"},
		{.name = "b", .type = FIELD_INT, .fallback = "5", .min = 1, .max = 2},
		{.name = NULL},
	};
	const struct schema sc = {.name = "x", .size = sizeof(int64_t), .fields = fields};
	struct fixture *f = *state;
	CLEANUP(buf_release) struct buf out;

	buf_init(&out, 1000);
	assert_false(schema_load(&sc, NULL, &f->out, f->a, &f->ps));
	problems_print(&f->ps, "f", &out);
	assert_string_equal(buf_str(&out).p,
			    "f: the default of 'a' is not a value: x\n"
			    "f: b: expected a whole number from 1 to 2, got the whole number 5\n");
}

static void problems_are_sorted_counted_and_harmless(void **state)
{
	struct fixture *f = *state;
	CLEANUP(buf_release) struct buf out;

	buf_init(&out, 100000);
	problems_add(&f->ps, f->a, (struct doc_pos){2, 5}, "second");
	problems_add(&f->ps, f->a, (struct doc_pos){2, 5}, "third\x1b[2J");
	problems_add(&f->ps, f->a, (struct doc_pos){1, 9}, "first %d", 1);
	problems_add(&f->ps, f->a, (struct doc_pos){0, 0}, "nowhere");
	problems_print(&f->ps, "a\nb", &out);
	assert_string_equal(buf_str(&out).p,
			    "a\\x0ab: nowhere\na\\x0ab:1:9: first 1\na\\x0ab:2:5: second\n"
			    "a\\x0ab:2:5: third\\x1b[2J\n");
	for (int i = 0; i < 47; i++)
		problems_add(&f->ps, f->a, (struct doc_pos){9, 9}, "x");
	assert_int_equal(f->ps.n, PROBLEMS_MAX);
	assert_int_equal(f->ps.more, 1);
	buf_reset(&out);
	problems_print(&f->ps, "f", &out);
	assert_true(str_ends(buf_str(&out), STR("f: and 1 more problem\n")));
}

static void a_long_problem_is_kept_whole(void **state)
{
	struct fixture *f = *state;

	problems_add(&f->ps, f->a, (struct doc_pos){1, 1}, "%0400d!", 0);
	problems_add(&f->ps, f->a, (struct doc_pos){1, 1}, "%0255d", 0);
	problems_add(&f->ps, f->a, (struct doc_pos){1, 1}, "%0256d", 0);
	assert_int_equal(strlen(f->ps.v[0].text), 401);
	assert_int_equal(strlen(f->ps.v[1].text), 255);
	assert_int_equal(strlen(f->ps.v[2].text), 256);
}

static void all_problems_of_a_large_file_are_counted(void **state)
{
	struct fixture *f = *state;
	CLEANUP(buf_release) struct buf text;

	buf_init(&text, 1 << 20);
	buf_addz(&text, "name = 'n'\n");
	for (int i = 0; i < 1000; i++)
		buf_printf(&text, "unknown%d = 1\n", i);
	assert_false(load(f, text.p));
	assert_int_equal(f->ps.n, PROBLEMS_MAX);
	assert_int_equal(f->ps.more, 1000 - PROBLEMS_MAX);
}

/* Splitting. */

static void a_command_is_split_as_sh_would(void **state)
{
	static const struct {
		const char *text;
		const char *words[6];
	} cases[] = {
		{"python3 train.py  --epochs 3", {"python3", "train.py", "--epochs", "3"}},
		{" \t a\n b\r\n", {"a", "b"}},
		{"a 'b c' \"d e\"", {"a", "b c", "d e"}},
		{"a'b'\"c\"d", {"abcd"}},
		{"'' \"\" x", {"", "", "x"}},
		{"a\\ b \\\\ \\' \\\"", {"a b", "\\", "'", "\""}},
		{"'a\\b' \"a\\b\" \"a\\\"b\" \"\\$x \\` \\\\\"",
		 {"a\\b", "a\\b", "a\"b", "$x ` \\"}},
		{"a\\\nb \\\n c \"d\\\ne\"", {"ab", "c", "de"}},
		{"echo '$HOME' *.c '|' x\\; \\$x", {"echo", "$HOME", "*.c", "|", "x;", "$x"}},
		{"get h/?a=1&b=2;c 'a > b' $ 5$ a|b",
		 {"get", "h/?a=1&b=2;c", "a > b", "$", "5$", "a|b"}},
		{"run ${params.lr} $${params.lr} \"\\$x\"",
		 {"run", "${params.lr}", "$${params.lr}", "$x"}},
		{"a # b", {"a", "#", "b"}},
		{"\xc3\xa9 '\xe2\x82\xac'", {"\xc3\xa9", "\xe2\x82\xac"}},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct doc *d = doc_new(f->a, DOC_TABLE);
		size_t n = 0;

		doc_set(f->a, d, STR("name"), doc_new_str(f->a, STR("n")));
		doc_set(f->a, d, STR("command"), doc_new_str(f->a, str_from(cases[i].text)));
		assert_true(schema_load(&example_schema, d, &f->out, f->a, &f->ps));
		for (; n < COUNT(cases[i].words) && cases[i].words[n]; n++) {
			assert_true(n < f->out.command.n);
			assert_string_equal(f->out.command.v[n], cases[i].words[n]);
		}
		assert_int_equal(f->out.command.n, n);
		assert_null(f->out.command.v[n]);
	}
}

static void an_open_quote_is_a_problem(void **state)
{
	struct fixture *f = *state;

	load_bad(f, "command = \"a 'b\"", "f:2:11: command: a ' is not closed\n");
	load_bad(f, "command = 'a \"b'", "f:2:11: command: a \" is not closed\n");
	load_bad(f, "command = 'a \"b\\'", "f:2:11: command: a \" is not closed\n");
	load_bad(f, "command = 'a \\'", "f:2:11: command: nothing follows the last backslash\n");
}

/* Rule: what only a shell understands is not handed to the program as a word. */
static void a_command_for_a_shell_is_a_problem(void **state)
{
	static const char *const cases[][2] = {
		{"a | b", "|"},
		{"a || b", "||"},
		{"a && b", "&&"},
		{"a &", "&"},
		{"a; b", "a;"},
		{"a ; b", ";"},
		{"a >log", ">log"},
		{"a 2>log", "2>log"},
		{"a &>log", "&>log"},
		{"a <in", "<in"},
		{"a --rank $RANK", "$RANK"},
		{"a ${RANK}", "${RANK}"},
		{"a $_x", "$_x"},
		{"a $(date)", "$(date)"},
		{"a `date`", "`date`"},
	};
	struct fixture *f = *state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(buf_release) struct buf text = {0}, said = {0};

		buf_init(&text, 256);
		buf_init(&said, 512);
		buf_printf(&text, "command = '%s'", cases[i][0]);
		buf_printf(
			&said,
			"f:2:11: command: '%s' is for a shell, and none runs here: write [\"sh\", "
			"\"-c\", \"...\"], or put it in '...' if it is a plain word\n",
			cases[i][1]);
		load_bad(f, buf_str(&text).p, buf_str(&said).p);
	}
	load_bad(f, "command = 'a \"b $x\"'",
		 "f:2:11: command: '\"b $x\"' is for a shell, and none runs here: write [\"sh\", "
		 "\"-c\", \"...\"], or put it in '...' if it is a plain word\n");
}

/* Suggestions. */

static void the_nearest_word_is_suggested(void **state)
{
	static const char *const words[] = {"count",	   "command", "instance_type",
					    "max_runtime", "env",     "memory"};
	static const struct {
		const char *given, *near;
	} cases[] = {
		{"cuont", "count"},
		{"counts", "count"},
		{"Count", "count"},
		{"max-runtime", "max_runtime"},
		{"maxruntime", "max_runtime"},
		{"instance", "instance_type"},
		{"mem", "memory"},
		{"evn", "env"},
		{"commnad", "command"},
		{"zzz", NULL},
		{"", NULL},
		{"x", NULL},
		{"completely_different", NULL},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *near = suggest_word(words, COUNT(words), str_from(cases[i].given));

		if (cases[i].near) {
			assert_non_null(near);
			assert_string_equal(near, cases[i].near);
		} else {
			assert_null(near);
		}
	}
	assert_null(suggest_word(words, 0, STR("count")));
}

int main(void)
{
#define rule(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		rule(every_type_of_field_is_loaded),
		rule(maps_and_lists_become_arrays),
		rule(json_of_a_struct_is_that_of_its_table),
		rule(what_is_absent_has_its_default),
		rule(no_document_at_all_gives_the_defaults),
		rule(a_value_with_a_problem_is_as_if_absent),
		rule(nothing_is_zero_in_every_unit),
		rule(values_without_a_place_take_that_of_their_key),
		rule(an_unknown_key_gets_a_suggestion),
		rule(a_wrong_type_says_what_was_expected_and_what_came),
		rule(null_is_a_wrong_type),
		rule(out_of_range_says_the_range),
		rule(every_type_that_has_a_length_can_be_limited),
		rule(a_missing_key_names_its_table),
		rule(names_have_one_form),
		rule(the_keys_of_a_map_are_names),
		rule(keys_that_the_caller_checks_may_be_anything_but_nul),
		rule(a_nul_byte_in_a_string_is_a_problem),
		rule(a_map_cannot_be_endless),
		rule(what_is_no_table_is_a_problem),
		rule(a_default_that_its_row_refuses_is_seen),
		rule(problems_are_sorted_counted_and_harmless),
		rule(a_long_problem_is_kept_whole),
		rule(all_problems_of_a_large_file_are_counted),
		rule(a_command_is_split_as_sh_would),
		rule(an_open_quote_is_a_problem),
		rule(a_command_for_a_shell_is_a_problem),
		rule(the_nearest_word_is_suggested),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
