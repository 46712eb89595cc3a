/*
 * What happens to nodes that fail, are lost, or are not wanted any more: the policy of their
 * role (spec/job.h, struct policy), and the way back to another attempt.
 *
 * job failed, retries left   output stored, then the next attempt on the same machine
 * lost, replace              another machine; the other nodes go on
 * lost, shrink               the node falls asleep, if at least min nodes are left
 * lost, restart              all nodes are stopped, stored, made ready and started together
 * stalled, restart           as lost, restart; it takes a retry of each node
 * resized                    nodes with the highest index fall asleep, or wake
 * failed after a notice      as lost, when its output is stored: never again on that machine
 *
 * Two attempts of a rank never overlap.  On one machine the next attempt starts when the one
 * before has ended and its output is stored.  Another machine is created when the one before is
 * proven gone; for a silent one this begins only after its agent must have ended the job by
 * itself (policy_lost_after_ms()).
 */
#include "core/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

/* A machine without an agent cannot be told to start again, or to wait for others. */
static const struct policy *policy_of(const struct core_run *r, int rank)
{
	static const struct policy none = {.on_lost = LOST_FAIL};

	if (r->plan->agentless)
		return &none;
	return &r->plan->crew.roles[r->plan->crew.members[rank].role].spec->policy;
}

static const char *name_of(const struct core_run *r, int rank)
{
	return r->plan->crew.members[rank].name;
}

static const struct timeouts *limits(const struct core_run *r)
{
	return &r->plan->job->timeouts;
}

int64_t core_lost_ms(const struct core_run *r, int rank)
{
	return policy_of(r, rank)->on_lost == LOST_FAIL ? 0 : limits(r)->lost_ms;
}

int64_t policy_lost_after_ms(const struct core_run *r, int rank)
{
	int64_t lost_ms = core_lost_ms(r, rank);

	return lost_ms ? lost_ms + limits(r)->grace_ms + FENCE_SLACK_MS : limits(r)->lease_ms;
}

static void be_there_within(struct step *s, int rank, int64_t span_ms)
{
	s->r->nodes[rank].by_ms = s->now + span_ms;
	tick_want(s, s->r->nodes[rank].by_ms);
	node_touch(s, rank);
}

static int64_t coming_ms(const struct core_run *r)
{
	return limits(r)->launch_ms + (r->plan->boots ? limits(r)->boot_ms : 0) +
	       plan_gather_ms(r->plan);
}

static int64_t going_ms(const struct core_run *r)
{
	return limits(r)->grace_ms + KILL_SLACK_MS + limits(r)->collect_ms;
}

/* The node no longer counts: neither its exit for the verdict, nor its service for the gates of
 * other roles. */
static void uncount(struct step *s, int rank)
{
	if (node_ended_well(s->r, rank))
		s->r->counted_ok--;
	node_gate_left(s, rank);
}

/*
 * Resets the node as if its attempt had not been made, except for the attempt's number.  To
 * `ready`: the next attempt is on the same machine.  To `wanted`: it is on another machine, or
 * there is none.
 */
static void take_back(struct step *s, int rank, enum node_state to)
{
	struct core_run *r = s->r;
	struct core_node *n = &r->nodes[rank];

	uncount(s, rank);
	if (n->settled)
		r->settled--;
	n->settled = n->start_sent = n->stop_sent = n->serving = n->no_room = false;
	n->after = AFTER_END;
	n->exit = (struct exit_info){.code = -1};
	n->serve_by_ms = n->give_up_ms = n->by_ms = 0;
	node_set_state(s, rank, to);
	if (to != NODE_WANTED)
		return;
	r->members_no++;
	r->role_free[r->plan->crew.members[rank].role] = 0;
	n->incarnation++;
	n->identity[0] = '\0';
	n->connected = n->preparing = false;
	n->lost_at_ms = n->observe_at_ms = n->preempt_at_ms = 0;
	snprintf(n->address, sizeof(n->address), "%s",
		 r->plan->addresses[rank] ? r->plan->addresses[rank] : "");
}

/* Gives up the node's machine: the node becomes `wanted`. */
static void release(struct step *s, int rank)
{
	if (s->r->nodes[rank].connected)
		effect_add(s, FX_RELEASE, rank);
	take_back(s, rank, NODE_WANTED);
}

void node_unbind(struct step *s, int rank)
{
	enum node_state st = s->r->nodes[rank].state;

	if (st == NODE_LAUNCHING || st == NODE_HERE || st == NODE_READY)
		release(s, rank);
}

static void give_back(struct step *s, int rank)
{
	struct core_run *r = s->r;
	int index = r->plan->resource_of[rank];

	release(s, rank);
	/* A resource that carries many nodes replaces the machine by itself. */
	if (r->plan->resources[index].node == rank)
		res_renew(s, index);
	else if (!r->nodes[rank].asleep)
		node_set_state(s, rank, NODE_LAUNCHING);
}

static void replace(struct step *s, int rank)
{
	give_back(s, rank);
	be_there_within(s, rank, coming_ms(s->r));
}

static bool has_own_resource(const struct core_run *r, int rank)
{
	return r->plan->resources[r->plan->resource_of[rank]].node == rank;
}

static void count_awake(struct core_run *r, int rank, int by)
{
	int role = r->plan->crew.members[rank].role;

	r->members_no++;
	r->awake += by;
	r->role_awake[role] += by;
	if (r->plan->crew.roles[role].counted)
		r->counted += by;
	if (has_own_resource(r, rank))
		r->res_idle -= by;
}

/* One node fewer is awake: checks what waited for it. */
static void one_fewer(struct step *s)
{
	ranks_maybe_give(s);
	run_maybe_advance(s);
	run_open_gates(s);
	run_check_success(s);
}

static bool is_started(const struct core_node *n)
{
	return n->start_sent && (n->state == NODE_READY || n->state == NODE_RUNNING);
}

/* Ends the node's attempt.  False: policy_attempt_over() follows when its output is stored. */
static bool end_attempt(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (is_started(n))
		node_stop(s, rank);
	if ((!is_started(n) && n->state != NODE_EXITED) || n->settled)
		return true;
	be_there_within(s, rank, going_ms(s->r));
	return false;
}

static void sleep_node(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	uncount(s, rank);
	n->asleep = true;
	n->by_ms = 0; /* nobody waits for its machine any more */
	count_awake(s->r, rank, -1);
	node_touch(s, rank);
	if (n->state == NODE_WANTED)
		return;
	if (end_attempt(s, rank))
		give_back(s, rank);
}

static void wake_node(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	n->asleep = n->shrunk = false;
	s->r->role_free[s->r->plan->crew.members[rank].role] = 0;
	count_awake(s->r, rank, 1);
	node_touch(s, rank);
	if (n->state != NODE_WANTED) {
		/* it is ending its attempt, and starts again on the same machine */
		n->after = AFTER_AGAIN;
		return;
	}
	n->settled = false;
	be_there_within(s, rank, coming_ms(s->r));
	if (has_own_resource(s->r, rank))
		res_renew(s, s->r->plan->resource_of[rank]);
	else
		node_set_state(s, rank, NODE_LAUNCHING);
}

void policy_wake(struct step *s, int rank)
{
	wake_node(s, rank);
}

static bool code_is_listed(const struct policy *p, const struct exit_info *e)
{
	int64_t code = e->signal ? JOB_SIGNAL_CODE + e->signal : e->code;

	for (size_t i = 0; i < p->retry_on.n; i++)
		if (p->retry_on.v[i] == code)
			return true;
	return p->retry_on.n == 0;
}

bool policy_try_again(struct step *s, int rank, const struct exit_info *e)
{
	const struct policy *p = policy_of(s->r, rank);
	struct core_node *n = &s->r->nodes[rank];

	if (e->kind != ERR_NONE || n->retried >= p->retries || !code_is_listed(p, e))
		return false;
	n->retried++;
	n->after = AFTER_AGAIN;
	be_there_within(s, rank, going_ms(s->r));
	return true;
}

void policy_attempt_over(struct step *s, int rank)
{
	struct core_run *r = s->r;

	if (r->nodes[rank].asleep) {
		give_back(s, rank);
		return;
	}
	if (r->nodes[rank].preempt_at_ms) {
		replace(s, rank);
		return;
	}
	take_back(s, rank, NODE_READY);
	if (r->nodes[rank].connected) /* its outputs go to another directory now */
		node_prepare(s, rank);
	else
		node_silent(s, rank, 0);
	run_maybe_advance(s);
	run_start_late(s, rank);
}

static void restart_one(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->state == NODE_LOST) {
		replace(s, rank);
	} else if (is_started(n) || n->state == NODE_EXITED) {
		uncount(s, rank);
		n->after = AFTER_AGAIN;
		node_touch(s, rank);
		if (end_attempt(s, rank))
			policy_attempt_over(s, rank);
	}
}

/* Restarts the whole gang: started nodes end first, and none starts before all are ready again. */
static void restart_all(struct step *s)
{
	struct core_run *r = s->r;

	run_regather(s, going_ms(r) + coming_ms(r));
	for (int i = 0; i < r->plan->crew.n; i++)
		if (!r->nodes[i].asleep)
			restart_one(s, i);
	run_maybe_advance(s);
}

static void restart(struct step *s, int lost)
{
	if (s->r->phase == RUN_RUNNING)
		restart_all(s);
	else
		replace(s, lost);
}

bool policy_restart(struct step *s)
{
	struct core_run *r = s->r;

	for (int i = 0; i < r->plan->crew.n; i++)
		if (!r->nodes[i].asleep && r->nodes[i].retried >= policy_of(r, i)->retries)
			return false;
	for (int i = 0; i < r->plan->crew.n; i++)
		if (!r->nodes[i].asleep) {
			r->nodes[i].retried++;
			node_touch(s, i);
		}
	restart_all(s);
	return true;
}

static void fail(struct step *s, int rank, enum err_kind kind, const char *what)
{
	run_end_running(s, VERDICT_FAILED, kind, rank, "%s %s", name_of(s->r, rank), what);
}

static bool can_shrink(const struct core_run *r, int rank)
{
	return r->role_awake[r->plan->crew.members[rank].role] > policy_of(r, rank)->min;
}

/* The role goes on without the node; should a machine come by itself, it is welcome. */
static void shrink_by(struct step *s, int rank)
{
	s->r->nodes[rank].shrunk = true;
	sleep_node(s, rank);
	one_fewer(s);
}

static const char *lost_word(enum err_kind kind)
{
	return kind == ERR_PREEMPTED ? "was preempted" : "was lost";
}

static void shrink(struct step *s, int rank, enum err_kind kind, const char *why)
{
	char text[260];

	if (!can_shrink(s->r, rank)) {
		snprintf(text, sizeof(text), "%s, and fewer than min = %d would be left: %s",
			 lost_word(kind), (int)policy_of(s->r, rank)->min, why);
		fail(s, rank, kind, text);
		return;
	}
	shrink_by(s, rank);
}

static void fail_lost(struct step *s, int rank, enum err_kind kind, const char *why)
{
	char text[260];

	snprintf(text, sizeof(text), "%s: %s", lost_word(kind), why);
	fail(s, rank, kind, text);
}

void policy_lost(struct step *s, int rank, enum err_kind kind, const char *why)
{

	if (s->r->nodes[rank].asleep) {
		give_back(s, rank);
		return;
	}
	switch ((enum on_lost)policy_of(s->r, rank)->on_lost) {
	case LOST_FAIL:
		fail_lost(s, rank, kind, why);
		return;
	case LOST_REPLACE:
		replace(s, rank);
		return;
	case LOST_SHRINK:
		shrink(s, rank, kind, why);
		return;
	case LOST_RESTART:
		restart(s, rank);
		return;
	}
}

void policy_preempted(struct step *s, int rank, const char *why)
{
	switch ((enum on_lost)policy_of(s->r, rank)->on_lost) {
	case LOST_FAIL:
		fail_lost(s, rank, ERR_PREEMPTED, why);
		return;
	case LOST_REPLACE:
		s->r->nodes[rank].after = AFTER_AGAIN;
		be_there_within(s, rank, going_ms(s->r));
		return;
	case LOST_SHRINK:
		shrink(s, rank, ERR_PREEMPTED, why);
		return;
	case LOST_RESTART:
		restart(s, rank);
		return;
	}
}

void policy_late(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];
	char span[32], text[160];

	n->by_ms = 0;
	node_touch(s, rank);
	if (run_stopping(s->r))
		return;
	if (n->state == NODE_RUNNING || n->state == NODE_EXITED || is_started(n)) {
		node_lose(s, rank, "its output was not stored in time");
		return;
	}
	if (can_shrink(s->r, rank)) {
		shrink_by(s, rank);
		return;
	}
	clock_format_span(coming_ms(s->r), span);
	snprintf(text, sizeof(text),
		 "was not ready within %s (timeouts.launch and timeouts.gather): it is still '%s'",
		 span, node_state_name(n->state));
	fail(s, rank, ERR_TIMEOUT, text);
}

int core_resize_check(const struct core_run *r, int role, int want, struct err *err)
{
	const struct strategy_role *sr = &r->plan->crew.roles[role];
	const struct policy *p = &sr->spec->policy;

	if (r->phase >= RUN_COLLECTING || r->verdict != VERDICT_NONE)
		return err_set(
			err, ERR_CONFLICT,
			"the run is over (%s): it can be resized only until its job has ended",
			run_phase_name(r->phase));
	if (r->phase == RUN_ACCEPTED && plan_queues(r->plan))
		return err_set(err, ERR_CONFLICT,
			       "the run waits in the queue: it can be resized once it has started");
	if (!plan_has_nodes(r->plan))
		return err_set(err, ERR_CONFLICT,
			       "the run's own master has its nodes: ask that one");
	if (p->min == p->max)
		return err_set(
			err, ERR_CONFLICT,
			"role %s has %d node%s, no more and no fewer: its job file gives no min and max",
			sr->name, (int)p->max, p->max == 1 ? "" : "s");
	if (want < p->min)
		return err_set(err, ERR_INVALID, "role %s needs at least %d node%s (min): not %d",
			       sr->name, (int)p->min, p->min == 1 ? "" : "s", want);
	if (want > p->max)
		return err_set(err, ERR_INVALID, "role %s can have at most %d node%s (max): not %d",
			       sr->name, (int)p->max, p->max == 1 ? "" : "s", want);
	return 0;
}

/* How many there are is somebody's decision now. */
static void forget_shrunk(struct step *s, int role)
{
	const struct crew *c = &s->r->plan->crew;

	for (int i = 0; i < c->n; i++)
		if (c->members[i].role == role && s->r->nodes[i].shrunk) {
			s->r->nodes[i].shrunk = false;
			node_touch(s, i);
		}
}

void policy_resize(struct step *s, int role, int want)
{
	struct core_run *r = s->r;
	const struct crew *c = &r->plan->crew;

	if (core_resize_check(r, role, want, NULL) < 0)
		return;
	run_touch(s);
	forget_shrunk(s, role);
	for (int i = c->n - 1; i >= 0 && r->role_awake[role] > want; i--)
		if (c->members[i].role == role && !r->nodes[i].asleep)
			sleep_node(s, i);
	for (int i = 0; i < c->n && r->role_awake[role] < want; i++)
		if (c->members[i].role == role && r->nodes[i].asleep)
			wake_node(s, i);
	one_fewer(s);
}
