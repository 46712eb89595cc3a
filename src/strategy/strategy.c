/* strategy - the table, and what a job asks for of it. */
#include "strategy/strategy.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/suggest.h"
#include "strategy/internal.h"

#define HOSTFILE_LINE 64 /* an address and " slots=1\n" */

static const struct strategy *const table[] = {
	&strategy_single,
	&strategy_roles,
	&strategy_pserver,
};
#define NSTRATEGIES (sizeof(table) / sizeof(table[0]))

/* Names that a job file may well hold, of strategies that other versions have. */
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

static const char *host_lines(const struct crew *crew, const char *const *addresses,
			      const char *after_address, struct arena *a)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, (size_t)JOB_MAX_NODES * HOSTFILE_LINE);
	for (int i = 0; strategy_has_hosts(crew) && i < crew->ncounted; i++) {
		buf_addz(&text, addresses[i] ? addresses[i] : crew->members[i].name);
		buf_addz(&text, after_address);
	}
	struct str all = buf_str(&text);
	return arena_strndup(a, all.p, all.n);
}

const char *strategy_hostfile(const struct crew *crew, const char *const *addresses,
			      struct arena *a)
{
	return host_lines(crew, addresses, " slots=1\n", a);
}

const char *strategy_machinefile(const struct crew *crew, const char *const *addresses,
				 struct arena *a)
{
	return host_lines(crew, addresses, ":1\n", a);
}
