/* plan - the engine table, and making a plan from a job. */
#include "plan/plan.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "plan/internal.h"
#include "spec/secret.h"

static const struct engine *const table[] = {
	&engine_local,
	&engine_hosts,
	&engine_aws_ec2,
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

struct job_rules plan_job_rules(void)
{
	struct job_rules rules = {.check = check_for_job_load};

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
				"secrets: no env of this job sets '%s': only a variable of the "
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

bool plan_check(const struct job *job, struct arena *a, struct plan *ret, struct problems *ps)
{
	struct plan p = {.job = job};

	/* The engine checks even if the strategy found problems, so that all are shown at once. */
	p.strategy = strategy_for(job, a, ps);
	bool ok = p.strategy && strategy_crew(p.strategy, job, a, &p.crew, ps);
	const struct engine *engine = engine_for(job, a, ps);
	warn_of_secrets(job, a, ps);
	size_t before = ps->n + ps->more;
	if (engine)
		check_isolation(engine, job, a, ps);
	if (ok)
		check_keep(&p, a, ps);
	ok = engine && engine->check(job, a, ps) && ps->n + ps->more == before && ok;
	if (!ok)
		return false;
	*ret = p;
	return true;
}

void plan_complete(struct plan *p, const struct doc *facts, struct arena *a)
{
	engine_named(p->job->engine)->plan(facts, a, p);
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

/* max_runtime plus an hour; without a limit a day, which the master extends. */
int64_t plan_lifetime_ms(const struct plan *p)
{
	return p->job->max_runtime_ms ? p->job->max_runtime_ms + HOUR_MS : 24 * HOUR_MS;
}
