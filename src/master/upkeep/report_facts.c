#include "master/upkeep/report_facts.h"

#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/exit_text.h"
#include "base/file.h"
#include "base/path.h"
#include "fmt/doc.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/run_cost.h"
#include "master/run_json.h"
#include "master/source_state.h"
#include "plan/plan.h"
#include "report/report.h"
#include "spec/job.h"
#include "spec/params.h"

#define JOB_MAX_BYTES (2u << 20)
#define TAIL_MAX_BYTES (64u << 10)
#define MAX_FACTS 16
#define LIVE_PHASES RUN_SUCCEEDED /* number of the phases before the final ones */

static const char *copy(struct arena *a, const char *z)
{
	return z ? arena_strdup(a, z) : NULL;
}

static const char *text_of(struct arena *a, const struct buf *b)
{
	return arena_strndup(a, buf_str(b).p, b->n);
}

/* How the node ended (base/exit_text.h); "" while it runs. */
static const char *story_of(const struct core_node *n, struct arena *a)
{
	CLEANUP(buf_release) struct buf b = {0};
	bool ended = n->attempt > 0 && n->state >= NODE_EXITED;

	buf_init(&b, 1024);
	exit_describe(&b, ended ? n->exit.code : -1, ended ? n->exit.signal : 0, n->exit.oom,
		      str_from(n->exit.reason));
	return text_of(a, &b);
}

static void add_nodes(const struct live_run *lr, struct arena *a, struct report_run *run)
{
	size_t n = (size_t)lr->plan.crew.n;
	struct report_node *nodes = arena_array(a, struct report_node, n);

	for (size_t i = 0; i < n; i++) {
		const struct member *mb = &lr->plan.crew.members[i];
		const struct core_node *cn = &lr->core->nodes[i];
		nodes[i] = (struct report_node){
			.name = copy(a, mb->name),
			.role = copy(a, lr->plan.crew.roles[mb->role].name),
			.rank = mb->rank,
			.address = copy(a, cn->address),
			.state = copy(a, node_state_name(cn->state)),
			.attempt = cn->attempt,
			.story = story_of(cn, a),
			.log_bytes = run_log_size(lr, (int)i, STREAM_OUT),
			.err_bytes = run_log_size(lr, (int)i, STREAM_ERR),
		};
		run->bad_values += lr->nodes[i].bad;
		run->not_stored += run_not_stored(lr, (int)i);
	}
	run->nodes = nodes;
	run->nnodes = n;
}

static void add_series(const struct live_run *lr, struct arena *a, struct report_run *run)
{
	struct report_series *all = arena_array(a, struct report_series, map_count(lr->series) + 1);

	for (int i = 0; i < lr->plan.crew.n; i++)
		for (size_t k = 0; k < lr->nodes[i].series.n; k++) {
			const struct live_series *ls = lr->nodes[i].series.v[k];
			if (!ls->row.count)
				continue;
			all[run->nseries++] = (struct report_series){
				.name = copy(a, ls->row.name),
				.series = ls->row.series,
				.node = i,
				.host = ls->host,
				.better = run_better(lr, ls->row.name),
				.figures = series_stats(&ls->row),
			};
		}
	run->series = all;
}

static void add_phases(const struct live_run *lr, struct arena *a, struct report_run *run)
{
	struct report_phase *phases = arena_array(a, struct report_phase, LIVE_PHASES);

	for (int p = 0; p < LIVE_PHASES; p++)
		phases[p] = (struct report_phase){run_phase_name((enum run_phase)p),
						  run_phase_ms(lr, (enum run_phase)p)};
	run->phases = phases;
	run->nphases = LIVE_PHASES;
}

struct events_in {
	const struct live_run *lr;
	struct arena *a;
	struct report_event *v;
	size_t n;
};

static bool add_event(void *ctx, const struct event_row *row)
{
	struct events_in *in = ctx;
	bool known = row->node >= 0 && row->node < in->lr->plan.crew.n;

	in->v[in->n++] = (struct report_event){
		.seq = row->seq,
		.time_ms = row->time_ms,
		.kind = copy(in->a, row->kind),
		.node = known ? copy(in->a, in->lr->plan.crew.members[row->node].name) : NULL,
		.text = copy(in->a, row->text),
	};
	return in->n < REPORT_MAX_EVENTS;
}

static void add_events(const struct live_run *lr, struct arena *a, struct report_run *run)
{
	struct events_in in = {
		.lr = lr, .a = a, .v = arena_array(a, struct report_event, REPORT_MAX_EVENTS)};

	store_events_each(lr->m->store, lr->row.no, 0, REPORT_MAX_EVENTS, add_event, &in, NULL);
	run->events = in.v;
	run->nevents = in.n;
	if (in.n == REPORT_MAX_EVENTS && lr->last_seq > in.v[in.n - 1].seq)
		run->more_events = (uint64_t)(lr->last_seq - in.v[in.n - 1].seq);
}

static void add_fact(struct report_fact *facts, size_t *n, const char *name, const char *value)
{
	if (value && value[0] && *n < MAX_FACTS)
		facts[(*n)++] = (struct report_fact){name, value};
}

/* Names only: the values may be secret. */
static const char *passed_names(const struct live_run *lr, struct arena *a)
{
	CLEANUP(arena_freep) struct arena *mine = arena_new();
	CLEANUP(buf_release) struct buf b = {0};
	struct doc *env;

	if (!lr->row.client_env || json_parse(str_from(lr->row.client_env), mine, &env, NULL) < 0 ||
	    env->type != DOC_TABLE)
		return NULL;
	buf_init(&b, 64u << 10);
	for (size_t i = 0; i < env->table.n; i++)
		buf_printf(&b, "%s%.*s", i ? ", " : "", STR_ARG(env->table.v[i].key));
	return text_of(a, &b);
}

static const char *params_line(const struct live_run *lr, struct arena *a)
{
	const struct doc *params = lr->job->params;
	CLEANUP(buf_release) struct buf b = {0};

	if (!params)
		return NULL;
	buf_init(&b, 64u << 10);
	for (size_t i = 0; i < params->table.n; i++)
		buf_printf(&b, "%s%.*s = %.*s", i ? ", " : "", STR_ARG(params->table.v[i].key),
			   STR_ARG(params_text(params->table.v[i].value, a)));
	return text_of(a, &b);
}

static const char *tags_line(const struct live_run *lr, struct arena *a)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct doc *tags;

	if (!lr->row.tags || json_parse(str_from(lr->row.tags), a, &tags, NULL) < 0)
		return NULL;
	buf_init(&b, 64u << 10);
	for (size_t i = 0; i < tags->array.n; i++)
		buf_printf(&b, "%s%.*s", i ? ", " : "", STR_ARG(tags->array.v[i]->s));
	return text_of(a, &b);
}

/* "2026-11-17 20:05: text; ..." */
static const char *notes_text(const struct live_run *lr, struct arena *a)
{
	CLEANUP(buf_release) struct buf b = {0};
	struct doc *notes;

	if (!lr->notes ||
	    json_parse_limited(str_from(lr->notes), 64u << 20, DOC_MAX_NODES, a, &notes, NULL) < 0)
		return NULL;
	buf_init(&b, 8u << 20);
	for (size_t i = 0; i < notes->array.n; i++) {
		char when[32];

		clock_format(doc_int(notes->array.v[i], "time_ms", 0), when);
		buf_printf(&b, "%s%.16s: %.*s", i ? "; " : "", when,
			   STR_ARG(doc_str(notes->array.v[i], "text", STR(""))));
	}
	return text_of(a, &b);
}

static void add_environment(const struct live_run *lr, struct arena *a, struct report_run *run)
{
	struct report_fact *facts = arena_array(a, struct report_fact, MAX_FACTS);
	struct utsname un;
	size_t n = 0;

	add_fact(facts, &n, "tags", tags_line(lr, a));
	add_fact(facts, &n, "notes", notes_text(lr, a));
	add_fact(facts, &n, "parameters", params_line(lr, a));
	add_fact(facts, &n, "regatta", REGATTA_VERSION);
	add_fact(facts, &n, "directory of the run", copy(a, lr->dir));
	add_fact(facts, &n, "job file's directory", copy(a, lr->row.base_dir));
	add_fact(facts, &n, "source", copy(a, lr->job->source));
	add_fact(facts, &n, "source archive (SHA-256)", copy(a, lr->row.source_sha256));
	add_fact(facts, &n, "git revision", source_state_text(lr, a));
	add_fact(facts, &n, "cost", run_cost_text(lr, a));
	add_fact(facts, &n, "interface between nodes", copy(a, lr->plan.iface));
	if (uname(&un) == 0)
		add_fact(facts, &n, "master's machine",
			 arena_printf(a, "%s %s %s, %ld CPUs", un.sysname, un.release, un.machine,
				      sysconf(_SC_NPROCESSORS_ONLN)));
	add_fact(facts, &n, "variables passed on", passed_names(lr, a));
	run->environment = facts;
	run->nenvironment = n;
}

static void add_texts(const struct live_run *lr, struct arena *a, struct report_run *run)
{
	CLEANUP(freep) char *path = path_join(lr->dir, "job.toml");
	CLEANUP(buf_release) struct buf b = {0};
	enum stream s;

	buf_init(&b, JOB_MAX_BYTES);
	if (file_read(path, &b, NULL) == 0)
		run->job = text_of(a, &b);
	buf_reset(&b);
	if (run_tail(lr, &b, &s)) {
		run->tail = text_of(a, &b);
		run->tail_node = copy(a, lr->plan.crew.members[lr->core->cause.node].name);
	}
}

void report_facts(struct live_run *lr, struct arena *a, struct report_run *ret)
{
	const struct core_run *r = lr->core;
	bool bad = r->verdict == VERDICT_FAILED || r->verdict == VERDICT_CANCELLED;
	struct report_run run = {
		.id = copy(a, lr->row.id),
		.name = copy(a, lr->row.name),
		.engine = copy(a, lr->row.engine),
		.strategy = copy(a, lr->row.strategy),
		.state = run_phase_name(r->phase),
		.verdict = r->verdict == VERDICT_NONE ? NULL : verdict_name(r->verdict),
		.cause = bad ? copy(a, r->cause.text) : NULL,
		.cause_node = bad && r->cause.node >= 0
				      ? copy(a, lr->plan.crew.members[r->cause.node].name)
				      : NULL,
		.created_ms = lr->row.created_ms,
		.ended_ms = lr->row.ended_ms,
		.elapsed_ms = run_end_ms(lr) - r->phase_at_ms[RUN_ACCEPTED],
	};

	add_nodes(lr, a, &run);
	add_series(lr, a, &run);
	add_phases(lr, a, &run);
	add_events(lr, a, &run);
	add_environment(lr, a, &run);
	add_texts(lr, a, &run);
	*ret = run;
}
