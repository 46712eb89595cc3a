#pragma once
/*
 * worker - a pool of threads that run plain blocking functions on values.
 *
 * `work` runs on a thread of the pool and uses only what `arg` points to; `done` runs later on the loop
 * thread with the same arg, in the order of completion.  Pools share nothing: work that blocks in one
 * does not delay another (see sys/pools.h).  All functions are for the loop thread.
 */
#include "base/err.h"

struct deadline;
struct loop;
struct workers;

/* d: the deadline of the work, and the pool's stop flag; every wait checks both. */
typedef void (*work_fn)(void *arg, const struct deadline *d);
/* how: ERR_NONE: the work has run.  ERR_CANCELLED: it was dropped before it began; then done() must not
 * submit more work. */
typedef void (*work_done_fn)(void *arg, enum err_kind how);

/* `name` is the name of the threads, of which the kernel keeps 15 bytes. */
struct workers *workers_new(struct loop *l, const char *name, int nthreads);
/* done may be NULL.  timeout_ms counts from the moment the work begins; negative: none. */
void workers_submit(struct workers *w, work_fn work, work_done_fn done, void *arg, int timeout_ms);
/* Number of jobs whose done() has not run yet. */
int workers_pending(const struct workers *w);
/* Drop jobs that have not begun or are submitted from now on, and set the stop flag for running ones.
 * Does not wait. */
void workers_stop(struct workers *w);
/* Wait until nothing is pending; every done() is called. */
void workers_drain(struct workers *w);
/* Drains, then ends the threads.  NULL allowed.  Returns NULL. */
struct workers *workers_free(struct workers *w);
