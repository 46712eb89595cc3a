#pragma once
/*
 * queue - runs with `resources` that wait until they fit: core/queue.h decides, this asks and tells.
 *
 * Nothing of it is stored: the phase of a run says whether it waits or holds what it asked for.
 */
#include "core/queue.h"

struct err;
struct jsonw;
struct live_run;
struct master;

/* Admits every run that may start now.  To be called when machines came; set queue_due of the master when
 * a run was submitted or has changed its phase. */
void queue_update(struct master *m);
/* Before the run is stored.  ERR_CAPACITY: it never fits on the machines that there are; with no_wait: it would
 * have to wait now. */
int queue_check(struct live_run *lr, bool no_wait, struct err *err);
/* "queue": {"place", "why"} of a run that waits, else null. */
void queue_to_json(const struct live_run *lr, struct jsonw *w);
/* The same for "waiting"; false: it does not wait. */
bool queue_reason(const struct live_run *lr, int *ret_place, char why[static QUEUE_WHY]);
