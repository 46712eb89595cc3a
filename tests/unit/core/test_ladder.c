/* Errors of a provider lead to the next choice, a pause, or the end of the run. */
#include "core_fixture.h"

#include <string.h>

static const char *choices[] = {"{\"type\":\"a\"}", "{\"type\":\"b\"}", "{\"type\":\"c\"}"};

/* Three machines with a ladder; as a gang, or each by itself. */
static struct fixture *open_ladder(int nchoices, bool gang)
{
	struct fixture *f = run_open(three_workers);

	core_run_free(f->r);
	for (int i = 0; i < f->plan.nresources; i++) {
		f->plan.resources[i].choices = choices;
		f->plan.resources[i].nchoices = nchoices;
		f->plan.resources[i].group = gang;
	}
	f->r = core_run_new(&f->plan);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	return f;
}

static const char *asked_for(const struct fixture *f, int index)
{
	for (size_t i = 0; i < f->fx.n; i++)
		if (f->fx.v[i].kind == FX_CREATE && f->fx.v[i].index == index)
			return plan_choice(&f->plan.resources[index], f->fx.v[i].choice);
	return "nothing";
}

static void no_capacity_moves_on_to_the_next_choice_at_once(void **state)
{
	struct fixture *f = open_ladder(3, false);

	(void)state;
	assert_string_equal(asked_for(f, 0), choices[0]);
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
	assert_string_equal(asked_for(f, 0), choices[1]);
	assert_int_equal(f->r->resources[0].batch, 4); /* another request has another token */
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
	assert_string_equal(asked_for(f, 0), choices[2]);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->resources[0].choice, 2);
	assert_int_equal(f->r->resources[1].choice, 0); /* the others have nothing to do with it */
	run_close(f);
}

static void after_the_last_choice_comes_a_pause_that_grows(void **state)
{
	struct fixture *f = open_ladder(2, false);
	int64_t first = 0, pause = 0;

	(void)state;
	for (int round = 0; round < 8; round++) {
		assert_string_equal(asked_for(f, 0), choices[0]);
		resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
		assert_string_equal(asked_for(f, 0), choices[1]);
		resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
		assert_string_equal(asked_for(f, 0), "nothing");
		pause = f->r->resources[0].retry_at_ms - f->now;
		assert_true(pause > 0);
		first = first ? first : pause;
		f->now += pause;
		run_give(f, (struct event){.kind = EV_TICK});
	}
	assert_true(pause > 20 * first);
	run_close(f);
}

/* A host was given back, or one has joined. */
static void what_waits_for_capacity_is_asked_for_at_once_when_there_is_some(void **state)
{
	struct fixture *f = open_ladder(1, false);

	(void)state;
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
	resource_answer(f, 1, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	assert_true(f->r->resources[0].retry_at_ms > f->now);
	run_give(f, (struct event){.kind = EV_CAPACITY});
	assert_string_equal(asked_for(f, 0), choices[0]);
	assert_string_equal(asked_for(f, 1), "nothing"); /* it waits for something else */
	assert_int_equal(effects_count(f, FX_CREATE), 1);
	run_give(f, (struct event){.kind = EV_CAPACITY}); /* it is asked for already */
	assert_int_equal(effects_count(f, FX_CREATE), 0);
	run_close(f);
}

static void only_no_capacity_makes_another_choice(void **state)
{
	struct fixture *f = open_ladder(3, false);

	(void)state;
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_UNAVAILABLE);
	f->now = f->r->resources[0].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_string_equal(asked_for(f, 0), choices[0]);
	run_close(f);
}

static void ends_with(enum err_kind kind, int exit_code)
{
	struct fixture *f = open_ladder(3, false);

	resource_answer(f, 1, OUTCOME_REFUSED, kind);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), exit_code);
	assert_string_equal(f->r->cause.text, "create local.node 'worker-1': x");
	run_close(f);
}

static void quota_denied_and_invalid_end_the_run_with_the_provider_s_words(void **state)
{
	(void)state;
	ends_with(ERR_QUOTA, 5);
	ends_with(ERR_DENIED, 4);
	ends_with(ERR_INVALID, 2);
}

static void launch_is_over(struct fixture *f, enum err_kind kind, int exit_code)
{
	f->now = 1000 + f->job.timeouts.launch_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, kind);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), exit_code);
}

static void endless_want_of_capacity_ends_with_what_was_tried(void **state)
{
	struct fixture *f = open_ladder(2, false);

	(void)state;
	for (int i = 0; i < 3; i++) {
		resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
		f->now += 1000;
		run_give(f, (struct event){.kind = EV_TICK});
	}
	launch_is_over(f, ERR_CAPACITY, 5);
	assert_non_null(
		strstr(f->r->cause.text, "x (3 tries of 2 choices, the last {\"type\":\"a\"})"));
	run_close(f);
}

static void a_provider_that_does_not_answer_is_unavailable(void **state)
{
	struct fixture *f = open_ladder(2, false);

	(void)state;
	resource_answer(f, 0, OUTCOME_UNSURE, ERR_TIMEOUT);
	launch_is_over(f, ERR_UNAVAILABLE, 8);
	run_close(f);
}

/* ---- a gang ---- */

/* The first two came, the third could not be had. */
static struct fixture *open_partial_gang(void)
{
	struct fixture *f = open_ladder(2, true);

	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	node_say(f, 0, EV_NODE_HELLO);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 2, OUTCOME_REFUSED, ERR_CAPACITY);
	return f;
}

static void what_came_of_a_gang_goes_before_the_next_choice_is_tried(void **state)
{
	struct fixture *f = open_partial_gang();

	(void)state;
	assert_true(effects_have(f, FX_DESTROY, 0) && effects_have(f, FX_DESTROY, 1));
	assert_true(effects_have(f, FX_RELEASE, 0)); /* its agent was here */
	assert_int_equal(effects_count(f, FX_CREATE), 0);
	assert_int_equal(f->r->nodes[0].state, NODE_WANTED);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 1, OUTCOME_HELD, ERR_CONFLICT);
	assert_int_equal(effects_count(f, FX_CREATE), 0); /* not proven gone */
	f->now = f->r->resources[1].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_DESTROY, 1));
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(effects_count(f, FX_CREATE), 3);
	for (int i = 0; i < 3; i++) {
		assert_string_equal(asked_for(f, i), choices[1]);
		assert_int_equal(f->r->resources[i].batch, 2);
	}
	run_close(f);
}

static void what_comes_late_of_a_choice_that_was_left_goes_too(void **state)
{
	struct fixture *f = open_ladder(2, true);

	(void)state;
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_CAPACITY);
	assert_int_equal(effects_count(f, FX_CREATE), 0); /* two answers are still out */
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_DESTROY, 1));
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 2, OUTCOME_UNSURE, ERR_TIMEOUT);
	f->now = f->r->resources[2].retry_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_FIND, 2)); /* it is not asked for again */
	resource_answer(f, 2, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(effects_count(f, FX_CREATE), 3);
	run_close(f);
}

static void a_restart_finds_the_gang_where_it_was(void **state)
{
	struct fixture *f = open_partial_gang();

	(void)state;
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_int_equal(effects_count(f, FX_CREATE), 0);
	assert_true(effects_have(f, FX_DESTROY, 1));
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(effects_count(f, FX_CREATE), 3);
	assert_string_equal(asked_for(f, 0), choices[1]);
	run_close(f);
}

static void the_cause_is_what_the_gang_could_not_get(void **state)
{
	struct fixture *f = open_partial_gang();

	(void)state;
	resource_answer(f, 0, OUTCOME_HELD, ERR_CONFLICT);
	launch_is_over(f, ERR_CAPACITY, 5);
	run_close(f);
}

static void a_cancel_while_a_gang_is_given_back_cleans_up(void **state)
{
	struct fixture *f = open_partial_gang();

	(void)state;
	run_give(f, (struct event){.kind = EV_CANCEL});
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	run_close(f);
}

/* ---- fewer calls ---- */

static void throttled_every_call_of_the_run_waits(void **state)
{
	struct fixture *f = open_ladder(0, false);

	(void)state;
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_THROTTLED);
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(f->fx.n, 0); /* not even a delete */
	assert_true(f->r->next_call_ms > f->now);
	f->now = f->r->next_call_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_DESTROY, 1));
	run_close(f);
}

/* How long nobody is asked after another answer of this kind. */
static int64_t pause_after(struct fixture *f, enum outcome outcome, enum err_kind kind)
{
	f->now = f->r->resources[0].retry_at_ms > f->r->next_call_ms
			 ? f->r->resources[0].retry_at_ms
			 : f->r->next_call_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->resources[0].asked, ASKED_CREATE);
	f->now++;
	resource_answer(f, 0, outcome, kind);
	return f->r->slow_ms;
}

static void the_pause_grows_while_throttled_and_shrinks_after(void **state)
{
	struct fixture *f = open_ladder(0, false);

	(void)state;
	resource_answer(f, 0, OUTCOME_REFUSED, ERR_THROTTLED);
	assert_int_equal(f->r->slow_ms, 500);
	assert_int_equal(pause_after(f, OUTCOME_REFUSED, ERR_THROTTLED), 1000);
	assert_int_equal(pause_after(f, OUTCOME_UNSURE, ERR_THROTTLED), 2000);
	resource_answer(f, 1, OUTCOME_REFUSED, ERR_THROTTLED); /* asked long before */
	assert_int_equal(f->r->slow_ms, 2000);
	assert_int_equal(pause_after(f, OUTCOME_UNSURE, ERR_TIMEOUT), 1000);
	assert_int_equal(pause_after(f, OUTCOME_UNSURE, ERR_TIMEOUT), 500);
	assert_int_equal(pause_after(f, OUTCOME_DONE, ERR_NONE), 0);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_capacity_moves_on_to_the_next_choice_at_once),
		cmocka_unit_test(after_the_last_choice_comes_a_pause_that_grows),
		cmocka_unit_test(what_waits_for_capacity_is_asked_for_at_once_when_there_is_some),
		cmocka_unit_test(only_no_capacity_makes_another_choice),
		cmocka_unit_test(quota_denied_and_invalid_end_the_run_with_the_provider_s_words),
		cmocka_unit_test(endless_want_of_capacity_ends_with_what_was_tried),
		cmocka_unit_test(a_provider_that_does_not_answer_is_unavailable),
		cmocka_unit_test(what_came_of_a_gang_goes_before_the_next_choice_is_tried),
		cmocka_unit_test(what_comes_late_of_a_choice_that_was_left_goes_too),
		cmocka_unit_test(a_restart_finds_the_gang_where_it_was),
		cmocka_unit_test(the_cause_is_what_the_gang_could_not_get),
		cmocka_unit_test(a_cancel_while_a_gang_is_given_back_cleans_up),
		cmocka_unit_test(throttled_every_call_of_the_run_waits),
		cmocka_unit_test(the_pause_grows_while_throttled_and_shrinks_after),
	};
	return cmocka_run_group_tests_name("core ladder", tests, NULL, NULL);
}
