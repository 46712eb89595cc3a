/* The faulty world: machines that boot, run jobs and die. */
#include "sim/internal.h"

#include <stdio.h>
#include <string.h>

#include "sim/agentless.h"
#include "sim/enrol.h"
#include "sim/lifetime.h"
#include "sim/preempt.h"
#include "sim/preflight.h"
#include "sim/ranks.h"

#define LONG_COPY_MS (10 * 60 * 1000) /* more than timeouts.collect */
#define SILENCE_MS 15000	      /* after this the master drops a connection */
#define PARTITION_MS 90000
#define DISK_LOST 200  /* per mille of the disks of machines that reboot */
#define CLAIM_LOST 500 /* per mille: the claim of a started job is lost in a reboot */

/* What may happen to a machine from now on. */
static void machine_boot(struct world *w, int slot)
{
	uint64_t epoch = w->machines[slot].epoch;
	struct happening up = {.at = w->now + sim_delay(w, 400),
			       .kind = AT_AGENT_UP,
			       .index = slot,
			       .epoch = epoch};

	if (!sim_chance(w, w->f.never_boots))
		queue_add(&w->queue, &up);
	if (sim_chance(w, w->f.machine_dies))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 20000),
							 .kind = AT_MACHINE_DIES,
							 .index = slot,
							 .epoch = epoch});
	preempt_draw(w, slot);
	if (!w->plan.agentless && sim_chance(w, w->f.reboots))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 8000),
							 .kind = AT_REBOOT,
							 .index = slot,
							 .epoch = epoch});
}

static void machine_put(struct world *w, int slot, struct machine m)
{
	m.exists = true;
	m.epoch = ++w->epochs;
	m.heard = w->machines[slot].heard; /* the end of that connection may not be seen yet */
	snprintf(m.identity, sizeof(m.identity), "i-%d-%llu", slot, (unsigned long long)m.epoch);
	w->machines[slot] = m;
}

void machine_new(struct world *w, const struct effect *fx)
{
	int index = fx->index, node = w->plan.resources[index].node;

	machine_put(w, index,
		    (struct machine){.token = fx->batch,
				     .choice = fx->choice,
				     .incarnation = fx->incarnation,
				     .res = index,
				     .rank = w->enrols ? -1 : node,
				     .place = w->disk->resources[index].batch_place});
	if (node >= 0)
		machine_boot(w, index);
	else if (w->plan.resources[index].carries_many)
		group_check(w, index, 10);
	remote_boots(w, index);
}

void machine_new_member(struct world *w, int slot, int index)
{
	machine_put(w, slot,
		    (struct machine){.token = w->machines[index].token,
				     .res = index,
				     .rank = -1,
				     .place = 0}); /* all of a group say so */
	machine_boot(w, slot);
}

void node_say(struct world *w, int slot, const struct event *ev)
{
	struct machine *mc = &w->machines[slot];

	if (!mc->conn)
		return;
	int64_t at = w->now + sim_delay(w, 5);
	if (at < mc->last_word_at)
		at = mc->last_word_at;
	mc->last_word_at = at;
	struct happening h = {
		.at = at, .kind = AT_WORD, .index = slot, .epoch = mc->conn, .ev = *ev};
	if (ev->kind != EV_ENROL)
		h.ev.index = mc->rank;
	queue_add(&w->queue, &h);
	if (sim_chance(w, w->f.answer_twice))
		queue_add(&w->queue, &h);
}

void machine_tell(struct world *w, int slot, const struct effect *fx)
{
	struct machine *mc = &w->machines[slot];

	if (!mc->conn)
		return;
	int64_t at = w->now + sim_delay(w, 5);
	if (at < mc->last_told_at)
		at = mc->last_told_at;
	mc->last_told_at = at;
	queue_add(&w->queue,
		  &(struct happening){
			  .at = at, .kind = AT_TOLD, .index = slot, .epoch = mc->conn, .fx = *fx});
}

void machine_dial(struct world *w, int slot, int64_t usual_ms)
{
	struct machine *mc = &w->machines[slot];

	queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, usual_ms),
						 .kind = AT_DIAL,
						 .index = slot,
						 .epoch = mc->agent});
}

static const struct policy *policy_of(const struct world *w, int rank)
{
	return &w->plan.crew.roles[w->plan.crew.members[rank].role].spec->policy;
}

/* From now on the machine hears nothing; if that lasts, its job is stopped, whether its agent
 * lives or not. */
static void silent(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];
	int rank = mc->rank;

	if (mc->heard != mc->conn && mc->silent_since)
		return; /* the master never took the hello of this connection */
	mc->silent_since = w->now;
	if (rank >= 0 && policy_of(w, rank)->on_lost != LOST_FAIL)
		queue_add(&w->queue, &(struct happening){.at = w->now + w->job->timeouts.lost_ms,
							 .kind = AT_LOST,
							 .index = slot,
							 .epoch = mc->epoch});
}

/* Does what the shim does: ends the job after timeouts.lost without the master. */
static void lost(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];

	if ((mc->conn && mc->heard == mc->conn) || !mc->running ||
	    w->now - mc->silent_since < w->job->timeouts.lost_ms)
		return;
	mc->lost = mc->stop_asked = true;
	queue_add(&w->queue,
		  &(struct happening){
			  .at = w->now + (int64_t)rng_below(
						 &w->rng, (uint64_t)w->job->timeouts.grace_ms + 1),
			  .kind = AT_JOB_EXITS,
			  .index = slot,
			  .ev = {.attempt = mc->attempt},
			  .epoch = mc->epoch});
}

void machine_cut(struct world *w, int slot, bool master_sees)
{
	struct machine *mc = &w->machines[slot];

	if (!mc->conn)
		return;
	silent(w, slot);
	if (master_sees)
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 10),
							 .kind = AT_DROPPED,
							 .index = slot,
							 .ev = {.index = mc->rank},
							 .epoch = mc->conn});
	else
		mc->heard = 0;
	mc->conn = 0;
	mc->alone_since = w->now;
	if (mc->agent_up)
		machine_dial(w, slot, 200);
}

/* Cuts both directions without closing the connection: the master notices the silence. */
static void partition(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];
	struct happening seen = {.at = w->now + SILENCE_MS,
				 .kind = AT_DROPPED,
				 .index = slot,
				 .epoch = mc->conn,
				 .ev = {.index = mc->rank, .heard_ms = w->now}};

	w->res->faults++;
	mc->cut_off_until = w->now + (int64_t)rng_below(&w->rng, PARTITION_MS);
	silent(w, slot);
	mc->conn = 0;
	mc->alone_since = w->now;
	queue_add(&w->queue, &seen);
	if (mc->agent_up)
		machine_dial(w, slot, 200);
}

void connections_drop(struct world *w)
{
	for (int i = 0; i < w->nslots; i++)
		machine_cut(w, i, false);
	memset(w->conn_of, 0, sizeof(*w->conn_of) * (size_t)w->plan.crew.n);
}

/* A restarted agent copies the kept files again from the beginning. */
static void copy_files(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];

	queue_add(&w->queue, &(struct happening){.at = w->now + (sim_chance(w, w->f.long_copy)
									 ? LONG_COPY_MS
									 : sim_delay(w, 50)),
						 .kind = AT_COPIED,
						 .index = slot,
						 .epoch = mc->conn});
}

static void say_drained(struct world *w, int slot)
{
	struct event ev = {.kind = EV_NODE_DRAINED, .attempt = w->machines[slot].attempt};

	if (sim_chance(w, w->f.lose_files)) {
		ev.err_kind = ERR_CAPACITY;
		snprintf(ev.text, sizeof(ev.text), "keep 'm': No space left");
	}
	node_say(w, slot, &ev);
}

/* The job has removed its log directory; the master notices it when bytes arrive. */
static void lose_log(struct world *w, int slot)
{
	if (sim_chance(w, w->f.lose_log))
		node_say(w, slot,
			 &(struct event){.kind = EV_NODE_NO_LOG, .text = "its log is gone"});
}

static void copied(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];

	if (mc->ended && !mc->copied)
		say_drained(w, slot);
	mc->copied = mc->ended;
}

static void job_end(struct world *w, int slot, struct exit_info e)
{
	struct machine *mc = &w->machines[slot];

	if (!mc->running)
		return;
	mc->running = false;
	mc->ended = true;
	mc->exit = e;
	agentless_log_ends(w, slot);
	if (!mc->agent_up)
		return;
	node_say(w, slot,
		 &(struct event){.kind = EV_NODE_EXITED, .attempt = mc->attempt, .exit = e});
	lose_log(w, slot);
	copy_files(w, slot);
}

/* Does what the shim does: the marker, which survives the agent but not the machine, decides
 * whether the job was started. */
static void job_start(struct world *w, int slot, int attempt)
{
	struct machine *mc = &w->machines[slot];
	const struct strategy_role *role = &w->plan.crew.roles[w->plan.crew.members[mc->rank].role];

	if (!mc->started || mc->attempt != attempt) {
		if (!mc->prepared)
			sim_broken(w, "gang: %s was started before it was ready",
				   w->plan.crew.members[mc->rank].name);
		check_start(w, slot, attempt);
		mc->started = mc->running = true;
		mc->attempt = attempt;
		mc->other_boot = mc->ended = mc->serving = mc->copied = mc->lost = mc->stop_asked =
			false;
		mc->exit = (struct exit_info){0};
		if (role->port)
			queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 300),
								 .kind = AT_JOB_SERVES,
								 .index = slot,
								 .ev = {.attempt = attempt},
								 .epoch = mc->epoch});
		bool counts = strategy_counts(&w->plan.crew, mc->rank);
		bool hangs = counts && sim_chance(w, w->f.job_hangs);

		w->hung |= hangs;
		if (counts && !hangs)
			queue_add(&w->queue, &(struct happening){.at = w->now + w->long_ms +
								       sim_delay(w, 10000),
								 .kind = AT_JOB_EXITS,
								 .index = slot,
								 .ev = {.attempt = attempt},
								 .epoch = mc->epoch});
	}
	node_say(w, slot, &(struct event){.kind = EV_NODE_STARTED, .attempt = attempt});
	if (w->plan.crew.launch != LAUNCH_ALL && sim_chance(w, w->f.unfit))
		node_say(w, slot,
			 &(struct event){.kind = EV_NODE_NO_DAEMON,
					 .attempt = attempt,
					 .err_kind = ERR_NOT_FOUND,
					 .text = "no daemon"});
}

void machine_dies(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];

	w->res->faults++;
	machine_cut(w, slot, true);
	if (slot >= w->plan.nresources)
		group_check(w, mc->res, 3000);
	else if (w->plan.resources[slot].carries_many)
		group_end(w, slot);
	*mc = (struct machine){
		.epoch = ++w->epochs, .heard = mc->heard, .rank = mc->rank, .res = mc->res};
}

/* The answer to the hang watchdog, if there is one; a job may print something meanwhile. */
static void inspected(struct world *w, int slot)
{
	if (rng_below(&w->rng, 8) == 0)
		return;
	if (rng_below(&w->rng, 8) == 0)
		node_say(w, slot, &(struct event){.kind = EV_PROGRESS});
	node_say(w, slot, &(struct event){.kind = EV_NODE_INSPECTED, .text = "S waits"});
}

static void told(struct world *w, int slot, const struct effect *fx)
{
	struct machine *mc = &w->machines[slot];

	switch (fx->kind) {
	case FX_PREPARE:
		if (mc->started) { /* it has its inputs already */
			node_say(w, slot,
				 &(struct event){.kind = EV_NODE_READY,
						 .facts = preflight_facts(slot)});
			return;
		}
		mc->prepared = false;
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 100),
							 .kind = AT_PREPARED,
							 .index = slot,
							 .epoch = mc->conn});
		return;
	case FX_START:
		job_start(w, slot, fx->attempt);
		return;
	case FX_STOP:
		if (!mc->running) {
			copied(w, slot); /* stops copying */
			return;
		}
		mc->stop_asked = true;
		queue_add(&w->queue,
			  &(struct happening){.at = w->now + sim_delay(w, fx->hurry ? 10 : 2000),
					      .kind = AT_JOB_EXITS,
					      .index = slot,
					      .ev = {.attempt = mc->attempt},
					      .epoch = mc->epoch});
		return;
	case FX_RELEASE:
		mc->running = mc->agent_up = false; /* kills what may be left, and leaves */
		mc->agent++;
		mc->conn = 0;
		if (slot >= w->plan.nresources)
			machine_dies(w,
				     slot); /* switches itself off, and its group makes another */
		return;
	case FX_EXTEND:
		mc->expires_at = w->now + fx->lifetime_ms;
		return;
	case FX_INSPECT:
		inspected(w, slot);
		return;
	case FX_PREFLIGHT:
		preflight_asked(w, slot, fx->attempt);
		return;
	case FX_PREFLIGHT_PASSED:
	case FX_STALLED:
	case FX_CREATE:
	case FX_FIND:
	case FX_OBSERVE:
	case FX_DESTROY:
	case FX_ENROLLED:
	case FX_CANCEL_CARRIED:
	case FX_HAND_OVER:
	case FX_FOLLOW:
	case FX_AWAIT_RESULTS:
	case FX_SWEEP:
	case FX_ENDED:
		return; /* not for an agent */
	}
}

static void prepared(struct world *w, int slot)
{
	if (sim_chance(w, w->f.unfit)) {
		node_say(w, slot,
			 &(struct event){.kind = EV_NODE_UNFIT,
					 .err_kind = ERR_NOT_FOUND,
					 .text = "command not found"});
		return;
	}
	w->machines[slot].prepared = true;
	node_say(w, slot, &(struct event){.kind = EV_NODE_READY, .facts = preflight_facts(slot)});
}

static void say_hello(struct world *w, int slot)
{
	const struct machine *mc = &w->machines[slot];
	struct event ev = {.kind = EV_NODE_HELLO,
			   .incarnation = mc->incarnation,
			   .conn = mc->conn,
			   .attempt = mc->started ? mc->attempt : 0,
			   .holds = mc->other_boot ? HOLDS_OTHER_BOOT
				    : mc->started  ? HOLDS_STARTED
						   : HOLDS_NOTHING};

	ranks_put_address(w, slot, &ev);
	node_say(w, slot, &ev);
}

static void dial(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];
	int rank = mc->rank;

	if (mc->conn || !mc->agent_up)
		return;
	if (!w->master_up || run_phase_is_final(w->memory->phase) || w->now < mc->cut_off_until) {
		if (mc->alone_since && w->now - mc->alone_since > w->job->timeouts.lease_ms &&
		    mc->running)
			job_end(w, slot,
				(struct exit_info){.code = -1, .signal = 9, .kind = ERR_TIMEOUT});
		if (sim_master_is_gone(w) && mc->alone_since &&
		    w->now - mc->alone_since > w->job->timeouts.lease_ms) {
			machine_dies(w, slot); /* the agent switches it off */
			return;
		}
		machine_dial(w, slot, sim_master_is_gone(w) ? 60000 : 2000);
		return;
	}
	mc->conn = ++w->epochs;
	mc->alone_since = 0;
	mc->last_word_at = mc->last_told_at = w->now;
	if (rank < 0) {
		machine_enrols(w, slot);
		return;
	}
	say_hello(w, slot);
	preempt_say(w, slot);
	if (mc->serving)
		node_say(w, slot, &(struct event){.kind = EV_NODE_SERVING, .attempt = mc->attempt});
	lose_log(w, slot);
	if (mc->ended) {
		node_say(w, slot,
			 &(struct event){
				 .kind = EV_NODE_EXITED, .attempt = mc->attempt, .exit = mc->exit});
		mc->copied = false;
		copy_files(w, slot);
	}
	bool apart = sim_chance(w, w->f.partition);

	if (apart || sim_chance(w, w->f.conn_cut))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 3000),
							 .kind = apart ? AT_PARTITION : AT_CONN_CUT,
							 .index = slot,
							 .epoch = mc->conn});
}

static void agent_up(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];

	if (w->plan.agentless) {
		agentless_begins(w, slot);
		return;
	}
	if (mc->agent_up)
		return;
	mc->agent_up = true;
	mc->agent = ++w->epochs;
	mc->alone_since = w->now;
	machine_dial(w, slot, 5);
	if (sim_chance(w, w->f.agent_dies))
		queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 8000),
							 .kind = AT_AGENT_DIES,
							 .index = slot,
							 .epoch = mc->agent});
}

/* The job is dead, and how it ended is unknown.  Even its start may be forgotten, because the
 * claim is not synced. */
static void reboot(struct world *w, int slot)
{
	struct machine *mc = &w->machines[slot];

	w->res->faults++;
	mc->other_boot = !mc->ended;
	if (mc->running && sim_chance(w, CLAIM_LOST))
		mc->started = false;
	mc->running = mc->serving = mc->agent_up = false;
	machine_cut(w, slot, true);
	if (w->enrols && sim_chance(w, DISK_LOST)) { /* with its credential */
		mc->rank = -1;
		mc->started = false;
	}
	queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 3000),
						 .kind = AT_AGENT_UP,
						 .index = slot,
						 .epoch = mc->epoch});
}

void machine_happens(struct world *w, const struct happening *h)
{
	int slot = h->index;
	struct machine *mc = &w->machines[slot];

	if (!mc->exists)
		return;
	switch (h->kind) {
	case AT_AGENT_UP:
		if (h->epoch == mc->epoch)
			agent_up(w, slot);
		return;
	case AT_DIAL:
		if (h->epoch == mc->agent)
			dial(w, slot);
		return;
	case AT_TOLD:
		if (h->epoch == mc->conn)
			told(w, slot, &h->fx);
		return;
	case AT_PREPARED:
		if (h->epoch == mc->conn)
			prepared(w, slot);
		return;
	case AT_JOB_SERVES:
		if (h->epoch != mc->epoch || !mc->running || h->ev.attempt != mc->attempt)
			return;
		mc->serving = true;
		if (mc->agent_up)
			node_say(w, slot,
				 &(struct event){.kind = EV_NODE_SERVING, .attempt = mc->attempt});
		return;
	case AT_JOB_EXITS:
		if (h->epoch != mc->epoch || h->ev.attempt != mc->attempt)
			return;
		job_end(w, slot,
			mc->lost	 ? (struct exit_info){.code = -1,
							      .signal = 15,
							      .kind = ERR_UNAVAILABLE}
			: mc->stop_asked ? (struct exit_info){.code = -1, .signal = 15}
					 : (struct exit_info){
						   .code = sim_chance(w, w->f.job_fails) ? 3 : 0});
		return;
	case AT_COPIED:
		if (h->epoch == mc->conn)
			copied(w, slot);
		return;
	case AT_AGENT_DIES:
		if (h->epoch != mc->agent || !mc->agent_up)
			return;
		w->res->faults++;
		mc->agent_up = false;
		machine_cut(w, slot, true);
		if (slot >=
		    w->plan.nresources) /* nobody mends it from outside: it is started again */
			queue_add(&w->queue, &(struct happening){.at = w->now + sim_delay(w, 1000),
								 .kind = AT_AGENT_UP,
								 .index = slot,
								 .epoch = mc->epoch});
		return;
	case AT_NOTICE:
		if (h->epoch == mc->epoch)
			preempt_notice(w, slot);
		return;
	case AT_MACHINE_DIES:
	case AT_TAKEN:
		if (h->epoch != mc->epoch)
			return;
		preempt_ended(w, slot, h->kind == AT_TAKEN ? ERR_PREEMPTED : ERR_UNAVAILABLE);
		machine_dies(w, slot);
		return;
	case AT_UNANSWERED:
		if (h->epoch == mc->conn && mc->rank < 0)
			machine_cut(w, slot, false);
		return;
	case AT_ENROLLED:
		if (h->epoch == mc->conn)
			machine_enrolled(w, slot, &h->fx);
		return;
	case AT_UNHEALTHY:
		if (h->epoch == mc->epoch && !mc->agent)
			machine_dies(w, slot);
		return;
	case AT_GROUP:
		if (h->epoch == mc->epoch)
			group_renew(w, slot);
		return;
	case AT_EXPIRES:
		if (h->epoch == mc->epoch)
			lifetime_is_over(w, slot);
		return;
	case AT_REBOOT:
		if (h->epoch == mc->epoch)
			reboot(w, slot);
		return;
	case AT_CONN_CUT:
		if (h->epoch == mc->conn) {
			w->res->faults++;
			machine_cut(w, slot, true);
		}
		return;
	case AT_PARTITION:
		if (h->epoch == mc->conn)
			partition(w, slot);
		return;
	case AT_LOST:
		if (h->epoch == mc->epoch)
			lost(w, slot);
		return;
	case AT_GHOST:
	case AT_ADMIT:
	case AT_CAPACITY:
	case AT_RESIZE:
	case AT_REMOTE:
	case AT_EFFECT:
	case AT_ANSWER:
	case AT_WORD:
	case AT_DROPPED:
	case AT_MASTER_DIES:
	case AT_MASTER_UP:
	case AT_TICK:
	case AT_CANCEL:
		return; /* handled in sim.c */
	}
}
