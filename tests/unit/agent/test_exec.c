/* Commands that run on a node beside its job. */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "agent/exec.h"
#include "base/file.h"
#include "fake_master.h"
#include "link/message.h"

#define CHANNEL 7
#define JOB "echo here; exec sleep 600"

static void start_job(struct fake *f)
{
	f->env = ",\"COLOR\":\"green\"";
	fake_ready(f);
	fake_start(f, JOB);
	fake_wait_bytes(f, STREAM_OUT, strlen("here\n"));
}

static void run(struct fake *f, const char *script, const char *more)
{
	fake_send_on(f, FRAME_EXEC, CHANNEL,
		     arena_printf(f->arena, "{\"argv\":[\"sh\",\"-c\",\"%s\"]%s}", script, more));
}

static void give(struct fake *f, const char *input)
{
	fake_send_on(f, FRAME_EXEC_INPUT, CHANNEL, input);
}

static void a_command_has_the_jobs_environment_and_its_own_streams(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "echo $COLOR; echo err >&2; cat; exit 7", "");
	give(f, "in");
	give(f, "put\n");
	give(f, "");
	const struct doc *end = fake_wait(f, FRAME_EXEC_CLOSE);

	assert_int_equal(fake_int(end, "code"), 7);
	assert_string_equal(f->exec_out.p, "green\ninput\n");
	assert_string_equal(f->exec_err.p, "err\n");
	assert_int_equal(fake_int(f->last[FRAME_EXEC_CONTROL], "taken"), strlen("input\n"));
	assert_string_equal(f->out[STREAM_OUT].p, "here\n"); /* nothing of it is the job's output */
}

/* That of a process in its exec is empty for a moment, too: the agent asks again before it believes it. */
static void a_job_without_an_environment_takes_commands(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "echo here > f; exec env -i tail -f f");
	fake_wait_bytes(f, STREAM_OUT, strlen("here\n"));
	fake_send_on(f, FRAME_EXEC, CHANNEL, "{\"argv\":[\"/usr/bin/env\"]}");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_int_equal(f->exec_out.n, 0);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}"); /* whoever cleans up later cannot find it */
	fake_end(f);
	fake_release(f);
}

static void a_command_that_cannot_be_run_says_why(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "echo '#!/no/such/interpreter' > f; echo x > g; chmod +x f g; echo here; "
		      "exec sleep 600");
	fake_wait_bytes(f, STREAM_OUT, strlen("here\n"));
	fake_send_on(f, FRAME_EXEC, CHANNEL, "{\"argv\":[\"./f\"]}");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 127);
	assert_string_equal(f->exec_err.p, "regatta: ./f: No such file or directory\n");
	buf_reset(&f->exec_err);
	fake_send_on(f, FRAME_EXEC, CHANNEL, "{\"argv\":[\"./g\"]}");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 126);
	assert_string_equal(f->exec_err.p, "regatta: ./g: Exec format error\n");
}

static void a_signal_reaches_the_command(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "echo on; exec sleep 600", "");
	fake_wait_exec(f, strlen("on\n"));
	fake_send_on(f, FRAME_EXEC_CONTROL, CHANNEL, "{\"signal\":2}");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "signal"), SIGINT);
}

static void a_signal_reaches_what_the_command_started(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f,
	    "trap : TERM; "
	    "(trap 'echo got; exit' TERM; echo on; while :; do sleep 0.01; done) & "
	    "wait; wait; exit 4",
	    "");
	fake_wait_exec(f, strlen("on\n"));
	fake_send_on(f, FRAME_EXEC_CONTROL, CHANNEL, "{\"signal\":15}");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 4);
	assert_string_equal(f->exec_out.p, "on\ngot\n");
}

static void no_signal_is_ignored_or_held_back_in_a_command(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "grep -E '^Sig(Blk|Ign)' /proc/self/status | tr -d '\\t0'", "");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_string_equal(f->exec_out.p, "SigBlk:\nSigIgn:\n");
}

/* What it has left in the background may hold its output for as long as the job runs. */
static void a_command_ends_although_its_output_stays_open(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "sleep 600 & echo done", "");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_string_equal(f->exec_out.p, "done\n");
}

static void the_end_of_the_input_reaches_a_terminal(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "stty -echo; echo on; cat; exit 7", ",\"term\":\"vt100\"");
	fake_wait_exec(f, strlen("on\r\n"));
	give(f, "text\n");
	give(f, "");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 7);
	assert_string_equal(f->exec_out.p, "on\r\ntext\r\n");
}

static void a_terminal_has_its_own_name_for_it(void **state)
{
	struct fake *f = *state;

	f->env = ",\"TERM\":\"dumb\"";
	fake_ready(f);
	fake_start(f, JOB);
	fake_wait_bytes(f, STREAM_OUT, strlen("here\n"));
	fake_send_on(f, FRAME_EXEC, CHANNEL, "{\"argv\":[\"/usr/bin/env\"],\"term\":\"vt100\"}");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_non_null(strstr(f->exec_out.p, "TERM=vt100\r\n"));
	assert_null(strstr(f->exec_out.p, "TERM=dumb"));
}

static void a_terminal_has_the_size_it_is_given(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "stty -echo; stty size; read x; stty size; echo $TERM",
	    ",\"term\":\"vt100\",\"columns\":91,\"rows\":33");
	fake_wait_exec(f, strlen("33 91\r\n"));
	fake_send_on(f, FRAME_EXEC_CONTROL, CHANNEL, "{\"columns\":120,\"rows\":50}");
	give(f, "go\n");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_string_equal(f->exec_out.p, "33 91\r\n50 120\r\nvt100\r\n");
}

static void a_command_waits_for_a_reader_of_its_output(void **state)
{
	struct fake *f = *state;

	start_job(f);
	f->hold_exec = true;
	run(f, "head -c 1000000 /dev/zero", "");
	fake_wait_exec(f, MESSAGE_EXEC_WINDOW);
	for (int i = 0; i < 200; i++) { /* time for more to come, on a busy machine too */
		fake_send_on(f, FRAME_PING, 0, "{}");
		fake_wait(f, FRAME_PONG);
	}
	assert_true(f->exec_out.n < MESSAGE_EXEC_WINDOW + MESSAGE_EXEC_PIECE);
	assert_null(f->last[FRAME_EXEC_CLOSE]);
	f->hold_exec = false;
	fake_send_on(f, FRAME_EXEC_CONTROL, CHANNEL,
		     arena_printf(f->arena, "{\"taken\":%zu}", f->exec_out.n));
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_int_equal(f->exec_out.n, 1000000);
}

/* Runs a command that writes a full window, and then `more` bytes which nobody takes. */
static void write_more_than_is_taken(struct fake *f, size_t more, const char *options)
{
	const char *script =
		arena_printf(f->arena, "%shead -c %d /dev/zero; read x; head -c %zu /dev/zero",
			     *options ? "stty -echo; " : "", MESSAGE_EXEC_WINDOW, more);

	start_job(f);
	f->hold_exec = true;
	run(f, script, options);
	fake_wait_exec(f, MESSAGE_EXEC_WINDOW);
	give(f, "go\n");
}

/* The command has ended, and more time is over than its output would stay open for others. */
static void expect_no_end(struct fake *f)
{
	poll(NULL, 0, 2500);
	fake_send_on(f, FRAME_PING, 0, "{}");
	fake_wait(f, FRAME_PONG);
	assert_null(f->last[FRAME_EXEC_CLOSE]);
}

static void take_output(struct fake *f, size_t taken)
{
	fake_send_on(f, FRAME_EXEC_CONTROL, CHANNEL,
		     arena_printf(f->arena, "{\"taken\":%zu}", taken));
}

static void expect_all(struct fake *f, size_t n)
{
	f->hold_exec = false;
	take_output(f, f->exec_out.n);
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_int_equal(f->exec_out.n, n);
}

/* Rule: what is still in its pipe when it ends, because nobody takes it, is not dropped. */
static void output_that_is_taken_late_is_whole(void **state)
{
	struct fake *f = *state;

	write_more_than_is_taken(f, 30000, "");
	expect_no_end(f);
	expect_all(f, MESSAGE_EXEC_WINDOW + 30000);
}

static void errors_that_are_taken_late_are_whole(void **state)
{
	struct fake *f = *state;

	start_job(f);
	f->hold_exec = true;
	run(f,
	    arena_printf(f->arena,
			 "exec >&-; head -c %d /dev/zero >&2; read x; head -c 30000 /dev/zero >&2; "
			 "sleep 600 &",
			 MESSAGE_EXEC_WINDOW),
	    "");
	fake_wait_exec(f, MESSAGE_EXEC_WINDOW);
	give(f, "go\n");
	expect_no_end(f);
	f->hold_exec = false;
	take_output(f, f->exec_err.n);
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	assert_int_equal(f->exec_err.n, MESSAGE_EXEC_WINDOW + 30000);
}

/* Of a terminal the kernel says only how much of its output comes with the next read, and keeps at most 12 KiB. */
static void output_of_a_terminal_that_is_taken_late_is_whole(void **state)
{
	struct fake *f = *state;

	write_more_than_is_taken(f, 10000, ",\"term\":\"vt100\"");
	expect_no_end(f);
	take_output(f, 1); /* it may read once more */
	fake_wait_exec(f, MESSAGE_EXEC_WINDOW + 1);
	expect_no_end(f);
	expect_all(f, MESSAGE_EXEC_WINDOW + 10000);
}

/* Rule: what it has left in the background may fill its terminal for as long as the job runs, however slowly that is
 * taken. */
static void a_command_ends_although_its_terminal_is_written_to(void **state)
{
	struct fake *f = *state;

	start_job(f);
	f->hold_exec = true;
	run(f,
	    "stty -echo; trap '' HUP; (while :; do echo more; done) & echo $$ > $DIR/pid; read x; "
	    "exit 3",
	    ",\"term\":\"vt100\"");
	pid_t pid = fake_pid_in(f, "pid");

	fake_wait_exec(f, MESSAGE_EXEC_WINDOW);
	give(f, "go\n");
	fake_gone(pid);
	expect_no_end(f);
	take_output(f, MESSAGE_EXEC_WINDOW);
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 3);
}

static void a_command_ends_with_the_job(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "echo $$ > $DIR/pid; exec sleep 600", "");
	pid_t pid = fake_pid_in(f, "pid");

	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	fake_end(f);
	fake_wait(f, FRAME_EXEC_CLOSE);
	fake_gone(pid);
	run(f, "true", "");
	assert_string_equal(fake_str(fake_wait(f, FRAME_EXEC_CLOSE), "reason"),
			    "the node runs no job now");
	fake_release(f);
}

static void a_command_that_nobody_waits_for_is_killed(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "echo $$ > $DIR/one; exec sleep 600", "");
	pid_t one = fake_pid_in(f, "one");

	fake_send_on(f, FRAME_EXEC_CLOSE, CHANNEL, "{}");
	fake_gone(one);
	run(f, "echo $$ > $DIR/two; exec sleep 600", "");
	pid_t two = fake_pid_in(f, "two");

	fake_meet(f); /* hangs up first */
	fake_gone(two);
	run(f, "echo $$ > $DIR/three; exec sleep 600", "");
	pid_t three = fake_pid_in(f, "three");

	fake_kill(f->agent);
	fake_gone(three);
}

static void what_cannot_run_is_said(void **state)
{
	struct fake *f = *state;

	start_job(f);
	fake_send_on(f, FRAME_EXEC, CHANNEL, "{\"argv\":[\"no-such-program\"]}");
	const struct doc *end = fake_wait(f, FRAME_EXEC_CLOSE);

	assert_string_equal(fake_str(end, "kind"), "not_found");
	assert_string_equal(fake_str(end, "reason"), "command 'no-such-program' not found in PATH");
	fake_send_on(f, FRAME_EXEC_INPUT, CHANNEL, "late"); /* it has ended: ignored */
	run(f, "exit 0", "");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
}

static void a_channel_carries_one_command(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "echo on; exec sleep 600", "");
	fake_wait_exec(f, strlen("on\n"));
	run(f, "true", "");
	assert_string_equal(fake_str(fake_wait(f, FRAME_BYE), "reason"),
			    "exec: channel 7 is in use");
}

/* Else whoever sends it waits for ever. */
static void input_that_nobody_reads_counts_as_taken(void **state)
{
	struct fake *f = *state;

	start_job(f);
	run(f, "exec 0<&-; echo on; " FAKE_UNTIL("go") "exit 3", "");
	fake_wait_exec(f, strlen("on\n"));
	give(f, "abc");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CONTROL), "taken"), 3);
	give(f, "defg");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CONTROL), "taken"), 7);
	fake_touch(fake_below(f, "go"));
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 3);
}

static void a_node_runs_so_many_commands_and_no_more(void **state)
{
	struct fake *f = *state;

	start_job(f);
	for (int i = 0; i <= EXEC_MAX; i++)
		fake_send_on(f, FRAME_EXEC, (uint16_t)(CHANNEL + i),
			     "{\"argv\":[\"sleep\",\"600\"]}");
	const struct doc *end = fake_wait(f, FRAME_EXEC_CLOSE);

	assert_string_equal(fake_str(end, "kind"), "throttled");
	assert_string_equal(fake_str(end, "reason"), "the node runs 64 commands already");
}

/* What stands for docker says the FIFO by which the program in the container is told to end. */
#define TOOL "#!/bin/sh\ncase $1 in inspect) echo true ;; exec) echo $5 ;; esac\n"

/* Rule: a master that was started again uses its numbers of channels again, and no FIFO has a name twice: a command
 * that somebody killed while docker was still starting it would take the next one's. */
static void commands_in_a_container_have_lines_of_their_own(void **state)
{
	struct fake *f = *state;
	const char *tool = fake_below(f, "tool"), *record = fake_in_node(f, "container");
	struct str lines[2];

	start_job(f);
	assert_int_equal(file_write(tool, str_from(TOOL), 0700, NULL), 0);
	assert_int_equal(file_write(record,
				    str_from(arena_printf(f->arena, "docker\n%s\nx\n\n\n", tool)),
				    0600, NULL),
			 0);
	for (int i = 0; i < 2; i++) {
		run(f, "true", "");
		assert_int_equal(fake_int(fake_wait(f, FRAME_EXEC_CLOSE), "code"), 0);
	}
	struct str rest = buf_str(&f->exec_out);

	for (int i = 0; i < 2; i++)
		lines[i] = str_cut(&rest, '\n');
	assert_true(str_starts(lines[0], str_from(fake_in_node(f, "exec-"))));
	assert_false(str_eq(lines[0], lines[1]));
	fake_send(f, FRAME_PING, "{}"); /* it is removed after the answer */
	fake_wait(f, FRAME_PONG);
	assert_false(file_exists(arena_strndup(f->arena, lines[1].p, lines[1].n)));
	assert_int_equal(unlink(record), 0); /* the job itself is in no container */
}

#define WITH_FAKE(t) cmocka_unit_test_setup_teardown(t, fake_setup, fake_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(a_command_has_the_jobs_environment_and_its_own_streams),
		WITH_FAKE(a_job_without_an_environment_takes_commands),
		WITH_FAKE(a_command_that_cannot_be_run_says_why),
		WITH_FAKE(a_signal_reaches_the_command),
		WITH_FAKE(a_signal_reaches_what_the_command_started),
		WITH_FAKE(no_signal_is_ignored_or_held_back_in_a_command),
		WITH_FAKE(a_command_ends_although_its_output_stays_open),
		WITH_FAKE(the_end_of_the_input_reaches_a_terminal),
		WITH_FAKE(a_terminal_has_its_own_name_for_it),
		WITH_FAKE(a_terminal_has_the_size_it_is_given),
		WITH_FAKE(a_command_waits_for_a_reader_of_its_output),
		WITH_FAKE(output_that_is_taken_late_is_whole),
		WITH_FAKE(errors_that_are_taken_late_are_whole),
		WITH_FAKE(output_of_a_terminal_that_is_taken_late_is_whole),
		WITH_FAKE(a_command_ends_although_its_terminal_is_written_to),
		WITH_FAKE(a_command_ends_with_the_job),
		WITH_FAKE(a_command_that_nobody_waits_for_is_killed),
		WITH_FAKE(what_cannot_run_is_said),
		WITH_FAKE(a_channel_carries_one_command),
		WITH_FAKE(input_that_nobody_reads_counts_as_taken),
		WITH_FAKE(a_node_runs_so_many_commands_and_no_more),
		WITH_FAKE(commands_in_a_container_have_lines_of_their_own),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: exec", tests, NULL, NULL);
}
