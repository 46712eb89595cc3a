/* A forkserver: what it forks, how it ends. */
#include "unit.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/forkserver.h"
#include "sys/proctree.h"
#include "sys/title.h"

#define WAIT_MS 10000
#define MARK "0123456789abcdef01234567"

static const char *const env[] = {"FORKSERVER_TEST=yes", "PATH=/bin", NULL};

/* Says who it is; "stay" does not end by itself. */
static int role(const char *arg)
{
	printf("%s %s %s %d\n", arg, getenv(PROC_MARK), getenv("FORKSERVER_TEST"),
	       getsid(0) == getpid());
	fflush(stdout);
	while (strcmp(arg, "stay") == 0)
		pause();
	if (arg[0] != '/' || fork() != 0)
		return 0;
	/* Nobody knows us but the forkserver; a while later even the forkserver has no master. */
	CLEANUP(freep) char *go = xasprintf("%s.go", arg);
	while (access(go, F_OK) < 0)
		poll(NULL, 0, 1);
	return 7;
}

static bool orphan_ended(const char *arg, pid_t pid, int wait_status)
{
	char text[64];

	if (arg[0] != '/')
		return false;
	snprintf(text, sizeof(text), "%d %d", kill(pid, 0) == 0, WEXITSTATUS(wait_status));
	CLEANUP(freep) char *file = xasprintf("%s.ended", arg);
	return file_write_atomic(file, str_from(text), 0600, false, NULL) == 0;
}

static bool alive(pid_t pid)
{
	return proc_alive(proc_id_of(pid));
}

static void wait_gone(pid_t pid)
{
	for (int64_t until = clock_boot_ms() + WAIT_MS; alive(pid) && clock_boot_ms() < until;)
		poll(NULL, 0, 1);
	assert_false(alive(pid));
}

static void wait_text(const char *path, const char *want)
{
	struct buf text;

	buf_init(&text, 1 << 20);
	for (int64_t until = clock_boot_ms() + WAIT_MS; clock_boot_ms() < until;) {
		buf_reset(&text);
		if (file_read(path, &text, NULL) == 0 && str_is(buf_str(&text), want))
			break;
		poll(NULL, 0, 1);
	}
	assert_true(str_is(buf_str(&text), want));
	buf_release(&text);
}

static pid_t fork_one(struct forkserver *f, const char *arg, const char *log)
{
	struct forkserver_child c = {.mark = MARK, .arg = arg, .log = log};
	struct err err = {0};
	pid_t pid = 0;

	assert_int_equal(forkserver_fork(f, &c, &pid, &err), 0);
	assert_true(pid > 0);
	return pid;
}

static void a_child_has_its_mark_its_session_and_its_log(void **state)
{
	const char *log = unit_path(state, "log");
	struct forkserver *f = forkserver_new("/here", env);
	pid_t pid = fork_one(f, "one", log);

	wait_gone(pid);
	assert_int_equal(waitpid(pid, NULL, 0), -1); /* not ours, and nobody's zombie */
	wait_text(log, "one " MARK " yes 1\n");
	wait_gone(fork_one(f, "two", log));
	wait_text(log, "one " MARK " yes 1\ntwo " MARK " yes 1\n");
	forkserver_free(f);
}

static void a_child_is_shown_by_its_own_name_and_outlives_the_forkserver(void **state)
{
	const char *log = unit_path(state, "log");
	struct forkserver *f = forkserver_new("/here", env);
	pid_t pid = fork_one(f, "stay", log);
	struct proc_info p;
	struct buf text;
	char path[64];

	wait_text(log, "stay " MARK " yes 1\n");
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	buf_init(&text, 1 << 16);
	assert_int_equal(file_read(path, &text, NULL), 0);
	assert_memory_equal(text.p, "regatta\0node-agent\0stay\0", 24);
	buf_release(&text);
	assert_true(proc_carries(pid, PROC_MARK "=" MARK));
	assert_true(proc_read(pid, &p));
	assert_false(proc_carries(p.ppid, PROC_MARK "=" MARK));
	forkserver_free(f);
	assert_true(alive(pid));
	assert_false(alive(p.ppid));
	kill(pid, SIGKILL);
}

static void a_forkserver_that_is_stopped_is_replaced(void **state)
{
	const char *log = unit_path(state, "log");
	struct forkserver *f = forkserver_new("/here", env);
	pid_t pid = fork_one(f, "stay", log);
	struct proc_info p;

	assert_true(proc_read(pid, &p));
	kill(pid, SIGKILL);
	kill(p.ppid, SIGSTOP);
	pid = fork_one(f, "stay", log);
	assert_false(alive(p.ppid));
	kill(pid, SIGKILL);
	forkserver_free(f);
}

static void a_log_that_cannot_be_opened_is_told(void **state)
{
	struct forkserver *f = forkserver_new("/here", env);
	struct forkserver_child c = {
		.mark = MARK, .arg = "one", .log = unit_path(state, "no/such/dir")};
	struct err err = {0};
	pid_t pid;

	assert_int_equal(forkserver_fork(f, &c, &pid, &err), -1);
	assert_int_equal(err.code, ENOENT);
	forkserver_free(f);
}

static void the_end_of_an_orphan_is_told_even_without_a_master(void **state)
{
	const char *log = unit_path(state, "log"), *flag = unit_path(state, "flag");
	assert_int_equal(file_write(flag, STR(""), 0600, NULL), 0);
	pid_t master = fork();

	if (master == 0) {
		struct forkserver *f = forkserver_new("/here", env);

		wait_gone(fork_one(f, "one", log));
		wait_gone(fork_one(f, flag, log));
		pid_t pid = fork_one(f, "stay", log);
		_exit(kill(pid, SIGKILL) == 0 ? 0 : 1);
	}
	int status;

	assert_int_equal(waitpid(master, &status, 0), master);
	assert_int_equal(status, 0);
	assert_int_equal(file_write(unit_path(state, "flag.go"), STR(""), 0600, NULL), 0);
	wait_text(unit_path(state, "flag.ended"), "1 7");
}

static void a_bad_request_is_refused(void **state)
{
	struct forkserver *f = forkserver_new("/here", env);
	struct forkserver_child c = {.mark = "short", .arg = "one", .log = unit_path(state, "log")};
	struct err err = {0};
	pid_t pid;

	assert_int_equal(forkserver_fork(f, &c, &pid, &err), -1);
	assert_int_equal(err.code, EINVAL);
	c.mark = MARK;
	assert_int_equal(forkserver_fork(f, &c, &pid, &err), 0);
	forkserver_free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_child_has_its_mark_its_session_and_its_log,
						unit_make_dir, unit_remove_dir),
		cmocka_unit_test_setup_teardown(
			a_child_is_shown_by_its_own_name_and_outlives_the_forkserver, unit_make_dir,
			unit_remove_dir),
		cmocka_unit_test_setup_teardown(a_forkserver_that_is_stopped_is_replaced,
						unit_make_dir, unit_remove_dir),
		cmocka_unit_test_setup_teardown(a_log_that_cannot_be_opened_is_told, unit_make_dir,
						unit_remove_dir),
		cmocka_unit_test_setup_teardown(the_end_of_an_orphan_is_told_even_without_a_master,
						unit_make_dir, unit_remove_dir),
		cmocka_unit_test_setup_teardown(a_bad_request_is_refused, unit_make_dir,
						unit_remove_dir),
	};

	if (argc == 4 && strcmp(argv[1], "forkserver") == 0) {
		static const struct forkserver_role r = {role, orphan_ended};

		title_init(4, argv);
		return forkserver_serve(&r, argv[2]);
	}
	return cmocka_run_group_tests_name("forkserver", tests, NULL, NULL);
}
