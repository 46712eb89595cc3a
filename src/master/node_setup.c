#include "master/node_setup.h"

#include "base/arena.h"
#include "fmt/doc.h"
#include "link/message.h"
#include "master/live_run.h"
#include "master/node_container.h"
#include "plan/plan.h"
#include "spec/job.h"
#include "strategy/strategy.h"

struct env_sum {
	struct env_pair *v;
	size_t n, cap;
};

static void add(struct env_sum *e, const char *name, const char *value)
{
	for (size_t i = 0; i < e->n; i++)
		if (strcmp(e->v[i].name, name) == 0) {
			e->v[i].value = value;
			return;
		}
	e->v[e->n++] = (struct env_pair){name, value};
}

static void add_list(struct env_sum *e, const struct env_list *list)
{
	for (size_t i = 0; list && i < list->n; i++)
		add(e, list->v[i].name, list->v[i].value);
}

static const struct doc *client_env(const struct live_run *lr, struct arena *a)
{
	struct doc *d = NULL;

	return json_parse(str_from(lr->client_env), a, &d, NULL) == 0 && d->type == DOC_TABLE
		       ? d
		       : NULL;
}

/*
 * The variables of the submitting shell, of the job and of the role, and who the node is.  Not what the
 * strategy adds: the addresses of the other nodes are not known before all of them are there.
 */
static void put_env(const struct live_run *lr, int rank, struct arena *a, struct message_inputs *m)
{
	const struct member *me = &lr->plan.crew.members[rank];
	const struct strategy_role *role = &lr->plan.crew.roles[me->role];
	const struct doc *client = client_env(lr, a);
	size_t n = client ? client->table.n : 0;
	const struct env_list *own = role->spec ? &role->spec->env : NULL;
	struct env_sum e = {
		.v = arena_array(a, struct env_pair, n + lr->job->env.n + (own ? own->n : 0) + 3)};

	for (size_t i = 0; i < n; i++)
		if (client->table.v[i].value->type == DOC_STRING &&
		    !client_variable_hidden(lr, NULL, client->table.v[i].key))
			add(&e, arena_str(a, client->table.v[i].key).p,
			    client->table.v[i].value->s.p);
	add_list(&e, &lr->job->env);
	add_list(&e, own);
	add(&e, "REGATTA_RUN", lr->row.id);
	add(&e, "REGATTA_NODE", me->name);
	add(&e, "REGATTA_ROLE", role->name);
	m->setup_env = e.v;
	m->nsetup_env = e.n;
}

/* Those of the job, then those of the role. */
static const char **both(const struct strs *job, const struct strs *role, struct arena *a,
			 size_t *ret_n)
{
	const char **v = arena_array(a, const char *, job->n + (role ? role->n : 0) + 1);
	size_t n = 0;

	for (size_t i = 0; i < job->n; i++)
		v[n++] = job->v[i];
	for (size_t i = 0; role && i < role->n; i++)
		v[n++] = role->v[i];
	*ret_n = n;
	return v;
}

void node_setup_put(const struct live_run *lr, int rank, struct arena *a, struct message_inputs *m)
{
	const struct crew *crew = &lr->plan.crew;
	const struct role *spec = crew->roles[crew->members[rank].role].spec;

	m->setup = both(&lr->job->setup, spec ? &spec->setup : NULL, a, &m->nsetup);
	if (plan_makes_machines(lr->job))
		m->packages =
			both(&lr->job->packages, spec ? &spec->packages : NULL, a, &m->npackages);
	if (m->nsetup + m->npackages == 0)
		return;
	put_env(lr, rank, a, m);
	m->setup_ms = lr->job->timeouts.setup_ms;
	m->attempt = lr->nodes[rank].attempt;
}
