#include "agent/tend.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/status.h"
#include "base/cleanup.h"
#include "base/err.h"

#define PACE_BYTES 4096 /* a step that moved less is followed by a short pause: */
#define PACE_MS 1	/* a job that writes byte by byte must not cost a wake-up each */
#define BUDGET_LOOK_MS 50
#define KILL_FIRST_MS 1
#define KILL_MAX_MS 50
#define FLUSH_ROUNDS 8 /* 1 MiB, the largest pipe, even where bytes are dropped */

int tend_open(struct tend *t, struct err *err)
{
	t->bell = t->acked = -1;
	for (int s = 0; s < STREAMS; s++)
		t->spools[s].fifo = t->spools[s].file = -1;
	for (int s = 0; s < STREAMS; s++) {
		if (spool_open(&t->spools[s], t->dirfd, (enum stream)s, err) < 0)
			return -1;
		t->spools[s].full_ms = t->limits.full_ms;
	}
	/* Not needed for correctness: without it the watcher is slow. */
	t->bell = openat(t->dirfd, TEND_BELL, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	t->phase = TEND_RUNNING;
	t->exit = (struct exit_report){.attempt = t->attempt, .code = -1};
	return 0;
}

void tend_close(struct tend *t)
{
	for (int s = 0; s < STREAMS; s++)
		spool_close(&t->spools[s]);
	if (t->bell >= 0)
		close(t->bell);
	if (t->acked >= 0)
		close(t->acked);
	t->bell = t->acked = -1;
}

void tend_ring(const struct tend *t)
{
	if (t->bell >= 0 && write(t->bell, "!", 1) < 0)
		return; /* full: nobody has looked for long, and will look when it comes back */
}

/* ---- output ---- */

static uint64_t total_size(const struct tend *t)
{
	uint64_t sum = 0;

	for (int s = 0; s < STREAMS; s++)
		sum += t->spools[s].size;
	return sum;
}

/* More spooled than the master has stored, by more than this node may hold? */
static bool check_budget(struct tend *t)
{
	uint64_t acked[STREAMS] = {0}, total = total_size(t);

	if (t->phase > TEND_DRAINING || total - t->acked_sum <= t->limits.spool_bytes)
		return false;
	/* Made by the agent when it has something to tell. */
	if (t->acked < 0)
		t->acked = openat(t->dirfd, TEND_ACKED, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (t->acked >= 0 && pread(t->acked, acked, sizeof(acked), 0) < 0)
		return false;
	t->acked_sum = 0;
	for (int s = 0; s < STREAMS; s++)
		t->acked_sum += acked[s] < t->spools[s].size ? acked[s] : t->spools[s].size;
	return total - t->acked_sum > t->limits.spool_bytes;
}

static void take_gap(struct tend *t, struct spool *sp, bool at_end)
{
	struct gap g;

	if (!spool_take_gap(sp, at_end, &g))
		return;
	if (t->exit.ngaps < MESSAGE_MAX_GAPS) {
		t->exit.gaps[t->exit.ngaps++] = g;
		status_add_gap(t->status_fd, &g, strerror(sp->why), NULL);
	} else {
		/* No more places: the last one says how much is missing from there on. */
		t->exit.gaps[MESSAGE_MAX_GAPS - 1].bytes += g.bytes;
	}
}

/* True if some stream could take more at once. */
static bool pump(struct tend *t, int64_t now_ms)
{
	uint64_t moved_sum = 0;
	bool more = false;

	t->over_budget = check_budget(t);
	if (t->over_budget)
		return false;
	for (int s = 0; s < STREAMS; s++) {
		struct spool *sp = &t->spools[s];
		uint64_t moved;

		if (sp->eof || t->retry_ms[s] > now_ms)
			continue;
		enum spool_state state = spool_pump(sp, now_ms, &moved);

		moved_sum += moved;
		take_gap(t, sp, false);
		t->retry_ms[s] = state == SPOOL_FULL ? now_ms + SPOOL_RETRY_MS : 0;
		more |= state == SPOOL_MORE;
	}
	if (moved_sum > 0)
		tend_ring(t);
	t->pace_ms = moved_sum > 0 && moved_sum < PACE_BYTES ? now_ms + PACE_MS : 0;
	return more;
}

size_t tend_poll(const struct tend *t, struct pollfd *p)
{
	size_t n = 0;

	if (t->over_budget || t->pace_ms)
		return 0;
	for (int s = 0; s < STREAMS; s++)
		if (!t->spools[s].eof && !t->retry_ms[s])
			p[n++] = (struct pollfd){.fd = t->spools[s].fifo, .events = POLLIN};
	return n;
}

/* ---- the end ---- */

void tend_main_ended(struct tend *t, int wait_status, int64_t now_ms)
{
	int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
	int sig = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;

	/* If this fails the exit record still comes; it only matters if we are killed in between. */
	status_add_ended(t->status_fd, code, sig, NULL);
	tend_main_known(t, code, sig, now_ms);
}

void tend_main_known(struct tend *t, int code, int sig, int64_t now_ms)
{
	t->exited = true;
	t->code = code;
	t->signal = sig;
	t->drain_since_ms = now_ms;
}

void tend_main_unknown(struct tend *t, const char *reason, int64_t now_ms)
{
	t->exit.kind = ERR_UNAVAILABLE;
	exit_add_reason(&t->exit, reason);
	tend_main_known(t, -1, 0, now_ms);
}

void tend_lost(struct tend *t, const char *reason, int64_t now_ms)
{
	t->exit.kind = ERR_UNAVAILABLE;
	exit_add_reason(&t->exit, reason);
	t->exited = true;
	t->code = -1;
	t->phase = TEND_KILLING;
	t->kill_since_ms = now_ms;
}

static void signal_group(pid_t leader, int signo)
{
	/* In its first moments it does not lead a group yet. */
	if (kill(-leader, signo) < 0)
		kill(leader, signo);
}

void tend_stop(struct tend *t, enum stop_cause cause, int64_t now_ms)
{
	int64_t kill_at = cause == STOP_HURRY ? now_ms : now_ms + t->grace_ms;

	if (t->phase > TEND_DRAINING)
		return;
	if (t->stop == STOP_NONE) {
		t->stop = cause;
		t->kill_at_ms = kill_at;
	} else if (cause == STOP_HURRY) {
		t->kill_at_ms = kill_at;
	}
	if (cause != STOP_HURRY && !t->exited && t->job.pid > 0)
		signal_group(t->job.pid, SIGTERM);
}

static void kill_all(struct tend *t)
{
	CLEANUP(proc_list_release) struct proc_list l = {0};

	if (!t->exited && t->job.pid > 0)
		signal_group(t->job.pid, SIGKILL);
	cgroup_kill(&t->cg);
	t->others(t->ctx, &l);
	proc_kill(&l);
}

/* A living process of the job, 0 if there is none. */
static pid_t survivor(struct tend *t)
{
	CLEANUP(proc_list_release) struct proc_list l = {0};

	t->others(t->ctx, &l);
	if (l.n == 0 && cgroup_populated(&t->cg))
		cgroup_procs(&t->cg, &l);
	return l.n > 0 ? l.v[0].pid : 0;
}

static void cannot_kill(struct tend *t, pid_t pid)
{
	char text[80];

	snprintf(text, sizeof(text), "process %d could not be killed", (int)pid);
	t->exit.kind = ERR_UNAVAILABLE;
	exit_add_reason(&t->exit, text);
}

static void explain(struct tend *t)
{
	struct exit_report *e = &t->exit;
	uint64_t missing = 0;
	char text[80];

	e->code = t->code;
	e->signal = t->signal;
	e->oom = t->code != 0 && cgroup_oom_kills(&t->cg) > t->oom_before;
	if (e->oom)
		exit_add_reason(e, "out of memory: the memory limit was reached");
	if (e->kind == ERR_NONE && t->stop == STOP_DEADLINE) {
		e->kind = ERR_TIMEOUT;
		exit_add_reason(e, "stopped: the time limit of the run was reached");
	} else if (e->kind == ERR_NONE && t->stop == STOP_LEASE) {
		e->kind = ERR_UNAVAILABLE;
		exit_add_reason(e, "lease");
	} else if (t->stop == STOP_ASKED && t->killed) {
		exit_add_reason(e, "killed: it did not stop within the grace period");
	}
	for (size_t i = 0; i < e->ngaps; i++)
		missing += e->gaps[i].bytes;
	if (missing > 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " bytes of its output could not be kept",
			 missing);
		exit_add_reason(e, text);
	}
}

/* The record may not fit on a full disk yet: then the step is made again, for as long as bytes may wait. */
static void finish(struct tend *t, int64_t now_ms)
{
	if (!t->finish_since_ms) {
		t->finish_since_ms = now_ms;
		for (int s = 0; s < STREAMS; s++) {
			take_gap(t, &t->spools[s], true);
			t->exit.streams[s] = t->spools[s].size;
		}
		explain(t);
	}
	if (status_add_exit(t->status_fd, &t->exit, NULL) < 0 &&
	    now_ms - t->finish_since_ms < t->limits.full_ms)
		return;
	t->phase = TEND_DONE;
	tend_ring(t);
	fdatasync(t->status_fd); /* after the bell: the master need not wait for our disk */
}

static void step_running(struct tend *t, int64_t now_ms)
{
	if (t->exited) {
		t->phase = TEND_DRAINING;
		return;
	}
	if (t->deadline_ms && now_ms >= t->deadline_ms && t->stop == STOP_NONE)
		tend_stop(t, STOP_DEADLINE, now_ms);
	if (t->stop == STOP_NONE || now_ms < t->kill_at_ms || now_ms < t->next_kill_ms)
		return;
	if (!t->killed)
		t->kill_since_ms = now_ms;
	t->killed = true;
	kill_all(t);
	t->next_kill_ms = now_ms + KILL_MAX_MS;
	if (now_ms - t->kill_since_ms >= t->limits.unkill_ms) {
		cannot_kill(t, t->job.pid);
		t->code = -1;
		t->exited = true;
		t->phase = TEND_FLUSHING;
	}
}

static bool output_closed(const struct tend *t)
{
	return t->spools[STREAM_OUT].eof && t->spools[STREAM_ERR].eof;
}

static bool output_blocked(const struct tend *t)
{
	return t->retry_ms[STREAM_OUT] || t->retry_ms[STREAM_ERR];
}

static void step_draining(struct tend *t, int64_t now_ms)
{
	/* What a full disk keeps in the pipe is not the job's doing: that time does not count. */
	if (output_blocked(t))
		t->drain_since_ms = now_ms;
	bool hurried = t->stop != STOP_NONE && now_ms >= t->kill_at_ms;

	if (!output_closed(t) && !hurried && now_ms - t->drain_since_ms < t->limits.settle_ms)
		return;
	t->phase = TEND_KILLING;
	t->kill_since_ms = now_ms;
	t->next_kill_ms = 0;
}

static void step_killing(struct tend *t, int64_t now_ms)
{
	pid_t left = survivor(t);

	if (left > 0 && now_ms - t->kill_since_ms < t->limits.unkill_ms) {
		int64_t tried = now_ms - t->kill_since_ms;

		kill_all(t);
		t->next_kill_ms = now_ms + (tried < KILL_FIRST_MS ? KILL_FIRST_MS
					    : tried > KILL_MAX_MS ? KILL_MAX_MS
								  : tried);
		return;
	}
	if (left > 0)
		cannot_kill(t, left);
	t->phase = TEND_FLUSHING;
}

/* What is still in the pipes; a full disk gets its time here too. */
static void step_flushing(struct tend *t, int64_t now_ms)
{
	/* Everybody is dead, so this empties the pipes; one that could not be killed must not keep us here. */
	for (int i = 0; i < FLUSH_ROUNDS && pump(t, now_ms); i++)
		;
	for (int s = 0; s < STREAMS; s++)
		if (t->retry_ms[s])
			return;
	finish(t, now_ms);
}

static int64_t until(int64_t at_ms, int64_t now_ms, int64_t soonest)
{
	int64_t wait = at_ms > now_ms ? at_ms - now_ms : 0;

	return soonest < 0 || wait < soonest ? wait : soonest;
}

static int64_t next_wait(const struct tend *t, int64_t now_ms)
{
	int64_t wait = -1;

	if (t->pace_ms)
		wait = until(t->pace_ms, now_ms, wait);
	if (t->over_budget)
		wait = until(now_ms + BUDGET_LOOK_MS, now_ms, wait);
	for (int s = 0; s < STREAMS; s++)
		if (t->retry_ms[s])
			wait = until(t->retry_ms[s], now_ms, wait);
	switch (t->phase) {
	case TEND_RUNNING:
		if (t->deadline_ms && t->stop == STOP_NONE)
			wait = until(t->deadline_ms, now_ms, wait);
		if (t->stop != STOP_NONE)
			wait = until(t->killed ? t->next_kill_ms : t->kill_at_ms, now_ms, wait);
		break;
	case TEND_DRAINING:
		wait = until(t->drain_since_ms + t->limits.settle_ms, now_ms, wait);
		if (t->stop != STOP_NONE)
			wait = until(t->kill_at_ms, now_ms, wait);
		break;
	case TEND_KILLING:
		wait = until(t->next_kill_ms, now_ms, wait);
		break;
	case TEND_FLUSHING:
		wait = until(now_ms + SPOOL_RETRY_MS, now_ms, wait);
		break;
	case TEND_DONE:
		break;
	}
	return wait;
}

int64_t tend_step(struct tend *t, int64_t now_ms)
{
	enum tend_phase before;
	bool more = pump(t, now_ms);

	do {
		before = t->phase;
		switch (t->phase) {
		case TEND_RUNNING:
			step_running(t, now_ms);
			break;
		case TEND_DRAINING:
			step_draining(t, now_ms);
			break;
		case TEND_KILLING:
			step_killing(t, now_ms);
			break;
		case TEND_FLUSHING:
			step_flushing(t, now_ms);
			break;
		case TEND_DONE:
			break;
		}
	} while (t->phase != before);
	if (more && t->phase != TEND_DONE)
		return 0;
	return next_wait(t, now_ms);
}
