#pragma once
/* What the files of core/ share.  One function changes each kind of state, so that counters,
 * dirty marks and legal edges are kept in one place. */
#include "core/core.h"

#define OBSERVE_FIRST_MS 100  /* a silent node's resource is looked at after this ... */
#define OBSERVE_AGAIN_MS 2000 /* ... and then this often, ... */
#define OBSERVE_MAX_MS 30000  /* ... or if many are looked at in one call less and less often */
#define KILL_SLACK_MS 15000   /* beyond the grace time, for SIGKILL to do its work */
#define FENCE_SLACK_MS                                                                             \
	2000	      /* beyond lost and grace, before the rank of a silent node starts again */
#define HURRY_MS 1000 /* after "--now", for what a killed job printed to be stored */

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
void run_start_slice(struct step *s); /* tell the next nodes of open roles to start */
void run_end_running(struct step *s, enum verdict v, enum err_kind kind, int node, const char *fmt,
		     ...) __attribute__((format(printf, 5, 6)));
void run_lost_output(struct step *s, enum err_kind kind, int node, const char *text);
void run_check_collected(struct step *s);
void run_check_clean(struct step *s);
void run_check_success(struct step *s);
void run_regather(struct step *s, int64_t span_ms);
void run_start_late(struct step *s, int rank); /* it is ready after the others of its role */
void run_cancel(struct step *s, const struct event *ev);
void run_deadline(struct step *s);

/* node.c */
void node_event(struct step *s, const struct event *ev);
void node_stop(struct step *s, int rank);
void node_settle(struct step *s, int rank);
void node_give_up(struct step *s, int rank);
void node_lose(struct step *s, int rank, const char *why);
void node_start(struct step *s, int rank);
void node_silent(struct step *s, int rank, int64_t heard_ms);
void node_gate_left(struct step *s, int rank);
bool node_ended_well(const struct core_run *r, int rank); /* and it counts */
void node_prepare(struct step *s, int rank);
void node_awaited(struct step *s, int rank);
void node_tick(struct step *s, int rank);
void node_resume(struct step *s, int rank);

/* policy.c */
bool policy_try_again(struct step *s, int rank, const struct exit_info *e);
void policy_attempt_over(struct step *s, int rank);
void policy_lost(struct step *s, int rank, const char *why);
void policy_late(struct step *s, int rank); /* its by_ms has passed */
void policy_resize(struct step *s, int role, int want);
/* When a silent node is given up. */
int64_t policy_lost_after_ms(const struct core_run *r, int rank);
/* Its machine is given back before anything was started there: it waits for the next. */
void node_unbind(struct step *s, int rank);

/* ladder.c */
/* A create refused for this reason is not worth another try. */
bool kind_is_fatal(enum err_kind kind);
/* It is asked for again later, as the kind of the trouble says. */
void retry_later(struct step *s, int index, enum err_kind kind, const char *why);
void retry_after(struct step *s, int index, int64_t pause_ms, enum err_kind kind, const char *why);
/* A pause that grows with each of the resource's tries. */
int64_t retry_backoff_ms(struct step *s, int index, enum err_kind kind);
/* Every call of the run waits a while, as the provider asks; if so, the resource is asked for then. */
bool calls_wait(struct step *s, int index);
void calls_answered(struct step *s, const struct event *ev);
/* Its create was refused, and nothing of it exists: on with the next choice, or the same again. */
void ladder_refused(struct step *s, int index, enum err_kind kind, const char *why);
/* Nothing of it exists any more: it takes the step of its group, which goes on when it was the last. */
void ladder_follow(struct step *s, int index);
/* Its group has moved on to another choice: whatever there is of it is to go. */
bool ladder_left_behind(const struct core_run *r, int index);
/* It must not be asked for yet: some of its group's last choice may be left. */
bool ladder_waits(const struct core_run *r, int index);
/* " (7 tries of 3 choices, the last ...)", or nothing. */
void ladder_describe(const struct core_run *r, int index, char *out, size_t size);
/* After a restart: where its group is. */
void ladder_restored(struct core_run *r);

/* resource.c */
void res_event(struct step *s, const struct event *ev);
void res_create(struct step *s, int index);
void res_observe(struct step *s, int index);
void res_clean(struct step *s, int index); /* towards gone, as its state asks */
/* The run goes on without this one: it goes, with all that needs it, and is asked for anew. */
void res_release(struct step *s, int index);
/* Its node was taken back to `wanted`: the machine goes, and another comes unless the node is asleep. */
void res_renew(struct step *s, int index);
/* Of a node that is awake, or of none. */
bool res_is_needed(const struct core_run *r, int index);
/* It is to be had now: nothing of it exists, and all that it needs does. */
bool res_wanted(const struct core_run *r, int index);
bool res_may_exist(enum res_state state);
void res_tick(struct step *s, int index);
void res_capacity(struct step *s, int index); /* what it waits for may be had now */
void res_resume(struct step *s, int index);
