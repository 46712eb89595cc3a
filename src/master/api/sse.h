#pragma once
/*
 * sse - the events of all runs as server-sent events, for as many viewers as there are.
 *
 * What happens is written down once and handed to everybody every FLUSH_MS; a viewer that begins
 * in the past reads the store in pieces until it has caught up.  One that does not read is cut by
 * the server when its queue is full; it comes back with the number of the last event it saw.
 */
#include <stdint.h>

struct api_call;
struct err;
struct event_row;
struct live_run;
struct master;
struct sse;

struct sse *sse_new(struct master *m);
struct sse *sse_free(struct sse *s); /* ends every stream; NULL is allowed */
int sse_viewers(const struct sse *s);
/* NULL is allowed in both.  An event with the number n was added to the open transaction ... */
void sse_event(struct sse *s, struct live_run *lr, int64_t n, const struct event_row *row);
/* ... which is now on disk. */
void sse_committed(struct sse *s);

int api_events(struct api_call *c, struct err *err);
