#pragma once
/*
 * reports - report.html and metrics.csv of a run, made in the background.
 *
 * The facts are read at once, the samples in pieces (feed.h).  The reporter's thread writes the
 * files under temporary names and renames them, so they appear whole or not at all.  A run with
 * samples gets both files when it ends; runs without samples, which are many and short, get
 * theirs when no run is active.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct live_run;
struct master;
struct reports;

enum report_want { REPORT_PAGE = 1, REPORT_TABLE = 2, REPORT_BOTH = 3 };

struct report_result {
	const struct err *err; /* kind ERR_NONE: success */
	const char *run_id, *dir;
	enum report_want want;
	int fd; /* the file, if only one was wanted: the callback closes it; else -1 */
	int64_t size;
};
/* Called on the loop, once for each reports_start() that returned 0. */
typedef void (*report_done_fn)(void *ctx, const struct report_result *r);

struct reports *reports_new(struct master *m);
/* NULL is allowed.  Call it after feeder_free(). */
struct reports *reports_free(struct reports *r);
/* True while reports wait until no run is active. */
bool reports_waiting(const struct reports *r);
/* The run is not used after the return.  done may be NULL. */
int reports_start(struct reports *r, struct live_run *lr, enum report_want want,
		  report_done_fn done, void *ctx, struct err *err);
/* The same with both files of a run that has ended, which are not made again later. */
int reports_start_due(struct reports *r, struct live_run *lr, report_done_fn done, void *ctx,
		      struct err *err);
/* To be called when a run has ended: makes its files, at once or later. */
void reports_run_ended(struct reports *r, struct live_run *lr);
/* Adds an ended run whose files are made when no run is active. */
void reports_add(struct reports *r, int64_t no);
/* The name of the file with the page or the table. */
const char *report_file_name(enum report_want want);
