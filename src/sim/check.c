/* The invariants, checked during a history and at its end. */
#include "sim/internal.h"
#include "sim/lifetime.h"
#include "sim/preempt.h"
#include "sim/preflight.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GIVE_UP_MS (200 * 1000) /* grace, SIGKILL, and a master that is down for a while */

#define COUNT_EVERY 4 /* events: a recount takes as long as a step */
#define LOST_ANSWERS_MS (2 * 60 * 1000)

#define RATE_WINDOW_MS 10000
#define RATE_CALLS 60

void sim_broken(struct world *w, const char *fmt, ...)
{
	char what[160];
	va_list ap;

	if (w->res->broken)
		return;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	w->res->broken = true;
	snprintf(w->res->what, sizeof(w->res->what), "at %lld ms: %s", (long long)w->now, what);
}

/* A token belongs to one request: that of a group, or of one resource. */
static void check_batch(struct world *w, int index, int batch)
{
	int64_t group = w->plan.resources[index].group;
	int64_t request = group ? group : -1 - index;

	while (w->requests.n <= (size_t)batch)
		*vec_push(&w->requests) = 0;
	if (w->requests.v[batch] && w->requests.v[batch] != request)
		sim_broken(w, "I1: batch %d is used for two requests, now for %s", batch,
			   w->plan.resources[index].name);
	w->requests.v[batch] = request;
}

/* I1: the row was on disk, as `sent` and with this token, before the call reached the cloud. */
void check_create(struct world *w, int index, int token)
{
	const struct core_resource *row = &w->disk->resources[index];

	if (row->state == RES_INTENT || row->state == RES_GONE || row->batch != token)
		sim_broken(w, "I1: %s was created in batch %d while its row says %s, batch %d",
			   w->plan.resources[index].name, token, res_state_name(row->state),
			   row->batch);
	check_batch(w, index, token);
}

/* I6: an attempt is executed once, and not while another attempt of the rank may run. */
static bool was_started(const struct world *w, int rank)
{
	for (int i = 0; i < SIM_MAX_EXECS; i++)
		if (w->execs[rank][i] > 0)
			return true;
	return false;
}

/* I26: a launcher starts processes on all others of its role, so those are there before it. */
static void check_launcher(struct world *w, int rank)
{
	if (w->plan.crew.launch != LAUNCH_FIRST || rank != 0)
		return;
	for (int i = 1; i < w->plan.crew.n; i++)
		if (!w->disk->nodes[i].asleep && !was_started(w, i))
			sim_broken(w, "I26: %s launches, but %s was never started",
				   w->plan.crew.members[0].name, w->plan.crew.members[i].name);
}

void check_start(struct world *w, int slot, int attempt)
{
	int rank = w->machines[slot].rank;
	const char *name = w->plan.crew.members[rank].name;

	if (attempt < SIM_MAX_EXECS && ++w->execs[rank][attempt] > 1)
		sim_broken(w, "I6: %s executed attempt %d twice", name, attempt);
	for (int i = 0; i < w->nslots; i++)
		if (w->machines[i].running && w->machines[i].rank == rank)
			sim_broken(w, "I6: attempt %d of %s starts while another runs%s", attempt,
				   name, i == slot ? " there" : " elsewhere");
	if (w->ghosts[rank].run_until > w->now)
		sim_broken(w, "I6: attempt %d of %s starts while the one before may run elsewhere",
			   attempt, name);
	check_launcher(w, rank);
}

/* I6: a machine is told who it is for good, and no two are told the same. */
void check_binding(struct world *w, int slot, const struct effect *fx)
{
	struct machine *mc = &w->machines[slot];

	for (size_t i = 0; i < w->bindings.n; i++) {
		const struct binding *b = &w->bindings.v[i];

		if (b->rank == fx->index && b->incarnation == fx->incarnation &&
		    b->epoch != mc->epoch)
			sim_broken(w, "I6: two machines were told that they are %s, incarnation %d",
				   w->plan.crew.members[fx->index].name, fx->incarnation);
		if (b->epoch == mc->epoch && mc->res < w->plan.nresources &&
		    w->plan.resources[mc->res].node >= 0 && b->rank != fx->index)
			sim_broken(w, "I6: %s was told that it is two nodes", mc->identity);
	}
	*vec_push(&w->bindings) = (struct binding){fx->index, fx->incarnation, mc->epoch};
}

/* I17: what a commit has shown to people as finished does not change any more. */
void check_final(struct world *w, const struct core_run *shown, const struct core_run *next)
{
	bool better = next->verdict == VERDICT_SUCCEEDED || next->verdict == VERDICT_NONE;

	if (shown->verdict != VERDICT_NONE && shown->verdict != next->verdict &&
	    (better || shown->verdict != VERDICT_SUCCEEDED))
		sim_broken(w, "I17: the verdict was %s and is %s", verdict_name(shown->verdict),
			   verdict_name(next->verdict));
	if (shown->phase >= RUN_COLLECTING && next->phase < shown->phase)
		sim_broken(w, "I17: the run was %s and is %s", run_phase_name(shown->phase),
			   run_phase_name(next->phase));
	for (int i = 0; i < w->plan.crew.n; i++) {
		const struct core_node *a = &shown->nodes[i], *b = &next->nodes[i];

		if (a->attempt > b->attempt || a->incarnation > b->incarnation)
			sim_broken(w, "I17: %s counts backwards", w->plan.crew.members[i].name);
		if (a->state == NODE_EXITED && b->state == NODE_EXITED &&
		    a->attempt == b->attempt &&
		    (a->exit.code != b->exit.code || a->exit.signal != b->exit.signal))
			sim_broken(w, "I17: attempt %d of %s has ended twice", a->attempt,
				   w->plan.crew.members[i].name);
	}
	for (int i = 0; i < w->plan.nresources; i++)
		if (shown->resources[i].state == RES_GONE && next->resources[i].state != RES_GONE)
			sim_broken(w, "I17: %s was gone and is %s", w->plan.resources[i].name,
				   res_state_name(next->resources[i].state));
}

/* The counters agree with the rows: a node that was taken back has undone all its counts. */
static void check_counters(struct world *w)
{
	const struct core_run *m = w->memory;
	struct core_run *c = w->recount;
	size_t roles = (size_t)w->plan.crew.nroles, n = (size_t)w->plan.nresources;

	if (!w->master_up)
		return;
	rows_copy(c, m);
	core_run_restored(c);
	if (memcmp(m->node_count, c->node_count, sizeof(m->node_count)) != 0 ||
	    memcmp(m->res_count, c->res_count, sizeof(m->res_count)) != 0 ||
	    m->settled != c->settled || m->counted != c->counted || m->awake != c->awake ||
	    (m->verdict == VERDICT_NONE && m->counted_ok != c->counted_ok) ||
	    m->res_idle != c->res_idle || m->enrolments != c->enrolments ||
	    memcmp(m->role_gates_met, c->role_gates_met, roles * sizeof(*m->role_gates_met)) != 0 ||
	    memcmp(m->role_awake, c->role_awake, roles * sizeof(*m->role_awake)) != 0)
		sim_broken(w, "I11: a counter of the nodes is not what their rows say");
	if ((m->verdict == VERDICT_NONE &&
	     memcmp(m->needs_left, c->needs_left, n * sizeof(*m->needs_left)) != 0) ||
	    memcmp(m->users_left, c->users_left, n * sizeof(*m->users_left)) != 0)
		sim_broken(w, "I11: a counter of the resources is not what their rows say");
	for (size_t k = 0; k < roles && !w->plan.hands_over; k++)
		if (m->role_awake[k] < w->plan.crew.roles[k].spec->policy.min ||
		    m->role_awake[k] > w->plan.crew.roles[k].spec->policy.max)
			sim_broken(w, "I10: role %s has %d nodes", w->plan.crew.roles[k].name,
				   m->role_awake[k]);
}

/* I13: calls about a resource have pauses between them. */
void check_rate(struct world *w, int index)
{
	struct account *ac = &w->accounts[index];

	if (w->now >= ac->window_at + RATE_WINDOW_MS) {
		ac->window_at = w->now;
		ac->calls = 0;
	}
	if (++ac->calls > RATE_CALLS)
		sim_broken(w, "I13: %d calls about %s within %d s", ac->calls,
			   w->plan.resources[index].name, RATE_WINDOW_MS / 1000);
}

#define QUIET_MS 250 /* at least half of the core's first pause */

/* I13: after a throttled call the whole run makes no call for a while. */
void check_throttled(struct world *w, const struct event *ev)
{
	const struct core_resource *res;

	if (ev->kind != EV_RES_ANSWER || ev->err_kind != ERR_THROTTLED)
		return;
	res = &w->memory->resources[ev->index];
	if (res->asked != ev->asked || res->ask_no != ev->attempt)
		return; /* a repeated answer */
	if (res->asked_at_ms + QUIET_MS <= w->quiet_until)
		return; /* asked before the current pause began */
	w->quiet_until = w->now + QUIET_MS;
}

void check_quiet(struct world *w, int index)
{
	if (w->now < w->quiet_until)
		sim_broken(w, "I13: a call about %s while the provider throttles the run",
			   w->plan.resources[index].name);
}

/* The machines of a group with choices never have different ones until the run has all of them;
 * a machine that is replaced or added later takes any choice. */
void check_gang(struct world *w, int index, int choice)
{
	const struct plan_resource *v = w->plan.resources;

	if (w->disk->phase != RUN_PROVISIONING)
		return;
	for (int i = 0; i < w->plan.nresources && v[index].group && v[index].nchoices; i++)
		if (v[i].group == v[index].group && w->machines[i].exists &&
		    w->machines[i].choice != choice)
			sim_broken(w,
				   "gang: %s is made of choice %d while there is %s of choice %d",
				   v[index].name, choice, v[i].name, w->machines[i].choice);
}

static bool same_run(const struct core_run *m, const struct core_run *d)
{
	return m->phase == d->phase && m->verdict == d->verdict &&
	       m->deadline_ms == d->deadline_ms && m->hurry == d->hurry &&
	       m->cancel_asked == d->cancel_asked && m->cause.kind == d->cause.kind &&
	       m->cause.node == d->cause.node && !strcmp(m->cause.text, d->cause.text) &&
	       m->slow_ms == d->slow_ms && m->next_call_ms == d->next_call_ms &&
	       !memcmp(&m->rng, &d->rng, sizeof(m->rng));
}

static bool same_node(const struct core_node *m, const struct core_node *d)
{
	return m->state == d->state && m->attempt == d->attempt && m->start_sent == d->start_sent &&
	       m->stop_sent == d->stop_sent && m->serving == d->serving &&
	       m->settled == d->settled && m->gate_met == d->gate_met &&
	       m->exit.code == d->exit.code && m->exit.signal == d->exit.signal &&
	       m->exit.kind == d->exit.kind && m->serve_by_ms == d->serve_by_ms &&
	       m->lost_at_ms == d->lost_at_ms && !strcmp(m->address, d->address) &&
	       m->incarnation == d->incarnation && m->retried == d->retried &&
	       m->after == d->after && m->asleep == d->asleep && m->by_ms == d->by_ms &&
	       m->shrunk == d->shrunk && m->preempt_at_ms == d->preempt_at_ms &&
	       m->job_rank == d->job_rank && !strcmp(m->identity, d->identity);
}

static bool same_resource(const struct core_resource *m, const struct core_resource *d)
{
	return m->state == d->state && m->attempt == d->attempt && m->batch == d->batch &&
	       m->enrolled == d->enrolled && m->choice == d->choice &&
	       m->incarnation == d->incarnation && m->tries == d->tries && m->unsure == d->unsure &&
	       m->retry_at_ms == d->retry_at_ms && m->why_kind == d->why_kind &&
	       !strcmp(m->why, d->why) && !strcmp(m->id, d->id);
}

/* I11: a restart would find what the master knows: every changed row was marked. */
static void check_disk(struct world *w)
{
	const struct core_run *m = w->memory, *d = w->disk;

	if (!w->master_up)
		return;
	if (!same_run(m, d))
		sim_broken(
			w,
			"I11: the row of the run was changed and not saved: memory says %s, disk says %s",
			run_phase_name(m->phase), run_phase_name(d->phase));
	for (int i = 0; i < w->plan.crew.n; i++)
		if (!same_node(&m->nodes[i], &d->nodes[i]))
			sim_broken(w, "I11: the row of %s was changed and not saved",
				   w->plan.crew.members[i].name);
	for (int i = 0; i < w->plan.nresources; i++)
		if (!same_resource(&m->resources[i], &d->resources[i]))
			sim_broken(w, "I11: the row of %s was changed and not saved",
				   w->plan.resources[i].name);
}

/* I14: a cancel while collecting ends it long before timeouts.collect would. */
static void check_cancel(struct world *w)
{
	if (w->gave_up_at && w->master_up && w->memory->phase == RUN_COLLECTING &&
	    w->now - w->gave_up_at > GIVE_UP_MS)
		sim_broken(w, "I14: still collecting %lld ms after a cancel",
			   (long long)(w->now - w->gave_up_at));
}

/* I32: what waits for its turn is not late.  Of answers that were lost the master asks again. */
static void check_turn(struct world *w)
{
	const struct core_run *r = w->memory;

	if (w->now < w->turn_at && w->master_up &&
	    r->phase_at_ms[RUN_COLLECTING] > w->heal_at + LOST_ANSWERS_MS &&
	    strstr(r->cause.text, "timeouts.boot"))
		sim_broken(w, "I32: no machine has had its turn, and the run has failed: %s",
			   r->cause.text);
}

/* I2 and I10: everything that exists is in the ledger, and only once. */
void check_always(struct world *w)
{
	for (int i = 0; i < w->plan.nresources; i++) {
		const struct core_resource *row = &w->disk->resources[i];
		if (!w->machines[i].exists || w->plan.resources[i].shared)
			continue;
		if (row->state == RES_INTENT || row->state == RES_GONE)
			sim_broken(w, "I2: %s exists but its row says %s",
				   w->plan.resources[i].name, res_state_name(row->state));
		if (w->machines[i].token > row->batch)
			sim_broken(w, "I10: %s exists of batch %d, the ledger knows %d",
				   w->plan.resources[i].name, w->machines[i].token, row->batch);
	}
	check_tags(w);
	check_disk(w);
	if (w->res->events % COUNT_EVERY == 0)
		check_counters(w);
	check_cancel(w);
	check_turn(w);
	preflight_check(w);
	if (w->memory && w->memory->phase == RUN_RUNNING && w->memory->verdict != VERDICT_NONE)
		sim_broken(w, "I5: running with a verdict");
}

/* Each node that counts was executed as its last attempt, and that attempt ended well. */
static void check_success(struct world *w)
{
	for (int i = 0; i < w->plan.crew.ncounted; i++) {
		const struct core_node *n = &w->disk->nodes[i];

		if (n->asleep || n->attempt >= SIM_MAX_EXECS || !strategy_counts(&w->plan.crew, i))
			continue;
		if (n->attempt == 0 || w->execs[i][n->attempt] != 1 || n->exit.code != 0)
			sim_broken(w, "I6: success, but %s ran %d times as attempt %d, exit %d",
				   w->plan.crew.members[i].name, w->execs[i][n->attempt],
				   n->attempt, n->exit.code);
	}
}

/* I4: whatever happens to the master, no machine costs money in the end. */
static void check_costs(struct world *w)
{
	for (int i = 0; i < w->nslots; i++)
		if (w->machines[i].exists &&
		    (i >= w->plan.nresources || w->plan.resources[i].node >= 0 ||
		     w->plan.resources[i].carries_many || w->plan.resources[i].master))
			sim_broken(w, "I4: %s still costs, long after the master has gone",
				   w->plan.resources[w->machines[i].res].name);
}

/* A shared resource stays, and its row says so; nothing is left of the others. */
static void check_left(struct world *w, int i)
{
	enum res_state state = w->disk->resources[i].state;
	const char *name = w->plan.resources[i].name;

	if (w->plan.resources[i].shared) {
		if (state != RES_GONE && !(state == RES_LIVE && w->machines[i].exists))
			sim_broken(w, "I3: the ledger of an ended run has %s as %s", name,
				   res_state_name(state));
		return;
	}
	if (w->machines[i].exists)
		sim_broken(w, "I3: %s still exists after the run has ended", name);
	if (state != RES_GONE)
		sim_broken(w, "I3: the ledger of an ended run still has %s as %s", name,
			   res_state_name(state));
}

/* I5, I11, I12: one final state, the same on disk and in memory, in time, with nothing left. */
void check_end(struct world *w)
{
	if (w->res->broken)
		return;
	if (!w->ended && sim_master_is_gone(w)) {
		check_costs(w);
		return;
	}
	if (!w->ended || !run_phase_is_final(w->disk->phase)) {
		sim_broken(w, "I12: still '%s' long after the last fault",
			   run_phase_name(w->disk->phase));
		return;
	}
	if (w->memory && w->memory->phase != w->disk->phase)
		sim_broken(w, "I11: memory says %s, disk says %s", run_phase_name(w->memory->phase),
			   run_phase_name(w->disk->phase));
	static const enum run_phase want[] = {[VERDICT_SUCCEEDED] = RUN_SUCCEEDED,
					      [VERDICT_FAILED] = RUN_FAILED,
					      [VERDICT_CANCELLED] = RUN_CANCELLED};
	if (w->disk->verdict == VERDICT_NONE || w->disk->phase != want[w->disk->verdict])
		sim_broken(w, "I5: verdict %s ended as %s", verdict_name(w->disk->verdict),
			   run_phase_name(w->disk->phase));
	if (w->gave_up_success && w->disk->verdict != VERDICT_CANCELLED)
		sim_broken(w, "I15: its output was given up, and it ended as %s",
			   run_phase_name(w->disk->phase));
	if (w->lost_output && w->disk->verdict == VERDICT_SUCCEEDED)
		sim_broken(w, "I16: files or a log were lost, and it ended as %s",
			   run_phase_name(w->disk->phase));
	check_preempted(w);
	check_remote_end(w);
	for (int i = 0; i < w->plan.nresources; i++)
		check_left(w, i);
	if (w->disk->verdict == VERDICT_SUCCEEDED)
		check_success(w);
}
