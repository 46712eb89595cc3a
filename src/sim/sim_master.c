/*
 * The master in the simulation: memory, a disk that keeps what was committed, and
 * a crash at any point between the two.
 */
#include "sim/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define SLOW_CALL_MS 900

/* What a commit writes: the rows, not the counters. */
static void copy_rows(struct core_run *to, const struct core_run *from)
{
	const struct plan *p = from->plan;

	to->phase = from->phase;
	to->verdict = from->verdict;
	to->cause = from->cause;
	to->cancel_asked = from->cancel_asked;
	to->hurry = from->hurry;
	memcpy(to->phase_at_ms, from->phase_at_ms, sizeof(to->phase_at_ms));
	to->deadline_ms = from->deadline_ms;
	to->rng = from->rng;
	memcpy(to->nodes, from->nodes, sizeof(*to->nodes) * (size_t)p->crew.n);
	memcpy(to->resources, from->resources, sizeof(*to->resources) * (size_t)p->nresources);
}

/* What no row keeps is gone with the master. */
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
	}
}

/* Only what the core said has changed may reach the disk: a forgotten mark shows up as lost state. */
static void commit(struct world *w, struct effects *fx)
{
	struct core_run *m = w->memory, *d = w->disk;

	for (size_t i = 0; i < fx->nodes.n; i++) {
		m->nodes[fx->nodes.v[i]].dirty = false;
		d->nodes[fx->nodes.v[i]] = m->nodes[fx->nodes.v[i]];
	}
	for (size_t i = 0; i < fx->resources.n; i++) {
		m->resources[fx->resources.v[i]].dirty = false;
		d->resources[fx->resources.v[i]] = m->resources[fx->resources.v[i]];
	}
	if (!m->dirty)
		return;
	if (d->phase != m->phase && run_phase_is_final(d->phase))
		sim_broken(w, "I5: a final state changed from %s to %s", run_phase_name(d->phase),
			   run_phase_name(m->phase));
	m->dirty = false;
	struct core_node *nodes = d->nodes;
	struct core_resource *resources = d->resources;
	struct core_run rows = *m;
	rows.nodes = nodes; /* rows of nodes and resources were written above */
	rows.resources = resources;
	copy_rows(d, &rows);
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
	w->tick_at = at; /* one that was set for later is no tick any more */
	queue_add(&w->queue, &(struct happening){.at = at, .kind = AT_TICK, .epoch = w->master});
}

/* Always less than LATE_MS, so that the core knows when a call can no longer arrive. */
static int64_t call_delay(struct world *w)
{
	return w->slow_calls ? 1 + (int64_t)rng_below(&w->rng, SLOW_CALL_MS) : sim_delay(w, 20);
}

void master_event(struct world *w, const struct event *ev)
{
	struct effects fx = {0};

	if (!w->master_up)
		return;
	sim_trace(w, event_kind_name(ev->kind), ev->index, ev->attempt, (int64_t)ev->holds);
	core_step(w->memory, ev, w->now, &fx);
	if (sim_chance(w, w->f.master_dies)) { /* before the commit: it never happened */
		effects_release(&fx);
		master_dies(w);
		return;
	}
	commit(w, &fx);
	size_t handed = fx.n;
	bool dies = sim_chance(w, w->f.master_dies);
	if (dies) /* after it: some effects are out, some are not */
		handed = fx.n ? rng_below(&w->rng, fx.n + 1) : 0;
	for (size_t i = 0; i < handed; i++) {
		const struct effect *e = &fx.v[i];
		sim_trace(w, effect_kind_name(e->kind), e->index, e->attempt, e->hurry);
		if (e->kind == FX_ENDED)
			w->ended = true;
		else if (e->kind <= FX_DESTROY)
			queue_add(&w->queue, &(struct happening){.at = w->now + call_delay(w),
								 .kind = AT_EFFECT,
								 .fx = *e,
								 .epoch = w->master});
		else
			node_tell(w, e);
	}
	effects_release(&fx);
	if (dies)
		master_dies(w);
	else
		rearm(w);
}

void master_dies(struct world *w)
{
	w->res->crashes++;
	w->master_up = false;
	w->memory = core_run_free(w->memory);
	connections_drop(w);
	sim_trace(w, "master dies", 0, 0, 0);
	/* It may be back before what it asked for last has reached the world. */
	int64_t usual_ms = rng_below(&w->rng, 2) ? 1500 : 100;
	queue_add(&w->queue,
		  &(struct happening){.at = w->now + sim_delay(w, usual_ms), .kind = AT_MASTER_UP});
}

void master_comes_up(struct world *w)
{
	w->master++;
	w->master_up = true;
	w->tick_at = 0;
	w->memory = core_run_new(&w->plan);
	copy_rows(w->memory, w->disk);
	forget(w->memory);
	core_run_restored(w->memory);
	w->ended = run_phase_is_final(w->memory->phase);
	sim_trace(w, "master comes up", 0, (int64_t)w->memory->phase, 0);
	if (!w->ended)
		master_event(w, &(struct event){.kind = EV_RESUME});
}

void master_start(struct world *w)
{
	w->disk = core_run_new(&w->plan);
	w->memory = core_run_new(&w->plan);
	w->master = 1;
	w->master_up = true;
	/* The accept itself is one transaction; a crash before it means that there is no run. */
	int keep = w->f.master_dies;
	w->f.master_dies = 0;
	master_event(w, &(struct event){.kind = EV_ACCEPTED, .seed = w->seed});
	w->f.master_dies = keep;
}

void master_tick(struct world *w)
{
	w->tick_at = 0;
	master_event(w, &(struct event){.kind = EV_TICK});
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
