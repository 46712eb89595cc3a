/*
 * The state of a run, its nodes and its resources, as the core keeps it.
 *
 * Each reader takes the columns in the order in which its writer binds them.  Connections, open
 * effects and counters are not stored: a restart makes them again.
 */
#include "store/internal.h"

#include <inttypes.h>
#include <limits.h>

#include "base/arena.h"
#include "base/cleanup.h"

enum { SAVE_RUN, END_RUN, SAVE_NODE, SAVE_RESOURCE, LOAD_RUN, LOAD_NODES, LOAD_RESOURCES, LEDGER };
static const struct stmt_def defs[STMT_SLOTS] = {
	[SAVE_RUN] =
		{"save run",
		 "UPDATE run SET phase = ?2, verdict = ?3, cause_kind = ?4, cause_node = ?5, cause_text "
		 "= ?6, cancel_asked = ?7, hurry = ?8, deadline_ms = ?9, rng_0 = ?10, rng_1 = ?11, "
		 "rng_2 = ?12, rng_3 = ?13, accepted_at_ms = ?14, provisioning_at_ms = ?15, "
		 "gathering_at_ms = ?16, running_at_ms = ?17, collecting_at_ms = ?18, cleaning_at_ms = "
		 "?19, succeeded_at_ms = ?20, failed_at_ms = ?21, cancelled_at_ms = ?22, slow_ms = ?23, "
		 "next_call_ms = ?24 WHERE no = ?1"},
	[LOAD_RUN] =
		{"restore run",
		 "SELECT phase, verdict, cause_kind, cause_node, cause_text, cancel_asked, hurry, "
		 "deadline_ms, rng_0, rng_1, rng_2, rng_3, accepted_at_ms, provisioning_at_ms, "
		 "gathering_at_ms, running_at_ms, collecting_at_ms, cleaning_at_ms, succeeded_at_ms, "
		 "failed_at_ms, cancelled_at_ms, slow_ms, next_call_ms FROM run WHERE no = ?1"},
	/* Progress of the slowest rank, where a rank counts with its series of the highest step. */
	[END_RUN] =
		{"end run",
		 "UPDATE run SET ended_ms = ?2, cost_micro = (SELECT coalesce(sum(paid_micro), 0) FROM "
		 "resource WHERE run = ?1), (step, total) = (SELECT s, t FROM (SELECT step AS s, "
		 "total AS t, rank AS r, row_number() OVER (PARTITION BY rank ORDER BY step DESC, "
		 "series) AS place FROM series WHERE run = ?1 AND total > 0 UNION ALL SELECT 0, 0, 0, 1) "
		 "WHERE place = 1 ORDER BY t = 0, s * 1.0 / t, r LIMIT 1) WHERE no = ?1"},
	[SAVE_NODE] =
		{"save node",
		 "REPLACE INTO node (run, rank, state, attempt, start_sent, stop_sent, serving, settled, "
		 "there, exit_code, exit_signal, exit_oom, exit_kind, exit_reason, since_ms, serve_by_ms, "
		 "lost_at_ms, look_at_ms, address, incarnation, identity, retried, after, asleep, by_ms, shrunk, preempt_at_ms, job_rank) "
		 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, "
		 "?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28)"},
	[LOAD_NODES] =
		{"restore nodes",
		 "SELECT rank, state, attempt, start_sent, stop_sent, serving, settled, there, exit_code, "
		 "exit_signal, exit_oom, exit_kind, exit_reason, since_ms, serve_by_ms, lost_at_ms, "
		 "look_at_ms, address, incarnation, identity, retried, after, asleep, by_ms, shrunk, preempt_at_ms, job_rank + 1 FROM node "
		 "WHERE run = ?1"},
	[SAVE_RESOURCE] =
		{"save resource",
		 "REPLACE INTO resource (run, place, kind, name, state, attempt, tries, unsure, "
		 "since_ms, retry_at_ms, why_kind, why, id, batch, batch_place, choice, incarnation, node, spec, choice_spec, shared, enrolled, paid_from_ms, paid_ms, paid_micro) "
		 "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, "
		 "?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25)"},
	[LOAD_RESOURCES] =
		{"restore resources",
		 "SELECT place, kind, name, state, attempt, tries, unsure, since_ms, retry_at_ms, "
		 "why_kind, why, id, batch, batch_place, choice, incarnation, enrolled, paid_from_ms, paid_ms, paid_micro FROM resource WHERE run = ?1"},
	[LEDGER] =
		{"read ledger",
		 "SELECT place, kind, name, node, spec, choice_spec, shared FROM resource WHERE run = ?1 ORDER BY place"},
};

/* ERR_NOT_FOUND if the UPDATE changed no row, because the run does not exist. */
static int update_run(struct sql_query *q, int64_t no, struct err *err)
{
	struct store *st = q->st;
	bool dirty = st->dirty;

	if (query_run(q, err) < 0)
		return -1;
	if (sqlite3_changes(st->db) > 0)
		return 0;
	st->dirty = dirty;
	return err_set(err, ERR_NOT_FOUND, "%s: no run %" PRId64, q->what, no);
}

int store_run_save(struct store *st, int64_t no, const struct core_run *r, int64_t now_ms,
		   struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_STATE, SAVE_RUN, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, r->phase);
	query_int(&q, r->verdict);
	query_int(&q, r->cause.kind);
	query_int(&q, r->cause.node);
	query_text(&q, r->cause.text);
	query_int(&q, r->cancel_asked);
	query_int(&q, r->hurry);
	query_int(&q, r->deadline_ms);
	for (int i = 0; i < 4; i++)
		query_int(&q, (int64_t)r->rng.s[i]);
	for (int i = 0; i < RUN_PHASES; i++)
		query_int(&q, r->phase_at_ms[i]);
	query_int(&q, r->slow_ms);
	query_int(&q, r->next_call_ms);
	if (update_run(&q, no, err) < 0)
		return -1;
	store_saw_ms(st, now_ms);
	return 0;
}

int store_run_ended(struct store *st, int64_t no, int64_t wall_ms, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_STATE, END_RUN, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, wall_ms);
	return update_run(&q, no, err);
}

int store_node_save(struct store *st, int64_t no, int rank, const struct core_node *n,
		    struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_STATE, SAVE_NODE, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, rank);
	query_int(&q, n->state);
	query_int(&q, n->attempt);
	query_int(&q, n->start_sent);
	query_int(&q, n->stop_sent);
	query_int(&q, n->serving);
	query_int(&q, n->settled);
	query_int(&q, n->gate_met);
	query_int(&q, n->exit.code);
	query_int(&q, n->exit.signal);
	query_int(&q, n->exit.oom);
	query_int(&q, n->exit.kind);
	query_text(&q, n->exit.reason);
	query_int(&q, n->since_ms);
	query_int(&q, n->serve_by_ms);
	query_int(&q, n->lost_at_ms);
	query_int(&q, n->observe_at_ms);
	query_text(&q, n->address);
	query_int(&q, n->incarnation);
	query_text(&q, n->identity);
	query_int(&q, n->retried);
	query_int(&q, n->after);
	query_int(&q, n->asleep);
	query_int(&q, n->by_ms);
	query_int(&q, n->shrunk);
	query_int(&q, n->preempt_at_ms);
	query_int(&q, n->job_rank);
	if (query_run(&q, err) < 0)
		return -1;
	store_saw_ms(st, n->since_ms);
	return 0;
}

int store_resource_save(struct store *st, int64_t no, int index, const struct plan_resource *pr,
			const struct core_resource *res, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	const char *choice = plan_choice(pr, res->choice);

	if (query_write(&q, st, STMT_STATE, SAVE_RESOURCE, defs, err) < 0)
		return -1;
	query_int(&q, no);
	query_int(&q, index);
	query_text(&q, pr->kind);
	query_text(&q, pr->name);
	query_int(&q, res->state);
	query_int(&q, res->attempt);
	query_int(&q, res->tries);
	query_int(&q, res->unsure);
	query_int(&q, res->since_ms);
	query_int(&q, res->retry_at_ms);
	query_int(&q, res->why_kind);
	query_text(&q, res->why);
	query_text(&q, res->id);
	query_int(&q, res->batch);
	query_int(&q, res->batch_place);
	query_int(&q, res->choice);
	query_int(&q, res->incarnation);
	query_int(&q, pr->node);
	query_text(&q, pr->spec ? pr->spec : "{}");
	query_text(&q, choice ? choice : "");
	query_int(&q, pr->shared);
	query_int(&q, res->enrolled);
	query_int(&q, res->paid_from_ms);
	query_int(&q, res->paid_ms);
	query_int(&q, res->paid_micro);
	if (query_run(&q, err) < 0)
		return -1;
	store_saw_ms(st, res->since_ms);
	return 0;
}

static int restore_run(struct store *st, int64_t no, struct core_run *r, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_STATE, LOAD_RUN, defs, err) < 0)
		return -1;
	query_int(&q, no);
	if (query_row(&q, "no run", no, err) < 0)
		return -1;
	r->phase = (enum run_phase)row_below(&q, RUN_PHASES);
	r->verdict = (enum verdict)row_below(&q, VERDICT_CANCELLED + 1);
	r->cause.kind = (enum err_kind)row_below(&q, ERR_KINDS);
	r->cause.node = (int)row_int(&q);
	row_chars(&q, r->cause.text, sizeof(r->cause.text));
	r->cancel_asked = row_int(&q) != 0;
	r->hurry = row_int(&q) != 0;
	r->deadline_ms = row_int(&q);
	for (int i = 0; i < 4; i++)
		r->rng.s[i] = (uint64_t)row_int(&q);
	for (int i = 0; i < RUN_PHASES; i++)
		r->phase_at_ms[i] = row_int(&q);
	r->slow_ms = row_int(&q);
	r->next_call_ms = row_int(&q);
	return query_sound(&q, err);
}

static void read_node(struct sql_query *q, struct core_node *n, int nodes)
{
	n->state = (enum node_state)row_below(q, NODE_STATES);
	n->attempt = (int)row_int(q);
	n->start_sent = row_int(q) != 0;
	n->stop_sent = row_int(q) != 0;
	n->serving = row_int(q) != 0;
	n->settled = row_int(q) != 0;
	n->gate_met = row_int(q) != 0;
	n->exit.code = (int)row_int(q);
	n->exit.signal = (int)row_int(q);
	n->exit.oom = row_int(q) != 0;
	n->exit.kind = (enum err_kind)row_below(q, ERR_KINDS);
	row_chars(q, n->exit.reason, sizeof(n->exit.reason));
	n->since_ms = row_int(q);
	n->serve_by_ms = row_int(q);
	n->lost_at_ms = row_int(q);
	n->observe_at_ms = row_int(q);
	row_chars(q, n->address, sizeof(n->address));
	n->incarnation = (int)row_below(q, INT_MAX);
	row_chars(q, n->identity, sizeof(n->identity));
	n->retried = (int)row_below(q, INT_MAX);
	n->after = (enum node_after)row_below(q, AFTER_AGAIN + 1);
	n->asleep = row_int(q) != 0;
	n->by_ms = row_int(q);
	n->shrunk = row_int(q) != 0;
	n->preempt_at_ms = row_int(q);
	n->job_rank = (int)row_below(q, (int64_t)nodes + 1) - 1; /* plus one: from -1 on */
}

static int restore_nodes(struct store *st, int64_t no, struct core_run *r, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int got;

	if (query_read(&q, st, STMT_STATE, LOAD_NODES, defs, err) < 0)
		return -1;
	query_int(&q, no);
	while ((got = query_next(&q, err)) > 0) {
		int64_t rank = row_below(&q, INT_MAX);

		if (rank >= r->plan->crew.n)
			return err_set(err, ERR_CONFLICT,
				       "run %" PRId64 " has a node of rank %" PRId64
				       ", but its plan makes %d nodes",
				       no, rank, r->plan->crew.n);
		read_node(&q, &r->nodes[rank], r->plan->crew.n);
	}
	return got < 0 ? -1 : query_sound(&q, err);
}

/* The rows of the ledger are resources that exist: a plan with another resource at the same
 * index is refused. */
static int check_place(int64_t no, int64_t place, const char *kind, const char *name,
		       const struct plan *p, struct err *err)
{
	if (place < p->nresources && strcmp(p->resources[place].kind, kind) == 0 &&
	    strcmp(p->resources[place].name, name) == 0)
		return 0;
	return err_set(err, ERR_CONFLICT,
		       "run %" PRId64 ": the ledger has %s '%s' in place %" PRId64
		       ", its plan has %s%s%s%s",
		       no, kind, name, place,
		       place < p->nresources ? p->resources[place].kind : "nothing",
		       place < p->nresources ? " '" : "",
		       place < p->nresources ? p->resources[place].name : "",
		       place < p->nresources ? "'" : "");
}

static void read_resource(struct sql_query *q, struct core_resource *res)
{
	res->state = (enum res_state)row_below(q, RES_STATES);
	res->attempt = (int)row_int(q);
	res->tries = (int)row_int(q);
	res->unsure = row_int(q) != 0;
	res->since_ms = row_int(q);
	res->retry_at_ms = row_int(q);
	res->why_kind = (enum err_kind)row_below(q, ERR_KINDS);
	row_chars(q, res->why, sizeof(res->why));
	row_chars(q, res->id, sizeof(res->id));
	res->batch = (int)row_below(q, INT_MAX);
	res->batch_place = (int)row_below(q, INT_MAX);
	res->choice = (int)row_below(q, INT_MAX);
	res->incarnation = (int)row_below(q, INT_MAX);
	res->enrolled = (int)row_below(q, INT_MAX);
	res->paid_from_ms = row_below(q, INT64_MAX);
	res->paid_ms = row_below(q, INT64_MAX);
	res->paid_micro = row_below(q, INT64_MAX);
}

static int restore_resources(struct store *st, int64_t no, struct core_run *r, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int got;

	if (query_read(&q, st, STMT_STATE, LOAD_RESOURCES, defs, err) < 0)
		return -1;
	query_int(&q, no);
	while ((got = query_next(&q, err)) > 0) {
		int64_t place = row_below(&q, INT_MAX);
		const char *kind = row_text(&q), *name = row_text(&q);

		if (check_place(no, place, kind, name, r->plan, err) < 0)
			return -1;
		read_resource(&q, &r->resources[place]);
	}
	return got < 0 ? -1 : query_sound(&q, err);
}

int store_ledger_each(struct store *st, int64_t no, struct arena *a, ledger_fn fn, void *ctx,
		      struct err *err)
{
	CLEANUP(query_end) struct sql_query q;
	int got;

	if (query_read(&q, st, STMT_STATE, LEDGER, defs, err) < 0)
		return -1;
	query_int(&q, no);
	while ((got = query_next(&q, err)) > 0) {
		int64_t index = row_below(&q, INT_MAX);
		struct plan_resource pr = {
			.kind = row_text_in(&q, a),
			.name = row_text_in(&q, a),
		};

		pr.node = (int)row_int(&q);
		pr.spec = row_text_in(&q, a);
		const char **choice = arena_array(a, const char *, 1);

		*choice = row_text_in(&q, a);
		pr.choices = choice;
		/* The row has one choice only, whatever its number. */
		pr.nchoices = choice[0][0] != '\0';
		pr.shared = row_int(&q) != 0;
		fn(ctx, (int)index, &pr);
	}
	return got < 0 ? -1 : query_sound(&q, err);
}

int store_run_restore(struct store *st, int64_t no, struct core_run *r, struct err *err)
{
	if (restore_run(st, no, r, err) < 0 || restore_nodes(st, no, r, err) < 0)
		return -1;
	return restore_resources(st, no, r, err);
}
