#pragma once
/*
 * watch - streams to clients about one run: its object at each change, its events, a growing
 * log.
 *
 * Each watcher belongs to one run and keeps it in memory.  Nothing is queued while a client has
 * not taken the previous data: a slow client gets fewer objects, and events and logs at its own
 * pace.  The server closes a client that takes nothing at all.
 */
#include <stdbool.h>
#include <stdint.h>
#include "link/frame.h"
#include "store/log_order.h"

struct http_exchange;
struct live_run;
struct loop;
struct watch;

struct watch *watch_new(struct loop *l);
/* Ends every stream.  NULL is allowed. */
struct watch *watch_free(struct watch *w);
int watch_streams(const struct watch *w);
/* True if there is a watcher of the run with this number. */
bool watch_has_run(const struct watch *w, int64_t no);
/* To be called when a commit has changed the run. */
void watch_changed(struct watch *w, struct live_run *lr);

/* These take over the run (live_run_done()) and answer the exchange. */
void watch_object(struct watch *w, struct live_run *lr, struct http_exchange *x, bool only_last);
/* Sends the run object, then its changes (run_delta_to_json()), and at the end the whole object
 * again. */
void watch_deltas(struct watch *w, struct live_run *lr, struct http_exchange *x);
void watch_events(struct watch *w, struct live_run *lr, struct http_exchange *x, int64_t after,
		  bool follow);
/*
 * The logs of a node: with `all` those of all attempts from `attempt` on, as if they were one
 * log, otherwise those of this attempt only.
 */
struct watch_at {
	int rank, process, attempt;
	bool all, follow;
	bool times;	       /* in pieces only: the head of each says when its bytes arrived */
	bool skip[ORDER_LOGS]; /* in pieces only: leave out this log */
	uint64_t left;	       /* in pieces only: so many bytes of the logs, then the stream ends */
};
/* Takes over fd, the log of that attempt opened for reading. */
void watch_log(struct watch *w, struct live_run *lr, struct http_exchange *x,
	       const struct watch_at *at, enum stream s, int fd, uint64_t offset);
/* Sends both logs in the order of arrival, in pieces: "out 12\n" or "err 12\n", then so many
 * bytes; with times "out 12 1731859200123\n", or "out 12 -\n" if the time is not known.  Takes
 * over the descriptors; -1: that log does not exist. */
void watch_pieces(struct watch *w, struct live_run *lr, struct http_exchange *x,
		  const struct watch_at *at, const int fds[static ORDER_LOGS],
		  const uint64_t from[static ORDER_LOGS]);
