#pragma once
/* sse - the events of all runs as server-sent events, for as many viewers as there are. */
#include <stdint.h>

struct api_call;
struct err;
struct live_run;
struct master;
struct event_row;

void sse_open(struct master *m);
void sse_close(struct master *m);
int sse_viewers(const struct master *m);
/* An event with the number n was added to the open transaction ... */
void sse_event(struct live_run *lr, int64_t n, const struct event_row *row);
/* ... which is now on disk. */
void sse_committed(struct master *m);

int api_events(struct api_call *c, struct err *err);
