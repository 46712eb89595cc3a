#include "../spec/golden.h"

#include "plan/plan.h"

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = arena_new();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena = arena_free(arena);
	return 0;
}

static struct plan plan_of(const struct job *job)
{
	struct problems ps = {0};
	struct plan p;

	if (!plan_make(job, NULL, arena, &p, &ps))
		fail_msg("%s", ps.v[0].text);
	return p;
}

static struct plan plan_of_text(const char *text)
{
	struct job *job = arena_new_of(arena, struct job);

	*job = good_job(arena, text);
	return plan_of(job);
}

/* What is printed must be JSON. */
static struct doc *json_of(const struct plan *p, struct buf *out)
{
	struct err err = {0};
	struct doc *doc;

	plan_to_json(p, "run-abcd", arena, out);
	assert_false(out->overflow);
	if (json_parse(buf_str(out), arena, &doc, &err) < 0)
		fail_msg("%s", err.msg);
	return doc;
}

static void check_golden(const struct plan *p, const char *run, const char *name)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(buf_release) struct buf json;

	buf_init(&text, GOLDEN_MAX);
	buf_init(&json, GOLDEN_MAX);
	plan_to_text(p, run, arena, &text);
	golden_check(golden_path(arena, arena_printf(arena, "golden/plan/%s.txt", name)),
		     buf_str(&text));
	plan_to_json(p, run, arena, &json);
	golden_check(golden_path(arena, arena_printf(arena, "golden/plan/%s.json", name)),
		     buf_str(&json));
}

static void the_plans_of_the_examples_are_as_in_the_golden_files(void **state)
{
	static const char *const names[] = {"hello", "roles"};
	(void)state;

	for (size_t i = 0; i < COUNT(names); i++) {
		struct job *job = arena_new_of(arena, struct job);
		struct err err = {0};
		struct doc *doc;
		const char *text, *path = arena_printf(arena, "%s/examples/%s.toml",
						       golden_env("REGATTA_SOURCE_ROOT"), names[i]);
		if (job_read(path, &(struct job_options){0}, arena, job, &doc, &text, &err) < 0)
			fail_msg("%s\n%s", err.msg, text);
		struct plan p = plan_of(job);
		check_golden(&p, arena_printf(arena, "%s-abcd", names[i]), names[i]);
	}
}

static void the_plan_of_a_pserver_job_is_as_in_the_golden_files(void **state)
{
	(void)state;
	struct plan p = plan_of_text(
		"name = 'ctr'\nstrategy = 'pserver'\nmax_runtime = '2h'\nmax_cost = 1.5\n"
		"timeouts.grace = 0\n"
		"[roles.pserver]\ncommand = ['./ps', \"it's\", '']\nmemory = '1GiB'\n"
		"[roles.trainer]\ncommand = './train'\nready_when = 'finished'\n");
	check_golden(&p, "ctr-abcd", "pserver");
}

static void gates_are_said_in_words(void **state)
{
	CLEANUP(buf_release) struct buf text;
	(void)state;

	buf_init(&text, GOLDEN_MAX);
	struct plan p = plan_of_text(
		"command = 'x'\n[roles.a]\ncount = 2\n[roles.b]\nport = 80\ncount = 2\n"
		"[roles.c]\nready_when = 'finished'\n[roles.d]\nafter = ['a', 'b', 'c']\n");
	plan_to_text(&p, "run-abcd", arena, &text);
	assert_non_null(strstr(
		text.p,
		"  d  when every a has been started and every b answers on port 80 and c has finished\n"));
	assert_non_null(strstr(text.p, "  a  at once\n"));
}

static void json_has_every_nodes_environment(void **state)
{
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, GOLDEN_MAX);
	struct plan p = plan_of_text("command = 'x'\ncount = 64\n");
	const struct doc *nodes = doc_array(json_of(&p, &out), "nodes");
	assert_int_equal(nodes->array.n, 64);
	for (size_t i = 0; i < 64; i++) {
		char rank[8];
		snprintf(rank, sizeof(rank), "%zu", i);
		assert_true(
			str_is(doc_str(doc_get(nodes->array.v[i], "env"), "RANK", STR("")), rank));
	}
}

static void json_of_a_large_run_has_the_environment_of_one_node_per_role(void **state)
{
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&out, GOLDEN_MAX);
	struct plan p =
		plan_of_text("command = 'x'\n[roles.a]\ncount = 40\n[roles.b]\ncount = 40\n");
	const struct doc *nodes = doc_array(json_of(&p, &out), "nodes");
	assert_int_equal(nodes->array.n, 80);
	for (size_t i = 0; i < 80; i++)
		assert_int_equal(doc_get(nodes->array.v[i], "env") != NULL, i == 0 || i == 40);
}

static void ten_thousand_nodes_print_in_a_few_megabytes(void **state)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(buf_release) struct buf json;
	(void)state;

	buf_init(&json, GOLDEN_MAX);
	buf_init(&text, 64 * 1024);
	struct plan p = plan_of_text("command = 'x'\ncount = 10000\n");
	plan_to_json(&p, "big-abcd", arena, &json);
	assert_false(json.overflow);
	plan_to_text(&p, "big-abcd", arena, &text);
	assert_false(text.overflow);
	assert_non_null(strstr(text.p, "\n... and 9936 more\n"));
}

static void text_never_holds_control_bytes(void **state)
{
	CLEANUP(buf_release) struct buf text;
	(void)state;

	buf_init(&text, GOLDEN_MAX);
	struct plan p = plan_of_text(
		"command = [\"a\\u001b[31m\\nb\", \"\\u202e\"]\nenv.X = \"\\u0007\\r\"\n");
	plan_to_text(&p, "run-abcd", arena, &text);
	for (size_t i = 0; i < text.n; i++)
		assert_true(text.p[i] == '\n' || (unsigned char)text.p[i] >= ' ');
	assert_non_null(strstr(text.p, "'a\\x1b[31m\\x0ab' '\\u{202e}'"));
}

static void a_long_value_is_cut_between_characters(void **state)
{
	CLEANUP(buf_release) struct buf toml;
	CLEANUP(buf_release) struct buf text;
	(void)state;

	buf_init(&toml, 1 << 20);
	buf_init(&text, GOLDEN_MAX);
	buf_addz(&toml, "command = 'x'\nenv.X = 'y");
	for (int i = 0; i < 1000; i++)
		buf_addz(&toml, "\xc3\xa9");
	buf_addz(&toml, "'\n");
	struct plan p = plan_of_text(toml.p);
	plan_to_text(&p, "run-abcd", arena, &text);
	assert_non_null(strstr(text.p, "\xc3\xa9... (2001 bytes)\n"));
	assert_null(strstr(text.p, "\\x"));
}

/* The printers are for every engine: one may not know addresses, and may need resources that carry no node. */
static void resources_without_a_node_and_unknown_addresses_print(void **state)
{
	CLEANUP(buf_release) struct buf text;
	CLEANUP(buf_release) struct buf out;
	(void)state;

	buf_init(&text, GOLDEN_MAX);
	buf_init(&out, GOLDEN_MAX);
	struct plan p = plan_of_text("command = 'x'\ncount = 2\n");
	int needs[] = {0};
	struct plan_resource resources[] = {
		{.kind = "test.group", .name = "group", .node = -1},
		{.kind = "test.node", .name = "n0", .node = 0, .needs = needs, .nneeds = 1},
		{.kind = "test.node", .name = "n1", .node = 1, .needs = needs, .nneeds = 1},
	};
	int resource_of[] = {1, 2};
	p.resources = resources;
	p.nresources = 3;
	p.resource_of = resource_of;
	p.addresses[1] = NULL;
	plan_to_text(&p, "run-abcd", arena, &text);
	assert_non_null(strstr(text.p, "resources  1 test.group, 2 test.node\n"));
	assert_non_null(strstr(text.p, "worker-1  worker      1  -"));
	const struct doc *doc = json_of(&p, &out), *list = doc_array(doc, "resources");
	assert_int_equal(doc_get(list->array.v[0], "node")->type, DOC_NULL);
	assert_true(str_is(doc_array(list->array.v[1], "needs")->array.v[0]->s, "group"));
	const struct doc *nodes = doc_array(doc, "nodes");
	assert_int_equal(doc_get(nodes->array.v[1], "address")->type, DOC_NULL);
	assert_true(str_is(doc_str(nodes->array.v[1], "resource", STR("")), "n1"));
}

static void ranks_that_are_given_later_are_announced(void **state)
{
	CLEANUP(buf_release) struct buf text;
	struct plan p = plan_of_text("command = 'w'\ncount = 2\n");
	struct strategy s = *p.strategy;

	(void)state;
	buf_init(&text, GOLDEN_MAX);
	plan_to_text(&p, "run-abcd", arena, &text);
	assert_null(strstr(text.p, "order of addresses"));
	s.ranks_by_address = true;
	p.strategy = &s;
	plan_to_text(&p, "run-abcd", arena, &text);
	assert_non_null(strstr(text.p, "order of addresses when all nodes are here.\n"));
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(the_plans_of_the_examples_are_as_in_the_golden_files),
		T(the_plan_of_a_pserver_job_is_as_in_the_golden_files),
		T(gates_are_said_in_words),
		T(json_has_every_nodes_environment),
		T(json_of_a_large_run_has_the_environment_of_one_node_per_role),
		T(ten_thousand_nodes_print_in_a_few_megabytes),
		T(text_never_holds_control_bytes),
		T(a_long_value_is_cut_between_characters),
		T(resources_without_a_node_and_unknown_addresses_print),
		T(ranks_that_are_given_later_are_announced),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests_name("plan_print", tests, NULL, NULL);
}
