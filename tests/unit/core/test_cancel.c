#include "core_fixture.h"

#include <signal.h>
#include <string.h>

static void cancel_stops_what_runs_and_a_second_one_hurries(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_make_ready(f);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_STARTED);
	run_give(f, (struct event){.kind = EV_CANCEL, .text = "by the user"});
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	assert_int_equal(effects_count(f, FX_STOP), 3);
	assert_false(f->fx.v[0].hurry);
	run_give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	assert_int_equal(effects_count(f, FX_STOP), 3);
	assert_true(f->fx.v[0].hurry);
	for (int i = 0; i < 3; i++) {
		node_exit(f, i, -1, SIGKILL);
		node_say(f, i, EV_NODE_DRAINED);
	}
	run_clean_up(f);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 7);
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(f->fx.n, 0); /* final is final */
	run_close(f);
}

static void a_cancel_while_collecting_gives_the_nodes_the_grace_time(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_exit_all(f);
	node_say(f, 0, EV_NODE_DRAINED);
	run_give(f, (struct event){.kind = EV_CANCEL, .text = "by the user"});
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	assert_string_equal(f->r->cause.text, "by the user");
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_true(!effects_have(f, FX_STOP, 0) && effects_have(f, FX_STOP, 1) &&
		    effects_have(f, FX_STOP, 2));
	node_say(f, 1, EV_NODE_DRAINED);
	f->now += f->job.timeouts.grace_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_clean_up(f);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	run_close(f);
}

/* Rule: who brings new credentials for a run that is cancelled does not give up what it has kept. */
static void new_credentials_are_no_second_cancel(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_exit_all(f);
	run_give(f, (struct event){.kind = EV_CANCEL, .text = "by the user"});
	int64_t until = f->r->deadline_ms;

	f->now += 1000;
	run_give(f, (struct event){.kind = EV_CANCEL, .renews = true});
	assert_int_equal(f->fx.n, 0);
	assert_int_equal(f->r->deadline_ms, until);
	run_give(f, (struct event){.kind = EV_CANCEL, .renews = true, .hurry = true});
	assert_true(f->r->hurry);
	run_close(f);
	f = run_open(three_workers);
	run_make_ready(f);
	run_give(f, (struct event){.kind = EV_CANCEL, .renews = true});
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED); /* the first one counts */
	run_close(f);
}

static void a_cancel_while_collecting_waits_for_jobs_that_still_run(void **state)
{
	struct fixture *f = run_open(pserver);

	(void)state;
	run_make_ready(f);
	for (int i = 2; i < 4; i++)
		node_say(f, i, EV_NODE_SERVING);
	node_exit(f, 0, 0, 0);
	node_exit(f, 1, 0, 0);
	for (int i = 0; i < 2; i++)
		node_say(f, i, EV_NODE_DRAINED);
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_true(effects_have(f, FX_STOP, 2) && effects_have(f, FX_STOP, 3));
	f->now += f->job.timeouts.grace_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_COLLECTING); /* SIGKILL needs its time */
	for (int i = 2; i < 4; i++) {
		node_exit(f, i, -1, SIGKILL);
		node_say(f, i, EV_NODE_DRAINED);
	}
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	run_close(f);
}

static void now_ends_collecting_at_once(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_exit_all(f);
	run_give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	assert_int_equal(f->r->node_count[NODE_RELEASED], 3);
	run_close(f);
}

static void after_now_a_killed_job_has_a_second_to_hand_over_what_it_printed(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_make_ready(f);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_STARTED);
	run_give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	for (int i = 0; i < 3; i++)
		node_exit(f, i, -1, SIGKILL);
	node_say(f, 0, EV_NODE_DRAINED);
	f->now += 999;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	f->now += 1;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->node_count[NODE_RELEASED], 3);
	run_close(f);
}

static void a_failed_run_stays_failed_when_its_collecting_is_cancelled(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_make_ready(f);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_STARTED);
	for (int i = 0; i < 3; i++)
		node_exit(f, i, 3, 0);
	run_give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_string_equal(f->r->cause.text, "worker-0: exit code 3");
	run_close(f);
}

static void output_without_room_waits_until_somebody_cancels(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_make_ready(f);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_STARTED);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_NO_ROOM);
	node_say(f, 2, EV_NODE_ROOM);
	node_say(f, 2, EV_NODE_ROOM);
	assert_int_equal(f->fx.nodes.n, 0); /* said twice */
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_give(f, (struct event){.kind = EV_CANCEL});
	node_exit(f, 0, -1, SIGTERM); /* what it printed cannot be stored: nobody waits for it */
	node_exit(f, 1, -1, SIGTERM);
	node_exit(f, 2, -1, SIGTERM);
	assert_true(f->r->nodes[0].settled && f->r->nodes[1].settled);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	node_say(f, 2, EV_NODE_NO_ROOM);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	run_close(f);
}

static void a_cancel_gives_up_what_found_no_room(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_exit_all(f);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_NO_ROOM);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	run_close(f);
}

static void a_run_that_is_cancelled_before_it_begins_took_no_time(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_CANCEL, .text = "no room for its files"});
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	assert_true(effects_have(f, FX_ENDED, 0));
	assert_int_equal(f->r->phase_at_ms[RUN_ACCEPTED], f->now);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cancel_stops_what_runs_and_a_second_one_hurries),
		cmocka_unit_test(a_cancel_while_collecting_gives_the_nodes_the_grace_time),
		cmocka_unit_test(new_credentials_are_no_second_cancel),
		cmocka_unit_test(a_cancel_while_collecting_waits_for_jobs_that_still_run),
		cmocka_unit_test(now_ends_collecting_at_once),
		cmocka_unit_test(after_now_a_killed_job_has_a_second_to_hand_over_what_it_printed),
		cmocka_unit_test(a_failed_run_stays_failed_when_its_collecting_is_cancelled),
		cmocka_unit_test(output_without_room_waits_until_somebody_cancels),
		cmocka_unit_test(a_cancel_gives_up_what_found_no_room),
		cmocka_unit_test(a_run_that_is_cancelled_before_it_begins_took_no_time),
	};
	return cmocka_run_group_tests_name("core cancel", tests, NULL, NULL);
}
