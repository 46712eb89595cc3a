#pragma once
/*
 * worker - threads that run plain blocking functions on values.
 *
 * `work` runs on some worker thread and touches only what `arg` holds; `done` runs
 * later on the loop thread with the same arg, in the order of completion.
 */
struct loop;
struct workers;
typedef void (*work_fn)(void *arg);

struct workers *workers_new(struct loop *l, int nthreads);
void workers_submit(struct workers *w, work_fn work, work_fn done, void *arg);
/* Jobs submitted and whose done() has not yet run. */
int workers_pending(const struct workers *w);
/* Finishes all queued work and calls its done() before it returns.  NULL allowed. */
struct workers *workers_free(struct workers *w);
