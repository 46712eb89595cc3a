#pragma once
/*
 * pools - sets of workers by name, each made at first use.
 *
 * Jobs that must not wait for each other use different pools: calls to a cloud that does not answer
 * only block the threads of that cloud.
 */
struct loop;
struct pools;
struct workers;

struct pools *pools_new(struct loop *l);
/* The pool of this name, made with nthreads at its first use. */
struct workers *pools_get(struct pools *p, const char *name, int nthreads);
/* The sum over all pools, see worker.h. */
int pools_pending(const struct pools *p);
/* Drops jobs that have not begun, stops running ones and waits for them (worker.h).  All pools are drained
 * before the first is freed, because a done() may submit to any of them.  NULL allowed.  Returns NULL. */
struct pools *pools_free(struct pools *p);
