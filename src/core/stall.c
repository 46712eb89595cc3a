#include "core/stall.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

#define INSPECT_MS 15000 /* for the answers of all nodes */
#define AGAIN_MS 1000	 /* until the next try, while output cannot arrive */
#define STOPPED "TtDX"	 /* states of a process that does not run by itself */

static int64_t limit_ms(const struct core_run *r)
{
	return r->plan->job->stall_ms;
}

void stall_start(struct step *s)
{
	struct core_run *r = s->r;

	r->stall = (struct core_stall){.heard_ms = s->now, .node = -1};
	if (limit_ms(r))
		tick_want(s, s->now + limit_ms(r));
}

static bool output_can_arrive(const struct core_run *r)
{
	for (int i = 0; i < r->plan->crew.n; i++)
		if (r->nodes[i].state == NODE_RUNNING &&
		    (!r->nodes[i].connected || r->nodes[i].no_room))
			return false;
	return r->node_count[NODE_RUNNING] > 0;
}

static void inspect(struct step *s)
{
	struct core_run *r = s->r;

	if (!output_can_arrive(r)) {
		r->stall.heard_ms = s->now - limit_ms(r) + AGAIN_MS;
		return;
	}
	r->stall.stalled = true;
	r->stall.asked = 0;
	r->stall.by_ms = s->now + INSPECT_MS;
	for (int i = 0; i < r->plan->crew.n; i++) {
		struct core_node *n = &r->nodes[i];

		n->inspect[0] = '\0';
		n->inspect_asked = n->state == NODE_RUNNING;
		if (!n->inspect_asked)
			continue;
		r->stall.asked++;
		effect_add(s, FX_INSPECT, i);
	}
}

/* ---- the node that differs ---- */

static int by_state(const void *a, const void *b)
{
	return strcmp((*(struct core_node *const *)a)->inspect,
		      (*(struct core_node *const *)b)->inspect);
}

static bool stands_still(const struct core_node *n)
{
	return n->inspect[0] == '\0' || strchr(STOPPED, n->inspect[0]);
}

/* Nodes [from, from + n) of the sorted ones answered alike. */
struct alike {
	size_t from, n;
};

static struct alike alike_at(struct core_node *const *v, size_t from, size_t n)
{
	size_t end = from + 1;

	while (end < n && strcmp(v[end]->inspect, v[from]->inspect) == 0)
		end++;
	return (struct alike){from, end - from};
}

/* Is x the better answer to "who differs"? */
static bool is_odder(struct core_node *const *v, struct alike x, struct alike than)
{
	if (x.n != than.n)
		return x.n < than.n;
	return stands_still(v[x.from]) && !stands_still(v[than.from]);
}

int stall_odd_one(const struct core_run *r)
{
	size_t n = 0, classes = 0;
	struct alike odd = {0}, common = {0};
	struct core_node **v = xcalloc((size_t)r->plan->crew.n, sizeof(struct core_node *));

	for (int i = 0; i < r->plan->crew.n; i++)
		if (r->nodes[i].inspect_asked || r->nodes[i].inspect[0])
			v[n++] = &r->nodes[i];
	qsort(v, n, sizeof(struct core_node *), by_state);
	for (size_t at = 0; at < n; classes++) {
		struct alike x = alike_at(v, at, n);

		if (classes == 0 || is_odder(v, x, odd))
			odd = x;
		if (classes == 0 || is_odder(v, common, x))
			common = x;
		at += x.n;
	}
	int rank = classes > 1 && is_odder(v, odd, common) ? (int)(v[odd.from] - r->nodes) : -1;

	free(v);
	return rank;
}

/* ---- what follows ---- */

/* A rank that has ended while others run; -1: none. */
static int ended_one(const struct core_run *r)
{
	for (int i = 0; i < r->plan->crew.n; i++)
		if (r->nodes[i].state == NODE_EXITED && !r->nodes[i].asleep)
			return i;
	return -1;
}

static void describe(struct core_run *r)
{
	char span[32];
	struct core_stall *st = &r->stall;
	int ended = st->node < 0 ? ended_one(r) : -1;

	clock_format_span(limit_ms(r), span);
	if (ended >= 0)
		snprintf(
			st->text, sizeof(st->text),
			"no output for %s (stall); %s has ended, the others stand alike: see stall/",
			span, r->plan->crew.members[ended].name);
	else if (st->node < 0)
		snprintf(st->text, sizeof(st->text),
			 "no output for %s (stall); all nodes stand alike: see stall/", span);
	else if (r->nodes[st->node].inspect[0])
		snprintf(st->text, sizeof(st->text),
			 "no output for %s (stall); %.60s differs: %s; see stall/%.60s.txt", span,
			 r->plan->crew.members[st->node].name, r->nodes[st->node].inspect,
			 r->plan->crew.members[st->node].name);
	else
		snprintf(
			st->text, sizeof(st->text),
			"no output for %s (stall); %.60s differs: it does not answer; see stall/ for the "
			"others",
			span, r->plan->crew.members[st->node].name);
}

static void judge(struct step *s)
{
	struct core_run *r = s->r;
	struct core_stall *st = &r->stall;

	st->by_ms = 0;
	st->node = stall_odd_one(r);
	describe(r);
	effect_add(s, FX_STALLED, st->node);
	switch ((enum stall_action)r->plan->job->stall_action) {
	case STALL_REPORT:
		return;
	case STALL_RESTART:
		if (policy_restart(s))
			return;
		run_end_running(s, VERDICT_FAILED, ERR_TIMEOUT, st->node, "%s; no retries are left",
				st->text);
		return;
	case STALL_KILL:
		run_end_running(s, VERDICT_FAILED, ERR_TIMEOUT, st->node, "%s", st->text);
		return;
	}
}

static void progress(struct step *s)
{
	struct core_stall *st = &s->r->stall;

	st->heard_ms = s->now;
	if (!st->stalled)
		return;
	st->stalled = false;
	st->by_ms = 0;
	tick_want(s, s->now + limit_ms(s->r));
	s->out->changes++; /* so that it is recorded */
}

static void inspected(struct step *s, const struct event *ev)
{
	struct core_node *n = &s->r->nodes[ev->index];

	if (!s->r->stall.by_ms || !n->inspect_asked || !ev->text[0])
		return;
	n->inspect_asked = false;
	snprintf(n->inspect, sizeof(n->inspect), "%.*s", (int)sizeof(n->inspect) - 1, ev->text);
	s->out->changes++;
	if (--s->r->stall.asked == 0)
		judge(s);
}

static bool is_on(const struct core_run *r)
{
	return limit_ms(r) && r->phase == RUN_RUNNING && plan_has_nodes(r->plan);
}

void stall_event(struct step *s, const struct event *ev)
{
	if (!is_on(s->r))
		return;
	if (ev->kind == EV_PROGRESS)
		progress(s);
	else
		inspected(s, ev);
}

void stall_tick(struct step *s)
{
	struct core_run *r = s->r;

	if (!is_on(r))
		return;
	if (!r->stall.stalled && s->now >= r->stall.heard_ms + limit_ms(r))
		inspect(s);
	else if (r->stall.by_ms && s->now >= r->stall.by_ms)
		judge(s);
	if (r->phase == RUN_RUNNING)
		tick_want(s, r->stall.stalled ? r->stall.by_ms : r->stall.heard_ms + limit_ms(r));
}
