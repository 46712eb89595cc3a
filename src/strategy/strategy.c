/* strategy - the table of strategies, and the one that a job names. */
#include "strategy/strategy.h"

#include "base/arena.h"
#include "base/suggest.h"
#include "strategy/internal.h"

static const struct strategy *const table[] = {
	&strategy_single,
	&strategy_roles,
	&strategy_pserver,
};
#define NSTRATEGIES (sizeof(table) / sizeof(table[0]))

/* Strategies that may exist in other versions: the message for them differs from that for a typing error. */
static const char *const elsewhere[] = {"paddle", "torch", "elastic", "mpi", "tf", "mxnet"};

const char *const *strategy_names(void)
{
	static const char *names[NSTRATEGIES + 1];

	for (size_t i = 0; i < NSTRATEGIES; i++)
		names[i] = table[i]->name;
	return names;
}

static const char *join_names(struct arena *a)
{
	const char *all = table[0]->name;

	for (size_t i = 1; i < NSTRATEGIES; i++)
		all = arena_printf(a, "%s, %s", all, table[i]->name);
	return all;
}

const struct strategy *strategy_named(const char *name)
{
	for (size_t i = 0; i < NSTRATEGIES; i++)
		if (strcmp(table[i]->name, name) == 0)
			return table[i];
	return NULL;
}

const struct strategy *strategy_for(const struct job *job, struct arena *a, struct problems *ps)
{
	const char *name = job->strategy;

	if (name[0] == '\0')
		return job->roles.n > 0 ? &strategy_roles : &strategy_single;
	if (strategy_named(name))
		return strategy_named(name);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++) {
		if (strcmp(elsewhere[i], name) == 0) {
			problems_add(ps, a, job->strategy_pos,
				     "strategy '%s' is not in this version: strategies here are %s",
				     name, join_names(a));
			return NULL;
		}
	}
	const char *near = suggest_word(strategy_names(), NSTRATEGIES, str_from(name));
	if (near)
		problems_add(ps, a, job->strategy_pos,
			     "there is no strategy '%s': did you mean '%s'?", name, near);
	else
		problems_add(ps, a, job->strategy_pos,
			     "there is no strategy '%s': strategies here are %s", name,
			     join_names(a));
	return NULL;
}

bool strategy_crew(const struct strategy *s, const struct job *job, struct arena *a,
		   struct crew *ret, struct problems *ps)
{
	struct crew c = {0};

	if (!s->crew(job, a, &c, ps))
		return false;
	*ret = c;
	return true;
}

bool strategy_has_hosts(const struct crew *crew)
{
	return crew->ncounted > 1;
}

const char *strategy_hostfile(const struct crew *crew)
{
	return strategy_has_hosts(crew) ? "{list:+||{address} slots=1\n}" : "";
}

const char *strategy_machinefile(const struct crew *crew)
{
	return strategy_has_hosts(crew) ? "{list:+||{address}:1\n}" : "";
}

void strategy_members(const struct crew *crew, const char *const *addresses, struct arena *a,
		      struct expand_members *ret)
{
	struct expand_role *roles = arena_array(a, struct expand_role, (size_t)crew->nroles + 1);
	size_t n = 0;

	for (int i = 0; i < crew->n; i++) {
		const struct strategy_role *r = &crew->roles[crew->members[i].role];

		if (i == 0 || crew->members[i].role != crew->members[i - 1].role)
			roles[n++] = (struct expand_role){
				.name = r->name,
				.first = i,
				.port = r->port,
				.counted = r->counted,
			};
		roles[n - 1].count++;
	}
	*ret = (struct expand_members){
		.roles = roles, .nroles = n, .addresses = addresses, .n = crew->n};
}
