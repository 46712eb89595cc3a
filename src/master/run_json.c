#include "master/run_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/exit_text.h"
#include "base/file.h"
#include "fmt/jsonw.h"
#include "link/message.h"
#include "master/clock.h"
#include "master/handover.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/queue.h"
#include "master/run_cost.h"
#include "master/source_state.h"
#include "master/streams.h"
#include "master/upkeep/exports.h"
#include "master/upkeep/imports.h"
#include "master/upkeep/own_machine.h"
#include "master/upkeep/space.h"
#include "metrics/stats.h"
#include "spec/job.h"
#include "store/logfile.h"
#include "strategy/strategy.h"

#define TAIL_MAX_BYTES (16 * 1024)
#define LIVE_PHASES RUN_SUCCEEDED /* number of the phases before the final ones */

/* One metric, aggregated over all nodes. */
struct overall {
	const char *name;
	enum better better;
	uint64_t count, series;
	double first, last, best, sum;
};

enum better run_better(const struct live_run *lr, const char *name)
{
	for (size_t i = 0; i < lr->job->metrics.n; i++) {
		const struct metric_spec *ms = &((struct metric_spec *)lr->job->metrics.v)[i];
		if (!strcmp(ms->name, name) && ms->better)
			return (enum better)ms->better;
	}
	return better_guess(str_from(name));
}

struct stats series_stats(const struct series_row *row)
{
	return (struct stats){row->count, row->first, row->last, row->min,
			      row->max,	  row->mean,  row->m2};
}

static void stats_to_json(struct jsonw *w, const struct stats *st, enum better b)
{
	jsonw_open(w, '{');
	jsonw_kdouble(w, "first", st->first);
	jsonw_kdouble(w, "last", st->last);
	jsonw_kdouble(w, "best", stats_best(st, b));
	jsonw_kdouble(w, "mean", st->mean);
	jsonw_kdouble(w, "min", st->min);
	jsonw_kdouble(w, "max", st->max);
	jsonw_kdouble(w, "stddev", stats_stddev(st));
	jsonw_kint(w, "count", (int64_t)st->count);
	jsonw_close(w);
}

/* first and last are means over the nodes, best is the best value of any node, mean is that of
 * all samples. */
static void add_to_overall(struct overall *o, const struct series_row *row)
{
	struct stats st = series_stats(row);
	double best = stats_best(&st, o->better);

	if (!o->series || (o->better == BETTER_LOWER ? best < o->best : best > o->best))
		o->best = best;
	o->first += row->first;
	o->last += row->last;
	o->sum += row->mean * (double)row->count;
	o->count += row->count;
	o->series++;
}

static void overall_to_json(struct jsonw *w, const struct overall *o)
{
	jsonw_open(w, '{');
	jsonw_kdouble(w, "first", o->first / (double)o->series);
	jsonw_kdouble(w, "last", o->last / (double)o->series);
	jsonw_kdouble(w, "best", o->best);
	jsonw_kdouble(w, "mean", o->sum / (double)o->count);
	jsonw_kint(w, "count", (int64_t)o->count);
	jsonw_kz(w, "better", o->better == BETTER_LOWER ? "lower" : "higher");
	jsonw_close(w);
}

/* Calls fn once per metric, in the order of first appearance. */
static void overall_each(struct live_run *lr, bool host, void (*fn)(void *, const struct overall *),
			 void *ctx)
{
	struct map *seen = map_new();
	struct str key;
	void *value;

	for (size_t i = 0; map_at(lr->series, &i, &key, &value);) {
		const struct live_series *ls = value;
		if (ls->host != host || !ls->row.count)
			continue;
		struct overall *o = map_get(seen, str_from(ls->row.name));
		if (!o) {
			o = calloc(1, sizeof(*o));
			if (!o)
				abort();
			o->name = ls->row.name;
			o->better = run_better(lr, o->name);
			map_put(seen, str_from(o->name), o);
		}
		add_to_overall(o, &ls->row);
	}
	for (size_t i = 0; map_at(seen, &i, &key, &value);) {
		fn(ctx, value);
		free(value);
	}
	map_free(seen);
}

static bool has_value(const struct live_run *lr, const char *name)
{
	struct str key;
	void *value;

	for (size_t i = 0; map_at(lr->series, &i, &key, &value);) {
		const struct live_series *ls = value;

		if (!ls->host && ls->row.count && strcmp(ls->row.name, name) == 0)
			return true;
	}
	return false;
}

/* Metrics of the job file whose pattern no line of the run has matched, when it has ended. */
static void unmatched_to_json(const struct live_run *lr, struct jsonw *w)
{
	bool any = false;

	if (lr->unreadable || !run_phase_is_final(lr->core->phase) ||
	    !lr->core->phase_at_ms[RUN_RUNNING] || !plan_has_nodes(&lr->plan))
		return;
	for (size_t i = 0; i < lr->job->metrics.n; i++) {
		const struct metric_spec *ms = &((struct metric_spec *)lr->job->metrics.v)[i];

		/* A pattern with the group "name" finds other metrics. */
		if (!ms->pattern || strstr(ms->pattern, "<name>") || has_value(lr, ms->name))
			continue;
		if (!any) {
			jsonw_key(w, "unmatched");
			jsonw_open(w, '[');
		}
		any = true;
		jsonw_str(w, str_from(ms->name));
	}
	if (any)
		jsonw_close(w);
}

static void put_overall(void *ctx, const struct overall *o)
{
	jsonw_key(ctx, o->name);
	overall_to_json(ctx, o);
}

int64_t run_end_ms(const struct live_run *lr)
{
	const struct core_run *r = lr->core;
	return run_phase_is_final(r->phase) ? r->phase_at_ms[r->phase] : master_now(lr->m);
}

int64_t run_phase_ms(const struct live_run *lr, enum run_phase p)
{
	const struct core_run *r = lr->core;
	int64_t from = r->phase_at_ms[p], to = 0;

	if (!from)
		return -1;
	for (int q = (int)p + 1; q < RUN_PHASES && !to; q++)
		to = r->phase_at_ms[q];
	return (to ? to : run_end_ms(lr)) - from;
}

static void phases_to_json(const struct live_run *lr, struct jsonw *w)
{
	jsonw_key(w, "phases");
	jsonw_open(w, '{');
	for (int p = 0; p < LIVE_PHASES; p++) {
		int64_t ms = run_phase_ms(lr, (enum run_phase)p);
		jsonw_key(w, run_phase_name((enum run_phase)p));
		if (ms < 0)
			jsonw_null(w);
		else
			jsonw_int(w, ms);
	}
	jsonw_close(w);
}

/* Of one stream, in all attempts. */
static int64_t stream_size(const struct live_run *lr, int rank, enum stream s)
{
	const struct live_node *n = &lr->nodes[rank];
	int64_t sum = 0;

	for (int i = 1; i <= lr->core->nodes[rank].attempt; i++) {
		char name[LOG_NAME_MAX];
		uint64_t size = 0;

		run_log_name(lr, rank, i, s, name);
		if (n->attempt == i && n->streams[s].file)
			sum += (int64_t)logfile_stored(n->streams[s].file);
		else if (n->attempt == i && n->streams[s].closed_whole)
			sum += (int64_t)n->streams[s].length;
		else if (logfile_exists(lr->logs_dir, name, &size))
			sum += (int64_t)size;
	}
	return sum;
}

int64_t run_log_size(const struct live_run *lr, int rank, enum stream s)
{
	int64_t sum = 0;

	for (int i = 0; i < lr->nodes[rank].processes; i++)
		sum += stream_size(lr, rank, stream_of(i, s));
	return sum;
}

int64_t run_not_stored(const struct live_run *lr, int rank)
{
	int64_t sum = 0;

	for (int a = 1; a <= lr->core->nodes[rank].attempt; a++)
		for (int p = 0; p < lr->nodes[rank].processes; p++)
			sum += (int64_t)(stream_not_stored(lr, rank, a, stream_of(p, STREAM_OUT)) +
					 stream_not_stored(lr, rank, a, stream_of(p, STREAM_ERR)));
	return sum;
}

/* How the node ended, in the wording of causes and events; null while it runs. */
static void put_end(const struct core_node *n, bool over, struct jsonw *w)
{
	CLEANUP(buf_release) struct buf text = {0};
	bool has_exit = over && (n->exit.signal || n->exit.code >= 0);

	buf_init(&text, 1024);
	if (!has_exit && n->state == NODE_LOST)
		buf_addz(&text, n->exit.reason[0] ? "lost: " : "lost");
	if (n->state >= NODE_EXITED)
		exit_describe(&text, has_exit ? n->exit.code : -1, has_exit ? n->exit.signal : 0,
			      n->exit.oom, str_from(n->exit.reason));
	jsonw_kz(w, "end", text.n ? buf_str(&text).p : NULL);
}

/* A member of the plan that its role does not ask for now: fewer nodes than max are in use. */
static bool node_is_dormant(const struct core_node *n)
{
	return n->asleep && n->state == NODE_WANTED;
}

static void put_number(struct jsonw *w, const char *key, bool known, int value)
{
	jsonw_key(w, key);
	if (known)
		jsonw_int(w, value);
	else
		jsonw_null(w);
}

/* The processes of a node that has several. */
static void put_processes(const struct live_run *lr, int rank, struct jsonw *w)
{
	const struct live_node *n = &lr->nodes[rank];
	struct expand_members members;

	if (n->processes == 1)
		return;
	CLEANUP(arena_freep) struct arena *a = arena_new();

	strategy_members(&lr->plan.crew, NULL, a, &members);
	jsonw_key(w, "processes");
	jsonw_open(w, '[');
	for (int i = 0; i < n->processes; i++) {
		const struct process_end e = n->ends ? n->ends[i] : (struct process_end){-1, 0};

		jsonw_open(w, '{');
		jsonw_kint(w, "rank",
			   expand_first_process(&members, core_job_rank(lr->core, rank)) + i);
		jsonw_kint(w, "local_rank", i);
		put_number(w, "exit_code", e.code >= 0 && !e.signal, e.code);
		put_number(w, "signal", e.signal != 0, e.signal);
		jsonw_close(w);
	}
	jsonw_close(w);
}

static void node_to_json(const struct live_run *lr, int rank, struct jsonw *w)
{
	const struct core_node *n = &lr->core->nodes[rank];
	const struct member *mb = &lr->plan.crew.members[rank];
	bool over = n->attempt > 0 && (n->state >= NODE_EXITED);

	jsonw_open(w, '{');
	jsonw_kz(w, "name", mb->name);
	jsonw_kz(w, "role", lr->plan.crew.roles[mb->role].name);
	jsonw_kint(w, "rank", mb->rank);
	if (n->job_rank >= 0)
		jsonw_kint(w, "job_rank", n->job_rank);
	jsonw_kint(w, "index", mb->index);
	jsonw_kz(w, "address", n->address);
	jsonw_kz(w, "state", node_state_name(n->state));
	jsonw_kint(w, "attempt", n->attempt);
	jsonw_kbool(w, "dormant", node_is_dormant(n));
	if (!strategy_runs(&lr->plan.crew, rank))
		jsonw_kbool(w, "copies", true);
	jsonw_key(w, "exit_code");
	if (over && n->exit.code >= 0 && !n->exit.signal)
		jsonw_int(w, n->exit.code);
	else
		jsonw_null(w);
	jsonw_key(w, "signal");
	if (over && n->exit.signal)
		jsonw_int(w, n->exit.signal);
	else
		jsonw_null(w);
	jsonw_kbool(w, "oom", n->exit.oom);
	jsonw_kz(w, "reason", n->exit.reason[0] ? n->exit.reason : NULL);
	put_end(n, over, w);
	jsonw_kint(w, "log_bytes", run_log_size(lr, rank, STREAM_OUT));
	jsonw_kint(w, "err_bytes", run_log_size(lr, rank, STREAM_ERR));
	int64_t not_stored = run_not_stored(lr, rank);
	if (not_stored)
		jsonw_kint(w, "not_stored", not_stored);
	put_processes(lr, rank, w);
	jsonw_kint(w, "bad_values", (int64_t)lr->nodes[rank].bad);
	jsonw_key(w, "metrics");
	jsonw_open(w, '{');
	for (size_t i = 0; i < lr->nodes[rank].series.n; i++) {
		const struct live_series *ls = lr->nodes[rank].series.v[i];
		if (!ls->host && ls->row.count)
			jsonw_kdouble(w, ls->row.name, ls->row.last);
	}
	jsonw_close(w);
	jsonw_close(w);
}

static bool tail_of(const struct live_run *lr, int rank, enum stream s, struct buf *out)
{
	CLEANUP(close_fdp) int fd = -1;
	char name[96], text[TAIL_MAX_BYTES];
	uint64_t size, from;
	size_t n;

	run_log_name(lr, rank, run_attempts(lr, rank), s, name);
	if (logfile_open_read(lr->logs_dir, name, &fd, &size, NULL) < 0 || size == 0 ||
	    logfile_tail_offset(fd, FAILED_TAIL_LINES, &from, NULL) < 0)
		return false;
	if (size - from > sizeof(text))
		from = size - sizeof(text);
	if (file_pread_full(fd, text, (size_t)(size - from), (int64_t)from, &n, NULL) < 0)
		return false;
	buf_add(out, text, n);
	return true;
}

/* The process of the node whose output explains its failure: the first that ended as the node did. */
static int failed_process(const struct live_run *lr, int rank)
{
	const struct live_node *n = &lr->nodes[rank];
	const struct core_node *core = &lr->core->nodes[rank];

	for (int i = 0; n->ends && i < n->processes; i++)
		if (n->ends[i].code == core->exit.code && n->ends[i].signal == core->exit.signal)
			return i;
	return 0;
}

bool run_tail(const struct live_run *lr, struct buf *out, enum stream *ret_stream)
{
	const struct core_run *r = lr->core;

	if (!run_phase_is_final(r->phase) || r->verdict != VERDICT_FAILED || r->cause.node < 0)
		return false;
	int process = failed_process(lr, r->cause.node);

	*ret_stream = stream_of(process, STREAM_ERR);
	if (tail_of(lr, r->cause.node, *ret_stream, out))
		return true;
	*ret_stream = stream_of(process, STREAM_OUT);
	return tail_of(lr, r->cause.node, *ret_stream, out);
}

static void tail_to_json(const struct live_run *lr, struct jsonw *w)
{
	CLEANUP(buf_release) struct buf text = {0};
	enum stream s;

	buf_init(&text, TAIL_MAX_BYTES);
	jsonw_key(w, "tail");
	if (!run_tail(lr, &text, &s)) {
		jsonw_null(w);
		return;
	}
	jsonw_open(w, '{');
	jsonw_kz(w, "node", lr->plan.crew.members[lr->core->cause.node].name);
	jsonw_kz(w, "stream", stream_name(s));
	jsonw_key(w, "lines");
	jsonw_open(w, '[');
	struct str rest = buf_str(&text);
	while (rest.p && rest.n)
		jsonw_str(w, str_cut(&rest, '\n'));
	jsonw_close(w);
	jsonw_close(w);
}

/* Each node once: a dormant node is counted as dormant and not as wanted. */
static void counts_to_json(const struct live_run *lr, struct jsonw *w)
{
	int dormant = 0;

	if (lr->remote.counts[0]) {
		jsonw_key(w, "counts");
		jsonw_raw(w, str_from(lr->remote.counts));
		return;
	}
	for (int i = 0; lr->core->awake < lr->plan.crew.n && i < lr->plan.crew.n; i++)
		dormant += node_is_dormant(&lr->core->nodes[i]);
	jsonw_key(w, "counts");
	jsonw_open(w, '{');
	jsonw_kint(w, "nodes", lr->plan.crew.n);
	for (int s = 0; s < NODE_STATES; s++)
		jsonw_kint(w, node_state_name((enum node_state)s),
			   lr->core->node_count[s] - (s == NODE_WANTED ? dormant : 0));
	jsonw_kint(w, "dormant", dormant);
	jsonw_close(w);
}

/* The end of a run is shown when it is stored and its records are written: whoever sees it may read
 * them, or remove them. */
static enum run_phase phase_shown(const struct live_run *lr)
{
	return run_phase_is_final(lr->core->phase) && !lr->ended ? RUN_CLEANING : lr->core->phase;
}

static bool has_cause(enum verdict v)
{
	return v == VERDICT_FAILED || v == VERDICT_CANCELLED;
}

static void cause_to_json(const struct live_run *lr, struct jsonw *w)
{
	const struct core_run *r = lr->core;
	bool bad = has_cause(r->verdict);

	jsonw_kz(w, "verdict", r->verdict == VERDICT_NONE ? NULL : verdict_name(r->verdict));
	jsonw_kz(w, "cause", bad ? r->cause.text : NULL);
	jsonw_kz(w, "cause_kind",
		 bad && r->cause.kind != ERR_NONE ? err_kind_name(r->cause.kind) : NULL);
	jsonw_kz(w, "cause_node",
		 bad && r->cause.node >= 0 ? lr->plan.crew.members[r->cause.node].name : NULL);
	jsonw_key(w, "exit_code");
	if (run_phase_is_final(phase_shown(lr)))
		jsonw_int(w, core_exit_code(r->verdict, &r->cause));
	else
		jsonw_null(w);
}

static void put_wait(struct jsonw *w, const struct plan_resource *pr, const char *state,
		     enum err_kind kind, const char *why)
{
	jsonw_open(w, '{');
	jsonw_kz(w, "kind", pr->kind);
	jsonw_kz(w, "name", pr->name);
	jsonw_kz(w, "state", state);
	jsonw_kz(w, "why", why);
	jsonw_kz(w, "why_kind", kind == ERR_NONE ? NULL : err_kind_name(kind));
	jsonw_close(w);
}

static void put_resource_wait(const struct live_run *lr, int index, struct jsonw *w)
{
	const struct plan_resource *pr = &lr->plan.resources[index];
	const struct core_resource *res = &lr->core->resources[index];
	const char *ending = pr->master ? own_machine_why(lr->m->own_machine) : NULL;
	bool waits = pr->master && handover_waits(lr->core);
	/* Its machines come by themselves, one after the other. */
	bool gathers = pr->carries_many && lr->core->phase == RUN_GATHERING;
	/* Nobody learns how its nodes do: the credentials of the run hold no more. */
	bool denied = pr->carries_many && res->state == RES_LIVE && !lr->ended &&
		      res->why_kind == ERR_DENIED;

	if (ending && lr->ended)
		put_wait(w, pr, res_state_name(RES_DELETING), ERR_NONE, ending);
	if (res->why[0] &&
	    (waits || gathers || denied || (res->state != RES_GONE && res->state != RES_LIVE)))
		put_wait(w, pr, res_state_name(res->state), res->why_kind, res->why);
	if (waits)
		put_wait(w, pr, res_state_name(res->state), lr->core->remote.waits_kind,
			 lr->core->remote.waits);
}

/* The copy of the results of an ended run that has failed, at least until now. */
static void put_results_wait(const struct live_run *lr, struct jsonw *w)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	bool given_up = false;
	const struct err *why =
		lr->row.ended_ms ? exports_failure(lr->m->exports, lr->row.no, &given_up) : NULL;

	if (!why)
		return;
	const char *url = plan_results(&lr->plan, a).url;
	const struct plan_resource pr = {.kind = WAIT_RESULTS, .name = url ? url : lr->row.id};

	put_wait(w, &pr, given_up ? WAIT_GIVEN_UP : "copying", why->kind, why->msg);
}

static void put_queue(const struct live_run *lr, struct jsonw *w)
{
	const struct plan_resource pr = {.kind = "run", .name = lr->row.id};
	char why[QUEUE_WHY], state[40];
	int place;

	if (!queue_reason(lr, &place, why))
		return;
	snprintf(state, sizeof(state), "place %d in the queue", place);
	put_wait(w, &pr, state, ERR_CAPACITY, why);
}

static void put_stall(const struct live_run *lr, struct jsonw *w)
{
	const struct core_stall *st = &lr->core->stall;
	const struct plan_resource pr = {
		.kind = "job",
		.name = st->node >= 0 ? lr->plan.crew.members[st->node].name : lr->row.id};

	if (st->stalled && !st->by_ms && lr->core->phase == RUN_RUNNING)
		put_wait(w, &pr, "stalled", ERR_TIMEOUT, st->text);
}

/* What delays the end of the run, or what is left to do after it, and why. */
static void waiting_to_json(const struct live_run *lr, struct jsonw *w)
{
	jsonw_key(w, "waiting");
	jsonw_open(w, '[');
	put_queue(lr, w);
	put_stall(lr, w);
	for (int i = 0; i < lr->plan.nresources; i++)
		put_resource_wait(lr, i, w);
	put_results_wait(lr, w);
	jsonw_close(w);
}

void run_progress(const struct live_run *lr, int64_t *ret_step, int64_t *ret_total)
{
	double least = 0;

	*ret_step = *ret_total = 0;
	for (int i = 0; i < lr->plan.crew.n; i++) {
		const struct series_row *furthest = NULL;
		for (size_t k = 0; k < lr->nodes[i].series.n; k++) {
			const struct series_row *row = &lr->nodes[i].series.v[k]->row;
			if (row->total > 0 && (!furthest || row->step > furthest->step))
				furthest = row;
		}
		if (!furthest)
			continue;
		double part = (double)furthest->step / (double)furthest->total;
		if (*ret_total && part >= least)
			continue;
		least = part;
		*ret_step = furthest->step;
		*ret_total = furthest->total;
	}
}

static void progress_to_json(struct jsonw *w, int64_t step, int64_t total)
{
	jsonw_key(w, "progress");
	if (!total) {
		jsonw_null(w);
		return;
	}
	jsonw_open(w, '{');
	jsonw_kint(w, "step", step);
	jsonw_kint(w, "total", total);
	jsonw_close(w);
}

/* The master that has the run, if that is another one. */
static void master_to_json(const struct live_run *lr, struct jsonw *w)
{
	bool known = lr->remote.at.url[0] && !lr->ended;

	jsonw_kz(w, "master_url", known ? lr->remote.at.url : NULL);
	jsonw_kz(w, "master_state", known && lr->remote.state[0] ? lr->remote.state : NULL);
	jsonw_kz(w, "results",
		 !lr->ended || !lr->plan.hands_over  ? NULL
		 : import_goes_on(lr->m, lr->row.id) ? "coming"
		 : handover_owes_results(lr)	     ? "missing"
						     : NULL);
}

/* Parameters of the job, as JSON; NULL: it has none. */
static void put_params(const char *json, struct jsonw *w)
{
	jsonw_key(w, "params");
	jsonw_raw(w, str_from(json && json[0] == '{' ? json : "{}"));
}

static void put_list(const char *key, const char *json, struct jsonw *w)
{
	jsonw_key(w, key);
	jsonw_raw(w, str_from(json && json[0] == '[' ? json : "[]"));
}

static void run_members(struct live_run *lr, struct jsonw *w)
{
	const struct core_run *r = lr->core;
	int64_t step, total;

	jsonw_kz(w, "id", lr->row.id);
	jsonw_kz(w, "name", lr->row.name);
	jsonw_kz(w, "state", run_phase_name(phase_shown(lr)));
	jsonw_kz(w, "engine", lr->row.engine);
	jsonw_kz(w, "strategy", lr->row.strategy);
	put_params(lr->row.params, w);
	put_list("tags", lr->row.tags, w);
	put_list("notes", lr->notes, w);
	cause_to_json(lr, w);
	jsonw_kz(w, "dir", lr->dir);
	source_state_to_json(lr, w);
	jsonw_kint(w, "created_ms", lr->row.created_ms);
	jsonw_key(w, "ended_ms");
	if (lr->row.ended_ms)
		jsonw_int(w, lr->row.ended_ms);
	else
		jsonw_null(w);
	jsonw_kint(w, "elapsed_ms", run_end_ms(lr) - r->phase_at_ms[RUN_ACCEPTED]);
	phases_to_json(lr, w);
	jsonw_key(w, "deadline_ms");
	if (r->deadline_ms && !run_phase_is_final(r->phase))
		jsonw_int(w, r->deadline_ms - master_now(lr->m));
	else
		jsonw_null(w);
	jsonw_kbool(w, "cancel_asked", r->cancel_asked);
	jsonw_kbool(w, "disk_full", space_missed_by(lr->m->space, lr));
	jsonw_kz(w, "unreadable", lr->unreadable);
	queue_to_json(lr, w);
	master_to_json(lr, w);
	counts_to_json(lr, w);
	run_progress(lr, &step, &total);
	progress_to_json(w, step, total);
	run_cost_to_json(lr, w);
	jsonw_key(w, "metrics");
	jsonw_open(w, '{');
	overall_each(lr, false, put_overall, w);
	jsonw_close(w);
	unmatched_to_json(lr, w);
}

static void put_nodes(struct live_run *lr, uint64_t since, struct jsonw *w)
{
	jsonw_key(w, "nodes");
	jsonw_open(w, '[');
	for (int i = 0; i < lr->plan.crew.n; i++)
		if (!since || lr->nodes[i].changed > since)
			node_to_json(lr, i, w);
	jsonw_close(w);
	waiting_to_json(lr, w);
	tail_to_json(lr, w);
}

void run_to_json(struct live_run *lr, bool with_nodes, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	run_members(lr, &w);
	if (with_nodes)
		put_nodes(lr, 0, &w);
	jsonw_close(&w);
}

void run_delta_to_json(struct live_run *lr, uint64_t since, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kbool(&w, "delta", true);
	run_members(lr, &w);
	put_nodes(lr, since, &w);
	jsonw_close(&w);
}

void row_to_json(const struct run_row *row, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "id", row->id);
	jsonw_kz(&w, "name", row->name);
	jsonw_kz(&w, "state", run_phase_name((enum run_phase)row->phase));
	jsonw_kz(&w, "engine", row->engine);
	jsonw_kz(&w, "strategy", row->strategy);
	put_params(row->params, &w);
	put_list("tags", row->tags, &w);
	jsonw_kz(&w, "verdict", row->verdict ? verdict_name((enum verdict)row->verdict) : NULL);
	jsonw_kz(&w, "cause", has_cause((enum verdict)row->verdict) ? row->cause : NULL);
	jsonw_kint(&w, "created_ms", row->created_ms);
	jsonw_kint(&w, "ended_ms", row->ended_ms);
	jsonw_kint(&w, "elapsed_ms",
		   (row->ended_ms ? row->ended_ms : clock_wall_ms()) - row->created_ms);
	jsonw_key(&w, "counts");
	jsonw_open(&w, '{');
	jsonw_kint(&w, "nodes", row->nodes);
	jsonw_close(&w);
	progress_to_json(&w, row->step, row->total);
	jsonw_kdouble(&w, "cost_usd", (double)row->cost_micro / 1e6);
	jsonw_close(&w);
}

struct series_out {
	struct live_run *lr;
	struct jsonw *w;
	struct str name, node;
	int64_t limit;
};

static void put_metric(void *ctx, const struct overall *o)
{
	struct series_out *so = ctx;
	struct jsonw *w = so->w;

	if (so->name.n && !str_is(so->name, o->name))
		return;
	jsonw_key(w, o->name);
	jsonw_open(w, '{');
	jsonw_kz(w, "better", o->better == BETTER_LOWER ? "lower" : "higher");
	jsonw_key(w, "all");
	overall_to_json(w, o);
	jsonw_key(w, "nodes");
	jsonw_open(w, '{');
	for (int i = 0; i < so->lr->plan.crew.n; i++) {
		if (so->node.n && !str_is(so->node, so->lr->plan.crew.members[i].name))
			continue;
		for (size_t k = 0; k < so->lr->nodes[i].series.n; k++) {
			const struct series_row *row = &so->lr->nodes[i].series.v[k]->row;
			if (strcmp(row->name, o->name) != 0 || !row->count)
				continue;
			struct stats st = series_stats(row);
			jsonw_key(w, so->lr->plan.crew.members[i].name);
			stats_to_json(w, &st, o->better);
		}
	}
	jsonw_close(w);
	jsonw_close(w);
}

static bool put_point(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	struct jsonw *w = ctx;

	jsonw_open(w, '[');
	jsonw_int(w, wall_ms);
	if (step >= 0)
		jsonw_int(w, step);
	else
		jsonw_null(w);
	jsonw_double(w, value);
	jsonw_close(w);
	return !w->out->overflow;
}

static void put_series(struct series_out *so, const struct series_row *row, int rank)
{
	struct jsonw *w = so->w;

	jsonw_open(w, '{');
	jsonw_kz(w, "name", row->name);
	jsonw_kz(w, "node", so->lr->plan.crew.members[rank].name);
	jsonw_key(w, "points");
	jsonw_open(w, '[');
	store_samples_each(so->lr->m->store, row->series, so->limit, put_point, w, NULL);
	jsonw_close(w);
	jsonw_close(w);
}

void metrics_to_json(struct live_run *lr, struct str name, struct str node, bool host,
		     int64_t limit, struct buf *out)
{
	struct jsonw w;
	struct series_out so = {.lr = lr, .w = &w, .name = name, .node = node, .limit = limit};
	uint64_t bad = 0;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_key(&w, "metrics");
	jsonw_open(&w, '{');
	overall_each(lr, false, put_metric, &so);
	if (host)
		overall_each(lr, true, put_metric, &so);
	jsonw_close(&w);
	for (int i = 0; i < lr->plan.crew.n; i++)
		bad += lr->nodes[i].bad;
	jsonw_kint(&w, "bad_values", (int64_t)bad);
	jsonw_key(&w, "series");
	jsonw_open(&w, '[');
	for (int i = 0; name.n && i < lr->plan.crew.n; i++) {
		if (node.n && !str_is(node, lr->plan.crew.members[i].name))
			continue;
		for (size_t k = 0; k < lr->nodes[i].series.n; k++)
			if (str_is(name, lr->nodes[i].series.v[k]->row.name))
				put_series(&so, &lr->nodes[i].series.v[k]->row, i);
	}
	jsonw_close(&w);
	jsonw_close(&w);
}

void event_members(const struct live_run *lr, const struct event_row *row, struct jsonw *w)
{
	jsonw_kint(w, "seq", row->seq);
	jsonw_kint(w, "time_ms", row->time_ms);
	jsonw_kz(w, "kind", row->kind);
	if (row->node >= 0 && row->node < lr->plan.crew.n)
		jsonw_kz(w, "node", lr->plan.crew.members[row->node].name);
	if (row->text && row->text[0])
		jsonw_kz(w, "text", row->text);
}

void event_to_json(const struct live_run *lr, const struct event_row *row, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	event_members(lr, row, &w);
	jsonw_close(&w);
	buf_addc(out, '\n');
}
