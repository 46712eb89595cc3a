/* Nodes without agents: observations of their machines stand for the words of agents. */
#include "core_fixture.h"

#include <stdio.h>
#include <string.h>

#include "core/agentless.h"

static struct fixture *open_without_agents(const char *toml)
{
	struct fixture *f = run_open(toml);

	core_run_free(f->r);
	f->plan.agentless = f->plan.boots = true;
	f->plan.resources[0].node = -1;
	f->plan.resources[0].carries_many = true;
	f->plan.nresources = 1;
	for (int i = 0; i < f->plan.crew.n; i++) {
		f->plan.resource_of[i] = 0;
		f->plan.addresses[i] = NULL;
	}
	f->r = core_run_new(&f->plan);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	return f;
}

static struct event sight(int rank, const char *identity)
{
	struct event ev = {.kind = EV_NODE_SEEN, .index = rank};

	snprintf(ev.text, sizeof(ev.text), "%s 10.0.0.%d", identity, rank);
	return ev;
}

static void see(struct fixture *f, int rank)
{
	char identity[16];

	snprintf(identity, sizeof(identity), "pod-%d", rank);
	run_give(f, sight(rank, identity));
}

static void see_end(struct fixture *f, int rank, int code)
{
	char identity[16];

	snprintf(identity, sizeof(identity), "pod-%d", rank);
	struct event ev = sight(rank, identity);

	ev.ended = true;
	ev.exit.code = code;
	run_give(f, ev);
}

static void see_all(struct fixture *f)
{
	for (int i = 0; i < f->plan.crew.n; i++) {
		see(f, i);
		node_say(f, i, EV_NODE_STARTED);
	}
	assert_int_equal(f->r->phase, RUN_RUNNING);
}

static void a_machine_that_is_seen_carries_its_node_and_its_log_is_stored(void **state)
{
	struct fixture *f = open_without_agents(three_workers);

	(void)state;
	see(f, 1);
	assert_true(effects_have(f, FX_START, 1)); /* it does not wait for the others */
	assert_int_equal(effects_count(f, FX_PREPARE), 0);
	assert_string_equal(f->r->nodes[1].identity, "pod-1");
	assert_string_equal(f->r->nodes[1].address, "10.0.0.1");
	assert_int_equal(f->r->phase, RUN_GATHERING);
	see(f, 1); /* the next observation says the same */
	assert_int_equal(effects_count(f, FX_START), 0);
	see(f, 0);
	see(f, 2);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
}

static void the_run_succeeds_when_all_have_ended_well_and_are_stored(void **state)
{
	struct fixture *f = open_without_agents(three_workers);

	(void)state;
	see(f, 0);
	see_end(f, 0, 0); /* before the others were there */
	assert_int_equal(f->r->nodes[0].state, NODE_EXITED);
	see(f, 1);
	see_end(f, 1, 0);
	see_end(f, 2, 0); /* was never seen running */
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_DRAINED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_clean_up(f);
	assert_int_equal(f->r->phase, RUN_SUCCEEDED);
	run_close(f);
}

static void a_failure_ends_the_run_before_all_are_there(void **state)
{
	struct fixture *f = open_without_agents("command = ['w']\ncount = 3\nretries = 5\n");

	(void)state;
	see(f, 1);
	see(f, 0);
	see_end(f, 0, 3); /* nobody could start it again */
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.node, 0);
	assert_true(effects_have(f, FX_STOP, 1));
	assert_false(effects_have(f, FX_STOP, 2));
	assert_true(f->r->nodes[2].settled);
	assert_int_equal(f->r->phase, RUN_COLLECTING); /* for the log of the one that failed */
	see_end(f, 1, 143);
	node_say(f, 0, EV_NODE_DRAINED);
	node_say(f, 1, EV_NODE_DRAINED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

static void another_machine_than_the_nodes_does_not_count(void **state)
{
	struct fixture *f = open_without_agents(three_workers);

	(void)state;
	see_all(f);
	struct event ev = sight(1, "pod-9");

	ev.ended = true;
	ev.exit.code = 1;
	run_give(f, ev);
	assert_int_equal(f->r->nodes[1].state, NODE_RUNNING);
	assert_string_equal(f->r->nodes[1].identity, "pod-1");
	run_give(f, (struct event){.kind = EV_RES_MEMBER, .text = "pod-1 Evicted: no room"});
	assert_int_equal(f->r->nodes[1].state, NODE_LOST);
	assert_non_null(strstr(f->r->cause.text, "Evicted: no room"));
	run_close(f);
}

static void a_machine_whose_log_ends_is_observed(void **state)
{
	struct fixture *f = open_without_agents(three_workers);
	int64_t before;
	int looks = 0;

	(void)state;
	see_all(f);
	for (int64_t until = f->now + 60000; f->now < until; f->now += 50) {
		run_give(f, (struct event){.kind = EV_TICK});
		looks += effects_count(f, FX_OBSERVE);
		if (f->r->resources[0].asked)
			resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	}
	assert_in_range(looks, 12, 20); /* silence is no loss, but nothing is heard between looks */
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	node_say(f, 2, EV_NODE_DROPPED);
	before = f->now;
	while (!effects_count(f, FX_OBSERVE)) {
		f->now += 50;
		run_give(f, (struct event){.kind = EV_TICK});
	}
	assert_in_range(f->now - before, 0, 200);
	run_close(f);
}

static void a_new_master_stores_the_rest_and_stops_what_was_to_stop(void **state)
{
	struct fixture *f = open_without_agents(three_workers);

	(void)state;
	see_all(f);
	see_end(f, 0, 0);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_int_equal(effects_count(f, FX_START), 3);
	assert_int_equal(effects_count(f, FX_STOP), 0);
	node_say(f, 0, EV_NODE_DRAINED);
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(effects_count(f, FX_STOP), 2);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_int_equal(effects_count(f, FX_START), 2); /* the first has handed over everything */
	assert_true(effects_have(f, FX_STOP, 1) && effects_have(f, FX_STOP, 2));
	run_close(f);
}

static void servers_need_no_port_that_answers(void **state)
{
	struct fixture *f = open_without_agents(pserver);

	(void)state;
	see_all(f);
	see_end(f, 0, 0);
	see_end(f, 1, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	assert_true(effects_have(f, FX_STOP, 2) && effects_have(f, FX_STOP, 3));
	run_close(f);
}

/* Rule: when the last of those that nobody waits for comes, the run may be over. */
static void servers_that_come_last_find_the_work_done(void **state)
{
	struct fixture *f = open_without_agents(pserver);

	(void)state;
	see_end(f, 0, 0);
	see_end(f, 1, 0);
	see(f, 2);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	see(f, 3);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

/* Rule: what stops a resource may remove the output of jobs that have ended: it waits until that is stored, and is
 * asked as long as a node is left and the resource stays. */
static void a_resource_is_stopped_while_it_has_nodes_whose_output_is_not_stored(void **state)
{
	struct fixture *f = open_without_agents(three_workers);

	(void)state;
	see_all(f);
	assert_true(agentless_output_stored(f->r, 0)); /* nobody has ended */
	see_end(f, 0, 3);
	assert_false(agentless_output_stored(f->r, 0));
	assert_true(agentless_output_stored(f->r, 1)); /* not of this resource */
	assert_true(agentless_stop_needed(f->r, 0));
	assert_false(agentless_stop_needed(f->r, 1));
	node_say(f, 0, EV_NODE_DRAINED);
	assert_true(agentless_output_stored(f->r, 0));
	assert_true(agentless_stop_needed(f->r, 0)); /* the others run */
	f->now += f->plan.job->timeouts.grace_ms + f->plan.job->timeouts.collect_ms + 60000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_false(agentless_stop_needed(f->r, 0)); /* it is destroyed */
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_machine_that_is_seen_carries_its_node_and_its_log_is_stored),
		cmocka_unit_test(the_run_succeeds_when_all_have_ended_well_and_are_stored),
		cmocka_unit_test(a_failure_ends_the_run_before_all_are_there),
		cmocka_unit_test(another_machine_than_the_nodes_does_not_count),
		cmocka_unit_test(a_machine_whose_log_ends_is_observed),
		cmocka_unit_test(a_new_master_stores_the_rest_and_stops_what_was_to_stop),
		cmocka_unit_test(servers_need_no_port_that_answers),
		cmocka_unit_test(servers_that_come_last_find_the_work_done),
		cmocka_unit_test(
			a_resource_is_stopped_while_it_has_nodes_whose_output_is_not_stored),
	};

	return cmocka_run_group_tests_name("core agentless", tests, NULL, NULL);
}
