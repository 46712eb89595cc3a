/*
 * The entry: applies one event to one run.  The subject of the event decides which file handles
 * it: the run (run.c), a node (node.c) or a resource (resource.c).
 */
#include "core/core.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "core/carrier.h"
#include "core/cost.h"
#include "core/extend.h"
#include "core/handover.h"
#include "core/internal.h"
#include "core/ladder.h"
#include "core/preflight.h"
#include "core/stall.h"

/* Inverts the needs of the plan, so that a step finds the users of a resource without a search. */
static void index_users(struct core_run *r)
{
	const struct plan *p = r->plan;
	size_t m = (size_t)p->nresources, arrows = 0;

	r->users_at = xcalloc(m + 1, sizeof(*r->users_at));
	for (size_t i = 0; i < m; i++)
		for (int k = 0; k < p->resources[i].nneeds; k++, arrows++)
			r->users_at[p->resources[i].needs[k] + 1]++;
	for (size_t i = 0; i < m; i++)
		r->users_at[i + 1] += r->users_at[i];
	r->users = xcalloc(arrows + 1, sizeof(*r->users));
	int *fill = xcalloc(m + 1, sizeof(*fill));
	for (size_t i = 0; i < m; i++)
		for (int k = 0; k < p->resources[i].nneeds; k++) {
			int need = p->resources[i].needs[k];
			r->users[r->users_at[need] + fill[need]++] = (int)i;
		}
	free(fill);
}

static size_t group_limit(const struct plan *p)
{
	int64_t most = 0;

	for (int i = 0; i < p->nresources; i++)
		if (p->resources[i].group > most)
			most = p->resources[i].group;
	return (size_t)most + 1;
}

/* Numbers the kinds of resources, which are few; a kind is represented by its first resource. */
static void number_kinds(struct core_run *r)
{
	const struct plan *p = r->plan;
	VEC(const char *) kinds = {0};

	r->kind_of = xcalloc((size_t)p->nresources, sizeof(*r->kind_of));
	for (int i = 0; i < p->nresources; i++) {
		size_t k = 0;

		while (k < kinds.n && strcmp(kinds.v[k], p->resources[i].kind) != 0)
			k++;
		if (k == kinds.n)
			*vec_push(&kinds) = p->resources[i].kind;
		r->kind_of[i] = (int)k;
	}
	r->looks = xcalloc(kinds.n + 1, sizeof(*r->looks));
	vec_release(&kinds);
}

struct core_run *core_run_new(const struct plan *plan)
{
	struct core_run *r = xcalloc(1, sizeof(*r));
	size_t n = (size_t)plan->crew.n, m = (size_t)plan->nresources,
	       k = (size_t)plan->crew.nroles;

	r->plan = plan;
	r->cause.node = -1;
	r->nodes = xcalloc(n, sizeof(*r->nodes));
	r->resources = xcalloc(m, sizeof(*r->resources));
	number_kinds(r);
	r->groups = xcalloc(group_limit(plan), sizeof(*r->groups));
	r->role_gates_met = xcalloc(k, sizeof(*r->role_gates_met));
	r->role_open = xcalloc(k, sizeof(*r->role_open));
	r->role_awake = xcalloc(k, sizeof(*r->role_awake));
	r->role_next = xcalloc(k, sizeof(*r->role_next));
	r->role_first = xcalloc(k, sizeof(*r->role_first));
	r->role_free = xcalloc(k, sizeof(*r->role_free));
	r->slice = CORE_SLICE;
	r->needs_left = xcalloc(m, sizeof(*r->needs_left));
	r->users_left = xcalloc(m, sizeof(*r->users_left));
	for (size_t i = 0; i < n; i++) {
		const struct member *who = &plan->crew.members[i];

		if (who->index == 0)
			r->role_first[who->role] = (int)i;
		r->nodes[i].incarnation = 1;
		r->nodes[i].job_rank = -1;
		r->nodes[i].asleep = who->index >= plan->crew.roles[who->role].count;
	}
	for (size_t i = 0; i < n; i++)
		if (plan->addresses[i])
			snprintf(r->nodes[i].address, sizeof(r->nodes[i].address), "%s",
				 plan->addresses[i]);
	for (size_t i = 0; i < m; i++)
		if (plan->resources[i].id) {
			r->resources[i].state = RES_LIVE;
			snprintf(r->resources[i].id, sizeof(r->resources[i].id), "%s",
				 plan->resources[i].id);
		}
	index_users(r);
	core_run_restored(r);
	return r;
}

struct core_run *core_run_free(struct core_run *r)
{
	if (!r)
		return NULL;
	free(r->nodes);
	free(r->resources);
	free(r->groups);
	free(r->kind_of);
	free(r->looks);
	free(r->role_gates_met);
	free(r->role_open);
	free(r->role_awake);
	free(r->role_next);
	free(r->role_first);
	free(r->role_free);
	map_free(r->machines);
	free(r->needs_left);
	free(r->users_left);
	free(r->users);
	free(r->users_at);
	free(r);
	return NULL;
}

void core_run_restored(struct core_run *r)
{
	const struct plan *p = r->plan;

	memset(r->node_count, 0, sizeof(r->node_count));
	memset(r->res_count, 0, sizeof(r->res_count));
	memset(r->role_gates_met, 0, sizeof(*r->role_gates_met) * (size_t)p->crew.nroles);
	memset(r->role_open, 0, sizeof(*r->role_open) * (size_t)p->crew.nroles);
	memset(r->role_awake, 0, sizeof(*r->role_awake) * (size_t)p->crew.nroles);
	memset(r->users_left, 0, sizeof(*r->users_left) * (size_t)p->nresources);
	memset(r->role_next, 0, sizeof(*r->role_next) * (size_t)p->crew.nroles);
	r->settled = r->counted = r->counted_ok = r->awake = r->res_idle = r->batches = r->kept = 0;
	r->create_next = r->stop_next = r->clean_next = 0;
	r->prepare_next = p->crew.n; /* nodes that come back are prepared when they say hello */
	r->dirty = r->starting = false;
	r->next_ms = 1; /* due at once; the first tick sets the real time */

	for (int i = 0; i < p->crew.n; i++) {
		struct core_node *n = &r->nodes[i];
		int role = p->crew.members[i].role;

		n->dirty = n->connected = false;
		r->node_count[n->state]++;
		r->settled += n->settled;
		r->role_gates_met[role] += n->gate_met;
		if (n->start_sent && r->phase >= RUN_RUNNING)
			r->role_open[role] = true;
		r->counted_ok += node_ended_well(r, i);
		if (n->asleep) {
			r->res_idle += p->resources[p->resource_of[i]].node == i;
			continue;
		}
		r->awake++;
		r->role_awake[role]++;
		r->counted += p->crew.roles[role].counted;
	}
	/* run_open_gates() opens the role again and starts these nodes. */
	for (int i = 0; i < p->crew.n; i++)
		if (r->nodes[i].state == NODE_READY && !r->nodes[i].start_sent)
			r->role_open[p->crew.members[i].role] = false;
	for (int i = 0; i < p->nresources; i++) {
		struct core_resource *res = &r->resources[i];
		const struct plan_resource *pr = &p->resources[i];

		res->dirty = false;
		res->asked = ASKED_NOTHING;
		r->res_count[res->state]++;
		r->kept += pr->shared && res->state == RES_LIVE;
		if (res->batch > r->batches)
			r->batches = res->batch;
		r->needs_left[i] = 0;
		for (int k = 0; k < pr->nneeds; k++) {
			r->needs_left[i] += r->resources[pr->needs[k]].state != RES_LIVE;
			r->users_left[pr->needs[k]] += res_may_exist(res->state);
		}
	}
	ladder_restored(r);
	enrol_restored(r);
	handover_restored(r);
}

void effects_release(struct effects *fx)
{
	free(fx->v);
	vec_release(&fx->nodes);
	vec_release(&fx->resources);
	fx->v = NULL;
	fx->n = fx->cap = 0;
}

void node_touch(struct step *s, int rank)
{
	struct core_node *n = &s->r->nodes[rank];
	if (!n->dirty)
		*vec_push(&s->out->nodes) = rank;
	n->dirty = true;
	s->out->changes++;
}

void res_touch(struct step *s, int index)
{
	struct core_resource *res = &s->r->resources[index];
	if (!res->dirty)
		*vec_push(&s->out->resources) = index;
	res->dirty = true;
	s->out->changes++;
}

void run_touch(struct step *s)
{
	s->r->dirty = true;
	s->out->changes++;
}

void run_set_phase(struct step *s, enum run_phase to)
{
	struct core_run *r = s->r;

	assert(run_edge_ok(r->phase, to));
	r->phase = to;
	if (!r->phase_at_ms[to]) /* a gang that starts again keeps the time of its first start */
		r->phase_at_ms[to] = s->now;
	r->deadline_ms = 0;
	run_touch(s);
}

void node_set_state(struct step *s, int rank, enum node_state to)
{
	struct core_node *n = &s->r->nodes[rank];

	assert(node_edge_ok(n->state, to));
	s->r->node_count[n->state]--;
	s->r->node_count[to]++;
	n->state = to;
	n->since_ms = s->now;
	node_touch(s, rank);
}

void res_set_state(struct step *s, int index, enum res_state to)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];
	const struct plan_resource *pr = &r->plan->resources[index];
	int lives = (to == RES_LIVE) - (res->state == RES_LIVE);
	int exists = res_may_exist(to) - res_may_exist(res->state);

	assert(res_edge_ok(res->state, to));
	cost_changes(s, index, to);
	r->res_count[res->state]--;
	r->res_count[to]++;
	if (pr->shared)
		r->kept += lives;
	for (int k = r->users_at[index]; lives && k < r->users_at[index + 1]; k++)
		r->needs_left[r->users[k]] -= lives;
	for (int k = 0; exists && k < pr->nneeds; k++)
		r->users_left[pr->needs[k]] += exists;
	res->state = to;
	res->since_ms = s->now;
	res->retry_at_ms = 0;
	res_touch(s, index);
}

void effect_add(struct step *s, enum effect_kind kind, int index)
{
	s->out->changes++;
	*vec_push(s->out) = (struct effect){
		.kind = kind,
		.index = index,
		.attempt = kind == FX_START	  ? s->r->nodes[index].attempt
			   : kind <= FX_DESTROY	  ? s->r->resources[index].ask_no
			   : kind == FX_PREFLIGHT ? s->r->preflight.round
			   : kind >= FX_HAND_OVER ? s->r->remote.ask_no
						  : 0,
		.asked = kind <= FX_DESTROY ? s->r->resources[index].asked : ASKED_NOTHING,
		.batch = kind == FX_CREATE ? s->r->resources[index].batch : 0,
		.choice = kind <= FX_DESTROY ? s->r->resources[index].choice : 0,
		.lifetime_ms =
			kind == FX_CREATE || kind == FX_EXTEND ? plan_lifetime_ms(s->r->plan) : 0,
		.incarnation = kind <= FX_DESTROY ? s->r->resources[index].incarnation : 0,
		.hurry = (kind == FX_STOP || kind == FX_FOLLOW || kind == FX_CANCEL_CARRIED) &&
			 s->r->hurry,
		.overdue = kind == FX_OBSERVE && s->r->silent_ms,
		.cancel = kind == FX_FOLLOW && s->r->cancel_asked,
		.gone = (kind == FX_FOLLOW || kind == FX_AWAIT_RESULTS) && s->r->remote.gone,
	};
}

void tick_want(struct step *s, int64_t at)
{
	if (at && (!s->r->next_ms || at < s->r->next_ms))
		s->r->next_ms = at;
}

static void tick(struct step *s)
{
	struct core_run *r = s->r;

	if (!r->next_ms || s->now < r->next_ms)
		return;
	r->next_ms = 0;
	if (r->phase == RUN_ACCEPTED)
		return; /* it waits in the queue, without a deadline */
	if (r->deadline_ms && s->now >= r->deadline_ms)
		run_deadline(s);
	tick_want(s, r->deadline_ms);
	cost_tick(s);
	run_create_slice(s);
	if (r->starting)
		run_start_slice(s);
	ranks_prepare_slice(s);
	run_stop_slice(s);
	run_clean_slice(s);
	handover_tick(s);
	stall_tick(s);
	preflight_tick(s);
	for (int i = 0; i < r->plan->crew.n; i++)
		node_tick(s, i);
	for (int i = 0; i < r->plan->nresources; i++)
		res_tick(s, i);
	extend_tick(s);
}

static void resume(struct step *s)
{
	struct core_run *r = s->r;

	if (run_phase_is_final(r->phase))
		return;
	extend_start(s, true);
	if (r->phase == RUN_ACCEPTED) {
		if (!plan_queues(r->plan)) /* the queue admits the others */
			run_start(s);
		return;
	}
	tick_want(s, r->deadline_ms);
	stall_start(s);
	for (int i = 0; i < r->plan->crew.n; i++)
		node_resume(s, i);
	for (int i = 0; i < r->plan->nresources; i++)
		res_resume(s, i);
	handover_resume(s);
	carrier_resume(s);
	run_open_gates(s);
	run_start_slice(s); /* the previous master may have stopped between two slices */
	run_check_collected(s);
	/* A tick follows at once: it creates, stops or cleans up the rest. */
}

void core_step(struct core_run *r, const struct event *ev, int64_t now_ms, struct effects *out)
{
	struct step s = {.r = r, .now = now_ms, .out = out};

	r->steps++;
	switch (ev->kind) {
	case EV_ACCEPTED:
		if (r->phase != RUN_ACCEPTED || r->phase_at_ms[RUN_ACCEPTED])
			return;
		rng_seed(&r->rng, ev->seed);
		r->phase_at_ms[RUN_ACCEPTED] = now_ms;
		run_touch(&s);
		extend_start(&s, false);
		if (!plan_queues(r->plan))
			run_start(&s);
		return;
	case EV_ADMIT:
		if (r->phase == RUN_ACCEPTED)
			run_start(&s);
		return;
	case EV_RESUME:
		resume(&s);
		return;
	case EV_TICK:
		tick(&s);
		return;
	case EV_CANCEL:
		run_cancel(&s, ev);
		return;
	case EV_RESIZE:
		if (ev->index >= 0 && ev->index < r->plan->crew.nroles)
			policy_resize(&s, ev->index, ev->want);
		return;
	case EV_RES_ANSWER:
	case EV_RES_MEMBER:
		if (ev->index >= 0 && ev->index < r->plan->nresources)
			res_event(&s, ev);
		return;
	case EV_ENROL:
		if (ev->index >= 0 && ev->index < r->plan->crew.nroles)
			enrol_event(&s, ev);
		return;
	case EV_REMOTE:
		handover_event(&s, ev);
		return;
	case EV_CARRIED:
		carrier_event(&s, ev);
		return;
	case EV_PROGRESS:
		stall_event(&s, ev);
		return;
	case EV_CAPACITY:
		for (int i = 0; i < r->plan->nresources; i++)
			res_capacity(&s, i);
		return;
	case EV_NODE_HELLO:
	case EV_NODE_READY:
	case EV_NODE_UNFIT:
	case EV_NODE_STARTED:
	case EV_NODE_SERVING:
	case EV_NODE_EXITED:
	case EV_NODE_NO_DAEMON:
	case EV_NODE_DRAINED:
	case EV_NODE_DROPPED:
	case EV_NODE_NO_ROOM:
	case EV_NODE_ROOM:
	case EV_NODE_NO_LOG:
	case EV_NODE_PREEMPT:
	case EV_NODE_INSPECTED:
	case EV_NODE_PREFLIGHT:
	case EV_NODE_SEEN:
		if (ev->index >= 0 && ev->index < r->plan->crew.n)
			node_event(&s, ev);
		return;
	}
}
