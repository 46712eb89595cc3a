#pragma once
/*
 * watch - streams to clients about one run: its object on each change, its events, a log as it
 * grows.
 *
 * Each watcher belongs to one run and keeps it in memory.  Nothing is added to what a client has
 * not taken yet: a slow one gets fewer objects, and events and logs at its own pace.  One that
 * takes nothing at all is cut by the server.
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
/* Somebody watches the run with this number. */
bool watch_has_run(const struct watch *w, int64_t no);
/* What was committed changed the run. */
void watch_changed(struct watch *w, struct live_run *lr);

/* These take over the run (live_run_done) and answer the exchange. */
void watch_object(struct watch *w, struct live_run *lr, struct http_exchange *x, bool only_last);
/* The object, and from then on what changes of it (run_delta_to_json); the last is the whole object again. */
void watch_deltas(struct watch *w, struct live_run *lr, struct http_exchange *x);
void watch_events(struct watch *w, struct live_run *lr, struct http_exchange *x, int64_t after,
		  bool follow);
/*
 * A node's logs are one attempt after the other: with at.all those of all attempts from this one
 * on, as if they were one log, otherwise those of this attempt only.
 */
struct watch_at {
	int rank, attempt;
	bool all, follow;
};
/* Takes over fd, the log of that attempt opened for reading. */
void watch_log(struct watch *w, struct live_run *lr, struct http_exchange *x,
	       const struct watch_at *at, enum stream s, int fd, uint64_t offset);
/* Both logs in the order of arrival, in pieces: "out 12\n" or "err 12\n", then so many bytes.
 * Takes over the descriptors; -1 = there is no such log. */
void watch_both_logs(struct watch *w, struct live_run *lr, struct http_exchange *x,
		     const struct watch_at *at, const int fds[static ORDER_LOGS],
		     const uint64_t from[static ORDER_LOGS]);
