#include "core/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define RETRY_MIN_MS 500
#define RETRY_MAX_MS 30000
#define RETURN_MIN_MS 1000
#define RETURN_MAX_MS 64000
#define MOST_RETURNS 60 /* about an hour */

static const char *const phase_names[SUITE_PHASES] = {
	[SUITE_RUNNING] = "running", [SUITE_STOPPING] = "stopping",
	[SUITE_CLOSING] = "closing", [SUITE_SUCCEEDED] = "succeeded",
	[SUITE_FAILED] = "failed",   [SUITE_CANCELLED] = "cancelled",
};
static const char *const entry_names[ENTRY_STATES] = {
	[ENTRY_WAITING] = "waiting", [ENTRY_STARTING] = "starting",
	[ENTRY_RUNNING] = "running", [ENTRY_SUCCEEDED] = "succeeded",
	[ENTRY_FAILED] = "failed",   [ENTRY_CANCELLED] = "cancelled",
	[ENTRY_SKIPPED] = "skipped",
};

struct suite_step {
	struct core_suite *s;
	int64_t now;
	struct suite_effects *out;
};

const char *suite_phase_name(enum suite_phase p)
{
	return phase_names[p];
}

const char *entry_state_name(enum entry_state e)
{
	return entry_names[e];
}

enum entry_state entry_state_named(struct str name)
{
	int i = 0;

	while (i < ENTRY_STATES && !str_is(name, entry_names[i]))
		i++;
	return (enum entry_state)i;
}

bool suite_phase_is_final(enum suite_phase p)
{
	return p >= SUITE_SUCCEEDED;
}

bool entry_state_is_final(enum entry_state e)
{
	return e >= ENTRY_SUCCEEDED;
}

int suite_exit_code(const struct core_suite *s)
{
	if (s->phase == SUITE_CANCELLED)
		return err_exit_code(ERR_CANCELLED);
	if (s->too_dear)
		return err_exit_code(s->kind);
	return s->phase == SUITE_SUCCEEDED ? 0 : 1;
}

void suite_effects_release(struct suite_effects *fx)
{
	vec_release(&fx->v);
	vec_release(&fx->entries);
	fx->changes = 0;
}

struct core_suite *core_suite_new(const struct suite *plan, int parallel)
{
	struct core_suite *s = xcalloc(1, sizeof(*s));

	s->plan = plan;
	s->parallel = parallel;
	s->carrier = 1;
	s->n = suite_runs(plan);
	s->entries = xcalloc((size_t)s->n + 1, sizeof(*s->entries));
	s->left = xcalloc((size_t)plan->n + 1, sizeof(*s->left));
	s->failed = xcalloc((size_t)plan->n + 1, sizeof(*s->failed));
	for (int i = 0; i < plan->n; i++)
		s->ordered = s->ordered || plan->variants[i].nafter > 0;
	for (int i = 0; i < s->n; i++) {
		suite_run_at(plan, i, &s->entries[i].variant, &s->entries[i].repeat);
		s->entries[i].attempt = 1;
	}
	core_suite_restored(s);
	return s;
}

struct core_suite *core_suite_free(struct core_suite *s)
{
	if (!s)
		return NULL;
	free(s->entries);
	free(s->left);
	free(s->failed);
	free(s);
	return NULL;
}

static bool is_failure(enum entry_state e)
{
	return e == ENTRY_FAILED || e == ENTRY_CANCELLED || e == ENTRY_SKIPPED;
}

void core_suite_restored(struct core_suite *s)
{
	memset(s->count, 0, sizeof(s->count));
	for (int v = 0; v < s->plan->n; v++) {
		s->left[v] = 0;
		s->failed[v] = false;
	}
	s->first = s->n;
	s->spent_micro = 0;
	s->close_asked = false;
	for (int i = s->n - 1; i >= 0; i--) {
		const struct suite_entry *e = &s->entries[i];

		s->count[e->state]++;
		s->left[e->variant] += e->state != ENTRY_SUCCEEDED;
		s->failed[e->variant] = s->failed[e->variant] || is_failure(e->state);
		s->spent_micro += e->cost_micro;
		if (e->state == ENTRY_WAITING)
			s->first = i;
	}
}

/* ---- changes of state: each by one function, which keeps counters and marks ---- */

static void touch(struct suite_step *st)
{
	st->s->dirty = true;
	st->out->changes++;
}

static void entry_touch(struct suite_step *st, int i)
{
	struct suite_entry *e = &st->s->entries[i];

	if (!e->dirty)
		*vec_push(&st->out->entries) = i;
	e->dirty = true;
	st->out->changes++;
}

static void entry_set(struct suite_step *st, int i, enum entry_state to)
{
	struct core_suite *s = st->s;
	struct suite_entry *e = &s->entries[i];

	s->count[e->state]--;
	s->count[to]++;
	s->left[e->variant] += (e->state == ENTRY_SUCCEEDED) - (to == ENTRY_SUCCEEDED);
	if (is_failure(to))
		s->failed[e->variant] = true;
	if (to == ENTRY_WAITING && i < s->first)
		s->first = i;
	e->state = to;
	entry_touch(st, i);
}

static void entry_why(struct suite_entry *e, enum err_kind kind, const char *text)
{
	e->kind = kind;
	snprintf(e->cause, sizeof(e->cause), "%s", text);
}

static void phase_set(struct suite_step *st, enum suite_phase to)
{
	st->s->phase = to;
	st->s->since_ms = st->now;
	touch(st);
}

static void effect(struct suite_step *st, enum suite_effect_kind kind, int index)
{
	struct core_suite *s = st->s;

	*vec_push(&st->out->v) = (struct suite_effect){
		.kind = kind,
		.index = index,
		.attempt = index >= 0 ? s->entries[index].attempt : s->carrier,
		.hurry = s->hurry,
	};
	st->out->changes++;
}

/* ---- what is to start ---- */

static int active(const struct core_suite *s)
{
	return s->count[ENTRY_STARTING] + s->count[ENTRY_RUNNING];
}

/* The variant that this one waits for in vain; -1: none. */
static int failed_need(const struct core_suite *s, int variant)
{
	const struct suite_variant *v = &s->plan->variants[variant];

	for (int i = 0; i < v->nafter; i++)
		if (s->failed[v->after[i]])
			return v->after[i];
	return -1;
}

static bool needs_are_met(const struct core_suite *s, int variant)
{
	const struct suite_variant *v = &s->plan->variants[variant];

	for (int i = 0; i < v->nafter; i++)
		if (s->left[v->after[i]] > 0)
			return false;
	return true;
}

/* Skips what cannot start any more.  A skipped entry is a failure for those that come after it, in
 * whatever order they stand. */
static void skip_in_vain(struct suite_step *st)
{
	struct core_suite *s = st->s;
	bool again = s->ordered;

	while (again) {
		again = false;
		for (int i = s->first; i < s->n; i++) {
			struct suite_entry *e = &s->entries[i];
			int need = e->state == ENTRY_WAITING ? failed_need(s, e->variant) : -1;
			char text[200];

			if (need < 0)
				continue;
			snprintf(text, sizeof(text), "'%.150s' has not succeeded",
				 s->plan->variants[need].name);
			entry_why(e, ERR_NONE, text);
			entry_set(st, i, ENTRY_SKIPPED);
			again = true;
		}
	}
}

static void start_more(struct suite_step *st)
{
	struct core_suite *s = st->s;

	if (s->phase != SUITE_RUNNING || s->next_ms > st->now || s->away)
		return;
	for (int i = s->first; i < s->n && active(s) < s->parallel; i++) {
		struct suite_entry *e = &s->entries[i];

		if (e->state != ENTRY_WAITING || !needs_are_met(s, e->variant))
			continue;
		entry_why(e, ERR_NONE, "");
		entry_set(st, i, ENTRY_STARTING);
		effect(st, SUITE_FX_START, i);
	}
	while (s->first < s->n && s->entries[s->first].state != ENTRY_WAITING)
		s->first++;
}

static bool is_active(const struct suite_entry *e)
{
	return e->state == ENTRY_STARTING || e->state == ENTRY_RUNNING;
}

/* How long a run takes.  One that goes on for longer than those that have ended did counts, too. */
static int64_t mean_ms(const struct core_suite *s, int64_t now_ms)
{
	int64_t sum = s->took_ms, n = s->took, mean = sum / n;

	for (int i = 0; i < s->n; i++) {
		const struct suite_entry *e = &s->entries[i];

		if (!is_active(e) || !e->since_ms || now_ms - e->since_ms <= mean)
			continue;
		sum += now_ms - e->since_ms;
		n++;
	}
	return sum / n;
}

/* What waits takes the mean, what runs the rest of it. */
int64_t suite_left_ms(const struct core_suite *s, int64_t now_ms)
{
	int left = active(s) + s->count[ENTRY_WAITING];

	if (s->phase != SUITE_RUNNING || s->took == 0 || left == 0)
		return -1;
	int64_t mean = mean_ms(s, now_ms), sum = mean * s->count[ENTRY_WAITING], longest = 0;

	for (int i = 0; i < s->n; i++) {
		const struct suite_entry *e = &s->entries[i];
		int64_t gone = e->since_ms ? now_ms - e->since_ms : 0;
		int64_t rest = gone < mean ? mean - gone : 0;

		if (!is_active(e))
			continue;
		sum += rest;
		longest = rest > longest ? rest : longest;
	}
	sum /= left < s->parallel ? left : s->parallel;
	return sum > longest ? sum : longest;
}

bool suite_is_done(const struct core_suite *s)
{
	return s->count[ENTRY_SUCCEEDED] == s->n;
}

bool suite_goes_on(const struct core_suite *s)
{
	return s->phase == SUITE_RUNNING || suite_outcome(s) == SUITE_SUCCEEDED;
}

enum suite_phase suite_outcome(const struct core_suite *s)
{
	if (s->cancel_asked)
		return SUITE_CANCELLED;
	return suite_is_done(s) ? SUITE_SUCCEEDED : SUITE_FAILED;
}

static void end(struct suite_step *st)
{
	phase_set(st, suite_outcome(st->s));
	effect(st, SUITE_FX_ENDED, -1);
}

static void close_here(struct suite_step *st)
{
	st->s->closer = CLOSER_MASTER;
	st->s->close_asked = true;
	st->s->closer_until_ms = st->s->next_ms = 0;
	touch(st);
	effect(st, SUITE_FX_CLOSE, -1);
}

/* The client has until then to say that it runs on_exit. */
static void wait_for_client(struct suite_step *st, enum suite_closer closer, int64_t ms)
{
	st->s->closer = closer;
	st->s->closer_until_ms = st->s->next_ms = st->now + ms;
	touch(st);
}

/* Nothing runs, and nothing can start. */
static void check_end(struct suite_step *st)
{
	struct core_suite *s = st->s;
	bool stopped = s->phase == SUITE_STOPPING;

	if (s->away || s->phase > SUITE_STOPPING || active(s) > 0 ||
	    (!stopped && s->count[ENTRY_WAITING] > 0))
		return;
	s->next_ms = 0;
	if (s->plan->runs.on_exit.n == 0) {
		end(st);
		return;
	}
	phase_set(st, SUITE_CLOSING);
	if (*s->client)
		wait_for_client(st, CLOSER_OFFERED, SUITE_OFFER_MS);
	else
		close_here(st);
}

static void go_on(struct suite_step *st)
{
	if (st->s->phase == SUITE_RUNNING && !st->s->away)
		skip_in_vain(st);
	start_more(st);
	check_end(st);
}

/* ---- events ---- */

static void stop(struct suite_step *st)
{
	struct core_suite *s = st->s;

	if (s->phase == SUITE_RUNNING)
		phase_set(st, SUITE_STOPPING);
	if (!s->away) /* else it may be the time of its return */
		s->next_ms = 0;
	touch(st);
	if (s->away)
		effect(st, SUITE_FX_CANCEL, -1);
	for (int i = 0; i < s->n && !s->away; i++)
		if (s->entries[i].state == ENTRY_RUNNING)
			effect(st, SUITE_FX_CANCEL, i);
	check_end(st);
}

static void check_cost(struct suite_step *st)
{
	struct core_suite *s = st->s;
	double spent = (double)(s->spent_micro + s->active_micro) / 1e6;
	double limit = s->plan->runs.max_cost;

	if (limit <= 0 || spent < limit || s->phase != SUITE_RUNNING || s->away)
		return;
	if (active(s) == 0 && s->count[ENTRY_WAITING] == 0)
		return; /* the last run made it dear: there is nothing to stop */
	s->too_dear = true;
	s->kind = ERR_QUOTA;
	snprintf(s->cause, sizeof(s->cause), "its runs have cost %.2f USD: max_cost is %.2f", spent,
		 limit);
	stop(st);
}

/* An error after which the same start may succeed. */
static bool may_pass(enum err_kind kind)
{
	switch (kind) {
	case ERR_CAPACITY:
	case ERR_QUOTA:
	case ERR_THROTTLED:
	case ERR_TIMEOUT:
	case ERR_UNAVAILABLE:
	case ERR_IO:
	case ERR_PREEMPTED:
		return true;
	case ERR_NONE:
	case ERR_INVALID:
	case ERR_NOT_FOUND:
	case ERR_CONFLICT:
	case ERR_DENIED:
	case ERR_PROTOCOL:
	case ERR_CANCELLED:
		return false;
	}
	return false;
}

/* Twice as long after each try. */
static int64_t pause_ms(int tries, int64_t ms, int64_t most_ms)
{
	for (int i = 1; i < tries && ms < most_ms; i++)
		ms *= 2;
	return ms < most_ms ? ms : most_ms;
}

static void refused(struct suite_step *st, const struct suite_event *ev)
{
	struct core_suite *s = st->s;
	struct suite_entry *e = &s->entries[ev->index];

	entry_why(e, ev->err_kind, ev->text);
	if (s->phase == SUITE_STOPPING) {
		entry_set(st, ev->index, ENTRY_CANCELLED);
	} else if (may_pass(ev->err_kind)) {
		entry_set(st, ev->index, ENTRY_WAITING);
		s->next_ms = st->now + pause_ms(++s->tries, RETRY_MIN_MS, RETRY_MAX_MS);
	} else {
		entry_set(st, ev->index, ENTRY_FAILED);
	}
	go_on(st);
}

static void started(struct suite_step *st, const struct suite_event *ev)
{
	st->s->tries = 0;
	st->s->entries[ev->index].since_ms = st->now;
	entry_set(st, ev->index, ENTRY_RUNNING);
	if (st->s->phase == SUITE_STOPPING)
		effect(st, SUITE_FX_CANCEL, ev->index);
}

static void run_ended(struct suite_step *st, const struct suite_event *ev)
{
	static const enum entry_state after[] = {
		[VERDICT_NONE] = ENTRY_FAILED,
		[VERDICT_SUCCEEDED] = ENTRY_SUCCEEDED,
		[VERDICT_FAILED] = ENTRY_FAILED,
		[VERDICT_CANCELLED] = ENTRY_CANCELLED,
	};
	struct core_suite *s = st->s;
	struct suite_entry *e = &s->entries[ev->index];

	if (e->since_ms && ev->verdict != VERDICT_CANCELLED) {
		s->took_ms += st->now - e->since_ms;
		s->took++;
	}
	e->since_ms = 0;
	e->cost_micro += ev->micro;
	s->spent_micro += ev->micro;
	entry_why(e, ev->err_kind, ev->text);
	entry_set(st, ev->index, after[ev->verdict]);
	/* It is not one of the active runs any more; what those have cost is told again soon. */
	s->active_micro =
		active(s) > 0 && s->active_micro > ev->micro ? s->active_micro - ev->micro : 0;
	check_cost(st);
	go_on(st);
}

static void cancel(struct suite_step *st, const struct suite_event *ev)
{
	struct core_suite *s = st->s;

	if (s->cancel_asked && (s->hurry || !ev->hurry))
		return;
	if (!s->cancel_asked && !s->too_dear)
		snprintf(s->cause, sizeof(s->cause), "%s", ev->text);
	s->cancel_asked = true;
	s->kind = ERR_CANCELLED;
	s->hurry = s->hurry || ev->hurry;
	stop(st);
}

/* A suite that has ended goes on with what has not succeeded. */
static void again(struct suite_step *st, const struct suite_event *ev)
{
	struct core_suite *s = st->s;
	bool any = false;

	for (int i = 0; i < s->n; i++) {
		struct suite_entry *e = &s->entries[i];

		any = any || e->state == ENTRY_WAITING;
		if (!is_failure(e->state) || (e->state == ENTRY_FAILED && !ev->failed))
			continue;
		/* A skipped entry has had no run. */
		e->attempt += e->state != ENTRY_SKIPPED;
		entry_why(e, ERR_NONE, "");
		entry_set(st, i, ENTRY_WAITING);
		any = true;
	}
	if (!any)
		return;
	core_suite_restored(s);
	s->cancel_asked = s->hurry = s->too_dear = false;
	s->kind = ERR_NONE;
	s->cause[0] = s->closed[0] = '\0';
	snprintf(s->client, sizeof(s->client), "%s", ev->client);
	s->closer = CLOSER_NONE;
	s->closed_there = false;
	phase_set(st, SUITE_RUNNING);
	check_cost(st);
	if (s->phase == SUITE_RUNNING)
		skip_in_vain(st);
	if (ev->away && s->phase == SUITE_RUNNING && s->count[ENTRY_WAITING] > 0) {
		s->away = true;
		s->carrier++;
	}
	go_on(st);
}

static void resume(struct suite_step *st)
{
	struct core_suite *s = st->s;

	if (s->away) {
		if (s->cancel_asked)
			effect(st, SUITE_FX_CANCEL, -1);
		return;
	}
	for (int i = 0; i < s->n; i++) {
		if (s->entries[i].state == ENTRY_STARTING)
			effect(st, SUITE_FX_START, i);
		if (s->entries[i].state == ENTRY_RUNNING && s->phase == SUITE_STOPPING)
			effect(st, SUITE_FX_CANCEL, i);
	}
	if (s->phase != SUITE_CLOSING)
		go_on(st);
	else if (s->closer == CLOSER_OFFERED || s->closer == CLOSER_CLIENT)
		/* The client could not be heard meanwhile. */
		wait_for_client(st, s->closer,
				s->closer == CLOSER_CLIENT ? SUITE_CLAIM_MS : SUITE_OFFER_MS);
	else if (!s->close_asked) /* the end of the last run may have been told before */
		close_here(st);
}

bool suite_is_claimed_by(const struct core_suite *s, const char *client)
{
	return s->phase == SUITE_CLOSING && s->closer == CLOSER_CLIENT && *client &&
	       strcmp(s->client, client) == 0;
}

static void claim(struct suite_step *st, const struct suite_event *ev)
{
	struct core_suite *s = st->s;

	if (s->phase != SUITE_CLOSING || strcmp(s->client, ev->client) != 0 ||
	    (s->closer != CLOSER_OFFERED && s->closer != CLOSER_CLIENT))
		return;
	wait_for_client(st, CLOSER_CLIENT, SUITE_CLAIM_MS);
}

static void closed(struct suite_step *st, const struct suite_event *ev)
{
	const struct core_suite *s = st->s;

	if (*ev->client ? !suite_is_claimed_by(s, ev->client) : s->closer != CLOSER_MASTER)
		return;
	st->s->next_ms = 0;
	snprintf(st->s->closed, sizeof(st->s->closed), "%s", ev->text);
	end(st);
}

/* ---- away ---- */

static void seen(struct suite_step *st, const struct suite_event *ev)
{
	struct core_suite *s = st->s;
	struct suite_entry *e = &s->entries[ev->index];

	if (e->state == ev->state && e->attempt == ev->attempt && e->cost_micro == ev->micro &&
	    strcmp(e->cause, ev->text) == 0)
		return;
	s->spent_micro += ev->micro - e->cost_micro;
	e->cost_micro = ev->micro;
	e->attempt = ev->attempt;
	entry_why(e, e->kind, ev->text);
	entry_set(st, ev->index, ev->state);
}

static void seen_end(struct suite_step *st, const struct suite_event *ev)
{
	if (st->s->closed_there == ev->closed)
		return;
	st->s->closed_there = ev->closed;
	touch(st);
}

bool suite_returns_later(const struct core_suite *s)
{
	return s->away && s->next_ms > 0;
}

static void not_back(struct suite_step *st, const struct suite_event *ev)
{
	struct core_suite *s = st->s;

	if (!may_pass(ev->err_kind) || s->returns >= MOST_RETURNS)
		return;
	s->next_ms = st->now + pause_ms(++s->returns, RETURN_MIN_MS, RETURN_MAX_MS);
	touch(st);
}

/* The other master is gone, and had not ended them. */
static void give_up_active(struct suite_step *st, const struct suite_event *ev)
{
	struct core_suite *s = st->s;

	for (int i = 0; i < s->n; i++) {
		if (!is_active(&s->entries[i]))
			continue;
		entry_why(&s->entries[i], ev->err_kind, ev->text);
		entry_set(st, i, s->cancel_asked ? ENTRY_CANCELLED : ENTRY_FAILED);
	}
}

static void back(struct suite_step *st, const struct suite_event *ev)
{
	struct core_suite *s = st->s;

	s->away = false;
	s->next_ms = s->returns = 0;
	s->too_dear = ev->err_kind == ERR_QUOTA;
	s->cancel_asked = s->cancel_asked || ev->verdict == VERDICT_CANCELLED;
	s->kind = s->too_dear || !s->cancel_asked ? ev->err_kind : ERR_CANCELLED;
	if (!*s->cause && (s->too_dear || s->cancel_asked || !s->closed_there))
		snprintf(s->cause, sizeof(s->cause), "%s", ev->text);
	give_up_active(st, ev);
	core_suite_restored(s);
	if (s->closed_there && s->carrier == 1) { /* a later one is without on_exit */
		end(st);
		return;
	}
	phase_set(st, SUITE_STOPPING);
	check_end(st);
}

/* Is the event about the current attempt of an entry in this state? */
static bool fits(const struct core_suite *s, const struct suite_event *ev, enum entry_state x,
		 enum entry_state y)
{
	if (ev->index < 0 || ev->index >= s->n || s->entries[ev->index].attempt != ev->attempt)
		return false;
	return s->entries[ev->index].state == x || s->entries[ev->index].state == y;
}

void suite_step(struct core_suite *s, const struct suite_event *ev, int64_t now_ms,
		struct suite_effects *out)
{
	struct suite_step st = {.s = s, .now = now_ms, .out = out};
	bool over = suite_phase_is_final(s->phase);

	switch (ev->kind) {
	case SUITE_ACCEPTED:
		s->since_ms = now_ms;
		touch(&st);
		go_on(&st);
		return;
	case SUITE_RESUME:
		if (!over)
			resume(&st);
		return;
	case SUITE_TICK:
		if (s->next_ms && s->next_ms <= now_ms) {
			s->next_ms = 0;
			if (s->away)
				effect(&st, SUITE_FX_RETURN, -1);
			else if (s->phase == SUITE_CLOSING)
				close_here(&st);
			else
				go_on(&st);
		}
		return;
	case SUITE_STARTED:
		if (fits(s, ev, ENTRY_STARTING, ENTRY_STARTING))
			started(&st, ev);
		return;
	case SUITE_REFUSED:
		if (fits(s, ev, ENTRY_STARTING, ENTRY_STARTING))
			refused(&st, ev);
		return;
	case SUITE_RUN_ENDED:
		/* At the other master it may have started since it was last seen. */
		if (fits(s, ev, ENTRY_STARTING, ENTRY_RUNNING) ||
		    (s->away && fits(s, ev, ENTRY_WAITING, ENTRY_WAITING)))
			run_ended(&st, ev);
		return;
	case SUITE_COST:
		s->active_micro = ev->micro;
		check_cost(&st);
		return;
	case SUITE_CANCEL:
		if (s->phase <= SUITE_STOPPING)
			cancel(&st, ev);
		return;
	case SUITE_AGAIN:
		if (over)
			again(&st, ev);
		return;
	case SUITE_SEEN:
		if (s->away && !over && ev->index >= 0 && ev->index < s->n)
			seen(&st, ev);
		return;
	case SUITE_SEEN_END:
		if (s->away && !over)
			seen_end(&st, ev);
		return;
	case SUITE_NOT_BACK:
		if (s->away && !over)
			not_back(&st, ev);
		return;
	case SUITE_BACK:
		if (s->away && !over)
			back(&st, ev);
		return;
	case SUITE_CLAIM:
		claim(&st, ev);
		return;
	case SUITE_CLOSED:
		if (s->phase == SUITE_CLOSING)
			closed(&st, ev);
		return;
	}
}
