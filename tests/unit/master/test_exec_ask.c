/* Commands that a node runs on another one of its run. */
#include "rig.h"

#include <string.h>

#include "master/execs.h"

#define MPI "{\"name\":\"t\",\"strategy\":\"mpi\",\"command\":[\"true\"],\"count\":3}"
#define ASK 0x8001

/* Three nodes that run: the launcher is the last to be told. */
static void start(struct rig *r, const char *job, struct rig_agent *a[3], int n)
{
	rig_submit(r, job);
	for (int i = 0; i < n; i++) {
		a[i] = rig_agent(r, i);
		rig_until(r, rig_run(r)->core->resources[i].state == RES_LIVE);
		agent_hello(a[i], NULL);
		agent_wait(a[i], FRAME_INPUTS);
		agent_say(a[i], FRAME_READY, "{\"ok\":true}");
	}
	for (int i = n - 1; i >= 0; i--) {
		agent_wait(a[i], FRAME_START);
		agent_say(a[i], FRAME_STARTED, "{\"attempt\":1,\"pid\":1}");
	}
}

static void ask_for(struct rig_agent *from, const char *host, const char *command)
{
	char text[200];

	snprintf(text, sizeof(text), "{\"host\":\"%s\",\"command\":\"%s\"}", host, command);
	agent_say_on(from, FRAME_EXEC_ASK, ASK, text);
}

static void ask(struct rig_agent *from, const char *host)
{
	ask_for(from, host, "orted -x 1");
}

static void a_node_runs_a_command_on_another_of_its_run(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a[3];

	start(r, MPI, a, 3);
	ask(a[0], "worker-2");
	agent_wait(a[2], FRAME_EXEC);
	uint16_t there = a[2]->channel;

	assert_true(there > 0 && there < MESSAGE_ASK_CHANNEL);
	assert_string_equal(a[2]->last[FRAME_EXEC],
			    "{\"argv\":[\"/bin/sh\",\"-c\",\"orted -x 1\"],\"log\":true}");
	assert_int_equal(rig_events(r, "exec"), 1);
	/* Input and output, and the counts of what was taken, pass in both directions. */
	agent_say_on(a[0], FRAME_EXEC_INPUT, ASK, "in");
	agent_wait(a[2], FRAME_EXEC_INPUT);
	assert_string_equal(a[2]->last[FRAME_EXEC_INPUT], "in");
	agent_say_on(a[2], FRAME_EXEC_CONTROL, there, "{\"taken\":2}");
	agent_wait(a[0], FRAME_EXEC_CONTROL);
	assert_non_null(strstr(a[0]->last[FRAME_EXEC_CONTROL], "\"taken\":2"));
	agent_say_on(a[2], FRAME_EXEC_OUTPUT, there, "eout");
	agent_wait(a[0], FRAME_EXEC_OUTPUT);
	assert_string_equal(a[0]->last[FRAME_EXEC_OUTPUT], "eout");
	assert_int_equal(a[0]->channel, ASK);
	agent_say_on(a[0], FRAME_EXEC_CONTROL, ASK, "{\"taken\":3,\"signal\":15}");
	rig_until(r, a[2]->seen[FRAME_EXEC_CONTROL] == 2);
	assert_non_null(strstr(a[2]->last[FRAME_EXEC_CONTROL], "\"signal\":15"));
	agent_say_on(a[2], FRAME_EXEC_CLOSE, there, "{\"code\":4}");
	agent_wait(a[0], FRAME_EXEC_CLOSE);
	assert_non_null(strstr(a[0]->last[FRAME_EXEC_CLOSE], "\"code\":4"));
	assert_int_equal(r->m.execs->n, 0);
}

/* Rule: what mpirun collects from other nodes is in the launcher's log; they have copies, which count nowhere. */
static void figures_that_ranks_print_count_in_the_log_of_the_launcher_alone(void **state)
{
	static const char frame[] =
		"{\"from\":0,\"to\":6,\"bad\":1,\"samples\":[[\"loss\",1.5,1,1]]}";
	struct rig *r = *state;
	struct rig_agent *a[3];

	start(r, MPI, a, 3);
	for (int i = 0; i < 2; i++) {
		agent_data(a[i], STREAM_OUT, 0, STR("hello\n"));
		agent_say(a[i], FRAME_METRICS, frame);
		rig_until(r, a[i]->acks[STREAM_OUT].scanned == 6);
	}
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM sample"), 1);
	assert_int_equal(rig_stored(r, "SELECT rank FROM series"), 0);
	assert_int_equal(rig_run(r)->nodes[1].bad, 0);
	/* What a rank says to its own node's FIFO is nowhere else. */
	agent_data(a[1], STREAM_METRICS, 0, STR("hello\n"));
	agent_say_on(a[1], FRAME_METRICS, STREAM_METRICS, frame);
	rig_until(r, a[1]->acks[STREAM_METRICS].scanned == 6);
	assert_int_equal(rig_stored(r, "SELECT count(*) FROM sample"), 2);
}

static void the_address_of_a_node_is_as_good_as_its_name(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a[3];

	start(r, MPI, a, 3);
	ask(a[0], rig_run(r)->core->nodes[1].address);
	agent_wait(a[1], FRAME_EXEC);
}

static void refused(struct rig_agent *a, const char *host, const char *reason)
{
	a->seen[FRAME_EXEC_CLOSE] = 0;
	ask(a, host);
	agent_wait(a, FRAME_EXEC_CLOSE);
	if (!strstr(a->last[FRAME_EXEC_CLOSE], reason))
		fail_msg("%s", a->last[FRAME_EXEC_CLOSE]);
}

static void a_node_of_another_run_is_out_of_reach(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a[3];

	start(r, MPI, a, 3);
	refused(a[0], "worker-3", "'worker-3' is not a node of this run");
	refused(a[0], "", "'' is not a node of this run");
	refused(a[0], "127.0.0.1; reboot", "is not a node of this run");
	agent_hang_up(a[1]);
	rig_until(r, !rig_run(r)->nodes[1].agent);
	refused(a[0], "worker-1", "no agent of worker-1 is connected now");
	assert_int_equal(rig_events(r, "exec"), 0);
}

static void only_a_job_with_a_launcher_may(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a[3];

	start(r, RIG_JOB_OF_TWO, a, 2);
	refused(a[0], "worker-1", "denied");
	assert_int_equal(a[1]->seen[FRAME_EXEC], 0);
}

static void whoever_waits_and_leaves_ends_the_command(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a[3];

	start(r, MPI, a, 3);
	ask(a[0], "worker-2");
	agent_wait(a[2], FRAME_EXEC);
	agent_say_on(a[0], FRAME_EXEC_CLOSE, ASK, "{}");
	agent_wait(a[2], FRAME_EXEC_CLOSE);
	a[2]->seen[FRAME_EXEC_CLOSE] = a[2]->seen[FRAME_EXEC] = 0;
	ask(a[0], "worker-2");
	agent_wait(a[2], FRAME_EXEC);
	agent_hang_up(a[0]);
	agent_wait(a[2], FRAME_EXEC_CLOSE);
	assert_int_equal(r->m.execs->n, 0);
}

static void a_node_that_is_lost_is_the_end_of_its_commands(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a[3];

	start(r, MPI, a, 3);
	ask(a[0], "worker-2");
	agent_wait(a[2], FRAME_EXEC);
	agent_hang_up(a[2]);
	agent_wait(a[0], FRAME_EXEC_CLOSE);
	assert_non_null(
		strstr(a[0]->last[FRAME_EXEC_CLOSE], "the connection to the node was lost"));
}

/* What becomes of a run whose worker-2 answers so; "": it goes on. */
static void daemon_ends(struct rig *r, const char *command, const char *close, const char *cause)
{
	struct rig_agent *a[3];

	start(r, MPI, a, 3);
	ask_for(a[0], "worker-2", command);
	agent_wait(a[2], FRAME_EXEC);
	uint16_t there = a[2]->channel;

	agent_say_on(a[2], FRAME_EXEC_OUTPUT, there, "ofine\n");
	agent_say_on(a[2], FRAME_EXEC_OUTPUT, there, "ea line\nsh: no\n\n");
	agent_say_on(a[2], FRAME_EXEC_CLOSE, there, close);
	agent_wait(a[0], FRAME_EXEC_CLOSE);
	rig_turn(r);
	if (cause[0])
		rig_until(r, rig_run(r)->core->phase == RUN_COLLECTING);
	assert_string_equal(rig_run(r)->core->cause.text, cause);
	assert_int_equal(rig_run(r)->core->phase, cause[0] ? RUN_COLLECTING : RUN_RUNNING);
}

static void a_daemon_that_is_missing_ends_the_run(void **state)
{
	daemon_ends(
		*state, "/o/hydra_pmi_proxy --x", "{\"code\":127}",
		"worker-2: the launcher's hydra_pmi_proxy did not start: exit code 127: sh: no");
	assert_int_equal(rig_run(*state)->core->cause.kind, ERR_NOT_FOUND);
}

static void a_daemon_that_fails_before_it_leaves_ends_the_run(void **state)
{
	daemon_ends(*state, "orted --daemonize", "{\"code\":1}",
		    "worker-2: the launcher's orted did not start: exit code 1: sh: no");
}

static void a_daemon_that_has_left_is_well(void **state)
{
	daemon_ends(*state, "orted --daemonize", "{\"code\":0}", "");
}

static void a_daemon_in_the_foreground_may_end_with_any_code(void **state)
{
	daemon_ends(*state, "hydra_pmi_proxy", "{\"code\":9}", "");
}

static void a_script_may_ask_for_what_is_not_there(void **state)
{
	daemon_ends(*state, "command -v orted", "{\"code\":127}", "");
}

static void a_daemon_for_a_host_that_is_no_node_ends_the_run(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a[3];

	start(r, MPI, a, 3);
	ask_for(a[0], "elsewhere", "hydra_pmi_proxy"); /* which would be waited for */
	rig_until(r, rig_run(r)->core->phase == RUN_COLLECTING);
	assert_string_equal(
		rig_run(r)->core->cause.text,
		"worker-0: the launcher's hydra_pmi_proxy did not start: 'elsewhere' is not a node of this run");
}

static void a_channel_that_is_taken_or_not_the_agents_ends_the_connection(void **state)
{
	struct rig *r = *state;
	struct rig_agent *a[3];

	start(r, MPI, a, 3);
	ask(a[0], "worker-2");
	agent_wait(a[2], FRAME_EXEC);
	ask(a[0], "worker-1");
	agent_wait(a[0], FRAME_BYE);
	assert_non_null(strstr(a[0]->last[FRAME_BYE], "exec_ask: channel 32769 is not free"));
}

static void more_output_than_was_asked_for_ends_the_connection(void **state)
{
	static char piece[MESSAGE_EXEC_PIECE / 4];
	struct rig *r = *state;
	struct rig_agent *a[3];

	memset(piece, 'o', sizeof(piece) - 1);
	start(r, MPI, a, 3);
	ask(a[0], "worker-2");
	agent_wait(a[2], FRAME_EXEC);
	uint16_t there = a[2]->channel;

	for (int i = 0; i < 24 && !a[2]->seen[FRAME_BYE]; i++) {
		agent_say_on(a[2], FRAME_EXEC_OUTPUT, there, piece);
		rig_turn(r);
	}
	agent_wait(a[2], FRAME_BYE);
	assert_non_null(strstr(a[2]->last[FRAME_BYE], "exec_output: more than was asked for"));
}

#define WITH_RIG(f) cmocka_unit_test_setup_teardown(f, rig_make, rig_drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_RIG(a_node_runs_a_command_on_another_of_its_run),
		WITH_RIG(figures_that_ranks_print_count_in_the_log_of_the_launcher_alone),
		WITH_RIG(the_address_of_a_node_is_as_good_as_its_name),
		WITH_RIG(a_node_of_another_run_is_out_of_reach),
		WITH_RIG(only_a_job_with_a_launcher_may),
		WITH_RIG(whoever_waits_and_leaves_ends_the_command),
		WITH_RIG(a_node_that_is_lost_is_the_end_of_its_commands),
		WITH_RIG(a_daemon_that_is_missing_ends_the_run),
		WITH_RIG(a_daemon_that_fails_before_it_leaves_ends_the_run),
		WITH_RIG(a_daemon_that_has_left_is_well),
		WITH_RIG(a_daemon_in_the_foreground_may_end_with_any_code),
		WITH_RIG(a_script_may_ask_for_what_is_not_there),
		WITH_RIG(a_daemon_for_a_host_that_is_no_node_ends_the_run),
		WITH_RIG(a_channel_that_is_taken_or_not_the_agents_ends_the_connection),
		WITH_RIG(more_output_than_was_asked_for_ends_the_connection),
	};

	return cmocka_run_group_tests_name("master: exec_ask", tests, NULL, NULL);
}
