#pragma once
/*
 * worker - a pool of threads that run plain blocking functions on values.
 *
 * `work` runs on some thread of the pool and touches only what `arg` holds; `done` runs
 * later on the loop thread with the same arg, in the order of completion.  Pools share
 * nothing: work that blocks in one does not delay another (sys/pools.h gives them names).
 * All functions are for the loop thread.
 */
#include "base/err.h"

struct deadline;
struct loop;
struct workers;

/* d: the deadline of the work, and the pool's stop flag; every wait checks both. */
typedef void (*work_fn)(void *arg, const struct deadline *d);
/* how: ERR_NONE: the work has run.  ERR_CANCELLED: it was dropped before it began; whoever is told
 * so submits nothing more. */
typedef void (*work_done_fn)(void *arg, enum err_kind how);

/* The name is that of the threads, of which the kernel keeps 15 bytes. */
struct workers *workers_new(struct loop *l, const char *name, int nthreads);
/* done may be NULL.  timeout_ms counts from the moment the work begins; negative: none. */
void workers_submit(struct workers *w, work_fn work, work_done_fn done, void *arg, int timeout_ms);
/* Jobs submitted and whose done() has not yet run. */
int workers_pending(const struct workers *w);
/* Drop jobs that have not begun or are submitted from now on; ask running ones to stop.  Does not
 * wait. */
void workers_stop(struct workers *w);
/* Wait until nothing is pending; every done() is called. */
void workers_drain(struct workers *w);
/* Drains, then ends the threads.  NULL allowed.  Returns NULL. */
struct workers *workers_free(struct workers *w);
