/* kubernetes_objects - the objects of the Kubernetes API that the nodes of a job are. */
#include <string.h>

#include "base/arena.h"
#include "plan/kubernetes.h"
#include "spec/secret.h"

#define HOME "/var/lib/regatta"	   /* an empty directory of the pod's own */
#define SECRETS "/var/run/regatta" /* enrol.json, start: written by driver/kube/kube_job.c */
#define FINISHED_TTL_S 86400	   /* a Job that nobody deletes goes a day after its end */
#define GRACE_S 10		   /* of a pod's end, besides the job's own grace */
/* Pods that are made anew for an index, in a role whose lost nodes are replaced. */
#define REPLACEMENTS 100

static struct doc *find(struct doc *d, struct str key)
{
	for (size_t i = 0; i < d->table.n; i++)
		if (str_eq(d->table.v[i].key, key))
			return d->table.v[i].value;
	return NULL;
}

static void put(const struct kube_render *r, struct doc *d, const char *key, struct doc *value)
{
	doc_set(r->a, d, str_from(key), value);
}

static void put_text(const struct kube_render *r, struct doc *d, const char *key, const char *value)
{
	if (value)
		put(r, d, key, doc_new_str(r->a, str_from(value)));
}

static void put_int(const struct kube_render *r, struct doc *d, const char *key, int64_t value)
{
	put(r, d, key, doc_new_int(r->a, value));
}

static void put_bool(const struct kube_render *r, struct doc *d, const char *key, bool value)
{
	put(r, d, key, doc_new_bool(r->a, value));
}

static struct doc *table(const struct kube_render *r)
{
	return doc_new(r->a, DOC_TABLE);
}

/* A new table at the end of a list. */
static struct doc *item(const struct kube_render *r, struct doc *list)
{
	struct doc *d = table(r);

	doc_append(r->a, list, d);
	return d;
}

/* The value of a key, made if it is not there. */
static struct doc *within(const struct kube_render *r, struct doc *d, const char *key,
			  enum doc_type type)
{
	struct doc *made = doc_new(r->a, type);

	put(r, d, key, made);
	return made;
}

static struct doc *pairs(const struct kube_render *r, const struct env_list *list)
{
	struct doc *d = table(r);

	for (size_t i = 0; i < list->n; i++)
		put_text(r, d, list->v[i].name, list->v[i].value);
	return d;
}

static struct doc *labels(const struct kube_render *r, const char *role)
{
	struct doc *d = pairs(r, &r->t->labels);

	put_text(r, d, KUBE_LABEL_RUN, KUBE_RUN);
	put_text(r, d, KUBE_LABEL_INSTALL, KUBE_INSTALL);
	put_text(r, d, KUBE_LABEL_ROLE, role);
	return d;
}

static const char *namespace_of(const struct kube_render *r)
{
	const char *given = r->t->name_space;

	return doc_str(r->facts, "namespace", str_from(given)).p;
}

/* apiVersion, kind and metadata; role "": the object is of no role. */
struct doc *kube_object(const struct kube_render *r, const char *version, const char *kind,
			const char *name, const char *role)
{
	struct doc *d = table(r);

	put_text(r, d, "apiVersion", version);
	put_text(r, d, "kind", kind);
	struct doc *meta = within(r, d, "metadata", DOC_TABLE);

	put_text(r, meta, "name", name);
	put_text(r, meta, "namespace", namespace_of(r));
	put(r, meta, "labels", labels(r, role));
	return d;
}

struct doc *kube_root_object(const struct kube_render *r)
{
	struct doc *d = kube_object(r, "v1", "ConfigMap", KUBE_RUN, "");

	put_text(r, within(r, d, "data", DOC_TABLE), "job", r->p->job->name);
	return d;
}

struct doc *kube_service_object(const struct kube_render *r)
{
	struct doc *d = kube_object(r, "v1", "Service", KUBE_RUN, "");
	struct doc *spec = within(r, d, "spec", DOC_TABLE);

	put_text(r, spec, "clusterIP", "None");
	/* The nodes speak to each other before the job is ready. */
	put_bool(r, spec, "publishNotReadyAddresses", true);
	put_text(r, within(r, spec, "selector", DOC_TABLE), KUBE_LABEL_RUN, KUBE_RUN);
	return d;
}

/* ---- the pod ---- */

static void add_field_variable(const struct kube_render *r, struct doc *env, const char *name,
			       const char *field)
{
	struct doc *d = item(r, env);

	put_text(r, d, "name", name);
	struct doc *from = within(r, d, "valueFrom", DOC_TABLE);

	put_text(r, within(r, from, "fieldRef", DOC_TABLE), "fieldPath", field);
}

static void add_mount(const struct kube_render *r, struct doc *mounts, const char *name,
		      const char *path, bool read_only)
{
	struct doc *d = item(r, mounts);

	put_text(r, d, "name", name);
	put_text(r, d, "mountPath", path);
	if (read_only)
		put_bool(r, d, "readOnly", true);
}

static struct doc *words(const struct kube_render *r, const char *const *v, size_t n)
{
	struct doc *list = doc_new(r->a, DOC_ARRAY);

	for (size_t i = 0; i < n; i++)
		doc_append(r->a, list, doc_new_str(r->a, str_from(v[i])));
	return list;
}

/* What the agent finds in the pod, and how it is started. */
static void add_agent(const struct kube_render *r, struct doc *container)
{
	static const char *const installed[] = {HOME "/regatta", "node-agent", "--enrol",
						SECRETS "/enrol.json"};
	static const char *const fetched[] = {"/bin/sh", SECRETS "/start"};
	struct doc *env = within(r, container, "env", DOC_ARRAY);
	struct doc *mounts = within(r, container, "volumeMounts", DOC_ARRAY);

	put(r, container, "command",
	    r->t->agent_image ? words(r, installed, 4) : words(r, fetched, 2));
	add_field_variable(r, env, "REGATTA_POD_UID", "metadata.uid");
	add_field_variable(r, env, "REGATTA_POD_IP", "status.podIP");
	add_mount(r, mounts, "regatta", HOME, false);
	add_mount(r, mounts, "regatta-secrets", SECRETS, true);
}

static bool has_variable(const struct env_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].name, name) == 0)
			return true;
	return false;
}

/* In a manifest the value of a secret comes from a Secret that its user makes. */
static void add_variable(const struct kube_render *r, struct doc *env, const struct env_pair *v)
{
	struct doc *d = item(r, env);

	put_text(r, d, "name", v->name);
	if (!r->plain || !secret_name(r->p->job, str_from(v->name))) {
		put_text(r, d, "value", v->value);
		return;
	}
	struct doc *from =
		within(r, within(r, d, "valueFrom", DOC_TABLE), "secretKeyRef", DOC_TABLE);

	put_text(r, from, "name", KUBE_RUN KUBE_SECRETS);
	put_text(r, from, "key", v->name);
}

/* Without an agent: the command and the variables that the files have. */
static void add_command(const struct kube_render *r, const struct strategy_role *role,
			struct doc *container)
{
	const struct env_list lists[] = {r->p->job->env,
					 role->spec ? role->spec->env : (struct env_list){0}};
	struct doc *env = doc_new(r->a, DOC_ARRAY);

	put(r, container, "command", words(r, role->command.v, role->command.n));
	for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++)
		for (size_t i = 0; i < lists[k].n; i++)
			if (k == 1 || !has_variable(&lists[1], lists[0].v[i].name))
				add_variable(r, env, &lists[k].v[i]);
	if (env->array.n)
		put(r, container, "env", env);
}

static const char *bytes(const struct kube_render *r, uint64_t n)
{
	return arena_printf(r->a, "%llu", (unsigned long long)n);
}

/* What a node needs is requested; GPUs, and the memory of the role, are limits. */
static void add_resources(const struct kube_render *r, const struct strategy_role *role,
			  struct doc *container)
{
	const struct resources_spec *needs =
		role->spec && role->spec->resources ? role->spec->resources : r->p->job->resources;
	uint64_t most = role->spec ? role->spec->memory : 0;
	struct doc *requests = table(r), *limits = table(r), *all = table(r);

	if (needs && needs->cpus > 0)
		put_text(r, requests, "cpu",
			 arena_printf(r->a, "%lldm", (long long)(needs->cpus * 1000)));
	if (needs && needs->memory)
		put_text(r, requests, "memory", bytes(r, needs->memory));
	if (needs && needs->gpus)
		put_text(r, limits, "nvidia.com/gpu", bytes(r, (uint64_t)needs->gpus));
	if (most)
		put_text(r, limits, "memory", bytes(r, most));
	if (requests->table.n)
		put(r, all, "requests", requests);
	if (limits->table.n)
		put(r, all, "limits", limits);
	if (all->table.n)
		put(r, container, "resources", all);
}

static const char *volume_name(const struct kube_render *r, size_t i)
{
	return arena_printf(r->a, "volume-%zu", i);
}

static void add_mounts(const struct kube_render *r, struct doc *container)
{
	const struct volume_spec *v = r->p->job->volumes.v;
	struct doc *mounts = find(container, STR("volumeMounts"));

	if (r->p->job->volumes.n && !mounts)
		mounts = within(r, container, "volumeMounts", DOC_ARRAY);
	for (size_t i = 0; i < r->p->job->volumes.n; i++)
		add_mount(r, mounts, volume_name(r, i), v[i].path, v[i].read_only);
}

/* "server:/path", as mount takes it. */
static void put_nfs(const struct kube_render *r, struct doc *volume, const char *text)
{
	struct doc *d = within(r, volume, "nfs", DOC_TABLE);
	struct str path = str_from(text), server = str_cut(&path, ':');

	put(r, d, "server", doc_new_str(r->a, server));
	put(r, d, "path", doc_new_str(r->a, path.p ? path : STR("/")));
}

static void add_volume(const struct kube_render *r, const struct volume_spec *v, struct doc *to)
{
	if (v->pvc)
		put_text(r, within(r, to, "persistentVolumeClaim", DOC_TABLE), "claimName", v->pvc);
	else if (v->nfs || v->efs)
		put_nfs(r, to, v->nfs ? v->nfs : v->efs);
	else if (v->host)
		put_text(r, within(r, to, "hostPath", DOC_TABLE), "path", v->host);
	else if (v->config_map)
		put_text(r, within(r, to, "configMap", DOC_TABLE), "name", v->config_map);
	else if (v->secret)
		put_text(r, within(r, to, "secret", DOC_TABLE), "secretName", v->secret);
	else
		put(r, to, "emptyDir", table(r));
}

static void add_volumes(const struct kube_render *r, struct doc *spec)
{
	const struct volume_spec *v = r->p->job->volumes.v;
	struct doc *list = find(spec, STR("volumes"));

	if (r->p->job->volumes.n && !list)
		list = within(r, spec, "volumes", DOC_ARRAY);
	for (size_t i = 0; i < r->p->job->volumes.n; i++) {
		struct doc *d = item(r, list);

		put_text(r, d, "name", volume_name(r, i));
		add_volume(r, &v[i], d);
	}
}

static void add_container(const struct kube_render *r, const struct strategy_role *role,
			  struct doc *spec)
{
	struct doc *c = item(r, within(r, spec, "containers", DOC_ARRAY));

	put_text(r, c, "name", kube_main_name(r->t, role->spec));
	put_text(r, c, "image", kube_image(r->p->job, r->t, role->spec));
	if (kube_has_agent(r->t))
		add_agent(r, c);
	else
		add_command(r, role, c);
	add_resources(r, role, c);
	add_mounts(r, c);
}

static void add_agent_volumes(const struct kube_render *r, const char *secret, struct doc *spec)
{
	static const char *const copy[] = {"/regatta", "node-agent", "--copy-to", HOME "/regatta"};
	struct doc *volumes = within(r, spec, "volumes", DOC_ARRAY), *v = item(r, volumes);

	put_text(r, v, "name", "regatta");
	put(r, v, "emptyDir", table(r));
	v = item(r, volumes);
	put_text(r, v, "name", "regatta-secrets");
	put_text(r, within(r, v, "secret", DOC_TABLE), "secretName", secret);
	if (!r->t->agent_image)
		return;
	struct doc *c = item(r, within(r, spec, "initContainers", DOC_ARRAY));

	put_text(r, c, "name", "regatta");
	put_text(r, c, "image", r->t->agent_image);
	put(r, c, "command", words(r, copy, 4));
	add_mount(r, within(r, c, "volumeMounts", DOC_ARRAY), "regatta", HOME, false);
}

static void put_str(const struct kube_render *r, struct doc *d, const char *key, struct str value)
{
	if (value.n > 0)
		put(r, d, key, doc_new_str(r->a, value));
}

static void add_tolerations(const struct kube_render *r, struct doc *spec)
{
	if (!r->t->tolerations.n)
		return;
	struct doc *list = within(r, spec, "tolerations", DOC_ARRAY);

	for (size_t i = 0; i < r->t->tolerations.n; i++) {
		struct kube_toleration t = {0};
		struct doc *d = item(r, list);

		kube_read_toleration(r->t->tolerations.v[i], &t);
		put_str(r, d, "key", t.key);
		put_text(r, d, "operator", t.value.p ? "Equal" : "Exists");
		put_str(r, d, "value", t.value);
		put_str(r, d, "effect", t.effect);
	}
}

void kube_add_place(const struct kube_render *r, struct doc *spec)
{
	const struct kube_table *t = r->t;

	if (t->node_selector.n)
		put(r, spec, "nodeSelector", pairs(r, &t->node_selector));
	add_tolerations(r, spec);
	put_text(r, spec, "priorityClassName", t->priority_class);
	put_text(r, spec, "schedulerName", t->scheduler);
	put_text(r, spec, "serviceAccountName", t->service_account);
	put_bool(r, spec, "automountServiceAccountToken", t->service_account != NULL);
	put_bool(r, spec, "enableServiceLinks", false);
	if (!t->image_pull_secrets.n)
		return;
	struct doc *list = within(r, spec, "imagePullSecrets", DOC_ARRAY);

	for (size_t i = 0; i < t->image_pull_secrets.n; i++)
		put_text(r, item(r, list), "name", t->image_pull_secrets.v[i]);
}

struct doc *kube_pod_template(const struct kube_render *r, int index, const char *name)
{
	const struct strategy_role *role = &r->p->crew.roles[index];
	struct doc *d = table(r), *meta = within(r, d, "metadata", DOC_TABLE);
	struct doc *spec = within(r, d, "spec", DOC_TABLE);

	struct doc *notes = pairs(r, &r->t->annotations);

	put(r, meta, "labels", labels(r, role->name));
	if (!kube_has_agent(r->t) && !r->plain) /* whose end is that of the node */
		put_text(r, notes, "kubectl.kubernetes.io/default-container",
			 kube_main_name(r->t, role->spec));
	if (notes->table.n)
		put(r, meta, "annotations", notes);
	put_text(r, spec, "restartPolicy", "Never");
	put_text(r, spec, "subdomain", KUBE_RUN);
	put_int(r, spec, "terminationGracePeriodSeconds",
		r->p->job->timeouts.grace_ms / 1000 + GRACE_S);
	add_container(r, role, spec);
	if (kube_has_agent(r->t))
		add_agent_volumes(r, name, spec);
	add_volumes(r, spec);
	kube_add_place(r, spec);
	if (r->t->pod)
		kube_merge(r->a, d, r->t->pod);
	if (role->spec && role->spec->pod)
		kube_merge(r->a, d, role->spec->pod);
	return d;
}

/* ---- the Job ---- */

static bool replaces(const struct kube_render *r, const struct strategy_role *role)
{
	const struct policy *p = role->spec ? &role->spec->policy : &r->p->job->policy;

	return p->on_lost != LOST_FAIL && kube_has_agent(r->t);
}

struct doc *kube_job_object(const struct kube_render *r, int index)
{
	const struct strategy_role *role = &r->p->crew.roles[index];
	const char *name = arena_printf(r->a, KUBE_RUN "-%s", role->name);
	struct doc *d = kube_object(r, "batch/v1", "Job", name, role->name);
	struct doc *spec = within(r, d, "spec", DOC_TABLE);
	int64_t life_s = (r->plain ? r->p->job->max_runtime_ms : plan_lifetime_ms(r->p)) / 1000;

	if (kube_has_agent(r->t)) {
		put_text(r, within(r, find(d, STR("metadata")), "annotations", DOC_TABLE),
			 KUBE_PROGRAM,
			 doc_str(doc_table(r->facts, "binary"), "sha256", STR("<sha256>")).p);
	}
	put_int(r, spec, "parallelism", role->max);
	put_int(r, spec, "completions", role->max);
	put_text(r, spec, "completionMode", "Indexed");
	/* A pod that ended is not made anew unless its node is to be replaced; the others go on. */
	put_int(r, spec, "backoffLimitPerIndex", replaces(r, role) ? REPLACEMENTS : 0);
	/* Never while the old one may be running on a node that nobody hears. */
	if (replaces(r, role))
		put_text(r, spec, "podReplacementPolicy", "Failed");
	if (life_s)
		put_int(r, spec, "activeDeadlineSeconds", life_s);
	put_int(r, spec, "ttlSecondsAfterFinished", FINISHED_TTL_S);
	if (r->t->queue) {
		struct doc *of =
			(struct doc *)(uintptr_t)doc_table(doc_table(d, "metadata"), "labels");

		put_text(r, of, "kueue.x-k8s.io/queue-name", r->t->queue);
		put_bool(r, spec, "suspend", true);
	}
	put(r, spec, "template", kube_pod_template(r, index, name));
	if (r->t->object)
		kube_merge(r->a, d, r->t->object);
	return d;
}

/* ---- patches ---- */

/* By which an item of a list is known: a volume may be mounted at several paths. */
static struct str name_of(const struct doc *d)
{
	return doc_str(d, "mountPath", doc_str(d, "name", (struct str){0}));
}

static bool has_names(const struct doc *list)
{
	for (size_t i = 0; i < list->array.n; i++)
		if (!name_of(list->array.v[i]).p)
			return false;
	return list->array.n > 0;
}

static void merge_list(struct arena *a, struct doc *into, const struct doc *patch)
{
	for (size_t i = 0; i < patch->array.n; i++) {
		const struct doc *from = patch->array.v[i];
		struct doc *to = NULL;

		for (size_t k = 0; k < into->array.n && !to; k++)
			if (str_eq(name_of(into->array.v[k]), name_of(from)))
				to = into->array.v[k];
		if (to)
			kube_merge(a, to, from);
		else
			doc_append(a, into, doc_copy(a, from));
	}
}

void kube_merge(struct arena *a, struct doc *into, const struct doc *patch)
{
	for (size_t i = 0; i < patch->table.n; i++) {
		const struct doc_entry *e = &patch->table.v[i];
		struct doc *old = find(into, e->key);

		if (old && old->type == DOC_TABLE && e->value->type == DOC_TABLE)
			kube_merge(a, old, e->value);
		else if (old && old->type == DOC_ARRAY && e->value->type == DOC_ARRAY &&
			 has_names(old) && has_names(e->value))
			merge_list(a, old, e->value);
		else
			doc_set(a, into, e->key, doc_copy(a, e->value));
	}
}
