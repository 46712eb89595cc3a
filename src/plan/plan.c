/* plan - the engine table, and a job turned into a plan. */
#include "plan/plan.h"

#include "base/arena.h"
#include "plan/parts.h"

static const struct engine *const table[] = {
	&engine_local,
};
#define NENGINES (sizeof(table) / sizeof(table[0]))

/* Engines that other versions have: a job file that names one is not misspelt. */
static const char *const elsewhere[] = {"aws.ec2", "aws.asg", "kubernetes", "aws.eks"};
#define NELSEWHERE (sizeof(elsewhere) / sizeof(elsewhere[0]))

static const char *join_names(struct arena *a)
{
	const char *all = "";

	for (size_t i = 0; i < NENGINES; i++)
		all = arena_printf(a, "%s%s%s", all, i ? ", " : "", table[i]->name);
	return all;
}

static const struct engine *engine_for(const struct job *job, struct arena *a, struct problems *ps)
{
	const char *words[NENGINES + NELSEWHERE];

	for (size_t i = 0; i < NENGINES; i++) {
		words[i] = table[i]->name;
		if (strcmp(table[i]->name, job->engine) == 0)
			return table[i];
	}
	for (size_t i = 0; i < NELSEWHERE; i++) {
		words[NENGINES + i] = elsewhere[i];
		if (strcmp(elsewhere[i], job->engine) == 0) {
			problems_add(ps, a, job->engine_pos,
				     "engine '%s' is not in this version: engines here are %s",
				     job->engine, join_names(a));
			return NULL;
		}
	}
	const char *near = schema_suggest(words, NENGINES + NELSEWHERE, str_from(job->engine));
	if (near)
		problems_add(ps, a, job->engine_pos, "there is no engine '%s': did you mean '%s'?",
			     job->engine, near);
	else
		problems_add(ps, a, job->engine_pos, "there is no engine '%s': engines here are %s",
			     job->engine, join_names(a));
	return NULL;
}

bool plan_make(const struct job *job, const struct plan_input *in, struct arena *a,
	       struct plan *ret, struct problems *ps)
{
	struct plan p = {.job = job};

	/* Each looks even if the one before found something: a file shows all its problems at once.
	 * An engine then sees a crew of nobody. */
	p.strategy = strategy_for(job, a, ps);
	bool ok = p.strategy && strategy_crew(p.strategy, job, a, &p.crew, ps);
	const struct engine *engine = engine_for(job, a, ps);
	ok = engine && engine->plan(job, in, a, &p, ps) && ok;
	if (!ok)
		return false;
	*ret = p;
	return true;
}
