/*
 * plan_store - a plan to the text that is stored with its run, and back.
 *
 * One table of rows gives both directions, as for the job file.  The strategy is stored by name: its
 * code makes the environment of a node when the node starts.
 */
#include "plan/plan.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "fmt/doc.h"
#include "spec/secret.h"

#define VERSION 1
#define MOST_RESOURCES (4 * JOB_MAX_NODES)

static const char *const launch_choices[] = {
	[LAUNCH_ALL] = "all", [LAUNCH_FIRST] = "first", [LAUNCH_ROLE] = "role", NULL};

struct stored_role {
	const char *name;
	int64_t count, port, processes, ranks;
	struct strs command, after;
	bool counted;
	int ready_when;
};

struct stored_node {
	const char *name, *role, *address, *resource;
	int64_t index;
};

struct stored_resource {
	const char *kind, *name, *spec, *node;
	struct strs needs, choices;
	int64_t group, late_ms, settle_ms, absent_looks, least_paid_ms;
	struct ints prices;
	bool carries_many, shared, expires, master;
	const char *id;
	int64_t age_ms;
};

struct stored_plan {
	int64_t version;
	const char *strategy, *iface, *prices_as_of;
	int launch;
	struct job job;
	struct table_list roles, nodes, resources;
	bool boots, agentless, hands_over, carries, one_host;
};

#define MEMBER(s, m) .offset = offsetof(struct s, m)

static const struct field role_fields[] = {
	{.name = "name", .type = FIELD_STR, MEMBER(stored_role, name), .required = true},
	{.name = "count",
	 .type = FIELD_INT,
	 MEMBER(stored_role, count),
	 .required = true,
	 .min = 1,
	 .max = JOB_MAX_NODES},
	{.name = "command",
	 .type = FIELD_ARGV,
	 MEMBER(stored_role, command),
	 .required = true,
	 .min = 1,
	 .max = INT32_MAX},
	{.name = "port", .type = FIELD_INT, MEMBER(stored_role, port), .min = 0, .max = 65535},
	{.name = "processes",
	 .type = FIELD_INT,
	 MEMBER(stored_role, processes),
	 .fallback = "1",
	 .min = 1,
	 .max = JOB_MAX_PROCESSES},
	/* 0, and not there in plans of earlier versions: as many as processes */
	{.name = "ranks",
	 .type = FIELD_INT,
	 MEMBER(stored_role, ranks),
	 .min = 0,
	 .max = JOB_MAX_PROCESSES},
	{.name = "counted", .type = FIELD_BOOL, MEMBER(stored_role, counted), .required = true},
	{.name = "ready_when",
	 .type = FIELD_CHOICE,
	 MEMBER(stored_role, ready_when),
	 .required = true,
	 .choices = job_ready_choices},
	{.name = "after", .type = FIELD_STRS, MEMBER(stored_role, after)},
	{.name = NULL},
};
static const struct schema role_schema = {
	.name = "role", .size = sizeof(struct stored_role), .fields = role_fields};

static const struct field node_fields[] = {
	{.name = "name", .type = FIELD_STR, MEMBER(stored_node, name), .required = true},
	{.name = "role", .type = FIELD_STR, MEMBER(stored_node, role), .required = true},
	{.name = "index",
	 .type = FIELD_INT,
	 MEMBER(stored_node, index),
	 .required = true,
	 .min = 0,
	 .max = JOB_MAX_NODES},
	{.name = "address", .type = FIELD_STR, MEMBER(stored_node, address)},
	{.name = "resource", .type = FIELD_STR, MEMBER(stored_node, resource), .required = true},
	{.name = NULL},
};
static const struct schema node_schema = {
	.name = "node", .size = sizeof(struct stored_node), .fields = node_fields};

static const struct field resource_fields[] = {
	{.name = "kind", .type = FIELD_STR, MEMBER(stored_resource, kind), .required = true},
	{.name = "name", .type = FIELD_STR, MEMBER(stored_resource, name), .required = true},
	{.name = "node", .type = FIELD_STR, MEMBER(stored_resource, node)},
	{.name = "needs", .type = FIELD_STRS, MEMBER(stored_resource, needs)},
	{.name = "group",
	 .type = FIELD_INT,
	 MEMBER(stored_resource, group),
	 .min = 0,
	 .max = MOST_RESOURCES},
	{.name = "late_ms",
	 .type = FIELD_INT,
	 MEMBER(stored_resource, late_ms),
	 .min = 0,
	 .max = INT64_MAX},
	{.name = "settle_ms",
	 .type = FIELD_INT,
	 MEMBER(stored_resource, settle_ms),
	 .min = 0,
	 .max = INT64_MAX},
	{.name = "least_paid_ms",
	 .type = FIELD_INT,
	 MEMBER(stored_resource, least_paid_ms),
	 .min = 0,
	 .max = INT64_MAX},
	{.name = "absent_looks",
	 .type = FIELD_INT,
	 MEMBER(stored_resource, absent_looks),
	 .min = 0,
	 .max = INT32_MAX},
	{.name = "spec", .type = FIELD_STR, MEMBER(stored_resource, spec), .required = true},
	{.name = "choices", .type = FIELD_STRS, MEMBER(stored_resource, choices)},
	{.name = "prices",
	 .type = FIELD_INTS,
	 MEMBER(stored_resource, prices),
	 .min = 0,
	 .max = INT64_MAX},
	{.name = "carries_many", .type = FIELD_BOOL, MEMBER(stored_resource, carries_many)},
	{.name = "shared", .type = FIELD_BOOL, MEMBER(stored_resource, shared)},
	{.name = "expires", .type = FIELD_BOOL, MEMBER(stored_resource, expires)},
	{.name = "master", .type = FIELD_BOOL, MEMBER(stored_resource, master)},
	{.name = "id", .type = FIELD_STR, MEMBER(stored_resource, id)},
	{.name = "age_ms",
	 .type = FIELD_INT,
	 MEMBER(stored_resource, age_ms),
	 .min = 0,
	 .max = INT64_MAX},
	{.name = NULL},
};
static const struct schema resource_schema = {
	.name = "resource", .size = sizeof(struct stored_resource), .fields = resource_fields};

static const struct field plan_fields[] = {
	{.name = "version",
	 .type = FIELD_INT,
	 MEMBER(stored_plan, version),
	 .required = true,
	 .min = VERSION,
	 .max = VERSION},
	{.name = "strategy", .type = FIELD_STR, MEMBER(stored_plan, strategy), .required = true},
	{.name = "interface", .type = FIELD_STR, MEMBER(stored_plan, iface)},
	{.name = "launch",
	 .type = FIELD_CHOICE,
	 MEMBER(stored_plan, launch),
	 .fallback = "all",
	 .choices = launch_choices},
	{.name = "prices_as_of", .type = FIELD_STR, MEMBER(stored_plan, prices_as_of)},
	{.name = "job",
	 .type = FIELD_TABLE,
	 MEMBER(stored_plan, job),
	 .required = true,
	 .sub = &job_schema}, /* with the tables of the engines: schema_of_plan() */
	{.name = "roles",
	 .type = FIELD_LIST,
	 MEMBER(stored_plan, roles),
	 .required = true,
	 .min = 1,
	 .max = JOB_MAX_NODES,
	 .sub = &role_schema},
	{.name = "nodes",
	 .type = FIELD_LIST,
	 MEMBER(stored_plan, nodes),
	 .required = true,
	 .min = 0,
	 .max = JOB_MAX_NODES,
	 .sub = &node_schema},
	{.name = "resources",
	 .type = FIELD_LIST,
	 MEMBER(stored_plan, resources),
	 .required = true,
	 .min = 1,
	 .max = MOST_RESOURCES,
	 .sub = &resource_schema},
	{.name = "one_host", .type = FIELD_BOOL, MEMBER(stored_plan, one_host)},
	{.name = "boots", .type = FIELD_BOOL, MEMBER(stored_plan, boots)},
	{.name = "agentless", .type = FIELD_BOOL, MEMBER(stored_plan, agentless)},
	{.name = "hands_over", .type = FIELD_BOOL, MEMBER(stored_plan, hands_over)},
	{.name = "carries", .type = FIELD_BOOL, MEMBER(stored_plan, carries)},
	{.name = NULL},
};
static const struct schema plan_schema = {
	.name = "plan", .size = sizeof(struct stored_plan), .fields = plan_fields};

/* The rows above, with the tables of the engines among the keys of the job. */
static const struct schema *schema_of_plan(struct arena *a)
{
	const struct schema *job = plan_job_schema(a);
	struct schema *all = arena_new_of(a, struct schema);
	struct field *fields;

	if (job == &job_schema)
		return &plan_schema;
	fields = arena_alloc(a, sizeof(plan_fields));
	memcpy(fields, plan_fields, sizeof(plan_fields));
	for (struct field *f = fields; f->name; f++)
		if (f->sub == &job_schema)
			f->sub = job;
	*all = plan_schema;
	all->fields = fields;
	return all;
}

/* ---- to its text ---- */

static void store_roles(const struct plan *p, struct arena *a, struct table_list *ret)
{
	const struct crew *c = &p->crew;
	struct stored_role *v = arena_array(a, struct stored_role, (size_t)c->nroles);

	for (int i = 0; i < c->nroles; i++) {
		const struct strategy_role *r = &c->roles[i];

		v[i] = (struct stored_role){
			.name = r->name,
			.count = r->count,
			.port = r->port,
			.processes = r->processes,
			.ranks = r->ranks == r->processes ? 0 : r->ranks,
			.command = r->command,
			.counted = r->counted,
			.ready_when = r->ready_when,
			.after = {arena_array(a, const char *, (size_t)r->nafter),
				  (size_t)r->nafter},
		};
		for (int k = 0; k < r->nafter; k++)
			v[i].after.v[k] = c->roles[r->after[k]].name;
	}
	*ret = (struct table_list){v, (size_t)c->nroles};
}

static void store_nodes(const struct plan *p, struct arena *a, struct table_list *ret)
{
	const struct crew *c = &p->crew;
	struct stored_node *v = arena_array(a, struct stored_node, (size_t)c->n);

	for (int i = 0; i < c->n; i++)
		v[i] = (struct stored_node){
			.name = c->members[i].name,
			.role = c->roles[c->members[i].role].name,
			.index = c->members[i].index,
			.address = p->addresses[i],
			.resource = p->resources[p->resource_of[i]].name,
		};
	*ret = (struct table_list){v, (size_t)c->n};
}

static void store_resources(const struct plan *p, struct arena *a, struct table_list *ret)
{
	struct stored_resource *v = arena_array(a, struct stored_resource, (size_t)p->nresources);

	for (int i = 0; i < p->nresources; i++) {
		const struct plan_resource *r = &p->resources[i];

		v[i] = (struct stored_resource){
			.kind = r->kind,
			.name = r->name,
			.spec = r->spec,
			.node = r->node >= 0 ? p->crew.members[r->node].name : NULL,
			.group = r->group,
			.late_ms = r->late_ms,
			.settle_ms = r->settle_ms,
			.least_paid_ms = r->least_paid_ms,
			.absent_looks = r->absent_looks,
			.choices = {r->choices, (size_t)r->nchoices},
			.prices = r->prices,
			.carries_many = r->carries_many,
			.shared = r->shared,
			.expires = r->expires,
			.master = r->master,
			.id = r->id,
			.age_ms = r->age_ms,
			.needs = {arena_array(a, const char *, (size_t)r->nneeds),
				  (size_t)r->nneeds},
		};
		for (int k = 0; k < r->nneeds; k++)
			v[i].needs.v[k] = p->resources[r->needs[k]].name;
	}
	*ret = (struct table_list){v, (size_t)p->nresources};
}

void plan_to_stored(const struct plan *p, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct stored_plan sp = {
		.version = VERSION,
		.strategy = p->strategy->name,
		.iface = p->iface,
		.prices_as_of = p->prices_as_of,
		.launch = (int)p->crew.launch,
		.boots = p->boots,
		.agentless = p->agentless,
		.one_host = p->crew.one_host,
		.hands_over = p->hands_over,
		.carries = p->carries,
		.job = job_masked(p->job, a),
	};

	store_roles(p, a, &sp.roles);
	store_nodes(p, a, &sp.nodes);
	store_resources(p, a, &sp.resources);
	schema_to_json(schema_of_plan(a), &sp, out);
}

/* ---- from a document ---- */

struct restore {
	struct arena *a;
	struct problems *ps;
	struct plan *p;
	struct map *roles, *nodes, *resources; /* name -> index + 1 */
};

static void restore_release(struct restore *r)
{
	map_free(r->roles);
	map_free(r->nodes);
	map_free(r->resources);
}

/* The index of a name; -1 and a problem if it does not exist. */
static int index_of(struct restore *r, const struct map *names, const char *what, const char *name)
{
	size_t at = (size_t)map_get(names, str_from(name));

	if (!at)
		problems_add(r->ps, r->a, (struct doc_pos){0}, "stored plan: there is no %s '%s'",
			     what, name);
	return (int)at - 1;
}

static void note_name(struct restore *r, struct map *names, const char *what, const char *name,
		      int index)
{
	if (map_put(names, str_from(name), (void *)(size_t)(index + 1)))
		problems_add(r->ps, r->a, (struct doc_pos){0},
			     "stored plan: two %ss are named '%s'", what, name);
}

static int *indices_of(struct restore *r, const struct map *names, const char *what,
		       const struct strs *list)
{
	int *v = arena_array(r->a, int, list->n);

	for (size_t i = 0; i < list->n; i++)
		v[i] = index_of(r, names, what, list->v[i]);
	return v;
}

/* The job's role of this name; for a job without roles, the one that the strategy made. */
static const struct role *role_spec(struct restore *r, const struct stored_role *from)
{
	for (size_t i = 0; i < r->p->job->roles.n; i++)
		if (strcmp(job_role(r->p->job, i)->name, from->name) == 0)
			return job_role(r->p->job, i);
	struct role *made = arena_new_of(r->a, struct role);

	*made = job_worker(r->p->job);
	made->name = from->name;
	return made;
}

static void restore_roles(struct restore *r, const struct table_list *list)
{
	const struct stored_role *v = list->v;
	struct crew *c = &r->p->crew;

	c->nroles = (int)list->n;
	c->roles = arena_array(r->a, struct strategy_role, list->n);
	for (int i = 0; i < c->nroles; i++)
		note_name(r, r->roles, "role", v[i].name, i);
	for (int i = 0; i < c->nroles; i++)
		c->roles[i] = (struct strategy_role){
			.name = v[i].name,
			.spec = role_spec(r, &v[i]),
			.count = (int)v[i].count,
			.max = (int)role_spec(r, &v[i])->policy.max,
			.command = v[i].command,
			.port = (int)v[i].port,
			.processes = (int)v[i].processes,
			.ranks = (int)(v[i].ranks ? v[i].ranks : v[i].processes),
			.counted = v[i].counted,
			.ready_when = v[i].ready_when,
			.after = indices_of(r, r->roles, "role", &v[i].after),
			.nafter = (int)v[i].after.n,
		};
}

static void restore_nodes(struct restore *r, const struct table_list *list)
{
	const struct stored_node *v = list->v;
	struct plan *p = r->p;
	struct crew *c = &p->crew;

	c->n = (int)list->n;
	c->members = arena_array(r->a, struct member, list->n);
	p->addresses = arena_array(r->a, const char *, list->n);
	for (int i = 0; i < c->n; i++) {
		int role = index_of(r, r->roles, "role", v[i].role);

		note_name(r, r->nodes, "node", v[i].name, i);
		c->members[i] = (struct member){
			.name = v[i].name, .role = role, .index = (int)v[i].index, .rank = i};
		c->ncounted += role >= 0 && c->roles[role].counted;
		p->addresses[i] = v[i].address;
	}
}

static void restore_resources(struct restore *r, const struct table_list *list,
			      const struct table_list *nodes)
{
	const struct stored_resource *v = list->v;
	struct plan *p = r->p;

	p->nresources = (int)list->n;
	p->resources = arena_array(r->a, struct plan_resource, list->n);
	for (int i = 0; i < p->nresources; i++)
		note_name(r, r->resources, "resource", v[i].name, i);
	for (int i = 0; i < p->nresources; i++)
		p->resources[i] = (struct plan_resource){
			.kind = v[i].kind,
			.name = v[i].name,
			.spec = v[i].spec,
			.node = v[i].node ? index_of(r, r->nodes, "node", v[i].node) : -1,
			.group = v[i].group,
			.late_ms = v[i].late_ms,
			.settle_ms = v[i].settle_ms,
			.least_paid_ms = v[i].least_paid_ms,
			.absent_looks = v[i].absent_looks,
			.choices = v[i].choices.v,
			.prices = v[i].prices,
			.carries_many = v[i].carries_many,
			.shared = v[i].shared,
			.expires = v[i].expires,
			.master = v[i].master,
			.id = v[i].id,
			.age_ms = v[i].age_ms,
			.nchoices = (int)v[i].choices.n,
			.needs = indices_of(r, r->resources, "resource", &v[i].needs),
			.nneeds = (int)v[i].needs.n,
		};
	p->resource_of = arena_array(r->a, int, nodes->n);
	for (size_t i = 0; i < nodes->n; i++)
		p->resource_of[i] = index_of(r, r->resources, "resource",
					     ((const struct stored_node *)nodes->v)[i].resource);
}

/* Plans of earlier versions have no bounds. */
static void fill_bounds(struct policy *policy, int64_t count)
{
	if (!policy->min)
		policy->min = count;
	if (!policy->max)
		policy->max = count;
}

bool plan_from_doc(const struct doc *doc, struct arena *a, struct plan *ret, struct problems *ps)
{
	size_t before = ps->n + ps->more;
	struct stored_plan sp;
	struct plan p = {0};
	CLEANUP(restore_release)
	struct restore r = {
		.a = a,
		.ps = ps,
		.p = &p,
		.roles = map_new(),
		.nodes = map_new(),
		.resources = map_new(),
	};

	if (!schema_load(schema_of_plan(a), doc, &sp, a, ps))
		return false;
	struct job *job = arena_new_of(a, struct job);
	*job = sp.job;
	if (!job->strategy)
		job->strategy = "";
	if (job->roles.n == 0)
		fill_bounds(&job->policy, job->count);
	for (size_t i = 0; i < job->roles.n; i++)
		fill_bounds(&job_role(job, i)->policy, job_role(job, i)->count);
	p.job = job;
	p.iface = sp.iface;
	p.prices_as_of = sp.prices_as_of;
	p.crew.launch = (enum crew_launch)sp.launch;
	p.boots = sp.boots;
	p.agentless = sp.agentless;
	p.crew.one_host = sp.one_host;
	p.hands_over = sp.hands_over;
	p.carries = sp.carries;
	p.strategy = strategy_named(sp.strategy);
	if (!p.strategy)
		problems_add(ps, a, (struct doc_pos){0}, "stored plan: there is no strategy '%s'",
			     sp.strategy);
	restore_roles(&r, &sp.roles);
	restore_nodes(&r, &sp.nodes);
	restore_resources(&r, &sp.resources, &sp.nodes);
	if (!p.crew.n && plan_has_nodes(&p))
		problems_add(ps, a, (struct doc_pos){0}, "stored plan: it has no nodes");
	if (ps->n + ps->more != before)
		return false;
	*ret = p;
	return true;
}
