#pragma once
/*
 * crowd - peers that have not said yet who they are, and how many of them there may be at once.
 *
 * An honest peer is in the crowd for a moment.  When `enough` are, on_full tells the owner to let nobody in for
 * now: thousands who come at the same time wait in the kernel's queue, and none of the work that has been done for
 * those who are in is lost.  Whoever only holds a place does not keep the others out: while the crowd is full,
 * those who have been in it for patience_ms are dropped.  Of peers that cannot be held back (they were on
 * their way in) the oldest is dropped when there are `most`.
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
	void (*drop)(void *ctx, struct crowd_member *m); /* calls crowd_leave */
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
/* Nobody is in it any more. */
void crowd_release(struct crowd *c);
void crowd_enter(struct crowd *c, struct crowd_member *m);
void crowd_leave(struct crowd *c, struct crowd_member *m);
