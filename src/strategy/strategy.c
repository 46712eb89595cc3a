/* strategy - the table of strategies, and the one that a job names. */
#include "strategy/strategy.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/exit_text.h"
#include "base/suggest.h"
#include "strategy/internal.h"

static const struct strategy *const table[] = {
	&strategy_single,  &strategy_roles,  &strategy_pserver,	  &strategy_torch,
	&strategy_elastic, &strategy_tf,     &strategy_jax,	  &strategy_mxnet,
	&strategy_horovod, &strategy_paddle, &strategy_inference, &strategy_mpi,
};
#define NSTRATEGIES (sizeof(table) / sizeof(table[0]))

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

void strategy_complete(struct job *job, struct arena *a)
{
	const struct strategy *s = strategy_named(job->strategy);

	if (s && s->complete)
		s->complete(job, a);
}

bool strategy_brings_command(const struct job *job, const char *role)
{
	const struct strategy *s = strategy_named(job->strategy);

	for (size_t i = 0; s && s->brings && s->brings[i]; i++)
		if (strcmp(s->brings[i], role) == 0)
			return true;
	return false;
}

bool strategy_crew(const struct strategy *s, const struct job *job, struct arena *a,
		   struct crew *ret, struct problems *ps)
{
	struct crew c = {0};

	if (job->rendezvous && !s->takes_rendezvous) {
		problems_add(ps, a, job->rendezvous_pos,
			     "rendezvous is for strategy = \"elastic\": leave it out");
		return false;
	}
	if (!s->crew(job, a, &c, ps))
		return false;
	*ret = c;
	return true;
}

void strategy_describe_end(const struct strategy_end *e, const char *node, struct buf *out)
{
	if (e->rank >= 0)
		buf_printf(out, "rank %d", e->rank);
	if (e->host.n > 0 && e->rank >= 0)
		buf_addz(out, " on ");
	if (node)
		buf_addz(out, node);
	else
		buf_addstr(out, e->host);
	if (e->rank >= 0 || node || e->host.n > 0)
		buf_addz(out, ": ");
	if (e->what)
		buf_printf(out, "%s%s", e->what, e->code >= 0 ? ", " : "");
	if (!e->what || e->code >= 0)
		exit_describe(out, e->code, e->signal, false, STR(""));
}

bool strategy_runs(const struct crew *crew, int rank)
{
	switch (crew->launch) {
	case LAUNCH_ALL:
		return true;
	case LAUNCH_FIRST:
		return rank == 0;
	case LAUNCH_ROLE:
		return crew->members[rank].role == crew->members[0].role;
	}
	return true;
}

bool strategy_counts(const struct crew *crew, int rank)
{
	return crew->roles[crew->members[rank].role].counted && strategy_runs(crew, rank);
}

struct strs strategy_command(const struct crew *crew, int rank)
{
	/* Ends with success when it is told to stop, and fails where there is no sleep.  A shell, because an image
	 * has no regatta. */
	static const char *idle[] = {
		"/bin/sh", "-c",
		"trap 'exit 0' TERM; while sleep 3600 & wait $! 2>/dev/null; [ $? != 127 ]; do :; done; "
		"exit 127",
		NULL};

	if (!strategy_runs(crew, rank))
		return (struct strs){idle, sizeof(idle) / sizeof(idle[0]) - 1};
	return crew->roles[crew->members[rank].role].command;
}

const char *strategy_program(const struct crew *crew, int rank)
{
	static const char *const launchers[] = {"mpirun", "mpiexec", "orterun"};
	const char *first = crew->roles[crew->members[0].role].command.v[0];
	const char *slash = strrchr(first, '/'), *name = slash ? slash + 1 : first;

	for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++)
		if (!strategy_runs(crew, rank) &&
		    strncmp(name, launchers[i], strlen(launchers[i])) == 0)
			return first;
	return strategy_command(crew, rank).v[0];
}

int strategy_slots(const struct crew *crew, int role)
{
	const struct strategy_role *r = &crew->roles[role];

	switch (crew->launch) {
	case LAUNCH_ALL:
	case LAUNCH_FIRST:
		return r->counted ? r->ranks : 0;
	case LAUNCH_ROLE:
		return r->counted ? 0 : r->ranks;
	}
	return 0;
}

int strategy_world(const struct crew *crew)
{
	int n = 0;

	for (int i = 0; i < crew->n; i++)
		n += strategy_slots(crew, crew->members[i].role);
	return n;
}

bool strategy_has_processes(const struct crew *crew)
{
	for (int i = 0; i < crew->nroles; i++)
		if (crew->roles[i].ranks > 1)
			return true;
	return false;
}

bool strategy_has_hosts(const struct crew *crew)
{
	return crew->ncounted > 1 || crew->launch == LAUNCH_ROLE ||
	       (crew->launch == LAUNCH_FIRST && strategy_has_processes(crew));
}

/* The template of a line for each node that has slots: the address, then `slots`. */
static const char *host_lines(const struct crew *crew, struct arena *a, const char *slots)
{
	if (!strategy_has_hosts(crew))
		return "";
	if (crew->launch != LAUNCH_ROLE)
		return arena_printf(a, "{list:+||{address}%s\n}", slots);
	const char *all = "";

	for (int i = 0; i < crew->nroles; i++)
		if (strategy_slots(crew, i) > 0)
			all = arena_printf(a, "%s{list:%s||{address}%s\n}", all,
					   crew->roles[i].name, slots);
	return all;
}

const char *strategy_hostfile(const struct crew *crew, struct arena *a)
{
	return host_lines(crew, a,
			  strategy_has_processes(crew) ? " slots={processes}" : " slots=1");
}

const char *strategy_machinefile(const struct crew *crew, struct arena *a)
{
	return host_lines(crew, a, strategy_has_processes(crew) ? ":{processes}" : ":1");
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
				.processes = r->ranks,
				.counted = r->counted,
			};
		roles[n - 1].count++;
	}
	*ret = (struct expand_members){
		.roles = roles, .nroles = n, .addresses = addresses, .n = crew->n};
}
