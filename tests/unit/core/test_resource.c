#include "core_fixture.h"

#include <signal.h>
#include <string.h>

static void a_gang_that_cannot_be_completed_releases_what_it_holds(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, EV_RES_CREATED, ERR_NONE);
	resource_answer(f, 1, EV_RES_CREATED, ERR_NONE);
	resource_answer(f, 2, EV_RES_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->verdict, VERDICT_NONE); /* worth trying again */
	f->now += f->job.timeouts.launch_ms + 1;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_CAPACITY);
	assert_true(effects_have(f, FX_DESTROY, 0) && effects_have(f, FX_DESTROY, 1));
	assert_int_equal(f->r->resources[2].state, RES_GONE);
	run_clean_up(f);
	assert_int_equal(f->r->phase, RUN_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 5);
	run_close(f);
}

static void a_refused_create_is_tried_again_as_a_new_attempt(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, EV_RES_REFUSED, ERR_THROTTLED);
	assert_int_equal(f->r->resources[0].state, RES_INTENT);
	assert_true(f->r->resources[0].retry_at_ms > f->now);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_CREATE, 0));
	assert_int_equal(f->r->resources[0].attempt, 2);
	run_close(f);
}

static void a_hard_refusal_fails_the_run_at_once(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 1, EV_RES_REFUSED, ERR_DENIED);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 4);
	run_close(f);
}

static void an_unknown_outcome_is_replayed_with_the_same_attempt(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, EV_RES_UNSURE, ERR_TIMEOUT);
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_CREATE, 0));
	assert_int_equal(f->r->resources[0].attempt, 1);
	run_close(f);
}

static void a_stale_answer_changes_nothing(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	run_give(f, (struct event){.kind = EV_RES_CREATED, .index = 0, .attempt = 99, .text = "x"});
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	resource_answer(f, 0, EV_RES_CREATED, ERR_NONE);
	resource_answer(f, 0, EV_RES_REFUSED,
			ERR_DENIED); /* the same answer number, already taken */
	assert_int_equal(f->r->resources[0].state, RES_LIVE);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	run_close(f);
}

static void a_cancel_while_a_create_is_out_waits_for_its_answer_and_deletes(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->fx.n, 0);
	resource_answer(f, 0, EV_RES_CREATED, ERR_NONE);
	assert_true(effects_have(f, FX_DESTROY, 0));
	resource_answer(f, 0, EV_RES_HELD, ERR_CONFLICT);
	assert_int_equal(f->r->phase, RUN_CLEANING); /* held is not gone */
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_DESTROY, 0));
	resource_answer(f, 0, EV_RES_DESTROYED, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	run_close(f);
}

static void a_restart_asks_again_for_everything_unanswered(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, EV_RES_CREATED, ERR_NONE);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_true(!effects_have(f, FX_CREATE, 0) && effects_have(f, FX_CREATE, 1) &&
		    effects_have(f, FX_CREATE, 2));
	assert_int_equal(f->r->resources[1].attempt, 1);
	run_close(f);
}

/* A create of the master that died is slower than the next master's, and than its refusal. */
static void a_refusal_is_no_proof_while_an_earlier_create_may_arrive(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	f->plan.resources[0].late_ms = 1000;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_true(effects_have(f, FX_CREATE, 0));
	f->now += 5000; /* a late answer to what was asked early */
	resource_answer(f, 0, EV_RES_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->resources[0].attempt, 1); /* the same token */
	resource_answer(f, 0, EV_RES_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->resources[0].state, RES_INTENT);
	run_close(f);
}

static void a_deleted_resource_is_gone_when_no_earlier_create_can_make_it_again(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	f->plan.resources[0].late_ms = 1000;
	run_create_all(f);
	run_give(f, (struct event){.kind = EV_CANCEL});
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_true(effects_have(f, FX_DESTROY, 0));
	resource_answer(f, 0, EV_RES_DESTROYED, ERR_NONE);
	resource_answer(f, 1, EV_RES_DESTROYED, ERR_NONE);
	assert_int_equal(f->r->resources[0].state, RES_DELETING);
	assert_int_equal(f->r->resources[1].state, RES_GONE);
	f->now += 1000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_DESTROY, 0));
	resource_answer(f, 0, EV_RES_DESTROYED, ERR_NONE);
	assert_int_equal(f->r->resources[0].state, RES_GONE);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gang_that_cannot_be_completed_releases_what_it_holds),
		cmocka_unit_test(a_refused_create_is_tried_again_as_a_new_attempt),
		cmocka_unit_test(a_hard_refusal_fails_the_run_at_once),
		cmocka_unit_test(an_unknown_outcome_is_replayed_with_the_same_attempt),
		cmocka_unit_test(a_stale_answer_changes_nothing),
		cmocka_unit_test(a_cancel_while_a_create_is_out_waits_for_its_answer_and_deletes),
		cmocka_unit_test(a_restart_asks_again_for_everything_unanswered),
		cmocka_unit_test(a_refusal_is_no_proof_while_an_earlier_create_may_arrive),
		cmocka_unit_test(
			a_deleted_resource_is_gone_when_no_earlier_create_can_make_it_again),
	};
	return cmocka_run_group_tests_name("core resource", tests, NULL, NULL);
}
