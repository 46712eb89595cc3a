/* The hang watchdog. */
#include "core_fixture.h"

#include <string.h>

#include "core/stall.h"

#define STALL 60000
#define JOB "command = ['true']\ncount = 3\nstall = '60s'\n"

static struct fixture *running(const char *toml)
{
	struct fixture *f = run_open(toml);

	run_make_ready(f);
	for (int i = 0; i < f->plan.crew.n; i++)
		node_say(f, i, EV_NODE_STARTED);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	return f;
}

static void pass(struct fixture *f, int64_t ms)
{
	f->now += ms;
	run_give(f, (struct event){.kind = EV_TICK});
}

static void answer(struct fixture *f, int rank, const char *text)
{
	struct event ev = {.kind = EV_NODE_INSPECTED, .index = rank};

	snprintf(ev.text, sizeof(ev.text), "%s", text);
	run_give(f, ev);
}

static void silence_is_looked_at_on_all_nodes(void **state)
{
	struct fixture *f = running(JOB);

	(void)state;
	pass(f, STALL - 1);
	assert_int_equal(effects_count(f, FX_INSPECT), 0);
	assert_in_range(f->r->next_ms, f->now + 1, f->now + 1);
	pass(f, 1);
	assert_int_equal(effects_count(f, FX_INSPECT), 3);
	answer(f, 0, "S sleeps");
	answer(f, 1, "T stopped");
	answer(f, 1, "S sleeps"); /* only the first answer counts */
	assert_int_equal(effects_count(f, FX_STALLED), 0);
	answer(f, 2, "S sleeps");
	assert_true(effects_have(f, FX_STALLED, 1));
	assert_string_equal(
		f->r->stall.text,
		"no output for 1 min (stall); worker-1 differs: T stopped; see stall/worker-1.txt");
	assert_int_equal(f->r->phase, RUN_RUNNING); /* it is only reported, and once */
	pass(f, 10 * STALL);
	assert_int_equal(f->fx.n, 0);
	run_close(f);
}

static void output_begins_the_time_anew(void **state)
{
	struct fixture *f = running(JOB);
	uint64_t changes;

	(void)state;
	pass(f, STALL - 1);
	changes = f->fx.changes;
	run_give(f, (struct event){.kind = EV_PROGRESS});
	assert_int_equal(f->fx.changes, changes); /* and is not recorded each time */
	pass(f, STALL - 1);
	assert_int_equal(effects_count(f, FX_INSPECT), 0);
	pass(f, 1);
	assert_int_equal(effects_count(f, FX_INSPECT), 3);
	changes = f->fx.changes;
	run_give(f, (struct event){.kind = EV_PROGRESS}); /* while the nodes are looked at */
	assert_true(f->fx.changes > changes);
	for (int i = 0; i < 3; i++)
		answer(f, i, "S sleeps");
	assert_int_equal(effects_count(f, FX_STALLED), 0);
	pass(f, STALL);
	assert_int_equal(effects_count(f, FX_INSPECT), 3);
	run_close(f);
}

static void a_node_that_does_not_answer_differs(void **state)
{
	struct fixture *f = running(JOB);

	(void)state;
	pass(f, STALL);
	answer(f, 0, "S sleeps");
	answer(f, 2, "S sleeps");
	pass(f, 14999);
	assert_int_equal(effects_count(f, FX_STALLED), 0);
	pass(f, 1);
	assert_true(effects_have(f, FX_STALLED, 1));
	/* It has sent no file that could be named. */
	assert_string_equal(f->r->stall.text, "no output for 1 min (stall); worker-1 differs: it "
					      "does not answer; see stall/ for the others");
	run_close(f);
}

static void while_output_cannot_arrive_nothing_is_said(void **state)
{
	struct fixture *f = running(JOB);

	(void)state;
	run_give(f, (struct event){.kind = EV_NODE_NO_ROOM, .index = 2});
	pass(f, 2 * STALL);
	assert_int_equal(effects_count(f, FX_INSPECT), 0);
	run_give(f, (struct event){.kind = EV_NODE_ROOM, .index = 2});
	pass(f, 1000);
	assert_int_equal(effects_count(f, FX_INSPECT), 3);
	run_close(f);
}

static void a_killed_run_names_the_node(void **state)
{
	struct fixture *f = running(JOB "stall_action = 'kill'\n");

	(void)state;
	pass(f, STALL);
	answer(f, 0, "S sleeps");
	answer(f, 1, "S sleeps");
	answer(f, 2, "D waits");
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_TIMEOUT);
	assert_int_equal(f->r->cause.node, 2);
	assert_non_null(strstr(f->r->cause.text, "worker-2 differs: D waits"));
	assert_int_equal(effects_count(f, FX_STOP), 3);
	run_close(f);
}

static void a_rank_that_has_ended_is_named(void **state)
{
	struct fixture *f = running(JOB);

	(void)state;
	node_exit(f, 2, 0, 0);
	pass(f, STALL);
	assert_int_equal(effects_count(f, FX_INSPECT), 2);
	answer(f, 0, "S sleeps");
	answer(f, 1, "S sleeps");
	assert_string_equal(
		f->r->stall.text,
		"no output for 1 min (stall); worker-2 has ended, the others stand alike: see stall/");
	run_close(f);
}

static void stall_all_alike(struct fixture *f)
{
	pass(f, STALL);
	assert_int_equal(effects_count(f, FX_INSPECT), 3);
	for (int i = 0; i < 3; i++)
		answer(f, i, "S sleeps");
	assert_true(effects_have(f, FX_STALLED, -1));
}

static void a_restart_takes_a_retry_of_each_node(void **state)
{
	struct fixture *f = running(JOB "stall_action = 'restart'\nretries = 1\n");

	(void)state;
	stall_all_alike(f);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	assert_int_equal(effects_count(f, FX_STOP), 3);
	for (int i = 0; i < 3; i++) {
		node_exit(f, i, -1, 15);
		run_give(f, (struct event){.kind = EV_NODE_DRAINED, .index = i, .attempt = 1});
		run_give(f, (struct event){.kind = EV_NODE_READY, .index = i});
		assert_int_equal(f->r->nodes[i].retried, 1);
	}
	assert_int_equal(f->r->phase, RUN_RUNNING);
	for (int i = 0; i < 3; i++)
		run_give(f, (struct event){.kind = EV_NODE_STARTED, .index = i, .attempt = 2});
	stall_all_alike(f);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_string_equal(
		f->r->cause.text,
		"no output for 1 min (stall); all nodes stand alike: see stall/; no retries are left");
	run_close(f);
}

static void the_next_master_waits_for_the_whole_time(void **state)
{
	struct fixture *f = running(JOB);

	(void)state;
	pass(f, STALL - 1);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	for (int i = 0; i < 3; i++)
		f->r->nodes[i].connected = true;
	pass(f, STALL - 1);
	assert_int_equal(effects_count(f, FX_INSPECT), 0);
	pass(f, 1);
	assert_int_equal(effects_count(f, FX_INSPECT), 3);
	run_close(f);
}

/* Rule: what a node said of the silence before is no answer. */
static void each_silence_has_its_own_answers(void **state)
{
	struct fixture *f = running(JOB);

	(void)state;
	pass(f, STALL);
	for (int i = 0; i < 3; i++)
		answer(f, i, "S sleeps");
	run_give(f, (struct event){.kind = EV_PROGRESS});
	pass(f, STALL);
	answer(f, 0, "S sleeps");
	answer(f, 2, "S sleeps");
	pass(f, 15000);
	assert_true(effects_have(f, FX_STALLED, 1));
	assert_string_equal(
		f->r->stall.text,
		"no output for 1 min (stall); worker-1 differs: it does not answer; see "
		"stall/ for the others");
	run_close(f);
}

static void without_stall_nobody_looks(void **state)
{
	struct fixture *f = running(three_workers);

	(void)state;
	pass(f, 3600000);
	assert_int_equal(effects_count(f, FX_INSPECT), 0);
	answer(f, 0, "S sleeps");
	assert_int_equal(effects_count(f, FX_STALLED), 0);
	run_close(f);
}

static void who_differs(void **state)
{
	static const struct {
		const char *looks[3];
		int odd;
	} cases[] = {
		{{"S a", "S a", "S a"}, -1}, {{"S a", "S b", "S a"}, 1},
		{{"S a", "S b", "S c"}, -1}, {{"S a", "T b", "S c"}, 1},
		{{"T a", "T a", "S c"}, 2},  {{"R runs", "R runs", "D x"}, 2},
		{{"", "S a", "S b"}, 0},     {{"", "", "S b"}, 2},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = running(JOB);

		for (int k = 0; k < 3; k++) {
			f->r->nodes[k].inspect_asked = true;
			snprintf(f->r->nodes[k].inspect, sizeof(f->r->nodes[k].inspect), "%s",
				 cases[i].looks[k]);
		}
		if (stall_odd_one(f->r) != cases[i].odd)
			fail_msg("case %zu: %d", i, stall_odd_one(f->r));
		run_close(f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(silence_is_looked_at_on_all_nodes),
		cmocka_unit_test(output_begins_the_time_anew),
		cmocka_unit_test(a_node_that_does_not_answer_differs),
		cmocka_unit_test(while_output_cannot_arrive_nothing_is_said),
		cmocka_unit_test(a_killed_run_names_the_node),
		cmocka_unit_test(a_rank_that_has_ended_is_named),
		cmocka_unit_test(a_restart_takes_a_retry_of_each_node),
		cmocka_unit_test(the_next_master_waits_for_the_whole_time),
		cmocka_unit_test(each_silence_has_its_own_answers),
		cmocka_unit_test(without_stall_nobody_looks),
		cmocka_unit_test(who_differs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
