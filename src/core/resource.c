/*
 * A resource of the ledger: intent -> sent -> live -> deleting -> gone.
 *
 * "Sent" means that a create may have been acted on; only a clear refusal takes it
 * back to intent, and only proof makes it gone.
 */
#include "core/internal.h"

#include <stdio.h>

static int64_t backoff_ms(struct step *s, struct core_resource *res)
{
	int64_t span = BACKOFF_FIRST_MS;

	for (int i = 0; i < res->tries && span < BACKOFF_MAX_MS; i++)
		span *= 2;
	if (span > BACKOFF_MAX_MS)
		span = BACKOFF_MAX_MS;
	res->tries++;
	run_touch(s); /* the generator's state */
	return span / 2 + (int64_t)rng_below(&s->r->rng, (uint64_t)span / 2 + 1);
}

static void retry_later(struct step *s, int index, enum err_kind kind, const char *why)
{
	struct core_resource *res = &s->r->resources[index];

	res->why_kind = kind;
	snprintf(res->why, sizeof(res->why), "%.159s", why);
	res->retry_at_ms = s->now + backoff_ms(s, res);
	res_touch(s, index);
	tick_want(s, res->retry_at_ms);
}

static void ask(struct step *s, enum res_question question, int index)
{
	static const enum effect_kind effects[RES_QUESTIONS] = {
		[ASKED_CREATE] = FX_CREATE,
		[ASKED_FIND] = FX_FIND,
		[ASKED_OBSERVE] = FX_OBSERVE,
		[ASKED_DESTROY] = FX_DESTROY,
	};
	struct core_resource *res = &s->r->resources[index];

	if (res->asked)
		return;
	res->asked = question;
	res->ask_no++;
	res->asked_at_ms = s->now;
	res->retry_at_ms = 0;
	res_touch(s, index);
	effect_add(s, effects[question], index);
}

/*
 * "It is not there" proves something only if it was asked when no create that was sent earlier
 * could still arrive.  When the answer came does not matter: it may have been slow.
 */
static bool asked_late_enough(const struct core_resource *res)
{
	return res->asked_at_ms >= res->sure_at_ms;
}

void res_create(struct step *s, int index)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];
	int node = r->plan->resources[index].node;

	if (res->state == RES_INTENT) {
		res->attempt++; /* a token belongs to one attempt and its exact parameters */
		res_set_state(s, index, RES_SENT);
	}
	if (node >= 0 && r->nodes[node].state == NODE_WANTED)
		node_set_state(s, node, NODE_LAUNCHING);
	ask(s, ASKED_CREATE, index);
}

void res_observe(struct step *s, int index)
{
	if (s->r->resources[index].state == RES_LIVE)
		ask(s, ASKED_OBSERVE, index);
}

static void destroy(struct step *s, int index)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];

	if (r->users_left[index] > 0)
		return; /* comes again when the last of them is gone */
	if (res->state == RES_LIVE) {
		res->tries = 0;
		res_set_state(s, index, RES_DELETING);
	}
	ask(s, ASKED_DESTROY, index);
}

void res_clean(struct step *s, int index)
{
	struct core_run *r = s->r;
	const struct plan_resource *pr = &r->plan->resources[index];

	switch (r->resources[index].state) {
	case RES_INTENT:
		res_set_state(s, index, RES_GONE);
		break;
	case RES_SENT:
		ask(s, ASKED_FIND, index);
		return;
	case RES_LIVE:
	case RES_DELETING:
		destroy(s, index);
		return;
	case RES_GONE:
		return;
	}
	for (int k = 0; k < pr->nneeds; k++)
		if (r->users_left[pr->needs[k]] == 0)
			res_clean(s, pr->needs[k]);
}

static void gone(struct step *s, int index)
{
	struct core_run *r = s->r;
	const struct plan_resource *pr = &r->plan->resources[index];

	res_set_state(s, index, RES_GONE);
	for (int k = 0; k < pr->nneeds; k++)
		if (r->users_left[pr->needs[k]] == 0)
			res_clean(s, pr->needs[k]);
	run_check_clean(s);
}

static void created(struct step *s, int index, const struct event *ev)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];

	if (ev->text[0])
		snprintf(res->id, sizeof(res->id), "%.63s", ev->text);
	res->unsure = false;
	res->tries = 0;
	res->why[0] = '\0';
	res->why_kind = ERR_NONE;
	res_touch(s, index);
	if (res->state == RES_SENT) {
		res_set_state(s, index, RES_LIVE);
		for (int k = r->users_at[index]; k < r->users_at[index + 1]; k++)
			if (--r->needs_left[r->users[k]] == 0 && r->phase == RUN_PROVISIONING)
				res_create(s, r->users[k]);
		if (r->plan->resources[index].node >= 0)
			node_awaited(s, r->plan->resources[index].node);
		run_maybe_advance(s);
	}
	if (r->phase == RUN_CLEANING)
		res_clean(s, index);
}

static bool worth_retrying(enum err_kind kind)
{
	switch (kind) {
	case ERR_CAPACITY:
	case ERR_THROTTLED:
	case ERR_TIMEOUT:
	case ERR_UNAVAILABLE:
	case ERR_IO:
		return true;
	case ERR_NONE:
	case ERR_INVALID:
	case ERR_NOT_FOUND:
	case ERR_CONFLICT:
	case ERR_DENIED:
	case ERR_QUOTA:
	case ERR_PROTOCOL:
	case ERR_CANCELLED:
		return false;
	}
	return false;
}

static void refused(struct step *s, int index, const struct event *ev)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];
	const struct plan_resource *pr = &r->plan->resources[index];

	if (res->state == RES_SENT && !asked_late_enough(res)) {
		retry_later(s, index, ev->err_kind, ev->text); /* the earlier call may still win */
		return;
	}
	res->unsure = false;
	if (res->state == RES_SENT)
		res_set_state(s, index, RES_INTENT);
	if (r->phase == RUN_CLEANING) {
		res_clean(s, index);
		run_check_clean(s);
		return;
	}
	if (run_stopping(r) && res->state == RES_INTENT)
		return;
	if (worth_retrying(ev->err_kind) || run_stopping(r)) {
		retry_later(s, index, ev->err_kind, ev->text);
		return;
	}
	run_end_running(s, VERDICT_FAILED, ev->err_kind, pr->node, "create %s '%s': %s", pr->kind,
			pr->name, ev->text);
}

static void mark_unsure(struct step *s, int index)
{
	struct core_resource *res = &s->r->resources[index];

	res->unsure = true;
	res->sure_at_ms = s->now + s->r->plan->resources[index].late_ms;
	res_touch(s, index);
}

static void unsure(struct step *s, int index, const struct event *ev)
{
	struct core_resource *res = &s->r->resources[index];

	if (res->state == RES_SENT)
		mark_unsure(s, index);
	retry_later(s, index, ERR_UNAVAILABLE, ev->text);
}

static void absent(struct step *s, int index, const struct event *ev)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];
	int node = r->plan->resources[index].node;

	(void)ev;
	if (res->state == RES_SENT && r->phase == RUN_CLEANING) {
		if (!asked_late_enough(res))
			retry_later(s, index, ERR_UNAVAILABLE,
				    "not there yet, but it may still come");
		else
			gone(s, index);
	} else if (res->state == RES_LIVE && node >= 0 && r->phase < RUN_CLEANING &&
		   !r->nodes[node].settled) { /* a settled one has given all it had */
		node_lose(s, node, "its machine is gone");
		run_check_collected(s);
	}
}

/* A create that was sent before the master's restart may still make it again. */
static void destroyed(struct step *s, int index, const struct event *ev)
{
	(void)ev;
	if (!asked_late_enough(&s->r->resources[index]))
		retry_later(s, index, ERR_UNAVAILABLE, "deleted, but it may still come again");
	else
		gone(s, index);
}

/* While the clean-up waited for the answer nothing could be asked: now it can. */
static void go_on(struct step *s, int index, const struct event *ev)
{
	(void)ev;
	if (s->r->phase == RUN_CLEANING)
		res_clean(s, index);
}

static void mend(struct step *s, int index, const struct event *ev)
{
	if (s->r->resources[index].state == RES_LIVE && s->r->phase < RUN_CLEANING)
		res_create(s, index);
	else
		go_on(s, index, ev);
}

static void held(struct step *s, int index, const struct event *ev)
{
	retry_later(s, index, ev->err_kind, ev->text);
}

/*
 * What an answer means follows from what was asked.  A pair that is not here is one that no
 * driver gives: it proves nothing, and a clean-up asks again.
 */
#define ANSWER(kind) [kind - EV_RES_CREATED]
#define ANSWERS (EV_RES_HELD - EV_RES_CREATED + 1)
typedef void answer_fn(struct step *s, int index, const struct event *ev);
static answer_fn *const answers[RES_QUESTIONS][ANSWERS] = {
	[ASKED_CREATE] = {ANSWER(EV_RES_CREATED) = created, ANSWER(EV_RES_REFUSED) = refused,
			  ANSWER(EV_RES_UNSURE) = unsure},
	[ASKED_FIND] = {ANSWER(EV_RES_CREATED) = created, ANSWER(EV_RES_REFUSED) = refused,
			ANSWER(EV_RES_UNSURE) = unsure, ANSWER(EV_RES_ABSENT) = absent},
	/* ALIVE: node_tick asks again while the node stays silent */
	[ASKED_OBSERVE] = {ANSWER(EV_RES_REFUSED) = refused, ANSWER(EV_RES_UNSURE) = unsure,
			   ANSWER(EV_RES_ABSENT) = absent, ANSWER(EV_RES_ALIVE) = go_on,
			   ANSWER(EV_RES_BROKEN) = mend},
	[ASKED_DESTROY] = {ANSWER(EV_RES_UNSURE) = unsure, ANSWER(EV_RES_DESTROYED) = destroyed,
			   ANSWER(EV_RES_HELD) = held},
};

void res_event(struct step *s, const struct event *ev)
{
	struct core_resource *res = &s->r->resources[ev->index];
	enum res_question asked = res->asked;

	if (!asked || ev->attempt != res->ask_no)
		return; /* repeated, or an answer to something asked before */
	res->asked = ASKED_NOTHING;
	answer_fn *take = answers[asked][ev->kind - EV_RES_CREATED];
	/* Asked before the clean-up came to it: whatever it says, it is to be deleted. */
	if (res->state == RES_DELETING && asked != ASKED_DESTROY && take != unsure)
		take = go_on;
	(take ? take : go_on)(s, ev->index, ev);
}

/* What the state waits for, asked again. */
static void ask_again(struct step *s, int index)
{
	struct core_run *r = s->r;

	if (r->phase == RUN_CLEANING) {
		res_clean(s, index);
		return;
	}
	switch (r->resources[index].state) {
	case RES_INTENT:
		if (r->phase == RUN_PROVISIONING && r->needs_left[index] == 0)
			res_create(s, index);
		return;
	case RES_SENT:
		if (!run_stopping(r))
			res_create(s, index);
		return;
	case RES_LIVE: {
		int node = r->plan->resources[index].node;
		if (node >= 0 && !r->nodes[node].connected && !r->nodes[node].settled)
			res_observe(s, index);
		return;
	}
	case RES_DELETING:
	case RES_GONE:
		return;
	}
}

void res_tick(struct step *s, int index)
{
	struct core_resource *res = &s->r->resources[index];

	if (res->retry_at_ms && s->now >= res->retry_at_ms && !res->asked) {
		res->retry_at_ms = 0;
		res_touch(s, index);
		ask_again(s, index);
	}
	tick_want(s, res->retry_at_ms);
}

void res_resume(struct step *s, int index)
{
	struct core_resource *res = &s->r->resources[index];

	res->asked = ASKED_NOTHING;
	/* The master that asked is dead, its call perhaps not. */
	if (res->state == RES_SENT)
		mark_unsure(s, index);
	else if (res->state == RES_LIVE || res->state == RES_DELETING)
		res->sure_at_ms = s->now + s->r->plan->resources[index].late_ms;
	if (res->state == RES_LIVE)
		return; /* its node is looked at by node_tick */
	if (res->retry_at_ms)
		tick_want(s, res->retry_at_ms);
	else
		ask_again(s, index);
}
