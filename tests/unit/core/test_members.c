/* Resources that carry many nodes, and those that belong to the install. */
#include "core_fixture.h"

#include <stdio.h>
#include <string.h>

/* Three workers on one resource: as an Auto Scaling group or an indexed Job would have them. */
static struct fixture *open_carrier(void)
{
	struct fixture *f = run_open(three_workers);

	core_run_free(f->r);
	f->plan.resources[0].node = -1;
	f->plan.resources[0].carries_many = true;
	f->plan.nresources = 1;
	for (int i = 0; i < 3; i++)
		f->plan.resource_of[i] = 0;
	f->r = core_run_new(&f->plan);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	return f;
}

static void carrier_runs(struct fixture *f)
{
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	for (int i = 0; i < 3; i++) {
		node_say(f, i, EV_NODE_HELLO);
		snprintf(f->r->nodes[i].identity, sizeof(f->r->nodes[i].identity), "i-%d", i);
	}
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_READY);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_STARTED);
	assert_int_equal(f->r->phase, RUN_RUNNING);
}

static void member_gone(struct fixture *f, const char *identity)
{
	struct event ev = {.kind = EV_RES_MEMBER};

	snprintf(ev.text, sizeof(ev.text), "%s", identity);
	run_give(f, ev);
}

static void member_unheard(struct fixture *f, const char *identity)
{
	struct event ev = {.kind = EV_RES_MEMBER, .err_kind = ERR_TIMEOUT};

	snprintf(ev.text, sizeof(ev.text), "%s its node does not answer", identity);
	run_give(f, ev);
}

static void one_resource_launches_all_the_nodes_that_it_carries(void **state)
{
	struct fixture *f = open_carrier();

	(void)state;
	assert_int_equal(effects_count(f, FX_CREATE), 1);
	assert_int_equal(f->r->node_count[NODE_LAUNCHING], 3);
	carrier_runs(f);
	run_close(f);
}

static void silent_nodes_of_one_resource_are_observed_together(void **state)
{
	struct fixture *f = open_carrier();
	int looks = 0;

	(void)state;
	carrier_runs(f);
	for (int i = 0; i < 3; i++) {
		f->now += 30;
		node_say(f, i, EV_NODE_DROPPED);
	}
	for (int64_t until = f->now + 20000; f->now < until; f->now += 10) {
		run_give(f, (struct event){.kind = EV_TICK});
		looks += effects_count(f, FX_OBSERVE);
		if (f->r->resources[0].asked)
			resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	}
	assert_in_range(looks, 3, 8);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	run_close(f);
}

/* A cause that the provider knows is known here within ten seconds, however long the wait has been. */
static void a_carrier_whose_nodes_are_awaited_is_observed_every_eight_seconds(void **state)
{
	struct fixture *f = open_carrier();
	int looks = 0;

	(void)state;
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	for (int64_t last = f->now, until = f->now + 100000; f->now < until; f->now += 10) {
		run_give(f, (struct event){.kind = EV_TICK});
		if (effects_count(f, FX_OBSERVE)) {
			last = f->now;
			looks++;
		}
		assert_in_range(f->now - last, 0, 8500);
		if (f->r->resources[0].asked)
			resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	}
	assert_in_range(looks, 12, 20);
	run_close(f);
}

static void losing_a_member_is_losing_its_node_and_not_the_resource(void **state)
{
	struct fixture *f = open_carrier();

	(void)state;
	carrier_runs(f);
	member_gone(f, "i-7");		   /* of nobody */
	f->r->nodes[2].identity[0] = '\0'; /* of a machine that has not enrolled */
	member_gone(f, "");
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	member_gone(f, "i-1");
	assert_int_equal(f->r->nodes[1].state, NODE_LOST);
	assert_int_equal(f->r->nodes[0].state, NODE_RUNNING);
	assert_int_equal(f->r->resources[0].state, RES_LIVE);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.node, 1);
	run_close(f);
}

static void a_member_that_its_provider_does_not_hear_is_lost_if_nobody_does(void **state)
{
	struct fixture *f = open_carrier();

	(void)state;
	carrier_runs(f);
	member_unheard(f, "i-1");
	assert_int_equal(f->r->nodes[1].state, NODE_RUNNING);
	node_say(f, 1, EV_NODE_DROPPED);
	member_unheard(f, "i-1");
	assert_int_equal(f->r->nodes[1].state, NODE_LOST);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_non_null(strstr(f->r->cause.text, "its node does not answer"));
	run_close(f);
}

/* The job on it may run until it has stopped itself. */
static void a_rank_that_starts_again_waits_longer_than_its_provider(void **state)
{
	struct fixture *f = open_carrier();

	(void)state;
	carrier_runs(f);
	((struct role *)f->plan.crew.roles[0].spec)->policy.on_lost = LOST_REPLACE;
	node_say(f, 1, EV_NODE_DROPPED);
	member_unheard(f, "i-1");
	assert_int_equal(f->r->nodes[1].state, NODE_RUNNING);
	run_close(f);
}

static void a_member_that_is_gone_when_all_is_handed_over_changes_nothing(void **state)
{
	struct fixture *f = open_carrier();

	(void)state;
	carrier_runs(f);
	node_exit(f, 1, 0, 0);
	node_say(f, 1, EV_NODE_DRAINED);
	member_gone(f, "i-1");
	assert_int_equal(f->r->nodes[1].state, NODE_EXITED);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	run_close(f);
}

static void a_carrier_that_is_gone_takes_all_its_nodes_with_it(void **state)
{
	struct fixture *f = open_carrier();

	(void)state;
	carrier_runs(f);
	node_say(f, 2, EV_NODE_DROPPED);
	f->now += 100;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_OBSERVE, 0));
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->node_count[NODE_LOST], 3);
	run_close(f);
}

/* ---- of the install ---- */

/* The first is the install's, and the others need it. */
static struct fixture *open_shared(void)
{
	struct fixture *f = run_open("command = ['w']\ncount = 2\n");
	struct plan_resource *v = arena_array(f->a, struct plan_resource, 3);
	static int needs[] = {0};

	core_run_free(f->r);
	v[0] = (struct plan_resource){
		.kind = "iam.role", .name = "role", .node = -1, .shared = true};
	for (int i = 0; i < 2; i++) {
		v[1 + i] = f->plan.resources[i];
		v[1 + i].needs = needs;
		v[1 + i].nneeds = 1;
		f->plan.resource_of[i] = 1 + i;
	}
	f->plan.resources = v;
	f->plan.nresources = 3;
	f->r = core_run_new(&f->plan);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	return f;
}

static void what_belongs_to_the_install_is_made_and_stays(void **state)
{
	struct fixture *f = open_shared();

	(void)state;
	assert_true(effects_have(f, FX_CREATE, 0));
	for (int i = 0; i < 3; i++)
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(effects_count(f, FX_DESTROY), 2);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 2, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(effects_count(f, FX_DESTROY), 0);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	assert_int_equal(f->r->resources[0].state, RES_LIVE); /* the ledger says so */
	run_close(f);
}

static void a_run_waits_to_know_what_became_of_a_shared_resource(void **state)
{
	struct fixture *f = open_shared();

	(void)state;
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	resource_answer(f, 0, OUTCOME_UNSURE, ERR_TIMEOUT);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_FIND, 0));
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	run_close(f);
}

static void what_is_made_ends_by_itself_some_day(void **state)
{
	struct fixture *f = run_open("command = ['w']\nmax_runtime = '2h'\n");

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	assert_int_equal(f->fx.v[0].lifetime_ms, 3 * 3600 * 1000);
	f->job.max_runtime_ms = 0; /* without a limit a day */
	assert_int_equal(plan_lifetime_ms(&f->plan), 24 * 3600 * 1000);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_resource_launches_all_the_nodes_that_it_carries),
		cmocka_unit_test(silent_nodes_of_one_resource_are_observed_together),
		cmocka_unit_test(a_carrier_whose_nodes_are_awaited_is_observed_every_eight_seconds),
		cmocka_unit_test(losing_a_member_is_losing_its_node_and_not_the_resource),
		cmocka_unit_test(a_member_that_its_provider_does_not_hear_is_lost_if_nobody_does),
		cmocka_unit_test(a_rank_that_starts_again_waits_longer_than_its_provider),
		cmocka_unit_test(a_member_that_is_gone_when_all_is_handed_over_changes_nothing),
		cmocka_unit_test(a_carrier_that_is_gone_takes_all_its_nodes_with_it),
		cmocka_unit_test(what_belongs_to_the_install_is_made_and_stays),
		cmocka_unit_test(a_run_waits_to_know_what_became_of_a_shared_resource),
		cmocka_unit_test(what_is_made_ends_by_itself_some_day),
	};
	return cmocka_run_group_tests_name("core members", tests, NULL, NULL);
}
