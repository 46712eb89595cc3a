#pragma once
/*
 * round - one event, one step; one round, one transaction.
 *
 * All that happens in one turn of the loop is committed at once by round_end(), and only then do
 * the effects go out.
 */
struct err;
struct event;
struct live_run;
struct master;

/* Steps the core; what changed and what is to be done waits for the end of the round. */
void run_event(struct live_run *lr, const struct event *ev);
/* An entry in the run's list of events that is no event of the core. */
void run_note(struct live_run *lr, const char *kind, int node, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void round_mark(struct live_run *lr); /* it has something to commit */
void round_end(void *m);	      /* a loop_fn */
void tick_rearm(struct master *m);
/* What cannot be stored ends the master: a restart re-reads the truth. */
void master_fatal(struct master *m, const struct err *err);
