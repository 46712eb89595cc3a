/*
 * Histories of suites: the core of core/suite.h with runs that succeed, fail or cannot be made, users
 * who cancel and resume, and a master that crashes before and after every commit.
 *
 * What is true is kept apart from what the master believes: which run was made for which attempt of
 * which entry, and how it ended.  A start that is asked for again finds the run that was made, as the
 * request id does in the master.  The client that started the suite may run on_exit, be silent, or die
 * in the middle.  A suite may be away, with another master that is followed by looks and may be lost, and may go away
 * again when it is resumed.  Invariants S1 to S8 are in docs/invariants.md.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rand.h"
#include "core/suite.h"
#include "sim/sim.h"

#define MAX_VARIANTS 6
#define MAX_REPEATS 3
#define MAX_ATTEMPTS 8
#define MAX_RUNS (MAX_VARIANTS * MAX_REPEATS)
#define FAULTS_UNTIL 400 /* steps of a history in which there are faults */
#define MAX_STEPS 20000
#define CLIENT "client-of-the-suite"

struct true_run {
	bool made, active, to_cancel;
	enum verdict verdict;
};

struct suite_world {
	struct rng rng;
	struct suite plan;
	struct suite_variant variants[MAX_VARIANTS];
	int after[MAX_VARIANTS][MAX_VARIANTS];
	const char *command;
	int parallel;
	struct core_suite *memory; /* NULL: the master is down */
	struct core_suite *disk;
	struct suite_effects fx;	/* of the step that is not committed yet */
	VEC(struct suite_effect) queue; /* handed out by this master, not carried out */
	struct true_run runs[MAX_RUNS][MAX_ATTEMPTS + 1];
	bool allowed[MAX_RUNS]; /* was `starting` or `running` when the suite was stopped */
	int64_t now;
	int steps, again, closes;
	bool cancelled;
	/* The client runs on_exit until then, as the master has told it; 0: it does not. */
	int64_t client_until;
	bool client_gone,
		client_done; /* done: its commands have ended, and the master has not heard it */
	/* It is with another master, until it has ended: how its entries stand there, and whose results were copied;
	 * on_exit: that master has it; closed: it has ended the suite, which is known here; gone: it has ended after
	 * that, or was lost; told: the cancel has reached it; put_off: its results are taken in later. */
	struct away {
		bool away, on_exit, gone, lost, closed, known, told, put_off;
		enum entry_state entries[MAX_RUNS];
		int attempts[MAX_RUNS];
		int64_t micro[MAX_RUNS];
		bool copied[MAX_RUNS];
	} there;
	int verbose;
	struct sim_result *res;
	uint64_t hash;
};

static void broken(struct suite_world *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void broken(struct suite_world *w, const char *fmt, ...)
{
	va_list ap;

	if (w->res->broken)
		return;
	w->res->broken = true;
	va_start(ap, fmt);
	vsnprintf(w->res->what, sizeof(w->res->what), fmt, ap);
	va_end(ap);
}

static void trace(struct suite_world *w, const char *what, int index, int64_t a)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "%d suite %s %d %lld", w->steps, what, index,
			 (long long)a);

	for (int i = 0; i < n; i++)
		w->hash = (w->hash ^ (uint8_t)line[i]) * 0x100000001b3ull;
	if (w->verbose >= 2)
		printf("%s\n", line);
}

static bool chance(struct suite_world *w, uint64_t per_mille)
{
	bool hit = w->steps < FAULTS_UNTIL && rng_below(&w->rng, 1000) < per_mille;

	w->res->faults += hit;
	return hit;
}

/* ---- the truth ---- */

static bool has_succeeded(const struct suite_world *w, int entry)
{
	for (int k = 1; k <= MAX_ATTEMPTS; k++)
		if (w->runs[entry][k].made && w->runs[entry][k].verdict == VERDICT_SUCCEEDED)
			return true;
	return false;
}

static int count_active(const struct suite_world *w)
{
	int n = 0;

	for (int i = 0; i < w->disk->n; i++)
		for (int k = 1; k <= MAX_ATTEMPTS; k++)
			n += w->runs[i][k].active;
	return n;
}

static void make_run(struct suite_world *w, int entry, int attempt)
{
	const struct suite_variant *v = &w->plan.variants[w->disk->entries[entry].variant];

	if (has_succeeded(w, entry))
		broken(w, "S1: entry %d has succeeded and starts again", entry);
	for (int k = 1; k < attempt; k++)
		if (w->runs[entry][k].active)
			broken(w, "S1: entry %d has two runs", entry);
	if (count_active(w) >= w->parallel)
		broken(w, "S2: more than %d runs are active", w->parallel);
	for (int i = 0; i < w->disk->n; i++)
		for (int k = 0; k < v->nafter; k++)
			if (w->disk->entries[i].variant == v->after[k] && !has_succeeded(w, i))
				broken(w, "S3: entry %d starts before entry %d has succeeded",
				       entry, i);
	if (w->disk->phase != SUITE_RUNNING && !w->allowed[entry])
		broken(w, "S4: entry %d starts although the suite was stopped", entry);
	w->runs[entry][attempt] = (struct true_run){.made = true, .active = true};
}

/* ---- the master ---- */

static void copy_state(struct core_suite *to, const struct core_suite *from)
{
	for (int i = 0; i < from->n; i++)
		to->entries[i] = from->entries[i];
	to->phase = from->phase;
	to->cancel_asked = from->cancel_asked;
	to->hurry = from->hurry;
	to->too_dear = from->too_dear;
	to->kind = from->kind;
	memcpy(to->cause, from->cause, sizeof(to->cause));
	memcpy(to->closed, from->closed, sizeof(to->closed));
	memcpy(to->client, from->client, sizeof(to->client));
	to->closer = from->closer;
	to->closer_until_ms = from->closer_until_ms;
	to->since_ms = from->since_ms;
	to->away = from->away;
	to->carrier = from->carrier;
	to->closed_there = from->closed_there;
}

/* The other master gets the suite as it stands. */
static void leave(struct suite_world *w, bool first)
{
	w->there = (struct away){.away = true, .on_exit = first};
	for (int i = 0; i < w->disk->n; i++) {
		const struct suite_entry *e = &w->memory->entries[i];

		w->there.entries[i] = e->state;
		w->there.attempts[i] = e->attempt;
		w->there.micro[i] = e->cost_micro;
	}
}

/* Only rows that the core has listed are written.  With the row of the suite goes that of its carrier. */
static void save(struct suite_world *w)
{
	struct core_suite *m = w->memory, *d = w->disk;

	if (m->away && !w->there.away)
		leave(w, false);

	if (d->phase == SUITE_RUNNING && m->phase != SUITE_RUNNING)
		for (int i = 0; i < d->n; i++)
			w->allowed[i] = m->entries[i].state == ENTRY_STARTING ||
					m->entries[i].state == ENTRY_RUNNING;
	if (suite_phase_is_final(d->phase) && !suite_phase_is_final(m->phase))
		w->closes = 0;
	if (d->phase == SUITE_CLOSING && suite_phase_is_final(m->phase) &&
	    d->closer == CLOSER_CLIENT && !w->client_done)
		broken(w, "S5: the suite has ended before the client has run on_exit");
	for (size_t i = 0; i < w->fx.entries.n; i++) {
		struct suite_entry *e = &m->entries[w->fx.entries.v[i]];

		e->dirty = false;
		d->entries[w->fx.entries.v[i]] = *e;
	}
	if (m->dirty) {
		struct suite_entry *entries = xcalloc((size_t)d->n, sizeof(*entries));

		memcpy(entries, d->entries, (size_t)d->n * sizeof(*entries));
		copy_state(d, m);
		memcpy(d->entries, entries, (size_t)d->n * sizeof(*entries));
		free(entries);
	}
	m->dirty = false;
}

static void crash(struct suite_world *w)
{
	trace(w, "crash", -1, 0);
	w->res->crashes++;
	w->memory = core_suite_free(w->memory);
	suite_effects_release(&w->fx);
	w->queue.n = 0;
}

/* S6: what starts is the first entry that can. */
static void check_order(struct suite_world *w, int started)
{
	const struct core_suite *m = w->memory;

	for (int i = 0; i < started; i++) {
		const struct suite_variant *v = &w->plan.variants[m->entries[i].variant];
		bool can = m->entries[i].state == ENTRY_WAITING;

		for (int k = 0; k < v->nafter; k++)
			can = can && m->left[v->after[k]] == 0;
		if (can)
			broken(w, "S6: entry %d starts before entry %d", started, i);
	}
}

/* S7: while on_exit waits to be run nobody asks for it again. */
static void check_close(struct suite_world *w)
{
	int n = 0;

	for (size_t i = 0; i < w->fx.v.n; i++)
		n += w->fx.v.v[i].kind == SUITE_FX_CLOSE;
	for (size_t i = 0; i < w->queue.n; i++)
		n += w->queue.v[i].kind == SUITE_FX_CLOSE;
	if (n > 1)
		broken(w, "S7: on_exit is asked for %d times", n);
}

/* S8: a cancel is with the carrier or on its way there. */
static void check_cancel(struct suite_world *w)
{
	bool told = !w->memory->away || !w->memory->cancel_asked || w->there.told;

	for (size_t i = 0; i < w->fx.v.n; i++)
		told = told || w->fx.v.v[i].kind == SUITE_FX_CANCEL;
	for (size_t i = 0; i < w->queue.n; i++)
		told = told || w->queue.v[i].kind == SUITE_FX_CANCEL;
	if (!told)
		broken(w, "S8: a cancel does not reach the carrier");
}

static void step(struct suite_world *w, const struct suite_event *ev)
{
	if (!w->memory)
		return;
	trace(w, "event", ev->index, ev->kind);
	suite_step(w->memory, ev, w->now, &w->fx);
	for (size_t i = 0; i < w->fx.v.n; i++)
		if (w->there.away && !w->there.gone &&
		    (w->fx.v.v[i].kind != SUITE_FX_CANCEL || w->fx.v.v[i].index >= 0))
			broken(w, "S8: effect %d although the suite is away", w->fx.v.v[i].kind);
		else if (w->fx.v.v[i].kind == SUITE_FX_START && ev->kind != SUITE_RESUME)
			check_order(w, w->fx.v.v[i].index);
	check_cancel(w);
	check_close(w);
	if (chance(w, 20)) {
		crash(w);
		return;
	}
	save(w);
	if (chance(w, 20)) {
		crash(w);
		return;
	}
	for (size_t i = 0; i < w->fx.v.n; i++)
		*vec_push(&w->queue) = w->fx.v.v[i];
	suite_effects_release(&w->fx);
}

static void tell_end(struct suite_world *w, int entry, int attempt)
{
	step(w, &(struct suite_event){.kind = SUITE_RUN_ENDED,
				      .index = entry,
				      .attempt = attempt,
				      .verdict = w->runs[entry][attempt].verdict,
				      .micro = 1000});
}

static void restart(struct suite_world *w)
{
	trace(w, "restart", -1, 0);
	w->there.put_off = false;
	w->memory = core_suite_new(&w->plan, w->parallel);
	copy_state(w->memory, w->disk);
	core_suite_restored(w->memory);
	for (int i = 0; w->memory && !w->there.away && i < w->disk->n; i++) {
		int attempt = w->memory->entries[i].attempt;

		if (w->memory->entries[i].state == ENTRY_RUNNING && !w->runs[i][attempt].active)
			tell_end(w, i, attempt);
	}
	step(w, &(struct suite_event){.kind = SUITE_RESUME});
}

static void start(struct suite_world *w, const struct suite_effect *fx)
{
	struct suite_event ev = {.index = fx->index, .attempt = fx->attempt};
	const struct suite_entry *e = &w->memory->entries[fx->index];

	if (e->state != ENTRY_STARTING || e->attempt != fx->attempt)
		return;
	if (!w->runs[fx->index][fx->attempt].made) {
		if (chance(w, 150)) {
			ev.kind = SUITE_REFUSED;
			ev.err_kind = rng_below(&w->rng, 4) ? ERR_CAPACITY : ERR_INVALID;
			step(w, &ev);
			return;
		}
		make_run(w, fx->index, fx->attempt);
		if (chance(w, 30)) {
			crash(w);
			return;
		}
	}
	ev.kind = SUITE_STARTED;
	step(w, &ev);
	if (w->memory && !w->runs[fx->index][fx->attempt].active)
		tell_end(w, fx->index, fx->attempt);
}

static void carry_out(struct suite_world *w)
{
	struct suite_effect fx = w->queue.v[0];

	memmove(w->queue.v, w->queue.v + 1, (w->queue.n - 1) * sizeof(fx));
	w->queue.n--;
	trace(w, "effect", fx.index, fx.kind);
	switch (fx.kind) {
	case SUITE_FX_START:
		start(w, &fx);
		return;
	case SUITE_FX_CANCEL:
		if (fx.index < 0)
			w->there.told = w->there.told || fx.attempt == w->memory->carrier;
		else
			w->runs[fx.index][fx.attempt].to_cancel = true;
		return;
	case SUITE_FX_RETURN:
		w->there.put_off = false;
		return;
	case SUITE_FX_CLOSE:
		if (w->there.away && w->there.on_exit && w->there.known)
			broken(w, "S8: on_exit has run at the other master, and runs here");
		if (w->client_until > w->now)
			broken(w, "S7: on_exit runs on the master, and the client runs it");
		if (suite_phase_is_final(w->disk->phase))
			broken(w, "S7: on_exit runs although the suite has ended");
		w->closes++;
		step(w, &(struct suite_event){.kind = SUITE_CLOSED});
		return;
	case SUITE_FX_ENDED:
		return;
	}
}

/* The client asks to run on_exit, goes on with it, ends it, or dies.  It stops its commands when it has not
 * been heard until the end of its time. */
static void client_step(struct suite_world *w)
{
	struct suite_event ev = {.kind = SUITE_CLAIM, .client = CLIENT};
	bool runs = w->client_until > w->now;

	if (w->client_gone || w->disk->phase != SUITE_CLOSING)
		return;
	trace(w, "client", -1, runs);
	if (chance(w, 100)) { /* with what it runs */
		w->client_gone = true;
		w->client_until = 0;
		return;
	}
	if (w->client_until && !runs) {
		w->client_gone = !w->client_done;
		w->client_until = 0;
		return;
	}
	if (runs && rng_below(&w->rng, 3) == 0 && !w->client_done) {
		w->client_done = true;
		w->closes++;
	}
	if (w->client_done)
		ev.kind = SUITE_CLOSED;
	step(w, &ev);
	/* The answer says whether it has been given the commands; a crash loses the answer. */
	if (w->memory && ev.kind == SUITE_CLAIM)
		w->client_until =
			suite_is_claimed_by(w->memory, CLIENT) ? w->memory->closer_until_ms : 0;
	else if (w->memory && suite_phase_is_final(w->disk->phase))
		w->client_until = 0;
}

/* One of the active runs ends. */
static void end_run(struct suite_world *w)
{
	int n = count_active(w), at = n ? (int)rng_below(&w->rng, (uint64_t)n) : -1;

	for (int i = 0; i < w->disk->n && at >= 0; i++)
		for (int k = 1; k <= MAX_ATTEMPTS; k++) {
			struct true_run *r = &w->runs[i][k];

			if (!r->active || at-- > 0)
				continue;
			r->active = false;
			r->verdict = r->to_cancel && rng_below(&w->rng, 4) ? VERDICT_CANCELLED
				     : chance(w, 200)			   ? VERDICT_FAILED
									   : VERDICT_SUCCEEDED;
			trace(w, "ended", i, r->verdict);
			tell_end(w, i, k);
			return;
		}
}

/* ---- away ---- */

/* One entry goes on at the other master, which ends the suite after the last.  A cancel that never reaches it would
 * never end anything. */
static void go_on_there(struct suite_world *w)
{
	int i = (int)rng_below(&w->rng, (uint64_t)w->disk->n), left = 0;
	enum entry_state *e = &w->there.entries[i];

	if (w->disk->cancel_asked && !w->there.told)
		return;
	if (w->there.closed) {
		w->there.gone = true;
		w->there.lost = chance(w, 200);
		return;
	}
	if (*e == ENTRY_WAITING && !w->there.told) {
		*e = ENTRY_RUNNING;
		if (has_succeeded(w, i))
			broken(w, "S1: entry %d has succeeded and starts again elsewhere", i);
	} else if (*e == ENTRY_RUNNING) {
		*e = w->there.told    ? ENTRY_CANCELLED
		     : chance(w, 200) ? ENTRY_FAILED
				      : ENTRY_SUCCEEDED;
		w->there.micro[i]++;
		w->there.copied[i] = rng_below(&w->rng, 4);
	}
	for (int k = 0; k < w->disk->n; k++)
		left += w->there.told ? w->there.entries[k] == ENTRY_RUNNING
				      : !entry_state_is_final(w->there.entries[k]);
	w->there.closed = left == 0;
	w->there.gone = w->there.lost = !w->there.closed && chance(w, 10);
	w->closes += w->there.closed && w->there.on_exit;
}

static void look_there(struct suite_world *w, int i)
{
	step(w, &(struct suite_event){.kind = SUITE_SEEN,
				      .index = i,
				      .state = w->there.entries[i],
				      .attempt = w->there.attempts[i],
				      .micro = w->there.micro[i]});
}

/* All of it, with its end. */
static void look_at_all(struct suite_world *w)
{
	for (int i = 0; i < w->disk->n; i++)
		look_there(w, i);
	step(w, &(struct suite_event){.kind = SUITE_SEEN_END, .closed = w->there.closed});
	w->there.known = w->there.known || (w->memory && w->there.closed);
}

/* What ended there, and was not seen to, is known by its results if those were copied. */
static void take_ends(struct suite_world *w)
{
	static const enum verdict verdicts[ENTRY_STATES] = {
		[ENTRY_SUCCEEDED] = VERDICT_SUCCEEDED,
		[ENTRY_FAILED] = VERDICT_FAILED,
		[ENTRY_CANCELLED] = VERDICT_CANCELLED,
	};

	for (int i = 0; i < w->disk->n; i++)
		if (w->there.copied[i])
			step(w, &(struct suite_event){.kind = SUITE_RUN_ENDED,
						      .index = i,
						      .attempt = w->there.attempts[i],
						      .verdict = verdicts[w->there.entries[i]],
						      .micro = 1});
}

/* The results are here: with them how the entries stood at the end, if the other master saw it. */
static void come_back(struct suite_world *w)
{
	if (w->there.put_off)
		return;
	if (chance(w, 300)) {
		step(w, &(struct suite_event){.kind = SUITE_NOT_BACK, .err_kind = ERR_UNAVAILABLE});
		w->there.put_off = w->memory && suite_returns_later(w->memory);
		return;
	}
	if (!w->there.lost)
		look_at_all(w);
	take_ends(w);
	step(w, &(struct suite_event){
			.kind = SUITE_BACK,
			.verdict = w->there.told ? VERDICT_CANCELLED : VERDICT_FAILED,
		});
}

static void step_away(struct suite_world *w)
{
	if (w->there.gone)
		come_back(w);
	else if (rng_below(&w->rng, 2))
		go_on_there(w);
	else if (w->there.closed)
		look_at_all(w);
	else
		look_there(w, (int)rng_below(&w->rng, (uint64_t)w->disk->n));
}

/* From now on its runs are made here. */
static void check_back(struct suite_world *w)
{
	for (int i = 0; i < w->disk->n; i++) {
		const struct suite_entry *e = &w->disk->entries[i];

		if (w->there.closed && !w->there.lost && e->state != w->there.entries[i])
			broken(w, "S8: entry %d is %s, and was %s there", i,
			       entry_state_name(e->state), entry_state_name(w->there.entries[i]));
		if (e->state == ENTRY_SUCCEEDED ||
		    (w->there.copied[i] && w->there.entries[i] == ENTRY_SUCCEEDED))
			w->runs[i][e->attempt] =
				(struct true_run){.made = true, .verdict = VERDICT_SUCCEEDED};
	}
	w->there.away = false;
}

/* S5: what has ended is whole. */
static void check_ended(struct suite_world *w)
{
	const struct core_suite *d = w->disk;
	bool all = true, lost = w->there.lost;

	if (w->there.away)
		check_back(w);
	if (count_active(w))
		broken(w, "S5: the suite has ended, and a run has not");
	if (w->plan.runs.on_exit.n && !w->closes)
		broken(w, "S5: the suite has ended without on_exit");
	for (int i = 0; i < d->n; i++) {
		bool won = has_succeeded(w, i);

		all = all && won;
		if (won != (d->entries[i].state == ENTRY_SUCCEEDED))
			broken(w, "S5: entry %d is %s, which is not true", i,
			       entry_state_name(d->entries[i].state));
		if (!entry_state_is_final(d->entries[i].state) && !d->cancel_asked &&
		    !d->too_dear && !lost)
			broken(w, "S5: entry %d was lost", i);
	}
	if (all != (d->phase == SUITE_SUCCEEDED) && !d->cancel_asked)
		broken(w, "S5: the suite is %s", suite_phase_name(d->phase));
}

/* The user resumes what has ended, a few times. */
static bool go_on(struct suite_world *w)
{
	check_ended(w);
	if (w->again >= MAX_ATTEMPTS - 1 || rng_below(&w->rng, 2))
		return false;
	w->again++;
	w->cancelled = rng_below(&w->rng, 2);
	w->client_until = 0;
	w->client_gone = w->client_done = false;
	struct suite_event ev = {.kind = SUITE_AGAIN,
				 .failed = rng_below(&w->rng, 2),
				 .away = rng_below(&w->rng, 3) == 0};
	if (rng_below(&w->rng, 2))
		snprintf(ev.client, sizeof(ev.client), "%s", CLIENT);
	step(w, &ev);
	bool goes_on = w->memory && !suite_phase_is_final(w->memory->phase);

	if (goes_on)
		w->there.gone = w->there.lost = false;
	return goes_on;
}

static void draw_plan(struct suite_world *w)
{
	static const char *names[] = {"a", "b", "c", "d", "e", "f"};
	bool ordered = rng_below(&w->rng, 2);

	w->plan.n = 1 + (int)rng_below(&w->rng, MAX_VARIANTS);
	w->plan.variants = w->variants;
	w->plan.runs.repeats = 1 + (int64_t)rng_below(&w->rng, MAX_REPEATS);
	w->plan.runs.order = (int)rng_below(&w->rng, 2);
	w->command = "true";
	w->plan.runs.on_exit = (struct strs){&w->command, rng_below(&w->rng, 2)};
	w->plan.runs.max_cost = rng_below(&w->rng, 5) ? 0 : 0.004;
	w->parallel = 1 + (int)rng_below(&w->rng, 4);
	bool turned = rng_below(&w->rng, 2);
	for (int i = 0; i < w->plan.n; i++) {
		struct suite_variant *v = &w->variants[i];

		*v = (struct suite_variant){.name = names[i], .after = w->after[i], .baseline = -1};
		for (int k = 0; ordered && k < w->plan.n; k++)
			if ((turned ? k > i : k < i) && rng_below(&w->rng, 3) == 0)
				v->after[v->nafter++] = k;
	}
}

static void history_step(struct suite_world *w)
{
	uint64_t what = rng_below(&w->rng, 100);

	/* Now and then long enough for a claim to run out. */
	w->now += (int64_t)rng_below(&w->rng, chance(w, 10) ? 2 * SUITE_CLAIM_MS : 400);
	if (!w->memory)
		restart(w);
	else if (what < 2 && !w->cancelled && w->steps < FAULTS_UNTIL) {
		w->cancelled = true;
		step(w, &(struct suite_event){.kind = SUITE_CANCEL, .hurry = what});
	} else if (what < 10)
		step(w, &(struct suite_event){.kind = SUITE_TICK});
	else if (chance(w, 10))
		crash(w);
	else if (what < 25 && w->memory->phase == SUITE_CLOSING)
		client_step(w);
	else if (what < 55 && w->queue.n)
		carry_out(w);
	else if (w->memory->away)
		step_away(w);
	else
		end_run(w);
}

void sim_suite(uint64_t seed, int verbose, struct sim_result *ret)
{
	struct suite_world *w = xcalloc(1, sizeof(*w));

	*ret = (struct sim_result){.seed = seed};
	w->res = ret;
	w->verbose = verbose;
	w->hash = 0xcbf29ce484222325ull;
	rng_seed(&w->rng, seed ^ 0x5u);
	draw_plan(w);
	w->cancelled = rng_below(&w->rng, 2);
	w->disk = core_suite_new(&w->plan, w->parallel);
	w->memory = core_suite_new(&w->plan, w->parallel);
	if (rng_below(&w->rng, 2))
		snprintf(w->memory->client, sizeof(w->memory->client), "%s", CLIENT);
	w->memory->away = w->disk->away = rng_below(&w->rng, 4) == 0;
	if (w->memory->away)
		leave(w, true);
	step(w, &(struct suite_event){.kind = SUITE_ACCEPTED});
	for (; !ret->broken; w->steps++) {
		if (w->steps > MAX_STEPS)
			broken(w, "S5: %d steps and no end", w->steps);
		if (w->memory && suite_phase_is_final(w->disk->phase) && !go_on(w) && w->memory)
			break;
		history_step(w);
	}
	ret->events = w->steps;
	ret->hash = w->hash;
	ret->sim_ms = w->now;
	core_suite_free(w->memory);
	core_suite_free(w->disk);
	suite_effects_release(&w->fx);
	vec_release(&w->queue);
	free(w);
}
