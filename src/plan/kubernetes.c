/*
 * kubernetes - the engine of Kubernetes: the nodes of a role are the pods of one indexed Job.
 *
 * Facts (driver/kube/kube_resolve.c): server, namespace, version; binary: {sha256, size}.  Without them
 * the plan has the same objects, without a namespace.
 *
 *   kube.root      the ConfigMap that owns everything: deleting it deletes all
 *   kube.service   the headless Service of the pods
 *   kube.job       the Job of a role; its driver makes a Secret of the same name with it
 */
#include "plan/kubernetes.h"

#include <string.h>

#include "base/arena.h"
#include "fmt/doc.h"
#include "plan/internal.h"

/* The API server answers from what it has stored: one look is enough. */
#define LATE_MS 30000

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

static bool check(const struct job *job, struct arena *a, struct problems *ps)
{
	size_t before = ps->n + ps->more;
	const struct kube_table *t = kube_table_of(job, a);

	plan_check_own_machines(job, "kubernetes", a, ps);
	kube_check_table(t, a, ps);
	kube_check_operator(job, t, a, ps);
	if (!has_images(job, t))
		problems_add(
			ps, a, t->pos.line ? t->pos : job->engine_pos,
			"engine kubernetes needs a container image: set image in [kubernetes], in the job "
			"or in every role");
	return ps->n + ps->more == before;
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
		.needs = arena_array(a, int, 2),
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
		int at = add(p, "kube.job", p->crew.roles[i].name, job, r->a);

		p->resources[at].carries_many = true;
		p->resources[at].expires = true;
		add_need(p, at, root);
		add_need(p, at, service);
		for (int rank = 0; rank < p->crew.n; rank++)
			if (p->crew.members[rank].role == i)
				p->resource_of[rank] = at;
	}
}

static void plan(const struct doc *facts, struct arena *a, struct plan *p)
{
	const struct kube_render r = {p, kube_table_of(p->job, a), facts, a};

	p->boots = true;
	p->agentless = !kube_has_agent(r.t);
	p->addresses = arena_array(a, const char *, (size_t)p->crew.n);
	p->resource_of = arena_array(a, int, (size_t)p->crew.n);
	p->resources = arena_array(a, struct plan_resource, (size_t)p->crew.nroles + 2);
	int root = add(p, "kube.root", "root", kube_root_object(&r), a);
	int service = add(p, "kube.service", "service", kube_service_object(&r), a);

	add_need(p, service, root);
	add_jobs(&r, p, root, service);
}

/* What the resolver must know of a job. */
static struct doc *options(const struct job *job, struct arena *a)
{
	const struct kube_table *t = kube_table_of(job, a);
	struct doc *d = schema_to_doc(kube_field.sub, t, a);
	const char *needs = kube_has_agent(t) ? NULL : kube_needs_agent(job, t, a);

	doc_set(a, d, STR("with_agent"), doc_new_bool(a, kube_has_agent(t)));
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
};
