/* The program in a container that runs a command and can end it. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/inside.h"
#include "base/cleanup.h"
#include "link/layout.h"

struct inside {
	pid_t pid;
	int line, out;
};

static struct inside start(void **state, const char *script)
{
	const char *fifo = unit_path(state, "line");
	const char *argv[] = {LAYOUT_INSIDE, fifo, "sh", "-c", script, NULL};
	struct inside i = {.line = -1};
	int out[2];

	unlink(fifo);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	i.line = open(fifo, O_RDWR | O_CLOEXEC);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	i.pid = fork();
	if (i.pid == 0) {
		close(i.line);
		dup2(out[1], STDOUT_FILENO);
		dup2(out[1], STDERR_FILENO);
		_exit(inside_main(5, (char **)argv));
	}
	close(out[1]);
	i.out = out[0];
	return i;
}

/* Until as much was printed, or the pipe is closed. */
static void says(const struct inside *i, const char *text)
{
	char got[200] = "";
	size_t n = 0;
	ssize_t more;

	while (n < strlen(text) && (more = read(i->out, got + n, sizeof(got) - 1 - n)) > 0)
		n += (size_t)more;
	assert_string_equal(got, text);
}

/* Its exit code, or minus the signal that has killed it.  Nobody has the pipe any more. */
static int ends(struct inside *i)
{
	char byte;
	int status;

	assert_int_equal(waitpid(i->pid, &status, 0), i->pid);
	assert_int_equal(read(i->out, &byte, 1), 0);
	close(i->out);
	close_fdp(&i->line);
	return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void the_exit_code_is_that_of_the_command(void **state)
{
	struct inside i = start(state, "echo hi; exit 7");

	says(&i, "hi\n");
	assert_int_equal(ends(&i), 7);
	i = start(state, "kill -9 $$");
	assert_int_equal(ends(&i), 128 + SIGKILL);
}

/* The shell has no process in the background: one that is not yet its own program when the signal comes loses it,
 * and holds the pipe. */
static void a_byte_is_a_signal_for_the_command(void **state)
{
	struct inside i =
		start(state, "exec 2>/dev/null; trap 'echo got it; exit 3' TERM; echo up; "
			     "while :; do sleep 0.01; done");
	unsigned char number = SIGTERM;

	says(&i, "up\n");
	assert_int_equal(write(i.line, &number, 1), 1);
	says(&i, "got it\n");
	assert_int_equal(ends(&i), 3);
}

/* Rule: whoever has started the command and is gone leaves nothing in the container. */
static void a_command_ends_when_nobody_holds_its_line(void **state)
{
	struct inside i = start(state, "trap '' TERM HUP; sleep 600 & echo up; wait");

	says(&i, "up\n");
	close(i.line);
	i.line = -1;
	assert_int_equal(ends(&i), -SIGKILL);
}

/* Rule: whoever stops the command can let it go on, and ends it by leaving. */
static void a_command_that_is_stopped_goes_on_and_ends(void **state)
{
	struct inside i = start(
		state, "exec 2>/dev/null; trap 'echo on; exit 4' CONT; sleep 10 & echo up; wait");
	unsigned char numbers[] = {SIGSTOP, SIGCONT};

	says(&i, "up\n");
	alarm(20); /* the end of this test if nobody goes on */
	assert_int_equal(write(i.line, numbers, 1), 1);
	assert_int_equal(write(i.line, numbers + 1, 1), 1);
	says(&i, "on\n");
	alarm(0);
	close_fdp(&i.line);
	waitpid(i.pid, NULL, 0);
	close(i.out);
}

/* Rule: one that starts after the agent was killed, whose FIFO is still there, runs nothing. */
static void nothing_runs_if_nobody_holds_the_line(void **state)
{
	const char *fifo = unit_path(state, "line"), *mark = unit_path(state, "mark");
	const char *argv[] = {LAYOUT_INSIDE, fifo, "touch", mark, NULL};
	int status;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	pid_t pid = fork();

	if (pid == 0) {
		alarm(10);
		_exit(inside_main(4, (char **)argv));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 126 << 8);
	assert_int_equal(access(mark, F_OK), -1);
}

/* A signal that came before it is for the command all the same. */
static void a_signal_that_waits_is_given(void **state)
{
	unsigned char number = SIGTERM;
	const char *fifo = unit_path(state, "line");
	const char *argv[] = {LAYOUT_INSIDE, fifo, "sleep", "10", NULL};
	int status;

	assert_int_equal(mkfifo(fifo, 0600), 0);
	int line = open(fifo, O_RDWR | O_CLOEXEC);

	assert_int_equal(write(line, &number, 1), 1);
	pid_t pid = fork();

	if (pid == 0)
		_exit(inside_main(4, (char **)argv));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, (128 + SIGTERM) << 8);
	close(line);
}

/* As the daemons of a launcher do. */
static void what_has_left_for_the_background_stays(void **state)
{
	const char *go = unit_path(state, "go");
	char *script = xasprintf("setsid sh -c 'echo up; read x <%s; echo still $x' & wait", go);
	int status;

	assert_int_equal(mkfifo(go, 0600), 0);
	struct inside i = start(state, script);

	says(&i, "up\n");
	close_fdp(&i.line);
	assert_int_equal(waitpid(i.pid, &status, 0), i.pid);
	assert_int_equal(file_write(go, STR("here\n"), 0600, NULL), 0);
	says(&i, "still here\n");
	close(i.out);
	free(script);
}

static void it_is_known_by_its_name_and_wants_a_command(void **state)
{
	const char *argv[] = {LAYOUT_INSIDE, unit_path(state, "line"), NULL};

	assert_true(inside_is("/x/" LAYOUT_INSIDE));
	assert_false(inside_is("/x/regatta"));
	assert_int_equal(inside_main(2, (char **)argv), 126);
}

#define T(f) cmocka_unit_test_setup_teardown(f, unit_make_dir, unit_remove_dir)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		T(the_exit_code_is_that_of_the_command),
		T(a_byte_is_a_signal_for_the_command),
		T(a_command_ends_when_nobody_holds_its_line),
		T(a_command_that_is_stopped_goes_on_and_ends),
		T(nothing_runs_if_nobody_holds_the_line),
		T(a_signal_that_waits_is_given),
		T(what_has_left_for_the_background_stays),
		T(it_is_known_by_its_name_and_wants_a_command),
	};

	return cmocka_run_group_tests_name("agent: inside", tests, NULL, NULL);
}
