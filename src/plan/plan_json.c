/*
 * plan_json - a plan for programs: `regatta plan --output json` and plan.json
 * of a run.  Programs depend on the keys: they may be added to, but not removed.
 */
#include "plan/internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "spec/secret.h"

#define MAX_ROLES_WITH_ENV 16

bool plan_shows_env(const struct plan *p, int rank)
{
	const struct member *m = &p->crew.members[rank];

	if (p->crew.n <= PLAN_ENV_RANKS)
		return true;
	/* Each environment lists all nodes: printing all of them would be quadratic. */
	return m->index == 0 && m->role < MAX_ROLES_WITH_ENV;
}

void plan_env(const struct plan *p, const char *run_id, int rank, struct arena *a,
	      struct env_list *ret_env)
{
	const struct env_input in = {
		.job = p->job,
		.crew = &p->crew,
		.run_id = run_id,
		.master_endpoint = "<master>",
	};
	struct expand_members members;
	const struct expand_here here = {
		.members = &members,
		.rank = rank,
		.attempt = 1,
		.interface = p->iface,
		.output = "<output directory>",
		.work = "<work directory>",
		.hostfile = "<hostfile>",
		.machinefile = "<machinefile>",
		.metrics = "<metrics fifo>",
		.rsh = "<rsh>",
	};
	struct env_list templates;

	strategy_members(&p->crew, p->addresses, a, &members);
	strategy_env(p->strategy, &in, p->crew.members[rank].role, a, &templates);
	strategy_env_expand(&templates, &here, "<long values>", a, ret_env);
	for (size_t i = 0; i < ret_env->n; i++)
		if (secret_name(p->job, str_from(ret_env->v[i].name)))
			ret_env->v[i].value = SECRET_SHOWN;
}

static void put(struct arena *a, struct doc *table, const char *key, struct doc *value)
{
	doc_set(a, table, str_from(key), value);
}

static void put_text(struct arena *a, struct doc *table, const char *key, const char *text)
{
	put(a, table, key, text ? doc_new_str(a, str_from(text)) : doc_new(a, DOC_NULL));
}

static void put_number(struct arena *a, struct doc *table, const char *key, int64_t number)
{
	put(a, table, key, doc_new_int(a, number));
}

static struct doc *words(struct arena *a, const struct strs *strs)
{
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (size_t i = 0; i < strs->n; i++)
		doc_append(a, list, doc_new_str(a, str_from(strs->v[i])));
	return list;
}

static struct doc *roles_doc(const struct plan *p, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (int i = 0; i < p->crew.nroles; i++) {
		const struct strategy_role *r = &p->crew.roles[i];
		struct doc *role = doc_new(a, DOC_TABLE), *after = doc_new(a, DOC_ARRAY);

		put_text(a, role, "name", r->name);
		put_number(a, role, "count", r->count);
		put(a, role, "counted", doc_new_bool(a, r->counted));
		put(a, role, "command", words(a, &r->command));
		put_number(a, role, "port", r->port);
		put_number(a, role, "memory", (int64_t)r->spec->memory);
		put_text(a, role, "ready_when", job_ready_choices[r->ready_when]);
		for (int k = 0; k < r->nafter; k++)
			doc_append(a, after,
				   doc_new_str(a, str_from(p->crew.roles[r->after[k]].name)));
		put(a, role, "after", after);
		doc_append(a, list, role);
	}
	return list;
}

static struct doc *resources_doc(const struct plan *p, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (int i = 0; i < p->nresources; i++) {
		const struct plan_resource *r = &p->resources[i];
		struct doc *resource = doc_new(a, DOC_TABLE), *needs = doc_new(a, DOC_ARRAY);

		put_text(a, resource, "kind", r->kind);
		put_text(a, resource, "name", r->name);
		put_text(a, resource, "node", r->node >= 0 ? p->crew.members[r->node].name : NULL);
		for (int k = 0; k < r->nneeds; k++)
			doc_append(a, needs,
				   doc_new_str(a, str_from(p->resources[r->needs[k]].name)));
		put(a, resource, "needs", needs);
		doc_append(a, list, resource);
	}
	return list;
}

static struct doc *env_doc(const struct plan *p, const char *run_id, int rank, struct arena *a)
{
	struct doc *table = doc_new(a, DOC_TABLE);
	struct env_list env;

	plan_env(p, run_id, rank, a, &env);
	for (size_t i = 0; i < env.n; i++)
		put_text(a, table, env.v[i].name, env.v[i].value);
	return table;
}

static struct doc *nodes_doc(const struct plan *p, const char *run_id, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY);

	for (int i = 0; i < p->crew.n; i++) {
		const struct member *m = &p->crew.members[i];
		struct doc *node = doc_new(a, DOC_TABLE);

		put_text(a, node, "name", m->name);
		put_text(a, node, "role", p->crew.roles[m->role].name);
		put_number(a, node, "index", m->index);
		put_number(a, node, "rank", m->rank);
		put_text(a, node, "address", p->addresses[i]);
		put(a, node, "counted", doc_new_bool(a, p->crew.roles[m->role].counted));
		put_text(a, node, "resource", p->resources[p->resource_of[i]].name);
		if (plan_shows_env(p, i))
			put(a, node, "env", env_doc(p, run_id, i, a));
		doc_append(a, list, node);
	}
	return list;
}

static struct doc *limits_doc(const struct job *job, struct arena *a)
{
	const struct timeouts *t = &job->timeouts;
	struct doc *limits = doc_new(a, DOC_TABLE), *timeouts = doc_new(a, DOC_TABLE);

	put_number(a, limits, "max_runtime_ms", job->max_runtime_ms);
	put(a, limits, "max_cost", doc_new_float(a, job->max_cost));
	put_number(a, timeouts, "launch_ms", t->launch_ms);
	if (plan_makes_machines(job))
		put_number(a, timeouts, "boot_ms", t->boot_ms);
	put_number(a, timeouts, "gather_ms", t->gather_ms);
	put_number(a, timeouts, "setup_ms", t->setup_ms);
	put_number(a, timeouts, "serve_ms", t->serve_ms);
	put_number(a, timeouts, "grace_ms", t->grace_ms);
	put_number(a, timeouts, "collect_ms", t->collect_ms);
	put_number(a, timeouts, "lease_ms", t->lease_ms);
	put(a, limits, "timeouts", timeouts);
	return limits;
}

void plan_to_json(const struct plan *p, const char *run_id, struct arena *a, struct buf *out)
{
	struct doc *root = doc_new(a, DOC_TABLE);

	put_text(a, root, "run", run_id);
	put_text(a, root, "name", p->job->name);
	put_text(a, root, "engine", p->job->engine);
	put_text(a, root, "strategy", p->strategy->name);
	put_text(a, root, "interface", p->iface);
	put(a, root, "resources", resources_doc(p, a));
	put(a, root, "roles", roles_doc(p, a));
	put(a, root, "nodes", nodes_doc(p, run_id, a));
	put(a, root, "limits", limits_doc(p->job, a));
	struct doc *cost = plan_cost_doc(p, a);
	if (cost)
		put(a, root, "cost", cost);
	struct doc *volumes = plan_volumes_doc(p, a);
	if (volumes)
		put(a, root, "volumes", volumes);
	doc_to_json(root, out);
	buf_addc(out, '\n');
}
