#pragma once
/*
 * suite - the life of a suite: which of its runs exist, which are to start, and when it has ended.
 *
 * Pure, as core.h is.  A suite has entries, one for each repeat of each variant, in the order in
 * which they start.  An entry has at most one run for each of its attempts: the shell makes the run
 * with a request id of suite, entry and attempt, so a start that is asked for again after a crash
 * gives the same run.  An entry that has succeeded never starts again.  The next attempt of one that
 * has not is made only when the user resumes the suite.
 *
 * No effect is lost in a crash: an entry in `starting` waits for its run to be made, one in `running`
 * for its end, the phase `closing` for the commands of on_exit.  SUITE_RESUME asks for all of them
 * again; every effect is idempotent, but the commands may run twice.
 *
 * on_exit runs where the suite was started.  A client elsewhere that stays has a name (`client`): when
 * all runs have ended the commands are offered to it.  It takes them on with SUITE_CLAIM, which it
 * repeats while they run, and ends with SUITE_CLOSED.  If it does not come, or is silent until its time
 * is over, the master runs them; from then on the client has no part in it.
 *
 * A suite may be away: it is with another master, on a machine that a run of this master, the carrier, has made for it
 * (carrier.h).  Then nothing starts here.  What the other master tells of its entries is taken over (SUITE_SEEN), a
 * cancel is passed on by way of the carrier.  When the carrier has ended, the results are taken in, now and then again
 * while they cannot be (SUITE_NOT_BACK).  Then the suite is back (SUITE_BACK) and ends: at once if the other master has
 * ended it, on_exit included; else what ran there has failed, unless its results have told its end, what waits stays
 * so, and on_exit runs here.  One that is resumed may go away again, with another carrier.  Then the other master has no
 * on_exit: it would not have the results of before.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/vec.h"
#include "core/core.h"
#include "spec/suite.h"

enum suite_phase {
	SUITE_RUNNING,
	SUITE_STOPPING, /* nothing more starts: it was cancelled, or became too dear */
	SUITE_CLOSING,	/* all runs have ended, on_exit runs */
	SUITE_SUCCEEDED,
	SUITE_FAILED,
	SUITE_CANCELLED,
};
#define SUITE_PHASES (SUITE_CANCELLED + 1)

/* Who runs on_exit, in the phase closing. */
enum suite_closer {
	CLOSER_NONE,
	CLOSER_OFFERED, /* the client may take it on */
	CLOSER_CLIENT,
	CLOSER_MASTER,
};
#define SUITE_CLOSERS (CLOSER_MASTER + 1)
#define SUITE_OFFER_MS 10000 /* how long the client is waited for */
#define SUITE_CLAIM_MS 30000 /* how long it may be silent; it repeats its claim more often */
#define SUITE_CLIENT_SIZE 40

enum entry_state {
	ENTRY_WAITING,
	ENTRY_STARTING, /* its run is to be made */
	ENTRY_RUNNING,
	ENTRY_SUCCEEDED,
	ENTRY_FAILED,
	ENTRY_CANCELLED,
	ENTRY_SKIPPED, /* a variant that it comes after has not succeeded */
};
#define ENTRY_STATES (ENTRY_SKIPPED + 1)

struct suite_entry {
	int variant, repeat;
	enum entry_state state;
	int attempt;	    /* from 1 */
	int64_t cost_micro; /* of all its attempts that have ended */
	enum err_kind kind; /* of the cause */
	char cause[200];    /* why it has not succeeded, or does not start now */
	int64_t since_ms;   /* when its run was made, if this master made it; not stored */
	bool dirty;
};

struct core_suite {
	const struct suite *plan; /* not owned */
	int parallel;		  /* runs at a time: the shell decides what "auto" is */
	enum suite_phase phase;
	bool cancel_asked, hurry, too_dear;
	bool away;	   /* another master has it */
	int carrier;	   /* number of the run that carries it, or will, from 1 */
	bool closed_there; /* ... and has ended it, on_exit included, as it was last told */
	int returns;	   /* tries to take its results in that were put off; not stored */
	enum err_kind kind;
	char cause[200];		/* why it was stopped */
	char closed[200];		/* what went wrong in on_exit; "": nothing */
	char client[SUITE_CLIENT_SIZE]; /* that stays and runs on_exit elsewhere; "": none */
	enum suite_closer closer;
	bool close_asked;	 /* this master has been asked to run on_exit; not stored */
	int64_t closer_until_ms; /* of an offer or a claim */
	int64_t since_ms;	 /* of the phase */
	int64_t spent_micro,
		active_micro; /* of runs that have ended, and of the others; the latter is
					    * not stored */
	int64_t took_ms;      /* of the runs that this master saw from their start to their end, */
	int took;	      /* and their number; not stored */
	int64_t next_ms;      /* when a tick is wanted; 0: never */
	int tries; /* starts refused since the last that was not, for the back-off; not stored */
	struct suite_entry *entries;
	int n;
	int count[ENTRY_STATES];
	bool ordered; /* a variant comes after another */
	int first;    /* no entry before this one waits */
	int *left;    /* per variant: entries that have not succeeded */
	bool *failed; /* per variant: an entry has ended without success */
	bool dirty;
};

enum suite_event_kind {
	SUITE_ACCEPTED,
	SUITE_RESUME, /* the master was restarted */
	SUITE_TICK,
	SUITE_STARTED, /* index, attempt: its run is made */
	SUITE_REFUSED, /* index, attempt, err_kind, text: its run cannot be made */
	/* index, attempt, verdict, err_kind, text, micro: what it has cost.  Away: its results are here */
	SUITE_RUN_ENDED,
	SUITE_COST,   /* micro: what the active runs have cost until now */
	SUITE_CANCEL, /* hurry, text */
	/* what was cancelled or skipped starts again; failed: what has failed, too; away: with another master; client */
	SUITE_AGAIN,
	/* index, attempt, state, micro, text: how an entry stands at the master that has the suite */
	SUITE_SEEN,
	SUITE_SEEN_END, /* closed: that master has ended the suite */
	/* err_kind: the carrier has ended, and its results cannot be taken in; see suite_returns_later() */
	SUITE_NOT_BACK,
	SUITE_BACK,   /* verdict, err_kind, text: how the carrier has ended */
	SUITE_CLAIM,  /* client: it runs on_exit, or goes on with it */
	SUITE_CLOSED, /* client, "": the master; text: what went wrong in on_exit, "": nothing */
};

struct suite_event {
	enum suite_event_kind kind;
	int index, attempt;
	enum verdict verdict;
	enum entry_state state; /* SUITE_SEEN */
	enum err_kind err_kind;
	int64_t micro;
	bool hurry, failed, away, closed;
	char text[200];
	char client[SUITE_CLIENT_SIZE];
};

enum suite_effect_kind {
	SUITE_FX_START, /* index, attempt: make its run */
	SUITE_FX_CANCEL, /* index, attempt, hurry: cancel its run; index -1: the carrier with this number */
	SUITE_FX_RETURN, /* take the results in again */
	SUITE_FX_CLOSE,	 /* run the commands of on_exit */
	SUITE_FX_ENDED,
};
struct suite_effect {
	enum suite_effect_kind kind;
	int index, attempt;
	bool hurry;
};
struct suite_effects {
	VEC(struct suite_effect) v;
	VEC(int) entries; /* whose row has changed, once each */
	uint64_t changes;
};
void suite_effects_release(struct suite_effects *fx);

/* The plan must outlive it.  parallel: at least 1. */
struct core_suite *core_suite_new(const struct suite *plan, int parallel);
struct core_suite *core_suite_free(struct core_suite *s);
/* To be called after the rows were filled in from the store: computes the counters. */
void core_suite_restored(struct core_suite *s);
/* Appends effects and changed rows to *out; their `dirty` is set, which the shell clears when it has
 * saved them (s->dirty for the suite's own row).  An event that does not fit the state changes
 * nothing. */
void suite_step(struct core_suite *s, const struct suite_event *ev, int64_t now_ms,
		struct suite_effects *out);

bool suite_phase_is_final(enum suite_phase p);
bool entry_state_is_final(enum entry_state e);
/* Has the client taken on on_exit, and not lost it again? */
bool suite_is_claimed_by(const struct core_suite *s, const char *client);
const char *suite_phase_name(enum suite_phase p);
const char *entry_state_name(enum entry_state e);
/* ENTRY_STATES: there is none of this name. */
enum entry_state entry_state_named(struct str name);
/* The final phase that follows from its entries as they are.  One that has succeeded is never resumed. */
enum suite_phase suite_outcome(const struct core_suite *s);
/* Has every run succeeded, whatever the suite is called?  Then nothing can be resumed. */
bool suite_is_done(const struct core_suite *s);
/* Will one that has not ended run all of its entries anyway?  Then a resume has nothing to do. */
bool suite_goes_on(const struct core_suite *s);
/* It is away, and its results will be taken in later (SUITE_FX_RETURN). */
bool suite_returns_later(const struct core_suite *s);
/* How long the rest will take about, judged by the runs that have ended; -1: nobody knows. */
int64_t suite_left_ms(const struct core_suite *s, int64_t now_ms);
/* The exit code of `regatta suite run` for an ended suite. */
int suite_exit_code(const struct core_suite *s);
