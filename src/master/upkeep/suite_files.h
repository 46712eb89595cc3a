#pragma once
/*
 * suite_files - the directory of a suite: links to the runs of its variants, and the files of its
 * report.  They are copies for people; the master reads the rows.
 */
#include "base/str.h"

struct arena;
struct err;
struct live_suite;
struct suite_report_facts;

/* experiments/<variant>/<repeat> is a link to the directory of the entry's run. */
void suite_link_run(const struct live_suite *ls, int index);
/* Called on the loop when the files are written; the kind of err is ERR_NONE if they all are. */
typedef void (*suite_files_fn)(void *ctx, struct str summary, const struct err *err);
/* What a report or a comparison has to know of the suite, copied. */
void suite_facts(const struct live_suite *ls, struct arena *a, struct suite_report_facts *ret);
/* Makes the files of the report in the background.  The suite is not used after the return.  done may
 * be NULL: a failure is logged. */
void suite_write_files(struct live_suite *ls, suite_files_fn done, void *ctx);
/* The same for somebody who asks for the report.  Of a suite that has ended, and of which no run is left, the files
 * stay as they are: they are all that tells its figures. */
void suite_renew_files(struct live_suite *ls, suite_files_fn done, void *ctx);
/* The summary as it is now, for somebody who only looks: no file changes.  Of a suite that has ended it
 * is summary.json, because its runs may have been removed since. */
void suite_read_summary(struct live_suite *ls, suite_files_fn done, void *ctx);
