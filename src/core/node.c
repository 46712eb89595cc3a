/* A node: from wanted to released, and what its agent says on the way. */
#include "core/internal.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static const struct strategy_role *role_of(const struct core_run *r, int rank)
{
	return &r->plan->crew.roles[r->plan->crew.members[rank].role];
}

static const char *name_of(const struct core_run *r, int rank)
{
	return r->plan->crew.members[rank].name;
}

/* May still do or give something: silence matters. */
static bool expected(const struct core_run *r, int rank)
{
	const struct core_node *n = &r->nodes[rank];
	return r->phase < RUN_CLEANING && !n->settled && n->state >= NODE_LAUNCHING &&
	       n->state <= NODE_EXITED;
}

void node_settle(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->settled)
		return;
	n->settled = true;
	s->r->settled++;
	touch_node(s, rank);
}

/* Its job has ended.  After a cancel, is it worth waiting for what it has not handed over yet? */
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
		want_tick(s, n->give_up_ms);
	}
}

void node_lose(struct step *s, int rank, const char *why)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->state == NODE_WANTED || n->state == NODE_RELEASED || n->state == NODE_LOST)
		return;
	if (n->state != NODE_EXITED) {
		n->exit = (struct exit_info){.code = -1, .kind = ERR_UNAVAILABLE};
		snprintf(n->exit.reason, sizeof(n->exit.reason), "%s", why);
	}
	set_node(s, rank, NODE_LOST);
	n->lost_at_ms = n->look_at_ms = n->serve_by_ms = 0;
	node_settle(s, rank);
	if (!run_stopping(s->r))
		run_end_running(s, VERDICT_FAILED, ERR_UNAVAILABLE, rank, "%s was lost: %s",
				name_of(s->r, rank), why);
}

void node_start(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (!n->start_sent)
		n->attempt++;
	n->start_sent = true;
	touch_node(s, rank);
	if (n->connected && !n->preparing) /* otherwise when it is ready */
		emit(s, FX_START, rank);
}

void node_stop(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];
	/* One that came back with nothing and prepares again has not been told to start. */
	bool waits = n->state == NODE_READY && n->connected && n->preparing;

	switch (n->state) {
	case NODE_READY:
	case NODE_RUNNING:
		if (n->start_sent && !waits) {
			n->stop_sent = true;
			n->serve_by_ms = 0;
			touch_node(s, rank);
			if (n->connected)
				emit(s, FX_STOP, rank);
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

static void becomes_there(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->there)
		return;
	n->there = true;
	s->r->role_there[s->r->plan->crew.members[rank].role]++;
	touch_node(s, rank);
	run_open_gates(s);
}

static void started(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];
	const struct strategy_role *role = role_of(s->r, rank);

	if (n->state != NODE_READY || !n->start_sent)
		return;
	set_node(s, rank, NODE_RUNNING);
	if (run_stopping(s->r)) {
		node_stop(s, rank);
		return;
	}
	if (role->ready_when == READY_STARTED)
		becomes_there(s, rank);
	if (role->port && role->ready_when == READY_PORT) {
		n->serve_by_ms = s->now + s->r->plan->job->timeouts.serve_ms;
		want_tick(s, n->serve_by_ms);
	}
}

static void serving(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	started(s, rank); /* the word "started" may have been lost with a connection */
	if (n->state != NODE_RUNNING || n->serving)
		return;
	n->serving = true;
	n->serve_by_ms = 0;
	touch_node(s, rank);
	if (role_of(s->r, rank)->ready_when == READY_PORT)
		becomes_there(s, rank);
}

static void describe_exit(const struct core_run *r, int rank, char *out, size_t size)
{
	const struct exit_info *e = &r->nodes[rank].exit;
	const char *name = name_of(r, rank);

	if (e->reason[0])
		snprintf(out, size, "%s: %s", name, e->reason);
	else if (e->oom)
		snprintf(out, size, "%s ran out of memory", name);
	else if (e->signal)
		snprintf(out, size, "%s was killed by signal %d (%s)", name, e->signal,
			 strsignal(e->signal));
	else
		snprintf(out, size, "%s exited with code %d", name, e->code);
}

static void exited(struct step *s, int rank, const struct exit_info *e)
{
	struct core_run *r = s->r;
	struct core_node *n = &r->nodes[rank];
	const struct strategy_role *role = role_of(r, rank);
	char text[200];

	if ((n->state != NODE_READY && n->state != NODE_RUNNING) || !n->start_sent)
		return;
	n->exit = *e;
	n->serve_by_ms = 0;
	set_node(s, rank, NODE_EXITED);
	if (run_stopping(r)) {
		node_give_up(s, rank);
		return;
	}

	bool ok = e->code == 0 && e->signal == 0 && e->kind == ERR_NONE;
	if (!ok) {
		describe_exit(r, rank, text, sizeof(text));
		run_end_running(s, VERDICT_FAILED, e->kind, rank, "%s", text);
		return;
	}
	if (role->ready_when == READY_PORT && !n->there) {
		run_end_running(s, VERDICT_FAILED, ERR_NONE, rank,
				"%s ended before its port %d answered", name_of(r, rank),
				role->port);
		return;
	}
	/* Whoever has ended well has surely started, even if the word was lost. */
	becomes_there(s, rank);
	if (role->counted && ++r->counted_ok == r->plan->crew.ncounted)
		run_end_running(s, VERDICT_SUCCEEDED, ERR_NONE, -1, "%s", "");
}

static void prepare_or_start(struct step *s, int rank)
{
	struct core_run *r = s->r;
	struct core_node *n = &r->nodes[rank];

	n->preparing = false;
	if (n->state == NODE_HERE) {
		set_node(s, rank, NODE_READY);
		run_maybe_advance(s);
	} else if (n->state == NODE_READY && n->start_sent && !run_stopping(r)) {
		emit(s, FX_START, rank); /* a new agent, ready again */
	}
}

/* It says so instead of "ready": nothing runs there, and no start is on its way to it. */
static void unfit(struct step *s, const struct event *ev)
{
	struct core_node *n = &s->r->nodes[ev->index];

	if (!n->preparing || (n->state != NODE_HERE && n->state != NODE_READY))
		return;
	n->preparing = n->start_sent = false;
	touch_node(s, ev->index);
	run_end_running(s, VERDICT_FAILED, ev->err_kind, ev->index, "%s: %s",
			name_of(s->r, ev->index), ev->text);
}

/* (Re)connected.  What it holds decides whether a start was ever acted on. */
static void hello(struct step *s, const struct event *ev)
{
	struct core_run *r = s->r;
	int rank = ev->index;
	struct core_node *n = &r->nodes[rank];

	n->connected = true;
	n->lost_at_ms = n->look_at_ms = 0;
	touch_node(s, rank);
	if (!n->address[0])
		snprintf(n->address, sizeof(n->address), "%.47s", ev->text);
	if (r->phase >= RUN_CLEANING || n->state == NODE_LOST || n->state == NODE_RELEASED) {
		emit(s, FX_RELEASE, rank);
		return;
	}
	if (n->state == NODE_WANTED || (n->settled && n->state != NODE_EXITED))
		return; /* cleaning will release it */
	if (n->state == NODE_LAUNCHING)
		set_node(s, rank, NODE_HERE);
	if (n->start_sent && n->state <= NODE_RUNNING) {
		if (ev->holds == HOLDS_STARTED && ev->attempt == n->attempt) {
			started(s, rank);
		} else if (ev->holds != HOLDS_NOTHING || n->state == NODE_RUNNING) {
			node_lose(s, rank,
				  ev->holds == HOLDS_OTHER_BOOT
					  ? "the machine was restarted while the job ran"
					  : "the node no longer has the job that it started");
			run_check_collected(s);
			emit(s, FX_RELEASE, rank);
			return;
		} else if (run_stopping(r)) {
			node_settle(s, rank); /* never started, and never will be */
			run_check_collected(s);
			return;
		}
	}
	if (r->phase >= RUN_CLEANING)
		return;
	n->preparing = true;
	emit(s, FX_PREPARE, rank);
	if (n->stop_sent && !n->settled && n->state != NODE_EXITED)
		emit(s, FX_STOP, rank);
}

void node_silent(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (!expected(s->r, rank))
		return;
	n->look_at_ms = s->now + LOOK_FIRST_MS;
	n->lost_at_ms = s->now + s->r->plan->job->timeouts.lease_ms;
	touch_node(s, rank);
	want_tick(s, n->look_at_ms);
	want_tick(s, n->lost_at_ms);
}

/* Its machine is there; an agent that dies before its first word must not cost the whole deadline. */
void node_awaited(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->connected || !expected(s->r, rank))
		return;
	n->look_at_ms = s->now + LOOK_AGAIN_MS;
	touch_node(s, rank);
	want_tick(s, n->look_at_ms);
}

/* Output that finds no room waits, and its job with it, until there is room or somebody cancels. */
static void set_room(struct step *s, int rank, bool room)
{
	struct core_node *n = &s->r->nodes[rank];

	if (n->no_room == !room)
		return;
	n->no_room = !room;
	touch_node(s, rank);
	node_give_up(s, rank);
}

void node_event(struct step *s, const struct event *ev)
{
	struct core_node *n = &s->r->nodes[ev->index];
	bool same_attempt = n->start_sent && ev->attempt == n->attempt;

	if (run_phase_is_final(s->r->phase) && ev->kind != EV_NODE_HELLO)
		return;
	switch ((int)ev->kind) {
	case EV_NODE_HELLO:
		hello(s, ev);
		return;
	case EV_NODE_READY:
		prepare_or_start(s, ev->index);
		return;
	case EV_NODE_UNFIT:
		unfit(s, ev);
		return;
	case EV_NODE_STARTED:
		if (same_attempt)
			started(s, ev->index);
		return;
	case EV_NODE_SERVING:
		if (same_attempt)
			serving(s, ev->index);
		return;
	case EV_NODE_EXITED:
		if (same_attempt)
			exited(s, ev->index, &ev->exit);
		return;
	case EV_NODE_DRAINED:
		if (n->state == NODE_EXITED) {
			node_settle(s, ev->index);
			run_check_collected(s);
		}
		return;
	case EV_NODE_DROPPED:
		n->connected = false;
		node_silent(s, ev->index);
		return;
	case EV_NODE_NO_ROOM:
	case EV_NODE_ROOM:
		set_room(s, ev->index, ev->kind == EV_NODE_ROOM);
		return;
	}
}

void node_tick(struct step *s, int rank)
{
	struct core_run *r = s->r;
	struct core_node *n = &r->nodes[rank];
	char span[32];

	if (n->serve_by_ms && s->now >= n->serve_by_ms) {
		n->serve_by_ms = 0;
		clock_format_span(r->plan->job->timeouts.serve_ms, span);
		run_end_running(s, VERDICT_FAILED, ERR_TIMEOUT, rank,
				"%s: port %d did not answer within %s (timeouts.serve)",
				name_of(r, rank), role_of(r, rank)->port, span);
	}
	if (n->give_up_ms && s->now >= n->give_up_ms && !n->settled) {
		node_settle(s, rank);
		run_check_collected(s);
	}
	if (!n->connected && expected(r, rank)) {
		if (n->lost_at_ms && s->now >= n->lost_at_ms) {
			clock_format_span(r->plan->job->timeouts.lease_ms, span);
			char why[80];
			snprintf(why, sizeof(why), "no word from its agent for %s", span);
			node_lose(s, rank, why);
			run_check_collected(s);
		} else if (n->look_at_ms && s->now >= n->look_at_ms) {
			n->look_at_ms = s->now + LOOK_AGAIN_MS;
			res_observe(s, r->plan->resource_of[rank]);
		}
	}
	want_tick(s, n->serve_by_ms);
	if (!n->settled)
		want_tick(s, n->give_up_ms);
	if (!n->connected && expected(r, rank)) {
		want_tick(s, n->look_at_ms);
		want_tick(s, n->lost_at_ms);
	}
}

void node_resume(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];

	n->connected = false;
	want_tick(s, n->serve_by_ms);
	node_give_up(s, rank);
	/* One that never said a word has its phase's deadline, not the lease. */
	if (n->state != NODE_LAUNCHING)
		node_silent(s, rank);
	else if (s->r->resources[s->r->plan->resource_of[rank]].state == RES_LIVE)
		node_awaited(s, rank);
}
