#include "agent/forked_task.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/child.h"
#include "sys/loop.h"
#include "sys/proctree.h"

#define RESULT_FD 3

struct forked_task {
	struct loop_io *io;
	pid_t pid;
	int fd;
	struct buf text;
	forked_task_done_fn done;
	void *ctx;
};

static void __attribute__((noreturn)) work(forked_task_fn fn, void *ctx, int result, pid_t parent)
{
	struct buf out;

	child_reset_signals();
	signal(SIGPIPE, SIG_IGN); /* a closed connection is an error of write() */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1); /* the parent died before prctl() */
	if (result != RESULT_FD && dup2(result, RESULT_FD) < 0)
		_exit(1);
	child_close_from(RESULT_FD + 1);
	buf_init(&out, FORKED_TASK_MAX_TEXT);
	fn(ctx, &out);
	_exit(file_write_all(RESULT_FD, buf_str(&out).p, out.n, NULL) < 0 ? 1 : 0);
}

static void finished(struct forked_task *t)
{
	/* Copied, because `done` may free t. */
	forked_task_done_fn done = t->done;
	void *ctx = t->ctx;
	struct buf text = t->text;

	t->io = loop_io_free(t->io);
	buf_init(&t->text, FORKED_TASK_MAX_TEXT);
	if (t->pid > 0)
		waitpid(t->pid, NULL, 0); /* the child has closed its end: it is exiting */
	t->pid = 0;
	done(ctx, buf_str(&text));
	buf_release(&text);
}

static void readable(void *ctx, int fd, int events)
{
	struct forked_task *t = ctx;
	char *room = buf_reserve(&t->text, 4096);
	char over[256];
	ssize_t n;

	(void)events;
	n = read(fd, room ? room : over, room ? 4096 : sizeof(over));
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0)
		finished(t);
	else if (room)
		buf_commit(&t->text, (size_t)n);
}

int forked_task_start(struct loop *l, forked_task_fn fn, forked_task_done_fn done, void *ctx,
		      struct forked_task **ret, struct err *err)
{
	pid_t parent = getpid(), pid;
	sigset_t all, before;
	int p[2];

	if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
		return err_errno(err, errno, "make a pipe");
	fcntl(p[1], F_SETFL, 0);
	/* The event loop's handlers must not run in the child. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid == 0)
		work(fn, ctx, p[1], parent);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(p[1]);
	if (pid < 0) {
		close(p[0]);
		return err_errno(err, errno, "fork");
	}
	struct forked_task *t = xcalloc(1, sizeof(*t));

	*t = (struct forked_task){.pid = pid, .fd = p[0], .done = done, .ctx = ctx};
	buf_init(&t->text, FORKED_TASK_MAX_TEXT);
	t->io = loop_io_new(l, p[0], LOOP_READ, readable, t);
	*ret = t;
	return 0;
}

void forked_task_reaped(struct forked_task *t, pid_t pid)
{
	if (t && t->pid == pid)
		t->pid = 0;
}

bool forked_task_is(const struct forked_task *t, pid_t pid)
{
	return t && t->pid > 0 && t->pid == pid;
}

/* With the programs that it has started.  Stopped first, so that it starts no other. */
static void kill_task(pid_t pid)
{
	CLEANUP(proc_list_release) struct proc_list started = {0};

	kill(pid, SIGSTOP);
	proc_descendants(pid, &started);
	kill(pid, SIGKILL);
	proc_kill(&started);
	waitpid(pid, NULL, 0);
}

struct forked_task *forked_task_free(struct forked_task *t)
{
	if (!t)
		return NULL;
	t->io = loop_io_free(t->io);
	if (t->pid > 0)
		kill_task(t->pid);
	close(t->fd);
	buf_release(&t->text);
	free(t);
	return NULL;
}
