/*
 * takeover - the agent supervises a job whose shim was killed.
 *
 * It does the shim's work from its own loop: copy the pipes, enforce the time limit, kill the whole
 * process tree and record the exit.  If the shim was a child of this agent, the job is now, and its
 * exit status is known; otherwise only the forkserver may have seen it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/attempt/attempt.h"
#include "agent/attempt/internal.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "base/vec.h"
#include "sys/loop.h"

#define JOB_CHECK_MS 20
#define ZOMBIE_MS 2000 /* how long to wait for the forkserver to record the job's exit */

void attempt_stop_supervising(struct attempt *at)
{
	for (int s = 0; at->supervise_io && s < at->supervisor.nspools; s++)
		loop_io_free(at->supervise_io[s]);
	free(at->supervise_io);
	at->supervise_io = NULL;
	at->supervise_timer = loop_timer_free(at->supervise_timer);
	at->job_timer = loop_timer_free(at->job_timer);
	if (at->supervising) {
		supervisor_close(&at->supervisor);
		close(at->supervisor.status_fd);
	}
	at->supervising = false;
}

static bool is_helper(const struct attempt *at, const struct proc_info *p)
{
	return at->ev.is_helper(at->ctx, p->pid) || at->ev.is_helper(at->ctx, p->ppid);
}

/*
 * List the job's processes.  If the shim was a child of this agent, they are all descendants of the
 * agent except helpers.  Otherwise they are the main process and all processes with the mark in their
 * environment, except the shim's and the old agent's, which have the same mark.
 */
static void others(void *ctx, struct proc_list *out)
{
	CLEANUP(proc_list_release) struct proc_list all = {0};
	struct attempt *at = ctx;

	if (at->parent) {
		proc_descendants(getpid(), &all);
	} else {
		CLEANUP(freep) char *entry = xasprintf("%s=%s", PROC_MARK, at->cfg->mark);
		struct proc_info main;

		if (at->cfg->mark[0])
			proc_with_env(entry, true, &all);
		if (proc_alive(at->st.job) && proc_read(at->st.job.pid, &main)) {
			*vec_push(&all) = main;
			proc_descendants(at->st.job.pid, &all);
		}
	}
	for (size_t i = 0; i < all.n; i++)
		if (!is_helper(at, &all.v[i]))
			*vec_push(out) = all.v[i];
}

static void supervise_now(void *ctx)
{
	struct attempt *at = ctx;
	struct pollfd p[STREAMS_MAX];
	int64_t wait = supervisor_step(&at->supervisor, clock_boot_ms());

	if (at->supervisor.phase == SUPERVISOR_DONE) {
		struct exit_report e = at->supervisor.exit;

		attempt_stop_supervising(at);
		attempt_ended(at, &e);
		return;
	}
	size_t n = supervisor_poll(&at->supervisor, p);

	for (int s = 0; s < at->supervisor.nspools; s++) {
		bool wanted = false;

		for (size_t i = 0; i < n; i++)
			wanted |= p[i].fd == at->supervisor.spools[s].fifo;
		loop_io_set(at->supervise_io[s], wanted ? LOOP_READ : 0);
	}
	if (wait >= 0)
		loop_timer_set(at->supervise_timer, wait);
	else
		loop_timer_cancel(at->supervise_timer);
}

static void supervise_ready(void *ctx, int fd, int events)
{
	(void)fd;
	(void)events;
	supervise_now(ctx);
}

static bool is_zombie(struct proc_id id)
{
	struct proc_info p;

	return proc_read(id.pid, &p) && p.start == id.start && p.state == 'Z';
}

/*
 * Check a job that is not a child of this agent, whose exit status the agent cannot read.  If its
 * parent is the forkserver, that records the status before it reaps the job; others, such as init,
 * only reap.
 */
static void check_job(void *ctx)
{
	struct attempt *at = ctx;
	int64_t now = clock_boot_ms();

	if (proc_alive(at->st.job)) {
		loop_timer_set(at->job_timer, JOB_CHECK_MS);
		return;
	}
	bool waits = is_zombie(at->st.job);

	attempt_refresh(at);
	if (waits && !at->st.ended && (!at->zombie_ms || now - at->zombie_ms < ZOMBIE_MS)) {
		if (!at->zombie_ms)
			at->zombie_ms = now;
		loop_timer_set(at->job_timer, JOB_CHECK_MS);
		return;
	}
	if (at->st.ended)
		supervisor_main_known(&at->supervisor, at->st.code, at->st.signal, now);
	else
		supervisor_main_unknown(&at->supervisor,
					"agent and shim were killed; exit status unknown", now);
	loop_timer_set(at->supervise_timer, 0);
}

static void explain_missing_record(const struct attempt *at, struct err *err)
{
	if (err->code == ENOENT)
		err_set(err, ERR_NOT_FOUND,
			"%s was removed while the job ran, perhaps by the job itself: how it ended is unknown",
			file_exists(at->dir) ? "the record of the job" : "the node's directory");
}

void attempt_take_over(struct attempt *at)
{
	struct err err = {0};
	siginfo_t si;

	at->supervisor = (struct supervisor){
		.dirfd = at->dirfd,
		.status_fd = -1,
		.attempt = at->no,
		.processes = at->processes,
		.job = at->st.job,
		.terminal = at->st.terminal,
		.cut = at->cut || at->st.cut,
		.metrics_cut = at->metrics_cut || at->st.metrics_cut,
		.cg = at->cg,
		.grace_ms = at->st.grace_ms,
		.deadline_ms = at->st.deadline_ms,
		.limits = at->cfg->limits,
		.others = others,
		.ctx = at,
	};
	if (status_open(at->dirfd, &at->supervisor.status_fd, &err) < 0) {
		explain_missing_record(at, &err);
		at->unproven = true;
		attempt_give_up(at, &err);
		return;
	}
	at->supervising = true;
	if (supervisor_open(&at->supervisor, &err) < 0) {
		attempt_stop_supervising(at);
		at->unproven = true;
		attempt_give_up(at, &err);
		return;
	}
	int n = at->supervisor.nspools;

	for (int s = 0; s < n; s++)
		spool_check_left(&at->supervisor.spools[s]);
	at->supervisor.exit.ngaps = at->st.exit.ngaps;
	memcpy(at->supervisor.exit.gaps, at->st.exit.gaps, sizeof(at->st.exit.gaps));
	at->supervise_io = xcalloc((size_t)n, sizeof(struct loop_io *));
	for (int s = 0; s < n; s++)
		at->supervise_io[s] = loop_io_new(at->loop, at->supervisor.spools[s].fifo, 0,
						  supervise_ready, at);
	at->supervise_timer = loop_timer_new(at->loop, supervise_now, at);
	int64_t now = clock_boot_ms();

	if (at->st.ended)
		supervisor_main_known(&at->supervisor, at->st.code, at->st.signal, now);
	else if (at->st.job.pid == 0)
		supervisor_lost(&at->supervisor, NEVER_STARTED, now);
	else if (!at->parent ||
		 waitid(P_PID, (id_t)at->st.job.pid, &si, WEXITED | WNOHANG | WNOWAIT) < 0)
		at->job_timer = loop_timer_new(at->loop, check_job, at);
	if (at->stop != STOP_NONE)
		supervisor_stop(&at->supervisor, at->stop, now);
	loop_timer_set(at->supervise_timer, 0);
	if (at->job_timer)
		loop_timer_set(at->job_timer, 0);
}
