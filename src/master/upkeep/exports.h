#pragma once
/*
 * exports - copies the directories of ended runs to where their results shall outlive this master
 * (plan_results()): record, events, logs, metrics, outputs, report.
 *
 * The copy is owed until results.json of the run says that it is made, also by the next master: what
 * may pass is tried again with a growing pause, for an hour; other failures are told in the events of
 * the run, and tried again when a master starts.  After a week nothing is owed any more, and the
 * credentials that were kept for it are removed.
 */
#include <stdbool.h>
#include <stdint.h>

struct err;
struct exports;
struct live_run;
struct master;
struct results_place;
struct results_sum;

/* Called on the loop when the copy is there (err->kind ERR_NONE) or was given up. */
typedef void (*export_done_fn)(void *ctx, const struct err *err);

struct exports *exports_new(struct master *m);
/* NULL is allowed.  Call it after the pools have gone. */
struct exports *exports_free(struct exports *e);
/* True while this master copies, or will soon. */
bool exports_waiting(const struct exports *e);
/* Why the last try to copy the results of this run has failed; NULL: it has not, as far as this master knows.
 * given up: this master does not try again. */
const struct err *exports_failure(const struct exports *e, int64_t no, bool *ret_given_up);
/* Has the last try failed for any run? */
bool exports_failed(const struct exports *e);
/* Is the copy of this run to be made by this master, and not made yet? */
bool export_is_owed(const struct live_run *lr);
/* To be called when a run has ended.  A run that owes nothing is done at once.  done may be NULL. */
void exports_run_ended(struct exports *e, struct live_run *lr, export_done_fn done, void *ctx);
/* Files of an ended run will be made again at once.  Results that are kept here until they are fetched get another
 * index, without which whoever fetches them would find them damaged, for ever. */
void exports_run_changed(struct exports *e, const struct live_run *lr);
/* Looks for ended runs whose copy an earlier master has not made. */
void exports_check(struct exports *e);
/* Writes results.json of a run's directory: it says where the whole copy is. */
int results_note_write(const char *dir, const struct results_place *at,
		       const struct results_sum *sum, struct err *err);
