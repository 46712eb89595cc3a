/* Starting other programs. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/path.h"
#include "sys/child_run.h"
#include "sys/proctree.h"

#define WAIT_MS 10000

static int run(struct child_spec *spec, const char *script)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const char *const env[] = {"GREETING=hello", NULL};
	struct err err = {0};
	int status;
	pid_t pid;

	spec->file = "/bin/sh";
	spec->argv = argv;
	spec->env = env;
	assert_int_equal(child_spawn(spec, &pid, &err), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_program_gets_its_environment_and_its_descriptors(void **state)
{
	const char *path = unit_path(state, "out");
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	struct child_spec spec = {.in = -1, .out = fd, .err = fd};
	struct buf b;

	assert_int_equal(run(&spec, "echo $GREETING; echo oops >&2; cat; exit 3"), 3);
	buf_init(&b, 100);
	assert_int_equal(file_read(path, &b, NULL), 0);
	assert_string_equal(b.p, "hello\noops\n");
	buf_release(&b);
	close(fd);
}

static void it_may_get_a_session_and_never_our_signal_mask(void **state)
{
	struct child_spec spec = {.in = -1, .out = -1, .err = -1, .session = true};
	sigset_t term, before;

	(void)state;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &before);
	signal(SIGTERM, SIG_IGN);
	/* Leader of its own session, and SIGTERM works. */
	assert_int_equal(run(&spec,
			     "read -r _ _ _ _ _ sid _ < /proc/self/stat; test $(cut -d' ' -f6 "
			     "/proc/$$/stat) = $$"),
			 0);
	assert_int_equal(run(&spec, "kill -TERM $$; exit 0"), -1);
	signal(SIGTERM, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void a_program_that_cannot_be_started_is_an_error(void **state)
{
	const char *const argv[] = {"x", NULL};
	struct child_spec spec = {.file = "/no/such/program",
				  .argv = argv,
				  .env = argv + 1,
				  .in = -1,
				  .out = -1,
				  .err = -1};
	struct err err = {0};
	pid_t pid = 77;

	(void)state;
	assert_int_equal(child_spawn(&spec, &pid, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(pid, 77);
	err = (struct err){0};
	assert_int_equal(child_spawn_detached(&spec, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
}

static void a_detached_program_is_not_our_descendant(void **state)
{
	const char *path = unit_path(state, "pid");
	char script[600];
	const char *const argv[] = {"sh", "-c", script, NULL};
	struct child_spec spec = {.file = "/bin/sh",
				  .argv = argv,
				  .env = argv + 3,
				  .in = -1,
				  .out = -1,
				  .err = -1,
				  .session = true};
	int64_t until = clock_boot_ms() + WAIT_MS;
	struct proc_info p;
	struct err err = {0};
	struct buf b;
	int64_t pid = 0;

	snprintf(script, sizeof(script), "echo $$ > %s.new; mv %s.new %s; exec sleep 600", path,
		 path, path);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	assert_int_equal(child_spawn_detached(&spec, &err), 0);
	buf_init(&b, 100);
	while (file_read(path, &b, NULL) < 0 && clock_boot_ms() < until)
		poll(NULL, 0, 1);
	assert_true(b.n > 0);
	assert_true(str_to_i64(str_trim(buf_str(&b)), &pid));
	assert_true(proc_read((pid_t)pid, &p));
	assert_int_not_equal(p.ppid, getpid());
	int reaper = 0;

	prctl(PR_GET_CHILD_SUBREAPER, &reaper);
	assert_int_equal(reaper, 1);
	kill((pid_t)pid, SIGKILL);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
	buf_release(&b);
}

static void descriptors_from_a_number_on_can_be_closed(void **state)
{
	int p[2], status;

	(void)state;
	assert_int_equal(pipe(p), 0);
	pid_t pid = fork();

	if (pid == 0) {
		dup2(p[0], 50);
		child_close_from(10);
		_exit(fcntl(50, F_GETFD) == -1 && errno == EBADF && fcntl(2, F_GETFD) >= 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	close(p[0]);
	close(p[1]);
}

static void a_fork_without_a_group_is_a_fork(void **state)
{
	bool inside = true;
	int status;
	pid_t pid = child_fork_into(-1, &inside);

	(void)state;
	if (pid == 0)
		_exit(inside ? 1 : 9);
	assert_false(inside);
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 9);
	/* A descriptor that is no group: still a fork. */
	int fd = open("/", O_RDONLY | O_DIRECTORY);

	pid = child_fork_into(fd, &inside);
	if (pid == 0)
		_exit(inside ? 1 : 9);
	assert_false(inside);
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 9);
	close(fd);
}

static void commands_are_found_as_a_shell_would_find_them(void **state)
{
	const char *dir = *state;
	struct err err = {0};
	char *file = NULL;
	char path[600];

	file_write_atomic(unit_path(state, "tool"), STR("x"), 0700, false, NULL);
	file_write_atomic(unit_path(state, "data"), STR("x"), 0600, false, NULL);
	mkdir(unit_path(state, "folder"), 0700);
	snprintf(path, sizeof(path), "/no/such:%s:/bin", dir);
	assert_int_equal(child_find_command("tool", path, "/", &file, &err), 0);
	assert_string_equal(file, unit_path(state, "tool"));
	free(file);
	assert_int_equal(child_find_command("./tool", "", dir, &file, &err), 0);
	free(file);
	assert_int_equal(child_find_command("tool", ":", dir, &file, &err),
			 0); /* an empty part is here */
	free(file);
	assert_int_equal(child_find_command("nothing", path, "/", &file, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_string_equal(err.msg, "command 'nothing' not found in PATH");
	assert_int_equal(child_find_command("./nothing", path, dir, &file, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(child_find_command("", path, dir, &file, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(child_find_command("folder", path, dir, &file, &err), -1);
	assert_int_equal(err.kind, ERR_DENIED);
	assert_int_equal(child_find_command("./data", path, dir, &file, &err), -1);
	assert_int_equal(err.kind, ERR_DENIED);
}

static int run_job(void **state, const char *script, int ms, int *ret_code, struct err *err)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const char *const env[] = {"PATH=/usr/bin:/bin", NULL};
	CLEANUP(freep) char *log = path_join(*state, "log");
	CLEANUP(freep) char *in = path_join(*state, "in");
	const struct child_job job = {
		.dir = *state, .in = in, .log = log, .argv = argv, .env = env};
	const struct deadline d = deadline_in(ms, NULL);

	assert_int_equal(file_write(in, STR("input\n"), 0600, NULL), 0);
	return child_run_job(&job, &d, ret_code, err);
}

static void a_job_has_its_input_its_log_and_its_exit_code(void **state)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct err err = {0};
	int code;

	buf_init(&b, 100);
	assert_int_equal(run_job(state, "cat; echo oops >&2; exit 3", WAIT_MS, &code, &err), 0);
	assert_int_equal(code, 3);
	assert_int_equal(run_job(state, "pwd; exit 0", WAIT_MS, &code, &err), 0);
	assert_int_equal(code, 0);
	assert_int_equal(file_read(unit_path(state, "log"), &b, NULL), 0);
	assert_true(str_starts(buf_str(&b), STR("input\noops\n/")));
	assert_int_equal(run_job(state, "kill -9 0", WAIT_MS, &code, &err), -1);
	assert_int_equal(err.kind, ERR_IO);
	assert_int_equal(run_job(state, "sleep 60", 100, &code, &err), -1);
	assert_int_equal(err.kind, ERR_TIMEOUT);
}

static void a_job_dies_with_the_process_that_runs_it(void **state)
{
	const char *path = unit_path(state, "fifo");
	char byte;

	assert_int_equal(mkfifo(path, 0600), 0);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	pid_t pid = fork();

	if (pid == 0) {
		int code;

		run_job(state, "exec 9>fifo; echo >&9; sleep 60 & sleep 60", 60000, &code, NULL);
		_exit(0);
	}
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_int_equal(read(fd, &byte, 1), 1);
	assert_int_equal(poll(&p, 1, 50), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1); /* nobody of it has it open any more */
	assert_int_equal(read(fd, &byte, 1), 0);
	close(fd);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, unit_make_dir, unit_remove_dir)
	static const struct CMUnitTest tests[] = {
		CASE(a_program_gets_its_environment_and_its_descriptors),
		CASE(it_may_get_a_session_and_never_our_signal_mask),
		CASE(a_program_that_cannot_be_started_is_an_error),
		CASE(a_detached_program_is_not_our_descendant),
		CASE(descriptors_from_a_number_on_can_be_closed),
		CASE(a_fork_without_a_group_is_a_fork),
		CASE(commands_are_found_as_a_shell_would_find_them),
		CASE(a_job_has_its_input_its_log_and_its_exit_code),
		CASE(a_job_dies_with_the_process_that_runs_it),
	};

	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
