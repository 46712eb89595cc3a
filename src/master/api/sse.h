#pragma once
/*
 * sse - the events of all runs as server-sent events, for any number of viewers.
 *
 * Events are encoded once and sent to all viewers every FLUSH_MS.  A viewer that begins in the
 * past reads the store in pieces until it has caught up.  The server closes a viewer that does
 * not read when its queue is full; it reconnects with the number of the last event that it got.
 */
#include <stdint.h>

struct api_call;
struct err;
struct event_row;
struct live_run;
struct master;
struct sse;

struct sse *sse_new(struct master *m);
/* Ends every stream.  NULL is allowed. */
struct sse *sse_free(struct sse *s);
int sse_viewers(const struct sse *s);
/* In both, s may be NULL.  Event number n was added to the open transaction. */
void sse_event(struct sse *s, struct live_run *lr, int64_t n, const struct event_row *row);
/* The transaction is committed. */
void sse_committed(struct sse *s);

int api_events(struct api_call *c, struct err *err);
