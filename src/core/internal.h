#pragma once
/* What the files of core/ share.  One function changes each kind of state, so that counters,
 * dirty marks and legal edges are kept in one place. */
#include "core/core.h"

#define BACKOFF_FIRST_MS 200
#define BACKOFF_MAX_MS 30000
#define OBSERVE_FIRST_MS 100  /* a silent node's resource is looked at after this ... */
#define OBSERVE_AGAIN_MS 2000 /* ... and then this often, ... */
#define OBSERVE_MAX_MS 30000  /* ... or if many are looked at in one call less and less often */
#define KILL_SLACK_MS 15000   /* beyond the grace time, for SIGKILL to do its work */
#define HURRY_MS 1000	      /* after "--now", for what a killed job printed to be stored */

struct step {
	struct core_run *r;
	int64_t now;
	struct effects *out;
};

void run_set_phase(struct step *s, enum run_phase to);
void node_set_state(struct step *s, int rank, enum node_state to);
void res_set_state(struct step *s, int index, enum res_state to);
void run_touch(struct step *s);
void node_touch(struct step *s, int rank);
void res_touch(struct step *s, int index);
void effect_add(struct step *s, enum effect_kind kind, int index);
/* Ask for a tick at `at` (0 = nothing to ask). */
void tick_want(struct step *s, int64_t at);

/* run.c */
bool run_stopping(const struct core_run *r); /* a verdict stands */
void run_start(struct step *s);
void run_maybe_advance(struct step *s); /* provisioning -> gathering -> running */
void run_open_gates(struct step *s);
void run_end_running(struct step *s, enum verdict v, enum err_kind kind, int node, const char *fmt,
		     ...) __attribute__((format(printf, 5, 6)));
void run_lost_output(struct step *s, enum err_kind kind, int node, const char *text);
void run_check_collected(struct step *s);
void run_check_clean(struct step *s);
void run_cancel(struct step *s, const struct event *ev);
void run_deadline(struct step *s);

/* node.c */
void node_event(struct step *s, const struct event *ev);
void node_stop(struct step *s, int rank);
void node_settle(struct step *s, int rank);
void node_give_up(struct step *s, int rank);
void node_lose(struct step *s, int rank, const char *why);
void node_start(struct step *s, int rank);
void node_silent(struct step *s, int rank);
void node_awaited(struct step *s, int rank);
void node_tick(struct step *s, int rank);
void node_resume(struct step *s, int rank);

/* resource.c */
void res_event(struct step *s, const struct event *ev);
void res_create(struct step *s, int index);
void res_observe(struct step *s, int index);
void res_clean(struct step *s, int index); /* towards gone, as its state asks */
void res_tick(struct step *s, int index);
void res_resume(struct step *s, int index);
