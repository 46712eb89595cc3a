#pragma once
/*
 * imports - takes the results of a run that ended elsewhere (driver/results.h) into this home: its
 * files into runs/<id>/, its rows into the store.
 *
 * Files are fetched on a worker and checked by their sums; what an earlier try fetched is not fetched
 * again.  The rows come last, in one transaction, so that a run is here with all its files or not at
 * all.  A run that this home handed over and that has ended here gets the rows of the copy in place
 * of its own, and keeps its own events beside those of the copy.  A run that is here already, and was
 * not handed over, stays as it is: an import may be repeated.
 */
#include <stdbool.h>

struct err;
struct master;

struct import_source {
	const char *run; /* its id */
	/* Where copies of runs are, as plan_results() says it: "s3://bucket/runs/", without the run. */
	const char *url; /* NULL: a complete copy is in LAYOUT_FETCHED of the run's directory */
	const char *credentials; /* JSON, as in driver_row; NULL: what this process finds */
};

/*
 * Called on the loop, after import_start() has returned.  err->kind:
 *
 *   ERR_NONE       the run is here.  A struct live_run of it that was loaded before is out of date.
 *   ERR_NOT_FOUND  there is no complete copy at the URL
 *   ERR_CONFLICT   the run of this id has not ended here
 *   ERR_INVALID    the copy is not that of an ended run of this id, or damaged
 *   ERR_CANCELLED  the master leaves; the next one may try again
 *
 * and what AWS, the disk or the database said.
 */
typedef void (*import_done_fn)(void *ctx, const struct err *err);

/* Are results of the run on their way into this home? */
bool import_goes_on(const struct master *m, const char *run);
/* Texts are copied. */
void import_start(struct master *m, const struct import_source *from, import_done_fn done,
		  void *ctx);
