/* Machines that the provider takes back: with a notice some time before, or without one. */
#include "sim/preempt.h"

#include <stdio.h>

#include "sim/internal.h"

#define NOTICE_MS 4000	   /* usual time between the notice and the end */
#define JOB_LEAVES 500	   /* per mille of the jobs that end by themselves after a notice */
#define SHOWN_AS_ENDED 500 /* per mille of the machines that the provider shows after their end */

void preempt_draw(struct world *w, int slot)
{
	uint64_t epoch = w->machines[slot].epoch;

	if (sim_chance(w, w->f.preempt_notice))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 8000),
							 .kind = AT_NOTICE,
							 .index = slot,
							 .epoch = epoch});
	if (sim_chance(w, w->f.taken))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 15000),
							 .kind = AT_TAKEN,
							 .index = slot,
							 .epoch = epoch});
}

void preempt_say(struct world *w, int slot)
{
	const struct machine *mc = &w->machines[slot];

	if (mc->taken_at && mc->rank >= 0)
		node_say(w, slot, &(struct event){.kind = EV_NODE_PREEMPT, .at_ms = mc->taken_at});
}

void preempt_notice(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];

	w->res->faults++;
	mc->taken_at = w->now + sim_delay(w, NOTICE_MS);
	queue_add(&w->queue,
		  &(struct happening){
			  .at = mc->taken_at, .kind = AT_TAKEN, .index = slot, .epoch = mc->epoch});
	if (mc->agent_up)
		preempt_say(w, slot);
	if (!mc->agent_up || !mc->running || !sim_chance(w, JOB_LEAVES))
		return;
	mc->stop_asked = true; /* by the signal that comes with the notice */
	queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 500),
						 .kind = AT_JOB_EXITS,
						 .index = slot,
						 .ev = {.attempt = mc->attempt},
						 .epoch = mc->epoch});
}

void preempt_ended(struct world *w, int slot, enum err_kind kind)
{
	const struct machine *mc = &w->machines[slot];

	if (slot >= w->plan.nresources || !sim_chance(w, SHOWN_AS_ENDED))
		return;
	w->accounts[slot].ended = mc->incarnation;
	w->accounts[slot].ended_kind = kind;
}

void preempt_shows_end(const struct world *w, const struct effect *fx, struct event *ev)
{
	const struct account *ac = &w->accounts[fx->index];

	if (!ac->ended || ac->ended != fx->incarnation)
		return;
	ev->ended = true;
	ev->err_kind = ac->ended_kind;
	snprintf(ev->text, sizeof(ev->text), "ended");
}

/* The cause names a machine whose create got no answer in time, whatever else became of its node. */
static bool launch_was_late(const struct core_run *d)
{
	int64_t end = d->phase_at_ms[RUN_COLLECTING] ? d->phase_at_ms[RUN_COLLECTING]
						     : d->phase_at_ms[RUN_CLEANING];

	return !d->phase_at_ms[RUN_GATHERING] &&
	       end >= d->phase_at_ms[RUN_PROVISIONING] + d->plan->job->timeouts.launch_ms;
}

void check_preempted(struct world *w)
{
	const struct core_run *d = w->disk;

	if (d->verdict != VERDICT_FAILED || d->cause.node < 0 || launch_was_late(d))
		return;
	if (d->nodes[d->cause.node].preempt_at_ms &&
	    (d->cause.kind == ERR_UNAVAILABLE || d->cause.kind == ERR_NONE) && !w->lost_output)
		sim_broken(w, "I19: %s was lost or failed after a notice, and the cause is: %s",
			   w->plan.crew.members[d->cause.node].name, d->cause.text);
	if (d->cause.kind == ERR_PREEMPTED && !w->f.preempt_notice && !w->f.taken)
		sim_broken(w, "I19: nothing was taken, and the cause is: %s", d->cause.text);
}

bool preempt_attempt_ends(const struct world *w, const struct event *ev)
{
	return ev->kind == EV_NODE_DRAINED && w->memory->nodes[ev->index].preempt_at_ms &&
	       w->memory->nodes[ev->index].state == NODE_EXITED;
}

void check_next_attempt(struct world *w, int rank)
{
	if (w->memory->nodes[rank].state == NODE_READY)
		sim_broken(w, "I19: %s starts again on a machine that will be taken",
			   w->plan.crew.members[rank].name);
}
