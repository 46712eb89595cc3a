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
#define CONSOLE_MS 20000 /* for what the console of a silent machine shows */
#define HURRY_MS 1000	 /* after "--now": time to store what a killed job printed */

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
void run_go(struct step *s);
/* A node has said its first word. */
void run_heard(struct step *s);
void run_queued(struct step *s); /* the machines of a resource wait for their turn */
/* The node's machine exists, but has not spoken in time: the run fails.  console: what it shows, or "". */
void run_unheard(struct step *s, int rank, const char *console);
void run_open_gates(struct step *s);
/* The end of the slice that begins at `next`, of `n`; another tick follows if that is not all. */
int slice_end(struct step *s, int next, int n);
/* Each for the next resources or nodes: created, told to start, to stop, released and destroyed. */
void run_create_slice(struct step *s);
void run_start_slice(struct step *s);
void run_stop_slice(struct step *s);
void run_clean_slice(struct step *s);
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
/* The same, with the provider's words. */
void node_machine_gone(struct step *s, int rank, enum err_kind kind, const char *why);
void node_start(struct step *s, int rank);
void node_silent(struct step *s, int rank, int64_t heard_ms);
void node_gate_left(struct step *s, int rank);
/* True if the node counts for the verdict and exited with success. */
bool node_ended_well(const struct core_run *r, int rank);
/* Of a group that works together: a rank that has ended well while others go on; -1: none. */
int node_early_end(const struct core_run *r);
void node_prepare(struct step *s, int rank);
void node_awaited(struct step *s, int rank);
void node_tick(struct step *s, int rank);
void node_resume(struct step *s, int rank);
void node_exited(struct step *s, int rank, const struct exit_info *e);
void node_observe_soon(struct step *s, int rank);

/* ranks.c */
/* True until the ranks that the strategy orders by address are given: nothing is prepared before. */
bool ranks_awaited(const struct core_run *r);
/* Gives them, if all nodes that are awake are here, and prepares the nodes, slice by slice. */
void ranks_maybe_give(struct step *s);
void ranks_prepare_slice(struct step *s);

/* policy.c */
bool policy_try_again(struct step *s, int rank, const struct exit_info *e);
void policy_attempt_over(struct step *s, int rank);
void policy_lost(struct step *s, int rank, enum err_kind kind, const char *why);
/* The job failed on a machine that will be taken: it is lost when its output is stored. */
void policy_preempted(struct step *s, int rank, const char *why);
void policy_late(struct step *s, int rank); /* the node's by_ms has passed */
void policy_resize(struct step *s, int role, int want);
/* The whole gang starts again, which takes a retry of each node.  False: there is none left. */
bool policy_restart(struct step *s);
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
/* Nothing of the resource exists: unbinds the machine of its node, if one has enrolled or spoken. */
void enrol_machine_gone(struct step *s, int index);
/* Computes the counters of enrolment after a restart. */
void enrol_restored(struct core_run *r);

/* resource.c */
void res_event(struct step *s, const struct event *ev);
void res_create(struct step *s, int index);
/* A resource that is there already (plan_resource.id) is in the ledger, and costs what it has cost. */
void res_adopt(struct step *s, int index);
void res_observe(struct step *s, int index);
/* Moves on the time at which it ends by itself, if it is live. */
void res_extend(struct step *s, int index);
/* The resource exists, or may be created from now on: earlier observations that did not find it
 * do not count any more. */
void res_known(struct step *s, int index);
/* Iterates over the nodes that a resource carries: the first one after `rank`, -1 if none. */
int res_next_node(const struct core_run *r, int index, int rank);
/* Takes the next step towards `gone`. */
void res_clean(struct step *s, int index);
/* The resource is gone: destroys its needs too, if they are being cleaned up and have no other user. */
void res_clean_needs(struct step *s, int index);
/* Destroys the resource and all its users while the run goes on; they are created again if they
 * are wanted. */
void res_release(struct step *s, int index);
/* The node of the resource became `wanted`: destroys its machine, and creates another one unless
 * the node is asleep. */
void res_renew(struct step *s, int index);
/* True if the resource belongs to no node, or to one that is not asleep. */
bool res_is_needed(const struct core_run *r, int index);
/* True if the resource is to be created now: it does not exist, and all that it needs is live. */
bool res_wanted(const struct core_run *r, int index);
bool res_may_exist(enum res_state state);
void res_tick(struct step *s, int index);
/* Capacity was freed: a create that waits for it is sent. */
void res_capacity(struct step *s, int index);
void res_resume(struct step *s, int index);
