#include "core_fixture.h"

#include <signal.h>
#include <string.h>

static void a_run_that_goes_well_passes_every_phase(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	assert_int_equal(f->r->phase, RUN_PROVISIONING);
	assert_int_equal(effects_count(f, FX_CREATE), 3);
	for (int i = 0; i < 3; i++)
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_GATHERING);
	for (int i = 0; i < 3; i++) {
		node_say(f, i, EV_NODE_HELLO);
		assert_true(effects_have(f, FX_PREPARE, i));
	}
	node_say(f, 0, EV_NODE_READY);
	node_say(f, 1, EV_NODE_READY);
	assert_int_equal(effects_count(f, FX_START),
			 0); /* nobody starts until everybody is ready */
	node_say(f, 2, EV_NODE_READY);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_int_equal(effects_count(f, FX_START), 3);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_STARTED);
	for (int i = 0; i < 3; i++)
		node_exit(f, i, 0, 0);
	assert_int_equal(f->r->phase, RUN_COLLECTING);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_DRAINED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(effects_count(f, FX_RELEASE), 3);
	assert_int_equal(effects_count(f, FX_DESTROY), 3);
	run_clean_up(f);
	assert_int_equal(f->r->phase, RUN_SUCCEEDED);
	assert_int_equal(effects_count(f, FX_ENDED), 1);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 0);
	run_close(f);
}

static void a_success_that_loses_a_log_is_none(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 2\n");
	struct event lost = {.kind = EV_NODE_NO_LOG, .index = 1, .text = "its log is gone"};

	(void)state;
	run_make_ready(f);
	node_exit(f, 0, 0, 0);
	node_exit(f, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_give(f, lost);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_UNAVAILABLE);
	assert_int_equal(f->r->cause.node, 1);
	assert_non_null(strstr(f->r->cause.text, " was lost: its log is gone"));
	assert_true(effects_have(f, FX_RELEASE, 1));
	assert_int_equal(f->r->phase, RUN_COLLECTING); /* the other one still hands over */
	node_say(f, 0, EV_NODE_DRAINED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
	/* A node that has handed over everything needs its log no more. */
	f = run_open("command = ['w']\ncount = 2\n");
	run_make_ready(f);
	node_exit(f, 0, 0, 0);
	node_exit(f, 1, 0, 0);
	node_say(f, 1, EV_NODE_DRAINED);
	run_give(f, lost);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

/* Ten thousand at once would hold up the loop, as their plan has done already. */
static void resources_are_created_in_slices_one_a_tick(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 7\n");

	(void)state;
	f->r->slice = 3;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	assert_int_equal(effects_count(f, FX_CREATE), 0);
	assert_true(f->r->next_ms && f->r->next_ms <= f->now);
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(effects_count(f, FX_CREATE), 3);
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE); /* no other event creates the next */
	assert_int_equal(effects_count(f, FX_CREATE), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(f->r->next_ms && f->r->next_ms <= f->now);
		run_give(f, (struct event){.kind = EV_TICK});
		assert_int_equal(effects_count(f, FX_CREATE), i == 0 ? 3 : 1);
	}
	assert_true(f->r->next_ms > f->now);
	assert_int_equal(f->r->res_count[RES_SENT], 6);
	run_close(f);
}

/* One call creates them. */
static void a_group_is_created_in_one_slice(void **state)
{
	static const int group_of[] = {0, 0, 1, 1, 1, 2, 2, 3}, slices[] = {5, 2, 1};
	struct fixture *f = run_open("command = ['w']\ncount = 8\n");

	(void)state;
	core_run_free(f->r);
	for (int i = 0; i < 8; i++)
		f->plan.resources[i].group = group_of[i];
	f->r = core_run_new(&f->plan);
	f->r->slice = 3;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	for (int i = 0; i < 3; i++) {
		run_give(f, (struct event){.kind = EV_TICK});
		assert_int_equal(effects_count(f, FX_CREATE), slices[i]);
		f->r->slice = 1;
	}
	for (int i = 3; i < 8; i++)
		assert_int_equal(f->r->resources[i].batch == f->r->resources[i - 1].batch,
				 group_of[i] == group_of[i - 1]);
	run_close(f);
}

static void a_master_that_died_between_two_slices_creates_the_rest(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 5\n");

	(void)state;
	f->r->slice = 2;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->res_count[RES_INTENT], 3);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_int_equal(effects_count(f, FX_CREATE), 2); /* those that were sent */
	for (int i = 0; i < 3; i++) {
		run_give(f, (struct event){.kind = EV_TICK});
		assert_int_equal(effects_count(f, FX_CREATE), i == 0 ? 0 : 3 - i);
	}
	for (int i = 0; i < 5; i++)
		assert_int_equal(f->r->resources[i].attempt, 1);
	run_close(f);
}

static void a_run_that_ends_between_two_slices_creates_nothing_more(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 4\n");

	(void)state;
	f->r->slice = 2;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	run_give(f, (struct event){.kind = EV_TICK});
	run_give(f, (struct event){.kind = EV_CANCEL});
	for (int i = 0; i < 3; i++)
		run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->res_count[RES_INTENT] + f->r->res_count[RES_GONE], 2);
	assert_int_equal(f->r->res_count[RES_SENT], 2);
	run_close(f);
}

static void nodes_start_in_slices_one_a_tick(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 7\n");

	(void)state;
	run_create_all(f);
	f->r->slice = 6;
	for (int i = 0; i < 7; i++)
		node_say(f, i, EV_NODE_HELLO);
	for (int i = 0; i < 7; i++)
		node_say(f, i, EV_NODE_READY);
	assert_int_equal(effects_count(f, FX_START), 3);
	node_say(f, 0, EV_NODE_STARTED); /* no other event starts the next */
	assert_int_equal(effects_count(f, FX_START), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(f->r->next_ms && f->r->next_ms <= f->now);
		run_give(f, (struct event){.kind = EV_TICK});
		assert_int_equal(effects_count(f, FX_START), i == 0 ? 3 : 1);
	}
	assert_false(f->r->starting);
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(effects_count(f, FX_START), 0);
	run_close(f);
}

static void a_master_that_died_between_two_slices_starts_the_rest(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 4\n");

	(void)state;
	run_create_all(f);
	f->r->slice = 6;
	for (int i = 0; i < 4; i++)
		node_say(f, i, EV_NODE_HELLO);
	for (int i = 0; i < 4; i++)
		node_say(f, i, EV_NODE_READY);
	assert_false(f->r->nodes[3].start_sent);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_true(f->r->nodes[3].start_sent);
	assert_int_equal(f->r->nodes[3].attempt, 1);
	assert_int_equal(f->r->nodes[0].attempt, 1);
	run_close(f);
}

static void a_run_that_ends_between_two_slices_starts_nobody_more(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 4\n");

	(void)state;
	run_create_all(f);
	f->r->slice = 4;
	for (int i = 0; i < 4; i++)
		node_say(f, i, EV_NODE_HELLO);
	for (int i = 0; i < 4; i++)
		node_say(f, i, EV_NODE_READY);
	run_give(f, (struct event){.kind = EV_CANCEL});
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(effects_count(f, FX_START), 0);
	assert_int_equal(f->r->nodes[3].attempt, 0);
	run_close(f);
}

/* `n` nodes that run, or a part of them in slices of `slice` from now on. */
static struct fixture *running_in_slices(int n, int slice)
{
	char job[64];

	snprintf(job, sizeof(job), "command = ['w']\ncount = %d\n", n);
	struct fixture *f = run_open(job);
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	for (int i = 0; i < n; i++)
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	for (int i = 0; i < n; i++)
		node_say(f, i, EV_NODE_HELLO);
	for (int i = 0; i < n; i++)
		node_say(f, i, EV_NODE_READY);
	for (int i = 0; i < n; i++)
		node_say(f, i, EV_NODE_STARTED);
	assert_int_equal(f->r->node_count[NODE_RUNNING], n);
	f->r->slice = slice;
	return f;
}

static void end_all(struct fixture *f, int n)
{
	for (int i = 0; i < n; i++) {
		node_exit(f, i, 0, SIGTERM);
		node_say(f, i, EV_NODE_DRAINED);
	}
}

static void nodes_are_stopped_and_released_in_slices_one_a_tick(void **state)
{
	struct fixture *f = running_in_slices(7, 3);
	static const int released[] = {3, 3, 1, 0, 0}, destroyed[] = {0, 0, 2, 3, 2};

	(void)state;
	run_give(f, (struct event){.kind = EV_CANCEL});
	for (int i = 0; i < 3; i++) {
		assert_int_equal(effects_count(f, FX_STOP), i < 2 ? 3 : 1);
		assert_int_equal(f->r->next_ms && f->r->next_ms <= f->now, i < 2);
		if (i < 2)
			run_give(f, (struct event){.kind = EV_TICK});
	}
	end_all(f, 7);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(effects_count(f, FX_RELEASE), released[i]);
		assert_int_equal(effects_count(f, FX_DESTROY), destroyed[i]);
		assert_int_equal(f->r->next_ms && f->r->next_ms <= f->now, i < 4);
		run_give(f, (struct event){.kind = EV_TICK});
	}
	assert_int_equal(effects_count(f, FX_DESTROY), 0);
	for (int i = 0; i < 7; i++)
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	assert_int_equal(f->r->phase, RUN_CANCELLED);
	assert_int_equal(f->r->node_count[NODE_RELEASED], 7);
	run_close(f);
}

/* The run of a master that died between two slices of a stop, or of the clean-up. */
static void a_master_that_died_between_two_slices_stops_and_releases_the_rest(void **state)
{
	struct fixture *f = running_in_slices(4, 3);

	(void)state;
	run_give(f, (struct event){.kind = EV_CANCEL});
	assert_false(f->r->nodes[3].stop_sent);
	f->r->slice = 100;
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(f->r->nodes[3].stop_sent);
	f->r->slice = 3;
	end_all(f, 4);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	assert_int_equal(f->r->nodes[3].state, NODE_EXITED);
	f->r->slice = 100;
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->node_count[NODE_RELEASED], 4);
	assert_int_equal(effects_count(f, FX_DESTROY), 4);
	run_close(f);
}

/* All machines are gone before the last node is released. */
static void a_run_ends_after_its_last_slice(void **state)
{
	struct fixture *f = running_in_slices(4, 3);

	(void)state;
	for (int i = 0; i < 4; i++)
		node_exit(f, i, 0, 0);
	run_give(f, (struct event){.kind = EV_TICK});
	for (int i = 0; i < 4; i++)
		node_say(f, i, EV_NODE_DRAINED);
	assert_int_equal(f->r->nodes[3].state, NODE_EXITED);
	/* Late words of a node that is to be released. */
	run_give(f, (struct event){.kind = EV_NODE_DRAINED,
				   .index = 3,
				   .attempt = 1,
				   .err_kind = ERR_IO,
				   .text = "lost"});
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	for (int i = 0; i < 4; i++) {
		f->r->resources[i].state = RES_GONE;
		f->r->res_count[RES_LIVE]--;
		f->r->res_count[RES_GONE]++;
	}
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->phase, RUN_SUCCEEDED);
	assert_int_equal(f->r->node_count[NODE_RELEASED], 4);
	run_close(f);
}

static void a_success_with_lost_files_is_none(void **state)
{
	struct fixture *f = run_open("command = ['w']\ncount = 2\n");
	struct event lost = {.kind = EV_NODE_DRAINED,
			     .index = 1,
			     .attempt = 1,
			     .err_kind = ERR_CAPACITY,
			     .text = "keep 'm'"};

	(void)state;
	run_make_ready(f);
	node_exit(f, 0, 0, 0);
	node_exit(f, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_give(f, lost);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_CAPACITY);
	assert_int_equal(f->r->cause.node, 1);
	assert_non_null(strstr(f->r->cause.text, ": keep 'm'"));
	assert_int_equal(f->r->phase, RUN_COLLECTING); /* the other one still hands over */
	node_say(f, 0, EV_NODE_DRAINED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
	/* While others run it cannot become a success any more. */
	f = run_open("command = ['w']\ncount = 2\n");
	run_make_ready(f);
	node_say(f, 0, EV_NODE_STARTED);
	node_exit(f, 1, 0, 0);
	run_give(f, lost);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_true(effects_have(f, FX_STOP, 0));
	run_close(f);
	/* What has failed has failed for its own reason. */
	f = run_open("command = ['w']\ncount = 2\n");
	run_make_ready(f);
	node_exit(f, 1, 3, 0);
	run_give(f, lost);
	assert_int_equal(f->r->cause.kind, ERR_NONE);
	run_close(f);
}

static void trainers_start_when_every_server_answers(void **state)
{
	struct fixture *f = run_open(pserver);

	(void)state;
	run_make_ready(f);
	assert_int_equal(effects_count(f, FX_START), 2);
	assert_true(effects_have(f, FX_START, 2) && effects_have(f, FX_START, 3));
	node_say(f, 2, EV_NODE_STARTED);
	node_say(f, 3, EV_NODE_STARTED);
	node_say(f, 2, EV_NODE_SERVING);
	assert_int_equal(effects_count(f, FX_START), 0);
	node_say(f, 3, EV_NODE_SERVING);
	assert_true(effects_have(f, FX_START, 0) && effects_have(f, FX_START, 1));
	run_close(f);
}

static void servers_are_stopped_when_the_trainers_are_done(void **state)
{
	struct fixture *f = run_open(pserver);

	(void)state;
	run_make_ready(f);
	for (int i = 2; i < 4; i++)
		node_say(f, i, EV_NODE_SERVING);
	node_exit(f, 0, 0, 0);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	node_exit(f, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	assert_true(effects_have(f, FX_STOP, 2) && effects_have(f, FX_STOP, 3));
	node_exit(f, 2, -1, SIGTERM); /* how a server ends does not matter then */
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	run_close(f);
}

static void a_server_that_ends_before_it_answers_fails_the_run(void **state)
{
	struct fixture *f = run_open(pserver);

	(void)state;
	run_make_ready(f);
	node_say(f, 2, EV_NODE_STARTED);
	node_exit(f, 2, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.node, 2);
	run_close(f);
}

static void a_server_that_never_answers_misses_its_deadline(void **state)
{
	struct fixture *f = run_open(pserver);

	(void)state;
	run_make_ready(f);
	node_say(f, 2, EV_NODE_STARTED);
	f->now += f->job.timeouts.serve_ms + 1;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.kind, ERR_TIMEOUT);
	assert_non_null(strstr(f->r->cause.text, "port 5436 did not answer"));
	run_close(f);
}

static void a_failed_rank_stops_the_others_and_is_the_cause(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_make_ready(f);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_STARTED);
	node_exit(f, 1, 3, 0);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.node, 1);
	assert_string_equal(f->r->cause.text, "worker-1: exit code 3");
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 1);
	assert_true(effects_have(f, FX_STOP, 0) && effects_have(f, FX_STOP, 2) &&
		    !effects_have(f, FX_STOP, 1));
	node_exit(f, 0, 9, 0); /* a later failure changes nothing */
	assert_int_equal(f->r->cause.node, 1);
	run_close(f);
}

/* Ranks of one group fail because another one has left; nodes of other strategies work each for itself. */
static void a_rank_that_ended_early_is_named_by_the_failure_of_another(void **state)
{
	static const struct {
		const char *strategy, *cause;
	} cases[] = {
		{"torch", "worker-2: exit code 1; worker-1 had ended with exit code 0 before"},
		{"jax", "worker-2: exit code 1; worker-1 had ended with exit code 0 before"},
		{"horovod", "worker-2: exit code 1; worker-1 had ended with exit code 0 before"},
		{"single", "worker-2: exit code 1"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char toml[80];

		snprintf(toml, sizeof(toml), "command = ['w']\ncount = 3\nstrategy = '%s'\n",
			 cases[i].strategy);
		struct fixture *f = run_open(toml);

		run_make_ready(f);
		for (int k = 0; k < 3; k++)
			node_say(f, k, EV_NODE_STARTED);
		node_exit(f, 1, 0, 0);
		assert_int_equal(f->r->verdict, VERDICT_NONE);
		node_exit(f, 2, 1, 0);
		assert_string_equal(f->r->cause.text, cases[i].cause);
		assert_int_equal(f->r->cause.node, 2);
		run_close(f);
	}
}

static void a_rank_that_left_early_is_named_when_the_time_is_over(void **state)
{
	struct fixture *f =
		run_open("strategy = 'torch'\ncount = 2\ncommand = ['w']\nmax_runtime = '5s'\n");

	(void)state;
	run_make_ready(f);
	node_say(f, 0, EV_NODE_STARTED);
	node_say(f, 1, EV_NODE_STARTED);
	node_exit(f, 0, 0, 0);
	f->now += 5000;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_string_equal(
		f->r->cause.text,
		"max_runtime of 5.0 s is over; worker-0 had ended with exit code 0 before the others");
	run_close(f);
}

static void max_runtime_ends_the_run(void **state)
{
	struct fixture *f = run_open("command = ['w']\nmax_runtime = '5s'\n");

	(void)state;
	run_make_ready(f);
	node_say(f, 0, EV_NODE_STARTED);
	f->now += 5001;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_true(effects_have(f, FX_STOP, 0));
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 6);
	run_close(f);
}

static void a_node_that_is_never_ready_is_named(void **state)
{
	struct fixture *f = run_open(three_workers);

	(void)state;
	run_create_all(f);
	node_say(f, 0, EV_NODE_HELLO);
	node_say(f, 0, EV_NODE_READY);
	node_say(f, 2, EV_NODE_HELLO);
	node_say(f, 2, EV_NODE_READY);
	f->now += f->job.timeouts.gather_ms + 1;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->cause.node, 1);
	assert_non_null(strstr(f->r->cause.text, "worker-1 was not ready"));
	run_close(f);
}

static void a_success_whose_output_cannot_be_stored_is_a_failure(void **state)
{
	struct fixture *f = run_open("command = ['w']\n");

	(void)state;
	run_make_ready(f);
	node_exit(f, 0, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	f->now = f->r->deadline_ms;
	run_give(f, (struct event){.kind = EV_TICK});
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->phase, RUN_CLEANING);
	run_close(f);
}

static void every_state_and_event_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < RUN_PHASES; i++)
		assert_non_null(run_phase_name((enum run_phase)i));
	for (int i = 0; i < NODE_STATES; i++)
		assert_non_null(node_state_name((enum node_state)i));
	for (int i = 0; i < RES_STATES; i++)
		assert_non_null(res_state_name((enum res_state)i));
	for (int i = 0; i < EVENT_KINDS; i++)
		assert_non_null(event_name(&(struct event){.kind = (enum event_kind)i}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_that_goes_well_passes_every_phase),
		cmocka_unit_test(resources_are_created_in_slices_one_a_tick),
		cmocka_unit_test(a_group_is_created_in_one_slice),
		cmocka_unit_test(a_master_that_died_between_two_slices_creates_the_rest),
		cmocka_unit_test(a_run_that_ends_between_two_slices_creates_nothing_more),
		cmocka_unit_test(nodes_start_in_slices_one_a_tick),
		cmocka_unit_test(a_master_that_died_between_two_slices_starts_the_rest),
		cmocka_unit_test(a_run_that_ends_between_two_slices_starts_nobody_more),
		cmocka_unit_test(nodes_are_stopped_and_released_in_slices_one_a_tick),
		cmocka_unit_test(a_master_that_died_between_two_slices_stops_and_releases_the_rest),
		cmocka_unit_test(a_run_ends_after_its_last_slice),
		cmocka_unit_test(a_success_with_lost_files_is_none),
		cmocka_unit_test(a_success_that_loses_a_log_is_none),
		cmocka_unit_test(trainers_start_when_every_server_answers),
		cmocka_unit_test(servers_are_stopped_when_the_trainers_are_done),
		cmocka_unit_test(a_server_that_ends_before_it_answers_fails_the_run),
		cmocka_unit_test(a_server_that_never_answers_misses_its_deadline),
		cmocka_unit_test(a_failed_rank_stops_the_others_and_is_the_cause),
		cmocka_unit_test(a_rank_that_ended_early_is_named_by_the_failure_of_another),
		cmocka_unit_test(max_runtime_ends_the_run),
		cmocka_unit_test(a_rank_that_left_early_is_named_when_the_time_is_over),
		cmocka_unit_test(a_node_that_is_never_ready_is_named),
		cmocka_unit_test(a_success_whose_output_cannot_be_stored_is_a_failure),
		cmocka_unit_test(every_state_and_event_has_a_name),
	};
	return cmocka_run_group_tests_name("core run", tests, NULL, NULL);
}
