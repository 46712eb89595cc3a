/* Jobs that leave daemons behind, ignore signals or exceed their limits. */
#include "unit.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "fake_master.h"
#include "sys/proctree.h"

static void a_daemon_does_not_outlive_its_job(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, FAKE_DAEMON FAKE_UNTIL_DAEMON "exit 3");
	assert_int_equal(fake_int(fake_end(f), "code"), 3);
	struct proc_info p;
	pid_t pid = fake_pid_in(f, "daemon");

	assert_false(proc_read(pid, &p) && p.state != 'Z');
}

static void a_daemon_without_an_environment_is_found_without_a_cgroup(void **state)
{
	struct fake *f = *state;

	f->no_cgroup = true;
	fake_ready(f);
	fake_start(f, FAKE_NAMELESS FAKE_UNTIL_DAEMON "exit 3");
	assert_int_equal(fake_int(fake_end(f), "code"), 3);
	struct proc_info p;
	pid_t pid = fake_pid_in(f, "daemon");

	assert_false(proc_read(pid, &p) && p.state != 'Z');
}

static void a_daemon_that_holds_the_output_is_given_a_moment_then_killed(void **state)
{
	struct fake *f = *state;

	f->config = ",\"settle_ms\":300";
	fake_ready(f);
	fake_start(
		f,
		"setsid sh -c 'echo $$ > $DIR/daemon; sleep 0.05; echo late; exec sleep 600' & " FAKE_UNTIL_DAEMON
		"echo early");
	assert_int_equal(fake_int(fake_end(f), "code"), 0);
	assert_string_equal(f->out[STREAM_OUT].p, "early\nlate\n");
	fake_gone(fake_pid_in(f, "daemon"));
}

static void a_job_that_ignores_sigterm_is_killed_after_its_grace(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "trap '' TERM; echo armed; while :; do sleep 0.05; done");
	fake_wait_bytes(f, STREAM_OUT, 6);
	int64_t before = clock_boot_ms();

	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "signal"), SIGKILL);
	assert_non_null(strstr(fake_str(e, "reason"), "grace"));
	assert_true(clock_boot_ms() - before >= 300);
}

static void a_job_may_use_its_grace(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start(f, "trap 'echo saved; exit 5' TERM; echo armed; while :; do sleep 0.01; done");
	fake_wait_bytes(f, STREAM_OUT, 6);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	const struct doc *e = fake_end(f);

	assert_int_equal(fake_int(e, "code"), 5);
	assert_string_equal(fake_str(e, "reason"), "");
	assert_string_equal(f->out[STREAM_OUT].p, "armed\nsaved\n");
}

static void a_second_signal_hurries(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_send(
		f, FRAME_START,
		"{\"attempt\":1,\"argv\":[\"/bin/sh\",\"-c\",\"trap '' TERM; echo armed; while :; do sleep "
		"0.05; done\"],\"env\":{},\"grace_ms\":600000}");
	fake_wait_bytes(f, STREAM_OUT, 6);
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":true}");
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGKILL);
}

static void a_stopped_job_can_be_killed(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	pid_t pid = fake_start(f, "sleep 600");

	struct proc_info p;
	int64_t until = clock_boot_ms() + FAKE_WAIT_MS;

	kill(pid, SIGSTOP);
	do { /* until then a SIGTERM would still be taken */
		assert_true(proc_read(pid, &p) && clock_boot_ms() < until);
	} while (p.state != 'T');
	fake_send(f, FRAME_SIGNAL, "{\"hurry\":false}");
	assert_int_equal(fake_int(fake_end(f), "signal"), SIGKILL);
}

static void the_time_limit_holds_without_agent_and_master(void **state)
{
	struct fake *f = *state;

	fake_ready(f);
	fake_start_with(f, "echo $$ > $DIR/pid; exec sleep 600", ",\"deadline_ms\":400");
	pid_t pid = fake_pid_in(f, "pid");

	fake_kill(f->agent);
	fake_gone(pid);
	fake_agent(f);
	const struct doc *h = fake_meet(f);
	const struct doc *e = doc_table(h, "exit");

	if (!e) /* the record may come a moment after the death */
		e = fake_wait(f, FRAME_EXIT);
	assert_string_equal(fake_str(e, "kind"), "timeout");
	assert_int_equal(fake_int(e, "signal"), SIGTERM);
}

static void a_job_over_its_memory_limit_is_an_oom(void **state)
{
	struct fake *f = *state;

	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS,
		  "{\"argv0\":\"python3\",\"path\":\"/usr/bin\",\"memory\":50000000}");
	const struct doc *r = fake_wait(f, FRAME_READY);

	if (!doc_bool(r, "ok", false)) {
		/* Without the permission it must be refused, in words. */
		assert_string_equal(fake_str(r, "kind"), "unavailable");
		assert_non_null(strstr(fake_str(r, "reason"), "memory"));
		return;
	}
	fake_start_with(f, "exec python3 -c 'x=bytearray(200000000)'", ",\"memory\":50000000");
	const struct doc *e = fake_end(f);

	assert_true(doc_bool(e, "oom", false));
	assert_non_null(strstr(fake_str(e, "reason"), "memory"));
}

static void memory_cannot_be_limited_without_a_cgroup(void **state)
{
	struct fake *f = *state;

	f->no_cgroup = true;
	fake_agent(f);
	fake_meet(f);
	fake_send(f, FRAME_INPUTS, "{\"argv0\":\"sh\",\"path\":\"/bin\",\"memory\":50000000}");
	const struct doc *r = fake_wait(f, FRAME_READY);

	assert_false(doc_bool(r, "ok", true));
	assert_string_equal(fake_str(r, "kind"), "unavailable");
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
		CASE(a_daemon_does_not_outlive_its_job),
		CASE(a_daemon_without_an_environment_is_found_without_a_cgroup),
		CASE(a_daemon_that_holds_the_output_is_given_a_moment_then_killed),
		CASE(a_job_that_ignores_sigterm_is_killed_after_its_grace),
		CASE(a_job_may_use_its_grace),
		CASE(a_second_signal_hurries),
		CASE(a_stopped_job_can_be_killed),
		CASE(the_time_limit_holds_without_agent_and_master),
		CASE(a_job_over_its_memory_limit_is_an_oom),
		CASE(memory_cannot_be_limited_without_a_cgroup),
	};
	int role = fake_role(argc, argv);

	if (role >= 0)
		return role;
	return cmocka_run_group_tests_name("agent: hostile jobs", tests, NULL, NULL);
}
