#pragma once
/* effects - carries out the effects that the core asks for: calls of drivers, frames to agents,
 * the files of an ended run. */
#include <stdbool.h>

struct arena;
struct driver_row;
struct effect;
struct effects;
struct live_run;

#define EFFECT_THREADS 6 /* per driver pool */

/* Carries out all effects of a round.  Effects that a driver can handle together are one call. */
void effects_do(struct live_run *lr, const struct effects *fx);

/* Fills in what a driver is told about the resource of an effect; needs are in the arena. */
void effect_row(struct live_run *lr, const struct effect *fx, struct arena *a,
		struct driver_row *row, char token[static 65]);
/* Compares for qsort_r(), with the run as argument: effects that may be one call become
 * neighbours, and the order is always the same. */
int effects_compare(const void *a, const void *b, void *run);
bool effects_one_call(const struct live_run *lr, const struct effect *x, const struct effect *y);
