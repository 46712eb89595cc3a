#pragma once
/*
 * trash - the files that destroyed nodes and removed runs leave on disk, removed by a worker.
 *
 * The files of nodes of ended runs are removed when no run is active, or when there are many.
 * What trash_put() has moved to the trash is removed with the next sweep, because a user waits
 * for the space.
 */
#include <stdbool.h>

struct err;
struct master;
struct trash;

/* Uses the master's threads for disk work (master_disk()) while they exist. */
struct trash *trash_new(struct master *m);
struct trash *trash_free(struct trash *t);
/* To be called when a run has ended: its nodes have left files. */
void trash_run_ended(struct trash *t);
/* Begins to empty the trash if it is time.  idle: no run is active. */
void trash_sweep(struct trash *t, bool idle);
/* Moves `path` into the trash under `name`, which must be unique, or removes it directly. */
int trash_put(struct trash *t, const char *path, const char *name, struct err *err);
