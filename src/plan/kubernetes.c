/*
 * kubernetes - the engine of Kubernetes: the nodes of a role are the pods of one indexed Job.
 *
 * Facts (driver/kube/kube_resolve.c): server, namespace, version; binary: {sha256, size}.  Without them
 * the plan has the same objects, without a namespace.
 *
 *   kube.root      the ConfigMap that owns everything: deleting it deletes all
 *   kube.service   the headless Service of the pods
 *   kube.job       the Job of a role; its driver makes a Secret of the same name with it
 *   kube.operator_job   with `as`, instead of the last two: the object of an operator, with all nodes
 *
 * and with master = "auto" those of a master in the cluster (kubernetes_master.c), which has the run after the
 * client made it: kube.account, kube.role, kube.binding, kube.claim, kube.program, kube.master.  Then the facts have
 * workloads: what its account may do with Kueue's; at: "client" before the run is handed over, adopted: [{name, id,
 * age_ms}] there; storage_class, if the cluster has one by default.
 *
 * A run that carries a suite (plan.carries) has in its facts runs: how many the suite has.  Theirs have carried: they
 * have the root of the carrier, which owns what they make, and nothing else of it.
 */
#include "plan/kubernetes.h"

#include <string.h>

#include "base/arena.h"
#include "fmt/doc.h"
#include "plan/internal.h"

/* The API server answers from what it has stored: one look is enough. */
#define LATE_MS 30000
#define BEFORE_MASTER 5 /* kinds that the master needs besides the root, at most */

const struct kube_table *kube_table_of(const struct job *job, struct arena *a)
{
	return engine_table(&engine_kubernetes, job, a);
}

const char *kube_image(const struct job *job, const struct kube_table *t, const struct role *role)
{
	return t->image ? t->image : job_image(job, role);
}

static bool has_images(const struct job *job, const struct kube_table *t)
{
	bool all = job->roles.n > 0 || kube_image(job, t, NULL);

	for (size_t i = 0; i < job->roles.n; i++)
		all = all && kube_image(job, t, job_role(job, i));
	return all;
}

static void check_roles(const struct job *job, struct arena *a, struct problems *ps)
{
	for (size_t i = 0; i < job->roles.n; i++)
		if (strcmp(job_role(job, i)->name, KUBE_MASTER_ROLE) == 0)
			problems_add(ps, a, job_role(job, i)->pos,
				     "role '" KUBE_MASTER_ROLE
				     "': engine kubernetes uses this name for itself");
}

static bool check(const struct job *job, struct arena *a, struct problems *ps)
{
	size_t before = ps->n + ps->more;
	const struct kube_table *t = kube_table_of(job, a);

	plan_check_own_machines(job, "kubernetes", a, ps);
	kube_check_table(t, a, ps);
	kube_check_operator(job, t, a, ps);
	check_roles(job, a, ps);
	if (!has_images(job, t))
		problems_add(
			ps, a, t->pos.line ? t->pos : job->engine_pos,
			"engine kubernetes needs a container image: set image in [kubernetes], in the job "
			"or in every role");
	return ps->n + ps->more == before;
}

/* Of what is made for a run besides its roles; a run of a suite finds those of its carrier there already. */
static const char *const common_names[] = {"root",  "account", "role",	 "binding",
					   "claim", "program", "master", "service"};

static bool is_taken(const struct plan *p, const char *name)
{
	for (size_t i = 0; i < sizeof(common_names) / sizeof(common_names[0]); i++)
		if (strcmp(common_names[i], name) == 0)
			return true;
	for (int i = 0; i < p->nresources; i++)
		if (strcmp(p->resources[i].name, name) == 0)
			return true;
	return false;
}

/* Stored plans and what another master has made name a resource by its name alone.  A role may be called like one of
 * those that every run has, as the master of a PyTorchJob is. */
static const char *own_name(const struct plan *p, const char *role, struct arena *a)
{
	const char *name = role;

	while (is_taken(p, name))
		name = arena_printf(a, "job-%s", name);
	return name;
}

static int add(struct plan *p, const char *kind, const char *name, struct doc *spec,
	       struct arena *a)
{
	struct plan_resource *r = &p->resources[p->nresources];

	*r = (struct plan_resource){
		.kind = kind,
		.name = name,
		.node = -1,
		.late_ms = LATE_MS,
		.spec = doc_json_text(a, spec),
		.needs = arena_array(a, int, 1 + BEFORE_MASTER),
	};
	return p->nresources++;
}

static void add_need(struct plan *p, int resource, int needed)
{
	struct plan_resource *r = &p->resources[resource];

	r->needs[r->nneeds++] = needed;
}

static void add_jobs(const struct kube_render *r, struct plan *p, int root, int service)
{
	for (int i = 0; i < p->crew.nroles; i++) {
		struct doc *job = kube_job_object(r, i);

		if (p->agentless)
			kube_add_env(r, i, NULL, job);
		int at = add(p, "kube.job", own_name(p, p->crew.roles[i].name, r->a), job, r->a);

		p->resources[at].carries_many = true;
		p->resources[at].expires = true;
		add_need(p, at, root);
		add_need(p, at, service);
		for (int rank = 0; rank < p->crew.n; rank++)
			if (p->crew.members[rank].role == i)
				p->resource_of[rank] = at;
	}
}

/* The master in the cluster, and what only it needs. */
static void add_master(const struct kube_render *r, struct plan *p, int root)
{
	static const struct {
		const char *kind, *name;
		struct doc *(*object)(const struct kube_render *r);
		bool with_image; /* also with agent_image */
	} of[] = {
		{"kube.account", "account", kube_account_object, true},
		{"kube.role", "role", kube_role_object, true},
		{"kube.binding", "binding", kube_binding_object, true},
		{"kube.claim", "claim", kube_claim_object, true},
		{"kube.program", "program", kube_program_object, false},
	};
	int needed[BEFORE_MASTER], n = 0;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct doc *spec = of[i].with_image || !r->t->agent_image ? of[i].object(r) : NULL;

		if (!spec)
			continue;
		needed[n] = add(p, of[i].kind, of[i].name, spec, r->a);
		add_need(p, needed[n], root);
		/* Whoever is no administrator may bind only a Role that the cluster can look at. */
		for (int k = 0; strcmp(of[i].name, "binding") == 0 && k < n; k++)
			add_need(p, needed[n], needed[k]);
		n++;
	}
	int master = add(p, "kube.master", "master", kube_master_object(r), r->a);

	p->resources[master].master = true;
	p->resources[master].expires = true;
	add_need(p, master, root);
	for (int i = 0; i < n; i++)
		add_need(p, master, needed[i]);
}

static void add_operator(const struct kube_render *r, struct plan *p, int root)
{
	int at = add(p, "kube.operator_job", "job", kube_operator_object(r), r->a);

	p->resources[at].carries_many = true;
	p->resources[at].expires = r->t->as != KUBE_JOBSET; /* whose Jobs cannot be changed */
	add_need(p, at, root);
	for (int rank = 0; rank < p->crew.n; rank++)
		p->resource_of[rank] = at;
}

static void add_nodes(const struct kube_render *r, struct plan *p, int root)
{
	if (r->t->as != KUBE_JOB) {
		add_operator(r, p, root);
		return;
	}
	int service = add(p, "kube.service", "service", kube_service_object(r), r->a);

	add_need(p, service, root);
	add_jobs(r, p, root, service);
}

static void plan(const struct doc *facts, struct arena *a, struct plan *p)
{
	const struct kube_render r = {p, kube_table_of(p->job, a), facts, a};

	p->boots = true;
	p->agentless = !kube_has_agent(r.t);
	p->addresses = arena_array(a, const char *, (size_t)p->crew.n);
	p->resource_of = arena_array(a, int, (size_t)p->crew.n);
	p->resources =
		arena_array(a, struct plan_resource, (size_t)p->crew.nroles + 3 + BEFORE_MASTER);
	int root = add(p, "kube.root", "root", kube_root_object(&r), a);

	if (plan_master_is_apart(p) && !doc_bool(facts, "carried", false))
		add_master(&r, p, root);
	if (plan_settle(p, facts))
		add_nodes(&r, p, root);
	plan_adopt(p, facts);
}

/* What the resolver must know of a job. */
static struct doc *options(const struct job *job, struct arena *a)
{
	const struct kube_table *t = kube_table_of(job, a);
	struct doc *d = schema_to_doc(kube_field.sub, t, a);
	const char *needs = kube_has_agent(t) ? NULL : kube_needs_agent(job, t, a);

	doc_set(a, d, STR("with_agent"), doc_new_bool(a, kube_has_agent(t)));
	const char *version, *install, *kind = kube_operator_kind(t, &version, &install);

	doc_set(a, d, STR("kind"), doc_new_str(a, str_from(kind)));
	doc_set(a, d, STR("version"), doc_new_str(a, str_from(version)));
	doc_set(a, d, STR("install"), doc_new_str(a, str_from(install)));
	if (needs)
		doc_set(a, d, STR("needs_agent"), doc_new_str(a, str_from(needs)));
	doc_set(a, d, STR("master"), doc_new_str(a, str_from(job->master)));
	return d;
}

/* What `as` stands for, in a job that names no strategy. */
static void imply(struct job *job, struct arena *a)
{
	const char *name = kube_strategy(kube_table_of(job, a));

	if (!name)
		return;
	job->strategy = name;
	if (job->roles.n > 0 || strcmp(name, "paddle") != 0)
		return;
	/* The operator starts the command on every node, as it is. */
	struct role *node = arena_new_of(a, struct role);

	*node = job_worker(job);
	node->name = "node";
	job->roles = (struct table_list){node, 1};
}

const struct engine engine_kubernetes = {
	.name = "kubernetes",
	.help = "pods of a Kubernetes cluster, one node each",
	.schema = &kube_field,
	.moves_nodes = true,
	.contains = true,
	.options = options,
	.check = check,
	.plan = plan,
	.imply = imply,
	.manifests = kube_manifests,
	.keeps_results = true,
};
