#pragma once
/*
 * data_blobs - the data of a run as archives of the master: what its client packed and uploaded, for nodes that do not
 * share the machine's files.
 *
 * In the submission and in the row: a list with one entry per [[data]], null or {"tar", "sha256": [...]}: one archive,
 * or one per counted node if the data is sharded.
 */
#include <stdbool.h>
#include "base/str.h"

struct arena;
struct doc;
struct err;
struct live_run;
struct message_data;

/* Of a submission: as many as the job needs, all of them here; sets lr->row.data. */
int data_blobs_take(struct live_run *lr, const struct doc *list, struct err *err);
/* What of entry `i` this node fetches. */
void data_blobs_put(const struct live_run *lr, size_t i, int rank, struct arena *a,
		    struct message_data *m);
/* May the nodes of this run fetch it? */
bool run_has_blob(const struct live_run *lr, struct str sha256);
/* Each of the run, its source too, until fn says -1. */
int run_each_blob(const struct live_run *lr, int (*fn)(void *ctx, const char *sha256), void *ctx);
