#pragma once
/*
 * pools - sets of workers by name, each made at first use.
 *
 * Jobs that must not wait for each other use different pools: calls to a cloud that does not answer
 * fill the threads of that cloud only.
 */
struct loop;
struct pools;
struct workers;

struct pools *pools_new(struct loop *l);
/* The pool of this name, made with nthreads at its first use. */
struct workers *pools_get(struct pools *p, const char *name, int nthreads);
/* The sum over all pools, see worker.h. */
int pools_pending(const struct pools *p);
/* Jobs that have not begun are dropped, running ones are asked to stop and waited for (worker.h).  All pools
 * are drained before the first is freed: a done() may submit to any of them.  NULL allowed.  Returns NULL. */
struct pools *pools_free(struct pools *p);
