#pragma once
/* What the files of core/ share.  Each kind of state is changed by one function only, which
 * keeps counters, dirty marks and legal edges. */
#include "core/core.h"

/* The resource of a silent node is observed after the first time, then at the second interval, which
 * grows up to the maximum if many resources are observed by one call. */
#define OBSERVE_FIRST_MS 100
#define OBSERVE_AGAIN_MS 2000
#define OBSERVE_MAX_MS 30000
#define KILL_SLACK_MS 15000 /* beyond the grace time, until SIGKILL has taken effect */
/* Beyond lost and grace, before the rank of a silent node starts again. */
#define FENCE_SLACK_MS 2000
#define HURRY_MS 1000 /* after "--now": time to store what a killed job printed */

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
/* Asks for a tick at `at` (0: does nothing). */
void tick_want(struct step *s, int64_t at);

/* run.c */
/* True once the run has a verdict. */
bool run_stopping(const struct core_run *r);
void run_start(struct step *s);
/* provisioning -> gathering -> running, if the condition of the next phase holds. */
void run_maybe_advance(struct step *s);
void run_open_gates(struct step *s);
/* Tells the next nodes of open roles to start. */
void run_start_slice(struct step *s);
void run_end_running(struct step *s, enum verdict v, enum err_kind kind, int node, const char *fmt,
		     ...) __attribute__((format(printf, 5, 6)));
void run_lost_output(struct step *s, enum err_kind kind, int node, const char *text);
void run_check_collected(struct step *s);
void run_check_clean(struct step *s);
void run_check_success(struct step *s);
void run_regather(struct step *s, int64_t span_ms);
/* Starts a node that became ready after others of its role had started. */
void run_start_late(struct step *s, int rank);
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
/* True if the node counts for the verdict and exited with success. */
bool node_ended_well(const struct core_run *r, int rank);
void node_prepare(struct step *s, int rank);
void node_awaited(struct step *s, int rank);
void node_tick(struct step *s, int rank);
void node_resume(struct step *s, int rank);

/* policy.c */
bool policy_try_again(struct step *s, int rank, const struct exit_info *e);
void policy_attempt_over(struct step *s, int rank);
void policy_lost(struct step *s, int rank, const char *why);
/* Called when the node's by_ms has passed. */
void policy_late(struct step *s, int rank);
void policy_resize(struct step *s, int role, int want);
/* After how long a silent node is given up. */
int64_t policy_lost_after_ms(const struct core_run *r, int rank);
/* The machine of a node on which nothing was started is given back: the node becomes `wanted`. */
void node_unbind(struct step *s, int rank);

/* Wakes a node that sleeps because its machine was lost. */
void policy_wake(struct step *s, int rank);

/* enrol.c */
void enrol_event(struct step *s, const struct event *ev);
/* Takes the provider's id of a resource from the answer to a create or a find. */
void enrol_take_id(struct step *s, int index, const char *id);
/* Nothing of the resource exists: unbinds the machine of its node, if one has enrolled. */
void enrol_machine_gone(struct step *s, int index);
/* Computes the counters of enrolment after a restart. */
void enrol_restored(struct core_run *r);

/* ladder.c */
/* True if a create that failed with this kind of error is not tried again. */
bool kind_is_fatal(enum err_kind kind);
/* Asks again later, after a pause that depends on the kind of error and grows with each try. */
void retry_later(struct step *s, int index, enum err_kind kind, const char *why);
void retry_after(struct step *s, int index, int64_t pause_ms, enum err_kind kind, const char *why);
/* The pause for the next try, which grows with each try of the resource. */
int64_t retry_backoff_ms(struct step *s, int index, enum err_kind kind);
/* True if calls of the run must wait because the provider throttles; the resource is then
 * retried after the wait. */
bool calls_wait(struct step *s, int index);
void calls_answered(struct step *s, const struct event *ev);
/* A create was refused and nothing of the resource exists: tries the next choice, or the same
 * again. */
void ladder_refused(struct step *s, int index, enum err_kind kind, const char *why);
/* Nothing of the resource exists any more: it takes over the choice of its group, whose creates
 * are sent when it was the last one to do so. */
void ladder_follow(struct step *s, int index);
/* True if the resource's group has moved on to another choice: the resource is to be destroyed. */
bool ladder_left_behind(const struct core_run *r, int index);
/* True if a create must wait because resources of the group's earlier choice may still exist. */
bool ladder_waits(const struct core_run *r, int index);
/* " (7 tries of 3 choices, the last ...)", or "". */
void ladder_describe(const struct core_run *r, int index, char *out, size_t size);
/* Computes the state of the groups after a restart. */
void ladder_restored(struct core_run *r);

/* resource.c */
void res_event(struct step *s, const struct event *ev);
void res_create(struct step *s, int index);
void res_observe(struct step *s, int index);
/* The resource exists, or may be created from now on: earlier observations that did not find it
 * do not count any more. */
void res_known(struct step *s, int index);
/* Iterates over the nodes that a resource carries: the first one after `rank`, -1 if none. */
int res_next_node(const struct core_run *r, int index, int rank);
/* Takes the next step towards `gone`. */
void res_clean(struct step *s, int index);
/* Destroys the resource and all its users while the run goes on; they are created again if they
 * are wanted. */
void res_release(struct step *s, int index);
/* The node of the resource became `wanted`: destroys its machine, and creates another one unless
 * the node is asleep. */
void res_renew(struct step *s, int index);
/* True if the resource belongs to no node, or to one that is not asleep. */
bool res_is_needed(const struct core_run *r, int index);
/* True if the resource is to be created now: it does not exist, and everything that it needs is
 * live. */
bool res_wanted(const struct core_run *r, int index);
bool res_may_exist(enum res_state state);
void res_tick(struct step *s, int index);
/* Capacity was freed: a create that waits for it is sent. */
void res_capacity(struct step *s, int index);
void res_resume(struct step *s, int index);
