#pragma once
/*
 * supervisor - the output, the limits and the end of one running job.
 *
 * It runs in the shim (with a poll loop) or, when the shim was killed, in the agent (with its event
 * loop).  The owner calls supervisor_step() when a descriptor of supervisor_poll() is ready, when a
 * child was reaped and when the time returned by the last step has passed.
 *
 *	running -> draining -> removing -> killing -> flushing -> done
 *
 * draining: the main process has exited; wait until its output is closed, at most settle_ms.
 * removing: remove the job's container, if it runs in one: it may outlive the main process, which is the program
 * that has started it.  killing: kill all processes of the job, until none is left.  flushing: store the last bytes of the
 * pipes.  done: the exit record is on disk.
 */
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "link/message.h"
#include "agent/shim/spool.h"
#include "sys/cgroup.h"
#include "sys/proctree.h"

struct supervisor_limits {
	int64_t settle_ms;    /* how long output may stay open after the main process's exit */
	int64_t unkill_ms;    /* how long to try to kill before reporting a failure */
	int64_t full_ms;      /* how long a full disk blocks the job before bytes are dropped */
	uint64_t spool_bytes; /* unacknowledged bytes before the job is blocked */
};
#define SUPERVISOR_SETTLE_MS 5000
#define SUPERVISOR_UNKILL_MS 10000
#define SUPERVISOR_SPOOL_BYTES (UINT64_C(1) << 30)

/* The time at which the job is stopped, because its node may be replaced from then on. */
struct supervisor_fence {
	int64_t at_ms; /* boot time */
	int64_t lost_ms; /* at_ms is so long after the sending of the last message that the master answered */
};

enum stop_cause { STOP_NONE, STOP_ASKED, STOP_HURRY, STOP_LEASE, STOP_DEADLINE, STOP_LOST };

enum supervisor_phase {
	SUPERVISOR_RUNNING,
	SUPERVISOR_DRAINING,
	SUPERVISOR_REMOVING,
	SUPERVISOR_KILLING,
	SUPERVISOR_FLUSHING,
	SUPERVISOR_DONE
};

/* Add the live processes of the job that the cgroup does not show. */
typedef void (*supervisor_others_fn)(void *ctx, struct proc_list *out);

struct supervisor {
	/* Set by the owner before supervisor_open. */
	int dirfd, status_fd;
	int attempt;
	int processes; /* of the node; each of several has two pipes of its own */
	struct proc_id job;
	struct proc_id terminal; /* the reader of the job's terminal; pid 0: it has none */
	bool cut;		 /* bytes in a pipe may be lost */
	bool metrics_cut;	 /* the same in the metrics FIFO */
	struct cgroup cg;
	uint64_t oom_before;
	int64_t grace_ms, deadline_ms; /* deadline: boot time; 0 = none */
	struct supervisor_limits limits;
	supervisor_others_fn others;
	void *ctx;

	/* Private. */
	enum supervisor_phase phase;
	int nspools;
	struct spool *spools;
	int64_t *retry_ms; /* of each: earliest next try; 0 = now */
	int wakeup, acked, fence;
	struct supervisor_fence until; /* as read last; at_ms 0: none */
	uint64_t acked_sum;
	bool over_budget;
	int64_t pace_ms;
	bool exited, killed;
	int code, signal;
	enum stop_cause stop;
	int64_t kill_at_ms, drain_since_ms, kill_since_ms, next_kill_ms, flush_since_ms,
		finish_since_ms;
	pid_t remover; /* removes the container; 0: not now */
	int64_t remove_since_ms, remove_next_ms;
	bool removed, limited, oom; /* the container: gone; has a memory limit; had reached it */
	int64_t room_by_ms; /* job stopped and ended, disk full: bytes are dropped from then on */
	struct exit_report exit; /* complete in SUPERVISOR_DONE */
};

/* The files beside the spools. */
#define SUPERVISOR_WAKEUP "wakeup.fifo" /* a byte is written to it at each new record or output */
#define SUPERVISOR_ACKED "acked" /* a u64 per stream: bytes of it that the master has stored */
/* A struct supervisor_fence, updated by the agent at each answer of the master.  Without the file the
 * node is never replaced. */
#define SUPERVISOR_FENCE "fence"

int supervisor_open(struct supervisor *sv, struct err *err);
void supervisor_close(struct supervisor *sv);
/* Fills p[0..n) with the descriptors to wait for; n <= nspools. */
size_t supervisor_poll(const struct supervisor *sv, struct pollfd *p);
/* Boot time of the fence, at which a step is due even after a suspend of the machine; 0: none. */
int64_t supervisor_fence_ms(const struct supervisor *sv);
/* Returns the milliseconds until the next step is due; -1: only at an event. */
int64_t supervisor_step(struct supervisor *sv, int64_t now_ms);
void supervisor_stop(struct supervisor *sv, enum stop_cause cause, int64_t now_ms);
/* The main process has ended and is not reaped yet: record its status. */
void supervisor_main_ended(struct supervisor *sv, int wait_status, int64_t now_ms);
/* The child sv->remover has ended. */
void supervisor_remover_ended(struct supervisor *sv, int wait_status, int64_t now_ms);
/* The main process ended under an earlier owner; the status file says how. */
void supervisor_main_known(struct supervisor *sv, int code, int signal, int64_t now_ms);
/* The job's exit status is lost: kill its remaining processes and report `reason`. */
void supervisor_lost(struct supervisor *sv, const char *reason, int64_t now_ms);
/* The main process has ended, and its exit status is unknown. */
void supervisor_main_unknown(struct supervisor *sv, const char *reason, int64_t now_ms);
/* Write to the wakeup FIFO: there is new output or a new record. */
void supervisor_wake_agent(const struct supervisor *sv);
