/* Jobs with a terminal (`pty`): what they see, that no byte is lost, that no process delays the end. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "agent/shim/status.h"
#include "base/path.h"
#include "fake_master.h"
#include "sys/proctree.h"

#define PTY ",\"pty\":true"
#define GO "while ! [ -e $DIR/go ]; do sleep 0.01; done; "

static void go(struct fake *f)
{
	file_write_atomic(fake_below(f, "go"), STR("x"), 0600, false, NULL);
}

/* The reader of the terminal of attempt 1, from the record. */
static pid_t reader_of(struct fake *f)
{
	int fd = open(f->node, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct status st;

	assert_int_equal(status_read(fd, &st, NULL), 0);
	assert_true(st.terminal.pid > 0);
	close(fd);
	return st.terminal.pid;
}

static void a_job_with_a_terminal_sees_one_everywhere(void **state)
{
	struct fake *f = *state;

	f->env = ",\"TERM\":\"vt100\",\"COLUMNS\":\"132\"";
	fake_ready(f);
	fake_start_with(
		f,
		"for i in 0 1 2; do test -t $i && echo $i; done; test -c /dev/tty && echo x >/dev/tty; "
		"stty size; echo $TERM; echo oops >&2; ps -o tty= -p $$ | grep -q pts && echo leads",
		PTY);
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
	assert_string_equal(f->out[STREAM_OUT].p, "0\n1\n2\nx\n24 132\nvt100\noops\nleads\n");
	assert_int_equal(f->out[STREAM_ERR].n, 0);
	fake_release(f);
}

static void a_job_without_a_terminal_sees_none(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f,
		   "for i in 0 1 2; do test -t $i && echo $i; done; (: </dev/tty) 2>/dev/null || "
		   "echo none");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "none\n");
}

static void nobody_types_so_a_read_is_an_end_of_file(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "cat; cat; echo done", PTY);
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "done\n");
}

static void bytes_pass_the_terminal_as_they_are(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "head -c 3000000 /dev/urandom > $DIR/copy; cat $DIR/copy", PTY);
	fake_end(f);
	fake_output_is_copy(f, "copy");
}

static void the_last_words_before_an_exit_are_whole(void **state)
{
	struct fake *f = *state;

	/* More than the terminal's own buffer: what is in it when the writer dies comes, too. */
	fake_ready(f);
	fake_start_with(f, "head -c 300000 /dev/urandom > $DIR/copy; exec cat $DIR/copy", PTY);
	fake_end(f);
	fake_output_is_copy(f, "copy");
}

static void a_daemon_that_holds_the_terminal_does_not_hold_the_end_up(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f,
			"setsid sh -c 'echo $$ >$DIR/daemon; echo said; sleep 1000' & "
			"while ! [ -s $DIR/daemon ]; do sleep 0.01; done; exit 4",
			PTY);
	pid_t reader = reader_of(f);

	assert_int_equal(fake_int(fake_end(f), "code"), 4);
	assert_string_equal(f->out[STREAM_OUT].p, "said\n");
	fake_gone(fake_pid_in(f, "daemon"));
	fake_gone(reader);
	fake_release(f);
}

static void a_job_with_a_terminal_can_be_stopped(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(
		f,
		"trap 'echo last; exit 3' TERM; echo armed; while :; do sleep 0.05; done 2>/dev/null",
		PTY);
	pid_t reader = reader_of(f);

	fake_wait_bytes(f, STREAM_OUT, 6);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	assert_int_equal(fake_int(fake_end(f), "code"), 3);
	assert_string_equal(f->out[STREAM_OUT].p, "armed\nlast\n");
	fake_gone(reader);
	fake_release(f);
}

static void a_killed_job_loses_no_byte_that_it_wrote(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "echo armed; head -c 3000 /dev/zero; : >$DIR/wrote; sleep 1000", PTY);
	fake_wait_bytes(f, STREAM_OUT, 6 + 3000);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGKILL);
	assert_int_equal(f->out[STREAM_OUT].n, 6 + 3000);
	fake_release(f);
}

static void no_byte_of_a_terminal_is_lost_with_its_shim(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "head -c 8000000 /dev/urandom > $DIR/copy; cat $DIR/copy; exit 9", PTY);
	pid_t reader = reader_of(f);

	fake_wait_bytes(f, STREAM_OUT, 500000);
	fake_kill(fake_shim(f));
	assert_int_equal(fake_int(fake_end(f), "code"), 9);
	fake_output_is_copy(f, "copy");
	fake_gone(reader);
	fake_release(f);
}

static void stop_case(struct fake *f, bool both)
{
	fake_ready(f);
	fake_start_with(f, "trap '' TERM; echo one; " GO "echo two; : >$DIR/two; sleep 1000", PTY);
	pid_t reader = reader_of(f);

	fake_wait_bytes(f, STREAM_OUT, 4);
	if (both) {
		fake_kill_both(f);
		fake_agent(f);
		fake_meet(f);
	} else {
		fake_kill(fake_shim(f));
	}
	go(f);
	fake_wait_bytes(f, STREAM_OUT, 8);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	fake_end(f);
	assert_string_equal(f->out[STREAM_OUT].p, "one\ntwo\n");
	fake_gone(reader);
	fake_release(f);
}

static void the_reader_of_a_terminal_is_not_killed_with_the_job_when_the_agent_took_over(
	void **state)
{
	stop_case(*state, false);
}

static void a_terminal_outlives_agent_and_shim(void **state)
{
	stop_case(*state, true);
}

static void the_same_by_the_mark_alone(void **state)
{
	struct fake *f = *state;

	f->no_cgroup = true;
	stop_case(f, true);
}

static void what_was_said_while_nobody_was_there_is_kept(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(
		f,
		"echo one; " GO
		"head -c 100000 /dev/zero; echo $$ >$DIR/said; while ! [ -e $DIR/end ]; do sleep 0.01; done",
		PTY);
	pid_t reader = reader_of(f);

	fake_wait_bytes(f, STREAM_OUT, 4);
	fake_kill_both(f);
	go(f);
	fake_pid_in(f, "said");
	fake_agent(f);
	fake_meet(f);
	file_write_atomic(fake_below(f, "end"), STR("x"), 0600, false, NULL);
	fake_end(f);
	fake_gone(reader);
	assert_int_equal(f->out[STREAM_OUT].n, 4 + 100000);
	fake_release(f);
}

static void a_job_whose_terminal_is_closed_gets_a_hangup(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "echo one; exec sleep 1000", PTY);
	fake_wait_bytes(f, STREAM_OUT, 4);
	kill(reader_of(f), SIGKILL);
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGHUP);
	assert_string_equal(f->out[STREAM_OUT].p, "one\n");
	fake_release(f);
}

static void a_command_that_cannot_be_run_leaves_no_reader(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_send(
		f, FRAME_START,
		"{\"attempt\":1,\"argv\":[\"/etc/hosts/none\"],\"env\":{},\"cwd\":\"\",\"grace_ms\":1,\"pty\":true}");
	assert_int_equal(fake_int(fake_wait(f, FRAME_EXIT), "code"), 127);
	fake_wait(f, FRAME_COLLECTED);
	fake_release(f);
}

int main(int argc, char **argv)
{
	int rc = fake_role(argc, argv);
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
	static const struct CMUnitTest tests[] = {
		CASE(a_job_with_a_terminal_sees_one_everywhere),
		CASE(a_job_without_a_terminal_sees_none),
		CASE(nobody_types_so_a_read_is_an_end_of_file),
		CASE(bytes_pass_the_terminal_as_they_are),
		CASE(the_last_words_before_an_exit_are_whole),
		CASE(a_daemon_that_holds_the_terminal_does_not_hold_the_end_up),
		CASE(a_job_with_a_terminal_can_be_stopped),
		CASE(a_killed_job_loses_no_byte_that_it_wrote),
		CASE(no_byte_of_a_terminal_is_lost_with_its_shim),
		CASE(the_reader_of_a_terminal_is_not_killed_with_the_job_when_the_agent_took_over),
		CASE(a_terminal_outlives_agent_and_shim),
		CASE(the_same_by_the_mark_alone),
		CASE(what_was_said_while_nobody_was_there_is_kept),
		CASE(a_job_whose_terminal_is_closed_gets_a_hangup),
		CASE(a_command_that_cannot_be_run_leaves_no_reader),
	};

	return rc >= 0 ? rc : cmocka_run_group_tests_name("agent: terminal", tests, NULL, NULL);
}
