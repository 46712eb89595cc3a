/*
 * A run that is handed to another master, which lives on one of its resources.
 *
 *	gathering	the run is offered to that master until it takes it
 *	running		it has the run: it is asked how the run stands, and told of a cancel
 *	collecting	it has ended the run: its results must reach the store before its machine goes, unless
 *			it has given up copying them, or is gone
 *	cleaning	if it has not said that it ended the run, what it made is removed by its tags, when its
 *			machine is gone
 *
 * One question is open at a time.  An offer may be repeated, because the other master knows a run that
 * it has.  An offer without a clear answer may have been taken: from then on, and after a restart, the
 * run counts as handed over, so that nothing but that master's answer or the end of its machine ends it.
 */
#include "core/handover.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define ASK_FIRST_MS 1000
#define ASK_MAX_MS 10000
#define FOLLOW_MS 2500 /* less than the other master waits before it ends its machine */

static const struct plan_resource *machine(const struct core_run *r)
{
	return &r->plan->resources[r->remote.resource];
}

static int64_t boot_ms(const struct core_run *r)
{
	return r->plan->job->timeouts.boot_ms;
}

void handover_restored(struct core_run *r)
{
	r->remote = (struct core_remote){.resource = -1};
	for (int i = 0; r->plan->hands_over && i < r->plan->nresources; i++)
		if (r->plan->resources[i].master)
			r->remote.resource = i;
}

bool handover_is_open(const struct core_run *r)
{
	return r->plan->hands_over && r->phase >= RUN_GATHERING && r->phase <= RUN_RUNNING;
}

bool handover_awaits_results(const struct core_run *r)
{
	return r->plan->hands_over && r->phase == RUN_COLLECTING && r->phase_at_ms[RUN_RUNNING] &&
	       !r->remote.stored;
}

/* Asks what the phase needs, unless a question is open. */
static void ask(struct step *s)
{
	struct core_run *r = s->r;
	struct core_remote *m = &r->remote;
	bool collects = handover_awaits_results(r);

	if (m->asked || (!handover_is_open(r) && !collects && !m->sweeping))
		return;
	m->asked = true;
	m->ask_no++;
	m->at_ms = 0;
	m->asked_gone = m->gone;
	m->asked_sweep = m->sweeping;
	m->told_cancel = r->phase == RUN_RUNNING && r->cancel_asked;
	m->told_hurry = r->phase == RUN_RUNNING && r->hurry;
	effect_add(s,
		   m->sweeping		       ? FX_SWEEP
		   : collects		       ? FX_AWAIT_RESULTS
		   : r->phase == RUN_GATHERING ? FX_HAND_OVER
					       : FX_FOLLOW,
		   m->resource);
}

static void ask_after(struct step *s, int64_t ms)
{
	s->r->remote.at_ms = s->now + ms;
	tick_want(s, s->r->remote.at_ms);
}

/* Pauses grow from ASK_FIRST_MS to ASK_MAX_MS. */
static void ask_later(struct step *s)
{
	struct core_remote *m = &s->r->remote;

	m->pause_ms = m->pause_ms ? m->pause_ms * 2 : ASK_FIRST_MS;
	if (m->pause_ms > ASK_MAX_MS)
		m->pause_ms = ASK_MAX_MS;
	ask_after(s, m->pause_ms);
}

void handover_begin(struct step *s)
{
	s->r->remote.pause_ms = 0;
	ask(s);
}

void handover_tick(struct step *s)
{
	struct core_remote *m = &s->r->remote;

	if (m->at_ms && s->now >= m->at_ms) {
		m->at_ms = 0;
		ask(s);
	}
	tick_want(s, m->at_ms);
}

static void doubt(struct step *s)
{
	s->r->remote.doubt = true;
	s->r->remote.heard_ms = s->now;
}

void handover_resume(struct step *s)
{
	doubt(s); /* the previous master may have sent an offer */
	ask(s);
}

/* Nobody else has the run: it ends here. */
static void end_here(struct step *s, enum err_kind kind, const char *what, const char *why)
{
	if (s->r->cancel_asked)
		run_end_running(s, VERDICT_CANCELLED, ERR_CANCELLED, -1, "cancelled");
	else
		run_end_running(s, VERDICT_FAILED, kind, -1, "%s%s%s", what, why[0] ? ": " : "",
				why);
}

static void taken(struct step *s)
{
	run_set_phase(s, RUN_RUNNING);
	s->r->remote.pause_ms = 0;
	if (s->r->cancel_asked || s->r->remote.gone)
		ask(s);
	else
		ask_after(s, ASK_FIRST_MS);
}

/* It does not answer, which it cannot if its machine is gone. */
static void unanswered(struct step *s)
{
	ask_later(s);
	if (!s->r->remote.gone)
		res_observe(s, s->r->remote.resource);
}

static bool passes(enum err_kind kind)
{
	return kind == ERR_UNAVAILABLE || kind == ERR_TIMEOUT || kind == ERR_THROTTLED;
}

/* After an offer that it may have taken: it counts as never booted only if its machine can be looked at
 * from here all the time. */
static bool may_have_it(const struct step *s)
{
	const struct core_remote *m = &s->r->remote;

	return s->now < m->heard_ms + boot_ms(s->r) ||
	       s->r->resources[m->resource].why_kind != ERR_NONE;
}

/* The offer did not reach it: it is still booting, or never will. */
static void not_reached(struct step *s, const struct event *ev)
{
	struct core_run *r = s->r;
	char what[120], span[32];

	if (r->remote.doubt
		    ? may_have_it(s)
		    : !r->cancel_asked && s->now < r->phase_at_ms[RUN_GATHERING] + boot_ms(r)) {
		unanswered(s);
		return;
	}
	clock_format_span(boot_ms(r), span);
	snprintf(what, sizeof(what), "the master on %s did not answer within %s (timeouts.boot)",
		 machine(r)->name, span);
	end_here(s, ev->err_kind == ERR_TIMEOUT ? ERR_TIMEOUT : ERR_UNAVAILABLE, what, ev->text);
}

static void offered(struct step *s, const struct event *ev)
{
	char what[80];

	switch (ev->outcome) {
	case OUTCOME_DONE:
		taken(s);
		return;
	case OUTCOME_REFUSED:
		/* Who may not ask does not know whether it has taken an earlier offer. */
		if (passes(ev->err_kind) || (s->r->remote.doubt && ev->err_kind == ERR_DENIED)) {
			not_reached(s, ev);
			return;
		}
		/* Also the answer to earlier offers: it would have known the run. */
		snprintf(what, sizeof(what), "the master on %s was not given the run",
			 machine(s->r)->name);
		end_here(s, ev->err_kind, what, ev->text);
		return;
	case OUTCOME_UNSURE:
	case OUTCOME_ABSENT:
	case OUTCOME_BROKEN:
	case OUTCOME_HELD:
		doubt(s);
		unanswered(s);
		return;
	}
}

static void ended(struct step *s, const struct event *ev)
{
	run_end_running(s, ev->verdict, ev->err_kind, -1, "%s", ev->text);
	s->r->remote.whole = true; /* a run has ended when all that was made for it is gone */
	s->r->remote.pause_ms = 0;
	ask(s);
}

/* It does not have the run: only its results can tell how the run ended. */
static void unknown(struct step *s, const struct event *ev)
{
	struct core_remote *m = &s->r->remote;

	if (!m->asked_gone) {
		m->gone = true;
		ask(s);
		return;
	}
	m->stored = true; /* there is nothing to wait for */
	/* What keeps it from starting is a mistake of the job, perhaps: its kind is the run's. */
	end_here(s, m->unborn && m->why_kind != ERR_NONE ? m->why_kind : ERR_UNAVAILABLE,
		 m->unborn ? "the run's master did not start"
			   : "the run's master has gone and left no results",
		 m->why[0] ? m->why : ev->text);
}

static void followed(struct step *s, const struct event *ev)
{
	switch (ev->outcome) {
	case OUTCOME_DONE:
		s->r->remote.pause_ms = 0;
		if (ev->verdict != VERDICT_NONE)
			ended(s, ev);
		else
			ask_after(s, FOLLOW_MS);
		return;
	case OUTCOME_ABSENT:
		unknown(s, ev);
		return;
	case OUTCOME_REFUSED:
	case OUTCOME_UNSURE:
	case OUTCOME_BROKEN:
	case OUTCOME_HELD:
		unanswered(s);
		return;
	}
}

/* The results will never be in the store. */
static void lost_results(struct step *s, enum err_kind kind, const char *why)
{
	char text[sizeof(s->r->cause.text)];
	size_t n = strlen(why), room = 160;

	s->r->remote.stored = true; /* nobody waits for them any more */
	/* A long text names places first, and the reason at its end. */
	snprintf(text, sizeof(text), "its results were not copied: %s%.160s", n > room ? "..." : "",
		 n > room ? why + n - room : why);
	run_lost_output(s, kind, -1, text);
	run_check_collected(s);
}

static void awaited(struct step *s, const struct event *ev)
{
	const struct core_remote *m = &s->r->remote;

	switch (ev->outcome) {
	case OUTCOME_DONE:
		s->r->remote.stored = s->r->remote.whole = true;
		run_check_collected(s);
		return;
	case OUTCOME_REFUSED:
		lost_results(s, ev->err_kind, ev->text);
		return;
	case OUTCOME_ABSENT:
		if (m->asked_gone)
			lost_results(s, ERR_UNAVAILABLE, m->why[0] ? m->why : ev->text);
		else
			unanswered(s);
		return;
	case OUTCOME_HELD:
	case OUTCOME_UNSURE:
	case OUTCOME_BROKEN:
		ask_later(s);
		return;
	}
}

bool handover_sweeps(struct step *s)
{
	const struct core_run *r = s->r;
	struct core_remote *m = &s->r->remote;

	if (!r->plan->hands_over || m->whole || (!r->phase_at_ms[RUN_RUNNING] && !m->doubt))
		return false;
	if (!m->sweeping) {
		m->sweeping = true;
		m->pause_ms = 0;
		ask(s);
	}
	return true;
}

static void swept(struct step *s, const struct event *ev)
{
	struct core_remote *m = &s->r->remote;

	if (!m->sweeping)
		return;
	if (!m->asked_sweep) {
		ask(s); /* an older question was open */
	} else if (ev->outcome == OUTCOME_DONE) {
		m->sweeping = false;
		m->whole = true;
		res_clean_needs(s, m->resource);
		run_check_clean(s);
	} else {
		ask_later(s);
	}
}

/* For people; "": the run waits for nothing there, or has ended there. */
static void note_wait(struct step *s, const struct event *ev)
{
	struct core_remote *m = &s->r->remote;
	bool has_cause = ev->outcome == OUTCOME_DONE && ev->verdict != VERDICT_NONE;
	bool boots = s->r->phase == RUN_GATHERING && passes(ev->err_kind);

	m->waits_kind = has_cause ? ERR_NONE : ev->err_kind;
	snprintf(m->waits, sizeof(m->waits), "%s%.160s",
		 boots ? "its master does not answer yet: " : "", has_cause ? "" : ev->text);
}

void handover_event(struct step *s, const struct event *ev)
{
	struct core_remote *m = &s->r->remote;
	bool told = m->told_cancel == s->r->cancel_asked && m->told_hurry == s->r->hurry;

	if (!m->asked || ev->attempt != m->ask_no)
		return;
	m->asked = false;
	note_wait(s, ev);
	if (s->r->phase == RUN_GATHERING)
		offered(s, ev);
	else if (s->r->phase == RUN_RUNNING)
		followed(s, ev);
	else if (s->r->phase == RUN_COLLECTING)
		awaited(s, ev);
	else if (s->r->phase == RUN_CLEANING)
		swept(s, ev);
	/* A cancel that came while the question was open is passed on at once. */
	if (s->r->phase == RUN_RUNNING && !told && ev->outcome == OUTCOME_DONE)
		ask(s);
}

void handover_cancel(struct step *s)
{
	struct core_run *r = s->r;

	if (r->phase == RUN_GATHERING && !r->remote.asked && !r->remote.doubt)
		end_here(s, ERR_CANCELLED, "", "");
	else
		ask(s); /* if a question is open, its answer goes on */
}

void handover_machine_gone(struct step *s, enum err_kind kind, const char *why)
{
	struct core_run *r = s->r;

	r->remote.gone = true;
	r->remote.unborn = r->phase == RUN_GATHERING && !r->remote.asked && !r->remote.doubt;
	r->remote.why_kind = kind;
	snprintf(r->remote.why, sizeof(r->remote.why), "%s", why);
	if (r->phase == RUN_GATHERING)
		run_set_phase(s, RUN_RUNNING);
	ask(s);
}

bool handover_waits(const struct core_run *r)
{
	return r->remote.waits[0] &&
	       (handover_is_open(r) || handover_awaits_results(r) || r->remote.sweeping);
}

/* At the end of the time for collecting. */
void handover_late(struct step *s)
{
	if (!handover_awaits_results(s->r))
		return;
	/* Those that only the other master has are awaited as long as its machine is there, unless somebody who is in a
	 * hurry does without them. */
	if (plan_keeps_results(s->r->plan) && !s->r->hurry) {
		s->r->deadline_ms = 0;
		run_touch(s);
		return;
	}
	s->r->remote.stored = true;
	run_lost_output(s, ERR_TIMEOUT, -1,
			"its results were not in the store in time (timeouts.collect)");
}
