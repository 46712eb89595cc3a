#pragma once
/*
 * supervisor - looks after one running job: its output, its limits, its end.
 *
 * One implementation for the two processes that may do it: the shim (its own
 * poll loop) and, when the shim was killed, the agent (its event loop).  The
 * owner calls supervisor_step() when a descriptor of supervisor_poll() is ready, when a child was
 * reaped and when the time returned by the last step has passed.
 *
 *	running -> draining -> killing -> flushing -> done
 *
 * draining: the main process has exited; wait until its output is closed, or
 * settle_ms.  killing: everything that the job started dies, until nobody is
 * left.  flushing: the last bytes of the pipes.  done: the exit record is on disk.
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
	int64_t settle_ms;    /* output still open after the main process's exit */
	int64_t unkill_ms;    /* how long to try to kill before saying that it cannot be done */
	int64_t full_ms;      /* how long a full disk blocks the job before bytes are dropped */
	uint64_t spool_bytes; /* unacknowledged bytes before the job is blocked */
};
#define SUPERVISOR_SETTLE_MS 5000
#define SUPERVISOR_UNKILL_MS 10000
#define SUPERVISOR_SPOOL_BYTES (UINT64_C(1) << 30)

/* When a job is stopped whose node another may carry then. */
struct supervisor_fence {
	int64_t at_ms;	 /* boot time */
	int64_t lost_ms; /* so long after what the master answered last was sent */
};

enum stop_cause { STOP_NONE, STOP_ASKED, STOP_HURRY, STOP_LEASE, STOP_DEADLINE, STOP_LOST };

enum supervisor_phase {
	SUPERVISOR_RUNNING,
	SUPERVISOR_DRAINING,
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
	struct proc_id job;
	struct proc_id terminal; /* the reader of its terminal; pid 0: it has none */
	bool cut;		 /* bytes that waited in a pipe may be lost */
	struct cgroup cg;
	uint64_t oom_before;
	int64_t grace_ms, deadline_ms; /* deadline: boot time; 0 = none */
	struct supervisor_limits limits;
	supervisor_others_fn others;
	void *ctx;

	/* Its own state. */
	enum supervisor_phase phase;
	struct spool spools[STREAMS];
	int64_t retry_ms[STREAMS]; /* earliest next try; 0 = now */
	int wakeup, acked, fence;
	struct supervisor_fence until; /* as read last; at_ms 0: there is none */
	uint64_t acked_sum;
	bool over_budget;
	int64_t pace_ms;
	bool exited, killed;
	int code, signal;
	enum stop_cause stop;
	int64_t kill_at_ms, drain_since_ms, kill_since_ms, next_kill_ms, flush_since_ms,
		finish_since_ms;
	int64_t room_by_ms; /* stopped and ended: from then on bytes without room are dropped */
	struct exit_report exit; /* whole once done */
};

/* The names of the small files beside the spools. */
#define SUPERVISOR_WAKEUP                                                                          \
	"wakeup.fifo"		 /* a byte comes whenever there is something new to look at */
#define SUPERVISOR_ACKED "acked" /* three u64: how far the master has stored each stream */
/* A struct supervisor_fence, which the agent moves on whenever the master has answered.  Not there: another never
 * carries this node. */
#define SUPERVISOR_FENCE "fence"

int supervisor_open(struct supervisor *sv, struct err *err);
void supervisor_close(struct supervisor *sv);
/* Fills p[0..n) with what to wait for; n <= STREAMS. */
size_t supervisor_poll(const struct supervisor *sv, struct pollfd *p);
/* When a step is due even if the machine sleeps until then: boot time; 0: never. */
int64_t supervisor_fence_ms(const struct supervisor *sv);
/* Milliseconds until the next step is due; -1: only events. */
int64_t supervisor_step(struct supervisor *sv, int64_t now_ms);
void supervisor_stop(struct supervisor *sv, enum stop_cause cause, int64_t now_ms);
/* The main process has ended and is not reaped yet: its status goes to disk first. */
void supervisor_main_ended(struct supervisor *sv, int wait_status, int64_t now_ms);
/* The main process ended under an earlier owner; the status file says how. */
void supervisor_main_known(struct supervisor *sv, int code, int signal, int64_t now_ms);
/* How the job ended cannot be learned: kill what is left and report that. */
void supervisor_lost(struct supervisor *sv, const char *reason, int64_t now_ms);
/* The main process is gone, and nobody could see how. */
void supervisor_main_unknown(struct supervisor *sv, const char *reason, int64_t now_ms);
/* Something was written: wake whoever watches. */
void supervisor_wake_agent(const struct supervisor *sv);
