/*
 * What follows from an error of a provider, by its kind: a growing pause, the next choice, the
 * end of the run, or fewer calls of the whole run.
 *
 * The choices of a resource (instance types and zones, in order of preference) are a ladder.
 * "No capacity" moves on to the next choice at once, and from the last to the first with a pause
 * that grows from round to round.  The resources of a group with choices are a gang: all have
 * the same choice.  When one of them cannot be created, the others are destroyed and proven gone
 * before the next choice is tried for all.
 */
#include "core/ladder.h"

#include <stdio.h>

#include "core/internal.h"

#define PAUSE_FIRST_MS 200
#define PAUSE_MAX_MS 30000
#define SLOW_FIRST_MS 500 /* for all calls of a run that is throttled */
#define SLOW_MAX_MS 30000

struct kind_rule {
	bool fatal;	  /* a create is not tried again */
	bool next_choice; /* another choice may have capacity */
	bool slows_all;	  /* every call of the run waits */
	bool passes;	  /* the same create may succeed later */
	int64_t first_ms, max_ms;
};

#define AGAIN .first_ms = PAUSE_FIRST_MS, .max_ms = PAUSE_MAX_MS
static const struct kind_rule rules[ERR_KINDS] = {
	[ERR_NONE] = {.fatal = true, AGAIN},
	[ERR_INVALID] = {.fatal = true, AGAIN},
	[ERR_NOT_FOUND] = {.fatal = true, AGAIN},
	[ERR_CONFLICT] = {.fatal = true, AGAIN},
	[ERR_DENIED] = {.fatal = true, AGAIN},
	[ERR_CAPACITY] = {.next_choice = true, AGAIN},
	[ERR_QUOTA] = {.fatal = true, AGAIN},
	[ERR_THROTTLED] = {.slows_all = true, .passes = true, AGAIN},
	[ERR_TIMEOUT] = {.passes = true, AGAIN},
	[ERR_UNAVAILABLE] = {.passes = true, AGAIN},
	[ERR_PROTOCOL] = {.fatal = true, AGAIN},
	[ERR_IO] = {AGAIN},
	[ERR_CANCELLED] = {.fatal = true, AGAIN},
	[ERR_PREEMPTED] = {AGAIN},
};

bool kind_is_fatal(enum err_kind kind)
{
	return rules[kind].fatal;
}

bool kind_passes(enum err_kind kind)
{
	return rules[kind].passes;
}

/* Shortens the pause by a random part of up to one half, so that many callers do not retry at
 * the same moment. */
static int64_t jitter(struct step *s, int64_t ms)
{
	run_touch(s); /* the state of the generator changes */
	return ms / 2 + (int64_t)rng_below(&s->r->rng, (uint64_t)ms / 2 + 1);
}

/* The first pause of the rule, doubled `times` times. */
static int64_t pause_ms(struct step *s, const struct kind_rule *rule, int times)
{
	int64_t span = rule->first_ms;

	for (int i = 0; i < times && span < rule->max_ms; i++)
		span *= 2;
	return jitter(s, span < rule->max_ms ? span : rule->max_ms);
}

int64_t retry_backoff_ms(struct step *s, int index, enum err_kind kind)
{
	return pause_ms(s, &rules[kind], s->r->resources[index].tries++);
}

/*
 * Waiting resources of a group are retried together, with one call: the first one of them
 * decides when, unless a later one may be tried in less than half the time.  Pauses of the same
 * length differ by less, because jitter takes at most half of them away.
 */
static int64_t with_its_group(struct step *s, int index, int64_t at)
{
	struct core_group *g = &s->r->groups[s->r->plan->resources[index].group];

	if (s->r->plan->resources[index].group == 0)
		return at;
	if (g->retry_at_ms <= s->now || g->retry_at_ms - s->now > 2 * (at - s->now))
		g->retry_at_ms = at;
	return g->retry_at_ms;
}

static void set_why(struct core_resource *res, enum err_kind kind, const char *why)
{
	res->why_kind = kind;
	snprintf(res->why, sizeof(res->why), "%.159s", why);
}

/* True while `why` has the reason of a refused create: a later error of a find or a destroy must
 * not replace it. */
static bool keeps_why(const struct core_run *r, const struct core_resource *res)
{
	return res->refused_kind ||
	       (res->state == RES_DELETING && r->phase < RUN_CLEANING && res->why_kind);
}

void retry_after(struct step *s, int index, int64_t ms, enum err_kind kind, const char *why)
{
	struct core_resource *res = &s->r->resources[index];
	int64_t at = s->now + ms;

	if (!keeps_why(s->r, res))
		set_why(res, kind, why);
	if (at < s->r->next_call_ms)
		at = s->r->next_call_ms;
	res->retry_at_ms = with_its_group(s, index, at);
	res_touch(s, index);
	tick_want(s, res->retry_at_ms);
}

void retry_later(struct step *s, int index, enum err_kind kind, const char *why)
{
	retry_after(s, index, retry_backoff_ms(s, index, kind), kind, why);
}

/* ---- throttling ---- */

bool calls_wait(struct step *s, int index)
{
	struct core_resource *res = &s->r->resources[index];

	if (s->now >= s->r->next_call_ms)
		return false;
	res->retry_at_ms = s->r->next_call_ms;
	res_touch(s, index);
	tick_want(s, res->retry_at_ms);
	return true;
}

void calls_answered(struct step *s, const struct event *ev)
{
	struct core_run *r = s->r;

	if (!rules[ev->err_kind].slows_all) {
		if (r->slow_ms == 0)
			return;
		r->slow_ms = r->slow_ms > SLOW_FIRST_MS ? r->slow_ms / 2 : 0;
		run_touch(s);
		return;
	}
	/* Asked before the run slowed down. */
	if (r->resources[ev->index].asked_at_ms <= r->slowed_at_ms)
		return;
	r->slowed_at_ms = s->now;
	r->slow_ms = r->slow_ms ? r->slow_ms * 2 : SLOW_FIRST_MS;
	if (r->slow_ms > SLOW_MAX_MS)
		r->slow_ms = SLOW_MAX_MS;
	r->next_call_ms = s->now + jitter(s, r->slow_ms);
}

/* ---- choices ---- */

static bool is_gang(const struct plan_resource *pr)
{
	return pr->group && pr->nchoices;
}

static struct core_group *group_of(const struct core_run *r, int index)
{
	return &r->groups[r->plan->resources[index].group];
}

/* True while the gang must have one choice in common: only until the run has all its resources. */
static bool gathers(const struct core_run *r, int index)
{
	return r->phase == RUN_PROVISIONING && is_gang(&r->plan->resources[index]);
}

bool ladder_left_behind(const struct core_run *r, int index)
{
	return gathers(r, index) && r->resources[index].choice < group_of(r, index)->choice;
}

bool ladder_waits(const struct core_run *r, int index)
{
	return gathers(r, index) && group_of(r, index)->older > 0;
}

static int64_t round_pause_ms(struct step *s, int index, int choice, enum err_kind kind)
{
	int n = s->r->plan->resources[index].nchoices;

	return choice % n ? 0 : pause_ms(s, &rules[kind], choice / n - 1);
}

static void ask_at(struct step *s, int index, int64_t at)
{
	struct core_resource *res = &s->r->resources[index];

	if (s->now >= at) {
		res_create(s, index);
		return;
	}
	res->retry_at_ms = at;
	res_touch(s, index);
	tick_want(s, at);
}

/* No resource of an earlier choice is left: creates all of the gang, with one call. */
static void gang_go(struct step *s, int64_t group)
{
	struct core_run *r = s->r;

	for (int i = 0; i < r->plan->nresources; i++)
		if (r->plan->resources[i].group == group && res_wanted(r, i))
			ask_at(s, i, r->groups[group].go_at_ms);
}

static void gang_move_on(struct step *s, int index, enum err_kind kind, const char *why)
{
	struct core_run *r = s->r;
	int64_t group = r->plan->resources[index].group;
	struct core_group *g = &r->groups[group];

	g->choice++;
	g->older = 0;
	g->go_at_ms = s->now + round_pause_ms(s, index, g->choice, kind);
	for (int i = 0; i < r->plan->nresources; i++) {
		if (r->plan->resources[i].group != group)
			continue;
		set_why(&r->resources[i], kind, why);
		res_touch(s, i);
		if (res_may_exist(r->resources[i].state))
			g->older++;
		else
			r->resources[i].choice = g->choice;
	}
	for (int i = 0; i < r->plan->nresources; i++)
		if (r->plan->resources[i].group == group && r->resources[i].state == RES_LIVE)
			res_release(s, i);
	if (g->older == 0)
		gang_go(s, group);
}

void ladder_follow(struct step *s, int index)
{
	struct core_run *r = s->r;
	struct core_group *g = group_of(r, index);

	if (ladder_left_behind(r, index)) {
		r->resources[index].choice = g->choice;
		res_touch(s, index);
		if (--g->older == 0)
			gang_go(s, r->plan->resources[index].group);
	}
}

void ladder_refused(struct step *s, int index, enum err_kind kind, const char *why)
{
	struct core_run *r = s->r;
	struct core_resource *res = &r->resources[index];

	/* Its group is moving on to another choice, which the resource has taken over already. */
	if (ladder_waits(r, index))
		return;
	if (!rules[kind].next_choice || !r->plan->resources[index].nchoices ||
	    res->state != RES_INTENT) {
		retry_later(s, index, kind, why);
	} else if (gathers(r, index)) {
		gang_move_on(s, index, kind, why);
	} else {
		res->choice++;
		set_why(res, kind, why);
		res_touch(s, index);
		ask_at(s, index, s->now + round_pause_ms(s, index, res->choice, kind));
	}
}

void ladder_describe(const struct core_run *r, int index, char *out, size_t size)
{
	const struct plan_resource *pr = &r->plan->resources[index];
	int tries = r->resources[index].choice;

	out[0] = '\0';
	if (pr->nchoices && tries)
		snprintf(out, size, " (%d tries of %d choices, the last %s)", tries, pr->nchoices,
			 plan_choice(pr, tries - 1));
}

void ladder_restored(struct core_run *r)
{
	for (int i = 0; i < r->plan->nresources; i++) {
		struct core_group *g = group_of(r, i);

		if (is_gang(&r->plan->resources[i]) && r->resources[i].choice > g->choice)
			g->choice = r->resources[i].choice;
		g->older = 0;
	}
	for (int i = 0; i < r->plan->nresources; i++)
		if (is_gang(&r->plan->resources[i]) && res_may_exist(r->resources[i].state))
			group_of(r, i)->older += r->resources[i].choice < group_of(r, i)->choice;
}
