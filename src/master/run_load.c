/*
 * Loads a run from its rows: job and plan as decided at the submit, state, series.
 *
 * The plan is read from the row and never made again, because another version might decide
 * differently while the nodes are running.  Only a run that an older version stored without a
 * plan is planned here, once.
 *
 * A run that cannot be read (stored by a newer version, or with damaged rows) is loaded for
 * clean-up only: its plan is made from the ledger, its nodes count as lost, and nothing happens
 * to it until it is killed.  Its agents are told to try again later.
 */
#include "master/runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/driver.h"
#include "fmt/doc.h"
#include "fmt/schema.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/round.h"
#include "master/run_make.h"
#include "master/secrets.h"
#include "master/source_state.h"
#include "master/streams.h"
#include "master/upkeep/reports.h"
#include "plan/plan.h"
#include "spec/job.h"

/* ---- the stored plan ---- */

/* job.toml, plan.json and the report of an older version contain the secrets: the texts are
 * written again, the report is removed and made again later. */
static int mask_old_files(struct live_run *lr, struct err *err)
{
	CLEANUP(freep) char *report = path_join(lr->dir, report_file_name(REPORT_PAGE));

	if (!lr->secrets || !file_exists(lr->dir))
		return 0;
	if (unlink(report) < 0 && errno != ENOENT)
		return err_errno(err, errno, "remove '%s'", report);
	return run_write_texts(lr, err);
}

/* Plans a run that an older version stored without a plan, and stores the plan. */
static int plan_old_run(struct live_run *lr, struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	const char *details = NULL;

	if (run_check_job(lr, &details, err) < 0)
		return details ? err_set(err, ERR_INVALID, "%.200s", details) : -1;
	run_secrets_take(lr, NULL);
	if (run_resolve(lr, lr->facts, NULL, err) < 0)
		return -1;
	if (!run_phase_is_final((enum run_phase)lr->row.phase) && run_secrets_save(lr, err) < 0)
		return -1;
	plan_complete(&lr->plan, lr->facts, lr->arena);
	/* Before the rows are saved: they record that the files are masked. */
	if (mask_old_files(lr, err) < 0)
		return -1;
	store_begin(lr->m->store);
	buf_init(&text, SIZE_MAX / 2);
	plan_to_stored(&lr->plan, &text);
	lr->row.plan = buf_str(&text).p;
	int rc = store_run_planned(lr->m->store, &lr->row, err);
	lr->row.plan = NULL;
	if (rc < 0)
		return -1;
	round_mark(lr);
	return 0;
}

static int read_plan(struct live_run *lr, struct err *err)
{
	struct problems *ps = arena_new_of(lr->arena, struct problems);
	struct doc *doc = NULL;

	if (json_parse_limited(str_from(lr->row.plan), PLAN_MAX_BYTES, PLAN_MAX_VALUES, lr->arena,
			       &doc, err) < 0)
		return err_wrap(err, "its plan");
	if (!plan_from_doc(doc, lr->arena, &lr->plan, ps))
		return err_set(err, ERR_INVALID, "%s", ps->v[0].text);
	struct job *job = arena_new_of(lr->arena, struct job);
	*job = *lr->plan.job;
	job->base_dir = lr->row.base_dir;
	lr->job = job;
	lr->plan.job = job;
	lr->client_env = lr->row.client_env;
	return run_phase_is_final((enum run_phase)lr->row.phase) ? 0
								 : run_secrets_load(lr, job, err);
}

static int check_kinds(const struct live_run *lr, struct err *err)
{
	for (int i = 0; i < lr->plan.nresources; i++)
		if (!driver_for(lr->plan.resources[i].kind))
			return err_set(err, ERR_INVALID,
				       "this version of regatta has no driver for %s",
				       lr->plan.resources[i].kind);
	return 0;
}

static int read_run(struct live_run *lr, struct err *err)
{
	if (lr->row.facts && json_parse_limited(str_from(lr->row.facts), PLAN_MAX_BYTES,
						PLAN_MAX_VALUES, lr->arena, &lr->facts, err) < 0)
		return err_wrap(err, "its facts");
	if ((lr->row.plan ? read_plan(lr, err) : plan_old_run(lr, err)) < 0 ||
	    check_kinds(lr, err) < 0)
		return -1;
	lr->row.plan = NULL; /* large, and not needed in memory */
	run_make_state(lr);
	return store_run_restore(lr->m->store, lr->row.no, lr->core, err);
}

/* ---- clean-up only ---- */

struct ledger {
	struct live_run *lr;
	size_t cap;
};

static void add_from_ledger(void *ctx, int index, const struct plan_resource *pr)
{
	struct ledger *l = ctx;
	struct plan *p = &l->lr->plan;

	if ((size_t)index >= l->cap) {
		size_t cap = ((size_t)index + 1) * 2;
		struct plan_resource *v = arena_array(l->lr->arena, struct plan_resource, cap);

		/* An index without a row: that resource was never created. */
		for (size_t i = 0; i < cap; i++)
			v[i] = i < (size_t)p->nresources ? p->resources[i]
							 : (struct plan_resource){.kind = "unknown",
										  .name = "",
										  .node = -1,
										  .spec = "{}"};
		p->resources = v;
		l->cap = cap;
	}
	p->resources[index] = *pr;
	p->nresources = index + 1;
	if (pr->node >= 0 && pr->node < p->crew.n) {
		p->resource_of[pr->node] = index;
		p->crew.members[pr->node].name = pr->name;
	} else {
		p->resources[index].node = -1;
	}
}

/* Makes a plan from the ledger: its resources, as many nodes as the row says, and the defaults
 * of a job. */
static int plan_from_ledger(struct live_run *lr, struct err *err)
{
	struct arena *a = lr->arena;
	struct ledger l = {.lr = lr};
	struct problems *ps = arena_new_of(a, struct problems);
	struct job *job = arena_new_of(a, struct job);
	struct doc *d = NULL;
	size_t n = (size_t)lr->row.nodes;

	if (json_parse(STR("{\"command\":[\"unknown\"]}"), a, &d, err) < 0)
		return -1;
	job_load(d, NULL, a, job, ps);
	job->name = lr->row.name;
	job->engine = lr->row.engine;
	job->base_dir = lr->row.base_dir;
	lr->job = job;
	lr->job_doc = d;
	lr->plan = (struct plan){
		.job = job,
		.strategy = strategy_for(job, a, ps),
		.addresses = arena_array(a, const char *, n),
		.resource_of = arena_array(a, int, n),
	};
	strategy_crew(lr->plan.strategy, job, a, &lr->plan.crew, ps);
	lr->plan.crew.roles[0].name = "unknown";
	lr->plan.crew.n = lr->plan.crew.ncounted = lr->plan.crew.roles[0].count =
		lr->plan.crew.roles[0].max = (int)n;
	lr->plan.crew.members = arena_array(a, struct member, n);
	for (size_t i = 0; i < n; i++)
		lr->plan.crew.members[i] = (struct member){
			.name = arena_printf(a, "node-%zu", i), .index = (int)i, .rank = (int)i};
	return store_ledger_each(lr->m->store, lr->row.no, a, add_from_ledger, &l, err);
}

/* Without the plan no agent can be answered: the nodes count as lost, and their output is not
 * awaited. */
static void lose_nodes(struct core_run *r)
{
	for (int i = 0; i < r->plan->crew.n; i++) {
		struct core_node *n = &r->nodes[i];

		n->settled = true;
		n->lost_at_ms = n->observe_at_ms = n->serve_by_ms = 0;
		if (n->state < NODE_LAUNCHING || n->state > NODE_RUNNING)
			continue;
		n->state = NODE_LOST;
		n->exit = (struct exit_info){.code = -1, .kind = ERR_UNAVAILABLE};
		snprintf(n->exit.reason, sizeof(n->exit.reason),
			 "this version of regatta cannot read the run");
	}
	for (int i = 0; i < r->plan->nresources; i++)
		if (!r->plan->resources[i].name[0])
			r->resources[i].state = RES_GONE;
}

static int load_for_cleanup(struct live_run *lr, const struct err *why, struct err *err)
{
	lr->unreadable = arena_strdup(lr->arena, why->msg);
	lr->facts = NULL;
	lr->row.plan = NULL;
	lr->client_env = "{}";
	run_drop_state(lr);
	if (plan_from_ledger(lr, err) < 0)
		return -1;
	run_make_state(lr);
	if (store_run_restore(lr->m->store, lr->row.no, lr->core, err) < 0)
		return -1;
	if (lr->core->cause.node >= lr->plan.crew.n)
		lr->core->cause.node = -1;
	if (!run_phase_is_final(lr->core->phase))
		lose_nodes(lr->core);
	return 0;
}

/* ---- loading ---- */

static int restore_scans(struct live_run *lr, struct err *err)
{
	for (int i = 0; i < lr->plan.crew.n; i++) {
		uint64_t scanned[STREAMS_MAX];
		int n = streams_count(lr->nodes[i].processes);

		if (store_scan_get(lr->m->store, lr->row.no, i, scanned, n, &lr->nodes[i].bad,
				   err) < 0)
			return -1;
		for (int s = 0; s < n; s++)
			lr->nodes[i].streams[s].restored = scanned[s];
	}
	return 0;
}

static bool last_seq(void *ctx, const struct event_row *row)
{
	*(int64_t *)ctx = row->seq;
	return true;
}

static int load(struct live_run *lr, struct err *err)
{
	struct err why = {0};

	run_set_dir(lr);
	if (read_run(lr, &why) == 0)
		return 0;
	if (why.kind == ERR_INVALID || why.kind == ERR_CONFLICT || why.kind == ERR_NOT_FOUND)
		return load_for_cleanup(lr, &why, err);
	if (err)
		*err = why;
	return -1;
}

struct live_run *live_run_load(struct master *m, int64_t no, struct err *err)
{
	struct live_run *lr = live_run_new(m);

	if (store_run_get(m->store, no, lr->arena, &lr->row, err) < 0 ||
	    store_labels_get(m->store, no, lr->arena, &lr->row.tags, &lr->notes, err) < 0 ||
	    load(lr, err) < 0)
		return live_run_free(lr);
	core_run_restored(lr->core);
	source_state_load(lr);
	/* Only a kill ends a run that this master cannot read: no deadline, no retry of a
	 * create. */
	if (lr->unreadable && lr->core->verdict == VERDICT_NONE)
		lr->core->next_ms = 0;
	lr->ended = run_phase_is_final(lr->core->phase);
	if (series_restore(lr, err) < 0 || restore_scans(lr, err) < 0 ||
	    ends_restore(lr, err) < 0 ||
	    store_events_each(m->store, no, 0, 0, last_seq, &lr->last_seq, err) < 0)
		return live_run_free(lr);
	return lr;
}

struct live_run *live_run_find(struct master *m, struct str id, struct arena *a,
			       const char ***ret_ids, size_t *ret_n, struct err *err)
{
	struct live_run *lr = map_get(m->runs, id);
	int64_t no;

	if (lr)
		return lr;
	if (store_run_find(m->store, id, a, &no, ret_ids, ret_n, err) < 0)
		return NULL;
	struct run_row row;
	if (store_run_get(m->store, no, a, &row, err) < 0)
		return NULL;
	lr = map_get(m->runs, str_from(row.id));
	return lr ? lr : live_run_load(m, no, err);
}

struct live_run *live_run_exact(struct master *m, const char *id, struct arena *a, struct err *err)
{
	struct live_run *lr = live_run_find(m, str_from(id), a, NULL, NULL, err);

	if (lr && strcmp(lr->row.id, id) == 0)
		return lr;
	if (lr)
		live_run_done(lr);
	/* A conflict: it is the beginning of the ids of several others. */
	if (lr || err->kind == ERR_CONFLICT)
		err_set(err, ERR_NOT_FOUND, "no run '%s'", id);
	return NULL;
}

struct live_run *live_run_active_named(struct master *m, struct str name)
{
	struct live_run *found = NULL;
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		struct live_run *lr = value;

		if (lr->ended || !str_is(name, lr->row.name))
			continue;
		if (found)
			return NULL;
		found = lr;
	}
	return found;
}

/* Frees a run that was loaded for reading, or has ended, when nothing uses it any more. */
void live_run_done(struct live_run *lr)
{
	struct master *m = lr->m;

	if (!lr->ended || lr->watchers || lr->busy || !list_empty(&lr->in_round))
		return;
	for (int i = 0; i < lr->plan.crew.n; i++)
		if (lr->nodes[i].agent)
			return;
	if (map_get(m->runs, str_from(lr->row.id)) == lr)
		map_del(m->runs, str_from(lr->row.id));
	live_run_free(lr);
}
