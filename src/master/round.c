/*
 * Steps the core for each event, and commits all changes of a round in one transaction.
 *
 * Rows that change several times in a round are written once.  If the commit fails no effect is
 * carried out and the master leaves: the next one reads the committed state.
 */
#include "master/round.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/exit_text.h"
#include "base/log.h"
#include "core/commit_round.h"
#include "master/api/api.h"
#include "master/api/sse.h"
#include "master/api/watch.h"
#include "master/clock.h"
#include "master/effects.h"
#include "master/enrol.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/queue.h"
#include "master/requests.h"
#include "master/runs.h"
#include "master/streams.h"
#include "master/suites.h"
#include "master/upkeep/finish.h"
#include "sys/loop.h"

#define MADE_MAX 200 /* kind and name of a resource, or a word behind a text */

void master_fatal(struct master *m, const struct err *err)
{
	log_error("the master cannot go on: %s", err->msg);
	m->exit_code = err_exit_code(err->kind);
	m->stopping = true;
	loop_stop(m->loop);
}

void round_mark(struct live_run *lr)
{
	if (list_empty(&lr->in_round))
		list_append(&lr->m->rounds, &lr->in_round);
}

static void add_event(struct live_run *lr, const char *kind, int node, const char *text)
{
	struct event_row row = {
		.time_ms = clock_wall_ms(), .kind = kind, .node = node, .text = text};
	struct err err = {0};

	store_begin(lr->m->store);
	if (store_event_add(lr->m->store, lr->row.no, row.time_ms, kind, node, text, &lr->last_seq,
			    &err) < 0) {
		master_fatal(lr->m, &err);
	} else {
		row.seq = lr->last_seq;
		sse_event(lr->m->sse, lr, store_last_event(lr->m->store), &row);
	}
	round_mark(lr);
}

void run_note(struct live_run *lr, const char *kind, int node, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	add_event(lr, kind, node, text);
}

/* The node that an event is recorded for; -1 for the run itself. */
static int event_node(const struct live_run *lr, const struct event *ev)
{
	if (ev->kind >= EV_NODE_HELLO)
		return ev->index;
	if (ev->kind == EV_RES_ANSWER && ev->index < lr->plan.nresources)
		return lr->plan.resources[ev->index].node;
	return -1;
}

static void describe_exit(const struct exit_info *e, char *out, size_t size)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, 512);
	exit_describe(&text, e->code, e->signal, e->oom, str_from(e->reason));
	snprintf(out, size, "%.*s", STR_ARG(buf_str(&text)));
}

/* Of a resource that is no node's, whose name says what was made. */
static void describe_id(const struct live_run *lr, const struct event *ev, char *out, size_t size)
{
	const struct plan_resource *pr =
		ev->index < lr->plan.nresources ? &lr->plan.resources[ev->index] : NULL;

	if (pr && pr->node < 0)
		snprintf(out, size, "%s %s: id %s", pr->kind, pr->name, ev->text);
	else
		snprintf(out, size, "id %s", ev->text);
}

static void describe(const struct live_run *lr, const struct event *ev, char *out, size_t size)
{
	if (ev->kind == EV_NODE_EXITED || (ev->kind == EV_NODE_SEEN && ev->ended))
		describe_exit(&ev->exit, out, size);
	else if (core_answer_has_id(ev))
		describe_id(lr, ev, out, size);
	else if (ev->kind == EV_CANCEL)
		snprintf(out, size, "%s%s", ev->text, ev->hurry ? " (now)" : "");
	else
		snprintf(out, size, "%s", ev->text);
}

/* In the events of the run, and in the log of the master. */
static void note_phase(struct live_run *lr)
{
	const char *name = run_phase_name(lr->core->phase);
	const char *why = lr->core->phase >= RUN_COLLECTING ? lr->core->cause.text : "";

	add_event(lr, name, lr->core->cause.node, why);
	log_info("run %s: %s%s%s", lr->row.id, name, *why ? ": " : "", why);
}

void run_event(struct live_run *lr, const struct event *ev)
{
	enum run_phase before = lr->core->phase;
	uint64_t changes = lr->fx.changes;
	char text[sizeof(ev->text) + MADE_MAX];

	if (lr->ended && ev->kind != EV_NODE_HELLO && ev->kind != EV_ENROL)
		return;
	core_step(lr->core, ev, master_now(lr->m), &lr->fx);

	/* An event that changed nothing (it came late or twice) is not recorded. */
	if (lr->fx.changes == changes)
		return;
	if (ev->kind == EV_ENROL)
		enrol_record(lr, ev, &lr->fx.v[lr->fx.n - 1]);
	else if (ev->kind != EV_TICK) {
		describe(lr, ev, text, sizeof(text));
		add_event(lr, event_name(ev), event_node(lr, ev), text);
	}
	if (lr->core->phase != before) {
		note_phase(lr);
		lr->m->queue_due |= plan_queues(&lr->plan);
	}
	round_mark(lr);
}

static int save_node(void *run, int rank, const struct core_node *n, struct err *err)
{
	const struct live_run *lr = run;

	return store_node_save(lr->m->store, lr->row.no, rank, n, err);
}

static int save_resource(void *run, int index, const struct core_resource *res, struct err *err)
{
	const struct live_run *lr = run;

	return store_resource_save(lr->m->store, lr->row.no, index, &lr->plan.resources[index], res,
				   err);
}

static int save_run(void *run, const struct core_run *r, struct err *err)
{
	const struct live_run *lr = run;

	return store_run_save(lr->m->store, lr->row.no, r, master_now(lr->m), err);
}

static int save_one(struct live_run *lr, struct err *err)
{
	static const struct round_rows rows = {save_node, save_resource, save_run};
	struct store *st = lr->m->store;

	store_begin(st);
	if (round_save_rows(lr->core, &lr->fx, &rows, lr, err) < 0 || requests_save(lr, err) < 0 ||
	    streams_save(lr, err) < 0)
		return -1;
	if (!run_phase_is_final(lr->core->phase) || lr->ended)
		return 0;
	lr->row.ended_ms = clock_wall_ms();
	suites_run_ended(lr->m->suites, lr);
	return store_run_ended(st, lr->row.no, lr->row.ended_ms, err);
}

void master_set_tick(struct master *m)
{
	int64_t next = 0;
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		const struct live_run *lr = value;
		if (!lr->ended && lr->core->next_ms && (!next || lr->core->next_ms < next))
			next = lr->core->next_ms;
	}
	if (next) {
		int64_t wait = next - master_now(m);
		loop_timer_set(m->tick, wait > 0 ? wait : 0);
	} else {
		loop_timer_cancel(m->tick);
	}
}

static int save_round(void *ctx, struct err *err)
{
	const struct master *m = ctx;
	struct list *pos;

	list_each (pos, &m->rounds)
		if (save_one(list_item(pos, struct live_run, in_round), err) < 0)
			return -1;
	return suites_save(m->suites, err);
}

static int commit_round(void *ctx, struct err *err)
{
	const struct master *m = ctx;

	return store_commit(m->store, err);
}

static void not_stored(struct master *m, const struct err *err)
{
	struct err why = {0};
	struct list *pos;

	err_set(&why, ERR_IO, "it could not be stored: %.200s", err->msg);
	list_each (pos, &m->rounds) {
		struct live_run *lr = list_item(pos, struct live_run, in_round);

		if (lr->answer)
			api_run_stored(lr, &why);
	}
	suites_not_stored(m->suites, &why);
}

static void hand_out_one(struct live_run *lr)
{
	struct effects fx = lr->fx;

	list_remove(&lr->in_round);
	lr->fx = (struct effects){0}; /* events caused by the effects belong to the next round */
	lr->busy++;
	if (lr->answer)
		api_run_stored(lr, NULL);
	for (size_t i = 0; i < fx.nodes.n; i++)
		node_changed(lr, fx.nodes.v[i]);
	streams_committed(lr);
	run_keep_events(lr);
	effects_do(lr, &fx);
	effects_release(&fx);
	watch_changed(lr->m->watch, lr);
	lr->busy--;
	live_run_done(lr);
}

static void hand_out_round(void *ctx)
{
	struct master *m = ctx;
	struct list done;

	/* Events caused by the effects mark runs in m->rounds again, for the next commit. */
	list_init(&done);
	while (!list_empty(&m->rounds)) {
		struct list *pos = m->rounds.next;
		list_remove(pos);
		list_append(&done, pos);
	}
	sse_committed(m->sse);
	while (!list_empty(&done))
		hand_out_one(list_item(done.next, struct live_run, in_round));
	suites_hand_out(m->suites);
	if (m->queue_due)
		queue_update(m);
	master_set_tick(m);
}

void round_end(void *ctx)
{
	static const struct round_order order = {save_round, commit_round, hand_out_round};
	struct master *m = ctx;
	struct err err = {0};

	if (m->stopping && m->exit_code)
		return;
	/* A store that has failed, whoever noticed, serves nobody any more: the next master opens it anew. */
	bool failed = store_check(m->store, &err) < 0;

	if (!failed && list_empty(&m->rounds) && !suites_pending(m->suites))
		return;
	if (failed || round_commit(&order, m, &err) < 0) {
		master_fatal(m, &err);
		not_stored(m, &err);
	}
}
