/*
 * kube - manifests of Kubernetes: a batch/v1 Job, the jobs of Kubeflow's operators, a JobSet.
 *
 *	parallelism, replicas                    count
 *	pytorchReplicaSpecs.Worker, ...          roles.worker, ...
 *	the pod template                         command, env, resources, volumes; the rest is `pod` (kube_pod.c)
 *	activeDeadlineSeconds, backoffLimit      max_runtime, retries
 *	everything else of the object            kubernetes.object
 *
 * A Job is Paddle's when its environment has CONF_PADDLE_ names, or by the annotation regatta/strategy.
 */
#include "dialect/kube.h"

#include <string.h>

#include "base/arena.h"
#include "base/suggest.h"
#include "dialect/internal.h"
#include "fmt/schema.h"

#define MAX_TYPES 6
#define STRATEGY_NOTE "regatta/strategy"

struct kind {
	const char *group, *version, *kind; /* the version that Regatta writes itself */
	const char *as;			    /* NULL: "job" */
	const char *strategy;		    /* NULL: as the manifest says */
	const char *replicas;		    /* the key of its replica types; NULL: it has none */
	const char *container;		    /* the container that its operator looks for */
	const char *types[MAX_TYPES];	    /* of replicas, in the order of ranks */
	const char *others;		    /* other versions that are taken; NULL: none */
};

static const struct kind kinds[] = {
	{"batch", "v1", "Job", NULL, NULL, NULL, NULL, {NULL}, NULL},
	{"jobset.x-k8s.io", "v1alpha2", "JobSet", "jobset", "roles", NULL, NULL, {NULL}, "v1"},
	{"kubeflow.org",
	 "v1",
	 "PyTorchJob",
	 "pytorchjob",
	 "torch",
	 "pytorchReplicaSpecs",
	 "pytorch",
	 {"Master", "Worker"},
	 NULL},
	{"kubeflow.org",
	 "v1",
	 "TFJob",
	 "tfjob",
	 "tf",
	 "tfReplicaSpecs",
	 "tensorflow",
	 {"Chief", "Master", "Worker", "PS", "Evaluator"},
	 NULL},
	{"kubeflow.org",
	 "v2beta1",
	 "MPIJob",
	 "mpijob",
	 "mpi",
	 "mpiReplicaSpecs",
	 NULL,
	 {"Launcher", "Worker"},
	 "v1"},
	{"kubeflow.org",
	 "v1",
	 "MXJob",
	 "mxjob",
	 "mxnet",
	 "mxReplicaSpecs",
	 "mxnet",
	 {"Scheduler", "Server", "Worker"},
	 NULL},
	{"kubeflow.org",
	 "v1",
	 "PaddleJob",
	 "paddlejob",
	 "roles",
	 "paddleReplicaSpecs",
	 "paddle",
	 {"Master", "Worker"},
	 NULL},
	{"kubeflow.org",
	 "v1",
	 "XGBoostJob",
	 "xgboostjob",
	 "roles",
	 "xgbReplicaSpecs",
	 "xgboost",
	 {"Master", "Worker"},
	 NULL},
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))
#define KNOWN_KINDS "Job, JobSet, PyTorchJob, TFJob, MPIJob, MXJob, PaddleJob or XGBoostJob"

/* ---- which documents ---- */

static bool is_object(const struct doc *d)
{
	return doc_str(d, "apiVersion", STR("")).n && doc_str(d, "kind", STR("")).n;
}

static bool is_kube(const struct doc *doc)
{
	if (doc->type == DOC_ARRAY)
		return doc->array.n > 0 && is_object(doc->array.v[0]);
	return is_object(doc);
}

static const struct kind *kind_of(const struct doc *d)
{
	for (size_t i = 0; i < NKINDS; i++)
		if (str_is(doc_str(d, "kind", STR("")), kinds[i].kind))
			return &kinds[i];
	return NULL;
}

/* All objects of the file: a List stands for its items. */
static void flatten(struct kube *x, struct doc *from, struct doc *all)
{
	struct doc *items = from->type == DOC_ARRAY ? from : kube_within(from, "items", DOC_ARRAY);

	if (from->type != DOC_ARRAY && !str_is(doc_str(from, "kind", STR("")), "List")) {
		doc_append(x->a, all, from);
		return;
	}
	for (size_t i = 0; items && i < items->array.n; i++)
		doc_append(x->a, all, items->array.v[i]);
}

/* The one object that is a job; warns of the others. */
static const struct doc *choose(struct kube *x, struct doc *file)
{
	struct doc *all = doc_new(x->a, DOC_ARRAY);
	const struct doc *job = NULL;

	if (file->type == DOC_ARRAY)
		for (size_t i = 0; i < file->array.n; i++)
			flatten(x, file->array.v[i], all);
	else
		flatten(x, file, all);
	for (size_t i = 0; i < all->array.n; i++) {
		const struct doc *d = all->array.v[i];

		if (kind_of(d) && job)
			problems_add(x->ps, x->a, d->pos,
				     "a second job in the file: run each from a file of its own");
		else if (kind_of(d))
			job = d;
	}
	for (size_t i = 0; job && i < all->array.n; i++) {
		const struct doc *d = all->array.v[i];

		if (d && !kind_of(d))
			problems_warn(
				x->ps, x->a, d->pos,
				arena_printf(
					x->a,
					"%s '%s' is not made: `kubectl apply` it before the run",
					doc_str(d, "kind", STR("this")).p,
					doc_str(doc_table(d, "metadata"), "name", STR("")).p));
	}
	if (!job && all->array.n > 0) {
		const struct doc_entry *e = dialect_entry(all->array.v[0], "kind");

		problems_add(x->ps, x->a, e ? e->value->pos : file->pos,
			     "kind '%s' is no job that Regatta runs: it runs a " KNOWN_KINDS,
			     doc_str(all->array.v[0], "kind", STR("")).p);
	}
	return job;
}

static void check_version(struct kube *x, const struct kind *k, struct doc *object)
{
	struct doc_entry e = kube_take(object, "apiVersion");
	const char *own = arena_printf(x->a, "%s/%s", k->group, k->version);
	const char *other = k->others ? arena_printf(x->a, "%s/%s", k->group, k->others) : NULL;

	if (str_is(e.value->s, own))
		return;
	if (other && str_is(e.value->s, other))
		kube_put(x, object, "apiVersion", e.value, e.key_pos);
	else
		problems_add(x->ps, x->a, e.value->pos, "apiVersion '%s' of a %s: expected %s%s%s",
			     e.value->s.p, k->kind, own, other ? " or " : "", other ? other : "");
}

/* ---- the object itself ---- */

static void take_name(struct kube *x, const struct kind *k, struct doc *meta)
{
	struct doc_entry given = kube_take(meta, "generateName"), name = kube_take(meta, "name");
	struct doc_entry *e = name.value ? &name : &given;
	const char *text =
		e->value && e->value->type == DOC_STRING ? dialect_job_name(e->value->s, x->a) : "";

	kube_put_text(x, x->to, "name", *text ? text : dialect_job_name(str_from(k->kind), x->a),
		      e->value ? e->value->pos : (struct doc_pos){0});
}

static void take_metadata(struct kube *x, const struct kind *k, struct doc *object)
{
	struct doc *meta = kube_within(object, "metadata", DOC_TABLE);
	struct doc *labels = kube_within(meta, "labels", DOC_TABLE);

	take_name(x, k, meta);
	kube_move(x, meta, "namespace", x->table, "namespace");
	kube_move(x, labels, "kueue.x-k8s.io/queue-name", x->table, "queue");
}

/* A number of seconds as the native duration. */
static void take_deadline(struct kube *x, struct doc *from)
{
	const struct doc *seconds = doc_get(from, "activeDeadlineSeconds");

	if (!seconds || seconds->type != DOC_INT || seconds->i <= 0)
		return;
	kube_put_text(x, x->to, "max_runtime", arena_printf(x->a, "%llds", (long long)seconds->i),
		      seconds->pos);
	kube_take(from, "activeDeadlineSeconds");
}

static struct doc *roles_of(struct kube *x, struct doc_pos pos)
{
	struct doc *roles = kube_within(x->to, "roles", DOC_TABLE);

	if (roles)
		return roles;
	roles = doc_new(x->a, DOC_TABLE);
	roles->pos = pos;
	kube_put(x, x->to, "roles", roles, pos);
	return roles;
}

static struct doc *new_role(struct kube *x, const char *name, struct doc_pos pos)
{
	struct doc *role = doc_new(x->a, DOC_TABLE);

	role->pos = pos;
	kube_put(x, roles_of(x, pos), name, role, pos);
	return role;
}

/* ---- a Job ---- */

static const struct doc *template_of(struct kube *x, struct doc *spec, struct doc_pos pos)
{
	struct doc_entry e = kube_take(spec, "template");

	if (e.value && e.value->type == DOC_TABLE)
		return e.value;
	problems_add(x->ps, x->a, e.value ? e.value->pos : pos, "it needs a pod template");
	return NULL;
}

static bool has_paddle_names(const struct doc *template)
{
	const struct doc *list = doc_array(doc_table(template, "spec"), "containers");

	for (size_t i = 0; list && i < list->array.n; i++) {
		const struct doc *env = doc_array(list->array.v[i], "env");

		for (size_t k = 0; env && k < env->array.n; k++)
			if (str_starts(doc_str(env->array.v[k], "name", STR("")),
				       STR("CONF_PADDLE_")))
				return true;
	}
	return false;
}

/* The strategy of a Job, with its position; value NULL: none is named. */
static struct doc_entry strategy_of(struct kube *x, struct doc *object, const struct doc *template)
{
	struct doc *notes =
		kube_within(kube_within(object, "metadata", DOC_TABLE), "annotations", DOC_TABLE);
	struct doc_entry e = kube_take(notes, STRATEGY_NOTE);
	const struct doc *inner = doc_table(doc_table(template, "metadata"), "annotations");
	const struct doc_entry *within = dialect_entry(inner, STRATEGY_NOTE);

	if (!e.value && within)
		e = *within;
	if (!e.value && has_paddle_names(template)) {
		e.value = doc_new_str(x->a, STR("paddle"));
		e.key_pos = e.value->pos = template->pos;
	}
	return e;
}

/* How many pods must end well; Regatta starts all of them together. */
static void take_count(struct kube *x, struct doc *spec, struct doc *to)
{
	struct doc_entry parallel = kube_take(spec, "parallelism"),
			 all = kube_take(spec, "completions");
	const struct doc_entry *e = all.value ? &all : &parallel;

	kube_take(spec, "completionMode");
	if (e->value)
		kube_put(x, to, "count", e->value, e->key_pos);
	if (all.value && all.value->type == DOC_INT && all.value->i > 1 &&
	    (!parallel.value || parallel.value->type != DOC_INT ||
	     parallel.value->i != all.value->i))
		problems_warn(
			x->ps, x->a, all.key_pos,
			arena_printf(x->a,
				     "all %lld pods start together: parallelism is not looked at",
				     (long long)all.value->i));
}

static void take_job(struct kube *x, struct doc *object, struct doc *spec)
{
	const struct doc *template = template_of(x, spec, object->pos);

	if (!template)
		return;
	struct doc_entry strategy = strategy_of(x, object, template);
	bool paddle = strategy.value && strategy.value->type == DOC_STRING &&
		      str_is(strategy.value->s, "paddle");
	struct kube_role r = {.native = x->to};

	if (strategy.value)
		kube_put(x, x->to, "strategy", strategy.value, strategy.key_pos);
	/* Nodes whose own command starts server and trainer. */
	if (paddle)
		r.native = new_role(x, "node", template->pos);
	take_count(x, spec, r.native);
	kube_move(x, spec, "backoffLimit", r.native, "retries");
	if (kube_take_pod(x, template, NULL, &r))
		kube_share(x, &r, 1);
}

/* ---- replica types of Kubeflow ---- */

/* Its position in the kind's list; -1: there is no such type. */
static int type_index(const struct kind *k, struct str name)
{
	for (int i = 0; i < MAX_TYPES && k->types[i]; i++)
		if (str_is(name, k->types[i]))
			return i;
	return -1;
}

static void refuse_types(struct kube *x, const struct kind *k, const struct doc *replicas)
{
	size_t n = 0;

	while (n < MAX_TYPES && k->types[n])
		n++;
	for (size_t i = 0; i < replicas->table.n; i++) {
		const struct doc_entry *e = &replicas->table.v[i];
		const char *near = suggest_word(k->types, n, e->key);

		if (type_index(k, e->key) < 0)
			problems_add(x->ps, x->a, e->key_pos, "%s: a %s has no '%s'%s%s%s",
				     k->replicas, k->kind, e->key.p, near ? ": did you mean '" : "",
				     near ? near : "", near ? "'?" : "");
	}
}

static const char *role_name(struct kube *x, const struct kind *k, const char *type)
{
	if (str_is(str_from(type), "Master") && str_is(str_from(k->kind), "TFJob"))
		return "chief";
	return dialect_job_name(str_from(type), x->a);
}

/* restartPolicy stands beside the template there. */
static void keep_restarts(struct kube *x, struct doc *replica, struct kube_role *r)
{
	struct doc *spec = kube_within(r->pod, "spec", DOC_TABLE);

	if (spec)
		kube_move(x, replica, "restartPolicy", spec, "restartPolicy");
}

static bool take_replica(struct kube *x, const struct kind *k, const char *type, struct doc_entry e,
			 struct kube_role *ret)
{
	struct doc *replica = e.value;

	if (replica->type != DOC_TABLE) {
		problems_add(x->ps, x->a, replica->pos, "%s.%s is a table, not a %s", k->replicas,
			     type, doc_type_name(replica->type));
		return false;
	}
	if (doc_int(replica, "replicas", 1) == 0)
		return false;
	const struct doc *template = template_of(x, replica, e.key_pos);

	if (!template)
		return false;
	ret->native = new_role(x, role_name(x, k, type), e.key_pos);
	kube_move(x, replica, "replicas", ret->native, "count");
	if (!kube_take_pod(x, template, k->container, ret))
		return false;
	keep_restarts(x, replica, ret);
	return true;
}

/* Processes of each node: of MPI's workers, or of all nodes of PyTorch. */
static void take_processes(struct kube *x, struct doc *spec, struct kube_role *roles, size_t n)
{
	const struct doc *slots = doc_get(spec, "slotsPerWorker"),
			 *each = doc_get(spec, "nprocPerNode");
	const struct doc *given = slots ? slots : each;
	int64_t number;

	if (!given || (given->type == DOC_STRING && !str_to_i64(given->s, &number)) ||
	    (given->type != DOC_STRING && given->type != DOC_INT))
		return;
	if (given->type == DOC_INT)
		number = given->i;
	struct doc_entry e = kube_take(spec, slots ? "slotsPerWorker" : "nprocPerNode");
	const struct doc *launcher = slots ? doc_get(roles_of(x, spec->pos), "launcher") : NULL;

	for (size_t i = 0; i < n && number > 1; i++) {
		struct doc *value = doc_new_int(x->a, number);

		value->pos = e.value->pos;
		if (roles[i].native != launcher)
			kube_put(x, roles[i].native, "processes_per_node", value, e.key_pos);
	}
}

static void take_replicas(struct kube *x, const struct kind *k, struct doc *object,
			  struct doc *spec)
{
	struct doc_entry given = kube_take(spec, k->replicas);
	struct kube_role roles[MAX_TYPES] = {0};
	size_t n = 0;

	if (!given.value || given.value->type != DOC_TABLE) {
		problems_add(x->ps, x->a, given.value ? given.value->pos : object->pos,
			     "a %s needs the table spec.%s", k->kind, k->replicas);
		return;
	}
	take_deadline(x, kube_within(spec, "runPolicy", DOC_TABLE));
	refuse_types(x, k, given.value);
	for (int i = 0; i < MAX_TYPES && k->types[i]; i++) {
		struct doc_entry e = kube_take(given.value, k->types[i]);

		if (e.value && take_replica(x, k, k->types[i], e, &roles[n]))
			n++;
	}
	take_processes(x, spec, roles, n);
	if (n > 0)
		kube_share(x, roles, n);
}

/* ---- JobSet ---- */

/* One of spec.replicatedJobs: what is not in the role stays in it. */
static bool take_replicated(struct kube *x, struct doc *each, struct kube_role *ret)
{
	struct doc *spec = kube_within(kube_within(each, "template", DOC_TABLE), "spec", DOC_TABLE);
	struct str name = doc_str(each, "name", STR(""));
	int64_t replicas = doc_int(each, "replicas", 1);

	if (!spec || !name.n) {
		problems_add(
			x->ps, x->a, each->pos,
			"an item of replicatedJobs needs a name and template.spec, that of a Job");
		return false;
	}
	const struct doc *template = template_of(x, spec, each->pos);

	if (!template)
		return false;
	ret->native = new_role(x, dialect_job_name(name, x->a), each->pos);
	if (replicas == 1) {
		kube_take(each, "replicas");
		take_count(x, spec, ret->native);
	} else {
		struct doc *count = doc_new_int(x->a, replicas * doc_int(spec, "parallelism", 1));

		count->pos = each->pos;
		kube_put(x, ret->native, "count", count, each->pos);
	}
	kube_move(x, spec, "backoffLimit", ret->native, "retries");
	return kube_take_pod(x, template, NULL, ret);
}

static void take_jobset(struct kube *x, struct doc *object, struct doc *spec)
{
	static const char *const rest[] = {"template", "spec"};
	struct doc *list = kube_within(spec, "replicatedJobs", DOC_ARRAY);
	size_t n = 0, left = 0;

	if (!list || list->array.n == 0) {
		problems_add(x->ps, x->a, object->pos,
			     "a JobSet needs the list spec.replicatedJobs");
		return;
	}
	struct kube_role *roles = arena_array(x->a, struct kube_role, list->array.n);

	for (size_t i = 0; i < list->array.n; i++) {
		struct doc *each = list->array.v[i];

		if (take_replicated(x, each, &roles[n]))
			n++;
		if (each->type == DOC_TABLE)
			kube_prune(each, rest, 2);
		if (each->type == DOC_TABLE && each->table.n > 1)
			list->array.v[left++] = each;
	}
	list->array.n = left;
	if (n > 0)
		kube_share(x, roles, n);
}

/* ---- all of it ---- */

static void keep_rest(struct kube *x, struct doc *object)
{
	static const char *const labels[] = {"metadata", "labels"},
				 *const notes[] = {"metadata", "annotations"},
				 *const jobs[] = {"spec", "replicatedJobs"},
				 *const policy[] = {"spec", "runPolicy"};

	kube_take(object, "kind");
	kube_take(object, "status");
	kube_prune(object, labels, 2);
	kube_prune(object, notes, 2);
	kube_prune(object, jobs, 2);
	kube_prune(object, policy, 2);
	if (object->table.n > 0)
		kube_put(x, x->table, "object", object, object->pos);
}

static void take_object(struct kube *x, const struct kind *k, struct doc *object)
{
	struct doc *spec = kube_within(object, "spec", DOC_TABLE);

	check_version(x, k, object);
	take_metadata(x, k, object);
	if (k->as)
		kube_put_text(x, x->table, "as", k->as, object->pos);
	if (k->strategy)
		kube_put_text(x, x->to, "strategy", k->strategy, object->pos);
	if (!spec) {
		problems_add(x->ps, x->a, object->pos, "a %s needs the table spec", k->kind);
		return;
	}
	take_deadline(x, spec);
	if (k->replicas)
		take_replicas(x, k, object, spec);
	else if (k->as)
		take_jobset(x, object, spec);
	else
		take_job(x, object, spec);
	keep_rest(x, object);
}

static struct doc *convert(const struct doc *doc, struct arena *a, struct problems *ps)
{
	struct kube x = {
		.to = doc_new(a, DOC_TABLE), .table = doc_new(a, DOC_TABLE), .a = a, .ps = ps};
	const struct doc *job = choose(&x, doc_copy(a, doc));

	if (!job)
		return NULL;
	x.to->pos = x.table->pos = job->pos;
	take_object(&x, kind_of(job), doc_copy(a, job));
	kube_put_text(&x, x.to, "engine", "kubernetes", x.to->pos);
	if (x.table->table.n > 0)
		kube_put(&x, x.to, "kubernetes", x.table, x.to->pos);
	return x.to;
}

const struct dialect dialect_kube = {
	.name = "manifest of Kubernetes",
	.is = is_kube,
	.convert = convert,
};
