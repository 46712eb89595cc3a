/* Ranks by address: machines of all addresses, and the order of the ranks that they were given. */
#include "sim/ranks.h"

#include <stdio.h>

#include "base/arena.h"
#include "sim/internal.h"

#define BY_ADDRESS 4 /* one history in so many, unless the run is handed over */

void ranks_draw(struct world *w)
{
	struct strategy *s = arena_new_of(w->arena, struct strategy);

	if (w->seed % BY_ADDRESS != 1 || w->plan.hands_over || w->plan.agentless)
		return;
	*s = *w->plan.strategy;
	s->ranks_by_address = true;
	w->plan.strategy = s;
	for (int i = 0; i < w->plan.crew.n; i++)
		w->plan.addresses[i] = NULL;
}

/* Drawn from the machine's number, so that it is the same whenever it is asked for. */
void ranks_put_address(const struct world *w, int slot, struct event *hello)
{
	uint64_t x = w->machines[slot].epoch * 0x9e3779b97f4a7c15ull;

	if (w->plan.strategy->ranks_by_address)
		snprintf(hello->text, sizeof(hello->text), "10.%d.%d.%d", (int)(x >> 60),
			 (int)(x >> 40 & 255), (int)(x >> 20 & 255));
}

static unsigned address_of(const struct core_node *n)
{
	unsigned a = 0, b = 0, c = 0;

	return sscanf(n->address, "10.%u.%u.%u", &a, &b, &c) == 3 ? a << 16 | b << 8 | c : 0;
}

/* I23: all are here, and of two nodes of a role the one with the lower address has the lower rank. */
static void check_order(struct world *w, const struct core_run *r)
{
	const struct member *who = w->plan.crew.members;

	for (int i = 0; i < w->plan.crew.n; i++) {
		const struct core_node *a = &r->nodes[i];

		if (!a->asleep && (a->state != NODE_HERE || !a->address[0]))
			sim_broken(w, "I23: ranks were given while %s was %s", who[i].name,
				   node_state_name(a->state));
		for (int k = 0; k < w->plan.crew.n; k++) {
			const struct core_node *b = &r->nodes[k];

			if (i != k && a->job_rank == b->job_rank)
				sim_broken(w, "I23: %s and %s have one rank", who[i].name,
					   who[k].name);
			if (!a->asleep && !b->asleep && who[i].role == who[k].role &&
			    address_of(a) < address_of(b) && a->job_rank > b->job_rank)
				sim_broken(w, "I23: %s has rank %d, and %s of a higher address %d",
					   who[i].name, a->job_rank, who[k].name, b->job_rank);
		}
		if (who[a->job_rank].role != who[i].role)
			sim_broken(w, "I23: %s has a rank of another role", who[i].name);
	}
}

void check_ranks(struct world *w, const struct core_run *shown, const struct core_run *next)
{
	if (!w->plan.strategy->ranks_by_address || next->nodes[0].job_rank < 0)
		return;
	if (shown->nodes[0].job_rank < 0) {
		check_order(w, next);
		return;
	}
	for (int i = 0; i < w->plan.crew.n; i++)
		if (shown->nodes[i].job_rank != next->nodes[i].job_rank)
			sim_broken(w, "I23: the rank of %s was %d and is %d",
				   w->plan.crew.members[i].name, shown->nodes[i].job_rank,
				   next->nodes[i].job_rank);
}

void check_rank_is_given(struct world *w, int rank)
{
	if (w->plan.strategy->ranks_by_address && w->disk->nodes[rank].job_rank < 0)
		sim_broken(w, "I23: inputs are sent to %s, which has no rank yet",
			   w->plan.crew.members[rank].name);
}
