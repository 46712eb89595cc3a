#include "core_fixture.h"

/* A run that is handed to a master on one of its resources. */

#define MACHINE 1
#define BOOT_MS (10 * 60 * 1000)

static struct fixture *handed(void)
{
	static int need = 0;
	static const struct plan_resource resources[] = {
		{.kind = "x.group", .name = "group", .node = -1},
		{.kind = "x.master",
		 .name = "master",
		 .node = -1,
		 .master = true,
		 .needs = &need,
		 .nneeds = 1},
	};
	struct fixture *f = run_open(three_workers);

	core_run_free(f->r);
	f->plan.resources = arena_array(f->a, struct plan_resource, 2);
	memcpy(f->plan.resources, resources, sizeof(resources));
	f->plan.nresources = 2;
	f->plan.crew.n = f->plan.crew.ncounted = 0;
	f->plan.hands_over = true;
	f->r = core_run_new(&f->plan);
	return f;
}

static void answer(struct fixture *f, struct event ev)
{
	ev.kind = EV_REMOTE;
	ev.attempt = f->r->remote.ask_no;
	run_give(f, ev);
}

static void answers(struct fixture *f, enum outcome outcome, enum err_kind kind)
{
	answer(f, (struct event){.outcome = outcome, .err_kind = kind, .text = "why"});
}

static void ends(struct fixture *f, enum verdict v)
{
	answer(f, (struct event){.outcome = OUTCOME_DONE, .verdict = v, .text = "its cause"});
}

/* The pause before the next question is over. */
static void wait(struct fixture *f)
{
	assert_true(f->r->remote.at_ms > f->now);
	f->now = f->r->remote.at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
}

static void cancel(struct fixture *f, bool hurry)
{
	run_give(f, (struct event){.kind = EV_CANCEL, .hurry = hurry, .text = "by me"});
}

static struct fixture *offered(void)
{
	struct fixture *f = handed();

	run_create_all(f);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	assert_true(effects_have(f, FX_HAND_OVER, MACHINE));
	return f;
}

static struct fixture *accepted(void)
{
	struct fixture *f = offered();

	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	wait(f);
	assert_true(effects_have(f, FX_FOLLOW, MACHINE));
	return f;
}

static struct effect asked(const struct fixture *f)
{
	for (size_t i = 0; i < f->fx.n; i++)
		if (f->fx.v[i].kind == FX_FOLLOW)
			return f->fx.v[i];
	fail_msg("nothing was asked");
	return (struct effect){0};
}

/* The provider shows its machine as ended. */
static void machine_ends_with(struct fixture *f, enum err_kind kind)
{
	assert_int_equal(f->r->resources[MACHINE].asked, ASKED_OBSERVE);
	run_give(f, (struct event){.kind = EV_RES_ANSWER,
				   .index = MACHINE,
				   .attempt = f->r->resources[MACHINE].ask_no,
				   .asked = ASKED_OBSERVE,
				   .outcome = OUTCOME_ABSENT,
				   .identity_checked = true,
				   .ended = true,
				   .err_kind = kind,
				   .text = "terminated"});
}

static void machine_ends(struct fixture *f)
{
	machine_ends_with(f, ERR_NONE);
}

static void clean_up(struct fixture *f)
{
	resource_answer(f, MACHINE, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
}

static void a_run_is_offered_followed_and_cleaned_up(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	assert_false(asked(f).cancel);
	ends(f, VERDICT_NONE);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	wait(f);
	ends(f, VERDICT_SUCCEEDED);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_true(effects_have(f, FX_AWAIT_RESULTS, MACHINE));
	answers(f, OUTCOME_HELD, ERR_UNAVAILABLE);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_true(handover_waits(f->r));
	wait(f);
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_true(effects_have(f, FX_DESTROY, MACHINE));
	assert_false(effects_have(f, FX_DESTROY, 0));
	clean_up(f);
	assert_int_equal(f->r->phase, RUN_SUCCEEDED);
	run_close(f);
}

static void the_cause_is_that_of_the_other_master(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	answer(f, (struct event){.outcome = OUTCOME_DONE,
				 .verdict = VERDICT_FAILED,
				 .err_kind = ERR_CAPACITY,
				 .text = "no machines"});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_CAPACITY);
	assert_string_equal(f->r->cause.text, "no machines");
	run_close(f);
}

static void a_machine_that_boots_is_offered_the_run_again(void **state)
{
	struct fixture *f = offered();

	(void)state;
	for (int64_t pause = 1000; pause <= 16000; pause *= 2) {
		answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
		assert_int_equal(f->r->remote.at_ms - f->now, pause < 10000 ? pause : 10000);
		wait(f);
		assert_true(effects_have(f, FX_HAND_OVER, MACHINE));
	}
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
}

static void a_machine_that_never_answers_fails_the_run(void **state)
{
	struct fixture *f = offered();

	(void)state;
	f->now += BOOT_MS;
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_UNAVAILABLE);
	assert_string_equal(
		f->r->cause.text,
		"the master on master did not answer within 10 min (timeouts.boot): why");
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_true(effects_have(f, FX_DESTROY, MACHINE));
	run_close(f);
}

/* Rule: a mistake of the job that keeps its master from starting is the run's, with its exit code. */
static void a_machine_that_cannot_begin_gives_the_run_its_kind(void **state)
{
	struct fixture *f = offered();

	(void)state;
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	machine_ends_with(f, ERR_INVALID);
	answers(f, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_INVALID);
	run_close(f);
}

static void a_machine_that_ends_while_it_boots_fails_the_run(void **state)
{
	struct fixture *f = offered();

	(void)state;
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	machine_ends(f);
	assert_true(asked(f).gone);
	answers(f, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_non_null(strstr(f->r->cause.text, "the run's master did not start: "));
	assert_non_null(strstr(f->r->cause.text, "terminated"));
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

static void a_machine_that_ends_with_a_doubt_may_have_had_the_run(void **state)
{
	struct fixture *f = offered();

	(void)state;
	answers(f, OUTCOME_UNSURE, ERR_UNAVAILABLE);
	machine_ends(f);
	assert_true(asked(f).gone);
	answers(f, OUTCOME_ABSENT, ERR_NONE);
	assert_non_null(
		strstr(f->r->cause.text, "the run's master has gone and left no results: "));
	run_close(f);
}

static void a_refused_run_fails(void **state)
{
	struct fixture *f = offered();

	(void)state;
	answers(f, OUTCOME_REFUSED, ERR_INVALID);
	assert_int_equal(f->r->cause.kind, ERR_INVALID);
	assert_string_equal(f->r->cause.text, "the master on master was not given the run: why");
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

static void a_cancel_before_the_first_answer_waits_for_it(void **state)
{
	struct fixture *f = offered();

	(void)state;
	cancel(f, false);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_true(asked(f).cancel);
	ends(f, VERDICT_CANCELLED);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	run_close(f);
}

static void a_cancel_of_a_run_that_nobody_has_ends_it(void **state)
{
	struct fixture *f = offered();

	(void)state;
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	cancel(f, false);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);

	f = offered();
	cancel(f, false);
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	run_close(f);
}

static void a_run_that_may_have_been_taken_is_not_cancelled_here(void **state)
{
	struct fixture *f = offered();

	(void)state;
	answers(f, OUTCOME_UNSURE, ERR_TIMEOUT);
	cancel(f, false);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	assert_true(effects_have(f, FX_HAND_OVER, MACHINE));
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	wait(f);
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_true(asked(f).cancel);
	run_close(f);
}

static void a_restart_leaves_a_doubt(void **state)
{
	struct fixture *f = offered();

	(void)state;
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_true(effects_have(f, FX_HAND_OVER, MACHINE));
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	f->now += BOOT_MS;
	cancel(f, false);
	/* Its machine cannot be looked at from here: perhaps nothing can be reached. */
	f->r->resources[MACHINE].why_kind = ERR_UNAVAILABLE;
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	f->r->resources[MACHINE].why_kind = ERR_NONE;
	wait(f);
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	assert_int_equal(f->r->verdict, VERDICT_CANCELLED);
	run_close(f);
}

static void a_cancel_is_passed_on_at_once(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	ends(f, VERDICT_NONE);
	cancel(f, false);
	assert_true(asked(f).cancel);
	assert_false(asked(f).hurry);
	/* The next one waits for the answer, and no longer. */
	cancel(f, true);
	assert_int_equal(effects_count(f, FX_FOLLOW), 0);
	ends(f, VERDICT_NONE);
	assert_true(asked(f).hurry);
	ends(f, VERDICT_NONE);
	assert_int_equal(effects_count(f, FX_FOLLOW), 0);
	run_close(f);
}

static void after_a_restart_the_run_is_followed(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_false(asked(f).gone);
	ends(f, VERDICT_SUCCEEDED);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_true(effects_have(f, FX_AWAIT_RESULTS, MACHINE));
	run_close(f);
}

static void a_master_that_is_gone_left_its_verdict_in_the_store(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	resource_answer(f, MACHINE, OUTCOME_DONE, ERR_NONE); /* it is there */
	assert_int_equal(f->r->phase, RUN_RUNNING);
	wait(f);
	answers(f, OUTCOME_UNSURE, ERR_TIMEOUT);
	machine_ends(f);
	assert_true(asked(f).gone);
	ends(f, VERDICT_SUCCEEDED);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

static void a_master_that_is_gone_without_results_fails_the_run(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	answers(f, OUTCOME_ABSENT, ERR_NONE); /* it answers, and does not know the run */
	assert_true(asked(f).gone);
	answers(f, OUTCOME_UNSURE, ERR_TIMEOUT);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	wait(f);
	answers(f, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_UNAVAILABLE);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

/* The machine of the other master goes first: while it is there, that master may make more. */
static void what_a_lost_master_had_made_is_removed_before_the_run_ends(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	machine_ends(f);
	answers(f, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_false(effects_have(f, FX_SWEEP, MACHINE));
	resource_answer(f, MACHINE, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_SWEEP, MACHINE));
	assert_false(effects_have(f, FX_DESTROY, 0));
	answers(f, OUTCOME_HELD, ERR_DENIED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_true(handover_waits(f->r));
	wait(f);
	assert_true(effects_have(f, FX_SWEEP, MACHINE));
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_DESTROY, 0));
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_FAILED);
	run_close(f);
}

/* It never said that it has taken the run, and may have. */
static void what_a_master_in_doubt_may_have_made_is_removed(void **state)
{
	struct fixture *f = offered();

	(void)state;
	answers(f, OUTCOME_UNSURE, ERR_TIMEOUT);
	resource_answer(f, MACHINE, OUTCOME_DONE, ERR_NONE); /* it is there */
	f->now += BOOT_MS;
	run_give(f, (struct event){.kind = EV_TICK});
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_true(f->r->phase_at_ms[RUN_RUNNING] == 0);
	resource_answer(f, MACHINE, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_SWEEP, MACHINE));
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

static void after_a_restart_what_a_lost_master_had_made_is_removed(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	machine_ends(f);
	answers(f, OUTCOME_ABSENT, ERR_NONE);
	resource_answer(f, MACHINE, OUTCOME_DONE, ERR_NONE);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	run_give(f, (struct event){.kind = EV_TICK});
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_true(effects_have(f, FX_SWEEP, MACHINE));
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_FAILED);
	run_close(f);
}

static void an_older_answer_does_not_say_that_nothing_is_left(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	ends(f, VERDICT_SUCCEEDED);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_true(effects_have(f, FX_AWAIT_RESULTS, MACHINE));
	f->now = f->r->deadline_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	resource_answer(f, MACHINE, OUTCOME_DONE, ERR_NONE);
	assert_false(effects_have(f, FX_SWEEP, MACHINE));
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_SWEEP, MACHINE));
	assert_false(effects_have(f, FX_DESTROY, 0));
	answers(f, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_FAILED);
	run_close(f);
}

static void results_that_never_come_are_lost_output(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	ends(f, VERDICT_SUCCEEDED);
	answers(f, OUTCOME_ABSENT, ERR_NONE);
	f->now = f->r->deadline_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_TIMEOUT);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

/* As the engine whose masters keep their results. */
static struct fixture *keeping(void)
{
	static struct job job;
	struct fixture *f = accepted();

	job = *f->plan.job;
	job.engine = "kubernetes";
	job.master = "auto";
	f->plan.job = &job;
	return f;
}

static void results_that_only_the_other_master_has_are_awaited_without_a_limit(void **state)
{
	struct fixture *f = keeping();

	(void)state;
	ends(f, VERDICT_SUCCEEDED);
	answers(f, OUTCOME_ABSENT, ERR_NONE);
	f->now = f->r->deadline_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	assert_int_equal(f->r->deadline_ms, 0);
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

static void results_that_the_other_master_has_given_up_are_lost_at_once(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	ends(f, VERDICT_SUCCEEDED);
	answers(f, OUTCOME_REFUSED, ERR_DENIED);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_DENIED);
	assert_string_equal(f->r->cause.text, "its results were not copied: why");
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

/* The look at the store that counts is one made after the machine was gone. */
static void results_of_a_machine_that_is_gone_are_looked_for_once_more(void **state)
{
	struct fixture *f = accepted();

	(void)state;
	ends(f, VERDICT_SUCCEEDED);
	answers(f, OUTCOME_ABSENT, ERR_UNAVAILABLE);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	wait(f);
	machine_ends(f);
	answers(f, OUTCOME_ABSENT, ERR_UNAVAILABLE); /* asked before */
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	wait(f);
	answers(f, OUTCOME_ABSENT, ERR_NOT_FOUND);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_string_equal(f->r->cause.text, "its results were not copied: terminated");
	run_close(f);
}

static void who_may_not_ask_does_not_end_a_run_that_may_have_been_taken(void **state)
{
	struct fixture *f = offered();

	(void)state;
	answers(f, OUTCOME_UNSURE, ERR_TIMEOUT);
	wait(f);
	answers(f, OUTCOME_REFUSED, ERR_DENIED);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	assert_int_equal(f->r->remote.waits_kind, ERR_DENIED);
	wait(f);
	answers(f, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	run_close(f);
}

static void what_the_run_waits_for_there_is_kept_until_the_next_answer(void **state)
{
	struct fixture *f = offered();

	(void)state;
	assert_false(handover_waits(f->r));
	answers(f, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	assert_string_equal(f->r->remote.waits, "its master does not answer yet: why");
	wait(f);
	answer(f, (struct event){.outcome = OUTCOME_DONE});
	assert_false(handover_waits(f->r));
	wait(f);
	answers(f, OUTCOME_DONE, ERR_DENIED);
	assert_true(handover_waits(f->r));
	assert_string_equal(f->r->remote.waits, "why");
	assert_int_equal(f->r->remote.waits_kind, ERR_DENIED);
	wait(f);
	ends(f, VERDICT_FAILED);
	assert_false(handover_waits(f->r));
	run_close(f);
}

static void an_answer_to_an_older_question_is_ignored(void **state)
{
	struct fixture *f = offered();

	(void)state;
	answers(f, OUTCOME_DONE, ERR_NONE);
	answers(f, OUTCOME_REFUSED, ERR_INVALID); /* repeated: nothing was asked */
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	wait(f);
	run_give(f, (struct event){.kind = EV_REMOTE,
				   .attempt = f->r->remote.ask_no - 1,
				   .outcome = OUTCOME_ABSENT});
	assert_true(f->r->remote.asked);
	assert_false(f->r->remote.gone);
	run_close(f);
}

static void the_nodes_are_with_the_other_master(void **state)
{
	struct fixture *f = accepted();
	struct err err = {0};

	(void)state;
	assert_int_equal(core_resize_check(f->r, 0, 3, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	run_close(f);
}

static void what_is_there_already_is_not_made_and_not_deleted(void **state)
{
	struct fixture *f = run_open(three_workers);
	static const int64_t price = 3600000;
	struct plan_resource *pr;

	(void)state;
	core_run_free(f->r);
	pr = arena_array(f->a, struct plan_resource, 4);
	memcpy(pr, f->plan.resources, 3 * sizeof(*pr));
	pr[3] = (struct plan_resource){.kind = "x.master",
				       .name = "master",
				       .node = -1,
				       .shared = true,
				       .master = true,
				       .id = "i-1",
				       .age_ms = 500,
				       .prices = {(int64_t *)&price, 1}};
	f->plan.resources = pr;
	f->plan.nresources = 4;
	f->r = core_run_new(&f->plan);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 7});
	assert_int_equal(effects_count(f, FX_CREATE), 3);
	assert_string_equal(f->r->resources[3].id, "i-1");
	assert_int_equal(core_paid_ms(f->r, 3, f->now), 500);
	bool stored = false;
	for (size_t i = 0; i < f->fx.resources.n; i++)
		stored |= f->fx.resources.v[i] == 3;
	assert_true(stored);
	cancel(f, false);
	for (int i = 0; i < 3; i++)
		resource_answer(f, i, OUTCOME_REFUSED, ERR_CAPACITY);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	assert_int_equal(f->r->resources[3].state, RES_LIVE);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_is_offered_followed_and_cleaned_up),
		cmocka_unit_test(the_cause_is_that_of_the_other_master),
		cmocka_unit_test(a_machine_that_boots_is_offered_the_run_again),
		cmocka_unit_test(a_machine_that_never_answers_fails_the_run),
		cmocka_unit_test(a_machine_that_cannot_begin_gives_the_run_its_kind),
		cmocka_unit_test(a_machine_that_ends_while_it_boots_fails_the_run),
		cmocka_unit_test(a_machine_that_ends_with_a_doubt_may_have_had_the_run),
		cmocka_unit_test(a_refused_run_fails),
		cmocka_unit_test(a_cancel_before_the_first_answer_waits_for_it),
		cmocka_unit_test(a_cancel_of_a_run_that_nobody_has_ends_it),
		cmocka_unit_test(a_run_that_may_have_been_taken_is_not_cancelled_here),
		cmocka_unit_test(a_restart_leaves_a_doubt),
		cmocka_unit_test(what_a_master_in_doubt_may_have_made_is_removed),
		cmocka_unit_test(a_cancel_is_passed_on_at_once),
		cmocka_unit_test(after_a_restart_the_run_is_followed),
		cmocka_unit_test(a_master_that_is_gone_left_its_verdict_in_the_store),
		cmocka_unit_test(a_master_that_is_gone_without_results_fails_the_run),
		cmocka_unit_test(what_a_lost_master_had_made_is_removed_before_the_run_ends),
		cmocka_unit_test(after_a_restart_what_a_lost_master_had_made_is_removed),
		cmocka_unit_test(an_older_answer_does_not_say_that_nothing_is_left),
		cmocka_unit_test(results_that_never_come_are_lost_output),
		cmocka_unit_test(
			results_that_only_the_other_master_has_are_awaited_without_a_limit),
		cmocka_unit_test(results_that_the_other_master_has_given_up_are_lost_at_once),
		cmocka_unit_test(results_of_a_machine_that_is_gone_are_looked_for_once_more),
		cmocka_unit_test(who_may_not_ask_does_not_end_a_run_that_may_have_been_taken),
		cmocka_unit_test(what_the_run_waits_for_there_is_kept_until_the_next_answer),
		cmocka_unit_test(an_answer_to_an_older_question_is_ignored),
		cmocka_unit_test(the_nodes_are_with_the_other_master),
		cmocka_unit_test(what_is_there_already_is_not_made_and_not_deleted),
	};

	return cmocka_run_group_tests_name("handover", tests, NULL, NULL);
}
