#pragma once
/*
 * tend - look after one running job: its output, its limits, its end.
 *
 * One implementation for the two processes that may do it: the shim (its own
 * poll loop) and, when the shim was killed, the agent (its event loop).  The
 * owner calls tend_step() when a descriptor of tend_poll() is ready, when a child was
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
#include "agent/spool.h"
#include "sys/cgroup.h"
#include "sys/proctree.h"

struct tend_limits {
	int64_t settle_ms;    /* output still open after the main process's exit */
	int64_t unkill_ms;    /* how long to try to kill before saying that it cannot be done */
	int64_t full_ms;      /* how long a full disk blocks the job before bytes are dropped */
	uint64_t spool_bytes; /* unacknowledged bytes before the job is blocked */
};
#define TEND_SETTLE_MS 5000
#define TEND_UNKILL_MS 10000
#define TEND_SPOOL_BYTES (UINT64_C(1) << 30)

enum stop_cause { STOP_NONE, STOP_ASKED, STOP_HURRY, STOP_LEASE, STOP_DEADLINE };

enum tend_phase { TEND_RUNNING, TEND_DRAINING, TEND_KILLING, TEND_FLUSHING, TEND_DONE };

/* Add the live processes of the job that the cgroup does not show. */
typedef void (*tend_others_fn)(void *ctx, struct proc_list *out);

struct tend {
	/* Set by the owner before tend_open. */
	int dirfd, status_fd;
	int attempt;
	struct proc_id job;
	struct cgroup cg;
	uint64_t oom_before;
	int64_t grace_ms, deadline_ms; /* deadline: boot time; 0 = none */
	struct tend_limits limits;
	tend_others_fn others;
	void *ctx;

	/* Of tend itself. */
	enum tend_phase phase;
	struct spool spools[STREAMS];
	int64_t retry_ms[STREAMS]; /* not before; 0 = now */
	int bell, acked;
	uint64_t acked_sum;
	bool over_budget;
	int64_t pace_ms;
	bool exited, killed;
	int code, signal;
	enum stop_cause stop;
	int64_t kill_at_ms, drain_since_ms, kill_since_ms, next_kill_ms, finish_since_ms;
	struct exit_report exit; /* whole once done */
};

/* The names of the small files beside the spools. */
#define TEND_BELL "bell.fifo" /* a byte comes whenever there is something new to look at */
#define TEND_ACKED "acked"    /* three u64: how far the master has stored each stream */

int tend_open(struct tend *t, struct err *err);
void tend_close(struct tend *t);
/* Fills p[0..n) with what to wait for; n <= STREAMS. */
size_t tend_poll(const struct tend *t, struct pollfd *p);
/* Milliseconds until the next step is due; -1: only events. */
int64_t tend_step(struct tend *t, int64_t now_ms);
void tend_stop(struct tend *t, enum stop_cause cause, int64_t now_ms);
/* The main process has ended and is not reaped yet: its status goes to disk first. */
void tend_main_ended(struct tend *t, int wait_status, int64_t now_ms);
/* It ended in an earlier life of the owner; the record says how. */
void tend_main_known(struct tend *t, int code, int signal, int64_t now_ms);
/* Nobody can tell how it ended, or never will: kill what is left and report that. */
void tend_lost(struct tend *t, const char *reason, int64_t now_ms);
/* The main process is gone, and nobody could see how. */
void tend_main_unknown(struct tend *t, const char *reason, int64_t now_ms);
/* Something was written: wake whoever watches. */
void tend_ring(const struct tend *t);
