#include "core/machine_end.h"

#include <stdio.h>

#include "plan/plan.h"

void machine_end_init(struct machine_end *e, int64_t now_ms)
{
	*e = (struct machine_end){.started_ms = now_ms, .done = -1};
}

int machine_end_machine(const struct plan *plan)
{
	for (int i = 0; i < plan->nresources; i++)
		if (plan->resources[i].master)
			return i;
	return -1;
}

/* True if the resource was made for the machine by whoever made the machine. */
static bool is_of_machine(const struct plan_resource *pr)
{
	return pr->id && pr->expires && !pr->master;
}

/* The next of them, in the reverse order of the plan; the machine is the last. */
static int next_of(const struct machine_end *e, const struct plan *plan)
{
	int i = e->done < 0 ? plan->nresources : e->done;

	while (--i >= 0)
		if (is_of_machine(&plan->resources[i]))
			return i;
	return machine_end_machine(plan);
}

enum machine_end_step machine_end_next(struct machine_end *e, const struct machine_end_facts *f,
				       int64_t now_ms, int *ret_index)
{
	if (f->busy) {
		e->idle_ms = 0;
		return MACHINE_END_WAIT;
	}
	if (!e->idle_ms)
		e->idle_ms = now_ms;
	if (e->asked || now_ms < e->next_ms)
		return MACHINE_END_WAIT;
	if (!f->plan)
		return now_ms > e->started_ms + MACHINE_END_UNUSED_MS ? MACHINE_END_LEAVE
								      : MACHINE_END_WAIT;
	int64_t stays_ms = f->lost ? MACHINE_END_TELL_MS : MACHINE_END_FIRST_MS;
	int64_t keep_ms = f->copied && !f->lost ? 0 : f->keep_ms;

	if (stays_ms < keep_ms)
		stays_ms = keep_ms;
	if (now_ms < e->idle_ms + stays_ms)
		return MACHINE_END_WAIT;
	bool late = now_ms > e->idle_ms + keep_ms + MACHINE_END_GIVE_UP_MS;

	e->asked = true;
	if (!e->detached && !late) {
		e->index = -1;
		return MACHINE_END_DETACH;
	}
	*ret_index = e->index = late ? machine_end_machine(f->plan) : next_of(e, f->plan);
	return MACHINE_END_DESTROY;
}

void machine_end_answered(struct machine_end *e, enum outcome outcome, const struct err *err,
			  int64_t now_ms)
{
	if (!e->asked)
		return;
	e->asked = false;
	if (outcome != OUTCOME_DONE && outcome != OUTCOME_ABSENT) {
		e->next_ms = now_ms + MACHINE_END_AGAIN_MS;
		snprintf(e->why, sizeof(e->why), "%.159s", err->msg);
		return;
	}
	e->why[0] = '\0';
	if (e->index < 0)
		e->detached = true;
	else
		e->done = e->index;
}
