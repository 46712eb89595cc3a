#include "agent/shim/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/shim/remover.h"
#include "agent/shim/status.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "link/layout.h"

#define PACE_BYTES 4096 /* a step that moved less is followed by a pause of PACE_MS, */
#define PACE_MS 1	/* so that a job that writes single bytes does not cause a step for each */
#define BUDGET_CHECK_MS 50
#define KILL_FIRST_MS 1
#define KILL_MAX_MS 50
#define REMOVE_MS 60000 /* how long to try to remove a container before reporting a failure */
#define REMOVE_AGAIN_MS 500
#define CODE_KILLED 137	     /* of docker and podman: the job was killed by SIGKILL */
#define TERMINAL_MS 2000     /* how long the terminal's reader may copy after the job's end */
#define STOPPED_FULL_MS 2000 /* how long the last bytes of a stopped job wait on a full disk */
#define OUTPUT_CUT "its output may be cut: the processes that held it were killed"
#define METRICS_CUT                                                                                \
	"some of its metrics may be lost: the processes that held their FIFO were killed"
#define FLUSH_ROUNDS 8 /* enough for 1 MiB, the largest pipe, even when bytes are dropped */

static void read_fence(struct supervisor *sv)
{
	struct supervisor_fence at;

	if (sv->fence >= 0 && pread(sv->fence, &at, sizeof(at), 0) == (ssize_t)sizeof(at))
		sv->until = at;
}

int supervisor_open(struct supervisor *sv, struct err *err)
{
	sv->wakeup = sv->acked = sv->fence = -1;
	sv->nspools = streams_count(sv->processes);
	sv->spools = xcalloc((size_t)sv->nspools, sizeof(*sv->spools));
	sv->retry_ms = xcalloc((size_t)sv->nspools, sizeof(*sv->retry_ms));
	for (int s = 0; s < sv->nspools; s++)
		sv->spools[s].fifo = sv->spools[s].file = -1;
	for (int s = 0; s < sv->nspools; s++) {
		if (spool_open(&sv->spools[s], sv->dirfd, (enum stream)s, err) < 0)
			return -1;
		sv->spools[s].full_ms = sv->limits.full_ms;
	}
	/* Errors are ignored: without the wakeup FIFO the agent is only slower. */
	sv->wakeup =
		openat(sv->dirfd, SUPERVISOR_WAKEUP, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	sv->fence = openat(sv->dirfd, SUPERVISOR_FENCE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	read_fence(sv);
	sv->phase = SUPERVISOR_RUNNING;
	sv->exit = (struct exit_report){.attempt = sv->attempt, .code = -1};
	return 0;
}

void supervisor_close(struct supervisor *sv)
{
	for (int s = 0; s < sv->nspools; s++)
		spool_close(&sv->spools[s]);
	free(sv->spools);
	free(sv->retry_ms);
	sv->spools = NULL;
	sv->retry_ms = NULL;
	sv->nspools = 0;
	if (sv->wakeup >= 0)
		close(sv->wakeup);
	if (sv->acked >= 0)
		close(sv->acked);
	if (sv->fence >= 0)
		close(sv->fence);
	sv->wakeup = sv->acked = sv->fence = -1;
}

void supervisor_wake_agent(const struct supervisor *sv)
{
	if (sv->wakeup >= 0 && write(sv->wakeup, "!", 1) < 0)
		return; /* the FIFO is full: a wakeup is pending already */
}

/* ---- output ---- */

static uint64_t total_size(const struct supervisor *sv)
{
	uint64_t sum = 0;

	for (int s = 0; s < sv->nspools; s++)
		sum += sv->spools[s].size;
	return sum;
}

/* Are more than spool_bytes bytes not acknowledged by the master? */
static bool check_budget(struct supervisor *sv)
{
	uint64_t acked[STREAMS_MAX] = {0}, total = total_size(sv);

	if (sv->phase > SUPERVISOR_DRAINING || total - sv->acked_sum <= sv->limits.spool_bytes)
		return false;
	/* The agent creates the file with its first acknowledgement. */
	if (sv->acked < 0)
		sv->acked = openat(sv->dirfd, SUPERVISOR_ACKED, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (sv->acked >= 0 && pread(sv->acked, acked, sizeof(acked), 0) < 0)
		return false;
	sv->acked_sum = 0;
	for (int s = 0; s < sv->nspools; s++)
		sv->acked_sum += acked[s] < sv->spools[s].size ? acked[s] : sv->spools[s].size;
	return total - sv->acked_sum > sv->limits.spool_bytes;
}

static void take_gap(struct supervisor *sv, struct spool *sp, bool at_end)
{
	struct gap g;

	if (!spool_take_gap(sp, at_end, &g))
		return;
	g.stream = stream_kind(g.stream);
	if (sv->exit.ngaps < MESSAGE_MAX_GAPS) {
		sv->exit.gaps[sv->exit.ngaps++] = g;
		status_add_gap(sv->status_fd, &g, strerror(sp->why), NULL);
	} else {
		/* The list is full: the last gap counts the bytes of all later ones. */
		sv->exit.gaps[MESSAGE_MAX_GAPS - 1].bytes += g.bytes;
	}
}

/* After a stop request the job's last bytes wait STOPPED_FULL_MS for disk space, which the master may
 * free from its reserve.  Then they are dropped and counted as a gap, so that a user who ends a run on a
 * full disk need not wait. */
static void limit_wait_of_stopped(struct supervisor *sv, int64_t now_ms)
{
	if (!sv->exited || (sv->stop != STOP_ASKED && sv->stop != STOP_HURRY))
		return;
	if (!sv->room_by_ms)
		sv->room_by_ms = now_ms + STOPPED_FULL_MS;
	for (int s = 0; now_ms >= sv->room_by_ms && s < sv->nspools; s++)
		sv->spools[s].full_ms = 0;
}

/* True if a stream may have more bytes. */
static bool pump(struct supervisor *sv, int64_t now_ms)
{
	uint64_t moved_sum = 0;
	bool more = false;

	sv->over_budget = check_budget(sv);
	if (sv->over_budget)
		return false;
	limit_wait_of_stopped(sv, now_ms);
	for (int s = 0; s < sv->nspools; s++) {
		struct spool *sp = &sv->spools[s];
		uint64_t moved;

		if (sp->eof || sv->retry_ms[s] > now_ms)
			continue;
		enum spool_state state = spool_pump(sp, now_ms, &moved);

		moved_sum += moved;
		take_gap(sv, sp, false);
		sv->retry_ms[s] = state == SPOOL_FULL ? now_ms + SPOOL_RETRY_MS : 0;
		more |= state == SPOOL_MORE;
	}
	if (moved_sum > 0)
		supervisor_wake_agent(sv);
	sv->pace_ms = moved_sum > 0 && moved_sum < PACE_BYTES ? now_ms + PACE_MS : 0;
	return more;
}

size_t supervisor_poll(const struct supervisor *sv, struct pollfd *p)
{
	size_t n = 0;

	if (sv->over_budget || sv->pace_ms)
		return 0;
	for (int s = 0; s < sv->nspools; s++)
		if (!sv->spools[s].eof && !sv->retry_ms[s])
			p[n++] = (struct pollfd){.fd = sv->spools[s].fifo, .events = POLLIN};
	return n;
}

/* ---- the end ---- */

void supervisor_main_ended(struct supervisor *sv, int wait_status, int64_t now_ms)
{
	int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;
	int sig = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : 0;

	/* A failure is ignored: the exit record has the status too, unless this process is killed before. */
	status_add_ended(sv->status_fd, code, sig, NULL);
	supervisor_main_known(sv, code, sig, now_ms);
}

void supervisor_main_known(struct supervisor *sv, int code, int sig, int64_t now_ms)
{
	sv->exited = true;
	sv->code = code;
	sv->signal = sig;
	sv->drain_since_ms = now_ms;
}

void supervisor_main_unknown(struct supervisor *sv, const char *reason, int64_t now_ms)
{
	sv->exit.kind = ERR_UNAVAILABLE;
	exit_add_reason(&sv->exit, reason);
	supervisor_main_known(sv, -1, 0, now_ms);
}

static void begin_removing(struct supervisor *sv, int64_t now_ms)
{
	sv->phase = SUPERVISOR_REMOVING;
	sv->remove_since_ms = now_ms;
	sv->remove_next_ms = 0;
}

void supervisor_lost(struct supervisor *sv, const char *reason, int64_t now_ms)
{
	sv->exit.kind = ERR_UNAVAILABLE;
	exit_add_reason(&sv->exit, reason);
	sv->exited = true;
	sv->code = -1;
	begin_removing(sv, now_ms);
}

static void signal_group(pid_t leader, int signo)
{
	/* Before its setsid() the job does not lead a process group. */
	if (kill(-leader, signo) < 0)
		kill(leader, signo);
}

void supervisor_stop(struct supervisor *sv, enum stop_cause cause, int64_t now_ms)
{
	int64_t kill_at = cause == STOP_HURRY ? now_ms : now_ms + sv->grace_ms;

	if (sv->phase > SUPERVISOR_DRAINING)
		return;
	if (sv->stop == STOP_NONE) {
		sv->stop = cause;
		sv->kill_at_ms = kill_at;
	} else if (cause == STOP_HURRY) {
		sv->kill_at_ms = kill_at;
	}
	if (cause != STOP_HURRY && !sv->exited && sv->job.pid > 0)
		signal_group(sv->job.pid, SIGTERM);
}

/* The live processes of the job that the cgroup does not list, without the terminal's reader, which has
 * to copy the last bytes of dead processes and then exits. */
static void list_others(struct supervisor *sv, struct proc_list *out)
{
	size_t kept = 0;

	sv->others(sv->ctx, out);
	for (size_t i = 0; i < out->n; i++)
		if (out->v[i].pid != sv->terminal.pid || out->v[i].start != sv->terminal.start)
			out->v[kept++] = out->v[i];
	out->n = kept;
}

static void kill_all(struct supervisor *sv)
{
	CLEANUP(proc_list_release) struct proc_list l = {0};

	if (!sv->exited && sv->job.pid > 0)
		signal_group(sv->job.pid, SIGKILL);
	cgroup_kill(&sv->cg);
	list_others(sv, &l);
	proc_kill(&l);
}

/* A living process of the job, 0 if there is none. */
static pid_t survivor(struct supervisor *sv)
{
	CLEANUP(proc_list_release) struct proc_list l = {0};

	list_others(sv, &l);
	if (l.n == 0 && cgroup_populated(&sv->cg))
		cgroup_procs(&sv->cg, &l);
	return l.n > 0 ? l.v[0].pid : 0;
}

static void cannot_kill(struct supervisor *sv, pid_t pid)
{
	char text[80];

	snprintf(text, sizeof(text), "process %d could not be killed", (int)pid);
	sv->exit.kind = ERR_UNAVAILABLE;
	exit_add_reason(&sv->exit, text);
}

/* The ends of the processes of a node that has several: whoever started them has recorded each. */
static void add_processes(struct supervisor *sv)
{
	struct exit_report *e = &sv->exit;
	struct status st;
	char text[100];

	if (sv->processes < 2 || status_read(sv->dirfd, &st, NULL) < 0)
		return;
	e->nprocesses = st.exit.nprocesses;
	memcpy(e->processes, st.exit.processes, sizeof(e->processes));
	if (st.failed < 0 || sv->stop != STOP_NONE)
		return;
	snprintf(text, sizeof(text), "process %d of %d failed first", st.failed, sv->processes);
	if (st.early >= 0)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 ", process %d had ended with exit code 0 before", st.early);
	exit_add_reason(e, text);
}

static void explain(struct supervisor *sv)
{
	struct exit_report *e = &sv->exit;
	uint64_t missing = 0;
	char text[100], span[32];

	e->code = sv->code;
	e->signal = sv->signal;
	add_processes(sv);
	e->oom = sv->code != 0 && (sv->oom || cgroup_oom_kills(&sv->cg) > sv->oom_before);
	if (e->oom)
		exit_add_reason(e, "out of memory: the memory limit was reached");
	/* Podman does not see it on every system (version 1 of cgroups beside version 2). */
	if (!e->oom && sv->limited && sv->code == CODE_KILLED && sv->stop == STOP_NONE) {
		e->oom = true;
		exit_add_reason(e, "probably out of memory: it was killed, and has a memory limit");
	}
	if (e->kind == ERR_NONE && sv->stop == STOP_DEADLINE) {
		e->kind = ERR_TIMEOUT;
		exit_add_reason(e, "stopped: the time limit of the run was reached");
	} else if (e->kind == ERR_NONE && sv->stop == STOP_LEASE) {
		e->kind = ERR_UNAVAILABLE;
		exit_add_reason(e, "lease");
	} else if (e->kind == ERR_NONE && sv->stop == STOP_LOST) {
		e->kind = ERR_UNAVAILABLE;
		clock_format_span(sv->until.lost_ms, span);
		snprintf(text, sizeof(text),
			 "no master for %s: stopped so that another host can go on", span);
		exit_add_reason(e, text);
	} else if (sv->stop == STOP_ASKED && sv->killed) {
		exit_add_reason(e, "killed: it did not stop within the grace period");
	}
	/* Even with exit code 0: the stored output must not pass for the whole output. */
	if (sv->cut) {
		e->kind = e->kind == ERR_NONE ? ERR_UNAVAILABLE : e->kind;
		exit_add_reason(e, OUTPUT_CUT);
	}
	/* Figures are not the result of a job: it may still succeed. */
	if (sv->metrics_cut)
		exit_add_reason(e, METRICS_CUT);
	for (size_t i = 0; i < e->ngaps; i++)
		missing += e->gaps[i].bytes;
	if (missing > 0) {
		snprintf(text, sizeof(text), "%" PRIu64 " bytes of its output could not be kept",
			 missing);
		exit_add_reason(e, text);
	}
}

/* Write the exit record.  On a full disk the step is repeated, as long as output may wait for space. */
static void finish(struct supervisor *sv, int64_t now_ms)
{
	if (!sv->finish_since_ms) {
		sv->finish_since_ms = now_ms;
		for (int s = 0; s < sv->nspools; s++) {
			take_gap(sv, &sv->spools[s], true);
			sv->exit.streams[s] = sv->spools[s].size;
		}
		explain(sv);
	}
	if (status_add_exit(sv->status_fd, &sv->exit, NULL) < 0 &&
	    now_ms - sv->finish_since_ms < sv->limits.full_ms)
		return;
	sv->phase = SUPERVISOR_DONE;
	supervisor_wake_agent(sv);
	/* After the wakeup, so that the report does not wait for the disk. */
	fdatasync(sv->status_fd);
}

/* Has the master not answered for so long that the node may be replaced? */
static bool fence_reached(struct supervisor *sv, int64_t now_ms)
{
	if (!sv->until.at_ms || now_ms < sv->until.at_ms)
		return false;
	read_fence(sv); /* the agent may have updated it */
	return now_ms >= sv->until.at_ms;
}

int64_t supervisor_fence_ms(const struct supervisor *sv)
{
	if (sv->killed || sv->phase > SUPERVISOR_DRAINING)
		return 0;
	if (sv->stop == STOP_NONE)
		return sv->until.at_ms;
	return sv->until.at_ms ? sv->kill_at_ms : 0;
}

static void step_running(struct supervisor *sv, int64_t now_ms)
{
	if (sv->exited) {
		sv->phase = SUPERVISOR_DRAINING;
		return;
	}
	if (sv->deadline_ms && now_ms >= sv->deadline_ms && sv->stop == STOP_NONE)
		supervisor_stop(sv, STOP_DEADLINE, now_ms);
	if (sv->stop == STOP_NONE && fence_reached(sv, now_ms))
		supervisor_stop(sv, STOP_LOST, now_ms);
	if (sv->stop == STOP_NONE || now_ms < sv->kill_at_ms || now_ms < sv->next_kill_ms)
		return;
	if (!sv->killed)
		sv->kill_since_ms = now_ms;
	sv->killed = true;
	kill_all(sv);
	sv->next_kill_ms = now_ms + KILL_MAX_MS;
	if (now_ms - sv->kill_since_ms >= sv->limits.unkill_ms) {
		cannot_kill(sv, sv->job.pid);
		sv->code = -1;
		sv->exited = true;
		sv->phase = SUPERVISOR_FLUSHING;
	}
}

static bool output_closed(const struct supervisor *sv)
{
	for (int s = 0; s < sv->nspools; s++)
		if (s != STREAM_METRICS && !sv->spools[s].eof)
			return false;
	return true;
}

static bool output_blocked(const struct supervisor *sv)
{
	for (int s = 0; s < sv->nspools; s++)
		if (s != STREAM_METRICS && sv->retry_ms[s])
			return true;
	return false;
}

static void step_draining(struct supervisor *sv, int64_t now_ms)
{
	/* settle_ms does not count while a full disk keeps bytes in the pipe. */
	if (output_blocked(sv))
		sv->drain_since_ms = now_ms;
	/* STOP_ASKED, not STOP_LOST: the report is the exit of the main process, which ended by itself. */
	if (sv->stop == STOP_NONE && fence_reached(sv, now_ms))
		supervisor_stop(sv, STOP_ASKED, now_ms);
	bool hurried = sv->stop != STOP_NONE && now_ms >= sv->kill_at_ms;

	if (!output_closed(sv) && !hurried && now_ms - sv->drain_since_ms < sv->limits.settle_ms)
		return;
	begin_removing(sv, now_ms);
}

void supervisor_remover_ended(struct supervisor *sv, int wait_status, int64_t now_ms)
{
	int code = WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1;

	sv->remover = 0;
	sv->oom |= code == REMOVER_OOM;
	sv->limited |= code == REMOVER_LIMITED;
	sv->removed = code == REMOVER_DONE || code == REMOVER_OOM || code == REMOVER_LIMITED;
	sv->remove_next_ms = now_ms + REMOVE_AGAIN_MS;
}

static bool has_container(const struct supervisor *sv)
{
	return faccessat(sv->dirfd, LAYOUT_CONTAINER, F_OK, 0) == 0;
}

static void step_removing(struct supervisor *sv, int64_t now_ms)
{
	bool owed = !sv->removed && has_container(sv);
	bool over = now_ms - sv->remove_since_ms >= REMOVE_MS;

	if (owed && !over) {
		if (sv->remover == 0 && now_ms >= sv->remove_next_ms) {
			pid_t pid = remover_fork(sv->dirfd);

			sv->remover = pid > 0 ? pid : 0;
			sv->remove_next_ms = now_ms + REMOVE_AGAIN_MS;
		}
		return;
	}
	if (owed) {
		sv->exit.kind = ERR_UNAVAILABLE;
		exit_add_reason(&sv->exit, "its container could not be removed");
	}
	sv->phase = SUPERVISOR_KILLING;
	sv->kill_since_ms = now_ms;
	sv->next_kill_ms = 0;
}

static void step_killing(struct supervisor *sv, int64_t now_ms)
{
	pid_t left = survivor(sv);

	if (left > 0 && now_ms - sv->kill_since_ms < sv->limits.unkill_ms) {
		int64_t tried = now_ms - sv->kill_since_ms;

		kill_all(sv);
		sv->next_kill_ms = now_ms + (tried < KILL_FIRST_MS ? KILL_FIRST_MS
					     : tried > KILL_MAX_MS ? KILL_MAX_MS
								   : tried);
		return;
	}
	if (left > 0)
		cannot_kill(sv, left);
	sv->phase = SUPERVISOR_FLUSHING;
}

/* Has the terminal's reader copied everything?  If it does not exit within TERMINAL_MS, a process that
 * could not be killed has the terminal open: the reader is killed. */
static bool terminal_is_read(struct supervisor *sv, int64_t now_ms)
{
	if (sv->terminal.pid == 0 || sv->spools[STREAM_OUT].eof)
		return true;
	if (!sv->flush_since_ms)
		sv->flush_since_ms = now_ms;
	if (now_ms - sv->flush_since_ms < TERMINAL_MS)
		return false;
	if (proc_alive(sv->terminal))
		kill(sv->terminal.pid, SIGKILL);
	return true;
}

/* Store the bytes left in the pipes; a full disk is waited for here too. */
static void step_flushing(struct supervisor *sv, int64_t now_ms)
{
	/* The writers are dead, so this empties the pipes.  Bounded, because one may have survived. */
	for (int i = 0; i < FLUSH_ROUNDS && pump(sv, now_ms); i++)
		;
	for (int s = 0; s < sv->nspools; s++)
		if (sv->retry_ms[s]) {
			sv->flush_since_ms = 0;
			return;
		}
	if (terminal_is_read(sv, now_ms))
		finish(sv, now_ms);
}

static int64_t until(int64_t at_ms, int64_t now_ms, int64_t soonest)
{
	int64_t wait = at_ms > now_ms ? at_ms - now_ms : 0;

	return soonest < 0 || wait < soonest ? wait : soonest;
}

static int64_t next_wait(const struct supervisor *sv, int64_t now_ms)
{
	int64_t wait = -1;

	if (sv->pace_ms)
		wait = until(sv->pace_ms, now_ms, wait);
	if (sv->over_budget)
		wait = until(now_ms + BUDGET_CHECK_MS, now_ms, wait);
	for (int s = 0; s < sv->nspools; s++)
		if (sv->retry_ms[s])
			wait = until(sv->retry_ms[s], now_ms, wait);
	if (supervisor_fence_ms(sv))
		wait = until(supervisor_fence_ms(sv), now_ms, wait);
	switch (sv->phase) {
	case SUPERVISOR_RUNNING:
		if (sv->deadline_ms && sv->stop == STOP_NONE)
			wait = until(sv->deadline_ms, now_ms, wait);
		if (sv->stop != STOP_NONE)
			wait = until(sv->killed ? sv->next_kill_ms : sv->kill_at_ms, now_ms, wait);
		break;
	case SUPERVISOR_DRAINING:
		wait = until(sv->drain_since_ms + sv->limits.settle_ms, now_ms, wait);
		if (sv->stop != STOP_NONE)
			wait = until(sv->kill_at_ms, now_ms, wait);
		break;
	case SUPERVISOR_REMOVING:
		wait = until(sv->remover ? sv->remove_since_ms + REMOVE_MS : sv->remove_next_ms,
			     now_ms, wait);
		break;
	case SUPERVISOR_KILLING:
		wait = until(sv->next_kill_ms, now_ms, wait);
		break;
	case SUPERVISOR_FLUSHING:
		wait = until(now_ms + SPOOL_RETRY_MS, now_ms, wait);
		break;
	case SUPERVISOR_DONE:
		break;
	}
	return wait;
}

int64_t supervisor_step(struct supervisor *sv, int64_t now_ms)
{
	enum supervisor_phase before;
	bool more = pump(sv, now_ms);

	do {
		before = sv->phase;
		switch (sv->phase) {
		case SUPERVISOR_RUNNING:
			step_running(sv, now_ms);
			break;
		case SUPERVISOR_DRAINING:
			step_draining(sv, now_ms);
			break;
		case SUPERVISOR_REMOVING:
			step_removing(sv, now_ms);
			break;
		case SUPERVISOR_KILLING:
			step_killing(sv, now_ms);
			break;
		case SUPERVISOR_FLUSHING:
			step_flushing(sv, now_ms);
			break;
		case SUPERVISOR_DONE:
			break;
		}
	} while (sv->phase != before);
	if (more && sv->phase != SUPERVISOR_DONE)
		return 0;
	return next_wait(sv, now_ms);
}
