#pragma once
/*
 * data_blobs - the data of a run as archives on the master, which the client packed and
 * uploaded, for nodes that do not share the files of this machine.
 *
 * The submission and the row of the run have a list with one entry per [[data]]: null or {"tar",
 * "sha256": [...]}, with one archive, or one per counted node if the data is sharded.
 */
#include <stdbool.h>
#include "base/str.h"

struct arena;
struct doc;
struct err;
struct live_run;
struct message_data;

/* Checks the list of a submission (as many archives as the job needs, all uploaded) and sets
 * lr->row.data. */
int data_blobs_take(struct live_run *lr, const struct doc *list, struct err *err);
/* Fills in the archives or the URL of [[data]] entry `i` that a node fetches: the shards of its place among the
 * counted nodes that are awake, or all of them if `place` is -1. */
void data_blobs_put(const struct live_run *lr, size_t i, int place, struct arena *a,
		    struct message_data *m);
/* True if the archive belongs to this run: its nodes may fetch it. */
bool run_has_blob(const struct live_run *lr, struct str sha256);
/* Calls fn for each archive of the run, its source included, until fn returns -1. */
int run_each_blob(const struct live_run *lr, int (*fn)(void *ctx, const char *sha256), void *ctx);
