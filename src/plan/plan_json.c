/*
 * plan_json - a plan for programs: `regatta plan --output json` and plan.json
 * of a run.  Programs depend on the keys: they may be added to, but not removed.
 */
#include "plan/internal.h"

#include "base/arena.h"
#include "base/buf.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
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

static void words(struct jsonw *w, const char *key, const struct strs *strs)
{
	jsonw_key(w, key);
	jsonw_open(w, '[');
	for (size_t i = 0; i < strs->n; i++)
		jsonw_z(w, strs->v[i]);
	jsonw_close(w);
}

static void put_doc(struct jsonw *w, const char *key, const struct doc *d)
{
	jsonw_key(w, key);
	doc_put_json(d, w);
}

static void put_roles(struct jsonw *w, const struct plan *p)
{
	jsonw_key(w, "roles");
	jsonw_open(w, '[');
	for (int i = 0; i < p->crew.nroles; i++) {
		const struct strategy_role *r = &p->crew.roles[i];

		jsonw_open(w, '{');
		jsonw_kz(w, "name", r->name);
		jsonw_kint(w, "count", r->count);
		jsonw_kbool(w, "counted", r->counted);
		words(w, "command", &r->command);
		jsonw_kint(w, "port", r->port);
		jsonw_kint(w, "memory", (int64_t)r->spec->memory);
		jsonw_kz(w, "ready_when", job_ready_choices[r->ready_when]);
		jsonw_key(w, "after");
		jsonw_open(w, '[');
		for (int k = 0; k < r->nafter; k++)
			jsonw_z(w, p->crew.roles[r->after[k]].name);
		jsonw_close(w);
		jsonw_close(w);
	}
	jsonw_close(w);
}

static void put_resources(struct jsonw *w, const struct plan *p)
{
	jsonw_key(w, "resources");
	jsonw_open(w, '[');
	for (int i = 0; i < p->nresources; i++) {
		const struct plan_resource *r = &p->resources[i];

		jsonw_open(w, '{');
		jsonw_kz(w, "kind", r->kind);
		jsonw_kz(w, "name", r->name);
		jsonw_kz(w, "node", r->node >= 0 ? p->crew.members[r->node].name : NULL);
		jsonw_key(w, "needs");
		jsonw_open(w, '[');
		for (int k = 0; k < r->nneeds; k++)
			jsonw_z(w, p->resources[r->needs[k]].name);
		jsonw_close(w);
		jsonw_close(w);
	}
	jsonw_close(w);
}

static struct doc *env_doc(const struct plan *p, const char *run_id, int rank, struct arena *a)
{
	struct doc *table = doc_new(a, DOC_TABLE);
	struct env_list env;

	plan_env(p, run_id, rank, a, &env);
	for (size_t i = 0; i < env.n; i++)
		doc_set(a, table, str_from(env.v[i].name),
			env.v[i].value ? doc_new_str(a, str_from(env.v[i].value))
				       : doc_new(a, DOC_NULL));
	return table;
}

static void put_nodes(struct jsonw *w, const struct plan *p, const char *run_id, struct arena *a)
{
	jsonw_key(w, "nodes");
	jsonw_open(w, '[');
	for (int i = 0; i < p->crew.n; i++) {
		const struct member *m = &p->crew.members[i];

		jsonw_open(w, '{');
		jsonw_kz(w, "name", m->name);
		jsonw_kz(w, "role", p->crew.roles[m->role].name);
		jsonw_kint(w, "index", m->index);
		jsonw_kint(w, "rank", m->rank);
		jsonw_kz(w, "address", p->addresses[i]);
		jsonw_kbool(w, "counted", p->crew.roles[m->role].counted);
		jsonw_kz(w, "resource", p->resources[p->resource_of[i]].name);
		if (plan_shows_env(p, i))
			put_doc(w, "env", env_doc(p, run_id, i, a));
		jsonw_close(w);
	}
	jsonw_close(w);
}

static void put_limits(struct jsonw *w, const struct job *job)
{
	const struct timeouts *t = &job->timeouts;

	jsonw_key(w, "limits");
	jsonw_open(w, '{');
	jsonw_kint(w, "max_runtime_ms", job->max_runtime_ms);
	jsonw_kdouble(w, "max_cost", job->max_cost);
	jsonw_key(w, "timeouts");
	jsonw_open(w, '{');
	jsonw_kint(w, "launch_ms", t->launch_ms);
	if (plan_makes_machines(job))
		jsonw_kint(w, "boot_ms", t->boot_ms);
	jsonw_kint(w, "gather_ms", t->gather_ms);
	jsonw_kint(w, "setup_ms", t->setup_ms);
	jsonw_kint(w, "serve_ms", t->serve_ms);
	jsonw_kint(w, "grace_ms", t->grace_ms);
	jsonw_kint(w, "collect_ms", t->collect_ms);
	jsonw_kint(w, "lease_ms", t->lease_ms);
	jsonw_close(w);
	jsonw_close(w);
}

/* Straight into the text: the tree of ten thousand nodes would be eight times as large. */
void plan_to_json(const struct plan *p, const char *run_id, struct arena *a, struct buf *out)
{
	const struct doc *cost = plan_cost_doc(p, a), *volumes = plan_volumes_doc(p, a);
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "run", run_id);
	jsonw_kz(&w, "name", p->job->name);
	jsonw_kz(&w, "engine", p->job->engine);
	jsonw_kz(&w, "strategy", p->strategy->name);
	jsonw_kz(&w, "interface", p->iface);
	put_resources(&w, p);
	put_roles(&w, p);
	put_nodes(&w, p, run_id, a);
	put_limits(&w, p->job);
	if (cost)
		put_doc(&w, "cost", cost);
	if (volumes)
		put_doc(&w, "volumes", volumes);
	jsonw_close(&w);
	buf_addc(out, '\n');
}
