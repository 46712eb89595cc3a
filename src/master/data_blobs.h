#pragma once
/*
 * data_blobs - the data of a run as blobs on the master, which the client has uploaded: archives, for
 * nodes that do not share the files of this machine, and lists of objects that nodes fetch elsewhere.
 *
 * The submission and the row of the run have a list with one entry per input (job_data()):
 *	null				on this machine
 *	{"tar", "sha256": [...]}	one archive, or one per counted node if the data is sharded
 *	{"list", "from", "objects", "bytes"}	the list (fmt/object_list.h) has names below "from"
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
/* Fills in what a node fetches of input `i`: the shards of its place among the counted nodes that are awake,
 * or all of them if `place` is -1. */
void data_blobs_put(const struct live_run *lr, size_t i, int place, struct arena *a,
		    struct message_data *m);
/* What the objects of input `i` are below, or the one object itself; NULL: nodes do not fetch it elsewhere. */
const char *data_blobs_from(const struct live_run *lr, int64_t i, struct arena *a);
/* True if the archive belongs to this run: its nodes may fetch it. */
bool run_has_blob(const struct live_run *lr, struct str sha256);
/* Calls fn for each archive of the run, its source included, until fn returns -1. */
int run_each_blob(const struct live_run *lr, int (*fn)(void *ctx, const char *sha256), void *ctx);
