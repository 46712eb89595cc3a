#pragma once
/*
 * round - one step of the core per event, one transaction per round.
 *
 * round_end() commits everything that happened in one turn of the loop, and then carries out the
 * effects.
 */
struct err;
struct event;
struct live_run;
struct master;

/* Steps the core.  Changed rows and effects wait for the end of the round. */
void run_event(struct live_run *lr, const struct event *ev);
/* Adds an entry to the run's list of events that is not an event of the core. */
void run_note(struct live_run *lr, const char *kind, int node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The run has something to commit. */
void round_mark(struct live_run *lr);
/* A loop_fn. */
void round_end(void *m);
/* Sets the timer of EV_TICK to the earliest next_ms of all active runs. */
void master_set_tick(struct master *m);
/* Stops the master after a failure to store: the next one reads the committed state. */
void master_fatal(struct master *m, const struct err *err);
