#pragma once
/*
 * reports - report.html and metrics.csv of a run, made in the background.
 *
 * The facts are read at once, the samples in pieces (feed.h); the files are written by the
 * reporter's thread under another name and appear whole, or not at all.  A run with samples gets
 * both when it ends; those without, which are many and short, when nothing runs.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct live_run;
struct master;
struct reports;

enum report_want { REPORT_PAGE = 1, REPORT_TABLE = 2, REPORT_BOTH = 3 };

struct report_result {
	const struct err *err; /* kind ERR_NONE: it is made */
	const char *run_id, *dir;
	enum report_want want;
	int fd; /* of the file, if only one was wanted: the callback's to close; else -1 */
	int64_t size;
};
/* On the loop, once for each reports_start() that returned 0. */
typedef void (*report_done_fn)(void *ctx, const struct report_result *r);

struct reports *reports_new(struct master *m);
struct reports *reports_free(struct reports *r); /* NULL is allowed; after the feeder */
/* Some reports wait for a quiet moment. */
bool reports_waiting(const struct reports *r);
/* The run is not used after the return.  done may be NULL. */
int reports_start(struct reports *r, struct live_run *lr, enum report_want want,
		  report_done_fn done, void *ctx, struct err *err);
/* The run has ended: its files are to be made. */
void reports_run_ended(struct reports *r, struct live_run *lr);
/* An ended run whose files are made when nothing runs. */
void reports_add(struct reports *r, int64_t no);
/* The name of the file that holds a page or a table. */
const char *report_file_name(enum report_want want);
