#pragma once
/* run_json - the JSON of a run in the API and in its records.  Keys are only ever added. */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"
#include "core/core.h"
#include "link/frame.h"
#include "metrics/stats.h"

struct buf;
struct event_row;
struct jsonw;
struct live_run;
struct run_row;
struct series_row;

#define FAILED_TAIL_LINES 10 /* of the failed node's log, in the run object */
/* In "waiting" of a run that has ended: kind of the entry for its results, and its state when they will not be
 * copied any more. */
#define WAIT_RESULTS "results"
#define WAIT_GIVEN_UP "given up"

void run_to_json(struct live_run *lr, bool with_nodes, struct buf *out);
/* The same with "delta":true, and with only the nodes whose `changed` is above `since`. */
void run_delta_to_json(struct live_run *lr, uint64_t since, struct buf *out);
/* The short form that lists show. */
void row_to_json(const struct run_row *row, struct buf *out);
void metrics_to_json(struct live_run *lr, struct str name, struct str node, bool host,
		     int64_t limit, struct buf *out);
/* One event and its newline. */
void event_to_json(const struct live_run *lr, const struct event_row *row, struct buf *out);
/* Writes the members of an event into an object that is open. */
void event_members(const struct live_run *lr, const struct event_row *row, struct jsonw *w);

enum better run_better(const struct live_run *lr, const char *metric);
struct stats series_stats(const struct series_row *row);
/* On the master's clock; the current time if the run has not ended. */
int64_t run_end_ms(const struct live_run *lr);
/* -1: the phase was not entered. */
/* The progress of a run is that of its slowest rank, among the ranks that reported a total.  The
 * progress of a rank is that of its series with the highest step.  (store_state.c computes the
 * same for ended runs.) */
void run_progress(const struct live_run *lr, int64_t *ret_step, int64_t *ret_total);
int64_t run_phase_ms(const struct live_run *lr, enum run_phase p);
int64_t run_log_size(const struct live_run *lr, int rank, enum stream s);
/* Bytes of a node's output beyond the limit of its logs. */
int64_t run_not_stored(const struct live_run *lr, int rank);
/* Appends the last lines of the node that failed the run; false if there are none. */
bool run_tail(const struct live_run *lr, struct buf *out, enum stream *ret_stream);
