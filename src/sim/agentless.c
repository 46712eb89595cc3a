/* Machines without agents: observations tell how their jobs stand. */
#include "sim/agentless.h"

#include <stdio.h>

#include "base/arena.h"
#include "sim/enrol.h"
#include "sim/internal.h"

#define AGENTLESS 6
#define ATTEMPT 1 /* no node without an agent has another */

bool agentless_drawn(const struct world *w)
{
	return w->seed % AGENTLESS == 3;
}

void agentless_draw(struct world *w)
{
	w->plan.agentless = true;
	w->enrols = true; /* no machine is bound to its node by its row */
	w->followed = arena_array(w->arena, uint64_t, (size_t)w->plan.crew.n);
	groups_make(w, true);
}

static int slot_of(const struct world *w, int rank)
{
	return group_slot(w, w->plan.resource_of[rank], w->plan.crew.members[rank].index);
}

static int rank_of(const struct world *w, int slot)
{
	for (int i = 0; i < w->plan.crew.n; i++)
		if (w->plan.resource_of[i] == w->machines[slot].res && slot_of(w, i) == slot)
			return i;
	return -1;
}

static void job_ends_at(struct world *w, int slot, int64_t at)
{
	queue_add(&w->queue, &(struct happening){.at = at,
						 .kind = AT_JOB_EXITS,
						 .index = slot,
						 .ev = {.attempt = ATTEMPT},
						 .epoch = w->machines[slot].epoch});
}

void agentless_begins(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];
	int rank = rank_of(w, slot);

	mc->agent = ++w->epochs; /* it has booted */
	if (rank < 0 || w->execs[rank][ATTEMPT] > 0)
		return;
	mc->rank = rank;
	check_start(w, slot, ATTEMPT);
	mc->started = mc->running = true;
	mc->attempt = ATTEMPT;
	bool counts = strategy_counts(&w->plan.crew, rank);
	bool hangs = counts && sim_chance(w, w->f.job_hangs);

	w->hung |= hangs;
	if (counts && !hangs)
		job_ends_at(w, slot, w->now + w->long_ms + sim_delay(w, 10000));
}

/* The word of the master's own reader of logs, or of a driver. */
static void say(struct world *w, int rank, int64_t at, uint64_t master, struct event ev)
{
	ev.index = rank;
	struct happening h = {.at = at, .kind = AT_ANSWER, .epoch = master, .ev = ev};

	queue_add(&w->queue, &h);
	if (sim_chance(w, w->f.answer_twice))
		queue_add(&w->queue, &h);
}

void agentless_log_ends(struct world *w, int slot)
{
	int rank = w->machines[slot].rank;

	if (w->plan.agentless && w->followed[rank] == w->master)
		say(w, rank, w->now + sim_delay(w, 10), w->master,
		    (struct event){.kind = EV_NODE_DROPPED});
}

static void tell_one(struct world *w, int rank, int64_t at, uint64_t master)
{
	const struct machine *mc = &w->machines[slot_of(w, rank)];
	struct event ev = {.kind = EV_NODE_SEEN, .ended = mc->ended, .exit = mc->exit};
	struct event drained = {.kind = EV_NODE_DRAINED, .attempt = ATTEMPT};

	if (!mc->exists || !mc->started)
		return;
	snprintf(ev.text, sizeof(ev.text), "%s 10.0.0.%d", mc->identity, rank);
	say(w, rank, at, master, ev);
	if (!mc->ended || w->followed[rank] != master)
		return;
	if (sim_chance(w, w->f.lose_files)) {
		drained.err_kind = ERR_CAPACITY;
		snprintf(drained.text, sizeof(drained.text), "the log was cut off");
	}
	say(w, rank, at + sim_delay(w, 50), master, drained);
}

void agentless_tell_seen(struct world *w, int index, uint64_t master)
{
	int64_t at = w->now + sim_delay(w, 10);

	for (int i = 0; i < w->plan.crew.n && w->plan.agentless; i++)
		if (w->plan.resource_of[i] == index)
			tell_one(w, i, at, master);
}

void agentless_effect(struct world *w, const struct effect *fx)
{
	int slot = slot_of(w, fx->index);
	struct machine *mc = &w->machines[slot];

	if (fx->kind == FX_START) {
		w->followed[fx->index] = w->master;
		say(w, fx->index, w->now + sim_delay(w, 5), w->master,
		    (struct event){.kind = EV_NODE_STARTED, .attempt = fx->attempt});
	} else if (fx->kind == FX_STOP && mc->running) {
		mc->stop_asked = true;
		job_ends_at(w, slot, w->now + sim_delay(w, fx->hurry ? 10 : 2000));
	}
}
