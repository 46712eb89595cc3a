#pragma once
/*
 * crowd - limits the number of connected peers that have not identified themselves yet.
 *
 * An honest peer is a member for milliseconds only.  From `enough` members on, the crowd is full:
 * on_full tells the owner to accept no connections, so that further peers wait in the queue of the
 * kernel and the handshakes in progress are not wasted.  While the crowd is full, members that have
 * been in it for patience_ms are dropped, so that idle ones cannot block it.  A connection that was
 * already accepted may still enter; the oldest member is dropped when there are `most`.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"

struct loop;
struct loop_timer;

struct crowd_member {
	struct list link;
	int64_t since_ms;
};

struct crowd_limits {
	int enough, most;
	int64_t patience_ms;
};

struct crowd_events {
	void (*on_full)(void *ctx, bool full);
	void (*drop)(void *ctx, struct crowd_member *m); /* must call crowd_leave() */
};

struct crowd {
	struct list members; /* the oldest first */
	int n;
	bool full;
	struct crowd_limits limits;
	struct crowd_events ev;
	void *ctx;
	struct loop_timer *patience;
};

void crowd_init(struct crowd *c, struct loop *l, const struct crowd_limits *limits,
		const struct crowd_events *ev, void *ctx);
/* Call it when the crowd has no members. */
void crowd_release(struct crowd *c);
void crowd_enter(struct crowd *c, struct crowd_member *m);
void crowd_leave(struct crowd *c, struct crowd_member *m);
