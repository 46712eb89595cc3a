#include "core_fixture.h"

/* Ranks that follow the addresses of the nodes. */

/* A run whose strategy asks for it, and whose machines say their addresses themselves. */
static struct fixture *open_sorted(const char *toml)
{
	struct fixture *f = run_open(toml);
	struct strategy *s = arena_new_of(f->a, struct strategy);

	*s = *f->plan.strategy;
	s->ranks_by_address = true;
	f->plan.strategy = s;
	for (int i = 0; i < f->plan.crew.n; i++)
		f->plan.addresses[i] = NULL;
	core_run_free(f->r);
	f->r = core_run_new(&f->plan);
	run_create_all(f);
	return f;
}

static void hello(struct fixture *f, int rank, const char *address)
{
	struct event ev = {.kind = EV_NODE_HELLO, .index = rank, .holds = HOLDS_NOTHING};

	snprintf(ev.text, sizeof(ev.text), "%s", address);
	run_give(f, ev);
}

static void assert_ranks(const struct fixture *f, const int *want)
{
	for (int i = 0; i < f->plan.crew.n; i++)
		assert_int_equal(core_job_rank(f->r, i), want[i]);
}

static void inputs_are_sent_when_all_are_here(void **state)
{
	struct fixture *f = open_sorted(three_workers);

	(void)state;
	hello(f, 0, "10.0.0.10");
	hello(f, 2, "10.0.0.100");
	assert_int_equal(effects_count(f, FX_PREPARE), 0);
	/* One that dials again waits on. */
	node_say(f, 0, EV_NODE_DROPPED);
	hello(f, 0, "10.0.0.10");
	assert_int_equal(effects_count(f, FX_PREPARE), 0);
	hello(f, 1, "10.0.0.9");
	assert_int_equal(effects_count(f, FX_PREPARE), 3);
	assert_int_equal(f->fx.nodes.n, 3); /* their rows are saved */
	assert_ranks(f, (int[]){1, 0, 2});
	run_close(f);
}

static void a_strategy_that_does_not_ask_has_the_ranks_of_the_plan(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_create_all(f);
	hello(f, 0, "10.0.0.10");
	assert_true(effects_have(f, FX_PREPARE, 0));
	hello(f, 1, "10.0.0.9");
	hello(f, 2, "10.0.0.8");
	assert_ranks(f, (int[]){0, 1, 2});
	run_close(f);
}

static void addresses_are_compared_as_numbers(void **state)
{
	static const struct {
		const char *addresses[3];
		int ranks[3];
	} cases[] = {
		{{"10.0.0.10", "10.0.0.9", "9.200.0.1"}, {2, 1, 0}},
		{{"fd00::10", "fd00::9", "fd00::a"}, {2, 0, 1}},
		{{"fe80::2%eth0", "fe80::1%eth0", "::ffff:10.0.0.1"}, {2, 1, 0}},
		/* IPv4 before IPv6; what is no address comes last, in the order of the plan. */
		{{"fd00::1", "10.0.0.1", "1.2.3.4"}, {2, 1, 0}},
		{{"node-b", "node-a", "10.0.0.1"}, {1, 2, 0}},
		{{"10.0.0.1", "10.0.0.1", "10.0.0.1"}, {0, 1, 2}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = open_sorted(three_workers);

		for (int k = 0; k < 3; k++)
			hello(f, k, cases[i].addresses[k]);
		assert_ranks(f, cases[i].ranks);
		run_close(f);
	}
}

static void each_role_has_its_own_order(void **state)
{
	struct fixture *f = open_sorted(pserver); /* ranks 0,1 trainers; 2,3 pservers */

	(void)state;
	hello(f, 0, "10.0.0.4");
	hello(f, 1, "10.0.0.2");
	hello(f, 2, "10.0.0.3");
	hello(f, 3, "10.0.0.1");
	assert_ranks(f, (int[]){1, 0, 3, 2});
	run_close(f);
}

static void lose(struct fixture *f, int rank)
{
	for (int k = 0; k < f->plan.crew.nroles; k++)
		((struct role *)f->plan.crew.roles[k].spec)->policy.on_lost = LOST_REPLACE;
	node_say(f, rank, EV_NODE_DROPPED);
	f->now = f->r->nodes[rank].observe_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	resource_answer(f, rank, OUTCOME_ABSENT, ERR_NONE);
	resource_answer(f, rank, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, rank, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->nodes[rank].state, NODE_LAUNCHING);
}

static void a_node_on_another_machine_keeps_its_rank(void **state)
{
	struct fixture *f = open_sorted("command = 'w'\ncount = 2\n");

	(void)state;
	hello(f, 0, "10.0.0.2");
	hello(f, 1, "10.0.0.1");
	assert_ranks(f, (int[]){1, 0});
	lose(f, 0);
	hello(f, 0, "10.0.0.0");
	assert_true(effects_have(f, FX_PREPARE, 0));
	assert_ranks(f, (int[]){1, 0});
	run_close(f);
}

static void a_machine_that_is_replaced_before_is_waited_for(void **state)
{
	struct fixture *f = open_sorted("command = 'w'\ncount = 2\n");

	(void)state;
	hello(f, 0, "10.0.0.2");
	lose(f, 0);
	hello(f, 1, "10.0.0.3");
	assert_int_equal(effects_count(f, FX_PREPARE), 0);
	hello(f, 0, "10.0.0.4");
	assert_int_equal(effects_count(f, FX_PREPARE), 2);
	assert_ranks(f, (int[]){1, 0});
	run_close(f);
}

static void a_restarted_master_keeps_the_ranks(void **state)
{
	struct fixture *f = open_sorted("command = 'w'\ncount = 2\n");

	(void)state;
	hello(f, 0, "10.0.0.2");
	hello(f, 1, "10.0.0.1");
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	hello(f, 1, "10.0.0.1");
	assert_true(effects_have(f, FX_PREPARE, 1));
	assert_ranks(f, (int[]){1, 0});
	run_close(f);
}

/* What sleeps has its own rank; those that are awake share theirs. */
static void nodes_that_wake_later_have_their_own_rank(void **state)
{
	struct fixture *f = open_sorted("command = 'w'\ncount = 2\nmax = 3\n");

	(void)state;
	hello(f, 0, "10.0.0.2");
	hello(f, 1, "10.0.0.1");
	assert_int_equal(effects_count(f, FX_PREPARE), 2);
	assert_ranks(f, (int[]){1, 0, 2});
	run_give(f, (struct event){.kind = EV_RESIZE, .index = 0, .want = 3});
	resource_answer(f, 2, OUTCOME_DONE, ERR_NONE);
	hello(f, 2, "10.0.0.0");
	assert_true(effects_have(f, FX_PREPARE, 2));
	assert_ranks(f, (int[]){1, 0, 2});
	run_close(f);
}

static void a_role_that_becomes_smaller_waits_for_fewer(void **state)
{
	struct fixture *f = open_sorted("command = 'w'\ncount = 3\nmin = 2\n");

	(void)state;
	hello(f, 0, "10.0.0.2");
	hello(f, 1, "10.0.0.1");
	assert_int_equal(effects_count(f, FX_PREPARE), 0);
	run_give(f, (struct event){.kind = EV_RESIZE, .index = 0, .want = 2});
	assert_int_equal(effects_count(f, FX_PREPARE), 2);
	assert_ranks(f, (int[]){1, 0, 2});
	run_close(f);
}

static void a_large_run_is_prepared_in_slices(void **state)
{
	struct fixture *f = open_sorted("command = 'w'\ncount = 5\n");
	int prepared;

	(void)state;
	f->r->slice = 2;
	for (int i = 0; i < 5; i++)
		hello(f, i, "10.0.0.1");
	prepared = effects_count(f, FX_PREPARE);
	assert_int_equal(prepared, 2);
	/* One that dials again meanwhile is prepared once. */
	node_say(f, 4, EV_NODE_DROPPED);
	hello(f, 4, "10.0.0.1");
	prepared += effects_count(f, FX_PREPARE);
	while (prepared < 5) {
		assert_true(f->r->next_ms > 0 && f->r->next_ms <= f->now);
		run_give(f, (struct event){.kind = EV_TICK});
		assert_in_range(effects_count(f, FX_PREPARE), 1, 2);
		prepared += effects_count(f, FX_PREPARE);
	}
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(effects_count(f, FX_PREPARE), 0);
	run_close(f);
}

static void who_is_not_here_in_time_is_named(void **state)
{
	struct fixture *f = open_sorted("command = 'w'\ncount = 2\n");

	(void)state;
	hello(f, 0, "10.0.0.2");
	f->now = f->r->deadline_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_non_null(strstr(f->r->cause.text, "worker-1 was not ready within"));
	/* Nobody is prepared any more. */
	hello(f, 1, "10.0.0.1");
	assert_int_equal(effects_count(f, FX_PREPARE), 0);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inputs_are_sent_when_all_are_here),
		cmocka_unit_test(a_strategy_that_does_not_ask_has_the_ranks_of_the_plan),
		cmocka_unit_test(addresses_are_compared_as_numbers),
		cmocka_unit_test(each_role_has_its_own_order),
		cmocka_unit_test(a_node_on_another_machine_keeps_its_rank),
		cmocka_unit_test(a_machine_that_is_replaced_before_is_waited_for),
		cmocka_unit_test(a_restarted_master_keeps_the_ranks),
		cmocka_unit_test(nodes_that_wake_later_have_their_own_rank),
		cmocka_unit_test(a_role_that_becomes_smaller_waits_for_fewer),
		cmocka_unit_test(a_large_run_is_prepared_in_slices),
		cmocka_unit_test(who_is_not_here_in_time_is_named),
	};
	return cmocka_run_group_tests_name("core ranks", tests, NULL, NULL);
}
