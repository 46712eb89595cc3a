/* The parts of a run in memory, each made by one function: see run_make.h. */
#include "master/run_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "driver/driver.h"
#include "fmt/doc.h"
#include "fmt/schema.h"
#include "link/layout.h"
#include "master/followers.h"
#include "master/internal.h"
#include "master/live_run.h"
#include "master/runs.h"
#include "master/start_table.h"
#include "master/streams.h"
#include "plan/plan.h"
#include "spec/job.h"

#define PROBLEMS_TEXT (64 * 1024)

struct live_run *live_run_new(struct master *m)
{
	struct live_run *lr = xcalloc(1, sizeof(*lr));

	lr->m = m;
	lr->arena = arena_new();
	list_init(&lr->in_round);
	return lr;
}

void run_drop_state(struct live_run *lr)
{
	struct str key;
	void *value;

	for (int i = 0; lr->nodes && i < lr->plan.crew.n; i++) {
		streams_close(lr, i);
		vec_release(&lr->nodes[i].series);
		free(lr->nodes[i].ends);
	}
	for (size_t i = 0; lr->series && map_at(lr->series, &i, &key, &value);)
		free(value);
	lr->series = map_free(lr->series);
	lr->ranks = map_free(lr->ranks);
	start_forget(lr);
	lr->core = core_run_free(lr->core);
	free(lr->nodes);
	free(lr->streams);
	free(lr->orders);
	lr->nodes = NULL;
	lr->streams = NULL;
	lr->orders = NULL;
}

struct live_run *live_run_free(struct live_run *lr)
{
	if (!lr)
		return NULL;
	list_remove(&lr->in_round);
	followers_free(lr);
	run_drop_state(lr);
	vec_release(&lr->dirty_series);
	vec_release(&lr->dirty_scans);
	vec_release(&lr->stopped);
	effects_release(&lr->fx);
	free(lr->dir);
	free(lr->logs_dir);
	arena_free(lr->arena);
	free(lr);
	return NULL;
}

void run_set_dir(struct live_run *lr)
{
	lr->dir = xasprintf("%s/" LAYOUT_RUNS "/%s", lr->m->home, lr->row.id);
	lr->logs_dir = path_join(lr->dir, LAYOUT_LOGS);
}

/* One array for the streams of all nodes: a run may have ten thousand. */
static void make_streams(struct live_run *lr)
{
	const struct crew *crew = &lr->plan.crew;
	size_t streams = 0, processes = 0;

	for (int i = 0; i < crew->n; i++) {
		const struct strategy_role *r = &crew->roles[crew->members[i].role];

		lr->nodes[i].processes = r->processes > 1 ? r->processes : 1;
		streams += (size_t)streams_count(lr->nodes[i].processes);
		processes += (size_t)lr->nodes[i].processes;
	}
	lr->streams = xcalloc(streams + 1, sizeof(*lr->streams));
	lr->orders = xcalloc(processes + 1, sizeof(*lr->orders));
	streams = processes = 0;
	for (int i = 0; i < crew->n; i++) {
		lr->nodes[i].streams = lr->streams + streams;
		lr->nodes[i].orders = lr->orders + processes;
		streams += (size_t)streams_count(lr->nodes[i].processes);
		processes += (size_t)lr->nodes[i].processes;
	}
}

void run_make_state(struct live_run *lr)
{
	lr->core = core_run_new(&lr->plan);
	lr->nodes = xcalloc((size_t)lr->plan.crew.n, sizeof(*lr->nodes));
	make_streams(lr);
	lr->series = map_new();
}

static int write_file(const char *dir, const char *name, const struct buf *text, struct err *err)
{
	CLEANUP(freep) char *path = path_join(dir, name);
	return file_write(path, buf_str(text), 0600, err);
}

int run_write_texts(struct live_run *lr, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, SIZE_MAX / 2);
	doc_to_toml(lr->job_doc, &text);
	if (write_file(lr->dir, "job.toml", &text, err) < 0)
		return -1;
	buf_reset(&text);
	plan_to_json(&lr->plan, lr->row.id, a, &text);
	return write_file(lr->dir, "plan.json", &text, err);
}

static int problems_error(struct live_run *lr, struct problems *ps, const char **ret_details,
			  struct err *err)
{
	struct buf text;

	buf_init(&text, PROBLEMS_TEXT);
	problems_print(ps, "job", &text);
	*ret_details = arena_strndup(lr->arena, buf_str(&text).p, text.n);
	buf_release(&text);
	return err_set(err, ERR_INVALID, "the job has %zu problem%s", ps->n + ps->more,
		       ps->n + ps->more == 1 ? "" : "s");
}

int run_check_job(struct live_run *lr, const char **ret_details, struct err *err)
{
	struct problems *ps = arena_new_of(lr->arena, struct problems);
	struct job *job = arena_new_of(lr->arena, struct job);
	const struct job_rules rules = plan_job_rules();

	if (json_parse(str_from(lr->row.job_json), lr->arena, &lr->job_doc, err) < 0)
		return err_wrap(err, "the job");
	if (!job_load(lr->job_doc, &rules, lr->arena, job, ps))
		return problems_error(lr, ps, ret_details, err);
	job->base_dir = lr->row.base_dir;
	lr->job = job;
	if (!plan_check(job, lr->arena, &lr->plan, ps))
		return problems_error(lr, ps, ret_details, err);
	return 0;
}

/* The facts of the other active runs of this engine; they contain, for instance, addresses in
 * use. */
static size_t taken_facts(const struct live_run *lr, struct arena *a, const struct doc ***ret)
{
	const struct doc **v = arena_array(a, const struct doc *, map_count(lr->m->runs));
	size_t n = 0;
	struct str id;
	void *value;

	for (size_t i = 0; map_at(lr->m->runs, &i, &id, &value);) {
		const struct live_run *other = value;
		if (!other->ended && other->facts && !strcmp(other->row.engine, lr->row.engine))
			v[n++] = other->facts;
	}
	*ret = v;
	return n;
}

/* Number of nodes, with a role that may shrink counted at its minimum. */
static int least_nodes(const struct plan *p)
{
	int n = 0;

	for (int i = 0; i < p->crew.nroles; i++) {
		const struct strategy_role *r = &p->crew.roles[i];

		n += r->spec && r->spec->policy.min ? (int)r->spec->policy.min : r->count;
	}
	return n;
}

/* Of an engine whose client finds the facts, with credentials that only it has. */
static bool takes_facts(const char *engine)
{
	const struct resolver *r = resolver_for(engine);

	return r && r->at_client;
}

int run_resolve(struct live_run *lr, const struct doc *known, const struct doc *given,
		struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct doc **taken;
	size_t n = taken_facts(lr, a, &taken);
	const struct resolve_input in = {
		.home = lr->m->home,
		.run_dir = lr->dir,
		.base_dir = lr->row.base_dir,
		.nodes = lr->plan.crew.n,
		.least = least_nodes(&lr->plan),
		.by_gpus = plan_counts_by(lr->job, PROCESSES_GPUS),
		.by_cpus = plan_counts_by(lr->job, PROCESSES_CPUS),
		.netns = lr->job->isolate == ISOLATE_NETNS,
		.options = plan_engine_options(lr->job, a),
		.known = known,
		.taken = taken,
		.ntaken = n,
		.services = &lr->m->services,
	};

	if (given && takes_facts(lr->job->engine))
		lr->facts = doc_copy(lr->arena, given);
	else if (driver_resolve(lr->job->engine, &in, lr->arena, &lr->facts, err) < 0)
		return -1;
	lr->row.facts = doc_json_text(lr->arena, lr->facts);
	return 0;
}
