/* START: the table of members before it, for agents that expand templates and for those of an earlier version. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "fmt/doc.h"
#include "link/message.h"
#include "master/run_json.h"
#include "master/start_table.h"
#include "rig.h"
#include "strategy/strategy.h"

#define TWO "{\"name\":\"t\",\"command\":[\"true\"],\"count\":2,\"env\":{\"BRACE\":\"{rank}\"}}"

/* Both are ready, and their STARTs have come.  Returns the second. */
static struct rig_agent *start_two(struct rig *r, bool templates)
{
	struct rig_agent *a[2] = {rig_agent(r, 0), rig_agent(r, 1)};

	rig_submit(r, TWO);
	for (int i = 0; i < 2; i++) {
		a[i]->templates = templates;
		rig_until(r, rig_run(r)->core->resources[i].state == RES_LIVE);
		agent_hello(a[i], NULL);
		agent_wait(a[i], FRAME_INPUTS);
		agent_say(a[i], FRAME_READY, "{\"ok\":true}");
	}
	for (int i = 0; i < 2; i++)
		agent_wait(a[i], FRAME_START);
	return a[1];
}

static const struct doc *parsed(struct str json, struct arena *mem)
{
	struct doc *d = NULL;

	assert_int_equal(json_parse(json, mem, &d, NULL), 0);
	return d;
}

static const char *env_of(const struct doc *start, const char *name)
{
	return doc_str(doc_get(start, "env"), name, STR("")).p;
}

static void the_table_comes_before_a_start_of_templates(void **state)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct rig *r = *state;
	struct rig_agent *a = start_two(r, true);

	assert_int_equal(a->seen[FRAME_MEMBERS], 1);
	const struct doc *members = parsed(str_from(a->last[FRAME_MEMBERS]), mem);

	assert_int_equal(doc_int(members, "first", -1), 0);
	assert_int_equal(doc_int(members, "total", -1), 2);
	assert_non_null(strchr(doc_str(members, "addresses", STR("")).p, ' '));
	const struct doc *start = parsed(buf_str(&a->start), mem);

	assert_int_equal(doc_int(start, "rank", -1), 1);
	assert_string_equal(env_of(start, "RANK"), "{rank}");
	assert_string_equal(env_of(start, "BRACE"), "{{rank}");
	assert_non_null(strstr(doc_str(start, "hostfile", STR("")).p, "{list:+|"));
	/* No path of this machine but the directory in which the job runs. */
	assert_string_equal(env_of(start, "REGATTA_HOSTFILE"), "{hostfile}");
}

#define PSERVER                                                                                     \
	"{\"name\":\"t\",\"strategy\":\"pserver\",\"roles\":{\"pserver\":{\"command\":[\"true\"]}," \
	"\"trainer\":{\"command\":[\"true\"]}}}"

/* And not the loopback address of the master's machine. */
static void a_node_is_told_the_address_at_which_it_reaches_the_master(void **state)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct rig *r = *state;
	struct rig_agent *a[2] = {rig_agent(r, 0), rig_agent(r, 1)};

	snprintf(r->m.http_url, sizeof(r->m.http_url), "https://127.0.0.1:5436");
	rig_submit(r, PSERVER);
	for (int i = 0; i < 2; i++) {
		a[i]->templates = true;
		rig_until(r, rig_run(r)->core->resources[i].state == RES_LIVE);
		agent_hello(a[i], NULL);
		agent_wait(a[i], FRAME_INPUTS);
		agent_say(a[i], FRAME_READY, "{\"ok\":true}");
	}
	agent_wait(a[1], FRAME_START);
	assert_string_equal(env_of(parsed(buf_str(&a[1]->start), mem), "MASTER_ENDPOINT"),
			    "192.0.2.1:5436");
}

static void an_agent_of_an_earlier_version_gets_texts(void **state)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct rig *r = *state;
	struct rig_agent *a = start_two(r, false);

	assert_int_equal(a->seen[FRAME_MEMBERS], 0);
	const struct doc *start = parsed(buf_str(&a->start), mem);

	assert_null(doc_get(start, "rank"));
	assert_string_equal(env_of(start, "RANK"), "1");
	assert_string_equal(env_of(start, "WORLD_SIZE"), "2");
	assert_string_equal(env_of(start, "BRACE"), "{rank}");
	assert_non_null(strstr(env_of(start, "REGATTA_HOSTFILE"), "worker-1.node/hostfile"));
	assert_non_null(strstr(doc_str(start, "hostfile", STR("")).p, " slots=1\n"));
	assert_int_equal(rig_events(r, "long_values"), 0);
}

/* The names of two nodes make the list as long as thousands of addresses would. */
static void a_value_too_long_for_a_variable_is_an_event(void **state)
{
	struct rig *r = *state;
	char *name = xcalloc(1, 70001);

	start_two(r, true);
	struct live_run *lr = rig_run(r);

	assert_int_equal(rig_events(r, "long_values"), 0);
	memset(name, 'n', 70000);
	lr->plan.crew.roles[0].name = name;
	start_forget(lr);
	for (int rank = 0; rank < 2; rank++)
		start_send(lr, rank, 1);
	rig_until(r, rig_events(r, "long_values") > 0);
	assert_int_equal(rig_events(r, "long_values"), 1); /* one for the role, not for each node */
	rig_crash(r);
	free(name);
}

/* The command of the run's only role becomes longer than a frame. */
static void make_command_long(struct rig *r)
{
	static const char *argv[3] = {"true"};
	struct live_run *lr = rig_run(r);

	argv[1] = arena_printf(lr->arena, "%0*d", FRAME_MAX_PAYLOAD, 0);
	struct strategy_role *role = &((struct strategy_role *)(uintptr_t)lr->plan.crew.roles)[0];

	role->command.v = argv;
	role->command.n = 2;
}

static void a_start_that_does_not_fit_ends_the_run_in_words(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, "{\"name\":\"t\",\"command\":[\"true\"]}");
	rig_until(r, rig_run(r)->core->resources[0].state == RES_LIVE);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_INPUTS);
	make_command_long(r);
	agent_say(a, FRAME_READY, "{\"ok\":true}");
	rig_until(r, rig_run(r)->core->verdict != VERDICT_NONE);
	assert_int_equal(a->seen[FRAME_START], 0);
	assert_non_null(strstr(rig_run(r)->core->cause.text,
			       "its command and environment take more than 1024 KiB"));
	agent_wait(a, FRAME_RELEASE);
}

static void inputs_that_do_not_fit_end_the_run_in_words(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, "{\"name\":\"t\",\"command\":[\"true\"]}");
	rig_until(r, rig_run(r)->core->resources[0].state == RES_LIVE);
	((struct job *)(uintptr_t)rig_run(r)->job)->data_prefix =
		arena_printf(rig_run(r)->arena, "%0*d", FRAME_MAX_PAYLOAD, 0);
	agent_hello(a, NULL);
	rig_until(r, rig_run(r)->core->verdict != VERDICT_NONE);
	assert_int_equal(a->seen[FRAME_INPUTS], 0);
	assert_non_null(strstr(rig_run(r)->core->cause.text,
			       "the list of its inputs takes more than 1024 KiB"));
	agent_wait(a, FRAME_RELEASE);
}

static void an_address_that_changed_is_in_the_next_table(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = start_two(r, true);
	struct live_run *lr = rig_run(r);

	lr->plan.addresses[1] = NULL;
	lr->core->nodes[1].address[0] = '\0';
	agent_hang_up(a);
	a->address = "10.9.8.7";
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
	rig_until(r, strcmp(start_members(lr)->addresses[1], "10.9.8.7") == 0);
}

/* The strategy of the run asks for ranks by address, and its machines say their addresses themselves. */
static void sort_ranks(struct rig *r)
{
	struct live_run *lr = rig_run(r);
	struct strategy *s = arena_new_of(lr->arena, struct strategy);

	*s = *lr->plan.strategy;
	s->ranks_by_address = true;
	lr->plan.strategy = s;
	for (int i = 0; i < lr->plan.crew.n; i++) {
		lr->plan.addresses[i] = NULL;
		lr->core->nodes[i].address[0] = '\0';
	}
}

static void the_lowest_address_is_rank_0(void **state)
{
	CLEANUP(arena_freep) struct arena *mem = arena_new();
	struct rig *r = *state;
	struct rig_agent *a[2] = {rig_agent(r, 0), rig_agent(r, 1)};

	rig_submit(r, TWO);
	sort_ranks(r);
	a[0]->address = "10.0.0.10";
	a[1]->address = "10.0.0.9";
	for (int i = 0; i < 2; i++) {
		a[i]->templates = true;
		rig_until(r, rig_run(r)->core->resources[i].state == RES_LIVE);
		agent_hello(a[i], NULL);
		agent_wait(a[i], FRAME_WELCOME);
	}
	for (int i = 0; i < 2; i++) {
		agent_wait(a[i], FRAME_INPUTS);
		agent_say(a[i], FRAME_READY, "{\"ok\":true}");
	}
	for (int i = 0; i < 2; i++) {
		agent_wait(a[i], FRAME_START);
		const struct doc *members = parsed(str_from(a[i]->last[FRAME_MEMBERS]), mem);

		assert_string_equal(doc_str(members, "addresses", STR("")).p, "10.0.0.9 10.0.0.10");
		assert_string_equal(doc_str(members, "names", STR("")).p, "worker-1 worker-0");
		assert_int_equal(doc_int(parsed(buf_str(&a[i]->start), mem), "rank", -1), 1 - i);
	}
	CLEANUP(buf_release) struct buf run = {0};

	buf_init(&run, 1 << 20);
	run_to_json(rig_run(r), true, &run);
	const struct doc *nodes = doc_array(parsed(buf_str(&run), mem), "nodes");

	for (int i = 0; i < 2; i++) {
		assert_int_equal(doc_int(nodes->array.v[i], "rank", -1), i);
		assert_int_equal(doc_int(nodes->array.v[i], "job_rank", -1), 1 - i);
	}
}

static const char *template_of(struct live_run *lr, const char *name)
{
	const struct env_list *env;

	start_forget(lr);
	env = start_templates(lr, 0);
	for (size_t i = 0; i < env->n; i++)
		if (strcmp(env->v[i].name, name) == 0)
			return env->v[i].value;
	return NULL;
}

static void what_the_node_itself_says_is_not_the_shells(void **state)
{
	static struct resources_spec two_gpus = {.gpus = 2};
	const char *gpus = "CUDA_VISIBLE_DEVICES", *all[] = {"TMPDIR", "CUDA_*"};
	struct rig *r = *state;

	start_two(r, true);
	struct live_run *lr = rig_run(r);
	const struct strategy_role before = lr->plan.crew.roles[0];
	const struct job *job = lr->job;
	struct role spec = *before.spec;
	struct job passes = *job;

	assert_string_equal(template_of(lr, "TMPDIR"), "/scratch");
	assert_string_equal(template_of(lr, gpus), "3");
	lr->plan.crew.launch = LAUNCH_FIRST;
	assert_null(template_of(lr, "TMPDIR"));
	assert_string_equal(template_of(lr, gpus), "3");
	spec.resources = &two_gpus;
	lr->plan.crew.roles[0].spec = &spec;
	assert_null(template_of(lr, gpus));
	assert_string_equal(template_of(lr, "PATH"), "/bin");
	passes.pass = (struct strs){all, 2};
	lr->job = &passes;
	assert_string_equal(template_of(lr, "TMPDIR"), "/scratch");
	assert_string_equal(template_of(lr, gpus), "3");
	lr->job = job;
	lr->plan.crew.roles[0] = before;
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(the_table_comes_before_a_start_of_templates),
		CASE(an_agent_of_an_earlier_version_gets_texts),
		CASE(a_node_is_told_the_address_at_which_it_reaches_the_master),
		CASE(a_value_too_long_for_a_variable_is_an_event),
		CASE(a_start_that_does_not_fit_ends_the_run_in_words),
		CASE(inputs_that_do_not_fit_end_the_run_in_words),
		CASE(an_address_that_changed_is_in_the_next_table),
		CASE(the_lowest_address_is_rank_0),
		CASE(what_the_node_itself_says_is_not_the_shells),
	};

	return cmocka_run_group_tests_name("start", tests, NULL, NULL);
}
