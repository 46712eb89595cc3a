/* Jobs with several processes on a node. */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <string.h>

#include "base/file.h"
#include "fake_master.h"

#define GO "while ! [ -e $DIR/go ]; do sleep 0.01; done; "

/* Three processes of rank 0, the second node of which has rank 3: L and R are local and global rank. */
static pid_t start(struct fake *f, const char *script)
{
	f->env = ",\"L\":\"{local}\",\"R\":\"{process}\",\"N\":\"{processes}\"";
	fake_send(
		f, FRAME_MEMBERS,
		"{\"first\":0,\"total\":2,\"roles\":[{\"name\":\"ps\",\"first\":0,\"count\":1,\"counted\":true},"
		"{\"name\":\"w\",\"first\":1,\"count\":1,\"processes\":3,\"counted\":true}],\"addresses\":\"- -\"}");
	return fake_start_with(f, script, ",\"rank\":1,\"processes\":3");
}

static void go(struct fake *f)
{
	fake_touch(fake_below(f, "go"));
}

static const char *text(struct fake *f, int process, enum stream s)
{
	struct buf *b = &f->out[stream_of(process, s)];

	return b->n > 0 ? b->p : "";
}

static void check_process(const struct doc *exit, size_t i, int code, int sig)
{
	const struct doc *all = doc_array(exit, "processes");

	assert_non_null(all);
	assert_int_equal(all->array.n, 3);
	assert_int_equal(fake_int(all->array.v[i], "code"), code);
	assert_int_equal(fake_int(all->array.v[i], "signal"), sig);
}

static void each_process_has_its_rank_and_its_streams(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	start(f, "echo $L of $N is $R; echo err $R >&2; echo loss=$R");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 0);
	assert_string_equal(text(f, 0, STREAM_OUT), "0 of 3 is 1\nloss=1\n");
	assert_string_equal(text(f, 1, STREAM_OUT), "1 of 3 is 2\nloss=2\n");
	assert_string_equal(text(f, 2, STREAM_OUT), "2 of 3 is 3\nloss=3\n");
	assert_string_equal(text(f, 0, STREAM_ERR), "err 1\n");
	assert_string_equal(text(f, 2, STREAM_ERR), "err 3\n");
	for (size_t i = 0; i < 3; i++)
		check_process(e, i, 0, 0);
	assert_non_null(strstr(f->samples.p, "loss=2@-1;")); /* metrics are taken from all */
	fake_release(f);
}

static void one_that_ends_well_leaves_the_others_alone(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	start(f, "[ $L = 1 ] && { echo early; exit 0; }; " GO "echo late");
	fake_wait_bytes(f, stream_of(1, STREAM_OUT), strlen("early\n"));
	go(f);
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
	assert_string_equal(text(f, 0, STREAM_OUT), "late\n");
	assert_string_equal(text(f, 2, STREAM_OUT), "late\n");
}

/* A process that has exited may still wait for its parent to see that. */
static void await_reaped(pid_t pid)
{
	for (int i = 0; kill(pid, 0) == 0; i++) {
		if (i > 20000)
			fail_msg("process %d is still there", (int)pid);
		poll(NULL, 0, 1);
	}
}

/* Whoever waits for one that has left its group fails for it. */
static void one_that_had_ended_well_before_the_failure_is_named(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	start(f, "[ $L = 2 ] && { echo $$ > $DIR/pid; exit 0; }; [ $L = 1 ] && { " GO "exit 7; }; "
		 "[ $L = 0 ] && trap 'exit 0' TERM; echo here; while :; do sleep 0.01; done");
	fake_wait_bytes(f, STREAM_OUT, strlen("here\n"));
	await_reaped(fake_pid_in(f, "pid"));
	go(f);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 7);
	assert_string_equal(
		fake_str(e, "reason"),
		"process 1 of 3 failed first, process 2 had ended with exit code 0 before");
}

static void the_first_failure_ends_the_others_and_is_the_nodes(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	/* 0 exits on SIGTERM with a code of its own, 2 ignores it and is killed. */
	start(f, "[ $L = 1 ] && { " GO "exit 7; }; [ $L = 0 ] && trap 'echo term; exit 9' TERM; "
		 "[ $L = 2 ] && trap '' TERM; echo here; while :; do sleep 0.01; done");
	fake_wait_bytes(f, STREAM_OUT, strlen("here\n"));
	fake_wait_bytes(f, stream_of(2, STREAM_OUT), strlen("here\n"));
	go(f);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 7);
	assert_string_equal(fake_str(e, "kind"), "none");
	assert_string_equal(fake_str(e, "reason"), "process 1 of 3 failed first");
	check_process(e, 0, 9, 0);
	check_process(e, 1, 7, 0);
	check_process(e, 2, -1, SIGKILL);
	assert_string_equal(text(f, 0, STREAM_OUT), "here\nterm\n");
	fake_release(f);
}

static void a_killed_process_ends_the_node_with_its_signal(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	start(f, "[ $L = 2 ] && echo $$ > $DIR/pid; echo here; exec sleep 600");
	fake_wait_bytes(f, stream_of(1, STREAM_OUT), strlen("here\n"));
	kill(fake_pid_in(f, "pid"), SIGKILL);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "signal"), SIGKILL);
	check_process(e, 2, -1, SIGKILL);
	check_process(e, 1, -1, SIGTERM);
}

static void a_signal_with_a_core_is_reported_as_it_is(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	start(f, "[ $L = 0 ] && kill -ABRT $$; exec sleep 600");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "signal"), SIGABRT);
	check_process(e, 0, -1, SIGABRT);
}

static void a_stop_reaches_every_process_once(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	/* Process 0 ends well, 1 fails, and 2 lives on for a while: it would hear a second stop. */
	start(f,
	      "trap 'echo term; t=1' TERM; n=0; echo here; while :; do sleep 0.01; [ $t ] || continue; "
	      "[ $L = 0 ] && exit 0; n=$((n + 1)); [ $n = $((L * 6)) ] && exit 3; done");
	for (int i = 0; i < 3; i++)
		fake_wait_bytes(f, stream_of(i, STREAM_OUT), strlen("here\n"));
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 3);
	check_process(e, 0, 0, 0);
	for (int i = 0; i < 3; i++)
		assert_string_equal(text(f, i, STREAM_OUT), "here\nterm\n");
}

/* One that fails ends the others: it does so when all have written. */
static void end_after_two(struct fake *f)
{
	for (int i = 0; i < 3; i++)
		fake_wait_bytes(f, stream_of(i, STREAM_OUT), strlen("one\ntwo\n"));
	file_write(fake_below(f, "end"), STR("x"), 0600, NULL);
}

static void the_output_of_all_outlives_a_killed_shim(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	start(f, "echo one; " GO "echo two; " FAKE_UNTIL("end") "[ $L = 2 ] && exit 5; exit 0");
	for (int i = 0; i < 3; i++)
		fake_wait_bytes(f, stream_of(i, STREAM_OUT), strlen("one\n"));
	fake_kill(fake_shim(f));
	go(f);
	end_after_two(f);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 5);
	check_process(e, 2, 5, 0);
	for (int i = 0; i < 3; i++)
		assert_string_equal(text(f, i, STREAM_OUT), "one\ntwo\n");
	fake_release(f);
}

static void the_next_agent_goes_on_with_the_streams_of_all(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	start(f, "echo one; " GO "echo two; echo x > $DIR/$L; " FAKE_UNTIL("0") FAKE_UNTIL("1")
			 FAKE_UNTIL("2") "exit 4");
	for (int i = 0; i < 3; i++)
		fake_wait_bytes(f, stream_of(i, STREAM_OUT), strlen("one\n"));
	pid_t shim = fake_shim(f);

	fake_kill(f->agent);
	go(f);
	fake_gone(shim);
	fake_agent(f);
	const struct doc *h = fake_meet(f);

	/* The report of many processes may be longer than a HELLO: it follows. */
	assert_null(doc_get(h, "exit"));
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 4);
	for (int i = 0; i < 3; i++)
		assert_string_equal(text(f, i, STREAM_OUT), "one\ntwo\n");
}

static void nothing_is_lost_or_invented_when_agent_and_shim_are_killed(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	start(f, "echo one; " GO "echo two");
	for (int i = 0; i < 3; i++)
		fake_wait_bytes(f, stream_of(i, STREAM_OUT), strlen("one\n"));
	fake_kill_both(f);
	fake_agent(f);
	fake_meet(f);
	go(f);
	const struct doc *e = fake_end(f);

	assert_string_equal(fake_str(e, "kind"), "unavailable");
	for (int i = 0; i < 3; i++)
		assert_string_equal(text(f, i, STREAM_OUT), "one\ntwo\n");
}

static void no_process_outlives_the_main_process(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = start(f, "echo $$ > $DIR/$L; exec sleep 600");
	pid_t all[] = {fake_pid_in(f, "0"), fake_pid_in(f, "1"), fake_pid_in(f, "2")};

	fake_kill(pid);
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "signal"), SIGKILL);
	for (int i = 0; i < 3; i++)
		assert_false(fake_alive(all[i]));
	check_process(e, 0, -1, 0); /* how it ended is not known */
	fake_release(f);
}

static void a_program_that_cannot_be_run_is_said_once(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	char *script = fake_below(f, "script");

	file_write(script, STR("#!/no/such/interpreter\n"), 0700, NULL);
	fake_send(f, FRAME_START,
		  arena_printf(f->arena,
			       "{\"attempt\":1,\"argv\":[\"%s\"],\"env\":{\"PATH\":\"/bin\"},"
			       "\"grace_ms\":300,\"processes\":3}",
			       script));
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 127);
	assert_non_null(strstr(fake_str(e, "reason"), "its interpreter is missing"));
}

#define WITH_FAKE(t) cmocka_unit_test_setup_teardown(t, fake_setup, fake_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(each_process_has_its_rank_and_its_streams),
		WITH_FAKE(one_that_ends_well_leaves_the_others_alone),
		WITH_FAKE(the_first_failure_ends_the_others_and_is_the_nodes),
		WITH_FAKE(one_that_had_ended_well_before_the_failure_is_named),
		WITH_FAKE(a_killed_process_ends_the_node_with_its_signal),
		WITH_FAKE(a_signal_with_a_core_is_reported_as_it_is),
		WITH_FAKE(a_stop_reaches_every_process_once),
		WITH_FAKE(the_output_of_all_outlives_a_killed_shim),
		WITH_FAKE(the_next_agent_goes_on_with_the_streams_of_all),
		WITH_FAKE(nothing_is_lost_or_invented_when_agent_and_shim_are_killed),
		WITH_FAKE(no_process_outlives_the_main_process),
		WITH_FAKE(a_program_that_cannot_be_run_is_said_once),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: processes", tests, NULL, NULL);
}
