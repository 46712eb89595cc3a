#include "sim/lifetime.h"

#include "sim/internal.h"

#define HOUR_MS (60LL * 60 * 1000)
#define LONG_ONE_IN 40 /* histories; by the seed, so that the others are what they were */
#define LEAST_HOURS 25 /* longer than anything lives that is not extended */
#define MOST_HOURS 60
#define RESTARTS 3 /* of the master, on these days */
#define STAGES 2   /* roles that wait for the end of another one */
#define AGENT_GONE_ONE_IN 2

void lifetime_draw(struct world *w)
{
	if (w->seed % LONG_ONE_IN != 0)
		return;
	w->long_ms =
		(LEAST_HOURS + (int64_t)rng_below(&w->rng, MOST_HOURS - LEAST_HOURS)) * HOUR_MS;
	w->job->max_runtime_ms = 0;
	w->f.job_hangs = 0; /* nothing would end that run */
	w->end_at += (STAGES + 1) * w->long_ms;
	for (int i = 0; i < RESTARTS; i++)
		queue_add(&w->queue, &(struct happening){.at = (int64_t)rng_below(
								 &w->rng, (uint64_t)w->long_ms),
							 .kind = AT_MASTER_DIES});
}

static bool costs(const struct world *w, int index)
{
	return w->plan.resources[index].node >= 0 || w->plan.resources[index].carries_many ||
	       w->plan.resources[index].master;
}

static void end_at(struct world *w, int index)
{
	queue_add(&w->queue, &(struct happening){.at = w->machines[index].expires_at,
						 .kind = AT_EXPIRES,
						 .index = index,
						 .epoch = w->machines[index].epoch});
}

void lifetime_begins(struct world *w, int index, int64_t lifetime_ms)
{
	struct machine *mc = &w->machines[index];

	mc->expires_at = mc->tag_until = w->now + lifetime_ms;
	if ((w->gone_at || w->long_ms) && costs(w, index) && lifetime_ms)
		end_at(w, index);
}

void lifetime_tagged(struct world *w, const struct effect *fx)
{
	struct machine *mc = &w->machines[fx->index];

	mc->tag_until = w->now + fx->lifetime_ms;
	if (w->plan.resources[fx->index].carries_many)
		mc->expires_at = mc->tag_until;
}

void lifetime_is_over(struct world *w, int slot)
{
	if (w->now < w->machines[slot].expires_at)
		end_at(w, slot);
	else if (sim_master_is_gone(w))
		machine_dies(w, slot);
	else
		sim_broken(w, "I20: %s ends by itself while its master lives",
			   w->plan.resources[slot].name);
}

void lifetime_alone(struct world *w)
{
	for (int i = 0; w->long_ms && i < w->nslots; i++)
		if (w->machines[i].agent_up && rng_below(&w->rng, AGENT_GONE_ONE_IN) == 0) {
			w->machines[i].agent_up = false;
			w->machines[i].agent = ++w->epochs;
		}
}

void check_tags(struct world *w)
{
	for (int i = 0; w->long_ms && i < w->plan.nresources; i++)
		if (w->machines[i].exists && w->machines[i].tag_until < w->now &&
		    w->disk->resources[i].state == RES_LIVE && !w->plan.resources[i].shared &&
		    !sim_master_is_gone(w))
			sim_broken(w, "I20: the tag of %s is past, and its master lives",
				   w->plan.resources[i].name);
}
