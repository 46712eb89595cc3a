/* Effects out: resources to their driver on a worker, nodes to their agent. */
#include "master/effects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"
#include "driver/driver.h"
#include "link/message.h"
#include "master/agents.h"
#include "master/internal.h"
#include "master/messages.h"
#include "master/round.h"
#include "master/runs.h"
#include "master/upkeep/finish.h"
#include "master/upkeep/trash.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define CALL_THREADS 6 /* of each pool of drivers */
#define CALL_MS 60000  /* for one call, from when it begins */

struct driver_call {
	struct live_run *lr;
	struct effect fx;
	const struct driver *driver;
	struct driver_row row;
	char token[65];
	enum outcome outcome;
};

static void call_run(void *arg, const struct deadline *deadline)
{
	struct driver_call *c = arg;
	const struct driver *d = c->driver;

	c->row.deadline = deadline;
	if (!d) { /* a row of another version: it stays until a regatta comes that knows the kind */
		err_set(&c->row.err, ERR_UNAVAILABLE, "this regatta has no driver for %s",
			c->row.kind);
		c->outcome = OUTCOME_UNSURE;
		return;
	}
	switch (c->fx.kind) {
	case FX_CREATE:
		c->outcome = d->create(&c->row);
		return;
	case FX_FIND:
		c->outcome = d->find(&c->row);
		return;
	case FX_OBSERVE:
		c->outcome = d->observe(&c->row);
		return;
	case FX_DESTROY:
		c->outcome = d->destroy(&c->row);
		return;
	case FX_PREPARE:
	case FX_START:
	case FX_STOP:
	case FX_RELEASE:
	case FX_ENDED:
		return;
	}
}

static void tell_outcome(const struct driver_call *c)
{
	struct event ev = {
		.kind = EV_RES_ANSWER,
		.index = c->fx.index,
		.attempt = c->fx.attempt,
		.asked = c->fx.asked,
		.outcome = c->outcome,
		.identity_checked = c->row.identity_checked,
		.err_kind = c->row.err.kind,
	};

	snprintf(ev.text, sizeof(ev.text), "%.199s",
		 core_answer_has_id(&ev) ? c->row.id : c->row.err.msg);
	run_event(c->lr, &ev);
}

static void call_done(void *arg, enum err_kind how)
{
	struct driver_call *c = arg;

	c->lr->busy--;
	if (how == ERR_NONE) /* a call that was dropped is made by the next master */
		tell_outcome(c);
	live_run_done(c->lr);
	free(c);
}

static void call_driver(struct live_run *lr, const struct effect *fx)
{
	const struct plan_resource *pr = &lr->plan.resources[fx->index];
	const struct core_resource *res = &lr->core->resources[fx->index];
	struct driver_call *c = xcalloc(1, sizeof(*c));

	c->lr = lr;
	c->fx = *fx;
	c->driver = driver_for(pr->kind);
	c->row = (struct driver_row){
		.kind = pr->kind,
		.name = pr->name,
		.install = store_install(lr->m->store),
		.run = lr->row.id,
		.role = pr->node >= 0
				? lr->plan.crew.roles[lr->plan.crew.members[pr->node].role].name
				: "",
		.attempt = res->attempt,
		.spec = pr->spec,
		.token = c->token,
	};
	memcpy(c->row.id, res->id, sizeof(c->row.id));
	if (pr->node >= 0)
		node_token(lr, lr->plan.crew.members[pr->node].name, c->token);
	lr->busy++;
	struct workers *pool =
		pools_get(lr->m->pools, c->driver ? c->driver->pool : "none", CALL_THREADS);

	workers_submit(pool, call_run, call_done, c, CALL_MS);
}

static void to_agent(struct live_run *lr, const struct effect *fx)
{
	struct buf text;

	buf_init(&text, FRAME_MAX_PAYLOAD);
	switch (fx->kind) {
	case FX_PREPARE:
		node_inputs_put(lr, fx->index, &text);
		agent_send(lr, fx->index, FRAME_INPUTS, buf_str(&text));
		break;
	case FX_START:
		if (lr->core->nodes[fx->index].preparing)
			break; /* it came back in this round: the start follows its "ready" */
		node_start_put(lr, fx->index, fx->attempt, &text);
		agent_send(lr, fx->index, FRAME_START, buf_str(&text));
		break;
	case FX_STOP:
		message_signal_put(&(struct message_signal){fx->hurry}, &text);
		agent_send(lr, fx->index, FRAME_SIGNAL, buf_str(&text));
		break;
	case FX_RELEASE:
		agent_send(lr, fx->index, FRAME_RELEASE, STR(MESSAGE_EMPTY));
		break;
	case FX_CREATE:
	case FX_FIND:
	case FX_OBSERVE:
	case FX_DESTROY:
	case FX_ENDED:
		break; /* not for an agent */
	}
	buf_release(&text);
}

void effect_do(struct live_run *lr, const struct effect *fx)
{
	/* Leaving: the next master hands it out again; only the end of a run comes once. */
	if (!lr->m->pools && fx->kind != FX_ENDED)
		return;
	switch (fx->kind) {
	case FX_CREATE:
	case FX_FIND:
	case FX_OBSERVE:
	case FX_DESTROY:
		call_driver(lr, fx);
		return;
	case FX_PREPARE:
	case FX_START:
	case FX_STOP:
	case FX_RELEASE:
		to_agent(lr, fx);
		return;
	case FX_ENDED:
		lr->ended = true;
		trash_run_ended(lr->m->trash);
		store_disk_reserve_ease(
			lr->m->store); /* its records are small, and are the last of it */
		run_write_files(lr);
		return;
	}
}
