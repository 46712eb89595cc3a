#include "core_fixture.h"

/* What becomes of nodes that fail, are lost, or are not wanted. */

static struct fixture *open_with(const char *toml, enum on_lost on_lost)
{
	struct fixture *f = run_open(toml);

	/* Engine local, which makes the plan, has no other to choose. */
	for (int k = 0; k < f->plan.crew.nroles; k++)
		((struct role *)f->plan.crew.roles[k].spec)->policy.on_lost = (int)on_lost;
	return f;
}

static void say_of(struct fixture *f, int rank, int attempt, enum event_kind kind)
{
	run_give(f, (struct event){.kind = kind, .index = rank, .attempt = attempt});
}

static void exit_of(struct fixture *f, int rank, int attempt, int code, int signo)
{
	run_give(f, (struct event){.kind = EV_NODE_EXITED,
				   .index = rank,
				   .attempt = attempt,
				   .exit = {.code = code, .signal = signo}});
}

static void run_all(struct fixture *f)
{
	run_make_ready(f);
	for (int i = 0; i < f->plan.crew.n; i++)
		if (!f->r->nodes[i].asleep)
			node_say(f, i, EV_NODE_STARTED);
	assert_int_equal(f->r->phase, RUN_RUNNING);
}

/* The attempt is over and stored: its next inputs are sent, and then the start. */
static void drain(struct fixture *f, int rank, int attempt)
{
	say_of(f, rank, attempt, EV_NODE_DRAINED);
	if (effects_have(f, FX_PREPARE, rank))
		say_of(f, rank, 0, EV_NODE_READY);
}

static const struct effect *start_of(const struct fixture *f, int rank)
{
	for (size_t i = 0; i < f->fx.n; i++)
		if (f->fx.v[i].kind == FX_START && f->fx.v[i].index == rank)
			return &f->fx.v[i];
	return NULL;
}

/* The driver reports that the machine of the node is gone. */
static void lose(struct fixture *f, int rank)
{
	say_of(f, rank, 0, EV_NODE_DROPPED);
	f->now = f->r->nodes[rank].observe_at_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_OBSERVE, rank));
	resource_answer(f, rank, OUTCOME_ABSENT, ERR_NONE);
}

static void come_back(struct fixture *f, int rank)
{
	assert_true(effects_have(f, FX_DESTROY, rank));
	resource_answer(f, rank, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_CREATE, rank));
	resource_answer(f, rank, OUTCOME_DONE, ERR_NONE);
	node_say(f, rank, EV_NODE_HELLO);
	say_of(f, rank, 0, EV_NODE_READY);
}

static const char twice[] = "command = 'w'\ncount = 2\nretries = 2\n";

static void a_node_that_fails_starts_again_when_its_output_is_stored(void **state)
{
	struct fixture *f = run_open(twice);

	(void)state;
	run_all(f);
	exit_of(f, 0, 1, 3, 0);
	assert_int_equal(f->fx.n, 0);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	drain(f, 0, 1);
	assert_int_equal(start_of(f, 0)->attempt, 2);
	assert_int_equal(f->r->nodes[0].state, NODE_READY);
	assert_int_equal(f->r->nodes[1].state, NODE_RUNNING);
	/* What is said of the attempt before is no news. */
	exit_of(f, 0, 1, 0, 0);
	say_of(f, 0, 1, EV_NODE_DRAINED);
	assert_int_equal(f->r->nodes[0].state, NODE_READY);
	say_of(f, 0, 2, EV_NODE_STARTED);
	exit_of(f, 0, 2, 0, 0);
	exit_of(f, 1, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

static void the_last_retry_that_fails_ends_the_run(void **state)
{
	struct fixture *f = run_open(twice);

	(void)state;
	run_all(f);
	for (int attempt = 1; attempt <= 3; attempt++) {
		assert_int_equal(f->r->verdict, VERDICT_NONE);
		say_of(f, 0, attempt, EV_NODE_STARTED);
		exit_of(f, 0, attempt, 3, 0);
		drain(f, 0, attempt);
	}
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_string_equal(f->r->cause.text, "worker-0: exit code 3");
	run_close(f);
}

static void only_listed_codes_are_tried_again(void **state)
{
	static const struct {
		int code, signo;
		enum verdict verdict;
	} cases[] = {{75, 0, VERDICT_NONE},
		     {3, 0, VERDICT_FAILED},
		     {-1, 9, VERDICT_NONE},
		     {-1, 15, VERDICT_FAILED}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture *f = run_open("command = 'w'\nretries = 1\nretry_on = [75, 137]\n");

		run_all(f);
		exit_of(f, 0, 1, cases[i].code, cases[i].signo);
		assert_int_equal(f->r->verdict, cases[i].verdict);
		run_close(f);
	}
}

/* The agent comes back with the attempt before: the new one has not been started. */
static void a_job_that_did_not_end_by_itself_is_not_tried_again(void **state)
{
	struct fixture *f = run_open("command = 'w'\nretries = 1\n");

	(void)state;
	run_all(f);
	run_give(f, (struct event){.kind = EV_NODE_EXITED,
				   .index = 0,
				   .attempt = 1,
				   .exit = {.code = -1, .signal = 9, .kind = ERR_UNAVAILABLE}});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	run_close(f);
}

static void a_start_that_was_lost_is_sent_again(void **state)
{
	struct fixture *f = run_open(twice);

	(void)state;
	run_all(f);
	exit_of(f, 0, 1, 3, 0);
	drain(f, 0, 1);
	say_of(f, 0, 0, EV_NODE_DROPPED);
	run_give(f,
		 (struct event){
			 .kind = EV_NODE_HELLO, .index = 0, .attempt = 1, .holds = HOLDS_STARTED});
	assert_true(effects_have(f, FX_PREPARE, 0));
	say_of(f, 0, 0, EV_NODE_READY);
	assert_int_equal(start_of(f, 0)->attempt, 2);
	run_close(f);
}

static void a_lost_node_is_replaced_while_the_others_go_on(void **state)
{
	struct fixture *f = open_with(three_workers, LOST_REPLACE);

	(void)state;
	run_all(f);
	lose(f, 1);
	assert_int_equal(f->r->nodes[1].state, NODE_WANTED);
	assert_int_equal(f->r->nodes[1].incarnation, 2);
	assert_int_equal(effects_count(f, FX_STOP), 0);
	assert_int_equal(effects_count(f, FX_DESTROY), 1);
	assert_int_equal(f->fx.v[0].incarnation, 1); /* which is the one that there is */
	come_back(f, 1);
	assert_int_equal(f->r->resources[1].incarnation, 2);
	assert_int_equal(start_of(f, 1)->attempt, 2);
	say_of(f, 1, 2, EV_NODE_STARTED);
	exit_of(f, 0, 1, 0, 0);
	exit_of(f, 2, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	exit_of(f, 1, 2, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

/* The job is stopped by its own side within lost and grace: then, and not before, another is started. */
static void a_silent_node_is_given_up_when_its_job_has_surely_ended(void **state)
{
	struct fixture *f = open_with(three_workers, LOST_REPLACE);
	int64_t heard = f->now + 500, fence = heard + 15000 + 10000 + 2000;

	(void)state;
	run_all(f);
	f->now += 15500;
	run_give(f, (struct event){.kind = EV_NODE_DROPPED, .index = 0, .heard_ms = heard});
	while (f->r->nodes[0].state == NODE_RUNNING && f->now <= fence) {
		f->now = f->r->next_ms;
		run_give(f, (struct event){.kind = EV_TICK});
		if (effects_have(f, FX_OBSERVE, 0))
			resource_answer(f, 0, OUTCOME_UNSURE, ERR_UNAVAILABLE);
	}
	assert_int_equal(f->now, fence);
	assert_int_equal(f->r->nodes[0].state, NODE_WANTED);
	assert_int_equal(f->r->nodes[0].incarnation, 2);
	run_close(f);
}

static void a_lost_node_is_done_without_if_enough_are_left(void **state)
{
	struct fixture *f = open_with("command = 'w'\ncount = 3\nmin = 2\n", LOST_SHRINK);

	(void)state;
	run_all(f);
	lose(f, 1);
	assert_true(f->r->nodes[1].asleep);
	assert_int_equal(f->r->nodes[1].exit.code, -1); /* it was lost, it did not exit with 0 */
	assert_true(effects_have(f, FX_DESTROY, 1));
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(effects_count(f, FX_CREATE), 0);
	exit_of(f, 0, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	lose(f, 2);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_non_null(strstr(f->r->cause.text, "fewer than min = 2"));
	run_close(f);
}

static void the_loss_of_the_last_that_was_waited_for_is_a_success(void **state)
{
	struct fixture *f = open_with("command = 'w'\ncount = 2\nmin = 1\n", LOST_SHRINK);

	(void)state;
	run_all(f);
	exit_of(f, 0, 1, 0, 0);
	lose(f, 1);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

static void a_lost_node_makes_the_whole_gang_start_again(void **state)
{
	struct fixture *f = open_with(pserver, LOST_RESTART);

	(void)state;
	run_make_ready(f);
	for (int i = 2; i < 4; i++) {
		node_say(f, i, EV_NODE_STARTED);
		node_say(f, i, EV_NODE_SERVING);
	}
	for (int i = 0; i < 2; i++)
		node_say(f, i, EV_NODE_STARTED);
	exit_of(f, 1, 1, 0, 0); /* it is done, and starts again all the same */
	say_of(f, 1, 1, EV_NODE_DRAINED);
	lose(f, 0);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	assert_int_equal(effects_count(f, FX_STOP), 2);
	assert_int_equal(f->r->counted_ok, 0);
	come_back(f, 0);
	say_of(f, 1, 0, EV_NODE_READY); /* its next inputs came with the loss */
	for (int i = 2; i < 4; i++) {
		assert_int_equal(effects_count(f, FX_START), 0);
		assert_int_equal(f->r->phase, RUN_GATHERING);
		exit_of(f, i, 1, -1, 15);
		say_of(f, i, 1, EV_NODE_DRAINED);
		assert_true(effects_have(f, FX_PREPARE, i));
	}
	assert_int_equal(f->r->phase, RUN_RUNNING);
	/* The gates are closed again: the servers first. */
	assert_int_equal(effects_count(f, FX_START), 0);
	for (int i = 2; i < 4; i++) {
		say_of(f, i, 0, EV_NODE_READY);
		assert_int_equal(start_of(f, i)->attempt, 2);
	}
	for (int i = 2; i < 4; i++) {
		say_of(f, i, 2, EV_NODE_STARTED);
		say_of(f, i, 2, EV_NODE_SERVING);
	}
	assert_int_equal(start_of(f, 0)->attempt, 2);
	assert_int_equal(start_of(f, 1)->attempt, 2);
	run_close(f);
}

/* Its agent left when its output was stored; the next attempt on that machine needs it. */
static void a_node_of_a_gang_that_starts_again_is_looked_for_if_its_agent_has_left(void **state)
{
	struct fixture *f = open_with(pserver, LOST_RESTART);

	(void)state;
	run_make_ready(f);
	for (int i = 2; i < 4; i++) {
		node_say(f, i, EV_NODE_STARTED);
		node_say(f, i, EV_NODE_SERVING);
	}
	for (int i = 0; i < 2; i++)
		node_say(f, i, EV_NODE_STARTED);
	exit_of(f, 1, 1, 0, 0);
	say_of(f, 1, 1, EV_NODE_DRAINED);
	say_of(f, 1, 0, EV_NODE_DROPPED);
	assert_true(!f->r->nodes[1].lost_at_ms && !f->r->nodes[1].observe_at_ms);
	lose(f, 0);
	assert_int_equal(f->r->nodes[1].state, NODE_READY);
	assert_false(effects_have(f, FX_PREPARE, 1));
	assert_true(f->r->nodes[1].lost_at_ms > f->now && f->r->nodes[1].observe_at_ms > f->now);
	run_close(f);
}

static void a_job_that_its_agent_stopped_as_lost_is_lost(void **state)
{
	struct fixture *f = open_with(three_workers, LOST_REPLACE);

	(void)state;
	run_all(f);
	run_give(f, (struct event){.kind = EV_NODE_EXITED,
				   .index = 0,
				   .attempt = 1,
				   .exit = {.code = -1, .signal = 15, .kind = ERR_UNAVAILABLE}});
	assert_int_equal(f->r->nodes[0].state, NODE_WANTED);
	assert_true(effects_have(f, FX_RELEASE, 0));
	run_close(f);
}

static void a_replacement_that_does_not_come_ends_the_run(void **state)
{
	struct fixture *f = open_with(three_workers, LOST_REPLACE);

	(void)state;
	run_all(f);
	lose(f, 1);
	f->now = f->r->nodes[1].by_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_non_null(strstr(f->r->cause.text, "worker-1 was not ready within 7 min"));
	run_close(f);
}

static const char elastic[] = "command = 'w'\ncount = 2\nmin = 1\nmax = 4\n";

static void resize(struct fixture *f, int want)
{
	run_give(f, (struct event){.kind = EV_RESIZE, .index = 0, .want = want});
}

static void nodes_beyond_the_count_sleep_until_they_are_asked_for(void **state)
{
	struct fixture *f = run_open(elastic);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 7});
	assert_int_equal(effects_count(f, FX_CREATE), 2);
	for (int i = 0; i < 2; i++) {
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
		node_say(f, i, EV_NODE_HELLO);
		say_of(f, i, 0, EV_NODE_READY);
	}
	assert_int_equal(f->r->phase, RUN_RUNNING);
	resize(f, 3);
	assert_int_equal(effects_count(f, FX_CREATE), 1);
	resource_answer(f, 2, OUTCOME_DONE, ERR_NONE);
	node_say(f, 2, EV_NODE_HELLO);
	say_of(f, 2, 0, EV_NODE_READY);
	assert_int_equal(start_of(f, 2)->attempt, 1);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(f->r->verdict, VERDICT_NONE);
		say_of(f, i, 1, EV_NODE_STARTED);
		exit_of(f, i, 1, 0, 0);
	}
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

static void those_with_the_highest_index_go_first(void **state)
{
	struct fixture *f = run_open("command = 'w'\ncount = 3\nmin = 1\nmax = 3\n");

	(void)state;
	run_all(f);
	resize(f, 2);
	assert_int_equal(effects_count(f, FX_STOP), 1);
	assert_true(effects_have(f, FX_STOP, 2));
	exit_of(f, 2, 1, -1, 15);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	say_of(f, 2, 1, EV_NODE_DRAINED);
	assert_true(effects_have(f, FX_RELEASE, 2));
	assert_true(effects_have(f, FX_DESTROY, 2));
	exit_of(f, 0, 1, 0, 0);
	/* The one that is left is asked to leave: nobody is waited for any more. */
	resize(f, 1);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

static void a_node_that_is_wanted_again_while_it_stops_starts_again_where_it_is(void **state)
{
	struct fixture *f = run_open("command = 'w'\ncount = 2\nmin = 1\nmax = 2\n");

	(void)state;
	run_all(f);
	resize(f, 1);
	assert_true(effects_have(f, FX_STOP, 1));
	resize(f, 2);
	/* The end that it was told to come to is no failure. */
	exit_of(f, 1, 1, -1, 15);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	drain(f, 1, 1);
	assert_false(effects_have(f, FX_DESTROY, 1));
	assert_int_equal(start_of(f, 1)->attempt, 2);
	run_close(f);
}

static void a_node_whose_output_is_not_stored_in_time_is_replaced(void **state)
{
	struct fixture *f = open_with(twice, LOST_REPLACE);

	(void)state;
	run_all(f);
	exit_of(f, 0, 1, 3, 0);
	f->now = f->r->nodes[0].by_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	assert_true(effects_have(f, FX_RELEASE, 0));
	come_back(f, 0);
	assert_int_equal(start_of(f, 0)->attempt, 2);
	run_close(f);
}

static void a_machine_that_comes_too_late_is_given_back(void **state)
{
	struct fixture *f = run_open(elastic);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 7});
	resize(f, 1); /* its create is under way */
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_DESTROY, 1));
	resource_answer(f, 1, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->resources[1].state, RES_INTENT);
	resize(f, 2);
	assert_true(effects_have(f, FX_CREATE, 1));
	run_close(f);
}

/* Asked for and not asked for any more, while the machine before is still being destroyed. */
static void nobody_waits_for_the_machine_of_a_node_that_sleeps_again(void **state)
{
	struct fixture *f = run_open("command = 'w'\ncount = 3\nmin = 1\nmax = 3\n");

	(void)state;
	run_all(f);
	resize(f, 2);
	exit_of(f, 2, 1, -1, 15);
	drain(f, 2, 1);
	assert_true(effects_have(f, FX_DESTROY, 2));
	resize(f, 3);
	assert_int_not_equal(f->r->nodes[2].by_ms, 0);
	resize(f, 2);
	assert_int_equal(f->r->nodes[2].by_ms, 0);
	assert_int_equal(f->r->awake, 2);
	f->now += 3600000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->awake, 2);
	run_close(f);
}

static void a_size_out_of_bounds_is_refused_in_one_line(void **state)
{
	struct fixture *f = run_open(elastic);
	struct err err = {0};

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 7});
	assert_int_equal(core_resize_check(f->r, 0, 0, &err), -1);
	assert_string_equal(err.msg, "role worker needs at least 1 node (min): not 0");
	assert_int_equal(core_resize_check(f->r, 0, 5, &err), -1);
	assert_string_equal(err.msg, "role worker can have at most 4 nodes (max): not 5");
	resize(f, 5);
	assert_int_equal(f->fx.n, 0);
	assert_int_equal(f->r->awake, 2);
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_int_equal(core_resize_check(f->r, 0, 3, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	run_close(f);
	f = run_open(three_workers);
	assert_int_equal(core_resize_check(f->r, 0, 4, &err), -1);
	assert_non_null(strstr(err.msg, "its job file gives no min and max"));
	run_close(f);
}

/* Another machine of node 0 is asked for, and speaks before the answer to its create comes. */
static struct fixture *open_unanswered(void)
{
	struct fixture *f = open_with("command = 'w'\ncount = 2\n", LOST_REPLACE);

	run_all(f);
	lose(f, 0);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	assert_true(effects_have(f, FX_CREATE, 0));
	node_say(f, 0, EV_NODE_HELLO);
	return f;
}

/* The machine has gone, and the answer never came: it is not there, and nobody knows that it was. */
static void search_for_it(struct fixture *f)
{
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_true(effects_have(f, FX_CREATE, 0));
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_true(effects_have(f, FX_FIND, 0));
}

static void what_was_started_before_the_answer_to_its_create_is_not_started_again(void **state)
{
	struct fixture *f = open_unanswered();
	int incarnation = f->r->nodes[0].incarnation;

	(void)state;
	say_of(f, 0, 0, EV_NODE_READY);
	assert_int_equal(start_of(f, 0)->attempt, 2);
	search_for_it(f);
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_true(effects_have(f, FX_CREATE, 0));
	assert_int_equal(f->r->nodes[0].incarnation, incarnation + 1);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	node_say(f, 0, EV_NODE_HELLO);
	say_of(f, 0, 0, EV_NODE_READY);
	assert_int_equal(start_of(f, 0)->attempt, 3);
	run_close(f);
}

static void a_machine_that_is_not_needed_any_more_may_be_gone(void **state)
{
	struct fixture *f = open_unanswered();

	(void)state;
	search_for_it(f);
	exit_of(f, 1, 1, 3, 0);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	resource_answer(f, 0, OUTCOME_ABSENT, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	say_of(f, 1, 1, EV_NODE_DRAINED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_fails_starts_again_when_its_output_is_stored),
		cmocka_unit_test(the_last_retry_that_fails_ends_the_run),
		cmocka_unit_test(only_listed_codes_are_tried_again),
		cmocka_unit_test(a_job_that_did_not_end_by_itself_is_not_tried_again),
		cmocka_unit_test(a_start_that_was_lost_is_sent_again),
		cmocka_unit_test(a_lost_node_is_replaced_while_the_others_go_on),
		cmocka_unit_test(a_silent_node_is_given_up_when_its_job_has_surely_ended),
		cmocka_unit_test(a_lost_node_is_done_without_if_enough_are_left),
		cmocka_unit_test(the_loss_of_the_last_that_was_waited_for_is_a_success),
		cmocka_unit_test(a_lost_node_makes_the_whole_gang_start_again),
		cmocka_unit_test(
			a_node_of_a_gang_that_starts_again_is_looked_for_if_its_agent_has_left),
		cmocka_unit_test(a_job_that_its_agent_stopped_as_lost_is_lost),
		cmocka_unit_test(a_replacement_that_does_not_come_ends_the_run),
		cmocka_unit_test(nodes_beyond_the_count_sleep_until_they_are_asked_for),
		cmocka_unit_test(those_with_the_highest_index_go_first),
		cmocka_unit_test(
			a_node_that_is_wanted_again_while_it_stops_starts_again_where_it_is),
		cmocka_unit_test(a_node_whose_output_is_not_stored_in_time_is_replaced),
		cmocka_unit_test(a_machine_that_comes_too_late_is_given_back),
		cmocka_unit_test(nobody_waits_for_the_machine_of_a_node_that_sleeps_again),
		cmocka_unit_test(a_size_out_of_bounds_is_refused_in_one_line),
		cmocka_unit_test(
			what_was_started_before_the_answer_to_its_create_is_not_started_again),
		cmocka_unit_test(a_machine_that_is_not_needed_any_more_may_be_gone),
	};

	return cmocka_run_group_tests_name("policy", tests, NULL, NULL);
}
