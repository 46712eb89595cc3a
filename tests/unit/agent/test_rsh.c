/* Commands that a job runs on other nodes, through its agent. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "agent/rank_tee.h"
#include "agent/rsh_client.h"
#include "base/clock.h"
#include "fake_master.h"
#include "link/message.h"

#define ASK MESSAGE_ASK_CHANNEL
#define RSH "$REGATTA_RSH"

static void start(struct fake *f, const char *script)
{
	f->env = arena_printf(f->arena, ",\"REGATTA_RSH\":\"%s\",\"REGATTA_TEE\":\"%s\"",
			      fake_in_node(f, "regatta-rsh"), fake_in_node(f, "regatta-tee"));
	fake_ready(f);
	fake_start_with(f, script, ",\"rsh\":true");
}

static void output_is(struct fake *f, const char *text)
{
	fake_wait_bytes(f, STREAM_OUT, strlen(text));
	assert_string_equal(f->out[STREAM_OUT].p, text);
}

static void a_command_runs_elsewhere_as_if_it_ran_here(void **state)
{
	struct fake *f = *state;

	start(f, "echo some input | " RSH
		 " -x -l me you@10.0.0.2 run 'a b' c; echo code $?; sleep 600");
	const struct doc *asked = fake_wait(f, FRAME_EXEC_ASK);

	assert_string_equal(fake_str(asked, "host"), "10.0.0.2");
	assert_string_equal(fake_str(asked, "command"), "run a b c");
	fake_send_on(f, FRAME_EXEC_OUTPUT, ASK, "ofrom there\n");
	fake_send_on(f, FRAME_EXEC_OUTPUT, ASK, "ean error\n");
	fake_wait_bytes(f, STREAM_ERR, strlen("an error\n"));
	assert_string_equal(f->out[STREAM_ERR].p, "an error\n");
	fake_send_on(f, FRAME_EXEC_CLOSE, ASK, "{\"code\":3}");
	output_is(f, "from there\ncode 3\n");
	assert_true(f->asked_in_ended);
	assert_string_equal(f->asked_in.p, "some input\n");
}

/* Many turns are time for more to come, on a busy machine too. */
static void take_input(struct fake *f, size_t bytes, int turns)
{
	for (int64_t until = clock_boot_ms() + FAKE_WAIT_MS;
	     turns-- > 0 || (f->asked_in.n < bytes && clock_boot_ms() < until);) {
		fake_send_on(f, FRAME_PING, 0, "{}");
		fake_wait(f, FRAME_PONG);
	}
}

/* Rule: input waits for whoever takes it, and is whole. */
static void input_waits_for_who_takes_it(void **state)
{
	struct fake *f = *state;

	start(f, "head -c 400000 /dev/zero | " RSH " h x; echo code $?; sleep 600");
	fake_wait(f, FRAME_EXEC_ASK);
	take_input(f, MESSAGE_EXEC_WINDOW, 0);
	take_input(f, MESSAGE_EXEC_WINDOW, 200);
	assert_int_equal(f->asked_in.n, MESSAGE_EXEC_WINDOW);
	assert_false(f->asked_in_ended);
	fake_send_on(f, FRAME_EXEC_CONTROL, ASK,
		     arena_printf(f->arena, "{\"taken\":%zu}", f->asked_in.n));
	take_input(f, 400000, 0);
	assert_int_equal(f->asked_in.n, 400000);
	fake_send_on(f, FRAME_EXEC_CLOSE, ASK, "{\"code\":0}");
	output_is(f, "code 0\n");
}

/* Rule: a launcher's daemon is told of the rsh of its own node: that of the launcher's is not there. */
static void the_path_of_the_program_is_that_of_the_other_node(void **state)
{
	struct fake *f = *state;

	start(f, RSH " h orted -mca agent '\"'" RSH "'\" -mca fork '$REGATTA_TEE,$REGATTA_TEE," RSH
		     " </dev/null; sleep 600");
	assert_string_equal(
		fake_str(fake_wait(f, FRAME_EXEC_ASK), "command"),
		"orted -mca agent \"$REGATTA_RSH\" -mca fork $REGATTA_TEE,$REGATTA_TEE,$REGATTA_RSH");
}

static void output_that_was_written_is_said_to_be_taken(void **state)
{
	struct fake *f = *state;

	start(f, RSH " h x </dev/null; sleep 600");
	fake_wait(f, FRAME_EXEC_ASK);
	fake_send_on(f, FRAME_EXEC_OUTPUT, ASK, "ofour");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CONTROL), "taken"), 4);
}

static void a_signal_that_ended_it_is_in_the_code(void **state)
{
	struct fake *f = *state;

	start(f, RSH " h x </dev/null; echo code $?; sleep 600");
	fake_wait(f, FRAME_EXEC_ASK);
	fake_send_on(f, FRAME_EXEC_CLOSE, ASK, "{\"code\":-1,\"signal\":9}");
	output_is(f, "code 137\n");
}

static void why_it_did_not_run_is_one_line(void **state)
{
	struct fake *f = *state;

	start(f, RSH " h x 2>&1 </dev/null; echo code $?; sleep 600");
	fake_wait(f, FRAME_EXEC_ASK);
	fake_send_on(
		f, FRAME_EXEC_CLOSE, ASK,
		"{\"code\":-1,\"kind\":\"not_found\",\"reason\":\"'h' is not a node of this run\"}");
	output_is(f, "regatta: h: 'h' is not a node of this run\ncode 255\n");
}

static void wrong_words_are_refused(void **state)
{
	struct fake *f = *state;

	start(f, RSH
	      " h 2>&1; REGATTA_RSH= "
	      "$DIR/node/regatta-rsh h x 2>&1; echo $?; "
	      "REGATTA_RSH=/nowhere/regatta-rsh $DIR/node/regatta-rsh h x 2>/dev/null; echo $?; sleep 600");
	output_is(
		f,
		"regatta: usage: regatta-rsh HOST COMMAND...\n"
		"regatta: h: REGATTA_RSH is not set: this is for jobs with a launcher\n255\n255\n");
}

static void a_process_that_leaves_takes_its_command_along(void **state)
{
	struct fake *f = *state;

	start(f, RSH " h x </dev/null & echo $! > $DIR/pid; wait; sleep 600");
	fake_wait(f, FRAME_EXEC_ASK);
	fake_kill(fake_pid_in(f, "pid"));
	fake_wait(f, FRAME_EXEC_CLOSE);
}

static void commands_end_when_the_master_is_gone(void **state)
{
	struct fake *f = *state;

	start(f, RSH " h x </dev/null 2>&1; echo code $?; sleep 600");
	fake_wait(f, FRAME_EXEC_ASK);
	fake_meet(f); /* hangs up first */
	output_is(f, "regatta: h: the connection to the master was lost\ncode 255\n");
}

/* The next agent of the node serves the same job. */
static void a_killed_agent_is_followed_by_one_that_listens(void **state)
{
	struct fake *f = *state;

	start(f, FAKE_UNTIL("go") RSH " h x </dev/null; echo code $?; sleep 600");
	fake_kill(f->agent);
	fake_hang_up(f);
	fake_agent(f);
	fake_meet(f);
	fake_touch(fake_below(f, "go"));
	fake_wait(f, FRAME_EXEC_ASK);
	fake_send_on(f, FRAME_EXEC_CLOSE, ASK, "{\"code\":0}");
	output_is(f, "code 0\n");
}

/* Rule: what a rank prints that a launcher elsewhere has started is in the log of its own node. */
static void what_a_rank_prints_is_in_the_log_of_its_node(void **state)
{
	struct fake *f = *state;

	f->env = arena_printf(f->arena, ",\"REGATTA_TEE\":\"%s\"", fake_in_node(f, "regatta-tee"));
	fake_ready(f);
	fake_start_with(
		f,
		"$REGATTA_TEE sh -c 'echo rank; echo trouble >&2' 2>&1 | cat >/dev/null; echo over; sleep 600",
		",\"rsh\":true,\"tee\":true");
	output_is(f, "rank\ntrouble\nover\n");
}

/* On the launcher's own node it comes by way of the launcher. */
static void a_rank_on_the_launchers_node_is_not_copied(void **state)
{
	struct fake *f = *state;

	f->env = arena_printf(f->arena, ",\"REGATTA_TEE\":\"%s\"", fake_in_node(f, "regatta-tee"));
	fake_ready(f);
	fake_start_with(f, "$REGATTA_TEE echo rank; echo over; sleep 600", ",\"rsh\":true");
	output_is(f, "rank\nover\n");
}

static void a_job_without_a_launcher_has_no_such_program(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "ls $DIR/node | grep -c -e rsh -e tee -e tmp; sleep 600");
	output_is(f, "0\n");
}

static void temporary_files_of_a_launcher_are_in_the_nodes_own_directory(void **state)
{
	struct fake *f = *state;
	const char *tmp = fake_in_node(f, "tmp");

	if (strlen(tmp) > 71)
		skip(); /* too long here, see rsh_tmp */
	start(f, "cd $TMPDIR && pwd; sleep 600");
	output_is(f, arena_printf(f->arena, "%s\n", tmp));
}

static void a_tmpdir_of_the_job_wins(void **state)
{
	struct fake *f = *state;

	f->env = ",\"TMPDIR\":\"/var/tmp\"";
	fake_ready(f);
	fake_start_with(f, "echo $TMPDIR; sleep 600", ",\"rsh\":true");
	output_is(f, "/var/tmp\n");
}

static void what_a_start_for_another_node_prints_is_in_the_log_too(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "echo here; sleep 600");
	fake_wait_bytes(f, STREAM_OUT, strlen("here\n"));
	fake_send_on(f, FRAME_EXEC, 7,
		     "{\"argv\":[\"sh\",\"-c\",\"echo daemon; echo trouble >&2\"],\"log\":true}");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_string_equal(f->exec_out.p, "daemon\n");
	output_is(f, "here\ndaemon\n");
	fake_wait_bytes(f, STREAM_ERR, strlen("trouble\n"));
	assert_string_equal(f->out[STREAM_ERR].p, "trouble\n");
}

/* More than the pipe of the log holds: nothing of it is lost. */
static void much_output_of_a_start_waits_for_the_log(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "sleep 600");
	fake_send_on(f, FRAME_EXEC, 7,
		     "{\"argv\":[\"head\",\"-c\",\"6000000\",\"/dev/zero\"],\"log\":true}");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_int_equal(f->exec_out.n, 6000000);
	fake_wait_bytes(f, STREAM_OUT, 6000000);
}

static void a_job_that_fails_reports_its_last_words_if_asked_to(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "echo out; printf 'err\\001\\n' >&2; exit 3", ",\"tail\":true");
	assert_string_equal(fake_str(fake_end(f), "tail"), "err?\n\nout\n\n");
}

/* Rule: whoever reports the end knows that they are wanted. */
static void a_killed_agent_is_followed_by_one_that_reports_last_words(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, FAKE_UNTIL("go") "echo out; exit 3", ",\"tail\":true");
	fake_kill(f->agent);
	fake_hang_up(f);
	fake_agent(f);
	fake_meet(f);
	fake_touch(fake_below(f, "go"));
	assert_string_equal(fake_str(fake_end(f), "tail"), "\nout\n\n");
}

/* The end is in no HELLO then: it follows, with the last words. */
static void a_job_that_ends_without_a_master_reports_its_last_words(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t job = fake_start_with(f, FAKE_UNTIL("go") "echo out; exit 3", ",\"tail\":true");

	fake_kill(f->agent);
	fake_hang_up(f);
	fake_touch(fake_below(f, "go"));
	fake_gone(job);
	fake_gone(fake_shim(f));
	fake_agent(f);
	fake_meet(f);
	assert_null(doc_table(f->last[FRAME_HELLO], "exit"));
	assert_string_equal(fake_str(fake_end(f), "tail"), "\nout\n\n");
}

static void a_job_that_succeeds_has_no_last_words(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "echo out", ",\"tail\":true");
	assert_null(doc_get(fake_end(f), "tail"));
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(a_command_runs_elsewhere_as_if_it_ran_here),
		WITH_FAKE(input_waits_for_who_takes_it),
		WITH_FAKE(the_path_of_the_program_is_that_of_the_other_node),
		WITH_FAKE(output_that_was_written_is_said_to_be_taken),
		WITH_FAKE(a_signal_that_ended_it_is_in_the_code),
		WITH_FAKE(why_it_did_not_run_is_one_line),
		WITH_FAKE(wrong_words_are_refused),
		WITH_FAKE(a_process_that_leaves_takes_its_command_along),
		WITH_FAKE(commands_end_when_the_master_is_gone),
		WITH_FAKE(a_killed_agent_is_followed_by_one_that_listens),
		WITH_FAKE(what_a_rank_prints_is_in_the_log_of_its_node),
		WITH_FAKE(a_rank_on_the_launchers_node_is_not_copied),
		WITH_FAKE(a_job_without_a_launcher_has_no_such_program),
		WITH_FAKE(temporary_files_of_a_launcher_are_in_the_nodes_own_directory),
		WITH_FAKE(a_tmpdir_of_the_job_wins),
		WITH_FAKE(what_a_start_for_another_node_prints_is_in_the_log_too),
		WITH_FAKE(much_output_of_a_start_waits_for_the_log),
		WITH_FAKE(a_job_that_fails_reports_its_last_words_if_asked_to),
		WITH_FAKE(a_killed_agent_is_followed_by_one_that_reports_last_words),
		WITH_FAKE(a_job_that_ends_without_a_master_reports_its_last_words),
		WITH_FAKE(a_job_that_succeeds_has_no_last_words),
	};

	if (rsh_client_is(argv[0]))
		return rsh_client_main(argc, argv);
	if (rank_tee_is(argv[0]))
		return rank_tee_main(argc, argv);
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: rsh", tests, NULL, NULL);
}
