#include "sim/preflight.h"

#include "base/arena.h"
#include "sim/internal.h"

#define PREFLIGHTS 3 /* one history in so many has it */

struct sim_preflight {
	bool *reaches;	     /* per rank: the others, as it has said since it was ready */
	enum run_phase seen; /* at the last check */
};

void preflight_draw(struct world *w)
{
	w->preflight = arena_new_of(w->arena, struct sim_preflight);
	w->preflight->reaches = arena_array(w->arena, bool, (size_t)w->plan.crew.n);
	w->job->preflight_set = true;
	w->job->preflight = w->seed % PREFLIGHTS == 0;
}

struct preflight_facts preflight_facts(int slot)
{
	return (struct preflight_facts){
		.port = 1024 + slot, .mtu = 1500, .shm = 64 << 20, .files = 1024};
}

static int some_peer(struct world *w, int rank)
{
	int n = w->plan.crew.n;

	return (rank + 1 + (int)rng_below(&w->rng, (uint64_t)n - 1)) % n;
}

void preflight_asked(struct world *w, int slot, int round)
{
	int rank = w->machines[slot].rank;
	struct event ev = {.kind = EV_NODE_PREFLIGHT, .attempt = round, .place = -1};

	if (sim_chance(w, w->f.dumb))
		return;
	if (sim_chance(w, w->f.apart)) {
		ev.want = 1;
		ev.place = some_peer(w, rank);
		ev.reached = rng_below(&w->rng, 2);
	}
	node_say(w, slot, &ev);
}

void preflight_said(struct world *w, const struct event *ev)
{
	if (!w->master_up)
		return;
	if (ev->kind == EV_NODE_READY)
		w->preflight->reaches[ev->index] = false;
	if (ev->kind == EV_NODE_PREFLIGHT)
		w->preflight->reaches[ev->index] = ev->want == 0;
}

static int count_awake(const struct core_run *r)
{
	int n = 0;

	for (int i = 0; i < r->plan->crew.n; i++)
		n += !r->nodes[i].asleep;
	return n;
}

void preflight_check(struct world *w)
{
	enum run_phase before = w->preflight->seen;

	w->preflight->seen = w->disk->phase;
	if (!plan_preflight(&w->plan) || w->plan.hands_over || count_awake(w->disk) < 2 ||
	    w->preflight->seen != RUN_RUNNING || before == RUN_RUNNING)
		return;
	for (int i = 0; i < w->plan.crew.n; i++)
		if (!w->disk->nodes[i].asleep && !w->preflight->reaches[i])
			sim_broken(w, "I31: the gang started, but %s has not reached the others",
				   w->plan.crew.members[i].name);
}
