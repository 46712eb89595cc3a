#include "sim/remote.h"

#include <stdio.h>

#include "base/arena.h"
#include "sim/internal.h"

#define BOOT_MS 20000
#define RUNS_MS 30000
#define SWEEP_MS 5000
#define KEEP_MS (2LL * 60 * 60 * 1000)

/* Its results stay on its machine: the plan is one of the engine whose masters do so. */
static void draw_keeping(struct world *w)
{
	struct job *job = arena_new_of(w->arena, struct job);

	*job = *w->plan.job;
	job->engine = plan_engine_that_keeps_results();
	job->master = "auto";
	w->plan.job = job;
	w->remote.keeps = true;
}

void draw_handover(struct world *w)
{
	struct plan_resource *v = arena_array(w->arena, struct plan_resource, 2);

	v[0] = (struct plan_resource){.kind = "sim.network", .name = "network", .node = -1};
	v[1] = (struct plan_resource){.kind = "sim.master",
				      .name = "master",
				      .node = -1,
				      .master = true,
				      .needs = arena_array(w->arena, int, 1),
				      .nneeds = 1};
	w->plan.resources = v;
	w->plan.nresources = 2;
	w->plan.crew.n = w->plan.crew.ncounted = 0;
	w->plan.hands_over = true;
	if (w->seed % 4 == 1 && plan_engine_that_keeps_results())
		draw_keeping(w);
	w->remote.index = 1;
	w->remote.plan = w->plan;
	w->remote.plan.resources = arena_array(w->arena, struct plan_resource, 2);
	for (int i = 0; i < 2; i++) {
		w->remote.plan.resources[i] = v[i];
		w->remote.plan.resources[i].id = v[i].name;
		w->remote.plan.resources[i].shared = w->remote.plan.resources[i].expires = true;
	}
}

void remote_boots(struct world *w, int index)
{
	if (index != w->remote.index)
		return;
	w->remote.up_at = w->now + sim_delay(w, BOOT_MS);
	if (sim_chance(w, w->f.never_boots))
		w->remote.up_at = INT64_MAX;
	w->remote.detached = false;
	machine_end_init(&w->remote.end, w->now);
	if (sim_chance(w, w->f.machine_dies))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, RUNS_MS),
							 .kind = AT_MACHINE_DIES,
							 .index = index,
							 .epoch = w->machines[index].epoch});
}

static void ends_at(struct world *w, int64_t at, enum verdict v)
{
	queue_add(&w->queue, &(struct happening){.at = at,
						 .kind = AT_REMOTE,
						 .index = w->remote.index,
						 .epoch = w->machines[w->remote.index].epoch,
						 .ev.verdict = v});
}

static void answer(struct world *w, const struct effect *fx, uint64_t master, struct event ev)
{
	int64_t usual_ms = fx->kind == FX_SWEEP ? SWEEP_MS : 30;
	struct happening h = {
		.at = w->now + sim_delay(w, usual_ms), .kind = AT_ANSWER, .epoch = master};

	ev.kind = EV_REMOTE;
	ev.attempt = fx->attempt;
	h.ev = ev;
	queue_add(&w->queue, &h);
	if (sim_chance(w, w->f.answer_twice)) {
		h.at += sim_delay(w, 200);
		queue_add(&w->queue, &h);
	}
}

static const struct event not_reached = {.outcome = OUTCOME_REFUSED, .err_kind = ERR_UNAVAILABLE},
			  no_answer = {.outcome = OUTCOME_UNSURE, .err_kind = ERR_TIMEOUT},
			  nobody_knows = {.outcome = OUTCOME_ABSENT},
			  copied = {.outcome = OUTCOME_HELD, .err_kind = ERR_UNAVAILABLE},
			  done = {.outcome = OUTCOME_DONE};

static bool is_up(const struct world *w)
{
	return w->machines[w->remote.index].exists && w->now >= w->remote.up_at;
}

static bool is_denied(const struct world *w)
{
	return w->now >= w->denied_from && w->now < w->denied_until;
}

static struct event offer(struct world *w)
{
	struct sim_remote *m = &w->remote;

	if (is_denied(w) && sim_chance(w, 500)) /* to look where the machine is */
		return (struct event){.outcome = OUTCOME_REFUSED, .err_kind = ERR_DENIED};
	if (!is_up(w) || sim_chance(w, w->f.conn_cut))
		return not_reached;
	if (sim_chance(w, w->f.answer_lost / 2))
		return no_answer;
	if (!m->has && sim_chance(w, w->f.refuse_hard))
		return (struct event){.outcome = OUTCOME_REFUSED, .err_kind = ERR_INVALID};
	if (!m->has)
		ends_at(w, w->now + (int64_t)rng_below(&w->rng, RUNS_MS),
			sim_chance(w, w->f.job_fails) ? VERDICT_FAILED : VERDICT_SUCCEEDED);
	if (!m->has)
		m->left = true;
	m->has = true;
	return sim_chance(w, w->f.answer_lost) ? no_answer : done;
}

static struct event state_of(const struct world *w)
{
	return (struct event){.outcome = OUTCOME_DONE,
			      .verdict = w->remote.ended ? w->remote.verdict : VERDICT_NONE};
}

/* Can they be had without the machine? */
static bool results_are_here(const struct sim_remote *m)
{
	return m->keeps ? m->fetched : m->stored;
}

static struct event follow(struct world *w, const struct effect *fx)
{
	const struct sim_remote *m = &w->remote;

	if (sim_chance(w, w->f.answer_lost))
		return no_answer;
	if (fx->gone)
		return results_are_here(m) ? state_of(w) : nobody_knows;
	if (!is_up(w) || sim_chance(w, w->f.conn_cut))
		return not_reached;
	if (!m->has)
		return nobody_knows;
	if (fx->cancel && !m->ended)
		ends_at(w, w->now + sim_delay(w, fx->hurry ? 100 : 2000), VERDICT_CANCELLED);
	return state_of(w);
}

static struct event await(struct world *w, const struct effect *fx)
{
	if (sim_chance(w, w->f.answer_lost))
		return no_answer;
	if (results_are_here(&w->remote))
		return done;
	if (w->remote.keeps && w->remote.stored && !fx->gone && is_up(w)) {
		/* A fetch may be cut off again and again, for longer than anything else takes. */
		w->remote.fetched = !sim_chance(w, 500 + w->f.conn_cut / 2);
		return w->remote.fetched ? done : nobody_knows;
	}
	return fx->gone || !is_up(w) || sim_chance(w, w->f.conn_cut) ? nobody_knows : copied;
}

static struct event sweep(struct world *w)
{
	if (w->machines[w->remote.index].exists)
		sim_broken(w, "I25: what a master makes is removed while the master is there");
	if (is_denied(w) || sim_chance(w, w->f.destroy_unsure) || sim_chance(w, w->f.destroy_held))
		return no_answer;
	w->remote.left = false;
	return done;
}

void remote_effect(struct world *w, const struct effect *fx, uint64_t master)
{
	if (fx->kind == FX_HAND_OVER)
		answer(w, fx, master, offer(w));
	else if (fx->kind == FX_FOLLOW)
		answer(w, fx, master, follow(w, fx));
	else if (fx->kind == FX_SWEEP)
		answer(w, fx, master, sweep(w));
	else
		answer(w, fx, master, await(w, fx));
}

/* I24: what the machine of the other master needs goes when the machine has let go of it, and the machine when
 * everything else is done, or was tried for long enough. */
static enum outcome destroy_there(struct world *w, int index)
{
	const struct sim_remote *m = &w->remote;
	bool late = w->now > m->end.idle_ms + (m->keeps ? KEEP_MS : 0) + MACHINE_END_GIVE_UP_MS;

	if (index != m->index && !m->detached)
		sim_broken(w, "I24: %s is deleted while the machine is in it",
			   w->plan.resources[index].name);
	if (index == m->index && w->machines[1 - index].exists && !late)
		sim_broken(w, "I24: the machine has ended before %s",
			   w->plan.resources[1 - index].name);
	if (w->machines[index].exists)
		machine_dies(w, index);
	return OUTCOME_DONE;
}

static void end_step(struct world *w)
{
	struct sim_remote *m = &w->remote;
	const struct machine_end_facts f = {.plan = &m->plan,
					    .busy = !m->ended || !m->stored,
					    .keep_ms = m->keeps ? KEEP_MS : 0};
	const struct err why = {ERR_UNAVAILABLE, 0, "no answer"};
	enum outcome outcome = OUTCOME_HELD;
	int index = -1;

	enum machine_end_step step = machine_end_next(&m->end, &f, w->now, &index);

	if (step != MACHINE_END_WAIT && f.busy)
		sim_broken(w, "I24: the machine ends before its run");
	if (step != MACHINE_END_WAIT && m->keeps && w->now < m->end.idle_ms + KEEP_MS)
		sim_broken(w, "I24: the machine ends before the time of its results");
	switch (step) {
	case MACHINE_END_WAIT:
		return;
	case MACHINE_END_DETACH:
		if (sim_chance(w, w->f.destroy_unsure))
			break;
		m->detached = true;
		outcome = OUTCOME_DONE;
		break;
	case MACHINE_END_DESTROY:
		if (!sim_chance(w, w->f.destroy_held))
			outcome = destroy_there(w, index);
		break;
	case MACHINE_END_LEAVE:
		sim_broken(w, "I24: the master leaves although it has a run");
		return;
	}
	machine_end_answered(&m->end, outcome, &why, w->now);
}

/* The run ends there, then its results are stored, then the machine ends itself. */
void remote_happens(struct world *w, const struct happening *h)
{
	struct sim_remote *m = &w->remote;

	if (!w->machines[m->index].exists || h->epoch != w->machines[m->index].epoch)
		return;
	if (h->ev.verdict != VERDICT_NONE && m->ended)
		return;
	if (!m->ended) {
		m->ended = true;
		m->left = false;
		m->verdict = h->ev.verdict;
	} else if (!m->stored) {
		m->stored = true;
	}
	end_step(w);
	if (w->machines[m->index].exists)
		ends_at(w, w->now + sim_delay(w, 2000), VERDICT_NONE);
}

void check_remote_deleted(struct world *w, int index)
{
	if (index == w->remote.index && w->machines[index].exists && w->remote.has &&
	    !w->remote.ended)
		sim_broken(w, "I21: %s is deleted while it has the run",
			   w->plan.resources[index].name);
	if (index == w->remote.index && w->machines[index].exists && w->remote.keeps &&
	    w->remote.ended && !w->remote.fetched && !w->disk->hurry)
		sim_broken(w, "I22: %s is deleted with the only copy of the results",
			   w->plan.resources[index].name);
}

void check_remote_end(struct world *w)
{
	const struct sim_remote *m = &w->remote;
	bool success = w->disk->verdict == VERDICT_SUCCEEDED;

	if (!w->plan.hands_over)
		return;
	if (m->left)
		sim_broken(w, "I25: what the other master has made is left");
	if (success && (!m->ended || m->verdict != VERDICT_SUCCEEDED || !results_are_here(m)))
		sim_broken(w, "I22: success, but the other master says %s%s",
			   m->ended ? verdict_name(m->verdict) : "nothing",
			   results_are_here(m) ? "" : ", and nothing is stored");
	if (results_are_here(m) && m->verdict == VERDICT_CANCELLED &&
	    w->disk->verdict != VERDICT_CANCELLED)
		sim_broken(w, "I22: cancelled by the other master, but %s here",
			   verdict_name(w->disk->verdict));
}
