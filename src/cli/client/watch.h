#pragma once
/*
 * watch - stay with a run until it has ended, on a terminal with a live view.
 *
 * The master may die meanwhile: it is started again and the watching goes
 * on.  SIGINT and SIGTERM cancel (a second one hurries, a third one leaves),
 * SIGHUP leaves the run alone; with `detach` every one of them does.
 */
#include <stdbool.h>
#include "base/buf.h"
#include "base/str.h"

struct api;
struct arena;
struct doc;
struct err;

/* Block the signals of the watcher from now on, so that none is lost between the submission and
 * the watching.  Signals that were ignored at the start of the program (nohup) stay ignored.  Returns a
 * descriptor to read them from. */
int watch_signals(struct err *err);
/* The next pending signal; 0 if none. */
int watch_signal_next(int fd);

struct watch_options {
	bool follow;	    /* print the job's output */
	bool output_to_err; /* ... on stderr, because stdout is for JSON */
	bool detach;	    /* an interrupt leaves the run alone */
	int signals;	    /* from watch_signals() */
	bool until_handed; /* the end is also that another master has the run (run_is_handed_over()) */
	int64_t patience_ms; /* without the master for so long: give up; 0: a minute */
	/* The last state of the run that another master has shown, which this one may not have heard of: only what
	 * follows it is said.  NULL: everything. */
	const char *shown;
};

struct watch_result {
	struct buf json; /* the last run object */
	bool left;	 /* the run goes on unwatched, after SIGHUP or with `detach` any signal */
	bool handed;	 /* another master has the run */
	char state[40];	 /* its last one, also after an error; "": none was seen */
};
void watch_result_release(struct watch_result *r);

/* ERR_CANCELLED: left after a third interrupt. */
int watch_run(struct api *api, const char *id, const struct watch_options *o,
	      struct watch_result *ret, struct err *err);
/* Wait for the end of a run without printing anything: the last object as text and as a tree, both in the arena.  *api->stop
 * ends it (ERR_CANCELLED). */
int api_await_run(struct api *api, const char *id, struct arena *a, struct str *ret_json,
		  struct doc **ret_run, struct err *err);
/* Ask for the end of a run; hurry: without its grace time. */
int api_cancel_run(struct api *api, const char *id, bool hurry, struct buf *ret_json,
		   struct err *err);
