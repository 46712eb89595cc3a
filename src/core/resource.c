/*
 * A resource of the ledger: intent -> sent -> live -> deleting -> gone.
 *
 * `sent` means that a create may have been acted on.  Only a clear refusal takes it back to
 * `intent`, and only proof makes it `gone`.
 */
#include "core/internal.h"

#include <stdio.h>
#include <string.h>

#include "core/handover.h"
#include "core/ladder.h"

void res_known(struct step *s, int index)
{
	struct core_resource *res = &s->r->resources[index];

	res->known_at_ms = s->now;
	res->absent_looks = 0;
}

static void ask(struct step *s, enum res_question question, int index)
{
	static const enum effect_kind effects[RES_QUESTIONS] = {
		[ASKED_CREATE] = FX_CREATE,   [ASKED_FIND] = FX_FIND,
		[ASKED_OBSERVE] = FX_OBSERVE, [ASKED_EXTEND] = FX_EXTEND,
		[ASKED_DESTROY] = FX_DESTROY,
	};
	struct core_resource *res = &s->r->resources[index];

	if (res->asked || calls_wait(s, index))
		return;
	res->asked = question;
	res->ask_no++;
	res->asked_at_ms = s->now;
	res->retry_at_ms = 0;
	if (question == ASKED_CREATE)
		res_known(s, index);
	res_touch(s, index);
	effect_add(s, effects[question], index);
}

/*
 * An answer "absent" proves something only if it was asked when no create sent earlier could
 * still arrive.  The time of the answer does not matter: it may have been slow.
 */
static bool asked_late_enough(const struct core_resource *res)
{
	return res->asked_at_ms >= res->sure_at_ms;
}

/* A new batch number; creates of a group that are sent in one step share it. */
static int new_batch(struct step *s, int index)
{
	struct core_run *r = s->r;
	struct core_group *g = &r->groups[r->plan->resources[index].group];

	r->resources[index].batch_place = 0;
	if (r->plan->resources[index].group == 0)
		return ++r->batches;
	if (g->batch_step != r->steps) {
		g->batch = ++r->batches;
		g->batch_size = 0;
	}
	g->batch_step = r->steps;
	r->resources[index].batch_place = g->batch_size++;
	return g->batch;
}

int res_next_node(const struct core_run *r, int index, int rank)
{
	const struct plan_resource *pr = &r->plan->resources[index];

	if (!pr->carries_many)
		return rank < 0 ? pr->node : -1;
	while (++rank < r->plan->crew.n)
		if (r->plan->resource_of[rank] == index)
			return rank;
	return -1;
}

bool res_may_exist(enum res_state state)
{
	return state == RES_SENT || state == RES_LIVE || state == RES_DELETING;
}

bool res_is_needed(const struct core_run *r, int index)
{
	int node = r->plan->resources[index].node;

	return node < 0 || !r->nodes[node].asleep;
}

/* True if the node of the resource became `wanted` while this machine may still exist. */
static bool taken_back(const struct core_run *r, int index)
{
	int node = r->plan->resources[index].node;

	return node >= 0 && r->nodes[node].state == NODE_WANTED &&
	       res_may_exist(r->resources[index].state);
}

bool res_wanted(const struct core_run *r, int index)
{
	return r->phase >= RUN_PROVISIONING && r->phase <= RUN_RUNNING &&
	       r->resources[index].state == RES_INTENT && r->needs_left[index] == 0 &&
	       res_is_needed(r, index);
}

void res_create(struct step *s, int index)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];

	if (res->state == RES_INTENT) {
		if (ladder_waits(r, index) || calls_wait(s, index))
			return;
		res->attempt++;
		res->batch = new_batch(s, index);
		r->enrolments -= res->enrolled;
		res->enrolled = 0;
		if (r->plan->resources[index].node >= 0)
			res->incarnation = r->nodes[r->plan->resources[index].node].incarnation;
		res_set_state(s, index, RES_SENT);
	}
	for (int rank = res_next_node(r, index, -1); rank >= 0;
	     rank = res_next_node(r, index, rank))
		if (r->nodes[rank].state == NODE_WANTED && !r->nodes[rank].asleep)
			node_set_state(s, rank, NODE_LAUNCHING);
	ask(s, ASKED_CREATE, index);
}

void res_adopt(struct step *s, int index)
{
	const struct plan_resource *pr = &s->r->plan->resources[index];

	if (!pr->id)
		return;
	if (pr->prices.n)
		s->r->resources[index].paid_from_ms = s->now > pr->age_ms ? s->now - pr->age_ms : 1;
	res_touch(s, index);
}

void res_observe(struct step *s, int index)
{
	if (s->r->resources[index].state == RES_LIVE)
		ask(s, ASKED_OBSERVE, index);
}

void res_extend(struct step *s, int index)
{
	if (s->r->resources[index].state == RES_LIVE)
		ask(s, ASKED_EXTEND, index);
}

static void forget_trouble(struct step *s, int index)
{
	struct core_resource *res = &s->r->resources[index];

	res->tries = 0;
	res->why[0] = '\0';
	res->why_kind = ERR_NONE;
	res_touch(s, index);
}

static void destroy(struct step *s, int index)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];

	if (r->users_left[index] > 0)
		return; /* called again when its last user is gone */
	if (res->state == RES_LIVE) {
		forget_trouble(s, index); /* what its machines have waited for */
		res_set_state(s, index, RES_DELETING);
	}
	ask(s, ASKED_DESTROY, index);
}

void res_clean_needs(struct step *s, int index)
{
	const struct core_run *r = s->r;
	const struct plan_resource *pr = &r->plan->resources[index];

	for (int k = 0; k < pr->nneeds; k++)
		if (r->users_left[pr->needs[k]] == 0 &&
		    (r->phase == RUN_CLEANING || r->resources[pr->needs[k]].state == RES_DELETING))
			res_clean(s, pr->needs[k]);
}

void res_clean(struct step *s, int index)
{
	switch (s->r->resources[index].state) {
	case RES_INTENT:
		res_set_state(s, index, RES_GONE);
		res_clean_needs(s, index);
		return;
	case RES_SENT:
		ask(s, ASKED_FIND, index);
		return;
	case RES_LIVE:
		if (s->r->plan->resources[index].shared)
			run_check_clean(s); /* a shared resource stays */
		else
			destroy(s, index);
		return;
	case RES_DELETING:
		destroy(s, index);
		return;
	case RES_GONE:
		return;
	}
}

/* Nothing of the resource exists, and the run goes on: back to `intent`. */
static void to_intent(struct step *s, int index)
{
	res_set_state(s, index, RES_INTENT);
	res_clean_needs(s, index);
	ladder_follow(s, index);
}

void res_release(struct step *s, int index)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];

	for (int k = r->users_at[index]; k < r->users_at[index + 1]; k++)
		res_release(s, r->users[k]);
	/* It does not exist, is being destroyed, or is `sent`: created() then finds that it is
	 * withdrawn. */
	if (res->state != RES_LIVE)
		return;
	for (int rank = res_next_node(r, index, -1); rank >= 0;
	     rank = res_next_node(r, index, rank))
		node_unbind(s, rank);
	res->tries = 0;
	res_set_state(s, index, RES_DELETING);
	destroy(s, index);
}

void res_renew(struct step *s, int index)
{
	if (s->r->resources[index].state == RES_LIVE)
		res_release(s, index);
	else if (res_wanted(s->r, index))
		res_create(s, index);
}

/* True if the resource is to be destroyed as soon as it is live: a resource that it needs is
 * going, its group has another choice, or its node became `wanted`. */
static bool withdrawn(const struct core_run *r, int index)
{
	return !run_stopping(r) &&
	       (r->needs_left[index] > 0 || ladder_left_behind(r, index) || taken_back(r, index));
}

static void gone(struct step *s, int index)
{
	if (s->r->phase == RUN_CLEANING) {
		res_set_state(s, index, RES_GONE);
		/* What the other master has made may be in use by, or in, what its machine needs. */
		if (index != s->r->remote.resource || !handover_sweeps(s))
			res_clean_needs(s, index);
		run_check_clean(s);
		return;
	}
	s->r->resources[index].id[0] = '\0';
	to_intent(s, index);
	if (res_wanted(s->r, index) && !s->r->resources[index].retry_at_ms)
		res_create(s, index);
}

static void created(struct step *s, int index, const struct event *ev)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];

	if (core_answer_has_id(ev) && ev->text[0])
		enrol_take_id(s, index, ev->text);
	res->unsure = false;
	res->refused_kind = ERR_NONE;
	res_known(s, index);
	if (res->state == RES_SENT && withdrawn(r, index)) {
		res_set_state(s, index, RES_LIVE);
		res_release(s, index);
		return;
	}
	forget_trouble(s, index);
	if (res->state == RES_SENT) {
		res_set_state(s, index, RES_LIVE);
		for (int k = r->users_at[index]; k < r->users_at[index + 1]; k++)
			if (res_wanted(r, r->users[k]))
				res_create(s, r->users[k]);
		for (int rank = res_next_node(r, index, -1); rank >= 0;
		     rank = res_next_node(r, index, rank))
			node_awaited(s, rank);
		run_maybe_advance(s);
	}
	if (r->phase == RUN_CLEANING)
		res_clean(s, index);
}

/* A create that got no answer was given up: what it may still make on a machine that was silent is no machine of the
 * node any more. */
static void outdate_node(struct step *s, int index)
{
	int rank = s->r->plan->resources[index].node;

	if (rank < 0 || s->r->nodes[rank].state != NODE_LAUNCHING)
		return;
	s->r->nodes[rank].incarnation++;
	node_touch(s, rank);
}

/* It is certain that the create was not acted on, or that nobody is to act on it any more. */
static void not_created(struct step *s, int index, enum err_kind kind, const char *why)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];
	const struct plan_resource *pr = &r->plan->resources[index];

	if (res->state == RES_SENT)
		enrol_machine_gone(s, index);
	bool waits = withdrawn(r, index);    /* it is not to be created again now, */
	bool renewed = taken_back(r, index); /* unless its node needs another machine */

	if (res->unsure)
		outdate_node(s, index);
	res->unsure = false;
	res->refused_kind = ERR_NONE;
	if (res->state == RES_SENT)
		to_intent(s, index);
	if (r->phase == RUN_CLEANING) {
		res_clean(s, index);
		run_check_clean(s);
		return;
	}
	if (run_stopping(r) && res->state == RES_INTENT)
		return;
	if (waits && (kind == ERR_NONE || !kind_is_fatal(kind))) {
		if (renewed && res_wanted(r, index) && !res->retry_at_ms)
			res_create(s, index);
		/* It is created when its group moves on, or when what it needs is live. */
		return;
	}
	if (!kind_is_fatal(kind) || run_stopping(r)) {
		ladder_refused(s, index, kind, why);
		return;
	}
	run_end_running(s, VERDICT_FAILED, kind, pr->node, "create %s '%s': %s", pr->kind, pr->name,
			why);
}

/*
 * If an earlier create with the same token got no answer, the refusal of this one proves nothing
 * about it: the resource is searched for, and counts as not created only if it is not found.  Where
 * that takes minutes, a refusal that passes is followed by the same create, which makes nothing
 * twice.
 */
static void refused(struct step *s, int index, const struct event *ev)
{
	struct core_resource *res = &s->r->resources[index];
	enum err_kind kind = ev->outcome == OUTCOME_ABSENT ? ERR_UNAVAILABLE : ev->err_kind;

	if (res->state != RES_SENT || !res->unsure) {
		not_created(s, index, kind, ev->text);
		return;
	}
	if (s->r->plan->resources[index].settle_ms && ev->outcome == OUTCOME_REFUSED &&
	    kind_passes(kind) && s->r->phase < RUN_CLEANING) {
		retry_later(s, index, kind, ev->text);
		return;
	}
	res->refused_kind = res->why_kind = kind;
	snprintf(res->why, sizeof(res->why), "%.159s", ev->text);
	ask(s, ASKED_FIND, index);
}

static void mark_unsure(struct step *s, int index)
{
	struct core_resource *res = &s->r->resources[index];

	res->sure_at_ms = s->now + s->r->plan->resources[index].late_ms;
	if (res->state != RES_SENT)
		return;
	res->unsure = true;
	res_touch(s, index);
}

/* The open question is answered: a clean-up that waited for it goes on. */
static void go_on(struct step *s, int index, const struct event *ev)
{
	(void)ev;
	if (s->r->phase == RUN_CLEANING || s->r->resources[index].state == RES_DELETING)
		res_clean(s, index);
}

/* The driver does not know; the kind of its error is kept, so that users see "denied". */
static void unsure(struct step *s, int index, const struct event *ev)
{
	if (ev->asked == ASKED_CREATE)
		mark_unsure(s, index);
	retry_later(s, index, ev->err_kind ? ev->err_kind : ERR_UNAVAILABLE, ev->text);
}

/* Observations closer together than this count as one. */
static int64_t look_gap_ms(const struct plan_resource *pr)
{
	return pr->absent_looks > 1 ? pr->settle_ms / pr->absent_looks : 0;
}

/*
 * True if "absent" is proof: the right account answered, when no create could still arrive, and
 * either it has seen the resource ended, or a created resource would be visible and was not seen as
 * often as the kind demands.  Otherwise the resource is searched for again.
 */
static bool proves_absence(struct step *s, int index, const struct event *ev)
{
	struct core_resource *res = &s->r->resources[index];
	const struct plan_resource *pr = &s->r->plan->resources[index];
	int64_t gap_ms = look_gap_ms(pr);

	if (!ev->identity_checked) {
		retry_later(s, index, ERR_UNAVAILABLE, "not found, but perhaps in another account");
		return false;
	}
	if (ev->ended && asked_late_enough(res))
		return true;
	/* Between two observations so far apart it may have existed. */
	if (pr->settle_ms && res->asked_at_ms > res->absent_at_ms + pr->settle_ms)
		res->absent_looks = 0;
	if (!res->absent_looks || res->asked_at_ms >= res->absent_at_ms + gap_ms) {
		res->absent_looks++;
		res->absent_at_ms = res->asked_at_ms;
	}
	if (asked_late_enough(res) && res->asked_at_ms >= res->known_at_ms + pr->settle_ms &&
	    res->absent_looks >= pr->absent_looks)
		return true;
	retry_after(s, index, gap_ms ? gap_ms : retry_backoff_ms(s, index, ERR_UNAVAILABLE),
		    ERR_UNAVAILABLE,
		    res->state == RES_SENT ? "not found, but the create may still take effect"
					   : "not found any more; looking again to be certain");
	return false;
}

/* True if the resource carries a node that has not handed over everything, or the master that has the
 * run. */
static bool carries_expected(const struct core_run *r, int index)
{
	if (index == r->remote.resource && (handover_is_open(r) || handover_awaits_results(r)))
		return true;
	for (int rank = res_next_node(r, index, -1); rank >= 0;
	     rank = res_next_node(r, index, rank))
		if (!r->nodes[rank].settled)
			return true;
	return false;
}

static void absent(struct step *s, int index, const struct event *ev)
{
	struct core_run *r = s->r;
	bool live = r->resources[index].state == RES_LIVE;

	/* A settled node has handed over everything: the loss of its machine does not matter. */
	if (live && (r->phase >= RUN_CLEANING || !carries_expected(r, index))) {
		go_on(s, index, ev);
		return;
	}
	if (!proves_absence(s, index, ev))
		return;
	if (live) {
		for (int rank = res_next_node(r, index, -1); rank >= 0;
		     rank = res_next_node(r, index, rank))
			if (!r->nodes[rank].settled)
				node_machine_gone(s, rank, ev->err_kind, ev->ended ? ev->text : "");
		if (index == r->remote.resource)
			handover_machine_gone(s, ev->err_kind, ev->text);
		run_check_collected(s);
	} else if (r->phase == RUN_CLEANING || r->resources[index].state == RES_DELETING) {
		gone(s, index);
	} else {
		char why[sizeof(r->resources[index].why)];

		memcpy(why, r->resources[index].why, sizeof(why));
		not_created(s, index, r->resources[index].refused_kind, why);
	}
}

/* A create that was sent before the master's restart may still arrive, and create the resource
 * again. */
static void destroyed(struct step *s, int index, const struct event *ev)
{
	(void)ev;
	if (!asked_late_enough(&s->r->resources[index]))
		retry_later(s, index, ERR_UNAVAILABLE,
			    "deleted, but an earlier create may still take effect");
	else
		gone(s, index);
}

/* The node whose machine, of this resource, is the reason why the boot takes too long; -1: none is. */
static int unheard_node(const struct core_run *r, int index)
{
	if (!r->silent_ms || run_stopping(r))
		return -1;
	for (int rank = res_next_node(r, index, -1); rank >= 0;
	     rank = res_next_node(r, index, rank))
		if (r->nodes[rank].state == NODE_LAUNCHING && !r->nodes[rank].asleep)
			return rank;
	return -1;
}

/* The machines of the resource are there, or will be; "held" says what they wait for, maybe for days. */
static void note_wait(struct step *s, int index, const struct event *ev)
{
	struct core_resource *res = &s->r->resources[index];
	bool waits = ev->outcome == OUTCOME_HELD && ev->text[0];
	char why[sizeof(res->why)];

	snprintf(why, sizeof(why), "%.159s", ev->text);
	if (waits && res->why_kind == ev->err_kind && strcmp(res->why, why) == 0)
		return;
	if (res->why_kind)
		forget_trouble(s, index);
	if (!waits)
		return;
	res->why_kind = ev->err_kind;
	memcpy(res->why, why, sizeof(why));
	res_touch(s, index);
}

static void alive(struct step *s, int index, const struct event *ev)
{
	struct core_run *r = s->r;

	res_known(s, index);
	note_wait(s, index, ev);
	go_on(s, index, ev);
	if (ev->queued)
		run_queued(s);
	int rank = unheard_node(r, index);

	if (rank < 0)
		return;
	if (r->resources[index].asked_at_ms >= r->silent_ms)
		run_unheard(s, rank, ev->outcome == OUTCOME_HELD ? ev->text : "");
	else
		res_observe(s, index); /* this time for its console */
}

/* What could not be extended is extended an hour later: it has time for many more tries. */
static void extended(struct step *s, int index, const struct event *ev)
{
	if (s->r->resources[index].why_kind)
		forget_trouble(s, index);
	go_on(s, index, ev);
}

static void mend(struct step *s, int index, const struct event *ev)
{
	res_known(s, index);
	if (s->r->resources[index].state == RES_LIVE && s->r->phase < RUN_CLEANING)
		res_create(s, index);
	else
		go_on(s, index, ev);
}

static void held(struct step *s, int index, const struct event *ev)
{
	res_known(s, index);
	retry_later(s, index, ev->err_kind, ev->text);
}

/*
 * What an answer means depends on the question; every pair is in the table.  "Refused" is an
 * answer to a create only: a driver that may not search or delete does not know whether the
 * resource exists.
 */
typedef void answer_fn(struct step *s, int index, const struct event *ev);
static answer_fn *const answers[RES_QUESTIONS][OUTCOMES] = {
	/*		    done,    refused, unsure, absent, broken, held */
	/* "absent" after a create: the resource that this token created earlier is gone, and a
	 * new token is needed. */
	[ASKED_CREATE] = {created, refused, unsure, refused, unsure, unsure},
	[ASKED_FIND] = {created, unsure, unsure, absent, created, created},
	/* "done": node_tick() asks again while the node stays silent. */
	[ASKED_OBSERVE] = {alive, unsure, unsure, absent, mend, alive},
	[ASKED_EXTEND] = {extended, unsure, unsure, unsure, unsure, unsure},
	[ASKED_DESTROY] = {destroyed, unsure, unsure, absent, held, held},
};

/* One of the machines that the resource carries is gone: only the node on it is lost.  A machine that its
 * provider does not hear (ERR_TIMEOUT) may still run the job: it counts as lost if its agent is not heard either,
 * unless its rank would start again, which must wait until the job has stopped itself (timeouts.lost). */
static void member_gone(struct step *s, const struct event *ev)
{
	struct core_run *r = s->r;

	struct str why = str_from(ev->text), machine = str_cut(&why, ' ');

	if (!machine.n || r->phase >= RUN_CLEANING)
		return;
	for (int rank = res_next_node(r, ev->index, -1); rank >= 0;
	     rank = res_next_node(r, ev->index, rank))
		if (str_is(machine, r->nodes[rank].identity) && !r->nodes[rank].settled) {
			if (ev->err_kind == ERR_TIMEOUT &&
			    (r->nodes[rank].connected || core_lost_ms(r, rank)))
				return;
			node_machine_gone(s, rank, ev->err_kind, why.p ? why.p : "");
			run_check_collected(s);
			return;
		}
}

static void answered(struct step *s, const struct event *ev)
{
	struct core_resource *res = &s->r->resources[ev->index];
	enum res_question asked = res->asked;

	/* A repeated answer, or one to an earlier question. */
	if (!asked || ev->asked != asked || ev->attempt != res->ask_no)
		return;
	res->asked = ASKED_NOTHING;
	calls_answered(s, ev);
	answer_fn *take = answers[asked][ev->outcome];
	/* Asked before the clean-up: whatever the answer says, the resource is to be destroyed. */
	if (res->state == RES_DELETING && asked != ASKED_DESTROY && take != unsure)
		take = go_on;
	take(s, ev->index, ev);
}

void res_event(struct step *s, const struct event *ev)
{
	if (ev->kind == EV_RES_MEMBER)
		member_gone(s, ev);
	else
		answered(s, ev);
}

/* Asks the question that the state of the resource needs. */
static void ask_again(struct step *s, int index)
{
	struct core_run *r = s->r;

	if (r->phase == RUN_CLEANING) {
		res_clean(s, index);
		return;
	}
	switch (r->resources[index].state) {
	case RES_INTENT:
		if (res_wanted(r, index))
			res_create(s, index);
		return;
	case RES_SENT:
		if (r->resources[index].refused_kind || withdrawn(r, index))
			ask(s, ASKED_FIND, index);
		else if (!run_stopping(r))
			res_create(s, index);
		return;
	case RES_LIVE:
		for (int rank = res_next_node(r, index, -1); rank >= 0;
		     rank = res_next_node(r, index, rank))
			if (!r->nodes[rank].connected && !r->nodes[rank].settled) {
				res_observe(s, index);
				return;
			}
		if (index == r->remote.resource && !r->remote.gone &&
		    (handover_is_open(r) || handover_awaits_results(r)))
			res_observe(s, index);
		return;
	case RES_DELETING:
		destroy(s, index);
		return;
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

void res_capacity(struct step *s, int index)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];

	if (res->state != RES_INTENT || res->why_kind != ERR_CAPACITY || !res->retry_at_ms)
		return;
	r->groups[r->plan->resources[index].group].retry_at_ms = s->now;
	res->retry_at_ms = s->now;
	res_tick(s, index);
}

void res_resume(struct step *s, int index)
{
	struct core_resource *res = &s->r->resources[index];

	res->asked = ASKED_NOTHING;
	res_known(s, index);
	/* The master that asked is gone, but its call may still arrive. */
	if (res->state != RES_INTENT && res->state != RES_GONE)
		mark_unsure(s, index);
	if (res->state == RES_LIVE)
		return; /* node_tick() observes the resource of a silent node */
	if (res->state == RES_INTENT && s->r->phase < RUN_CLEANING)
		return; /* run_create_slice() or, when its pause is over, res_tick() creates it */
	if (res->retry_at_ms)
		tick_want(s, res->retry_at_ms);
	else
		ask_again(s, index);
}
