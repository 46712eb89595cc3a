#include "agent/shim/processes.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent/shim/status.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "sys/child.h"
#include "sys/title.h"

#define CODE_NOT_RUN 126

struct group {
	const struct processes *ps;
	pid_t *pids;	    /* 0: it was not started, or has ended */
	int left;	    /* processes that run */
	int failure;	    /* wait status of the first that failed; 0: none has */
	int64_t kill_at_ms; /* boot time; 0: none has failed */
};

static void fail(struct group *g, int wait_status)
{
	sigset_t pending;

	if (g->failure)
		return;
	g->failure = wait_status;
	g->kill_at_ms = clock_boot_ms() + g->ps->grace_ms;
	/* This process blocks SIGTERM, so one that was sent to the whole group is pending: the others have it too,
	 * and a second one may mean something else to them. */
	sigpending(&pending);
	if (sigismember(&pending, SIGTERM) == 0)
		kill(0, SIGTERM);
}

static void start_all(struct group *g)
{
	for (int i = 0; i < g->ps->n; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			g->ps->run(g->ps->ctx, i);
			_exit(CODE_NOT_RUN);
		}
		if (pid < 0) {
			status_add_process(g->ps->status_fd, i, CODE_NOT_RUN, 0, NULL);
			fail(g, CODE_NOT_RUN << 8);
			return;
		}
		g->pids[i] = pid;
		g->left++;
	}
}

/* One process has ended and is not reaped yet: record how.  Without the record, if the disk is full, its end is
 * not known, but that of the node is. */
static void ended(struct group *g, pid_t pid, int wait_status)
{
	int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
	int sig = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;

	for (int i = 0; i < g->ps->n; i++) {
		if (g->pids[i] != pid)
			continue;
		status_add_process(g->ps->status_fd, i, code, sig, NULL);
		g->pids[i] = 0;
		g->left--;
		if (wait_status != 0)
			fail(g, wait_status);
	}
}

static void reap(struct group *g)
{
	for (;;) {
		siginfo_t si = {0};

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG | WNOWAIT) < 0 || si.si_pid == 0)
			return;
		ended(g, si.si_pid, child_wait_status(&si));
		waitpid(si.si_pid, NULL, 0);
	}
}

static void kill_all(const struct group *g)
{
	for (int i = 0; i < g->ps->n; i++)
		if (g->pids[i] > 0)
			kill(g->pids[i], SIGKILL);
}

/* Until a child ends or, after a failure, the grace period is over. */
static void await(const struct group *g)
{
	struct timespec limit = {.tv_sec = 60};
	sigset_t child;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	if (g->kill_at_ms) {
		int64_t left = g->kill_at_ms - clock_boot_ms();

		left = left > 0 ? left : 10; /* killed: they end soon */
		limit = (struct timespec){.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
	}
	sigtimedwait(&child, NULL, &limit);
}

/* As the first that failed: the same code, or the same signal, without a core file of this process. */
static void __attribute__((noreturn)) end_as(int wait_status)
{
	const struct rlimit none = {0, 0};
	sigset_t all;

	if (!WIFSIGNALED(wait_status))
		_exit(WEXITSTATUS(wait_status));
	setrlimit(RLIMIT_CORE, &none);
	child_reset_handlers();
	sigfillset(&all);
	sigdelset(&all, WTERMSIG(wait_status));
	kill(getpid(), WTERMSIG(wait_status));
	sigprocmask(SIG_SETMASK, &all, NULL);
	_exit(128 + WTERMSIG(wait_status));
}

void processes_main(const struct processes *ps)
{
	struct group g = {.ps = ps, .pids = xcalloc((size_t)ps->n, sizeof(pid_t))};
	sigset_t all;

	prctl(PR_SET_NAME, "regatta-ranks");
	title_role("ranks");
	/* Signals to the group are for the processes; this one ends when they have. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	start_all(&g);
	close(ps->report);
	for (;;) {
		reap(&g);
		if (g.left == 0)
			end_as(g.failure);
		if (g.kill_at_ms && clock_boot_ms() >= g.kill_at_ms)
			kill_all(&g);
		await(&g);
	}
}
