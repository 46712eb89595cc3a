#pragma once
/* effects - hands what the core asks for to drivers, agents and the files of an ended run. */
#include <stdbool.h>

struct driver_row;
struct effect;
struct effects;
struct live_run;

/* All effects of a round: what a driver can do in one call is one call. */
void effects_do(struct live_run *lr, const struct effects *fx);

/* What a driver is told about the resource of an effect. */
void effect_row(struct live_run *lr, const struct effect *fx, struct driver_row *row,
		char token[static 65]);
/* For qsort_r, with the run: those that may be one call stand together, in an order that does not
 * depend on chance. */
int effects_compare(const void *a, const void *b, void *run);
bool effects_one_call(const struct live_run *lr, const struct effect *x, const struct effect *y);
