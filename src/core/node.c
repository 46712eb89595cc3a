/* The life of a node, from wanted to released, and the events that its agent causes. */
#include "core/internal.h"
#include "core/agentless.h"
#include "core/preflight.h"
#include "core/stall.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/exit_text.h"

/* Between observations of a resource that carries many nodes, at most: a cause is known within ten seconds. */
#define OBSERVE_MANY_MS 8000

static const struct strategy_role *role_of(const struct core_run *r, int rank)
{
	return &r->plan->crew.roles[r->plan->crew.members[rank].role];
}

static const char *name_of(const struct core_run *r, int rank)
{
	return r->plan->crew.members[rank].name;
}

/* True if the node ends its attempt to start another, or because it is not wanted: its exit does
 * not count. */
static bool is_leaving(const struct core_node *n)
{
	return n->asleep || n->after == AFTER_AGAIN;
}

/* True if the node may still run or hand over output, so that its silence matters. */
static bool expected(const struct core_run *r, int rank)
{
	const struct core_node *n = &r->nodes[rank];
	return r->phase < RUN_CLEANING && !n->settled && n->state >= NODE_LAUNCHING &&
	       n->state <= NODE_EXITED;
}

bool node_ended_well(const struct core_run *r, int rank)
{
	const struct core_node *n = &r->nodes[rank];
	const struct exit_info *e = &n->exit;

	return strategy_counts(&r->plan->crew, rank) && !is_leaving(n) && n->attempt > 0 &&
	       (n->state == NODE_EXITED || n->state == NODE_RELEASED) && e->code == 0 &&
	       e->signal == 0 && e->kind == ERR_NONE;
}

void node_settle(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->settled)
		return;
	n->settled = true;
	s->r->settled++;
	node_touch(s, rank);
}

/* After a cancel: gives up the output of a node whose job has ended, at once if the disk is
 * full, after HURRY_MS with "--now". */
void node_give_up(struct step *s, int rank)
{
	const struct core_run *r = s->r;
	struct core_node *n = &r->nodes[rank];

	if (n->settled || n->state != NODE_EXITED || !r->cancel_asked)
		return;
	if (n->no_room) {
		node_settle(s, rank);
		run_check_collected(s);
	} else if (r->hurry) {
		n->give_up_ms = s->now + HURRY_MS;
		tick_want(s, n->give_up_ms);
	}
}

static void lose(struct step *s, int rank, enum err_kind kind, const char *why)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->state == NODE_WANTED || n->state == NODE_RELEASED || n->state == NODE_LOST)
		return;
	if (n->state != NODE_EXITED) {
		n->exit = (struct exit_info){.code = -1, .kind = kind};
		snprintf(n->exit.reason, sizeof(n->exit.reason), "%.159s", why);
	}
	if (node_ended_well(s->r, rank)) /* its output is not stored */
		s->r->counted_ok--;
	node_set_state(s, rank, NODE_LOST);
	n->lost_at_ms = n->observe_at_ms = n->serve_by_ms = n->by_ms = 0;
	node_settle(s, rank);
	if (!run_stopping(s->r))
		policy_lost(s, rank, kind, why);
}

/* Whatever happens to a node after the notice is due to the provider. */
static enum err_kind loss_kind(const struct core_node *n, enum err_kind kind)
{
	if (n->preempt_at_ms || kind == ERR_PREEMPTED)
		return ERR_PREEMPTED;
	/* A provider that makes machines by itself says only later that it may not, or cannot. */
	return kind == ERR_QUOTA || kind == ERR_DENIED || kind == ERR_INVALID ? kind
									      : ERR_UNAVAILABLE;
}

void node_lose(struct step *s, int rank, const char *why)
{
	lose(s, rank, loss_kind(&s->r->nodes[rank], ERR_UNAVAILABLE), why);
}

void node_machine_gone(struct step *s, int rank, enum err_kind kind, const char *why)
{
	char text[256];

	snprintf(text, sizeof(text), "its machine is gone%s%.230s", why[0] ? ": " : "", why);
	lose(s, rank, loss_kind(&s->r->nodes[rank], kind), text);
}

void node_start(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (!n->start_sent)
		n->attempt++;
	n->start_sent = true;
	node_touch(s, rank);
	/* Otherwise FX_START follows when it is ready. */
	if ((n->connected && !n->preparing) || s->r->plan->agentless)
		effect_add(s, FX_START, rank);
}

void node_stop(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];
	/* A node that reconnected holding nothing, and prepares again, has not been told to
	 * start. */
	bool waits = n->state == NODE_READY && n->connected && n->preparing;

	switch (n->state) {
	case NODE_READY:
	case NODE_RUNNING:
		if (n->start_sent && !waits) {
			n->stop_sent = true;
			n->serve_by_ms = 0;
			node_touch(s, rank);
			if (n->connected || s->r->plan->agentless)
				effect_add(s, FX_STOP, rank);
			return;
		}
		node_settle(s, rank);
		return;
	case NODE_WANTED:
	case NODE_LAUNCHING:
	case NODE_HERE:
		node_settle(s, rank);
		return;
	case NODE_EXITED:
	case NODE_RELEASED:
	case NODE_LOST:
		return;
	}
}

static void meet_gate(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->gate_met)
		return;
	n->gate_met = true;
	s->r->role_gates_met[s->r->plan->crew.members[rank].role]++;
	node_touch(s, rank);
	run_open_gates(s);
}

/* The node no longer satisfies its role's ready_when. */
void node_gate_left(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (!n->gate_met)
		return;
	n->gate_met = false;
	s->r->role_gates_met[s->r->plan->crew.members[rank].role]--;
	node_touch(s, rank);
}

static void started(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];
	const struct strategy_role *role = role_of(s->r, rank);

	if (n->state != NODE_READY || !n->start_sent)
		return;
	node_set_state(s, rank, NODE_RUNNING);
	if (run_stopping(s->r) || is_leaving(n)) {
		node_stop(s, rank);
		return;
	}
	/* Without an agent nobody waits at a gate, and nobody tries the port. */
	if (role->ready_when == READY_STARTED || s->r->plan->agentless)
		meet_gate(s, rank);
	else if (role->port && role->ready_when == READY_PORT) {
		n->serve_by_ms = s->now + s->r->plan->job->timeouts.serve_ms;
		tick_want(s, n->serve_by_ms);
	}
}

static void serving(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	started(s, rank); /* the message "started" may have been lost with a connection */
	if (n->state != NODE_RUNNING || n->serving || is_leaving(n))
		return;
	n->serving = true;
	n->serve_by_ms = 0;
	node_touch(s, rank);
	if (role_of(s->r, rank)->ready_when == READY_PORT)
		meet_gate(s, rank);
}

/* A rank that has left its group is why others fail, or wait for ever. */
int node_early_end(const struct core_run *r)
{
	if (!r->plan->strategy->ends_together || r->counted_ok == 0)
		return -1;
	for (int i = 0; i < r->plan->crew.ncounted; i++)
		if (node_ended_well(r, i))
			return i;
	return -1;
}

static void fail_run(struct step *s, int rank, const struct exit_info *e)
{
	CLEANUP(buf_release) struct buf text = {0};
	int early = node_early_end(s->r);

	buf_init(&text, 512);
	exit_describe(&text, e->code, e->signal, e->oom, str_from(e->reason));
	if (early >= 0)
		buf_printf(&text, "; %s had ended with exit code 0 before", name_of(s->r, early));
	run_end_running(s, VERDICT_FAILED, e->kind, rank, "%s: %.*s", name_of(s->r, rank),
			STR_ARG(buf_str(&text)));
}

/* The job failed after the notice that its machine will be taken. */
static void fail_preempted(struct step *s, int rank, const struct exit_info *e)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 512);
	exit_describe(&text, e->code, e->signal, e->oom, str_from(e->reason));
	buf_addz(&text, ", after the notice that its machine will be taken");
	policy_preempted(s, rank, buf_str(&text).p);
}

static void lose_job(struct step *s, int rank, const char *why)
{
	node_lose(s, rank, why);
	run_check_collected(s);
	effect_add(s, FX_RELEASE, rank);
}

void node_exited(struct step *s, int rank, const struct exit_info *e)
{
	struct core_run *r = s->r;
	struct core_node *n = &r->nodes[rank];
	const struct strategy_role *role = role_of(r, rank);

	if ((n->state != NODE_READY && n->state != NODE_RUNNING) || !n->start_sent)
		return;
	n->exit = *e;
	n->serve_by_ms = 0;
	node_set_state(s, rank, NODE_EXITED);
	if (run_stopping(r)) {
		node_give_up(s, rank);
		return;
	}
	if (is_leaving(n))
		return;
	/* The agent ended the job because it had not heard from its master for too long. */
	if (e->kind == ERR_UNAVAILABLE && role->spec->policy.on_lost != LOST_FAIL) {
		lose_job(s, rank, e->reason);
		return;
	}

	bool ok = e->code == 0 && e->signal == 0 && e->kind == ERR_NONE;
	if (!ok) {
		if (n->preempt_at_ms)
			fail_preempted(s, rank, e);
		else if (!policy_try_again(s, rank, e))
			fail_run(s, rank, e);
		return;
	}
	if (role->ready_when == READY_PORT && !n->gate_met && !r->plan->agentless) {
		run_end_running(s, VERDICT_FAILED, ERR_NONE, rank,
				"%s ended before its port %d answered", name_of(r, rank),
				role->port);
		return;
	}
	/* A node that ended well has started, even if its message "started" was lost. */
	meet_gate(s, rank);
	if (strategy_counts(&r->plan->crew, rank)) {
		r->counted_ok++;
		run_check_success(s);
	}
}

static void prepare_or_start(struct step *s, int rank)
{
	struct core_run *r = s->r;
	struct core_node *n = &r->nodes[rank];

	n->preparing = false;
	preflight_void(s);
	if (n->state == NODE_HERE) {
		n->by_ms = 0;
		node_set_state(s, rank, NODE_READY);
		run_maybe_advance(s);
		run_start_late(s, rank);
	} else if (n->state == NODE_READY && n->start_sent && !run_stopping(r)) {
		effect_add(s, FX_START, rank); /* a new agent of the node is ready */
	} else if (n->state == NODE_READY) {
		run_maybe_advance(s); /* its preflight waited for it */
	}
}

/* The agent reports "unfit" instead of "ready": nothing runs on the node, and no start was sent
 * to it. */
static void unfit(struct step *s, const struct event *ev)
{
	struct core_node *n = &s->r->nodes[ev->index];

	if (!n->preparing || (n->state != NODE_HERE && n->state != NODE_READY))
		return;
	n->preparing = n->start_sent = false;
	node_touch(s, ev->index);
	run_end_running(s, VERDICT_FAILED, ev->err_kind, ev->index, "%s: %s",
			name_of(s->r, ev->index), ev->text);
}

/* What an agent that (re)connects holds, compared with the attempt that it was told to start. */
enum held { HELD_NOTHING, HELD_THIS, HELD_OTHER, HELD_OTHER_BOOT };
#define HELDS (HELD_OTHER_BOOT + 1)

static enum held held_of(const struct core_node *n, const struct event *ev)
{
	if (!n->start_sent)
		return HELD_NOTHING; /* whatever the agent holds, this run did not start it */
	switch (ev->holds) {
	case HOLDS_NOTHING:
		return HELD_NOTHING;
	case HOLDS_STARTED:
		if (ev->attempt < n->attempt)
			return HELD_NOTHING; /* an earlier attempt, which has ended */
		return ev->attempt == n->attempt ? HELD_THIS : HELD_OTHER;
	case HOLDS_OTHER_BOOT:
		return HELD_OTHER_BOOT;
	}
	return HELD_OTHER;
}

void node_prepare(struct step *s, int rank)
{
	s->r->nodes[rank].preparing = true;
	effect_add(s, FX_PREPARE, rank);
}

/* The agent has started no attempt that the node waits for. */
static void join(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->state == NODE_LAUNCHING)
		node_set_state(s, rank, NODE_HERE);
	if (!run_stopping(s->r)) {
		if (is_leaving(n)) /* the start was never acted on */
			policy_attempt_over(s, rank);
		else if (ranks_awaited(s->r))
			ranks_maybe_give(s);
		else
			node_prepare(s, rank); /* a start follows when it is ready */
		return;
	}
	node_settle(s, rank); /* it will not be started any more */
	run_check_collected(s);
}

static void rejoin(struct step *s, int rank)
{
	started(s, rank);
	node_prepare(s, rank);
	if (s->r->nodes[rank].stop_sent)
		effect_add(s, FX_STOP, rank);
}

static void lost_job(struct step *s, int rank)
{
	lose_job(s, rank, "its agent no longer has the job that it started");
}

static void rebooted(struct step *s, int rank)
{
	lose_job(s, rank, "the machine was restarted while the job ran");
}

static void release(struct step *s, int rank)
{
	effect_add(s, FX_RELEASE, rank);
}

static void wait_for_cleaning(struct step *s, int rank)
{
	(void)s; /* the cleaning phase releases the node */
	(void)rank;
}

/* What the agent holds shows whether the start was acted on. */
typedef void hello_fn(struct step *s, int rank);
static hello_fn *const hellos[NODE_STATES][HELDS] = {
	/*		    nothing,	       this attempt,	another,	other boot */
	[NODE_WANTED] = {release, release, release, release},
	[NODE_LAUNCHING] = {join, join, join, join},
	[NODE_HERE] = {join, join, join, join},
	[NODE_READY] = {join, rejoin, lost_job, rebooted},
	[NODE_RUNNING] = {lost_job, rejoin, lost_job, rebooted},
	[NODE_EXITED] = {node_prepare, node_prepare, node_prepare, node_prepare},
	[NODE_RELEASED] = {release, release, release, release},
	[NODE_LOST] = {release, release, release, release},
};

bool core_incarnation_is_past(const struct core_run *r, int rank, int incarnation)
{
	return incarnation < r->nodes[rank].incarnation;
}

/* A machine that was given up is back: it is released, because another one has its place. */
static void release_past(struct step *s, const struct event *ev)
{
	effect_add(s, FX_RELEASE, ev->index);
	s->out->v[s->out->n - 1].conn = ev->conn;
}

/* A newer machine carries the node: an attempt that was started on the earlier one is lost. */
static void take_newer(struct step *s, const struct event *ev)
{
	struct core_node *n = &s->r->nodes[ev->index];

	n->incarnation = ev->incarnation;
	node_touch(s, ev->index);
	if (n->start_sent)
		node_lose(s, ev->index, "another machine has taken its place");
}

static void hello(struct step *s, const struct event *ev)
{
	const struct core_run *r = s->r;
	int rank = ev->index;
	struct core_node *n = &r->nodes[rank];

	if (ev->incarnation > n->incarnation)
		take_newer(s, ev);
	if (core_incarnation_is_past(r, rank, ev->incarnation)) {
		release_past(s, ev);
		return;
	}
	bool is_first = n->state == NODE_LAUNCHING;

	n->connected = true;
	n->lost_at_ms = n->observe_at_ms = 0;
	node_touch(s, rank);
	if (!n->address[0])
		snprintf(n->address, sizeof(n->address), "%.47s", ev->text);
	hello_fn *take = hellos[n->state][held_of(n, ev)];
	if (r->phase >= RUN_CLEANING)
		take = release;
	else if (n->settled && n->state < NODE_EXITED)
		/* The node has handed over everything. */
		take = wait_for_cleaning;
	take(s, rank);
	if (is_first)
		run_heard(s);
}

static struct core_looks *looks_of(const struct core_run *r, int rank)
{
	return &r->looks[r->kind_of[r->plan->resource_of[rank]]];
}

static bool looked_at_alone(const struct core_run *r, int rank)
{
	const struct plan_resource *pr = &r->plan->resources[r->plan->resource_of[rank]];

	return pr->group == 0 && !pr->carries_many;
}

/* A period grows each time it is used, and starts again at its minimum after a long idle time. */
static int64_t longer_period(const struct core_run *r, int rank, int64_t period_ms, int64_t idle_ms)
{
	int64_t next = idle_ms > 2 * OBSERVE_MAX_MS ? 0 : period_ms * 3 / 2;
	bool many = r->plan->resources[r->plan->resource_of[rank]].carries_many;
	/* Without agents an observation is all that is heard of them. */
	int64_t most = r->plan->agentless ? OBSERVE_AGENTLESS_MS
		       : many		  ? OBSERVE_MANY_MS
					  : OBSERVE_MAX_MS;

	if (next < OBSERVE_AGAIN_MS)
		return OBSERVE_AGAIN_MS;
	return next < most ? next : most;
}

/* When to observe the node's resource again, after an observation. */
static int64_t observe_again(struct step *s, int rank)
{
	struct core_looks *l = looks_of(s->r, rank);

	if (looked_at_alone(s->r, rank))
		return s->now + OBSERVE_AGAIN_MS;
	if (l->last_ms < s->now) { /* the first node of those that this observation is for */
		l->period_ms = longer_period(s->r, rank, l->period_ms, s->now - l->last_ms);
		l->last_ms = s->now;
	}
	if (l->at_ms <= s->now)
		l->at_ms = s->now + l->period_ms;
	return l->at_ms;
}

/*
 * When to observe the resource of a node first: `first_ms` from now.  Resources of a kind that
 * are observed together share one observation, at growing intervals.  A node that falls silent
 * (`early`) causes an observation of its own, but these become rarer too: a thousand hosts that
 * are restarted one after the other must not cause a thousand observations.
 */
static int64_t observe_at(struct step *s, int rank, int64_t first_ms, bool early)
{
	struct core_looks *l = looks_of(s->r, rank);
	int64_t at = s->now + first_ms;

	if (looked_at_alone(s->r, rank))
		return at;
	if (early && at < l->early_at_ms + l->early_ms)
		at = l->early_at_ms + l->early_ms;
	if (l->at_ms > s->now && (!early || l->at_ms <= at))
		return l->at_ms;
	if (early) {
		l->early_ms = longer_period(s->r, rank, l->early_ms, at - l->early_at_ms);
		l->early_at_ms = at;
	}
	l->at_ms = at;
	return at;
}

/* False if another node has caused the observation meanwhile: this one waits for the next. */
static bool look_is_due(const struct step *s, int rank)
{
	const struct core_looks *l = looks_of(s->r, rank);

	return looked_at_alone(s->r, rank) || l->last_ms == s->now || l->at_ms <= s->now;
}

void node_silent(struct step *s, int rank, int64_t heard_ms)
{
	struct core_node *n = &s->r->nodes[rank];

	if (!expected(s->r, rank))
		return;
	n->observe_at_ms = observe_at(s, rank, OBSERVE_FIRST_MS, true);
	n->lost_at_ms = (heard_ms ? heard_ms : s->now) + policy_lost_after_ms(s->r, rank);
	node_touch(s, rank);
	tick_want(s, n->observe_at_ms);
	tick_want(s, n->lost_at_ms);
}

/* The node's machine exists and its agent is awaited: observes it, so that an agent that dies
 * before its hello is noticed before the deadline. */
void node_awaited(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->connected || !expected(s->r, rank))
		return;
	n->observe_at_ms = observe_at(s, rank, OBSERVE_AGAIN_MS, false);
	node_touch(s, rank);
	tick_want(s, n->observe_at_ms);
}

void node_observe_soon(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (!expected(s->r, rank))
		return;
	n->observe_at_ms = observe_at(s, rank, OBSERVE_FIRST_MS, true);
	node_touch(s, rank);
	tick_want(s, n->observe_at_ms);
}

/* While the master's disk is full the node's output waits, and its job with it, until there is
 * room or the run is cancelled. */
static void set_room(struct step *s, int rank, bool room)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->no_room == !room)
		return;
	n->no_room = !room;
	node_touch(s, rank);
	node_give_up(s, rank);
}

static void on_ready(struct step *s, const struct event *ev)
{
	s->r->nodes[ev->index].facts = ev->facts;
	prepare_or_start(s, ev->index);
}

static void on_started(struct step *s, const struct event *ev)
{
	started(s, ev->index);
}

static void on_serving(struct step *s, const struct event *ev)
{
	serving(s, ev->index);
}

static void on_exited(struct step *s, const struct event *ev)
{
	node_exited(s, ev->index, &ev->exit);
}

static void on_drained(struct step *s, const struct event *ev)
{
	const struct core_node *n = &s->r->nodes[ev->index];

	if (n->state != NODE_EXITED)
		return;
	if (ev->err_kind != ERR_NONE) {
		char text[300];

		snprintf(text, sizeof(text), "%s: %s", name_of(s->r, ev->index), ev->text);
		run_lost_output(s, ev->err_kind, ev->index, text);
	}
	if (is_leaving(n) && !run_stopping(s->r)) {
		policy_attempt_over(s, ev->index);
		return;
	}
	node_settle(s, ev->index);
	run_check_collected(s);
}

static void on_dropped(struct step *s, const struct event *ev)
{
	/* The log of its job has ended, or was cut off. */
	if (s->r->plan->agentless)
		node_observe_soon(s, ev->index);
	/* Its machine was given back. */
	if (!s->r->nodes[ev->index].connected)
		return;
	s->r->nodes[ev->index].connected = false;
	node_silent(s, ev->index, ev->heard_ms);
}

static void on_room(struct step *s, const struct event *ev)
{
	set_room(s, ev->index, ev->kind == EV_NODE_ROOM);
}

/* The log directory is missing: the output of the job cannot be stored, so the node is lost. */
static void on_no_log(struct step *s, const struct event *ev)
{
	const struct core_node *n = &s->r->nodes[ev->index];
	char text[300];

	if (n->settled || s->r->phase >= RUN_CLEANING)
		return;
	snprintf(text, sizeof(text), "%s was lost: %s", name_of(s->r, ev->index), ev->text);
	run_lost_output(s, ERR_UNAVAILABLE, ev->index, text);
	lose_job(s, ev->index, ev->text);
}

static void on_no_daemon(struct step *s, const struct event *ev)
{
	if (s->r->phase == RUN_RUNNING)
		run_end_running(s, VERDICT_FAILED, ev->err_kind, ev->index, "%s: %s",
				name_of(s->r, ev->index), ev->text);
}

/* The notice holds for the machine, and its agent has told the job. */
static void on_preempt(struct step *s, const struct event *ev)
{
	struct core_node *n = &s->r->nodes[ev->index];

	if (run_stopping(s->r) || n->state < NODE_LAUNCHING || n->state > NODE_EXITED ||
	    n->preempt_at_ms == ev->at_ms)
		return;
	n->preempt_at_ms = ev->at_ms;
	node_touch(s, ev->index);
}

static const struct {
	void (*take)(struct step *s, const struct event *ev);
	bool of_attempt; /* only for the node's current attempt */
	bool when_over;	 /* also when the run is cleaned up or has ended */
} node_events[EVENT_KINDS] = {
	[EV_NODE_HELLO] = {hello, .when_over = true},
	[EV_NODE_READY] = {on_ready},
	[EV_NODE_UNFIT] = {unfit},
	[EV_NODE_STARTED] = {on_started, .of_attempt = true},
	[EV_NODE_SERVING] = {on_serving, .of_attempt = true},
	[EV_NODE_EXITED] = {on_exited, .of_attempt = true},
	[EV_NODE_NO_DAEMON] = {on_no_daemon, .of_attempt = true},
	[EV_NODE_DRAINED] = {on_drained, .of_attempt = true},
	[EV_NODE_DROPPED] = {on_dropped, .when_over = true},
	[EV_NODE_NO_ROOM] = {on_room},
	[EV_NODE_ROOM] = {on_room},
	[EV_NODE_NO_LOG] = {on_no_log},
	[EV_NODE_PREEMPT] = {on_preempt},
	[EV_NODE_INSPECTED] = {stall_event},
	[EV_NODE_PREFLIGHT] = {preflight_event},
	[EV_NODE_SEEN] = {agentless_seen},
};

void node_event(struct step *s, const struct event *ev)
{
	const struct core_node *n = &s->r->nodes[ev->index];

	if (s->r->phase >= RUN_CLEANING && !node_events[ev->kind].when_over)
		return;
	if (node_events[ev->kind].of_attempt && (!n->start_sent || ev->attempt != n->attempt))
		return;
	node_events[ev->kind].take(s, ev);
}

void node_tick(struct step *s, int rank)
{
	struct core_run *r = s->r;
	struct core_node *n = &r->nodes[rank];
	char span[32];

	if (n->serve_by_ms && s->now >= n->serve_by_ms) {
		n->serve_by_ms = 0;
		node_touch(s, rank);
		clock_format_span(r->plan->job->timeouts.serve_ms, span);
		run_end_running(s, VERDICT_FAILED, ERR_TIMEOUT, rank,
				"%s: port %d did not answer within %s (timeouts.serve)",
				name_of(r, rank), role_of(r, rank)->port, span);
	}
	if (n->by_ms && s->now >= n->by_ms)
		policy_late(s, rank);
	if (n->give_up_ms && s->now >= n->give_up_ms && !n->settled) {
		node_settle(s, rank);
		run_check_collected(s);
	}
	if (!n->connected && expected(r, rank)) {
		if (n->lost_at_ms && s->now >= n->lost_at_ms) {
			clock_format_span(policy_lost_after_ms(r, rank), span);
			char why[80];
			snprintf(why, sizeof(why), "no word from its agent for %s", span);
			node_lose(s, rank, why);
			run_check_collected(s);
		} else if (n->observe_at_ms && s->now >= n->observe_at_ms) {
			bool due = look_is_due(s, rank);

			n->observe_at_ms = due ? observe_again(s, rank) : looks_of(r, rank)->at_ms;
			if (due)
				res_observe(s, r->plan->resource_of[rank]);
		}
	}
	tick_want(s, n->serve_by_ms);
	tick_want(s, n->by_ms);
	if (!n->settled)
		tick_want(s, n->give_up_ms);
	if (!n->connected && expected(r, rank)) {
		tick_want(s, n->observe_at_ms);
		tick_want(s, n->lost_at_ms);
	}
}

void node_resume(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	n->connected = false;
	tick_want(s, n->serve_by_ms);
	tick_want(s, n->by_ms);
	node_give_up(s, rank);
	/* A node that never sent its hello is subject to the deadline of the phase, not to the
	 * lease. */
	if (n->state != NODE_LAUNCHING && s->r->plan->agentless)
		agentless_resume(s, rank);
	else if (n->state != NODE_LAUNCHING)
		node_silent(s, rank, 0);
	else if (s->r->resources[s->r->plan->resource_of[rank]].state == RES_LIVE)
		node_awaited(s, rank);
}
