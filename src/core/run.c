/* The run: its phases, the gang, the gates of roles, the verdict, the end. */
#include "core/internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "core/agentless.h"
#include "core/carrier.h"
#include "core/handover.h"
#include "core/ladder.h"
#include "core/preflight.h"
#include "core/stall.h"

/* With its START a node gets the addresses of all: a slice of starts is only this part of a slice. */
#define START_PART 2

static const struct timeouts *limits(const struct step *s)
{
	return &s->r->plan->job->timeouts;
}

static void phase_until(struct step *s, enum run_phase to, int64_t span_ms)
{
	run_set_phase(s, to);
	if (span_ms > 0)
		s->r->deadline_ms = s->now + span_ms;
	tick_want(s, s->r->deadline_ms);
}

bool run_stopping(const struct core_run *r)
{
	return r->verdict != VERDICT_NONE;
}

void run_start(struct step *s)
{
	phase_until(s, RUN_PROVISIONING, limits(s)->launch_ms);
	for (int i = 0; i < s->r->plan->nresources; i++)
		res_adopt(s, i);
	/* To plan and store a large run is enough for one turn of the loop. */
	if (s->r->plan->nresources > s->r->slice)
		tick_want(s, s->now);
	else
		run_create_slice(s);
	if (s->r->plan->carries) /* all that it needs may be there already */
		run_maybe_advance(s);
}

/* True if the resource is created by the same call as the one before it. */
static bool goes_with_last(const struct plan *p, int index)
{
	return index > 0 && index < p->nresources && p->resources[index].group &&
	       p->resources[index].group == p->resources[index - 1].group;
}

/* What waits for others is created when those are live. */
void run_create_slice(struct step *s)
{
	struct core_run *r = s->r;

	if (r->phase < RUN_PROVISIONING || r->phase > RUN_RUNNING)
		return;
	int end = slice_end(s, r->create_next, r->plan->nresources);

	while (goes_with_last(r->plan, end))
		end++;
	for (; r->create_next < end; r->create_next++)
		if (res_wanted(r, r->create_next) && !r->resources[r->create_next].retry_at_ms)
			res_create(s, r->create_next);
}

/* What is left of max_runtime; 0: no limit. */
static int64_t runtime_left(const struct step *s)
{
	int64_t max = s->r->plan->job->max_runtime_ms, from = s->r->phase_at_ms[RUN_RUNNING];

	if (max == 0 || from == 0)
		return max;
	return from + max > s->now ? from + max - s->now : 1;
}

static bool may_start(const struct core_node *n)
{
	return n->state == NODE_READY && !n->start_sent && !n->asleep;
}

/* True if the node launches processes on others of its role, and not all of those have started. */
static bool waits_for_others(const struct core_run *r, int rank)
{
	int role = r->plan->crew.members[rank].role;

	return r->plan->crew.launch == LAUNCH_FIRST && rank == 0 &&
	       r->role_gates_met[role] < r->role_awake[role] - 1;
}

/* True if all nodes that are awake are ready.  When a gang starts again, some may be ready for
 * it while others are still ending their attempt. */
static bool everybody_may_start(const struct core_run *r)
{
	int ready = 0;

	if (r->plan->agentless)
		return agentless_all_seen(r);
	if (r->node_count[NODE_READY] < r->awake)
		return false;
	for (int i = 0; i < r->plan->crew.n; i++)
		ready += may_start(&r->nodes[i]);
	return ready == r->awake;
}

/* True while machines of the first gathering boot: nodes that are asleep are `wanted`. */
static bool is_booting(const struct core_run *r)
{
	return r->plan->boots && r->phase == RUN_GATHERING && !r->phase_at_ms[RUN_RUNNING] &&
	       r->node_count[NODE_WANTED] + r->node_count[NODE_LAUNCHING] >
		       r->plan->crew.n - r->awake;
}

/* The deadline of gathering: until all machines have spoken it is that of their boot. */
static void gather(struct step *s)
{
	struct core_run *r = s->r;

	r->deadline_ms = s->now + (is_booting(r) ? limits(s)->boot_ms : plan_gather_ms(r->plan));
	r->silent_ms = 0;
	run_touch(s);
	tick_want(s, r->deadline_ms);
}

void run_heard(struct step *s)
{
	const struct core_run *r = s->r;

	if (r->plan->boots && r->phase == RUN_GATHERING && !r->phase_at_ms[RUN_RUNNING] &&
	    !is_booting(r))
		gather(s);
}

/* A gang of which nobody has had a turn has all its time; a part of one does not wait for ever for the rest. */
void run_queued(struct step *s)
{
	struct core_run *r = s->r;
	bool nobody = r->node_count[NODE_WANTED] + r->node_count[NODE_LAUNCHING] == r->plan->crew.n;

	if (is_booting(r) && nobody && !run_stopping(r)) {
		if (r->silent_ms)
			gather(s);
		r->queued_ms = s->now;
	}
}

void run_go(struct step *s)
{
	phase_until(s, RUN_RUNNING, runtime_left(s));
	stall_start(s);
	run_open_gates(s);
	if (s->r->plan->agentless) /* all of them may have ended meanwhile */
		run_check_success(s);
}

void run_maybe_advance(struct step *s)
{
	struct core_run *r = s->r;

	if (r->phase == RUN_PROVISIONING &&
	    r->res_count[RES_LIVE] == r->plan->nresources - r->res_idle) {
		run_set_phase(s, RUN_GATHERING);
		if (r->plan->hands_over)
			handover_begin(s);
		else if (plan_has_nodes(r->plan))
			gather(s);
	}
	if (r->phase == RUN_GATHERING && plan_has_nodes(r->plan) && everybody_may_start(r) &&
	    !preflight_holds(s))
		run_go(s);
	carrier_check(s);
}

static bool gate_is_open(const struct core_run *r, const struct strategy_role *role)
{
	for (int k = 0; k < role->nafter; k++)
		if (r->role_gates_met[role->after[k]] < r->role_awake[role->after[k]])
			return false;
	return true;
}

/* Starts up to `left` nodes of one role; returns what is left of the slice. */
static int start_nodes(struct step *s, int role, int left)
{
	struct core_run *r = s->r;
	const struct crew *crew = &r->plan->crew;
	int i = r->role_next[role];

	for (; i < crew->n && left > 0; i++) {
		if (crew->members[i].role != role || !may_start(&r->nodes[i]) ||
		    waits_for_others(r, i))
			continue;
		node_start(s, i);
		left--;
	}
	r->role_next[role] = i;
	return left;
}

void run_start_slice(struct step *s)
{
	struct core_run *r = s->r;
	const struct crew *crew = &r->plan->crew;
	int left = (r->slice + START_PART - 1) / START_PART;

	r->starting = false;
	if (r->phase != RUN_RUNNING)
		return;
	for (int k = 0; k < crew->nroles; k++) {
		if (!r->role_open[k])
			continue;
		left = start_nodes(s, k, left);
		r->starting |= r->role_next[k] < crew->n;
	}
	if (r->starting)
		tick_want(s, s->now);
}

/* The slices leave out the node that launches processes on the others until those have started. */
static void start_launcher(struct step *s)
{
	const struct core_run *r = s->r;
	int role = r->plan->crew.n > 0 ? r->plan->crew.members[0].role : 0;

	if (r->plan->crew.launch == LAUNCH_FIRST && r->role_open[role] && r->role_next[role] > 0 &&
	    may_start(&r->nodes[0]) && !waits_for_others(r, 0))
		node_start(s, 0);
}

void run_open_gates(struct step *s)
{
	struct core_run *r = s->r;
	const struct crew *crew = &r->plan->crew;
	bool opened = false;

	if (r->phase != RUN_RUNNING)
		return;
	for (int k = 0; k < crew->nroles; k++) {
		if (r->role_open[k] || !gate_is_open(r, &crew->roles[k]))
			continue;
		r->role_open[k] = true;
		r->role_next[k] = 0;
		opened = true;
	}
	/* One slice per step: nodes of other gates wait for a later step. */
	if (opened && !r->starting)
		run_start_slice(s);
	start_launcher(s);
}

void run_start_late(struct step *s, int rank)
{
	struct core_run *r = s->r;
	int role = r->plan->crew.members[rank].role;

	if (r->phase != RUN_RUNNING || !may_start(&r->nodes[rank]))
		return;
	r->role_open[role] &= gate_is_open(r, &r->plan->crew.roles[role]);
	if (!r->role_open[role])
		run_open_gates(s);
	/* Otherwise one of the next slices starts it. */
	else if (r->role_next[role] > rank && !waits_for_others(r, rank))
		node_start(s, rank);
}

void run_regather(struct step *s, int64_t span_ms)
{
	phase_until(s, RUN_GATHERING, span_ms);
	for (int k = 0; k < s->r->plan->crew.nroles; k++)
		s->r->role_open[k] = false;
}

void run_check_success(struct step *s)
{
	const struct core_run *r = s->r;
	int wanted = r->plan->crew.launch == LAUNCH_FIRST ? 1 : r->counted;

	if (r->phase == RUN_RUNNING && r->counted_ok == wanted && plan_has_nodes(r->plan))
		run_end_running(s, VERDICT_SUCCEEDED, ERR_NONE, -1, "%s", "");
}

static void set_cause(struct core_run *r, enum err_kind kind, int node, const char *text)
{
	r->cause.kind = kind;
	r->cause.node = node;
	snprintf(r->cause.text, sizeof(r->cause.text), "%.*s", (int)sizeof(r->cause.text) - 1,
		 text);
}

void run_end_running(struct step *s, enum verdict v, enum err_kind kind, int node, const char *fmt,
		     ...)
{
	struct core_run *r = s->r;
	char text[sizeof(r->cause.text)];
	va_list ap;

	if (run_stopping(r))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->verdict = v;
	set_cause(r, kind, node, text);

	phase_until(s, RUN_COLLECTING, limits(s)->grace_ms + KILL_SLACK_MS + limits(s)->collect_ms);
	run_stop_slice(s);
	run_check_collected(s); /* a run without nodes has nothing to stop */
}

int slice_end(struct step *s, int next, int n)
{
	if (n - next <= s->r->slice)
		return n;
	tick_want(s, s->now);
	return next + s->r->slice;
}

void run_stop_slice(struct step *s)
{
	struct core_run *r = s->r;

	if (r->phase != RUN_COLLECTING || r->stop_next >= r->plan->crew.n)
		return;
	for (int end = slice_end(s, r->stop_next, r->plan->crew.n); r->stop_next < end;
	     r->stop_next++)
		if (!r->nodes[r->stop_next].stop_sent) /* by a master that died between slices */
			node_stop(s, r->stop_next);
	run_check_collected(s);
}

/* A run that succeeded but lost output has failed. */
void run_lost_output(struct step *s, enum err_kind kind, int node, const char *text)
{
	struct core_run *r = s->r;

	if (r->verdict == VERDICT_SUCCEEDED) {
		r->verdict = VERDICT_FAILED;
		set_cause(r, kind, node, text);
		run_touch(s);
	} else {
		run_end_running(s, VERDICT_FAILED, kind, node, "%s", text);
	}
}

void run_check_collected(struct step *s)
{
	struct core_run *r = s->r;

	if (r->phase != RUN_COLLECTING || r->settled < r->plan->crew.n ||
	    handover_awaits_results(r))
		return;
	run_set_phase(s, RUN_CLEANING);
	run_clean_slice(s);
}

static void release_node(struct step *s, int rank)
{
	const struct core_node *n = &s->r->nodes[rank];

	if (n->connected)
		effect_add(s, FX_RELEASE, rank);
	if (n->state != NODE_LOST && n->state != NODE_RELEASED)
		node_set_state(s, rank, NODE_RELEASED);
}

void run_clean_slice(struct step *s)
{
	struct core_run *r = s->r;
	int nodes = r->plan->crew.n, all = nodes + r->plan->nresources;

	if (r->phase != RUN_CLEANING || r->clean_next >= all)
		return;
	for (int end = slice_end(s, r->clean_next, all); r->clean_next < end; r->clean_next++)
		if (r->clean_next < nodes)
			release_node(s, r->clean_next);
		else if (r->resources[r->clean_next - nodes].state != RES_DELETING)
			res_clean(s, r->clean_next - nodes); /* the others are on their way */
	run_check_clean(s);
}

void run_check_clean(struct step *s)
{
	static const enum run_phase end[] = {
		[VERDICT_SUCCEEDED] = RUN_SUCCEEDED,
		[VERDICT_FAILED] = RUN_FAILED,
		[VERDICT_CANCELLED] = RUN_CANCELLED,
	};
	struct core_run *r = s->r;

	if (r->phase != RUN_CLEANING || r->clean_next < r->plan->crew.n + r->plan->nresources ||
	    r->res_count[RES_GONE] + r->kept < r->plan->nresources || handover_sweeps(s))
		return;
	run_set_phase(s, end[r->verdict]);
	r->next_ms = 0;
	effect_add(s, FX_ENDED, 0);
}

/*
 * A cancel while the job runs ends the job, and its output is collected as after any other end.
 * A cancel while `collecting` ends the collecting too: what is stored stays, the rest is given
 * up.
 *
 * With a plain cancel agents stop copying files, and have the grace time to hand over what the
 * job printed.  With "--now" nodes whose job has ended are done at once, the others HURRY_MS
 * after their job was killed (node.c).
 *
 * If the job succeeded but its output was given up, the verdict becomes `cancelled`; if it
 * failed, it stays `failed`.
 */
static void cancel_collecting(struct step *s, const struct event *ev)
{
	struct core_run *r = s->r;
	bool some_run = false;

	if (r->verdict == VERDICT_SUCCEEDED) {
		r->verdict = VERDICT_CANCELLED;
		set_cause(r, ERR_CANCELLED, -1, ev->text[0] ? ev->text : "cancelled");
	}
	for (int i = 0; i < r->plan->crew.n; i++) {
		const struct core_node *n = &r->nodes[i];

		if (n->settled)
			continue;
		some_run |= n->state != NODE_EXITED;
		if (n->connected)
			effect_add(s, FX_STOP, i);
		if (n->state == NODE_EXITED && (r->hurry || n->no_room))
			node_settle(s, i);
	}
	int64_t until =
		s->now + (r->hurry ? 0 : limits(s)->grace_ms) + (some_run ? KILL_SLACK_MS : 0);
	if (until < r->deadline_ms)
		r->deadline_ms = until;
	tick_want(s, r->deadline_ms);
	run_check_collected(s);
}

void run_cancel(struct step *s, const struct event *ev)
{
	struct core_run *r = s->r;

	if (run_phase_is_final(r->phase))
		return;
	/* New credentials alone are no second cancel, which would give up the run's output. */
	if (ev->renews && r->cancel_asked && !ev->hurry)
		return;
	/* Cancelled before it began: its time counts from now. */
	if (!r->phase_at_ms[RUN_ACCEPTED])
		r->phase_at_ms[RUN_ACCEPTED] = s->now;
	r->hurry |= ev->hurry;
	r->cancel_asked = true;
	run_touch(s);
	if (handover_is_open(r)) {
		handover_cancel(s);
		return;
	}
	if (carrier_is_open(r)) {
		carrier_cancel(s);
		return;
	}
	if (!run_stopping(r)) {
		run_end_running(s, VERDICT_CANCELLED, ERR_CANCELLED, -1, "%s",
				ev->text[0] ? ev->text : "cancelled");
		return;
	}
	if (r->phase == RUN_COLLECTING)
		cancel_collecting(s, ev);
}

static const char *name_of(const struct core_run *r, int rank)
{
	return r->plan->crew.members[rank].name;
}

static void launch_too_slow(struct step *s)
{
	struct core_run *r = s->r;
	char span[32], tried[120];

	clock_format_span(limits(s)->launch_ms, span);
	for (int i = 0; i < r->plan->nresources; i++) {
		const struct core_resource *res = &r->resources[i];
		const struct plan_resource *pr = &r->plan->resources[i];
		if (res->state == RES_LIVE || !res_is_needed(r, i))
			continue;
		/* A provider that did not answer in time is unavailable: this is not a time-out
		 * of the run. */
		enum err_kind kind = res->why_kind == ERR_TIMEOUT ? ERR_UNAVAILABLE : res->why_kind;

		ladder_describe(r, i, tried, sizeof(tried));
		run_end_running(s, VERDICT_FAILED, kind ? kind : ERR_TIMEOUT, pr->node,
				"%s '%s' was not live within %s (timeouts.launch)%s%s%s", pr->kind,
				pr->name, span, res->why[0] ? ": " : "", res->why, tried);
		return;
	}
}

void run_unheard(struct step *s, int rank, const char *console)
{
	struct core_run *r = s->r;
	int of = r->plan->resource_of[rank];
	bool many = r->plan->resources[of].carries_many; /* then the id is no machine's */
	const char *id = many ? "" : r->resources[of].id;
	char span[32];

	clock_format_span(limits(s)->boot_ms, span);
	run_end_running(s, VERDICT_FAILED, ERR_TIMEOUT, rank,
			"%s: no word from its machine%s%.40s within %s (timeouts.boot)%s%s",
			name_of(r, rank), *id ? " " : "", id, span,
			!*console ? ""
			: many	  ? ": "
				  : "; console: ",
			console);
}

/* The first time its console is asked for; without an answer the second time ends the run. */
static void boot_too_slow(struct step *s)
{
	struct core_run *r = s->r;
	int rank = 0;

	while (r->nodes[rank].asleep || r->nodes[rank].state > NODE_LAUNCHING)
		rank++;
	const struct core_resource *res = &r->resources[r->plan->resource_of[rank]];

	if (r->queued_ms && r->queued_ms + limits(s)->boot_ms > s->now) {
		r->deadline_ms = r->queued_ms + limits(s)->boot_ms;
		run_touch(s);
		return;
	}
	if (res->why_kind == ERR_DENIED) { /* nobody may look at its machines */
		char span[32];

		clock_format_span(limits(s)->boot_ms, span);
		run_end_running(s, VERDICT_FAILED, ERR_DENIED, rank,
				"%s was not heard within %s (timeouts.boot): %s", name_of(r, rank),
				span, res->why);
		return;
	}
	if (r->silent_ms) {
		run_unheard(s, rank, "");
		return;
	}
	r->silent_ms = s->now;
	r->deadline_ms = s->now + CONSOLE_MS;
	run_touch(s);
	res_observe(s, r->plan->resource_of[rank]);
}

static void gather_too_slow(struct step *s)
{
	struct core_run *r = s->r;
	char span[32];

	if (is_booting(r)) {
		boot_too_slow(s);
		return;
	}
	clock_format_span(plan_gather_ms(r->plan), span);
	for (int i = 0; i < r->plan->crew.n; i++) {
		if (r->nodes[i].state == NODE_READY || r->nodes[i].asleep)
			continue;
		if (r->nodes[i].state == NODE_HERE && ranks_awaited(r))
			continue; /* it waits for those that are not here */
		run_end_running(s, VERDICT_FAILED, ERR_TIMEOUT, i,
				"%s was not ready within %s (timeouts.gather): it is still '%s'",
				name_of(r, i), span, node_state_name(r->nodes[i].state));
		return;
	}
	/* All are ready, and the preflight waits for one that has left: that one has its lease. */
	r->deadline_ms = 0;
	run_touch(s);
}

static void run_too_long(struct step *s)
{
	int early = node_early_end(s->r);
	char span[32];

	clock_format_span(s->r->plan->job->max_runtime_ms, span);
	if (early >= 0)
		run_end_running(
			s, VERDICT_FAILED, ERR_TIMEOUT, early,
			"max_runtime of %s is over; %s had ended with exit code 0 before the others",
			span, name_of(s->r, early));
	else
		run_end_running(s, VERDICT_FAILED, ERR_TIMEOUT, -1, "max_runtime of %s is over",
				span);
}

static void collect_too_slow(struct step *s)
{
	struct core_run *r = s->r;
	char text[sizeof(r->cause.text)];

	for (int i = 0; i < r->plan->crew.n; i++) {
		if (r->nodes[i].settled)
			continue;
		snprintf(text, sizeof(text),
			 "the output of %s was not stored in time (timeouts.collect)",
			 name_of(r, i));
		run_lost_output(s, ERR_TIMEOUT, i, text);
		node_lose(s, i, "its output was not stored in time");
	}
	handover_late(s);
	run_check_collected(s);
}

void run_deadline(struct step *s)
{
	struct core_run *r = s->r;

	switch (r->phase) {
	case RUN_PROVISIONING:
		launch_too_slow(s);
		return;
	case RUN_GATHERING:
		gather_too_slow(s);
		return;
	case RUN_RUNNING:
		run_too_long(s);
		return;
	case RUN_COLLECTING:
		collect_too_slow(s);
		return;
	case RUN_ACCEPTED:
	case RUN_CLEANING:
	case RUN_SUCCEEDED:
	case RUN_FAILED:
	case RUN_CANCELLED:
		return;
	}
}
