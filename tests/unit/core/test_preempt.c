#include "core_fixture.h"

/* Machines that the provider takes back: after a notice, or without one. */

#define TAKEN_AT 500000

static struct fixture *running(const char *toml, enum on_lost on_lost)
{
	struct fixture *f = run_open(toml);

	/* Engine local, which makes the plan, has no other to choose. */
	((struct role *)f->plan.crew.roles[0].spec)->policy.on_lost = (int)on_lost;
	run_make_ready(f);
	for (int i = 0; i < f->plan.crew.n; i++)
		node_say(f, i, EV_NODE_STARTED);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	return f;
}

static void notice(struct fixture *f, int rank)
{
	run_give(f, (struct event){.kind = EV_NODE_PREEMPT, .index = rank, .at_ms = TAKEN_AT});
}

/* The driver reports what it sees of the machine of a node that fell silent. */
static void look(struct fixture *f, int rank, bool ended, enum err_kind kind, const char *text)
{
	struct event ev = {.kind = EV_RES_ANSWER,
			   .index = rank,
			   .asked = ASKED_OBSERVE,
			   .outcome = OUTCOME_ABSENT,
			   .identity_checked = true,
			   .ended = ended,
			   .err_kind = kind};

	run_give(f, (struct event){.kind = EV_NODE_DROPPED, .index = rank});
	f->now = f->r->nodes[rank].observe_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_OBSERVE, rank));
	ev.attempt = f->r->resources[rank].ask_no;
	snprintf(ev.text, sizeof(ev.text), "%s", text);
	run_give(f, ev);
}

static void drained(struct fixture *f, int rank)
{
	run_give(f, (struct event){.kind = EV_NODE_DRAINED, .index = rank, .attempt = 1});
}

static void a_notice_alone_changes_nothing(void **state)
{
	struct fixture *f = running(three_workers, LOST_FAIL);

	(void)state;
	notice(f, 1);
	assert_int_equal(f->fx.n, 0);
	assert_int_equal(f->fx.nodes.n, 1); /* but it is stored */
	assert_int_equal(f->r->nodes[1].preempt_at_ms, TAKEN_AT);
	uint64_t changes = f->fx.changes;
	notice(f, 1);
	assert_int_equal(f->fx.changes, changes);
	for (int i = 0; i < 3; i++)
		node_exit(f, i, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

static void a_node_that_is_lost_after_a_notice_was_preempted(void **state)
{
	struct fixture *f = running(three_workers, LOST_FAIL);

	(void)state;
	notice(f, 1);
	look(f, 1, false, ERR_NONE, "");
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_PREEMPTED);
	assert_string_equal(f->r->cause.text, "worker-1 was preempted: its machine is gone");
	assert_int_equal(f->r->nodes[1].exit.kind, ERR_PREEMPTED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 5);
	run_close(f);
}

static void a_job_that_fails_after_a_notice_was_preempted(void **state)
{
	struct fixture *f = running("command = 'w'\ncount = 2\nretries = 3\n", LOST_FAIL);

	(void)state;
	notice(f, 1);
	node_exit(f, 1, -1, 15);
	assert_int_equal(f->r->cause.kind, ERR_PREEMPTED);
	assert_string_equal(
		f->r->cause.text,
		"worker-1 was preempted: killed by SIGTERM, after the notice that its machine will be taken");
	run_close(f);
}

static void a_machine_that_is_taken_without_a_notice_was_preempted(void **state)
{
	struct fixture *f = running(three_workers, LOST_FAIL);

	(void)state;
	look(f, 2, true, ERR_PREEMPTED, "instance i-2 is terminated: no Spot capacity");
	assert_int_equal(f->r->cause.kind, ERR_PREEMPTED);
	assert_string_equal(f->r->cause.text,
			    "worker-2 was preempted: its machine is gone: instance i-2 is "
			    "terminated: no Spot capacity");
	run_close(f);
}

static void the_words_of_the_provider_are_kept(void **state)
{
	struct fixture *f = running(three_workers, LOST_FAIL);

	(void)state;
	look(f, 2, true, ERR_UNAVAILABLE, "instance i-2 is terminated: by the user");
	assert_int_equal(f->r->cause.kind, ERR_UNAVAILABLE);
	assert_string_equal(f->r->cause.text, "worker-2 was lost: its machine is gone: instance "
					      "i-2 is terminated: by the user");
	assert_string_equal(f->r->nodes[2].exit.reason,
			    "its machine is gone: instance i-2 is terminated: by the user");
	run_close(f);
}

static void a_machine_that_was_seen_ended_is_gone_at_once(void **state)
{
	struct fixture *f = running(three_workers, LOST_REPLACE);

	(void)state;
	for (int i = 0; i < 3; i++) {
		f->plan.resources[i].settle_ms = 60000;
		f->plan.resources[i].absent_looks = 3;
	}
	look(f, 0, false, ERR_NONE, "");
	assert_int_equal(f->r->nodes[0].state, NODE_RUNNING);
	look(f, 1, true, ERR_PREEMPTED, "taken");
	assert_int_equal(f->r->nodes[1].state, NODE_WANTED);
	assert_true(effects_have(f, FX_DESTROY, 1));
	run_close(f);
}

static void ended_in_another_account_proves_nothing(void **state)
{
	struct fixture *f = running(three_workers, LOST_REPLACE);
	struct event ev = {.kind = EV_RES_ANSWER,
			   .asked = ASKED_OBSERVE,
			   .outcome = OUTCOME_ABSENT,
			   .ended = true};

	(void)state;
	run_give(f, (struct event){.kind = EV_NODE_DROPPED});
	f->now = f->r->nodes[0].observe_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	ev.attempt = f->r->resources[0].ask_no;
	run_give(f, ev);
	assert_int_equal(f->r->nodes[0].state, NODE_RUNNING);
	run_close(f);
}

static void ended_is_no_proof_while_a_create_may_arrive(void **state)
{
	struct fixture *f = running(three_workers, LOST_REPLACE);

	(void)state;
	f->plan.resources[0].late_ms = 60000;
	run_give(f, (struct event){.kind = EV_RESUME});
	for (int i = 0; i < 3; i++)
		run_give(f, (struct event){.kind = EV_NODE_HELLO,
					   .index = i,
					   .attempt = 1,
					   .holds = HOLDS_STARTED});
	look(f, 0, true, ERR_PREEMPTED, "taken");
	assert_int_equal(f->r->nodes[0].state, NODE_RUNNING);
	run_close(f);
}

static void the_next_attempt_is_on_another_machine(void **state)
{
	struct fixture *f = running("command = 'w'\ncount = 2\nretries = 3\n", LOST_REPLACE);

	(void)state;
	notice(f, 1);
	node_exit(f, 1, 143, 0);
	/* Its output is stored first. */
	assert_int_equal(f->fx.n, 0);
	assert_int_equal(f->r->nodes[1].state, NODE_EXITED);
	drained(f, 1);
	assert_true(effects_have(f, FX_RELEASE, 1));
	assert_true(effects_have(f, FX_DESTROY, 1));
	assert_int_equal(f->r->nodes[1].incarnation, 2);
	assert_int_equal(f->r->nodes[1].retried, 0);
	/* The notice was for the machine before. */
	assert_int_equal(f->r->nodes[1].preempt_at_ms, 0);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_CREATE, 1));
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	run_close(f);
}

static void a_retry_that_waited_for_its_output_moves_too(void **state)
{
	struct fixture *f = running("command = 'w'\ncount = 2\nretries = 3\n", LOST_FAIL);

	(void)state;
	node_exit(f, 1, 3, 0);
	notice(f, 1);
	drained(f, 1);
	assert_true(effects_have(f, FX_DESTROY, 1));
	assert_int_equal(f->r->nodes[1].incarnation, 2);
	run_close(f);
}

static void a_role_that_may_shrink_goes_on_without_it(void **state)
{
	struct fixture *f = running("command = 'w'\ncount = 3\nmin = 2\nmax = 3\n", LOST_SHRINK);

	(void)state;
	notice(f, 1);
	node_exit(f, 1, -1, 15);
	assert_true(f->r->nodes[1].asleep);
	assert_int_equal(f->r->nodes[1].state, NODE_EXITED); /* until its output is stored */
	notice(f, 2);
	node_exit(f, 2, -1, 15);
	assert_int_equal(f->r->cause.kind, ERR_PREEMPTED);
	assert_non_null(strstr(f->r->cause.text,
			       "worker-2 was preempted, and fewer than min = 2 would be left"));
	run_close(f);
}

static void a_gang_starts_again_with_another_machine(void **state)
{
	struct fixture *f = running(three_workers, LOST_RESTART);

	(void)state;
	notice(f, 1);
	node_exit(f, 1, -1, 15);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	assert_true(effects_have(f, FX_STOP, 0));
	assert_true(effects_have(f, FX_STOP, 2));
	drained(f, 1);
	assert_true(effects_have(f, FX_DESTROY, 1));
	node_exit(f, 0, -1, 15);
	drained(f, 0);
	assert_true(effects_have(f, FX_PREPARE, 0)); /* on its machine */
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_notice_alone_changes_nothing),
		cmocka_unit_test(a_node_that_is_lost_after_a_notice_was_preempted),
		cmocka_unit_test(a_job_that_fails_after_a_notice_was_preempted),
		cmocka_unit_test(a_machine_that_is_taken_without_a_notice_was_preempted),
		cmocka_unit_test(the_words_of_the_provider_are_kept),
		cmocka_unit_test(a_machine_that_was_seen_ended_is_gone_at_once),
		cmocka_unit_test(ended_in_another_account_proves_nothing),
		cmocka_unit_test(ended_is_no_proof_while_a_create_may_arrive),
		cmocka_unit_test(the_next_attempt_is_on_another_machine),
		cmocka_unit_test(a_retry_that_waited_for_its_output_moves_too),
		cmocka_unit_test(a_role_that_may_shrink_goes_on_without_it),
		cmocka_unit_test(a_gang_starts_again_with_another_machine),
	};

	return cmocka_run_group_tests_name("preempt", tests, NULL, NULL);
}
