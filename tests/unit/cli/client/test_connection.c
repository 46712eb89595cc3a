/* Every command finds the user's master or starts one, and says clearly when it cannot. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/client/api.h"
#include "cli/drive.h"
#include "cli/fake_master.h"

static void put_runs(void **state)
{
	home_put(state, "runs.json", "{\"runs\":[{\"id\":\"job-abcd\",\"state\":\"running\"}]}");
}

static void a_command_starts_a_master_in_the_background(void **state)
{
	put_runs(state);
	struct ran r = DRIVE(state, "ps");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "job-abcd");
	assert_int_equal(r.err.n, 0);
	ran_release(&r);
	/* It is still there for the next one. */
	r = DRIVE(state, "ps", "--all", "--limit", "3");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	assert_int_equal(
		home_count(state, "requests.log", "GET /api/v1/runs?state=active&limit=51&full=0 "),
		1);
	assert_int_equal(
		home_count(state, "requests.log", "GET /api/v1/runs?state=all&limit=3&full=0 "), 1);
}

static void several_commands_at_once_share_one_master(void **state)
{
	struct driven d[8];

	put_runs(state);
	for (size_t i = 0; i < COUNT(d); i++)
		d[i] = DRIVE_BEGIN(state, "ps");
	for (size_t i = 0; i < COUNT(d); i++) {
		struct ran r = drive_end(d[i]);
		assert_int_equal(r.code, 0);
		ran_release(&r);
	}
	assert_int_equal(home_count(state, "requests.log", "GET "), 8);
}

/* Somebody who holds the home as a master that is about to leave does. */
static pid_t hold_home(void **state, bool say_so)
{
	int ready[2];
	char c;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int fd = open(unit_path(state, "lock"), O_RDWR | O_CREAT, 0600);
		if (flock(fd, LOCK_EX) < 0 || (say_so && dprintf(fd, "%d\n", (int)getpid()) < 0) ||
		    write(ready[1], "x", 1) < 0)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void a_lock_that_a_dead_master_left_is_no_obstacle(void **state)
{
	static const char *const locks[] = {"", "nonsense\n", "999999999\n", "-1\n"};

	put_runs(state);
	for (size_t i = 0; i < COUNT(locks); i++) {
		home_put(state, "lock", locks[i]);
		struct ran r = DRIVE(state, "ps");
		assert_int_equal(r.code, 0);
		ran_release(&r);
		r = DRIVE(state, "master", "--stop");
		assert_int_equal(r.code, 0);
		ran_release(&r);
	}
}

static void a_master_that_is_leaving_is_waited_for(void **state)
{
	for (int say_so = 0; say_so < 2; say_so++) {
		put_runs(state);
		pid_t holder = hold_home(state, say_so);
		struct driven d = DRIVE_BEGIN(state, "ps");
		/* It must still be waiting when the other one has gone. */
		int64_t until = clock_boot_ms() + 100;
		while (clock_boot_ms() < until)
			assert_int_equal(waitpid(d.pid, NULL, WNOHANG), 0);
		kill(holder, SIGKILL);
		waitpid(holder, NULL, 0);
		struct ran r = drive_end(d);
		assert_int_equal(r.code, 0);
		assert_has(&r.out, "job-abcd");
		ran_release(&r);
		r = DRIVE(state, "master", "--stop");
		ran_release(&r);
	}
}

static void the_master_does_not_hold_descriptors_of_the_caller(void **state)
{
	int p[2];
	char c;

	put_runs(state);
	assert_int_equal(pipe(p), 0);
	struct ran r = DRIVE(state, "ps");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	close(p[1]);
	assert_int_equal(fcntl(p[0], F_SETFL, O_NONBLOCK), 0);
	/* End of file: nobody else has the writing end.  EAGAIN would mean that the master has
	 * it. */
	assert_int_equal(read(p[0], &c, 1), 0);
	close(p[0]);
}

static void a_master_that_cannot_start_is_quoted(void **state)
{
	home_put(state, "fault-start", "xxx");
	struct ran r = DRIVE(state, "ps");
	assert_int_equal(r.code, 8);
	assert_string_equal(
		r.err.p,
		"regatta: the master did not start: fake: the database is of version 99\n");
	assert_int_equal(r.out.n, 0);
	ran_release(&r);
	home_put(state, "fault-start", "");
}

static void a_long_log_is_put_aside(void **state)
{
	char *text = xcalloc(1, 2u << 20);

	put_runs(state);
	memset(text, 'x', (2u << 20) - 1);
	home_put(state, "master.log", text);
	free(text);
	struct ran r = DRIVE(state, "ps");
	assert_int_equal(r.code, 0);
	ran_release(&r);
	struct stat st;
	assert_int_equal(stat(unit_path(state, "master.log"), &st), 0);
	assert_true(st.st_size < 1000);
	assert_int_equal(stat(unit_path(state, "master.log.1"), &st), 0);
	assert_int_equal(st.st_size, (2u << 20) - 1);
}

static void a_home_that_cannot_be_made_is_named(void **state)
{
	home_put(state, "file", "x");
	setenv("TEST_KEEP_HOME", "1", 1);
	setenv("REGATTA_HOME", unit_path(state, "file/below"), 1);
	struct ran r = DRIVE(state, "ps");
	assert_true(r.code >= 2 && r.code <= 8);
	assert_has(&r.err, "file");
	ran_release(&r);
	setenv("REGATTA_HOME", "/proc/none", 1);
	r = DRIVE(state, "ps");
	assert_true(r.code >= 2 && r.code <= 8);
	assert_has(&r.err, "make the state directory (REGATTA_HOME)");
	ran_release(&r);
	unsetenv("TEST_KEEP_HOME");
}

static void somebody_elses_home_is_refused(void **state)
{
	if (geteuid() != 0)
		return; /* only root can make a directory that is not its own */
	assert_int_equal(mkdir(unit_path(state, "other"), 0755), 0);
	assert_int_equal(chown(unit_path(state, "other"), 12345, 12345), 0);
	setenv("TEST_KEEP_HOME", "1", 1);
	setenv("REGATTA_HOME", unit_path(state, "other"), 1);
	struct ran r = DRIVE(state, "ps");
	unsetenv("TEST_KEEP_HOME");
	assert_int_equal(r.code, 4);
	assert_has(&r.err, "belongs to another user (uid 12345)");
	ran_release(&r);
}

static void expect_home(const char *want)
{
	CLEANUP(freep) char *home = NULL;
	struct err err;

	assert_int_equal(home_find(&home, &err), 0);
	assert_string_equal(home, want);
}

static void the_home_follows_the_environment(void **state)
{
	CLEANUP(freep) char *cwd = getcwd(NULL, 0), *home = NULL;
	CLEANUP(freep) char *relative = xasprintf("%s/state", cwd);
	struct err err;

	(void)state;
	setenv("REGATTA_HOME", "/a/../b//c", 1);
	setenv("XDG_STATE_HOME", "/x", 1);
	setenv("HOME", "/h", 1);
	expect_home("/b/c");
	setenv("REGATTA_HOME", "state", 1);
	expect_home(relative);
	setenv("REGATTA_HOME", "", 1);
	expect_home("/x/regatta");
	setenv("XDG_STATE_HOME", "not-absolute", 1);
	expect_home("/h/.local/state/regatta");
	unsetenv("HOME");
	assert_int_equal(home_find(&home, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	setenv("HOME", "/h", 1);
}

static void stopping_waits_until_the_process_is_gone(void **state)
{
	put_runs(state);
	struct ran r = DRIVE(state, "master", "--stop");
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "no master is running");
	ran_release(&r);
	r = DRIVE(state, "ps");
	ran_release(&r);
	r = DRIVE(state, "master", "--stop");
	assert_int_equal(r.code, 0);
	assert_has(&r.err, "stopped; 1 run goes on until its lease ends");
	ran_release(&r);
	r = DRIVE(state, "ps");
	ran_release(&r);
	r = DRIVE(state, "master", "--stop", "--cancel", "--output", "json");
	assert_int_equal(r.code, 0);
	assert_has(&r.out, "{\"stopped\":true,\"pid\":");
	assert_has(&r.out, "\"runs_active\":0}\n");
	ran_release(&r);
	assert_int_equal(
		home_count(state, "requests.log", "POST /api/v1/shutdown {\"cancel\":true}"), 1);
	r = DRIVE(state, "master", "--stop", "--output", "json");
	assert_string_equal(r.out.p, "{\"stopped\":false}\n");
	ran_release(&r);
}

static void options_of_the_master_that_do_not_go_together_are_refused(void **state)
{
	struct ran r = DRIVE(state, "master", "--cancel");
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "--cancel goes with --stop");
	ran_release(&r);
	r = DRIVE(state, "master", "--stop", "--listen", "127.0.0.1:0");
	assert_int_equal(r.code, 2);
	assert_has(&r.err, "--stop goes with --cancel only");
	ran_release(&r);
}

static void a_second_master_in_the_foreground_is_refused_by_the_first(void **state)
{
	put_runs(state);
	struct ran r = DRIVE(state, "ps");
	ran_release(&r);
	r = DRIVE(state, "master", "--listen", "127.0.0.1:7");
	assert_int_equal(r.code, 2);
	ran_release(&r);
}

int main(int argc, char **argv)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, drive_setup, drive_teardown)
	const struct CMUnitTest tests[] = {
		T(a_command_starts_a_master_in_the_background),
		T(several_commands_at_once_share_one_master),
		T(a_lock_that_a_dead_master_left_is_no_obstacle),
		T(a_master_that_is_leaving_is_waited_for),
		T(the_master_does_not_hold_descriptors_of_the_caller),
		T(a_master_that_cannot_start_is_quoted),
		T(a_long_log_is_put_aside),
		T(a_home_that_cannot_be_made_is_named),
		T(somebody_elses_home_is_refused),
		T(the_home_follows_the_environment),
		T(stopping_waits_until_the_process_is_gone),
		T(options_of_the_master_that_do_not_go_together_are_refused),
		T(a_second_master_in_the_foreground_is_refused_by_the_first),
	};
	int code;

	if (fake_role(argc, argv, &code))
		return code;
	return cmocka_run_group_tests_name("finding the master", tests, NULL, NULL);
}
