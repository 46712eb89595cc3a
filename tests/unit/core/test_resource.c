#include "core_fixture.h"

#include <signal.h>
#include <string.h>

static void a_gang_that_cannot_be_completed_releases_what_it_holds(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 2, OUTCOME_REFUSED, ERR_CAPACITY);
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
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_THROTTLED);
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
	resource_answer(f, 1, OUTCOME_REFUSED, ERR_DENIED);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 4);
	run_close(f);
}

static void an_unknown_outcome_is_replayed_with_the_same_attempt(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_UNSURE, ERR_TIMEOUT);
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_CREATE, 0));
	assert_int_equal(f->r->resources[0].attempt, 1);
	run_close(f);
}

static void a_create_that_is_given_up_is_of_an_incarnation_that_is_over(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	int first = f->r->nodes[0].incarnation;

	resource_answer(f, 0, OUTCOME_UNSURE, ERR_TIMEOUT);
	/* The machine stays silent until nothing of it counts any more. */
	for (int i = 0; i < 10 && f->r->resources[0].state == RES_SENT; i++) {
		f->now = f->r->resources[0].retry_at_ms;
		run_give(f, (struct event){.kind = EV_TICK});
		resource_answer(f, 0, OUTCOME_ABSENT, ERR_UNAVAILABLE);
		if (f->r->resources[0].asked == ASKED_FIND)
			resource_answer(f, 0, OUTCOME_ABSENT, ERR_UNAVAILABLE);
	}
	assert_int_equal(f->r->nodes[0].incarnation, first + 1);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	assert_int_equal(f->r->resources[0].incarnation, first + 1);
	/* A refusal is an answer: nothing was made. */
	resource_answer(f, 1, OUTCOME_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->nodes[1].incarnation, first);
	run_close(f);
}

static void a_stale_answer_changes_nothing(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	run_give(f, (struct event){.kind = EV_RES_ANSWER,
				   .index = 0,
				   .asked = ASKED_CREATE,
				   .attempt = 99,
				   .text = "x"});
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 0, OUTCOME_REFUSED,
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
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_DESTROY, 0));
	resource_answer(f, 0, OUTCOME_HELD, ERR_CONFLICT);
	assert_int_equal(f->r->phase, RUN_CLEANING); /* held is not gone */
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_DESTROY, 0));
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	run_close(f);
}

static void a_restart_asks_again_for_everything_unanswered(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
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
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	assert_true(effects_have(f, FX_FIND, 0));
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->resources[0].state, RES_INTENT);
	assert_int_equal(f->r->resources[0].why_kind, ERR_CAPACITY);
	run_close(f);
}

/* An expired credential refuses the replay of a create that had been acted on. */
static void a_create_that_is_refused_after_an_unknown_outcome_is_looked_for(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	f->plan.resources[0].late_ms = 1000;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_UNSURE, ERR_TIMEOUT);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_CREATE, 0));
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_DENIED);
	assert_true(effects_have(f, FX_FIND, 0));
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE); /* the first may still be under way */
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	f->now += 1000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_FIND, 0));
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_DENIED); /* not what the look said */
	run_close(f);
}

/* The master was started again on a busy machine, and has no credentials yet. */
static void a_replay_that_cannot_be_sent_now_is_sent_later(void **state)
{
	static const enum err_kind kinds[] = {ERR_UNAVAILABLE, ERR_TIMEOUT, ERR_THROTTLED};

	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct fixture *f = run_open(three_workers);

		f->plan.resources[0].settle_ms = 300000;
		f->plan.resources[0].absent_looks = 5;
		run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
		core_run_restored(f->r);
		run_give(f, (struct event){.kind = EV_RESUME});
		int attempt = f->r->resources[0].attempt, batch = f->r->resources[0].batch;
		resource_answer(f, 0, OUTCOME_REFUSED, kinds[i]);
		assert_false(effects_have(f, FX_FIND, 0));
		assert_int_equal(f->r->resources[0].state, RES_SENT);
		f->now = f->r->resources[0].retry_at_ms;
		run_give(f, (struct event){.kind = EV_TICK});
		assert_true(effects_have(f, FX_CREATE, 0));
		assert_int_equal(f->r->resources[0].attempt, attempt);
		assert_int_equal(f->r->resources[0].batch, batch);
		resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
		assert_int_equal(f->r->resources[0].state, RES_LIVE);
		run_close(f);
	}
}

/* The replay of a create whose machine has been terminated meanwhile is answered with that one. */
static void a_token_whose_machine_is_gone_is_not_used_again(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_UNSURE, ERR_TIMEOUT);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_true(effects_have(f, FX_FIND, 0));
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->resources[0].state, RES_INTENT);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_CREATE, 0));
	assert_int_equal(f->r->resources[0].batch, 4);
	run_close(f);
}

static void a_denied_look_is_no_proof_of_absence(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_UNSURE, ERR_TIMEOUT);
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_true(effects_have(f, FX_FIND, 0));
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_DENIED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->resources[0].state, RES_SENT);
	assert_int_equal(f->r->resources[0].why_kind, ERR_DENIED);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_FIND, 0));
	run_close(f);
}

static void a_refused_delete_is_asked_again_after_a_pause_that_grows(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");
	int64_t pause = 0;

	(void)state;
	run_create_all(f);
	run_give(f, (struct event){.kind = EV_CANCEL});
	for (int i = 0; i < 12; i++) {
		assert_true(effects_have(f, FX_DESTROY, 0));
		resource_answer(f, 0, OUTCOME_REFUSED, ERR_DENIED);
		assert_int_equal(f->fx.n, 0); /* not at once */
		assert_int_equal(f->r->resources[0].state, RES_DELETING);
		assert_int_equal(f->r->resources[0].why_kind, ERR_DENIED);
		pause = f->r->resources[0].retry_at_ms - f->now;
		assert_true(pause > 0);
		f->now += pause;
		run_give(f, (struct event){.kind = EV_TICK});
	}
	assert_true(pause >= 15000);
	run_close(f);
}

static void not_found_by_somebody_else_is_no_proof(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");
	struct core_resource *res = &f->r->resources[0];

	(void)state;
	run_create_all(f);
	run_give(f, (struct event){.kind = EV_CANCEL});
	run_give(f, (struct event){.kind = EV_RES_ANSWER,
				   .asked = ASKED_DESTROY,
				   .outcome = OUTCOME_ABSENT,
				   .attempt = res->ask_no});
	assert_int_equal(res->state, RES_DELETING);
	f->now = res->retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	run_close(f);
}

/* Looks for it, as often as the core wants, until it is gone; how often. */
static int looks_until_gone(struct fixture *f, int64_t step_ms)
{
	int looks = 0;

	while (f->r->resources[0].state != RES_GONE && looks < 100) {
		if (f->r->resources[0].asked) {
			resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
			looks++;
		}
		f->now += step_ms;
		run_give(f, (struct event){.kind = EV_TICK});
	}
	return looks;
}

static void what_settles_is_gone_after_several_looks_spread_over_its_time(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	f->plan.resources[0].settle_ms = 60000;
	f->plan.resources[0].absent_looks = 3;
	run_create_all(f);
	f->now += 1000;
	int64_t from = f->now;
	run_give(f, (struct event){.kind = EV_CANCEL});
	int looks = looks_until_gone(f, 100);
	assert_int_equal(f->r->resources[0].state, RES_GONE);
	assert_in_range(looks, 3, 6);
	assert_true(f->now >= from - 1000 + 60000);
	run_close(f);
}

static void a_machine_that_is_seen_again_was_never_gone(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");
	struct core_resource *res = &f->r->resources[0];

	(void)state;
	f->plan.resources[0].settle_ms = 6000;
	f->plan.resources[0].absent_looks = 3;
	run_create_all(f);
	for (int i = 0; i < 4; i++) {
		f->now += 3000;
		run_give(f, (struct event){.kind = EV_TICK});
		assert_int_equal(res->asked, ASKED_OBSERVE);
		resource_answer(f, 0, i % 2 ? OUTCOME_DONE : OUTCOME_ABSENT, ERR_NONE);
	}
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	assert_int_equal(res->absent_looks, 0);
	assert_string_equal(res->why, "");
	run_close(f);
}

/* What it waited for while it was there does not explain why it is not gone yet. */
static void a_resource_that_is_deleted_has_no_trouble_of_before(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");
	struct core_resource *res = &f->r->resources[0];

	(void)state;
	f->plan.resources[0].settle_ms = 6000;
	f->plan.resources[0].absent_looks = 3;
	run_create_all(f);
	f->now += 3000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(res->asked, ASKED_OBSERVE);
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_DENIED);
	assert_int_equal(res->why_kind, ERR_DENIED);
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(res->state, RES_DELETING);
	assert_int_equal(res->why_kind, ERR_NONE);
	assert_string_equal(res->why, "");
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
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->resources[0].state, RES_DELETING);
	assert_int_equal(f->r->resources[1].state, RES_GONE);
	f->now += 1000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_DESTROY, 0));
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->resources[0].state, RES_GONE);
	run_close(f);
}

/* A silent node's machine is looked at every two seconds: that is no three looks in 30 s. */
static void looks_in_quick_succession_count_as_one(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	f->plan.resources[0].settle_ms = 30000;
	f->plan.resources[0].absent_looks = 3;
	run_create_all(f);
	f->now += 31000;
	for (int i = 0; i < 4; i++) {
		run_give(f, (struct event){.kind = EV_TICK});
		assert_int_equal(f->r->resources[0].asked, ASKED_OBSERVE);
		resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
		assert_int_equal(f->r->verdict, VERDICT_NONE);
		f->now += 2000;
	}
	f->now += 10000;
	run_give(f, (struct event){.kind = EV_TICK});
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	f->now += 10000;
	run_give(f, (struct event){.kind = EV_TICK});
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	run_close(f);
}

/* The run's resources are asked for together. */
static struct fixture *open_grouped(void)
{
	struct fixture *f = run_open(three_workers);

	core_run_free(f->r);
	for (int i = 0; i < f->plan.nresources; i++)
		f->plan.resources[i].group = 1;
	f->r = core_run_new(&f->plan);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	return f;
}

static void a_group_is_created_as_one_batch(void **state)
{
	struct fixture *f = open_grouped();

	(void)state;
	assert_int_equal(effects_count(f, FX_CREATE), 3);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f->r->resources[i].batch, 1);
		assert_int_equal(f->fx.v[i].batch, 1);
	}
	run_close(f);
}

static void those_without_a_group_have_a_batch_each(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	for (int i = 0; i < 3; i++)
		assert_int_equal(f->r->resources[i].batch, 1 + i);
	run_close(f);
}

/* A machine that is to be looked at in a minute does not hold up the others. */
static void one_of_a_group_with_a_long_pause_does_not_delay_the_others(void **state)
{
	struct fixture *f = open_grouped();

	(void)state;
	for (int i = 0; i < 3; i++) {
		f->plan.resources[i].settle_ms = 180000;
		f->plan.resources[i].absent_looks = 3;
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	}
	node_say(f, 0, EV_NODE_HELLO);
	f->now = f->r->nodes[1].observe_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	resource_answer(f, 1, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->resources[1].retry_at_ms, f->now + 60000);
	resource_answer(f, 2, OUTCOME_DONE, ERR_NONE);
	run_give(f, (struct event){.kind = EV_CANCEL, .hurry = true});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	resource_answer(f, 0, OUTCOME_HELD, ERR_UNAVAILABLE);
	assert_true(f->r->resources[0].retry_at_ms <= f->now + 200);
	run_close(f);
}

static void what_a_group_was_refused_is_tried_again_as_one_new_batch(void **state)
{
	struct fixture *f = open_grouped();

	(void)state;
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 1, OUTCOME_REFUSED, ERR_CAPACITY);
	f->now += 50; /* each answer is a step of its own */
	resource_answer(f, 2, OUTCOME_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->resources[1].retry_at_ms, f->r->resources[2].retry_at_ms);
	f->now = f->r->resources[1].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(effects_count(f, FX_CREATE), 2);
	assert_int_equal(f->r->resources[0].batch, 1);
	assert_int_equal(f->r->resources[1].batch, 2);
	assert_int_equal(f->r->resources[2].batch, 2);
	run_close(f);
}

static void a_replay_has_the_batch_of_the_call_that_it_repeats(void **state)
{
	struct fixture *f = open_grouped();

	(void)state;
	resource_answer(f, 1, OUTCOME_REFUSED, ERR_CAPACITY);
	f->now = f->r->resources[1].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_int_equal(effects_count(f, FX_CREATE), 3);
	for (size_t i = 0; i < f->fx.n; i++)
		assert_int_equal(f->fx.v[i].batch, f->fx.v[i].index == 1 ? 2 : 1);
	/* and a batch after the restart is a new one */
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->resources[0].batch, 3);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gang_that_cannot_be_completed_releases_what_it_holds),
		cmocka_unit_test(a_refused_create_is_tried_again_as_a_new_attempt),
		cmocka_unit_test(a_hard_refusal_fails_the_run_at_once),
		cmocka_unit_test(an_unknown_outcome_is_replayed_with_the_same_attempt),
		cmocka_unit_test(a_create_that_is_given_up_is_of_an_incarnation_that_is_over),
		cmocka_unit_test(a_stale_answer_changes_nothing),
		cmocka_unit_test(a_cancel_while_a_create_is_out_waits_for_its_answer_and_deletes),
		cmocka_unit_test(a_restart_asks_again_for_everything_unanswered),
		cmocka_unit_test(a_refusal_is_no_proof_while_an_earlier_create_may_arrive),
		cmocka_unit_test(a_create_that_is_refused_after_an_unknown_outcome_is_looked_for),
		cmocka_unit_test(a_replay_that_cannot_be_sent_now_is_sent_later),
		cmocka_unit_test(a_token_whose_machine_is_gone_is_not_used_again),
		cmocka_unit_test(a_denied_look_is_no_proof_of_absence),
		cmocka_unit_test(a_refused_delete_is_asked_again_after_a_pause_that_grows),
		cmocka_unit_test(not_found_by_somebody_else_is_no_proof),
		cmocka_unit_test(looks_in_quick_succession_count_as_one),
		cmocka_unit_test(a_group_is_created_as_one_batch),
		cmocka_unit_test(those_without_a_group_have_a_batch_each),
		cmocka_unit_test(what_a_group_was_refused_is_tried_again_as_one_new_batch),
		cmocka_unit_test(one_of_a_group_with_a_long_pause_does_not_delay_the_others),
		cmocka_unit_test(a_replay_has_the_batch_of_the_call_that_it_repeats),
		cmocka_unit_test(what_settles_is_gone_after_several_looks_spread_over_its_time),
		cmocka_unit_test(a_machine_that_is_seen_again_was_never_gone),
		cmocka_unit_test(a_resource_that_is_deleted_has_no_trouble_of_before),
		cmocka_unit_test(
			a_deleted_resource_is_gone_when_no_earlier_create_can_make_it_again),
	};
	return cmocka_run_group_tests_name("core resource", tests, NULL, NULL);
}
