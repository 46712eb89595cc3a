#include "core_fixture.h"

#include <signal.h>
#include <string.h>

static void an_unfit_node_fails_the_run_before_anything_starts(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_create_all(f);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_HELLO);
	run_give(f, (struct event){.kind = EV_NODE_UNFIT,
				   .index = 0,
				   .err_kind = ERR_NOT_FOUND,
				   .text = "command 'w' not found"});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 3);
	assert_int_equal(effects_count(f, FX_START), 0);
	run_close(f);
}

static void a_silent_node_is_looked_at_and_its_agent_started_again(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	run_make_ready(f);
	node_say(f, 0, EV_NODE_STARTED);
	node_say(f, 0, EV_NODE_DROPPED);
	f->now = f->r->nodes[0].observe_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_OBSERVE, 0));
	resource_answer(f, 0, OUTCOME_BROKEN, ERR_NONE);
	assert_true(effects_have(f, FX_CREATE, 0));
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	run_give(f,
		 (struct event){
			 .kind = EV_NODE_HELLO, .index = 0, .attempt = 1, .holds = HOLDS_STARTED});
	assert_int_equal(effects_count(f, FX_START), 0); /* at most once */
	assert_int_equal(f->r->nodes[0].state, NODE_RUNNING);
	run_close(f);
}

static void a_start_that_never_arrived_is_sent_again(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	run_make_ready(f);
	assert_true(effects_have(f, FX_START, 0));
	node_say(f, 0, EV_NODE_DROPPED);
	node_say(f, 0, EV_NODE_HELLO);
	assert_true(effects_have(f, FX_PREPARE, 0));
	node_say(f, 0, EV_NODE_READY);
	assert_true(effects_have(f, FX_START, 0));
	assert_int_equal(f->r->nodes[0].attempt, 1);
	run_close(f);
}

/* Its agent is a new one: what the old one had pulled is being looked at again. */
static void a_node_that_prepares_again_starts_when_it_is_ready(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 2\n");

	(void)state;
	run_create_all(f);
	node_say(f, 0, EV_NODE_HELLO);
	node_say(f, 1, EV_NODE_HELLO);
	node_say(f, 0, EV_NODE_READY);
	node_say(f, 0, EV_NODE_DROPPED);
	node_say(f, 0, EV_NODE_HELLO);
	assert_true(effects_have(f, FX_PREPARE, 0));
	node_say(f, 1, EV_NODE_READY);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_true(effects_have(f, FX_START, 1) && !effects_have(f, FX_START, 0));
	node_say(f, 0, EV_NODE_READY);
	assert_true(effects_have(f, FX_START, 0));
	run_close(f);
}

/* It has no job to stop: waiting for the end of one would take the whole deadline. */
static void a_node_that_cannot_be_prepared_again_has_nothing_to_give(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	run_make_ready(f);
	assert_true(effects_have(f, FX_START, 0));
	node_say(f, 0, EV_NODE_DROPPED);
	node_say(f, 0, EV_NODE_HELLO);
	run_give(f, (struct event){.kind = EV_NODE_UNFIT,
				   .index = 0,
				   .err_kind = ERR_NOT_FOUND,
				   .text = "no such command"});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_true(effects_have(f, FX_RELEASE, 0));
	run_close(f);
}

static void a_node_that_waits_for_its_start_has_nothing_to_stop(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 2\n");

	(void)state;
	run_make_ready(f);
	node_say(f, 1, EV_NODE_STARTED);
	node_say(f, 0, EV_NODE_DROPPED);
	node_say(f, 0, EV_NODE_HELLO);
	node_exit(f, 1, 1, 0);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_true(!effects_have(f, FX_STOP, 0) && f->r->nodes[0].settled);
	node_say(f, 0, EV_NODE_READY);
	assert_int_equal(effects_count(f, FX_START), 0);
	node_say(f, 1, EV_NODE_DRAINED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

static void a_node_that_comes_back_from_a_reboot_is_lost(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	run_make_ready(f);
	node_say(f, 0, EV_NODE_STARTED);
	node_say(f, 0, EV_NODE_DROPPED);
	run_give(f, (struct event){.kind = EV_NODE_HELLO,
				   .index = 0,
				   .attempt = 1,
				   .holds = HOLDS_OTHER_BOOT});
	assert_int_equal(f->r->nodes[0].state, NODE_LOST);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 8);
	run_close(f);
}

static void a_reboot_before_the_start_costs_nothing(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 2\n");

	(void)state;
	run_create_all(f);
	run_give(f, (struct event){.kind = EV_NODE_HELLO, .index = 0, .holds = HOLDS_OTHER_BOOT});
	assert_true(effects_have(f, FX_PREPARE, 0));
	assert_int_equal(f->r->nodes[0].state, NODE_HERE);
	run_close(f);
}

/* The start may have been acted on, and its claim lost. */
static void a_reboot_after_the_start_was_sent_is_not_answered_by_another_start(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	run_make_ready(f);
	assert_int_equal(effects_count(f, FX_START), 1);
	node_say(f, 0, EV_NODE_DROPPED);
	run_give(f, (struct event){.kind = EV_NODE_HELLO, .index = 0, .holds = HOLDS_OTHER_BOOT});
	assert_int_equal(f->r->nodes[0].state, NODE_LOST);
	assert_int_equal(effects_count(f, FX_START), 0);
	run_close(f);
}

static void a_node_silent_for_the_whole_lease_is_lost(void **state)
{
	struct fixture *f = run_open("command = ['w']\n[timeouts]\nlease = '1m'\n");

	(void)state;
	run_make_ready(f);
	node_say(f, 0, EV_NODE_STARTED);
	node_say(f, 0, EV_NODE_DROPPED);
	f->now += 60001;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->nodes[0].state, NODE_LOST);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

/* The lease is for a node that was there; one that still boots has the deadline of its phase. */
static void a_restart_does_not_shorten_the_launch(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 2\n[timeouts]\nlease = '10s'\n");

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_int_equal(f->r->nodes[1].lost_at_ms, 0);
	f->now += 60000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_PROVISIONING);
	assert_true(effects_have(f, FX_OBSERVE, 0)); /* there, and not heard of */
	f->now += 5 * 60000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_TIMEOUT);
	run_close(f);
}

/* Looked for while it was silent; before the answer came it had given all that it had. */
static void a_machine_that_goes_after_its_node_is_done_is_no_loss(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 2\n");

	(void)state;
	run_make_ready(f);
	node_say(f, 0, EV_NODE_STARTED);
	node_say(f, 1, EV_NODE_STARTED);
	node_say(f, 0, EV_NODE_DROPPED);
	f->now = f->r->nodes[0].observe_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_OBSERVE, 0));
	run_give(f,
		 (struct event){
			 .kind = EV_NODE_HELLO, .index = 0, .attempt = 1, .holds = HOLDS_STARTED});
	node_exit(f, 0, 0, 0);
	node_say(f, 0, EV_NODE_DRAINED);
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	assert_int_equal(f->r->nodes[0].state, NODE_EXITED);
	node_exit(f, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

/* The same work for a step whatever the number of nodes: looked at through the rows it touches. */
static void a_step_touches_only_its_own_node(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 2000\n");

	(void)state;
	run_create_all(f);
	node_say(f, 1234, EV_NODE_HELLO);
	assert_int_equal(f->fx.nodes.n, 1);
	assert_int_equal(f->fx.nodes.v[0], 1234);
	assert_int_equal(f->fx.n, 1);
	run_close(f);
}

/* Steps with looks at resources while all of them boot, for span_ms; and how many looks. */
static int looks_while_booting(struct fixture *f, int64_t span_ms, int *ret_rows)
{
	int steps = 0;

	*ret_rows = 0;
	for (int64_t end = f->now + span_ms; f->r->next_ms && f->r->next_ms < end;) {
		if (f->r->next_ms > f->now)
			f->now = f->r->next_ms;
		run_give(f, (struct event){.kind = EV_TICK});
		steps += effects_count(f, FX_OBSERVE) > 0;
		*ret_rows += effects_count(f, FX_OBSERVE);
		for (int i = 0; i < f->plan.nresources; i++)
			if (f->r->resources[i].asked == ASKED_OBSERVE)
				resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	}
	return steps;
}

static struct fixture *open_group_of(const char *toml)
{
	struct fixture *f = run_open(toml);

	core_run_free(f->r);
	for (int i = 0; i < f->plan.nresources; i++)
		f->plan.resources[i].group = 1;
	f->r = core_run_new(&f->plan);
	return f;
}

static void a_group_that_boots_is_looked_at_as_one_and_less_and_less_often(void **state)
{
	struct fixture *f = open_group_of("command = ['w']\ncount = 300\n");
	int rows;

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 7});
	run_give(f, (struct event){.kind = EV_TICK});
	for (int i = 0; i < 300; i++) {
		f->now += 3; /* the answers come one by one */
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	}
	int looks = looks_while_booting(f, 90000, &rows);
	assert_in_range(looks, 5, 40);
	assert_int_equal(rows, looks * 300);
	run_close(f);
}

static void of_a_group_somebody_who_falls_silent_is_looked_at_soon(void **state)
{
	struct fixture *f = open_group_of(three_workers);
	int rows;

	(void)state;
	run_create_all(f);
	node_say(f, 0, EV_NODE_HELLO);
	looks_while_booting(f, 40000, &rows); /* of the others */
	node_say(f, 0, EV_NODE_DROPPED);
	assert_in_range(f->r->nodes[0].observe_at_ms, f->now, f->now + 100);
	f->now += 100;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_OBSERVE, 0));
	run_close(f);
}

/* A thousand that come one by one over half the time, and whose agents are restarted meanwhile. */
static void however_a_group_boots_few_looks_are_enough(void **state)
{
	struct fixture *f = open_group_of("command = ['w']\ncount = 1000\n");
	int looks = 0, done = 0;

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 7});
	for (int64_t until = f->now + 90000; f->now < until; f->now += 45) {
		run_give(f, (struct event){.kind = EV_TICK});
		looks += effects_count(f, FX_OBSERVE) > 0;
		for (int i = 0; i < 1000; i++)
			if (f->r->resources[i].asked == ASKED_OBSERVE)
				resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
		if (done < 1000)
			resource_answer(f, done++, OUTCOME_DONE, ERR_NONE);
		if (done % 3 == 0) {
			node_say(f, done / 3, EV_NODE_HELLO);
			node_say(f, done / 3, EV_NODE_DROPPED);
		}
	}
	assert_in_range(looks, 5, 40);
	run_close(f);
}

static void nodes_without_a_group_are_looked_at_each_by_itself(void **state)
{
	struct fixture *f = run_open(three_workers);
	int rows;

	(void)state;
	run_create_all(f);
	looks_while_booting(f, 20001, &rows);
	assert_int_equal(rows, 3 * 10); /* every two seconds */
	run_close(f);
}

/* Rule: a machine that was given up is released, and never mistaken for its successor. */

static void hello_of(struct fixture *f, int rank, int incarnation, enum holds holds)
{
	run_give(f, (struct event){.kind = EV_NODE_HELLO,
				   .index = rank,
				   .incarnation = incarnation,
				   .conn = 77,
				   .attempt = holds == HOLDS_NOTHING ? 0 : 1,
				   .holds = holds});
}

static void an_earlier_incarnation_is_released_and_nothing_else_happens(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_make_ready(f);
	node_say(f, 0, EV_NODE_STARTED);
	f->r->nodes[0].incarnation = 3;
	f->r->nodes[0].connected = false;
	hello_of(f, 0, 2, HOLDS_STARTED);
	assert_int_equal(f->fx.n, 1);
	assert_int_equal(f->fx.v[0].kind, FX_RELEASE);
	assert_int_equal(f->fx.v[0].conn, 77);
	assert_false(f->r->nodes[0].connected);
	assert_int_equal(f->r->nodes[0].state, NODE_RUNNING);
	run_close(f);
}

static void a_newer_incarnation_before_the_start_takes_its_place(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_create_all(f);
	hello_of(f, 0, 2, HOLDS_NOTHING);
	assert_int_equal(f->r->nodes[0].incarnation, 2);
	assert_int_equal(f->r->nodes[0].state, NODE_HERE);
	assert_true(effects_have(f, FX_PREPARE, 0));
	hello_of(f, 0, 1, HOLDS_NOTHING);
	assert_int_equal(effects_count(f, FX_PREPARE), 0);
	assert_int_equal(f->fx.v[0].conn, 77);
	run_close(f);
}

/* It holds nothing, but what was started on the machine before it may still run. */
static void a_newer_incarnation_after_a_start_is_a_lost_attempt(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_make_ready(f);
	hello_of(f, 0, 2, HOLDS_NOTHING);
	assert_int_equal(effects_count(f, FX_START), 0);
	assert_int_equal(f->r->nodes[0].state, NODE_LOST);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_earlier_incarnation_is_released_and_nothing_else_happens),
		cmocka_unit_test(a_newer_incarnation_before_the_start_takes_its_place),
		cmocka_unit_test(a_newer_incarnation_after_a_start_is_a_lost_attempt),
		cmocka_unit_test(an_unfit_node_fails_the_run_before_anything_starts),
		cmocka_unit_test(a_silent_node_is_looked_at_and_its_agent_started_again),
		cmocka_unit_test(a_start_that_never_arrived_is_sent_again),
		cmocka_unit_test(a_node_that_prepares_again_starts_when_it_is_ready),
		cmocka_unit_test(a_node_that_cannot_be_prepared_again_has_nothing_to_give),
		cmocka_unit_test(a_node_that_waits_for_its_start_has_nothing_to_stop),
		cmocka_unit_test(a_node_that_comes_back_from_a_reboot_is_lost),
		cmocka_unit_test(a_reboot_before_the_start_costs_nothing),
		cmocka_unit_test(
			a_reboot_after_the_start_was_sent_is_not_answered_by_another_start),
		cmocka_unit_test(a_node_silent_for_the_whole_lease_is_lost),
		cmocka_unit_test(a_restart_does_not_shorten_the_launch),
		cmocka_unit_test(a_machine_that_goes_after_its_node_is_done_is_no_loss),
		cmocka_unit_test(a_step_touches_only_its_own_node),
		cmocka_unit_test(a_group_that_boots_is_looked_at_as_one_and_less_and_less_often),
		cmocka_unit_test(of_a_group_somebody_who_falls_silent_is_looked_at_soon),
		cmocka_unit_test(however_a_group_boots_few_looks_are_enough),
		cmocka_unit_test(nodes_without_a_group_are_looked_at_each_by_itself),
	};
	return cmocka_run_group_tests_name("core node", tests, NULL, NULL);
}
