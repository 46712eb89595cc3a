/* The provider: how it handles calls about resources. */
#include "sim/internal.h"

#include <stdio.h>

#include "sim/agentless.h"
#include "sim/enrol.h"
#include "sim/lifetime.h"
#include "sim/preempt.h"

#define DECOY_ONE_IN 30
#define LAG_MS 15000	     /* less than the settle_ms of a kind */
#define THROTTLE_CALLS 2     /* calls allowed at once while it throttles, */
#define THROTTLE_EACH_MS 300 /* and one more after each such time */

/* An effect that has reached the cloud, and the master that waits for the answer. */
struct cloud_call {
	struct effect fx;
	uint64_t master;
	bool right_account;
};

static void answer(struct world *w, const struct cloud_call *c, enum outcome outcome,
		   enum err_kind err, const char *text)
{
	const struct effect *fx = &c->fx;
	struct happening h = {.at = w->now + sim_delay(w, 30),
			      .kind = AT_ANSWER,
			      .epoch = c->master,
			      .ev = {.kind = EV_RES_ANSWER,
				     .index = fx->index,
				     .attempt = fx->attempt,
				     .asked = fx->asked,
				     .outcome = outcome,
				     .identity_checked = c->right_account,
				     .queued = outcome == OUTCOME_HELD && w->now < w->turn_at &&
					       fx->kind == FX_OBSERVE,
				     .err_kind = err}};

	snprintf(h.ev.text, sizeof(h.ev.text), "%s", text);
	if (outcome == OUTCOME_ABSENT && c->right_account)
		preempt_shows_end(w, fx, &h.ev);
	queue_add(&w->queue, &h);
	if (sim_chance(w, w->f.answer_twice)) {
		h.at += sim_delay(w, 200);
		queue_add(&w->queue, &h);
	}
}

/* True if the machine exists and is the one that is asked about: it is marked with the
 * incarnation of its node. */
static bool is_there(const struct world *w, const struct effect *fx)
{
	const struct machine *mc = &w->machines[fx->index];

	return mc->exists && mc->incarnation == fx->incarnation;
}

/*
 * True if the cloud finds the resource now.  Never in the wrong account.  A kind with settle_ms
 * is not found at first; later a stale replica may answer for less than the gap between two
 * observations that count, and then not again for the whole time over which they are spread.
 */
static bool visible(struct world *w, const struct cloud_call *c)
{
	const struct plan_resource *pr = &w->plan.resources[c->fx.index];
	struct account *ac = &w->accounts[c->fx.index];

	if (!c->right_account || w->now < w->machines[c->fx.index].visible_at)
		return false;
	if (pr->absent_looks > 1 && w->now >= ac->fresh_until && sim_chance(w, w->f.stale_answer)) {
		ac->stale_until = w->now + pr->settle_ms / pr->absent_looks - 1;
		ac->fresh_until = ac->stale_until + 2 * pr->settle_ms;
	}
	return w->now >= ac->stale_until;
}

/*
 * A decoy: in some histories, chosen by the seed, somebody else's resource has the name of one of
 * ours.  It can be looked at; ours cannot be created beside it.
 */
static bool is_decoy(const struct world *w, int index)
{
	return w->seed % DECOY_ONE_IN == 1 && !w->plan.resources[index].shared &&
	       (uint64_t)index == w->seed / DECOY_ONE_IN % (uint64_t)w->plan.nresources;
}

/* I9: what is not ours is not touched. */
static void check_ours(struct world *w, const struct effect *fx)
{
	if (is_decoy(w, fx->index) && (fx->kind == FX_DESTROY || fx->kind == FX_EXTEND))
		sim_broken(w, "I9: %s of %s, which is somebody else's", effect_kind_name(fx->kind),
			   w->plan.resources[fx->index].name);
}

static bool has_room(const struct world *w, int index, int choice)
{
	int n = w->plan.resources[index].nchoices, used = 0;

	if (n == 0 || w->now >= w->heal_at || w->rooms[choice % n] < 0)
		return true;
	for (int i = 0; i < w->plan.nresources; i++)
		used += w->machines[i].exists && w->plan.resources[i].nchoices &&
			w->machines[i].choice % n == choice % n;
	return used < w->rooms[choice % n];
}

/* Refuses the call, by chance or for lack of room; false: it does not. */
static bool refuses(struct world *w, const struct cloud_call *c)
{
	if (is_decoy(w, c->fx.index))
		answer(w, c, OUTCOME_REFUSED, ERR_CONFLICT, "somebody else's has this name");
	else if (sim_chance(w, w->f.refuse_capacity) || !has_room(w, c->fx.index, c->fx.choice))
		answer(w, c, OUTCOME_REFUSED, ERR_CAPACITY, "no capacity");
	else if (sim_chance(w, w->f.refuse_hard))
		answer(w, c, OUTCOME_REFUSED, rng_below(&w->rng, 2) ? ERR_DENIED : ERR_QUOTA,
		       "not allowed");
	else if (sim_chance(w, w->f.answer_lost / 2)) /* the call never reached the cloud */
		answer(w, c, OUTCOME_UNSURE, ERR_TIMEOUT, "no answer");
	else
		return false;
	return true;
}

static void make(struct world *w, const struct cloud_call *c)
{
	int index = c->fx.index;
	int64_t settle_ms = w->plan.resources[index].settle_ms;

	check_gang(w, index, c->fx.choice);
	machine_new(w, &c->fx);
	w->accounts[index].made = c->fx.batch;
	w->accounts[index].ended = 0;
	lifetime_begins(w, index, c->fx.lifetime_ms);
	if (!settle_ms)
		return;
	w->machines[index].visible_at = w->now + (int64_t)rng_below(&w->rng, LAG_MS);
	w->accounts[index].fresh_until = w->machines[index].visible_at + 2 * settle_ms;
}

/* Idempotent by its token: the same batch gives the same machine. */
static void create(struct world *w, const struct cloud_call *c)
{
	int index = c->fx.index, token = c->fx.batch;
	struct machine *mc = &w->machines[index];
	bool other = mc->token != token && !w->plan.resources[index].shared;

	check_create(w, index, token);
	if (!mc->exists || other) {
		if (w->tokens_last && w->accounts[index].made == token) {
			answer(w, c, OUTCOME_ABSENT, ERR_NONE, "what it made is gone");
			return;
		}
		if (refuses(w, c))
			return;
		make(w, c);
	} else if (!mc->agent_up && w->plan.resources[index].node >= 0) {
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 50),
							 .kind = AT_AGENT_UP,
							 .index = index,
							 .epoch = mc->epoch});
	}
	if (sim_chance(w, w->f.answer_lost))
		answer(w, c, OUTCOME_UNSURE, ERR_TIMEOUT, "no answer");
	else
		answer(w, c, OUTCOME_DONE, ERR_NONE, mc->identity);
}

/* The machine goes on by itself until its own deadline, and dials again later. */
static void give_up(struct world *w, int index)
{
	const struct machine *mc = &w->machines[index];
	int rank = w->plan.resources[index].node;
	struct ghost *g = &w->ghosts[rank];

	g->conn = ++w->epochs;
	g->run_until = mc->running ? mc->silent_since + w->job->timeouts.lost_ms +
					     w->job->timeouts.grace_ms
				   : 0;
	queue_add(&w->queue, &(struct happening){
				     .at = mc->cut_off_until + sim_delay(w, 2000),
				     .kind = AT_GHOST,
				     .index = rank,
				     .epoch = g->conn,
				     .ev = {.kind = EV_NODE_HELLO,
					    .index = rank,
					    .conn = g->conn,
					    .incarnation = mc->incarnation,
					    .attempt = mc->attempt,
					    .holds = mc->started ? HOLDS_STARTED : HOLDS_NOTHING}});
}

static void destroy(struct world *w, const struct cloud_call *c)
{
	int index = c->fx.index;
	struct machine *mc = &w->machines[index];

	if (w->plan.resources[index].shared) {
		sim_broken(w, "I9: %s belongs to the install and is deleted",
			   w->plan.resources[index].name);
		return;
	}
	/* A replica that does not know the machine answers "absent" and deletes nothing. */
	if (mc->exists && (!is_there(w, &c->fx) || !visible(w, c))) {
		answer(w, c, OUTCOME_ABSENT, ERR_NONE, "");
		return;
	}
	if (mc->exists && sim_chance(w, w->f.destroy_held)) {
		answer(w, c, OUTCOME_HELD, ERR_CONFLICT, "still in use");
		return;
	}
	for (int k = 0; k < w->plan.nresources; k++)
		for (int n = 0; n < w->plan.resources[k].nneeds; n++)
			if (w->plan.resources[k].needs[n] == index && w->machines[k].exists) {
				sim_broken(w, "graph: %s is deleted while %s needs it",
					   w->plan.resources[index].name,
					   w->plan.resources[k].name);
				return;
			}
	check_remote_deleted(w, index);
	machine_cut(w, index, true);
	if (w->hosts && mc->agent_up && w->now < mc->cut_off_until && w->disk->phase < RUN_CLEANING)
		give_up(w, index);
	if (w->plan.resources[index].carries_many)
		group_end(w, index);
	*mc = (struct machine){
		.epoch = ++w->epochs, .heard = mc->heard, .rank = mc->rank, .res = index};
	if (sim_chance(w, w->f.destroy_unsure))
		answer(w, c, OUTCOME_UNSURE, ERR_TIMEOUT, "no answer");
	else
		answer(w, c, OUTCOME_DONE, ERR_NONE, "");
}

/* A bucket of calls that refills slowly. */
static bool throttles(struct world *w)
{
	if (w->now < w->throttled_from || w->now >= w->throttled_until)
		return false;
	if (w->throttle_free_ms < w->now)
		w->throttle_free_ms = w->now;
	if (w->throttle_free_ms > w->now + THROTTLE_CALLS * THROTTLE_EACH_MS)
		return true;
	w->throttle_free_ms += THROTTLE_EACH_MS;
	return false;
}

void cloud_effect(struct world *w, const struct effect *fx, uint64_t master)
{
	const struct machine *mc = &w->machines[fx->index];
	struct cloud_call c = {*fx, master,
			       fx->kind == FX_CREATE || !sim_chance(w, w->f.wrong_account)};
	bool needs_agent = w->plan.resources[fx->index].node >= 0;

	check_rate(w, fx->index);
	check_ours(w, fx);
	if (w->now >= w->denied_from && w->now < w->denied_until) {
		answer(w, &c, OUTCOME_REFUSED, ERR_DENIED, "the credentials have expired");
		return;
	}

	if (throttles(w)) {
		answer(w, &c, OUTCOME_REFUSED, ERR_THROTTLED, "too many calls");
		return;
	}

	switch (fx->kind) {
	case FX_CREATE:
		create(w, &c);
		return;
	case FX_FIND:
	case FX_OBSERVE:
		if (sim_chance(w, w->f.answer_lost))
			answer(w, &c, OUTCOME_UNSURE, ERR_TIMEOUT, "no answer");
		else if (!is_there(w, fx) || !visible(w, &c))
			answer(w, &c, OUTCOME_ABSENT, ERR_NONE, "");
		else if (fx->kind == FX_OBSERVE && w->plan.resources[fx->index].carries_many) {
			group_tell_members(w, fx->index, master);
			agentless_tell_seen(w, fx->index, master);
			if (w->now < w->turn_at)
				answer(w, &c, OUTCOME_HELD, ERR_CAPACITY, "no room yet");
			else
				answer(w, &c, OUTCOME_DONE, ERR_NONE, "");
		} else if (fx->overdue)
			answer(w, &c, OUTCOME_HELD, ERR_TIMEOUT, "its console");
		else if (fx->kind == FX_FIND)
			answer(w, &c, OUTCOME_DONE, ERR_NONE, mc->identity);
		else
			answer(w, &c, needs_agent && !mc->agent_up ? OUTCOME_BROKEN : OUTCOME_DONE,
			       ERR_NONE, "");
		return;
	case FX_EXTEND:
		if (is_there(w, fx) && visible(w, &c)) {
			lifetime_tagged(w, fx);
			answer(w, &c, OUTCOME_DONE, ERR_NONE, "");
		} else {
			answer(w, &c, OUTCOME_ABSENT, ERR_NOT_FOUND, "not there");
		}
		return;
	case FX_DESTROY:
		destroy(w, &c);
		return;
	case FX_PREPARE:
	case FX_START:
	case FX_STOP:
	case FX_RELEASE:
	case FX_INSPECT:
	case FX_STALLED:
	case FX_PREFLIGHT:
	case FX_PREFLIGHT_PASSED:
	case FX_ENROLLED:
	case FX_CANCEL_CARRIED:
	case FX_HAND_OVER:
	case FX_FOLLOW:
	case FX_AWAIT_RESULTS:
	case FX_SWEEP:
	case FX_ENDED:
		return; /* not for the cloud */
	}
}
