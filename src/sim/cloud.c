/* The faulty world: machines that are made, boot, run jobs, die and are deleted. */
#include "sim/internal.h"

#include <stdio.h>
#include <string.h>

#define LONG_COPY_MS (10 * 60 * 1000) /* more than timeouts.collect */
#define LAG_MS 15000		      /* less than a kind's settle_ms */
#define CLAIM_LOST 500		      /* per mille of the claims on a machine that reboots */

static int resource_of(const struct world *w, int rank)
{
	return w->plan.resource_of[rank];
}

/* An effect as it reaches the cloud, and who waits for the answer. */
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
				     .err_kind = err}};

	snprintf(h.ev.text, sizeof(h.ev.text), "%s", text);
	queue_add(&w->queue, &h);
	if (sim_chance(w, w->f.answer_twice)) {
		h.at += sim_delay(w, 200);
		queue_add(&w->queue, &h);
	}
}

/*
 * Does the cloud know of it now?  In the wrong account never.  A kind that settles is not known
 * at first; later a replica that has not heard of it may answer for less than the gap between two
 * looks that count, and then not again for the whole time over which they are spread.
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

static void machine_new(struct world *w, int index, int token)
{
	struct machine *mc = &w->machines[index];

	int node = w->plan.resources[index].node;

	*mc = (struct machine){.exists = true,
			       .token = token,
			       .epoch = ++w->epochs,
			       .incarnation = node < 0 ? 0 : w->disk->nodes[node].incarnation};
	if (w->plan.resources[index].settle_ms) {
		mc->visible_at = w->now + (int64_t)rng_below(&w->rng, LAG_MS);
		w->accounts[index].fresh_until =
			mc->visible_at + 2 * w->plan.resources[index].settle_ms;
	}
	if (w->plan.resources[index].node < 0)
		return;
	if (!sim_chance(w, w->f.never_boots))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 400),
							 .kind = AT_AGENT_UP,
							 .index = index,
							 .epoch = mc->epoch});
	if (sim_chance(w, w->f.machine_dies))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 20000),
							 .kind = AT_MACHINE_DIES,
							 .index = index,
							 .epoch = mc->epoch});
	if (sim_chance(w, w->f.reboots))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 8000),
							 .kind = AT_REBOOT,
							 .index = index,
							 .epoch = mc->epoch});
}

/* Idempotent by its token: the same batch gives the same machine. */
static void create(struct world *w, const struct cloud_call *c)
{
	int index = c->fx.index, token = c->fx.batch;
	struct machine *mc = &w->machines[index];
	char id[32];

	check_create(w, index, token);
	if (!mc->exists || mc->token != token) {
		if (sim_chance(w, w->f.refuse_capacity)) {
			answer(w, c, OUTCOME_REFUSED, ERR_CAPACITY, "no capacity");
			return;
		}
		if (sim_chance(w, w->f.refuse_hard)) {
			answer(w, c, OUTCOME_REFUSED, ERR_DENIED, "not allowed");
			return;
		}
		if (sim_chance(w, w->f.answer_lost / 2)) { /* never reached the cloud */
			answer(w, c, OUTCOME_UNSURE, ERR_TIMEOUT, "no answer");
			return;
		}
		machine_new(w, index, token);
	} else if (!mc->agent_up && w->plan.resources[index].node >= 0) {
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 50),
							 .kind = AT_AGENT_UP,
							 .index = index,
							 .epoch = mc->epoch});
	}
	snprintf(id, sizeof(id), "i-%d-%llu", index, (unsigned long long)mc->epoch);
	if (sim_chance(w, w->f.answer_lost))
		answer(w, c, OUTCOME_UNSURE, ERR_TIMEOUT, "no answer");
	else
		answer(w, c, OUTCOME_DONE, ERR_NONE, id);
}

static void destroy(struct world *w, const struct cloud_call *c)
{
	int index = c->fx.index;
	struct machine *mc = &w->machines[index];

	/* A replica that does not know the machine answers "absent" and deletes nothing. */
	if (mc->exists && !visible(w, c)) {
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
	*mc = (struct machine){.epoch = ++w->epochs, .heard = mc->heard};
	if (sim_chance(w, w->f.destroy_unsure))
		answer(w, c, OUTCOME_UNSURE, ERR_TIMEOUT, "no answer");
	else
		answer(w, c, OUTCOME_DONE, ERR_NONE, "");
}

void cloud_effect(struct world *w, const struct effect *fx, uint64_t master)
{
	const struct machine *mc = &w->machines[fx->index];
	struct cloud_call c = {*fx, master,
			       fx->kind == FX_CREATE || !sim_chance(w, w->f.wrong_account)};
	bool needs_agent = w->plan.resources[fx->index].node >= 0;

	check_rate(w, fx->index);
	if (w->now >= w->denied_from && w->now < w->denied_until) {
		answer(w, &c, OUTCOME_REFUSED, ERR_DENIED, "the credentials have expired");
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
		else if (!mc->exists || !visible(w, &c))
			answer(w, &c, OUTCOME_ABSENT, ERR_NONE, "");
		else if (fx->kind == FX_FIND)
			answer(w, &c, OUTCOME_DONE, ERR_NONE, "found");
		else
			answer(w, &c, needs_agent && !mc->agent_up ? OUTCOME_BROKEN : OUTCOME_DONE,
			       ERR_NONE, "");
		return;
	case FX_DESTROY:
		destroy(w, &c);
		return;
	case FX_PREPARE:
	case FX_START:
	case FX_STOP:
	case FX_RELEASE:
	case FX_ENDED:
		return; /* not for the cloud */
	}
}

void node_say(struct world *w, int rank, const struct event *ev)
{
	struct machine *mc = &w->machines[resource_of(w, rank)];

	if (!mc->conn)
		return;
	int64_t at = w->now + sim_delay(w, 5);
	if (at < mc->last_word_at)
		at = mc->last_word_at;
	mc->last_word_at = at;
	struct happening h = {
		.at = at, .kind = AT_WORD, .index = rank, .epoch = mc->conn, .ev = *ev};
	h.ev.index = rank;
	queue_add(&w->queue, &h);
	if (sim_chance(w, w->f.answer_twice))
		queue_add(&w->queue, &h);
}

void node_tell(struct world *w, const struct effect *fx)
{
	struct machine *mc = &w->machines[resource_of(w, fx->index)];

	if (!mc->conn)
		return;
	int64_t at = w->now + sim_delay(w, 5);
	if (at < mc->last_told_at)
		at = mc->last_told_at;
	mc->last_told_at = at;
	queue_add(&w->queue, &(struct happening){.at = at,
						 .kind = AT_TOLD,
						 .index = fx->index,
						 .epoch = mc->conn,
						 .fx = *fx});
}

static void dial_later(struct world *w, int index, int64_t usual)
{
	struct machine *mc = &w->machines[index];

	queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, usual),
						 .kind = AT_DIAL,
						 .index = index,
						 .epoch = mc->agent});
}

static void cut(struct world *w, int index, bool master_sees)
{
	struct machine *mc = &w->machines[index];

	if (!mc->conn)
		return;
	if (master_sees)
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 10),
							 .kind = AT_DROPPED,
							 .index = index,
							 .epoch = mc->conn});
	else
		mc->heard = 0;
	mc->conn = 0;
	mc->alone_since = w->now;
	if (mc->agent_up)
		dial_later(w, index, 200);
}

void connections_drop(struct world *w)
{
	for (int i = 0; i < w->plan.nresources; i++)
		cut(w, i, false);
}

/* A restarted agent copies the kept files again from the beginning. */
static void copy_files(struct world *w, int rank)
{
	struct machine *mc = &w->machines[resource_of(w, rank)];

	queue_add(&w->queue, &(struct happening){.at = w->now + (sim_chance(w, w->f.long_copy)
									 ? LONG_COPY_MS
									 : sim_delay(w, 50)),
						 .kind = AT_COPIED,
						 .index = rank,
						 .epoch = mc->conn});
}

static void say_drained(struct world *w, int rank)
{
	struct event ev = {.kind = EV_NODE_DRAINED};

	if (sim_chance(w, w->f.lose_files)) {
		ev.err_kind = ERR_CAPACITY;
		snprintf(ev.text, sizeof(ev.text), "keep 'm': No space left");
	}
	node_say(w, rank, &ev);
}

/* The master finds it out, when bytes come: the job has removed the directory of its logs. */
static void lose_log(struct world *w, int rank)
{
	if (sim_chance(w, w->f.lose_log))
		node_say(w, rank,
			 &(struct event){.kind = EV_NODE_NO_LOG, .text = "its log is gone"});
}

static void copied(struct world *w, int rank)
{
	struct machine *mc = &w->machines[resource_of(w, rank)];

	if (mc->ended && !mc->copied)
		say_drained(w, rank);
	mc->copied = mc->ended;
}

static void job_end(struct world *w, int rank, struct exit_info e)
{
	struct machine *mc = &w->machines[resource_of(w, rank)];

	if (!mc->running)
		return;
	mc->running = false;
	mc->ended = true;
	mc->exit = e;
	if (!mc->agent_up)
		return;
	node_say(w, rank,
		 &(struct event){.kind = EV_NODE_EXITED, .attempt = mc->attempt, .exit = e});
	lose_log(w, rank);
	copy_files(w, rank);
}

/* As the shim does it: the marker decides, and it survives the agent but not the machine. */
static void job_start(struct world *w, int rank, int attempt)
{
	struct machine *mc = &w->machines[resource_of(w, rank)];
	const struct strategy_role *role = &w->plan.crew.roles[w->plan.crew.members[rank].role];

	if (!mc->started || mc->attempt != attempt) {
		if (!mc->prepared)
			sim_broken(w, "gang: %s was started before it was ready",
				   w->plan.crew.members[rank].name);
		mc->started = mc->running = true;
		mc->other_boot = false;
		mc->attempt = attempt;
		mc->ended = mc->serving = false;
		if (attempt < SIM_MAX_EXECS && ++w->execs[rank][attempt] > 1)
			sim_broken(w, "I6: %s executed attempt %d twice",
				   w->plan.crew.members[rank].name, attempt);
		if (role->port)
			queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 300),
								 .kind = AT_JOB_SERVES,
								 .index = rank,
								 .epoch = mc->epoch});
		bool hangs = role->counted && sim_chance(w, w->f.job_hangs);

		w->hung |= hangs;
		if (role->counted && !hangs)
			queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 10000),
								 .kind = AT_JOB_EXITS,
								 .index = rank,
								 .epoch = mc->epoch});
	}
	node_say(w, rank, &(struct event){.kind = EV_NODE_STARTED, .attempt = attempt});
}

static void told(struct world *w, int rank, const struct effect *fx)
{
	struct machine *mc = &w->machines[resource_of(w, rank)];

	switch (fx->kind) {
	case FX_PREPARE:
		if (mc->started)
			return;
		mc->prepared = false;
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 100),
							 .kind = AT_PREPARED,
							 .index = rank,
							 .epoch = mc->conn});
		return;
	case FX_START:
		job_start(w, rank, fx->attempt);
		return;
	case FX_STOP:
		if (!mc->running) {
			copied(w, rank); /* stops copying */
			return;
		}
		mc->stop_asked = true;
		queue_add(&w->queue,
			  &(struct happening){.at = w->now + sim_delay(w, fx->hurry ? 10 : 2000),
					      .kind = AT_JOB_EXITS,
					      .index = rank,
					      .epoch = mc->epoch});
		return;
	case FX_RELEASE:
		mc->running = mc->agent_up = false; /* kills what may be left, and leaves */
		mc->agent++;
		mc->conn = 0;
		return;
	case FX_CREATE:
	case FX_FIND:
	case FX_OBSERVE:
	case FX_DESTROY:
	case FX_ENDED:
		return; /* not for an agent */
	}
}

static void prepared(struct world *w, int rank)
{
	if (sim_chance(w, w->f.unfit)) {
		node_say(w, rank,
			 &(struct event){.kind = EV_NODE_UNFIT,
					 .err_kind = ERR_NOT_FOUND,
					 .text = "command not found"});
		return;
	}
	w->machines[resource_of(w, rank)].prepared = true;
	node_say(w, rank, &(struct event){.kind = EV_NODE_READY});
}

static void dial(struct world *w, int index)
{
	struct machine *mc = &w->machines[index];
	int rank = w->plan.resources[index].node;

	if (mc->conn || !mc->agent_up)
		return;
	if (!w->master_up || run_phase_is_final(w->memory->phase)) {
		if (mc->alone_since && w->now - mc->alone_since > w->job->timeouts.lease_ms &&
		    mc->running)
			job_end(w, rank,
				(struct exit_info){.code = -1, .signal = 9, .kind = ERR_TIMEOUT});
		dial_later(w, index, 2000);
		return;
	}
	mc->conn = ++w->epochs;
	mc->alone_since = 0;
	mc->last_word_at = mc->last_told_at = w->now;
	node_say(w, rank,
		 &(struct event){.kind = EV_NODE_HELLO,
				 .incarnation = mc->incarnation,
				 .conn = mc->conn,
				 .attempt = mc->started ? mc->attempt : 0,
				 .holds = mc->other_boot ? HOLDS_OTHER_BOOT
					  : mc->started	 ? HOLDS_STARTED
							 : HOLDS_NOTHING});
	if (mc->serving)
		node_say(w, rank, &(struct event){.kind = EV_NODE_SERVING, .attempt = mc->attempt});
	lose_log(w, rank);
	if (mc->ended) {
		node_say(w, rank,
			 &(struct event){
				 .kind = EV_NODE_EXITED, .attempt = mc->attempt, .exit = mc->exit});
		mc->copied = false;
		copy_files(w, rank);
	}
	if (sim_chance(w, w->f.conn_cut))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 3000),
							 .kind = AT_CONN_CUT,
							 .index = index,
							 .epoch = mc->conn});
}

static void agent_up(struct world *w, int index)
{
	struct machine *mc = &w->machines[index];

	if (mc->agent_up)
		return;
	mc->agent_up = true;
	mc->agent = ++w->epochs;
	mc->alone_since = w->now;
	dial_later(w, index, 5);
	if (sim_chance(w, w->f.agent_dies))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 8000),
							 .kind = AT_AGENT_DIES,
							 .index = index,
							 .epoch = mc->agent});
}

static void machine_dies(struct world *w, int index)
{
	w->res->faults++;
	cut(w, index, true);
	w->machines[index] =
		(struct machine){.epoch = ++w->epochs, .heard = w->machines[index].heard};
}

/* The job is dead, and nobody knows how it ended.  Even its start may be forgotten: a claim is not synced. */
static void reboot(struct world *w, int index)
{
	struct machine *mc = &w->machines[index];

	w->res->faults++;
	mc->other_boot = !mc->ended;
	if (mc->running && sim_chance(w, CLAIM_LOST))
		mc->started = false;
	mc->running = mc->serving = mc->agent_up = false;
	cut(w, index, true);
	queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 3000),
						 .kind = AT_AGENT_UP,
						 .index = index,
						 .epoch = mc->epoch});
}

void machine_happens(struct world *w, const struct happening *h)
{
	bool by_rank = h->kind == AT_TOLD || h->kind == AT_PREPARED || h->kind == AT_JOB_SERVES ||
		       h->kind == AT_JOB_EXITS || h->kind == AT_COPIED;
	int index = by_rank ? resource_of(w, h->index) : h->index;
	struct machine *mc = &w->machines[index];

	if (!mc->exists)
		return;
	switch (h->kind) {
	case AT_AGENT_UP:
		if (h->epoch == mc->epoch)
			agent_up(w, index);
		return;
	case AT_DIAL:
		if (h->epoch == mc->agent)
			dial(w, index);
		return;
	case AT_TOLD:
		if (h->epoch == mc->conn)
			told(w, h->index, &h->fx);
		return;
	case AT_PREPARED:
		if (h->epoch == mc->conn)
			prepared(w, h->index);
		return;
	case AT_JOB_SERVES:
		if (h->epoch != mc->epoch || !mc->running)
			return;
		mc->serving = true;
		if (mc->agent_up)
			node_say(w, h->index,
				 &(struct event){.kind = EV_NODE_SERVING, .attempt = mc->attempt});
		return;
	case AT_JOB_EXITS:
		if (h->epoch != mc->epoch)
			return;
		job_end(w, h->index,
			mc->stop_asked ? (struct exit_info){.code = -1, .signal = 15}
				       : (struct exit_info){
						 .code = sim_chance(w, w->f.job_fails) ? 3 : 0});
		return;
	case AT_COPIED:
		if (h->epoch == mc->conn)
			copied(w, h->index);
		return;
	case AT_AGENT_DIES:
		if (h->epoch != mc->agent || !mc->agent_up)
			return;
		w->res->faults++;
		mc->agent_up = false;
		cut(w, index, true);
		return;
	case AT_MACHINE_DIES:
		if (h->epoch == mc->epoch)
			machine_dies(w, index);
		return;
	case AT_REBOOT:
		if (h->epoch == mc->epoch)
			reboot(w, index);
		return;
	case AT_CONN_CUT:
		if (h->epoch == mc->conn) {
			w->res->faults++;
			cut(w, index, true);
		}
		return;
	case AT_EFFECT:
	case AT_ANSWER:
	case AT_WORD:
	case AT_DROPPED:
	case AT_MASTER_DIES:
	case AT_MASTER_UP:
	case AT_TICK:
	case AT_CANCEL:
		return; /* sim.c takes them */
	}
}
