/* Carries out effects: those on resources by a driver on a worker thread, those on nodes by a
 * frame to the agent. */
#include "master/effects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/log.h"
#include "driver/driver.h"
#include "link/message.h"
#include "master/agents.h"
#include "master/api/outputs.h"
#include "master/enrol.h"
#include "master/followers.h"
#include "master/handover.h"
#include "master/hosts.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/messages.h"
#include "master/requests.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/stalls.h"
#include "master/start_table.h"
#include "master/streams.h"
#include "master/suite_carrier.h"
#include "master/upkeep/finish.h"
#include "master/upkeep/trash.h"
#include "net/digest.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define CALL_MS 60000	 /* limit of one call, from when a worker begins it */
#define TOLD_AT_ONCE 200 /* answers of one call */

/* One call of a driver's function, about one or many resources. */
struct driver_call {
	struct live_run *lr;
	const struct driver *driver;
	enum effect_kind kind;
	size_t n, told;	   /* told: to the core, of the n answers */
	struct effect *fx; /* n effects; rows and tokens have n entries too */
	struct driver_row *rows;
	char (*tokens)[65];
	struct arena *arena; /* owns needs, members and the request */
	struct err spoilt;   /* kind != ERR_NONE: the call must not be made, for this reason */
};

static void call_free(struct driver_call *c)
{
	for (size_t i = 0; i < c->n; i++)
		free(c->rows[i].sights);
	free(c->fx);
	free(c->rows);
	free(c->tokens);
	arena_free(c->arena);
	free(c);
}

typedef void many_fn(struct driver_row *rows, size_t n);
/* NULL: the driver handles one resource per call. */
static many_fn *many_of(const struct driver *d, enum effect_kind kind)
{
	switch (kind) {
	case FX_CREATE:
		return d->create_many;
	case FX_FIND:
		return d->find_many;
	case FX_OBSERVE:
		return d->observe_many;
	case FX_EXTEND:
		return d->extend_many;
	case FX_DESTROY:
		return d->destroy_many;
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
		return NULL;
	}
	return NULL;
}

static enum outcome call_one(const struct driver *d, enum effect_kind kind, struct driver_row *row)
{
	switch (kind) {
	case FX_CREATE:
		return d->create(row);
	case FX_FIND:
		return d->find(row);
	case FX_OBSERVE:
		return d->observe(row);
	case FX_EXTEND:
		return d->extend(row);
	case FX_DESTROY:
		return d->destroy(row);
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
		break;
	}
	return OUTCOME_UNSURE;
}

static void call_run(void *arg, const struct deadline *deadline)
{
	struct driver_call *c = arg;
	const struct driver *d = c->driver;
	many_fn *many = d ? many_of(d, c->kind) : NULL;

	for (size_t i = 0; i < c->n; i++) {
		c->rows[i].deadline = deadline;
		c->rows[i].outcome = OUTCOME_REFUSED;
		c->rows[i].err = c->spoilt;
	}
	if (c->spoilt.kind)
		return;
	if (many) {
		many(c->rows, c->n);
		return;
	}
	for (size_t i = 0; i < c->n; i++) {
		struct driver_row *row = &c->rows[i];

		if (d) {
			row->outcome = call_one(d, c->kind, row);
			continue;
		}
		/* Stored by another version: the resource stays until a version that knows its
		 * kind handles it. */
		row->outcome = OUTCOME_UNSURE;
		err_set(&row->err, ERR_UNAVAILABLE, "this version of regatta has no driver for %s",
			row->kind);
	}
}

/* Tells the core which machines of the resource are gone: their nodes are lost, whatever happens
 * to the resource. */
static void tell_members(const struct driver_call *c, size_t i)
{
	const struct driver_row *row = &c->rows[i];

	for (size_t k = 0; k < row->nmembers && row->identity_checked; k++) {
		struct event ev = {.kind = EV_RES_MEMBER, .index = c->fx[i].index};

		snprintf(ev.text, sizeof(ev.text), "%.64s %.190s", row->members[k].identity,
			 row->members[k].why.msg);
		ev.err_kind = row->members[k].why.kind;
		if (row->members[k].gone)
			run_event(c->lr, &ev);
	}
}

static int rank_of(const struct plan *p, const char *role, int index)
{
	for (int i = 0; i < p->crew.n; i++)
		if (p->crew.members[i].index == index &&
		    strcmp(p->crew.roles[p->crew.members[i].role].name, role) == 0)
			return i;
	return -1;
}

/* Tells the core which machines without agents are there, and their followers where their logs are. */
static void tell_sights(const struct driver_call *c, size_t i)
{
	const struct driver_row *row = &c->rows[i];

	for (size_t k = 0; k < row->nsights; k++) {
		const struct driver_sight *s = &row->sights[k];
		struct event ev = {
			.kind = EV_NODE_SEEN,
			.index = rank_of(&c->lr->plan, s->role, s->index),
			.ended = s->ended,
			.exit = {.code = s->code, .oom = s->oom},
		};

		if (ev.index < 0 || c->lr->plan.resource_of[ev.index] != c->fx[i].index)
			continue;
		snprintf(ev.text, sizeof(ev.text), "%s %s", s->identity, s->address);
		snprintf(ev.exit.reason, sizeof(ev.exit.reason), "%s", s->reason);
		run_event(c->lr, &ev);
		follow_seen(c->lr, ev.index, s);
	}
}

static void tell_outcome(const struct driver_call *c, size_t i)
{
	const struct driver_row *row = &c->rows[i];
	struct event ev = {
		.kind = EV_RES_ANSWER,
		.index = c->fx[i].index,
		.attempt = c->fx[i].attempt,
		.asked = c->fx[i].asked,
		.outcome = row->outcome,
		.identity_checked = row->identity_checked,
		.ended = row->ended,
		.queued = row->queued,
		.err_kind = row->err.kind,
	};

	snprintf(ev.text, sizeof(ev.text), "%.255s",
		 core_answer_has_id(&ev) ? row->id : row->err.msg);
	run_event(c->lr, &ev);
}

static void call_none(void *arg, const struct deadline *deadline)
{
	(void)arg;
	(void)deadline;
}

/* Tells the next answers.  The rest follows in later turns of the loop. */
static void call_done(void *arg, enum err_kind how)
{
	struct driver_call *c = arg;
	struct live_run *lr = c->lr;

	/* A call that was dropped because the master leaves is made by the next master. */
	for (size_t i = 0; how == ERR_NONE && i < TOLD_AT_ONCE && c->told < c->n; i++, c->told++) {
		tell_sights(c, c->told);
		tell_members(c, c->told);
		tell_outcome(c, c->told);
	}
	if (how == ERR_NONE && c->told < c->n) {
		/* A pool of its own: a slow call must not hold up what is known. */
		workers_submit(pools_get(lr->m->pools, "answers", 1), call_none, call_done, c, -1);
		return;
	}
	lr->busy--;
	live_run_done(lr);
	call_free(c);
}

static void add_needs(const struct live_run *lr, const struct plan_resource *pr, struct arena *a,
		      struct driver_row *row)
{
	struct driver_need *needs = arena_array(a, struct driver_need, (size_t)pr->nneeds);

	for (int i = 0; i < pr->nneeds; i++) {
		const struct plan_resource *need = &lr->plan.resources[pr->needs[i]];

		needs[i] = (struct driver_need){
			.kind = need->kind,
			.name = need->name,
			.id = arena_strdup(a, lr->core->resources[pr->needs[i]].id),
		};
	}
	row->needs = needs;
	row->nneeds = (size_t)pr->nneeds;
}

static const char *resource_secret(const struct live_run *lr, const char *name, struct arena *a)
{
	const char *what = arena_printf(a, "resource/%s", name);
	char *hex = arena_alloc(a, SHA256_TEXT);
	uint8_t mac[SHA256_BYTES];

	hmac_sha256(lr->row.secret, strlen(lr->row.secret), what, strlen(what), mac);
	hex_encode(mac, sizeof(mac), hex);
	return hex;
}

void effect_row(struct live_run *lr, const struct effect *fx, struct arena *a,
		struct driver_row *row, char token[static 65])
{
	int index = fx->index;
	const struct plan_resource *pr = &lr->plan.resources[index];
	const struct core_resource *res = &lr->core->resources[index];

	*row = (struct driver_row){
		.kind = pr->kind,
		.name = pr->name,
		.install = store_install(lr->m->store),
		.run = lr->row.id,
		.role = pr->node >= 0
				? lr->plan.crew.roles[lr->plan.crew.members[pr->node].role].name
				: "",
		.attempt = res->attempt,
		.expires_ms = clock_wall_ms() + plan_lifetime_ms(&lr->plan),
		.batch = res->batch,
		.batch_place = res->batch_place,
		.spec = pr->spec,
		.choice = plan_choice(pr, fx->choice),
		.credentials = lr->credentials,
		.token = token,
		.enrol = "",
		.services = &lr->m->services,
	};
	memcpy(row->id, res->id, sizeof(row->id));
	add_needs(lr, pr, a, row);
	if (fx->kind == FX_CREATE) {
		char enrol[ENROL_TOKEN_MAX];

		enrol_token(lr, index, enrol);
		row->enrol = arena_strdup(a, enrol);
	}
	row->overdue = fx->overdue;
	if (pr->node < 0) {
		row->secret = resource_secret(lr, pr->name, a);
		return;
	}
	row->incarnation = fx->incarnation;
	node_token(lr, lr->plan.crew.members[pr->node].name, row->incarnation, token);
	row->heard_ms = agent_heard_ms(lr, pr->node);
}

/* A stored request that is missing or damaged is not sent: the core searches for resources that
 * an earlier send may have created. */
static void add_request(struct driver_call *c)
{
	const char *bytes = NULL;

	if (request_load(c->lr, c->fx->batch, c->arena, &bytes, &c->spoilt) < 0)
		return;
	for (size_t i = 0; i < c->n; i++)
		c->rows[i].request = bytes;
}

static void add_members(struct driver_call *c, size_t i)
{
	const struct live_run *lr = c->lr;
	struct driver_row *row = &c->rows[i];

	if (!lr->plan.resources[c->fx[i].index].carries_many)
		return;
	row->members = arena_array(c->arena, struct driver_member, (size_t)lr->plan.crew.n);
	for (int k = 0; k < lr->plan.crew.n; k++)
		if (lr->plan.resource_of[k] == c->fx[i].index && lr->core->nodes[k].identity[0])
			row->members[row->nmembers++].identity =
				arena_strdup(c->arena, lr->core->nodes[k].identity);
}

/* Makes one call for the first n effects of fx. */
static void call_driver(struct live_run *lr, const struct effect *fx, size_t n)
{
	struct driver_call *c = xcalloc(1, sizeof(*c));

	c->lr = lr;
	c->driver = driver_for(lr->plan.resources[fx->index].kind);
	c->kind = fx->kind;
	c->n = n;
	c->fx = xcalloc(n, sizeof(*c->fx));
	c->rows = xcalloc(n, sizeof(*c->rows));
	c->tokens = xcalloc(n, sizeof(*c->tokens));
	c->arena = arena_new();
	memcpy(c->fx, fx, n * sizeof(*fx));
	for (size_t i = 0; i < n; i++) {
		effect_row(lr, &fx[i], c->arena, &c->rows[i], c->tokens[i]);
		add_members(c, i);
	}
	if (c->kind == FX_CREATE && c->driver && c->driver->render)
		add_request(c);
	lr->busy++;
	struct workers *pool =
		pools_get(lr->m->pools, c->driver ? c->driver->pool : "none", EFFECT_THREADS);

	workers_submit(pool, call_run, call_done, c, CALL_MS);
}

int effects_compare(const void *a, const void *b, void *run)
{
	const struct effect *x = a, *y = b;
	const struct plan_resource *v = ((const struct live_run *)run)->plan.resources;
	int by_kind = strcmp(v[x->index].kind, v[y->index].kind);

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (by_kind)
		return by_kind;
	if (x->batch != y->batch)
		return x->batch < y->batch ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

bool effects_one_call(const struct live_run *lr, const struct effect *x, const struct effect *y)
{
	const struct plan_resource *v = lr->plan.resources;

	return x->kind == y->kind && x->batch == y->batch &&
	       strcmp(v[x->index].kind, v[y->index].kind) == 0;
}

/* Groups the effects into one call per effect kind, resource kind and batch. */
static void call_many(struct live_run *lr, struct effect *fx, size_t n)
{
	if (n == 0)
		return;
	qsort_r(fx, n, sizeof(*fx), effects_compare, lr);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1; to < n && effects_one_call(lr, &fx[from], &fx[to]);)
			to++;
		call_driver(lr, &fx[from], to - from);
	}
}

static void inputs_are_too_long(struct live_run *lr, int rank)
{
	struct event ev = {.kind = EV_NODE_UNFIT, .index = rank, .err_kind = ERR_INVALID};

	snprintf(
		ev.text, sizeof(ev.text),
		"the list of its inputs takes more than %d KiB: give fewer and larger shards, data and patterns",
		FRAME_MAX_PAYLOAD / 1024);
	run_event(lr, &ev);
}

static void to_agent(struct live_run *lr, const struct effect *fx)
{
	struct err err = {0};
	struct buf text;

	buf_init(&text, FRAME_MAX_PAYLOAD);
	switch (fx->kind) {
	case FX_PREPARE:
		node_inputs_put(lr, fx->index, &text);
		if (text.overflow)
			inputs_are_too_long(lr, fx->index);
		else
			agent_send(lr, fx->index, FRAME_INPUTS, buf_str(&text));
		break;
	case FX_START:
		/* The agent connected in this round: START is sent after its READY. */
		if (lr->core->nodes[fx->index].preparing)
			break;
		/* The agent dials again, and the core starts the node again. */
		if (streams_open(lr, fx->index, fx->attempt, &err) < 0 &&
		    !streams_gone(lr, fx->index, &err))
			agent_fail(lr, fx->index, &err);
		else
			start_send(lr, fx->index, fx->attempt);
		break;
	case FX_STOP:
		message_signal_put(&(struct message_signal){fx->hurry}, &text);
		agent_send(lr, fx->index, FRAME_SIGNAL, buf_str(&text));
		break;
	case FX_RELEASE:
		if (fx->conn)
			agent_refuse_stranger(
				lr->m, fx->conn, ERR_DENIED,
				"this machine was given up: another one has its place");
		else
			agent_send(lr, fx->index, FRAME_RELEASE, STR(MESSAGE_EMPTY));
		break;
	case FX_INSPECT:
		stall_inspect(lr, fx->index);
		break;
	case FX_PREFLIGHT:
		node_preflight_put(lr, fx->index, fx->attempt, &text);
		agent_send(lr, fx->index, FRAME_PREFLIGHT, buf_str(&text));
		break;
	case FX_PREFLIGHT_PASSED:
	case FX_STALLED:
	case FX_CREATE:
	case FX_FIND:
	case FX_OBSERVE:
	case FX_EXTEND:
	case FX_DESTROY:
	case FX_ENROLLED:
	case FX_CANCEL_CARRIED:
	case FX_HAND_OVER:
	case FX_FOLLOW:
	case FX_AWAIT_RESULTS:
	case FX_SWEEP:
	case FX_ENDED:
		break; /* not for an agent */
	}
	buf_release(&text);
}

/* The rest is for an agent only. */
static void without_agent(struct live_run *lr, const struct effect *fx)
{
	if (fx->kind == FX_START)
		follow_start(lr, fx->index, fx->attempt);
	else if (fx->kind == FX_STOP)
		follow_stop(lr, fx->index);
}

static void effect_do(struct live_run *lr, const struct effect *fx)
{
	switch (fx->kind) {
	case FX_CREATE:
	case FX_FIND:
	case FX_OBSERVE:
	case FX_EXTEND:
	case FX_DESTROY:
		call_driver(lr, fx, 1);
		return;
	case FX_PREPARE:
	case FX_START:
	case FX_STOP:
	case FX_RELEASE:
	case FX_INSPECT:
	case FX_PREFLIGHT:
		if (lr->plan.agentless)
			without_agent(lr, fx);
		else
			to_agent(lr, fx);
		return;
	case FX_PREFLIGHT_PASSED:
		run_note(lr, "preflight", -1, "%s", lr->core->preflight.text);
		return;
	case FX_STALLED:
		run_note(lr, "stalled", fx->index, "%s", lr->core->stall.text);
		log_warn("run %s: %s", lr->row.id, lr->core->stall.text);
		return;
	case FX_ENROLLED:
		enrol_answer(lr, fx);
		return;
	case FX_CANCEL_CARRIED:
		carrier_cancel_suite(lr, fx->hurry);
		return;
	case FX_HAND_OVER:
	case FX_FOLLOW:
	case FX_AWAIT_RESULTS:
	case FX_SWEEP:
		handover_do(lr, fx);
		return;
	case FX_ENDED:
		lr->ended = true;
		followers_free(lr);
		trash_run_ended(lr->m->trash);
		/* The records of the run are small, and the last files that it writes. */
		store_disk_reserve_ease(lr->m->store);
		outputs_forget(lr);
		run_write_files(lr);
		handover_ended(lr);
		carrier_run_ended(lr);
		return;
	}
}

/* The machines of the resource switch themselves off, too.  An agent that is not connected now is
 * told an hour later. */
static void extend_machines(struct live_run *lr, const struct effect *fx)
{
	const struct plan_resource *pr = &lr->plan.resources[fx->index];
	struct message_extend m = {clock_wall_ms() + fx->lifetime_ms};
	struct buf text;

	buf_init(&text, MESSAGE_HELLO_MAX);
	message_extend_put(&m, &text);
	if (pr->node >= 0)
		agent_send(lr, pr->node, FRAME_EXTEND, buf_str(&text));
	for (int rank = 0; pr->carries_many && rank < lr->plan.crew.n; rank++)
		if (lr->plan.resource_of[rank] == fx->index)
			agent_send(lr, rank, FRAME_EXTEND, buf_str(&text));
	buf_release(&text);
}

void effects_do(struct live_run *lr, const struct effects *fx)
{
	VEC(struct effect) together = {0};

	for (size_t i = 0; i < fx->n; i++) {
		const struct effect *e = &fx->v[i];

		/* The master leaves: the next one carries out the effect.  The end of a run is
		 * reported only once, so it is handled now. */
		if (!lr->m->pools && e->kind != FX_ENDED)
			continue;
		if (e->kind == FX_EXTEND)
			extend_machines(lr, e);
		const struct driver *d =
			e->asked ? driver_for(lr->plan.resources[e->index].kind) : NULL;
		if (d && many_of(d, e->kind))
			*vec_push(&together) = *e;
		else
			effect_do(lr, e);
	}
	call_many(lr, together.v, together.n);
	vec_release(&together);
}
