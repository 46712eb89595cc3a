#pragma once
/* check - the invariants (docs/invariants.md), each asked where it can be broken. */
#include <stdint.h>

struct core_run;
struct effect;
struct event;
struct world;

/* A machine (by its epoch) was told that it is this. */
struct binding {
	int rank, incarnation;
	uint64_t epoch;
};

void check_start(struct world *w, int slot, int attempt);
void check_final(struct world *w, const struct core_run *shown, const struct core_run *next);
void check_binding(struct world *w, int slot, const struct effect *fx);
void check_create(struct world *w, int index, int token);
void check_rate(struct world *w, int index);
void check_gang(struct world *w, int index, int choice);
void check_quiet(struct world *w, int index);
void check_throttled(struct world *w, const struct event *ev);
void check_always(struct world *w);
void check_end(struct world *w);
