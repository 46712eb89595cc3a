#pragma once
/*
 * suites - the suites of this master: submitted, resumed after a restart, told of the ends of their
 * runs.
 *
 * What a suite does is decided by core/suite.h.  Its rows are committed with those of the runs, in
 * one transaction per round: the end of a run and what follows from it for its suite are on disk
 * together.  The runs are submitted as those of `regatta run` are (runs_submit()), with a request id
 * of suite, entry and attempt.
 *
 * A suite that goes on is in memory; one that has ended is loaded for reading.
 */
#include <stdbool.h>
#include <stdint.h>
#include "core/suite.h"
#include "store/store_suite.h"

struct arena;
struct doc;
struct err;
struct http_exchange;
struct live_run;
struct master;
struct suites;

struct live_suite {
	struct master *m;
	struct suite_row row;
	struct arena *arena; /* owns row, plan and request */
	struct suite plan;
	struct core_suite *core;
	struct suite_effects fx;    /* of this round */
	struct suite_effects saved; /* of the one that is being committed */
	struct suite_effects due;   /* committed, not carried out yet */
	char **runs;		    /* per entry: id of its last run; NULL: none */
	char *dir;
	struct doc *request; /* what was submitted; NULL: loaded for reading, or lost */
	/* answered when the suite is stored */
	struct http_exchange *answer;
	bool in_round, is_saved, ended;
	bool returns;	/* it is away, and its results are being taken in */
	char there[16]; /* its state at the master that has it; "": not known */
	int busy;	/* calls that workers have not finished */
};

struct suites *suites_new(struct master *m);
/* NULL is allowed.  Call it after pools_free(). */
struct suites *suites_free(struct suites *s);
/* When the master starts, after runs_resume(). */
int suites_resume(struct suites *s, struct err *err);
size_t suites_active(const struct suites *s);
struct live_suite *suites_at(const struct suites *s, size_t i);
/* The one of exactly this id that goes on; NULL: there is none. */
struct live_suite *suites_active_named(const struct suites *s, const char *id);
void suites_cancel_all(struct suites *s, const char *why);

/* *ret_details has all problems of the suite file, one per line. */
int suites_submit(struct suites *s, const struct doc *body, struct arena *a,
		  struct live_suite **ret, bool *ret_new, const char **ret_details,
		  struct err *err);
/* The same with this id; NULL: one is chosen. */
int suites_submit_as(struct suites *s, const struct doc *body, const char *id, struct arena *a,
		     struct live_suite **ret, bool *ret_new, const char **ret_details,
		     struct err *err);
/* By id or unique prefix.  One that has ended is loaded: give it back with live_suite_done(). */
struct live_suite *suites_find(struct suites *s, struct str id, struct err *err);
void live_suite_done(struct live_suite *ls);
/* The one with this number that goes on; NULL: it does not. */
struct live_suite *suites_by_no(struct suites *s, int64_t no);
/* A suite that has ended goes on: makes it active.  The body says whether with what has failed, too, and may have
 * credentials (suite_submission.h).  ERR_CONFLICT if there is nothing to do. */
int suites_again(struct suites *s, struct str id, const struct doc *body, struct arena *a,
		 struct live_suite **ret, const char **ret_details, struct err *err);

/* Steps the core.  Changed rows and effects wait for the end of the round. */
void suite_event(struct live_suite *ls, const struct suite_event *ev);
/* The run of the entry has ended, and is loaded. */
void suite_tell_end(struct live_suite *ls, int index, const struct live_run *lr);
/* The run has ended, in this round. */
void suites_run_ended(struct suites *s, struct live_run *lr);

/* For round.c: is there something to commit; save the rows; carry out the effects. */
bool suites_pending(const struct suites *s);
int suites_save(struct suites *s, struct err *err);
void suites_hand_out(struct suites *s);
/* The round could not be stored. */
void suites_not_stored(struct suites *s, const struct err *why);

/* suite_effects.c */
/* Takes the effects of a committed round; true: suite_carry_out() is to be called from the loop, so that
 * what they cause is part of a round. */
bool suite_effects_take(struct live_suite *ls, const struct suite_effects *fx);
void suite_carry_out(struct live_suite *ls);
/* The entry has this run: its end is told to the suite, and its directory is linked. */
void suite_bind(struct live_suite *ls, int index, const char *run);
/* ... its directory is linked, and no more. */
void suite_set_run(struct live_suite *ls, int index, const char *run);

/* suite_json.c: brief: without its variants. */
struct buf;
void suite_to_json(const struct live_suite *ls, bool brief, struct buf *out);
/* Where repeat r of variant v stands among the entries. */
int suite_entry_of(const struct live_suite *ls, int v, int r);
void suite_row_to_json(const struct suite_row *row, struct buf *out);
