/* A node that launches processes on the others of its role (strategy mpi). */
#include "core_fixture.h"

#include <string.h>

static const char mpi[] = "strategy = 'mpi'\ncommand = ['mpirun']\ncount = 3\n";

static void get_ready(struct fixture *f)
{
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	for (int i = 0; i < 3; i++)
		resource_answer(f, i, OUTCOME_DONE, ERR_NONE);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_HELLO);
	for (int i = 0; i < 3; i++)
		node_say(f, i, EV_NODE_READY);
}

static void the_launcher_starts_when_all_others_have(void **state)
{
	struct fixture *f = run_open(mpi);

	(void)state;
	get_ready(f);
	assert_int_equal(f->r->phase, RUN_RUNNING);
	assert_int_equal(effects_count(f, FX_START), 2);
	assert_false(effects_have(f, FX_START, 0));
	node_say(f, 1, EV_NODE_STARTED);
	assert_int_equal(effects_count(f, FX_START), 0);
	node_say(f, 2, EV_NODE_STARTED);
	assert_int_equal(effects_count(f, FX_START), 1);
	assert_true(effects_have(f, FX_START, 0));
	run_close(f);
}

static void its_end_alone_is_the_success_of_the_run(void **state)
{
	struct fixture *f = run_open(mpi);

	(void)state;
	get_ready(f);
	for (int i = 2; i >= 0; i--)
		node_say(f, i, EV_NODE_STARTED);
	node_exit(f, 1, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_NONE);
	node_exit(f, 0, 0, 0);
	assert_int_equal(f->r->verdict, VERDICT_SUCCEEDED);
	assert_true(effects_have(f, FX_STOP, 2));
	run_close(f);
}

static void an_idle_node_that_fails_ends_the_run(void **state)
{
	struct fixture *f = run_open(mpi);

	(void)state;
	get_ready(f);
	for (int i = 2; i >= 0; i--)
		node_say(f, i, EV_NODE_STARTED);
	node_exit(f, 2, -1, 9);
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(f->r->cause.node, 2);
	assert_string_equal(f->r->cause.text, "worker-2: killed by SIGKILL");
	run_close(f);
}

static void no_daemon(struct fixture *f, int rank, int attempt, enum err_kind kind)
{
	run_give(f, (struct event){.kind = EV_NODE_NO_DAEMON,
				   .index = rank,
				   .attempt = attempt,
				   .err_kind = kind,
				   .text = "orted did not start"});
}

static void a_daemon_that_does_not_start_ends_the_run(void **state)
{
	struct fixture *f = run_open(mpi);

	(void)state;
	get_ready(f);
	for (int i = 2; i >= 0; i--)
		node_say(f, i, EV_NODE_STARTED);
	no_daemon(f, 1, 0, ERR_NONE); /* of another attempt */
	assert_int_equal(f->r->phase, RUN_RUNNING);
	no_daemon(f, 1, 1, ERR_NOT_FOUND);
	no_daemon(f, 2, 1, ERR_NONE); /* the first is the cause */
	assert_int_equal(f->r->verdict, VERDICT_FAILED);
	assert_int_equal(core_exit_code(f->r->verdict, &f->r->cause), 3);
	assert_string_equal(f->r->cause.text, "worker-1: orted did not start");
	assert_int_equal(f->r->cause.node, 1);
	run_close(f);
}

static void after_a_restart_the_launcher_still_waits_and_starts(void **state)
{
	struct fixture *f = run_open(mpi);

	(void)state;
	get_ready(f);
	node_say(f, 1, EV_NODE_STARTED);
	core_run_restored(f->r);
	run_give(f, (struct event){.kind = EV_RESUME});
	assert_false(effects_have(f, FX_START, 0));
	node_say(f, 0, EV_NODE_HELLO);
	node_say(f, 0, EV_NODE_READY);
	assert_false(effects_have(f, FX_START, 0));
	run_give(f,
		 (struct event){
			 .kind = EV_NODE_HELLO, .index = 2, .holds = HOLDS_STARTED, .attempt = 1});
	assert_true(effects_have(f, FX_START, 0));
	run_close(f);
}

static void a_launcher_of_one_node_waits_for_nobody(void **state)
{
	struct fixture *f = run_open("strategy = 'mpi'\ncommand = ['mpirun']\n");

	(void)state;
	run_give(f, (struct event){.kind = EV_ACCEPTED, .seed = 1});
	resource_answer(f, 0, OUTCOME_DONE, ERR_NONE);
	node_say(f, 0, EV_NODE_HELLO);
	node_say(f, 0, EV_NODE_READY);
	assert_true(effects_have(f, FX_START, 0));
	run_close(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_launcher_starts_when_all_others_have),
		cmocka_unit_test(its_end_alone_is_the_success_of_the_run),
		cmocka_unit_test(an_idle_node_that_fails_ends_the_run),
		cmocka_unit_test(a_daemon_that_does_not_start_ends_the_run),
		cmocka_unit_test(after_a_restart_the_launcher_still_waits_and_starts),
		cmocka_unit_test(a_launcher_of_one_node_waits_for_nobody),
	};

	return cmocka_run_group_tests_name("launch", tests, NULL, NULL);
}
