/* plan - the engine table, and making a plan from a job. */
#include "plan/plan.h"

#include <limits.h>

#include "base/arena.h"
#include "base/suggest.h"
#include "plan/internal.h"
#include "spec/secret.h"

static const struct engine *const table[] = {
	&engine_local,
	&engine_hosts,
	&engine_aws_ec2,
	&engine_kubernetes,
};
#define HOUR_MS (60LL * 60 * 1000)
#define NENGINES (sizeof(table) / sizeof(table[0]))

static const char *join_names(struct arena *a)
{
	const char *all = "";

	for (size_t i = 0; i < NENGINES; i++)
		all = arena_printf(a, "%s%s%s", all, i ? ", " : "", table[i]->name);
	return all;
}

static const struct engine *engine_named(const char *name)
{
	for (size_t i = 0; i < NENGINES; i++)
		if (strcmp(table[i]->name, name) == 0)
			return table[i];
	return NULL;
}

static const struct engine *engine_for(const struct job *job, struct arena *a, struct problems *ps)
{
	const struct engine *engine = engine_named(job->engine);
	const char *words[NENGINES];

	if (engine)
		return engine;
	for (size_t i = 0; i < NENGINES; i++)
		words[i] = table[i]->name;
	const char *near = suggest_word(words, NENGINES, str_from(job->engine));
	const char *hint = near ? arena_printf(a, "did you mean '%s'?", near)
				: arena_printf(a, "engines here are %s", join_names(a));
	problems_add(ps, a, job->engine_pos, "engine '%s' is not in this version: %s", job->engine,
		     hint);
	return NULL;
}

/* The index of the engine's table in the rules and in job->engine_tables. */
static size_t table_index(const struct job_rules *rules, const struct engine *engine)
{
	size_t i = 0;

	while (rules->tables[i] && rules->tables[i] != engine->schema)
		i++;
	return i;
}

static void check_for_job_load(const struct job *job, bool names_only, struct arena *a,
			       struct problems *ps)
{
	struct plan unused;

	if (!names_only) {
		plan_check(job, a, &unused, ps);
		return;
	}
	strategy_for(job, a, ps);
	engine_for(job, a, ps);
}

static void replace_lost(struct policy *p)
{
	if (!p->on_lost_pos.line)
		p->on_lost = LOST_REPLACE;
}

static void complete_job(struct job *job, struct arena *a)
{
	const struct engine *engine = engine_named(job->engine);

	if (!job->strategy[0] && engine && engine->imply)
		engine->imply(job, a);
	const struct strategy *s = strategy_named(job->strategy);

	strategy_complete(job, a);
	if (!s || !s->replaces_lost || !engine || !engine->moves_nodes)
		return;
	for (size_t i = 0; i < job->roles.n; i++)
		if (!job_role(job, i)->service)
			replace_lost(&job_role(job, i)->policy);
}

struct job_rules plan_job_rules(void)
{
	struct job_rules rules = {
		.check = check_for_job_load,
		.complete = complete_job,
		.brings_command = strategy_brings_command,
	};

	for (size_t i = 0; i < NENGINES; i++)
		if (table[i]->schema)
			rules.tables[table_index(&rules, table[i])] = table[i]->schema;
	return rules;
}

const struct schema *plan_job_schema(struct arena *a)
{
	const struct job_rules rules = plan_job_rules();

	return job_schema_with(&rules, a);
}

const void *engine_table(const struct engine *engine, const struct job *job, struct arena *a)
{
	const struct job_rules rules = plan_job_rules();
	void *value = job->engine_tables[table_index(&rules, engine)];
	struct problems *none = arena_new_of(a, struct problems);

	if (!value) {
		value = arena_alloc(a, engine->schema->sub->size);
		schema_load(engine->schema->sub, NULL, value, a, none);
	}
	return value;
}

const struct doc *plan_engine_options(const struct job *job, struct arena *a)
{
	const struct engine *engine = engine_named(job->engine);

	if (engine && engine->options)
		return engine->options(job, a);
	return engine && engine->schema
		       ? schema_to_doc(engine->schema->sub, engine_table(engine, job, a), a)
		       : NULL;
}

bool plan_shares_files(const struct job *job)
{
	const struct engine *engine = engine_named(job->engine);

	return engine && engine->in_place;
}

/* Nodes that share a machine and its network have nothing to try out. */
bool plan_preflight(const struct plan *p)
{
	const struct job *job = p->job;

	if (p->agentless) /* nobody could try it out */
		return false;
	if (job->preflight_set)
		return job->preflight;
	return !plan_shares_files(job) || job->isolate == ISOLATE_NETNS;
}

/*
 * All network namespaces of a machine share one table of neighbours, usually of 1024, in which two nodes
 * that talk to each other have two entries.  Half of it is left to others.
 */
#define NEIGHBOURS 512

int plan_preflight_peers(const struct plan *p, int n)
{
	if (p->job->isolate != ISOLATE_NETNS || n * (n - 1) <= NEIGHBOURS)
		return INT_MAX;
	return NEIGHBOURS / 2 / n;
}

bool plan_makes_machines(const struct job *job)
{
	const struct engine *engine = engine_named(job->engine);

	return engine && engine->makes_machines;
}

bool plan_contains(const struct job *job)
{
	const struct engine *engine = engine_named(job->engine);

	return engine && engine->contains;
}

bool plan_runs_in_place(const struct job *job)
{
	return plan_shares_files(job) && !job->source && !job->data.n;
}

/* If nodes share a directory, its files cannot be assigned to one node. */
static void check_keep(const struct plan *p, struct arena *a, struct problems *ps)
{
	if (p->crew.n > 1 && p->job->output.keep.n && plan_runs_in_place(p->job))
		problems_add(
			ps, a, p->job->output.keep_pos,
			"output.keep: the %d nodes would share the directory of the job file, so that no file "
			"is one node's: write source = \".\", or have the job write to $REGATTA_OUTPUT",
			p->crew.n);
}

static void warn_of_secrets(const struct job *job, struct arena *a, struct problems *ps)
{
	const char *name = secret_unused(job);

	if (name)
		problems_warn(
			ps, a, job->secrets_pos,
			arena_printf(
				a,
				"secrets: neither env nor pass of this job has '%s': only a variable of the "
				"submitting shell could be meant",
				name));
}

static void check_isolation(const struct engine *engine, const struct job *job, struct arena *a,
			    struct problems *ps)
{
	if (job->isolate != ISOLATE_NONE && !engine->isolates)
		problems_add(
			ps, a, job->isolate_pos,
			"engine %s gives each node a machine of its own: leave out isolate, or use engine local",
			engine->name);
}

/* Where nobody knows the machines before they are made. */
static void check_processes(const struct engine *engine, const struct job *job, struct arena *a,
			    struct problems *ps)
{
	struct doc_pos pos = job->processes_pos;

	if (engine->queues ||
	    (!plan_counts_by(job, PROCESSES_GPUS) && !plan_counts_by(job, PROCESSES_CPUS)))
		return;
	for (size_t i = 0; i < job->roles.n; i++)
		if (job_role(job, i)->processes_by != PROCESSES_NUMBER)
			pos = job_role(job, i)->processes_pos;
	problems_add(ps, a, pos,
		     "processes_per_node: engine %s does not know what its machines have: write a "
		     "number, or say it in `resources`",
		     engine->name);
}

const char *plan_context(const struct job *job)
{
	struct str word = str_from(job->master);

	return str_starts(word, STR("context:")) ? job->master + strlen("context:") : NULL;
}

static void check_master(const struct job *job, struct arena *a, struct problems *ps)
{
	const char *context = plan_context(job);

	if (strcmp(job->master, "auto") != 0 && strcmp(job->master, "here") != 0 &&
	    !(context && *context))
		problems_add(ps, a, job->master_pos,
			     "master = \"%s\": write \"auto\", \"here\" or \"context:NAME\"",
			     job->master);
}

bool plan_check(const struct job *job, struct arena *a, struct plan *ret, struct problems *ps)
{
	struct plan p = {.job = job};

	/* The engine checks even if the strategy found problems, so that all are shown at once. */
	p.strategy = strategy_for(job, a, ps);
	bool ok = p.strategy && strategy_crew(p.strategy, job, a, &p.crew, ps);
	const struct engine *engine = engine_for(job, a, ps);
	warn_of_secrets(job, a, ps);
	size_t before = ps->n + ps->more;
	check_master(job, a, ps);
	if (engine) {
		check_isolation(engine, job, a, ps);
		check_processes(engine, job, a, ps);
	}
	if (ok)
		check_keep(&p, a, ps);
	ok = engine && engine->check(job, a, ps) && ps->n + ps->more == before && ok;
	if (!ok)
		return false;
	*ret = p;
	return true;
}

static bool asks_for(const struct resources_spec *r)
{
	return r && (r->cpus > 0 || r->gpus || r->memory);
}

bool plan_queues(const struct plan *p)
{
	const struct engine *engine = engine_named(p->job->engine);
	bool any = false;

	for (int i = 0; i < p->crew.nroles; i++)
		any = any || (p->crew.roles[i].spec && asks_for(p->crew.roles[i].spec->resources));
	return any && engine && engine->queues;
}

struct resources_spec *plan_shares(const struct plan *p, struct arena *a)
{
	struct resources_spec *v = arena_array(a, struct resources_spec, (size_t)p->crew.n + 1);

	for (int i = 0; i < p->crew.n; i++) {
		const struct role *r = p->crew.roles[p->crew.members[i].role].spec;

		v[i] = r && r->resources ? *r->resources : (struct resources_spec){0};
	}
	return v;
}

bool plan_counts_by(const struct job *job, enum processes_by by)
{
	bool any = job->roles.n == 0 && job->processes_by == by;

	for (size_t i = 0; i < job->roles.n; i++)
		any = any || job_role(job, i)->processes_by == by;
	return any;
}

static void count_processes(int64_t *processes, enum processes_by *by, const struct doc *facts)
{
	int64_t n = *by == PROCESSES_GPUS   ? doc_int(facts, "node_gpus", 0)
		    : *by == PROCESSES_CPUS ? doc_int(facts, "node_cpus", 0)
					    : 0;

	if (n > 0) {
		*processes = n < JOB_MAX_PROCESSES ? n : JOB_MAX_PROCESSES;
		*by = PROCESSES_NUMBER;
	}
}

/* The crew anew, with the numbers of processes that the machines tell.  The job is not changed. */
static void complete_processes(struct plan *p, const struct doc *facts, struct arena *a)
{
	struct problems *none = arena_new_of(a, struct problems);
	struct job *job = arena_new_of(a, struct job);
	struct role *roles = arena_array(a, struct role, p->job->roles.n + 1);
	struct crew crew;

	*job = *p->job;
	count_processes(&job->processes, &job->processes_by, facts);
	for (size_t i = 0; i < job->roles.n; i++) {
		roles[i] = *job_role(p->job, i);
		count_processes(&roles[i].processes, &roles[i].processes_by, facts);
	}
	job->roles.v = roles;
	if (strategy_crew(p->strategy, job, a, &crew, none)) {
		p->crew = crew;
		p->job = job;
	}
}

void plan_complete(struct plan *p, const struct doc *facts, struct arena *a)
{
	const struct engine *engine = engine_named(p->job->engine);

	if (facts &&
	    (plan_counts_by(p->job, PROCESSES_GPUS) || plan_counts_by(p->job, PROCESSES_CPUS)))
		complete_processes(p, facts, a);
	p->boots = engine->makes_machines;
	p->nresources = 0;
	engine->plan(facts, a, p);
}

const char *plan_manifests_engine(void)
{
	for (size_t i = 0; i < NENGINES; i++)
		if (table[i]->manifests)
			return table[i]->name;
	return NULL;
}

struct doc *plan_manifests(const struct plan *p, struct arena *a, struct err *err)
{
	return engine_named(p->job->engine)->manifests(p, a, err);
}

bool plan_master_is_apart(const struct plan *p)
{
	return strcmp(p->job->master, "auto") == 0;
}

bool plan_settle(struct plan *p, const struct doc *facts)
{
	bool at_client = str_is(doc_str(facts, "at", STR("")), "client");

	p->hands_over = at_client && plan_master_is_apart(p);
	p->carries = plan_master_is_apart(p) && doc_bool(facts, "carries", false);
	if (plan_has_nodes(p))
		return true;
	p->crew.n = p->crew.ncounted = 0;
	return false;
}

static bool same_text(const char *x, const char *y)
{
	return x && y ? strcmp(x, y) == 0 : x == y;
}

bool plan_same_master(const struct plan *x, const struct plan *y, struct arena *a)
{
	struct plan_results to = plan_results(x, a), and = plan_results(y, a);

	if (!x->hands_over || !y->hands_over || x->nresources != y->nresources ||
	    !same_text(to.url, and.url) || to.there_ms != and.there_ms)
		return false;
	for (int i = 0; i < x->nresources; i++) {
		const struct plan_resource *r = &x->resources[i], *s = &y->resources[i];

		if (!same_text(r->kind, s->kind) || !same_text(r->name, s->name) ||
		    (!r->master && !same_text(r->spec, s->spec)))
			return false;
	}
	return true;
}

void plan_adopt(struct plan *p, const struct doc *facts)
{
	const struct doc *list = doc_array(facts, "adopted");

	for (size_t i = 0; list && i < list->array.n; i++) {
		const struct doc *d = list->array.v[i];

		for (int k = 0; k < p->nresources; k++) {
			struct plan_resource *r = &p->resources[k];

			if (!str_is(doc_str(d, "name", STR("")), r->name))
				continue;
			r->shared = true;
			r->id = doc_str(d, "id", STR("")).p;
			r->age_ms = doc_int(d, "age_ms", 0);
			if (!doc_get(d, "age_ms"))
				r->prices.n = 0;
		}
	}
}

const char *plan_engine_that_keeps_results(void)
{
	for (size_t i = 0; i < NENGINES; i++)
		if (table[i]->keeps_results)
			return table[i]->name;
	return NULL;
}

bool plan_keeps_results(const struct plan *p)
{
	const struct engine *engine = engine_named(p->job->engine);

	return engine && engine->keeps_results && plan_master_is_apart(p);
}

struct plan_results plan_results(const struct plan *p, struct arena *a)
{
	const struct engine *engine = engine_named(p->job->engine);
	const char *s3 = p->job->output.s3;
	struct plan_results r = {
		.there_ms = plan_keeps_results(p) ? p->job->output.retention_ms : 0,
	};

	if (s3)
		r.url = arena_printf(a, "%s%s", s3, s3[strlen(s3) - 1] == '/' ? "" : "/");
	if (r.url || r.there_ms)
		return r;
	return engine && engine->results ? engine->results(p, a) : (struct plan_results){0};
}

const char *plan_metrics(const struct plan *p, struct arena *a)
{
	const struct engine *engine = engine_named(p->job->engine);

	return engine && engine->metrics ? engine->metrics(p, a) : NULL;
}

struct plan_volume plan_volume(const struct plan *p, const struct plan_resource *r, struct arena *a)
{
	const struct engine *engine = engine_named(p->job->engine);

	return engine && engine->volume ? engine->volume(r, a) : (struct plan_volume){0};
}

bool plan_make(const struct job *job, const struct doc *facts, struct arena *a, struct plan *ret,
	       struct problems *ps)
{
	struct plan p;

	if (!plan_check(job, a, &p, ps))
		return false;
	plan_complete(&p, facts, a);
	*ret = p;
	return true;
}

const char *plan_choice(const struct plan_resource *pr, int step)
{
	return pr->nchoices ? pr->choices[step % pr->nchoices] : NULL;
}

int64_t plan_gather_ms(const struct plan *p)
{
	const struct timeouts *t = &p->job->timeouts;

	return t->gather_ms + (job_sets_up(p->job) ? t->setup_ms : 0);
}

/* max_runtime plus an hour; without a limit a day, which the master extends. */
int64_t plan_lifetime_ms(const struct plan *p)
{
	return p->job->max_runtime_ms ? p->job->max_runtime_ms + HOUR_MS : 24 * HOUR_MS;
}
