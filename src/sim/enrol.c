/* Machines that do not know which node they are, and groups that make such machines by themselves. */
#include "sim/enrol.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "sim/internal.h"

#define ANSWER_MS 10000 /* without an answer for so long it asks again */
#define SPARE_SLOTS 3	/* per group, beyond the nodes of its role */
#define HEALTH_MS 60000 /* a group gives up a machine whose agent never came */

static int role_of(const struct world *w, int rank)
{
	return w->plan.crew.members[rank].role;
}

/* Of a resource that makes machines. */
static int role_of_res(const struct world *w, int index)
{
	for (int i = 0; i < w->plan.crew.n; i++)
		if (w->plan.resource_of[i] == index)
			return role_of(w, i);
	return -1;
}

/* ---- the plan ---- */

void groups_make(struct world *w, bool all)
{
	const struct crew *crew = &w->plan.crew;
	struct plan_resource *v =
		arena_array(w->arena, struct plan_resource, (size_t)w->plan.nresources);
	int n = 0, group = -1;

	for (int i = 0; i < crew->n; i++) {
		bool first = crew->members[i].index == 0;

		if (first && (all || !rng_below(&w->rng, 2))) {
			v[n] = (struct plan_resource){.kind = "sim.group",
						      .name = crew->roles[role_of(w, i)].name,
						      .node = -1,
						      .carries_many = true};
			group = n++;
		} else if (first) {
			group = -1;
		}
		if (group < 0)
			v[n++] = w->plan.resources[i];
		w->plan.resource_of[i] = group < 0 ? n - 1 : group;
	}
	w->plan.resources = v;
	w->plan.nresources = n;
}

/* The nodes of some roles are on one resource each instead of one for each node. */
void draw_groups(struct world *w)
{
	if (!rng_below(&w->rng, 2))
		groups_make(w, false);
}

int group_slots(const struct world *w)
{
	int n = 0;

	for (int i = 0; i < w->plan.nresources; i++)
		if (w->plan.resources[i].carries_many)
			n += w->plan.crew.roles[role_of_res(w, i)].max + SPARE_SLOTS;
	return n;
}

/* ---- groups ---- */

void group_check(struct world *w, int index, int64_t usual_ms)
{
	if (w->machines[index].exists)
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, usual_ms),
							 .kind = AT_GROUP,
							 .index = index,
							 .epoch = w->machines[index].epoch});
}

/* The first slot of the group's machines. */
static int slots_at(const struct world *w, int index)
{
	int at = w->plan.nresources;

	for (int i = 0; i < index; i++)
		if (w->plan.resources[i].carries_many)
			at += w->plan.crew.roles[role_of_res(w, i)].max + SPARE_SLOTS;
	return at;
}

int group_slot(const struct world *w, int index, int member)
{
	return slots_at(w, index) + member;
}

static int slots_end(const struct world *w, int index)
{
	return slots_at(w, index) + w->plan.crew.roles[role_of_res(w, index)].max + SPARE_SLOTS;
}

static int wanted(const struct world *w, int index)
{
	int n = 0;

	for (int i = 0; i < w->plan.crew.n; i++)
		n += w->plan.resource_of[i] == index && !w->disk->nodes[i].asleep;
	return n;
}

/* As many as the role has nodes, and sometimes one more. */
void group_renew(struct world *w, int index)
{
	if (w->now < w->turn_at) {
		queue_add(&w->queue, &(struct happening){.at = w->turn_at,
							 .kind = AT_GROUP,
							 .index = index,
							 .epoch = w->machines[index].epoch});
		return;
	}
	int alive = 0, want = wanted(w, index) + sim_chance(w, w->f.surplus);

	for (int i = slots_at(w, index); i < slots_end(w, index); i++)
		alive += w->machines[i].exists;
	for (int i = slots_at(w, index); i < slots_end(w, index) && alive < want; i++) {
		if (w->machines[i].exists)
			continue;
		machine_new_member(w, i, index);
		queue_add(&w->queue, &(struct happening){.at = w->now + HEALTH_MS,
							 .kind = AT_UNHEALTHY,
							 .index = i,
							 .epoch = w->machines[i].epoch});
		alive++;
	}
}

void group_end(struct world *w, int index)
{
	w->machines[index].exists = false; /* it makes no others */
	for (int i = slots_at(w, index); i < slots_end(w, index); i++)
		if (w->machines[i].exists)
			machine_dies(w, i);
}

void groups_resized(struct world *w)
{
	for (int i = 0; i < w->plan.nresources; i++)
		if (w->plan.resources[i].carries_many)
			group_check(w, i, 1000);
}

static bool lives(const struct world *w, int index, const char *identity)
{
	for (int i = slots_at(w, index); i < slots_end(w, index); i++)
		if (w->machines[i].exists && !strcmp(w->machines[i].identity, identity))
			return true;
	return false;
}

/* An observation names the machines that the master knows of and that are gone, or not heard of. */
void group_tell_members(struct world *w, int index, uint64_t master)
{
	int64_t at = w->now + sim_delay(w, 10);

	for (int i = 0; i < w->plan.crew.n; i++) {
		const char *identity = w->disk->nodes[i].identity;
		struct happening h = {.at = at,
				      .kind = AT_ANSWER,
				      .epoch = master,
				      .ev = {.kind = EV_RES_MEMBER, .index = index}};

		if (w->plan.resource_of[i] != index || !identity[0])
			continue;
		if (lives(w, index, identity)) {
			if (!sim_chance(w, w->f.partition))
				continue;
			h.ev.err_kind = ERR_TIMEOUT;
		}
		snprintf(h.ev.text, sizeof(h.ev.text), "%s", identity);
		queue_add(&w->queue, &h);
	}
}

/* ---- enrolment ---- */

void machine_enrols(struct world *w, int slot)
{
	const struct machine *mc = &w->machines[slot];
	struct event ev = {.kind = EV_ENROL,
			   .index = role_of_res(w, mc->res),
			   .batch = mc->token,
			   .want = core_enrol_uses(w->memory, mc->res),
			   .place = mc->place,
			   .conn = mc->conn};

	snprintf(ev.text, sizeof(ev.text), "%s", mc->identity);
	if (!sim_chance(w, w->f.answer_lost / 2))
		node_say(w, slot, &ev);
	queue_add(&w->queue, &(struct happening){.at = w->now + ANSWER_MS,
						 .kind = AT_UNANSWERED,
						 .index = slot,
						 .epoch = mc->conn});
}

void enrolment_answer(struct world *w, const struct effect *fx)
{
	for (int i = 0; i < w->nslots; i++)
		if (w->machines[i].conn == fx->conn && !sim_chance(w, w->f.answer_lost))
			queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 5),
								 .kind = AT_ENROLLED,
								 .index = i,
								 .epoch = fx->conn,
								 .fx = *fx});
}

void machine_enrolled(struct world *w, int slot, const struct effect *fx)
{
	struct machine *mc = &w->machines[slot];

	mc->conn = 0;
	if (mc->rank >= 0)
		return; /* told twice */
	if (enrolled_kind(fx->enrolled) == ERR_UNAVAILABLE) {
		machine_dial(w, slot, 2000);
	} else if (enrolled_kind(fx->enrolled) != ERR_NONE) {
		machine_dies(w, slot); /* the agent leaves and switches it off */
	} else {
		check_binding(w, slot, fx);
		mc->rank = fx->index;
		mc->incarnation = fx->incarnation;
		/* Whoever is told again has lost the answer, or everything. */
		mc->other_boot |= fx->enrolled == ENROLLED_AGAIN;
		machine_dial(w, slot, 5);
	}
}
