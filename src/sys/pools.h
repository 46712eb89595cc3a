#pragma once
/*
 * pools - sets of workers by name, each made at first use.
 *
 * What must not wait for each other has pools of its own: calls to a cloud that does not answer
 * fill the threads of that cloud only.
 */
struct loop;
struct pools;
struct workers;

struct pools *pools_new(struct loop *l);
/* Of nthreads if this is the first use of the name. */
struct workers *pools_get(struct pools *p, const char *name, int nthreads);
/* Of all together, see worker.h. */
int pools_pending(const struct pools *p);
/* What has not begun is dropped, what runs is asked to stop and waited for (worker.h).  All pools
 * are drained before the first is freed: a done() may submit to any of them.  NULL allowed.  Returns NULL. */
struct pools *pools_free(struct pools *p);
