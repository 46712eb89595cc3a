#pragma once
/*
 * trash - what destroyed nodes and removed runs leave on disk, removed by a worker.
 *
 * Nodes of ended runs: when nothing runs, or when there is much of it.  What trash_put() moved
 * there: with the next sweep, because somebody wants the space.
 */
#include <stdbool.h>

struct err;
struct master;
struct trash;

/* Uses the master's threads for disk work as long as it has some. */
struct trash *trash_new(struct master *m);
struct trash *trash_free(struct trash *t); /* NULL is allowed */
/* A run has ended: its nodes left something. */
void trash_run_ended(struct trash *t);
/* Begins to empty the trash if it is time; idle: no run is active. */
void trash_sweep(struct trash *t, bool idle);
/* Moves `path` into the trash under `name`, which nobody else uses, or removes it here and now. */
int trash_put(struct trash *t, const char *path, const char *name, struct err *err);
