/*
 * The simulated master: memory, a disk that keeps what was committed, and a crash at any point
 * between the two.
 */
#include "sim/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/vec.h"
#include "core/commit_round.h"
#include "sim/agentless.h"
#include "sim/enrol.h"
#include "sim/lifetime.h"
#include "sim/preempt.h"
#include "sim/ranks.h"

#define SLOW_CALL_MS 900

/* Copies what a commit writes: the rows, not the counters. */
static void copy_run(struct core_run *to, const struct core_run *from)
{
	to->phase = from->phase;
	to->verdict = from->verdict;
	to->cause = from->cause;
	to->cancel_asked = from->cancel_asked;
	to->hurry = from->hurry;
	memcpy(to->phase_at_ms, from->phase_at_ms, sizeof(to->phase_at_ms));
	to->deadline_ms = from->deadline_ms;
	to->rng = from->rng;
	to->slow_ms = from->slow_ms;
	to->next_call_ms = from->next_call_ms;
}

void rows_copy(struct core_run *to, const struct core_run *from)
{
	const struct plan *p = from->plan;

	copy_run(to, from);
	memcpy(to->nodes, from->nodes, sizeof(*to->nodes) * (size_t)p->crew.n);
	memcpy(to->resources, from->resources, sizeof(*to->resources) * (size_t)p->nresources);
}

/* Resets what is not stored in rows: it is lost with the master. */
static void forget(struct core_run *r)
{
	for (int i = 0; i < r->plan->crew.n; i++) {
		r->nodes[i].connected = r->nodes[i].preparing = r->nodes[i].no_room = false;
		r->nodes[i].give_up_ms = 0;
	}
	for (int i = 0; i < r->plan->nresources; i++) {
		r->resources[i].asked = ASKED_NOTHING;
		r->resources[i].ask_no = 0;
		r->resources[i].sure_at_ms = r->resources[i].asked_at_ms = 0;
		r->resources[i].known_at_ms = r->resources[i].absent_at_ms = 0;
		r->resources[i].absent_looks = 0;
		r->resources[i].refused_kind = ERR_NONE;
	}
}

/* A round of one event. */
struct sim_round {
	struct world *w;
	struct effects fx;
	VEC(int) nodes;	    /* rows in the transaction, */
	VEC(int) resources; /* which are on the disk after the commit */
	bool run;
	bool dies; /* the master dies after the commit, with some effects carried out */
};

static int save_node(void *round, int rank, const struct core_node *n, struct err *err)
{
	struct sim_round *rd = round;

	(void)n;
	(void)err;
	*vec_push(&rd->nodes) = rank;
	return 0;
}

static int save_resource(void *round, int index, const struct core_resource *res, struct err *err)
{
	struct sim_round *rd = round;

	(void)res;
	(void)err;
	*vec_push(&rd->resources) = index;
	return 0;
}

static int save_run(void *round, const struct core_run *r, struct err *err)
{
	struct sim_round *rd = round;

	(void)r;
	(void)err;
	rd->run = true;
	return 0;
}

static int save_round(void *ctx, struct err *err)
{
	static const struct round_rows rows = {save_node, save_resource, save_run};
	struct sim_round *rd = ctx;

	return round_save_rows(rd->w->memory, &rd->fx, &rows, rd, err);
}

/* Only rows that the core has marked as changed reach the disk: a missing mark shows up as lost
 * state. */
static int commit_round(void *ctx, struct err *err)
{
	struct sim_round *rd = ctx;
	struct world *w = rd->w;
	struct core_run *m = w->memory, *d = w->disk;

	if (sim_chance(w, w->f.master_dies)) /* before the commit: the round is lost */
		return err_set(err, ERR_IO, "the master died");
	check_final(w, d, m);
	check_ranks(w, d, m);
	for (size_t i = 0; i < rd->nodes.n; i++)
		d->nodes[rd->nodes.v[i]] = m->nodes[rd->nodes.v[i]];
	for (size_t i = 0; i < rd->resources.n; i++)
		d->resources[rd->resources.v[i]] = m->resources[rd->resources.v[i]];
	if (!rd->run)
		return 0;
	if (d->phase != m->phase && run_phase_is_final(d->phase))
		sim_broken(w, "I5: a final state changed from %s to %s", run_phase_name(d->phase),
			   run_phase_name(m->phase));
	copy_run(d, m);
	return 0;
}

static void rearm(struct world *w)
{
	int64_t at = w->memory->next_ms;

	if (!at || run_phase_is_final(w->memory->phase))
		return;
	if (at < w->now)
		at = w->now;
	if (w->tick_at && w->tick_at <= at)
		return;
	w->tick_at = at; /* replaces a later tick */
	queue_add(&w->queue, &(struct happening){.at = at, .kind = AT_TICK, .epoch = w->master});
}

/* Always less than LATE_MS, so that the core knows when a call can no longer arrive. */
static int64_t call_delay(struct world *w)
{
	return w->slow_calls ? 1 + (int64_t)rng_below(&w->rng, SLOW_CALL_MS) : sim_delay(w, 20);
}

static void call(struct world *w, const struct effect *e)
{
	queue_add(&w->queue, &(struct happening){.at = w->now + call_delay(w),
						 .kind = AT_EFFECT,
						 .fx = *e,
						 .epoch = w->master});
	if (e->kind == FX_EXTEND && w->plan.resources[e->index].node >= 0)
		machine_tell(w, e->index, e);
}

/* Over the node's own connection: after a member of a group was replaced, another node's machine may be in its slot. */
static void tell_node(struct world *w, const struct effect *e)
{
	int slot = w->slot_of[e->index];

	if (e->kind == FX_PREPARE)
		check_rank_is_given(w, e->index);
	if (w->machines[slot].conn == w->conn_of[e->index])
		machine_tell(w, slot, e);
}

static void hand_out_one(struct world *w, const struct effect *e)
{
	bool of_machine = e->kind == FX_ENROLLED;

	sim_trace(w, effect_kind_name(e->kind), e->index,
		  of_machine ? (int64_t)e->enrolled : e->attempt,
		  of_machine ? e->incarnation : e->hurry);
	if (e->kind <= FX_DESTROY)
		check_quiet(w, e->index);
	if (e->kind == FX_CREATE && plan_queues(&w->plan) && !w->admitted)
		sim_broken(w, "I27: '%s' was created while the run waited in the queue",
			   w->plan.resources[e->index].name);
	if (e->kind == FX_ENROLLED) {
		enrolment_answer(w, e);
		return;
	}
	if (e->kind == FX_RELEASE && e->conn) {
		w->released_conn = e->conn;
		for (int i = 0; i < w->nslots; i++)
			if (w->machines[i].conn == e->conn)
				machine_tell(w, i, e);
		return;
	}
	if (e->kind == FX_STALLED || e->kind == FX_PREFLIGHT_PASSED)
		return; /* for people, and perhaps of no node */
	if (e->kind == FX_ENDED)
		w->ended = true;
	else if (e->kind <= FX_DESTROY || e->kind >= FX_HAND_OVER)
		call(w, e);
	else if (w->plan.agentless)
		agentless_effect(w, e);
	else
		tell_node(w, e);
}

static void hand_out_round(void *ctx)
{
	struct sim_round *rd = ctx;
	struct world *w = rd->w;
	size_t handed = rd->fx.n;

	rd->dies = sim_chance(w, w->f.master_dies);
	if (rd->dies) /* only some effects are carried out */
		handed = rd->fx.n ? rng_below(&w->rng, rd->fx.n + 1) : 0;
	for (size_t i = 0; i < handed; i++)
		hand_out_one(w, &rd->fx.v[i]);
}

/* True if the event means that output is lost which the run still waits for. */
static bool loses_output(const struct core_run *r, const struct event *ev)
{
	if (ev->kind == EV_NODE_NO_LOG)
		return r->phase < RUN_CLEANING && !r->nodes[ev->index].settled;
	return ev->kind == EV_NODE_DRAINED && ev->err_kind != ERR_NONE &&
	       r->nodes[ev->index].state == NODE_EXITED && !r->nodes[ev->index].settled;
}

void master_event(struct world *w, const struct event *ev)
{
	static const struct round_order order = {save_round, commit_round, hand_out_round};
	struct sim_round rd = {.w = w};
	struct err err;

	if (!w->master_up)
		return;
	sim_trace(w, event_name(ev), ev->index, ev->attempt, (int64_t)ev->holds);
	w->admitted |= ev->kind == EV_ADMIT;
	int64_t quiet_until = w->quiet_until;

	check_throttled(w, ev);
	bool loses = loses_output(w->memory, ev);

	bool preempted = preempt_attempt_ends(w, ev);

	core_step(w->memory, ev, w->now, &rd.fx);
	if (preempted)
		check_next_attempt(w, ev->index);
	bool stored = round_commit(&order, &rd, &err) == 0;

	w->lost_output |= stored && loses;
	if (!stored) /* nobody has heard that the provider throttles */
		w->quiet_until = quiet_until;
	if (!stored || rd.dies)
		master_dies(w);
	else
		rearm(w);
	effects_release(&rd.fx);
	vec_release(&rd.nodes);
	vec_release(&rd.resources);
}

void master_dies(struct world *w)
{
	w->res->crashes++;
	w->master_up = false;
	w->memory = core_run_free(w->memory);
	connections_drop(w);
	sim_trace(w, "master dies", 0, 0, 0);
	if (sim_master_is_gone(w))
		lifetime_alone(w);
	/* The master may be back before its last calls have reached the cloud. */
	int64_t usual_ms = rng_below(&w->rng, 2) ? 1500 : 100;
	int64_t up_at = w->now + sim_delay(w, usual_ms);

	if (!sim_master_is_gone(w))
		queue_add(&w->queue, &(struct happening){.at = up_at, .kind = AT_MASTER_UP});
}

/* Slices are small here, so that masters die between two of them. */
static struct core_run *new_run(const struct world *w)
{
	struct core_run *r = core_run_new(&w->plan);

	r->slice = 1 + (int)(w->seed % 3);
	return r;
}

/* Each master decides anew when a run that waits may start. */
static void admit_later(struct world *w)
{
	if (plan_queues(&w->plan) && w->master_up && w->memory->phase == RUN_ACCEPTED)
		queue_add(&w->queue,
			  &(struct happening){.at = w->now + (int64_t)rng_below(&w->rng, 20000),
					      .kind = AT_ADMIT,
					      .epoch = w->master});
}

void master_comes_up(struct world *w)
{
	w->master++;
	w->master_up = true;
	w->tick_at = 0;
	w->memory = new_run(w);
	rows_copy(w->memory, w->disk);
	forget(w->memory);
	core_run_restored(w->memory);
	w->ended = run_phase_is_final(w->memory->phase);
	sim_trace(w, "master comes up", 0, (int64_t)w->memory->phase, 0);
	if (!w->ended)
		master_event(w, &(struct event){.kind = EV_RESUME});
	admit_later(w);
}

void master_start(struct world *w)
{
	w->disk = core_run_new(&w->plan);
	w->memory = new_run(w);
	w->recount = new_run(w);
	w->master = 1;
	w->master_up = true;
	/* Accepting a run is one transaction; after a crash before it there is no run. */
	int keep = w->f.master_dies;
	w->f.master_dies = 0;
	master_event(w, &(struct event){.kind = EV_ACCEPTED, .seed = w->seed});
	w->f.master_dies = keep;
	admit_later(w);
}

void master_tick(struct world *w)
{
	w->tick_at = 0;
	master_event(w, &(struct event){.kind = EV_TICK});
}

void master_resize(struct world *w, int role, int want)
{
	master_event(w, &(struct event){.kind = EV_RESIZE, .index = role, .want = want});
	groups_resized(w);
}

void master_cancel(struct world *w, bool hurry)
{
	bool collecting = w->master_up && w->memory->phase == RUN_COLLECTING;
	bool success = collecting && w->memory->verdict == VERDICT_SUCCEEDED;

	master_event(w, &(struct event){.kind = EV_CANCEL, .hurry = hurry, .text = "cancelled"});
	if (!collecting || !w->disk->cancel_asked)
		return; /* the master died before the commit */
	w->gave_up_at = w->now;
	w->gave_up_success |= success;
}
