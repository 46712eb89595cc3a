/* What must be committed before a message or call goes out, and a master that continues after another. */
#include "rig.h"

#include <string.h>

#include "master/runs.h"
#include "store/internal.h"

#define MAX_COMMITS 200
#define REQUEST "request-0123456789"

/* The rig itself checks each call against the ledger (called() of rig.c). */
static void no_driver_is_called_before_its_row_is_committed(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	assert_int_equal(rig_count(r, "create"), 0); /* the round has not ended */
	agent_run(a);
	agent_finish(a);
	rig_until(r, !rig_run(r));
	assert_int_equal(rig_count(r, "create"), 1);
	assert_int_equal(rig_count(r, "destroy"), 1);
	assert_int_equal(r->exist.n, 0);
	assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_SUCCEEDED);
	assert_true(rig_stored(r, "SELECT ended_ms FROM run") > 0);
}

static void of_a_round_that_cannot_be_committed_nothing_goes_out(void **state)
{
	struct rig *r = *state;

	rig_submit(r, RIG_JOB);
	r->fail_at = r->commits + 1;
	rig_until_it_gives_up(r);
	assert_int_equal(r->m.exit_code, err_exit_code(ERR_IO));
	rig_stop(r);
	assert_int_equal(r->calls.n, 0);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 0);
	/* The next one knows nothing of it, and works. */
	assert_true(rig_start(r));
	assert_null(rig_run(r));
	rig_submit(r, RIG_JOB);
	rig_until(r, rig_count(r, "create") == 1);
}

/* Say, when the time of a token's last use was to be stored: no run has changed. */
static void a_store_that_fails_between_rounds_ends_the_master_too(void **state)
{
	struct rig *r = *state;

	rig_idle(r);
	(void)store_poison(r->m.store, SQLITE_FULL, "commit", NULL);
	rig_until_it_gives_up(r);
	assert_int_equal(r->m.exit_code, err_exit_code(ERR_CAPACITY));
	rig_stop(r);
	assert_true(rig_start(r));
	rig_submit(r, RIG_JOB);
	rig_until(r, rig_count(r, "create") == 1);
}

static void a_start_that_is_not_committed_is_not_sent(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->resources[0].state == RES_LIVE);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_INPUTS);
	r->fail_at = r->commits + 1;
	agent_say(a, FRAME_READY, "{\"ok\":true}");
	rig_until_it_gives_up(r);
	rig_stop(r);
	agent_read(a);
	assert_int_equal(a->seen[FRAME_START], 0);
	assert_true(rig_start(r));
	agent_run(a);
	assert_int_equal(a->starts, 1);
}

static void whoever_submits_is_answered_when_the_run_is_stored(void **state)
{
	static const char body[] = "{\"request_id\":\"" REQUEST "\",\"job\":" RIG_JOB
				   ",\"client_env\":{},\"base_dir\":\"/\"}";
	struct rig *r = *state;

	r->fail_at = r->commits + 1;
	assert_int_equal(rig_http(r, "POST", "/api/v1/runs", body) / 100, 5);
	rig_stop(r);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 0);
	assert_true(rig_start(r));
	assert_int_equal(rig_http(r, "POST", "/api/v1/runs", body), 201);
	rig_crash(r);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 1);
	/* Asked again after a lost answer, it is the same run. */
	assert_true(rig_start(r));
	assert_int_equal(rig_http(r, "POST", "/api/v1/runs", body), 200);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 1);
}

static void a_master_that_restarts_takes_up_where_it_stood(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a = rig_agent(r, 0);

	rig_submit(r, RIG_JOB);
	agent_run(a);
	rig_until(r, rig_run(r)->core->nodes[0].state == NODE_RUNNING);
	rig_crash(r);
	assert_true(rig_start(r));
	assert_int_equal(rig_run(r)->core->phase, RUN_RUNNING);
	assert_int_equal(rig_run(r)->core->nodes[0].state, NODE_RUNNING);
	assert_false(rig_run(r)->core->nodes[0].connected);
	agent_hello(a, NULL);
	agent_wait(a, FRAME_WELCOME);
	agent_finish(a);
	rig_until(r, !rig_run(r));
	assert_int_equal(a->seen[FRAME_START], 0); /* not once more */
	assert_int_equal(a->starts, 1);
	assert_int_equal(rig_count(r, "create"), 1);
	assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_SUCCEEDED);
}

/* Its answer is lost with the master: is it there? */
static void a_create_without_an_answer_is_asked_for_again(void **state)
{
	struct rig *r = *state;

	rig_submit(r, RIG_JOB);
	rig_turn(r); /* called, and its answer waits for the next turn */
	assert_int_equal(rig_count(r, "create"), 1);
	assert_int_equal(rig_run(r)->core->resources[0].state, RES_SENT);
	rig_crash(r);
	assert_true(rig_start(r));
	rig_until(r, rig_run(r)->core->resources[0].state == RES_LIVE);
	assert_int_equal(r->exist.n, 1);
	assert_int_equal(rig_count(r, "create") + rig_count(r, "find"), 2);
}

/* The delete was refused, and its pause was not over: to take the run up changes no row. */
static void a_delete_that_waits_is_tried_again_by_the_next_master(void **state)
{
	struct rig *r = *state;

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->resources[0].state == RES_LIVE);
	rig_cancel(r, false);
	rig_stop(r);
	rig_damage(r, "UPDATE resource SET retry_at_ms = 1");
	assert_int_equal(rig_count(r, "destroy"), 0);
	assert_true(rig_start(r));
	rig_until(r, rig_count(r, "destroy") == 1);
	rig_until(r, !rig_run(r));
}

static void what_was_wanted_gone_goes_under_the_next_master(void **state)
{
	struct rig *r = *state;

	rig_submit(r, RIG_JOB);
	rig_until(r, rig_run(r)->core->resources[0].state == RES_LIVE);
	rig_cancel(r, false);
	rig_stop(r); /* in order: the cancel is committed, and nothing goes out any more */
	assert_int_equal(rig_count(r, "destroy"), 0);
	assert_int_equal(rig_stored(r, "SELECT state FROM resource"), RES_DELETING);
	assert_true(rig_start(r));
	rig_until(r, !rig_run(r));
	assert_int_equal(r->exist.n, 0);
	assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_CANCELLED);
}

static bool play(struct rig *r, struct rig_agent *a[2])
{
	struct live_run *lr = NULL;
	struct err err = {0};
	bool hit = false;
	unsigned turn = 0;

	for (int64_t until = rig_deadline(); !lr || rig_run(r);) {
		if (rig_late(until))
			fail_msg("the run does not end when commit %d fails", r->fail_at);
		if (!r->up || r->m.exit_code) {
			hit = true;
			rig_stop(r);
			rig_start(r);
			lr = NULL;
			continue;
		}
		if (!lr) { /* a client that had no answer asks again */
			lr = rig_try_submit(r, REQUEST, RIG_JOB_OF_TWO, &err);
			assert_non_null(lr);
			if (lr->ended)
				live_run_done(lr);
		}
		rig_turn(r);
		agent_play(a[turn++ % 2]); /* in turns: a commit for each */
	}
	return hit;
}

static void check_played(struct rig *r, struct rig_agent *a[2])
{
	struct buf text;

	assert_int_equal(r->exist.n, 0);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run"), 1);
	assert_int_equal(rig_stored(r, "SELECT verdict FROM run"), VERDICT_SUCCEEDED);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM run WHERE ended_ms > 0"), 1);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM resource WHERE state = 4"), 2);
	/* Each end counts once, and the numbers of the events have no gap. */
	assert_int_equal(rig_events(r, "exited"), 2);
	assert_int_equal(rig_stored(r, "SELECT max(seq) - count(*) FROM event"), 0);
	buf_init(&text, 4096);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(a[i]->starts, 1);
		buf_reset(&text);
		assert_int_equal(file_read(a[i]->log, &text, NULL), 0);
		assert_string_equal(text.p, a[i]->output);
	}
	buf_release(&text);
}

/* Rule: whichever commit fails, the next master goes on, and all is as if nothing had been. */
static void sweep(enum rig_commit how)
{
	bool hit = true;
	int n = 0;

	while (hit) {
		struct rig *r = NULL;

		assert_true(++n < MAX_COMMITS);
		assert_int_equal(rig_make((void **)&r), 0);
		struct rig_agent *agents[2] = {rig_agent(r, 0), rig_agent(r, 1)};

		r->fail_at = r->commits + n;
		r->how = how;
		hit = play(r, agents);
		check_played(r, agents);
		rig_drop((void **)&r);
	}
	assert_true(n > 5);
	printf("# %d commits\n", n - 1);
}

static void any_commit_may_fail(void **state)
{
	(void)state;
	sweep(COMMIT_FAILS);
}

static void any_commit_may_be_stored_and_fail(void **state)
{
	(void)state;
	sweep(COMMIT_LOST);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_make, rig_drop)
	static const struct CMUnitTest tests[] = {
		CASE(no_driver_is_called_before_its_row_is_committed),
		CASE(of_a_round_that_cannot_be_committed_nothing_goes_out),
		CASE(a_store_that_fails_between_rounds_ends_the_master_too),
		CASE(a_start_that_is_not_committed_is_not_sent),
		CASE(whoever_submits_is_answered_when_the_run_is_stored),
		CASE(a_master_that_restarts_takes_up_where_it_stood),
		CASE(a_create_without_an_answer_is_asked_for_again),
		CASE(a_delete_that_waits_is_tried_again_by_the_next_master),
		CASE(what_was_wanted_gone_goes_under_the_next_master),
		cmocka_unit_test(any_commit_may_fail),
		cmocka_unit_test(any_commit_may_be_stored_and_fail),
	};

	return cmocka_run_group_tests_name("master: commit order", tests, NULL, NULL);
}
