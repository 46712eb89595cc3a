#include "sys/child_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/str.h"
#include "base/vec.h"

#define REAP_MS 20
#define CODE_MAX_BYTES (64 * 1024)
#define LINE_MAX_BYTES 300
#define PIPE_BYTES (64 * 1024)

/* What a program prints as errors: of its last line that is not empty as much as a message can take. */
struct errors {
	int fd; /* of a pipe, does not block */
	char line[LINE_MAX_BYTES], last[LINE_MAX_BYTES];
	size_t n, nlast;
};

static void end_line(struct errors *e)
{
	struct str text = str_trim((struct str){e->line, e->n});

	if (text.n)
		memcpy(e->last, text.p, text.n);
	e->nlast = text.n ? text.n : e->nlast;
	e->n = 0;
}

/* A carriage return ends a line, too: what stands before it a terminal would not show any more. */
static void add_errors(struct errors *e, struct str bytes)
{
	for (size_t i = 0; i < bytes.n; i++)
		if (bytes.p[i] == '\n' || bytes.p[i] == '\r')
			end_line(e);
		else if (bytes.p[i] && e->n < sizeof(e->line))
			e->line[e->n++] = bytes.p[i];
}

/* One pipe full at most: what the program has started may write for ever. */
static void read_errors(struct errors *e)
{
	char bytes[4096];

	for (size_t i = 0; i < PIPE_BYTES / sizeof(bytes); i++) {
		ssize_t n = read(e->fd, bytes, sizeof(bytes));

		if (n <= 0)
			return;
		add_errors(e, (struct str){bytes, (size_t)n});
	}
}

/* Until there is output to read; errors are read meanwhile. */
static int wait_output(int fd, struct errors *e, const struct deadline *d, struct err *err)
{
	for (;;) {
		struct pollfd p[] = {{.fd = fd, .events = POLLIN},
				     {.fd = e ? e->fd : -1, .events = POLLIN}};

		if (d->stop && *d->stop)
			return err_set(err, ERR_CANCELLED, "cancelled");
		int n = poll(p, 2, deadline_slice_ms(d));

		if (n > 0 && p[0].revents)
			return 0;
		if (n < 0 && errno != EINTR)
			return err_errno(err, errno, "wait for its output");
		if (n > 0 && e)
			read_errors(e);
		if (n >= 0 && deadline_check(d, "it did not end", err) < 0)
			return -1;
	}
}

static int read_output(int fd, struct errors *e, const struct deadline *d, struct buf *out,
		       struct err *err)
{
	for (;;) {
		char *room = buf_reserve(out, 4096);

		if (!room)
			return err_set(err, ERR_CAPACITY, "it prints more than %zu bytes",
				       out->max);
		if (wait_output(fd, e, d, err) < 0)
			return -1;
		ssize_t n = read(fd, room, 4096);

		if (n < 0 && errno != EINTR)
			return err_errno(err, errno, "read its output");
		if (n == 0)
			return 0;
		buf_commit(out, n > 0 ? (size_t)n : 0);
	}
}

/* Waits for the exit of the program; one that has closed its output and goes on is killed at the
 * deadline. */
static int reap(pid_t pid, struct errors *e, const struct deadline *d, bool kill_it,
		int *ret_status, struct err *err)
{
	if (kill_it)
		kill(-pid, SIGKILL);
	for (;;) {
		pid_t got = waitpid(pid, ret_status, kill_it ? 0 : WNOHANG);

		if (got == pid)
			return 0;
		if (got < 0 && errno != EINTR) {
			*ret_status = 0; /* a process that reaps all of its children was faster */
			return 0;
		}
		if (got == 0 && deadline_check(d, "it did not end", err) < 0) {
			int ignored;

			reap(pid, NULL, d, true, &ignored, NULL);
			return -1;
		}
		if (got == 0) {
			if (e)
				read_errors(e);
			poll(NULL, 0, REAP_MS);
		}
	}
}

/* The output goes to out, and what spec.err says; errors that are kept apart are read from e. */
static int run(struct child_spec spec, struct errors *e, const struct deadline *d, struct buf *out,
	       int *ret_status, struct err *err)
{
	CLEANUP(close_fdp) int in = -1;
	int pipes[2];
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	in = pipes[0];
	spec.out = spec.out == CHILD_KEPT ? pipes[1] : spec.out;
	spec.err = spec.err == CHILD_KEPT ? pipes[1] : spec.err;
	spec.session = true;
	int rc = child_spawn(&spec, &pid, err);

	close(pipes[1]);
	if (rc < 0)
		return -1;
	rc = read_output(in, e, d, out, err);
	return reap(pid, e, d, rc < 0, ret_status, rc < 0 ? NULL : err) < 0 || rc < 0 ? -1 : 0;
}

int child_run(struct child_spec spec, const struct deadline *d, struct buf *out, int *ret_status,
	      struct err *err)
{
	return run(spec, NULL, d, out, ret_status, err);
}

int child_run_helper(struct child_spec spec, const struct deadline *d, struct buf *out,
		     struct err *err)
{
	CLEANUP(close_fdp) int from = -1;
	CLEANUP(close_fdp) int to = -1; /* open to the end, so that the pipe has none before */
	int pipes[2], status;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	from = pipes[0];
	to = pipes[1];
	fcntl(from, F_SETFL, O_NONBLOCK);
	struct errors e = {.fd = from};

	spec.out = CHILD_KEPT;
	spec.err = to;
	if (run(spec, &e, d, out, &status, err) < 0)
		return -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	read_errors(&e);
	end_line(&e);
	struct str why = {e.last, e.nlast};

	if (!why.n)
		why = STR("run it to see why");
	return err_set(err, ERR_DENIED, "it ended with %s %d: %.*s",
		       WIFEXITED(status) ? "exit code" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status), STR_ARG(why));
}

int child_run_words(const char *const *argv, const struct deadline *d, struct buf *out,
		    int *ret_code, struct err *err)
{
	const struct child_spec spec = {.file = argv[0],
					.argv = argv,
					.env = (const char *const *)environ,
					.in = -1,
					.out = CHILD_KEPT,
					.err = CHILD_KEPT};
	int status;

	if (child_run(spec, d, out, &status, err) < 0)
		return -1;
	*ret_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return 0;
}

/*
 * The standard input of the shell is a pipe whose other end only this process has: its end kills the session.  The exit
 * code is printed, because another thread may have reaped the shell.
 */
static const char job_script[] =
	"d=$1 i=$2 l=$3; shift 3; exec 3<&0; { read -r x <&3; kill -KILL 0; } >/dev/null & "
	"(cd \"$d\" && exec \"$@\") <\"$i\" >>\"$l\" 2>&1 3<&-; c=$?; kill -KILL $!; echo $c";

static int read_code(struct str text, int *ret_code, struct err *err)
{
	int64_t code;

	if (!str_to_i64(str_trim(text), &code))
		return err_set(err, ERR_IO, "it was killed");
	*ret_code = (int)code;
	return 0;
}

int child_run_job(const struct child_job *job, const struct deadline *d, int *ret_code,
		  struct err *err)
{
	CLEANUP(buf_release) struct buf out = {0};
	VEC(const char *) argv = {0};
	const char *const first[] = {"sh", "-c", job_script, "sh", job->dir, job->in, job->log};
	int pipes[2], status;

	if (pipe2(pipes, O_CLOEXEC) < 0)
		return err_errno(err, errno, "make a pipe");
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++)
		*vec_push(&argv) = first[i];
	for (size_t i = 0; job->argv[i]; i++)
		*vec_push(&argv) = job->argv[i];
	*vec_push(&argv) = NULL;
	buf_init(&out, CODE_MAX_BYTES);
	int rc = child_run((struct child_spec){.file = "/bin/sh",
					       .argv = argv.v,
					       .env = job->env,
					       .in = pipes[0],
					       .out = CHILD_KEPT,
					       .err = -1},
			   d, &out, &status, err);

	close(pipes[0]);
	close(pipes[1]);
	vec_release(&argv);
	return rc < 0 ? -1 : read_code(buf_str(&out), ret_code, err);
}
