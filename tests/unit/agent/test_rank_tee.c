/* The program through which a launcher starts a rank: its output goes to the launcher and to the node's log. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agent/rank_tee.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "link/frame.h"
#include "link/layout.h"
#include "sys/child.h"

#define READ_MAX (16 << 20)
#define WAIT_MS 20000

/* A rank whose launcher and log are the test. */
struct rank {
	pid_t pid;
	int in, out, err;   /* the launcher's ends; -1: there is none */
	int log[2];	    /* the log's, of standard output and standard error */
	struct buf said[2]; /* what the log has got, as far as it was read */
};

enum { WITH_LOG = 1, ONE_OUTPUT = 2, TERMINAL = 4, NO_READER = 8 };

static void make_logs(struct rank *r, void **state, int how)
{
	static const char *const names[] = {"out.fifo", "err.fifo"};

	for (int i = 0; i < 2; i++) {
		const char *path = unit_path(state, names[i]);

		buf_init(&r->said[i], READ_MAX);
		unlink(path);
		assert_int_equal(mkfifo(path, 0600), 0);
		r->log[i] = how & NO_READER ? -1 : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		assert_true(how & NO_READER || r->log[i] >= 0);
	}
}

static void open_output(int how, int p[static 2])
{
	char name[64];

	if (!(how & TERMINAL)) {
		assert_int_equal(pipe2(p, O_CLOEXEC), 0);
		return;
	}
	p[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_int_equal(unlockpt(p[0]), 0);
	assert_int_equal(ptsname_r(p[0], name, sizeof(name)), 0);
	p[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(p[1] >= 0);
}

static struct rank start_program(void **state, int how, const char *const *argv)
{
	struct rank r = {0};
	int in[2], out[2], err[2] = {-1, -1};

	make_logs(&r, state, how);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	open_output(how, out);
	if (!(how & ONE_OUTPUT))
		assert_int_equal(pipe2(err, O_CLOEXEC), 0);
	r.pid = fork();
	if (r.pid == 0) {
		unsetenv("REGATTA_TEE_LOG");
		if (how & WITH_LOG)
			setenv("REGATTA_TEE_LOG", *state, 1);
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		dup2(how & ONE_OUTPUT ? out[1] : err[1], STDERR_FILENO);
		child_close_from(STDERR_FILENO + 1);
		child_reset_signals();
		setpgid(0, 0);
		execv("/proc/self/exe", (char **)argv);
		_exit(99);
	}
	close(in[0]);
	close(out[1]);
	close_fdp(&err[1]);
	r.in = in[1];
	r.out = out[0];
	r.err = err[0];
	return r;
}

static struct rank start(void **state, int how, const char *script)
{
	return start_program(state, how, (const char *[]){LAYOUT_TEE, "sh", "-c", script, NULL});
}

/* Until its end, or no more than `max` bytes.  What comes to the log meanwhile is read, too. */
static const char *read_all(struct rank *r, int fd, size_t max, struct buf *got)
{
	char bytes[65536];

	buf_init(got, READ_MAX);
	while (got->n < max) {
		struct pollfd p[] = {{.fd = fd, .events = POLLIN},
				     {.fd = r->log[0], .events = POLLIN},
				     {.fd = r->log[1], .events = POLLIN}};
		ssize_t n;

		assert_true(poll(p, 3, WAIT_MS) > 0);
		for (int i = 0; i < 2; i++)
			if (p[1 + i].revents & POLLIN &&
			    (n = read(r->log[i], bytes, sizeof(bytes))) > 0)
				buf_addstr(&r->said[i], (struct str){bytes, (size_t)n});
		if (!p[0].revents)
			continue;
		n = read(fd, bytes, max - got->n < sizeof(bytes) ? max - got->n : sizeof(bytes));
		if (n <= 0) /* EIO: the end of a terminal */
			break;
		buf_addstr(got, (struct str){bytes, (size_t)n});
	}
	return got->n ? buf_str(got).p : "";
}

static void launcher_gets(struct rank *r, int fd, const char *text)
{
	struct buf got;

	assert_string_equal(read_all(r, fd, READ_MAX, &got), text);
	buf_release(&got);
}

/* Everything is there: bytes come to the log before the launcher gets them. */
static struct str log_has(struct rank *r, int i)
{
	char bytes[65536];
	ssize_t n;

	while ((n = read(r->log[i], bytes, sizeof(bytes))) > 0)
		buf_addstr(&r->said[i], (struct str){bytes, (size_t)n});
	return buf_str(&r->said[i]);
}

static void log_gets(struct rank *r, int i, const char *text)
{
	struct str has = log_has(r, i);

	assert_string_equal(has.n ? has.p : "", text);
}

/* Its wait status. */
static int ends(struct rank *r)
{
	int status;

	assert_int_equal(waitpid(r->pid, &status, 0), r->pid);
	close_fdp(&r->in);
	close_fdp(&r->out);
	close_fdp(&r->err);
	for (int i = 0; i < 2; i++) {
		close_fdp(&r->log[i]);
		buf_release(&r->said[i]);
	}
	return status;
}

static void what_a_rank_prints_goes_to_the_launcher_and_to_the_log(void **state)
{
	struct rank r = start(state, WITH_LOG, "echo out; echo trouble >&2; exit 7");

	launcher_gets(&r, r.out, "out\n");
	launcher_gets(&r, r.err, "trouble\n");
	log_gets(&r, 0, "out\n");
	log_gets(&r, 1, "trouble\n");
	assert_int_equal(WEXITSTATUS(ends(&r)), 7);
}

/* Rule: on the launcher's node nothing stands between it and the rank. */
static void without_a_log_the_rank_has_the_launchers_own_pipe(void **state)
{
	struct rank r = start(state, 0, "stat -L -c %i /proc/self/fd/1");
	struct stat pipe;
	char text[32];

	assert_int_equal(fstat(r.out, &pipe), 0);
	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)pipe.st_ino);
	launcher_gets(&r, r.out, text);
	log_gets(&r, 0, "");
	assert_int_equal(ends(&r), 0);
}

/* Rule: a launcher that kills the group of a rank gets what that has printed, and what the rest of it prints. */
static void what_was_printed_before_a_kill_arrives(void **state)
{
	struct rank r = start(state, WITH_LOG,
			      "echo last; exec 3<&0; "
			      "setsid sh -c \"kill -9 -$$; read go; echo later\" <&3 & wait");

	assert_int_equal(write(r.in, "\n", 1), 1);
	launcher_gets(&r, r.out, "last\nlater\n");
	log_gets(&r, 0, "last\nlater\n");
	assert_int_equal(ends(&r), SIGKILL);
}

/* Rule: the launcher sees the rank itself, and the rank no child that it has not started. */
static void the_rank_has_its_pid_and_no_child(void **state)
{
	struct rank r = start(state, WITH_LOG,
			      "read children </proc/$$/task/$$/children; echo $$ \"$children\"");
	char text[32];

	snprintf(text, sizeof(text), "%d \n", (int)r.pid);
	launcher_gets(&r, r.out, text);
	assert_int_equal(ends(&r), 0);
}

static void a_rank_with_a_terminal_keeps_one(void **state)
{
	struct rank r = start(state, WITH_LOG | TERMINAL, "test -t 1 && ! test -t 2 && printf tty");

	launcher_gets(&r, r.out, "tty");
	log_gets(&r, 0, "tty");
	assert_int_equal(ends(&r), 0);
}

static void both_outputs_in_one_pipe_stay_in_order(void **state)
{
	struct rank r = start(state, WITH_LOG | ONE_OUTPUT, "echo a; echo b >&2; echo c");

	launcher_gets(&r, r.out, "a\nb\nc\n");
	log_gets(&r, 0, "a\nb\nc\n");
	assert_int_equal(ends(&r), 0);
}

static void bytes_are_not_changed(void **state)
{
	struct rank r = start(state, WITH_LOG,
			      "head -c 3000000 /dev/urandom | tee \"$REGATTA_TEE_LOG/all\"");
	CLEANUP(buf_release) struct buf got = {0}, all = {0};

	read_all(&r, r.out, READ_MAX, &got);
	struct str log = log_has(&r, 0);

	buf_init(&all, READ_MAX);
	assert_int_equal(file_read(unit_path(state, "all"), &all, NULL), 0);
	assert_int_equal(all.n, 3000000);
	assert_true(str_eq(buf_str(&got), buf_str(&all)));
	assert_true(str_eq(log, buf_str(&all)));
	assert_int_equal(ends(&r), 0);
}

/* Rule: who copies does not hold what the rank has but for its output. */
static void the_input_ends_with_the_rank(void **state)
{
	struct rank r = start(state, WITH_LOG, "exec <&-; echo closed; sleep 600");
	struct buf got;
	struct pollfd input = {.fd = r.in, .events = 0};

	assert_string_equal(read_all(&r, r.out, strlen("closed\n"), &got), "closed\n");
	buf_release(&got);
	assert_int_equal(poll(&input, 1, WAIT_MS), 1);
	assert_true(input.revents & POLLERR);
	kill(-r.pid, SIGKILL);
	assert_int_equal(ends(&r), SIGKILL);
}

static void a_log_that_nobody_reads_is_one_line(void **state)
{
	struct rank r = start(state, WITH_LOG | NO_READER, "echo out");

	launcher_gets(&r, r.out, "out\n");
	launcher_gets(
		&r, r.err,
		"regatta: the log of this node gets no output of 'sh': No such device or address\n");
	assert_int_equal(ends(&r), 0);
}

static void a_log_that_ends_does_not_end_the_rank(void **state)
{
	struct rank r = start(state, WITH_LOG, "echo one; read go; echo two");
	struct buf got;

	assert_string_equal(read_all(&r, r.out, strlen("one\n"), &got), "one\n");
	buf_release(&got);
	close(r.log[0]);
	r.log[0] = -1;
	assert_int_equal(write(r.in, "\n", 1), 1);
	launcher_gets(&r, r.out, "two\n");
	assert_int_equal(ends(&r), 0);
}

/* As it would without this program between them. */
static void a_launcher_that_leaves_ends_the_rank(void **state)
{
	struct rank r = start(state, WITH_LOG, "exec yes");

	close(r.out);
	r.out = -1;
	launcher_gets(&r, r.err, "");
	assert_int_equal(ends(&r), SIGPIPE);
}

static void a_program_is_found_where_mpirun_has_found_it(void **state)
{
	const char *path = unit_path(state, "odd-program");

	assert_int_equal(file_write(path, STR("#!/bin/sh\necho found\n"), 0700, NULL), 0);
	setenv("OMPI_exec_path", *state, 1);
	struct rank r = start_program(state, 0, (const char *[]){LAYOUT_TEE, "odd-program", NULL});

	unsetenv("OMPI_exec_path");
	launcher_gets(&r, r.out, "found\n");
	assert_int_equal(ends(&r), 0);
}

static void a_program_that_is_not_there_is_one_line(void **state)
{
	static const struct {
		const char *argv[3], *line;
		int code;
	} cases[] = {
		{{LAYOUT_TEE, "no-such-program"},
		 "regatta: command 'no-such-program': No such file or directory\n",
		 127},
		{{LAYOUT_TEE, "/etc/passwd"},
		 "regatta: command '/etc/passwd': Permission denied\n",
		 126},
		{{LAYOUT_TEE}, "regatta: usage: regatta-tee PROGRAM [ARGUMENT...]\n", 2},
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct rank r = start_program(state, WITH_LOG, cases[i].argv);

		launcher_gets(&r, r.err, cases[i].line);
		assert_int_equal(WEXITSTATUS(ends(&r)), cases[i].code);
	}
}

#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, unit_make_dir, unit_remove_dir)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		IN_DIR(what_a_rank_prints_goes_to_the_launcher_and_to_the_log),
		IN_DIR(without_a_log_the_rank_has_the_launchers_own_pipe),
		IN_DIR(what_was_printed_before_a_kill_arrives),
		IN_DIR(the_rank_has_its_pid_and_no_child),
		IN_DIR(a_rank_with_a_terminal_keeps_one),
		IN_DIR(both_outputs_in_one_pipe_stay_in_order),
		IN_DIR(bytes_are_not_changed),
		IN_DIR(the_input_ends_with_the_rank),
		IN_DIR(a_log_that_nobody_reads_is_one_line),
		IN_DIR(a_log_that_ends_does_not_end_the_rank),
		IN_DIR(a_launcher_that_leaves_ends_the_rank),
		IN_DIR(a_program_is_found_where_mpirun_has_found_it),
		IN_DIR(a_program_that_is_not_there_is_one_line),
	};

	if (rank_tee_is(argv[0]))
		return rank_tee_main(argc, argv);
	return cmocka_run_group_tests_name("agent: rank_tee", tests, NULL, NULL);
}
