#include "fmt_test.h"

#include "schema_example.h"

static void assert_explains(const char *path, const char *text)
{
	CLEANUP(buf_release) struct buf out;
	struct err err = {0};

	buf_init(&out, 1 << 16);
	if (schema_explain(&example_schema, str_from(path), &out, &err) < 0)
		fail_msg("%s", err.msg);
	assert_string_equal(buf_str(&out).p, text);
}

static void a_path_finds_its_field(void **state)
{
	static const struct {
		const char *path, *field; /* NULL: none */
	} cases[] = {
		{"count", "count"},
		{"roles", "roles"},
		{"roles.trainer", "roles"},
		{"roles.trainer.spot", "spot"},
		{"roles.\"a.b\".spot", "spot"},
		{"roles.'x'.count", "count"},
		{"roles.NAME.count", "count"},
		{"data", "data"},
		{"data.src", "src"},
		{"data[0].src", "src"},
		{"data[1]", "data"},
		{"limits.grace", "grace"},
		{"env", "env"},
		{"env.PATH", "env"},
		{"meters.a.title", "title"},
		{"", NULL},
		{"nothing", NULL},
		{"count.x", NULL},
		{"roles.trainer.nothing", NULL},
		{".", NULL},
		{"count.", NULL},
		{".count", NULL},
		{"limits.", NULL},
		{"\"count", NULL},
		{"[0]", NULL},
		{"env.A.B", NULL},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		const struct field *f = schema_find(&example_schema, str_from(cases[i].path));

		if (!cases[i].field) {
			assert_null(f);
			continue;
		}
		assert_non_null(f);
		assert_string_equal(f->name, cases[i].field);
	}
	assert_null(schema_find(&example_schema, (struct str){0}));
}

static void a_field_is_explained_with_type_range_default_and_example(void **state)
{
	(void)state;
	assert_explains("roles.trainer.count",
			"roles.NAME.count: whole number from 1 to 10, default 1\n"
			"\n"
			"How many nodes. They are named <role>-0, <role>-1, and so on.\n"
			"\n"
			"Example:\n"
			"    count = 4\n");
	assert_explains("name",
			"name: name, required\n\nA name.\n\nExample:\n    name = \"ctr\"\n");
	assert_explains("mode", "mode: auto, lower or higher, default \"lower\"\n\nWhich way.\n");
	assert_explains("grace", "grace: duration from 0s to 2h, default \"1m30s\"\n\nHow long.\n");
	assert_explains("memory",
			"memory: size from 1KiB to 1TiB, default \"2GiB\"\n\nHow much.\n");
	assert_explains(
		"command",
		"command: command that is not empty, default echo 'hello world'\n\nWhat runs.\n");
	assert_explains("roles.x.spot", "roles.NAME.spot: true or false\n\nTake spot capacity.\n");
	assert_explains("data.shard", "data.shard: true or false, default false\n\nIn parts.\n");
}

static void a_table_is_explained_with_its_keys(void **state)
{
	static const char text[] = "roles.NAME: tables by name\n"
				   "\n"
				   "The kinds of nodes, by name.\n"
				   "\n"
				   "Example:\n"
				   "    [roles.trainer]\n"
				   "    command = \"true\"\n"
				   "\n"
				   "Keys:\n"
				   "  count    How many nodes.\n"
				   "  command  What each node runs.\n"
				   "  spot     Take spot capacity.\n";
	(void)state;
	assert_explains("roles.trainer", text);
}

static void the_whole_file_is_explained_by_its_keys(void **state)
{
	CLEANUP(buf_release) struct buf out;
	struct err err = {0};
	(void)state;

	buf_init(&out, 1 << 16);
	assert_int_equal(schema_explain(&example_schema, STR(""), &out, &err), 0);
	assert_true(str_starts(
		buf_str(&out),
		STR("example\n\nA file with everything.\n\nKeys:\n  text     Any text, ")));
	for (const struct field *f = example_fields; f->name; f++)
		assert_non_null(strstr(out.p, f->name));
}

static void an_unknown_path_gets_a_suggestion(void **state)
{
	static const struct {
		const char *path, *message;
	} cases[] = {
		{"cuont", "no key 'cuont': did you mean 'count'?"},
		{"roles.trainer.spto",
		 "no key 'roles.trainer.spto': did you mean 'roles.NAME.spot'?"},
		/* the right word in the wrong place */
		{"spot", "no key 'spot': did you mean 'roles.NAME.spot'?"},
		{"dta[3].src", "no key 'dta[3].src': did you mean 'data'?"},
		{"xyzzy", "no key 'xyzzy' (there is no 'xyzzy' in example)"},
		{"limits.xyzzy", "no key 'limits.xyzzy' (there is no 'xyzzy' in limits)"},
		{"count.x", "no key 'count.x': 'count' has no keys of its own"},
		{"\x1b", "no key '\\x1b' (there is no '\\x1b' in example)"},
	};
	(void)state;

	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(buf_release) struct buf out;
		struct err err = {0};

		buf_init(&out, 1000);
		assert_int_equal(
			schema_explain(&example_schema, str_from(cases[i].path), &out, &err), -1);
		assert_int_equal(err.kind, ERR_NOT_FOUND);
		assert_string_equal(err.msg, cases[i].message);
		assert_int_equal(out.n, 0);
	}
}

static void long_help_is_wrapped(void **state)
{
	static const struct field fields[] = {
		{.name = "a",
		 .type = FIELD_STR,
		 .help = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
			 "fifteen sixteen seventeen"},
		{.name = "bare", .type = FIELD_BOOL},
		{.name = NULL},
	};
	const struct schema sc = {.name = "x", .size = 8, .fields = fields};
	CLEANUP(buf_release) struct buf out;
	struct err err = {0};
	(void)state;

	buf_init(&out, 1 << 16);
	assert_int_equal(schema_explain(&sc, STR("a"), &out, &err), 0);
	assert_string_equal(
		buf_str(&out).p,
		"a: string\n"
		"\n"
		"one two three four five six seven eight nine ten eleven twelve thirteen fourteen\n"
		"fifteen sixteen seventeen\n");
	buf_reset(&out);
	assert_int_equal(schema_explain(&sc, STR(""), &out, &err), 0);
	assert_string_equal(
		buf_str(&out).p,
		"x\n\n\n\nKeys:\n"
		"  a     one two three four five six seven eight nine ten eleven twelve thirteen\n"
		"        fourteen fifteen sixteen seventeen\n"
		"  bare  \n");
}

static const char reference[] =
	"# The example file\n"
	"\n"
	"A file with everything.\n"
	"\n"
	"| Key | Type | Default | Meaning | Example |\n"
	"|---|---|---|---|---|\n"
	"| `text` | string | `\"plain text\"` | Any text, as in \\*\\*bold\\*\\* or a\\|b. |  |\n"
	"| `name` | name | required | A name. | `name = \"ctr\"` |\n"
	"| `flag` | true or false | `true` | On or off. |  |\n"
	"| `count` | whole number from -5 to 100 | `3` | How many. |  |\n"
	"| `cost` | number from 0 to 1000 | `2.5` | In USD. |  |\n"
	"| `grace` | duration from 0s to 2h | `\"1m30s\"` | How long. |  |\n"
	"| `memory` | size from 1KiB to 1TiB | `\"2GiB\"` | How much. |  |\n"
	"| `mode` | auto, lower or higher | `\"lower\"` | Which way. |  |\n"
	"| `tags` | string or list of strings from 0 to 3 items | `[\"a\", \"b\"]` | Words. |  |\n"
	"| `command` | command that is not empty | `echo 'hello world'` | What runs. |  |\n"
	"| `env` | table of strings from 0 to 5 entries | `{ A = \"1\" }` | Environment. |  |\n"
	"| `limits` | table from 0 to 3 entries, see [`[limits]`](#limits) |  | Limits of all kinds. |  |\n"
	"| `roles` | tables by name, see [`[roles.NAME]`](#rolesname) |  | The kinds of nodes, by name. |  |\n"
	"| `meters` | tables by name, see [`[meters.NAME]`](#metersname) |  | Figures. |  |\n"
	"| `data` | list of tables from 0 to 3 tables, see [`[[data]]`](#data) |  | Inputs. |  |\n"
	"\n"
	"## `[limits]`\n"
	"\n"
	"```toml\n[limits]\nnote = \"x\"\n```\n"
	"\n"
	"| Key | Type | Default | Meaning | Example |\n"
	"|---|---|---|---|---|\n"
	"| `grace` | duration from 1s to 1h30m | `\"10s\"` | Before the kill. |  |\n"
	"| `note` | string | required | Why. |  |\n"
	"\n"
	"## `[roles.NAME]`\n"
	"\n"
	"One kind of node.\n"
	"\n"
	"```toml\n[roles.trainer]\ncommand = \"true\"\n```\n"
	"\n"
	"| Key | Type | Default | Meaning | Example |\n"
	"|---|---|---|---|---|\n"
	"| `count` | whole number from 1 to 10 | `1` | How many nodes. They are named &lt;role>-0, "
	"&lt;role>-1, and so on. | `count = 4` |\n"
	"| `command` | command | required | What each node runs. |  |\n"
	"| `spot` | true or false |  | Take spot capacity. |  |\n"
	"\n"
	"## `[meters.NAME]`\n"
	"\n"
	"| Key | Type | Default | Meaning | Example |\n"
	"|---|---|---|---|---|\n"
	"| `title` | string from 2 to 5 bytes |  | Shown. |  |\n"
	"\n"
	"## `[[data]]`\n"
	"\n"
	"Input files.\n"
	"\n"
	"| Key | Type | Default | Meaning | Example |\n"
	"|---|---|---|---|---|\n"
	"| `src` | string | required | Where from. | `src = \"a\\|b\"` |\n"
	"| `shard` | true or false | `false` | In parts. |  |\n";

static void the_reference_has_a_table_for_every_table(void **state)
{
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, 1 << 16);
	schema_reference(&example_schema, &out);
	assert_string_equal(buf_str(&out).p, reference);
}

static void a_table_that_is_used_twice_is_described_once(void **state)
{
	static const struct field fields[] = {
		{.name = "a",
		 .type = FIELD_LIST,
		 .sub = &item_schema,
		 .help = "One `x`\nand [two]."},
		{.name = "b", .type = FIELD_TABLE, .sub = &item_schema},
		{.name = NULL},
	};
	const struct schema sc = {.name = "pair", .size = 64, .fields = fields};
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, 1 << 16);
	schema_reference(&sc, &out);
	assert_non_null(strstr(out.p, "One \\`x\\` and \\[two]."));
	assert_non_null(
		strstr(out.p, "## `[b]`\n\nInput files.\n\nThe keys are those of `[[a]]`.\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_finds_its_field),
		cmocka_unit_test(a_field_is_explained_with_type_range_default_and_example),
		cmocka_unit_test(a_table_is_explained_with_its_keys),
		cmocka_unit_test(the_whole_file_is_explained_by_its_keys),
		cmocka_unit_test(an_unknown_path_gets_a_suggestion),
		cmocka_unit_test(long_help_is_wrapped),
		cmocka_unit_test(the_reference_has_a_table_for_every_table),
		cmocka_unit_test(a_table_that_is_used_twice_is_described_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
