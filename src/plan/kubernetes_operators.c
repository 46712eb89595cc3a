/*
 * kubernetes_operators - a run as one object of an operator: Kubeflow's jobs and JobSet (`as`).
 *
 * The operator makes the pods, gives them their environment and starts them: they run the role's own
 * command, without Regatta's agent.
 */
#include <string.h>

#include "base/arena.h"
#include "fmt/doc.h"
#include "plan/internal.h"
#include "plan/kubernetes.h"

#define MAX_TYPES 6
#define WORKER "Worker"
#define FINISHED_TTL_S 86400

struct operator
{
	const char *version, *kind,
		*resource;     /* resource: what the API calls objects of the kind */
	const char *replicas;  /* the key of its replica types; NULL: it has none */
	const char *container; /* the container that it looks for; NULL: any */
	/* A job of one role has its first node as this type; NULL: all are Worker. */
	const char *first;
	bool idle_workers; /* its workers run no command of the job: the first type starts them */
	struct {
		const char *type, *role;
	} types[MAX_TYPES];
};

/* What makes its kind known to a cluster. */
static const char *const installed_by[] = {
	[KUBE_JOB] = "",
	[KUBE_JOBSET] = "JobSet (jobset.sigs.k8s.io)",
	[KUBE_PYTORCHJOB] = "Kubeflow's training-operator",
	[KUBE_TFJOB] = "Kubeflow's training-operator",
	[KUBE_MPIJOB] = "Kubeflow's mpi-operator",
	[KUBE_MXJOB] = "Kubeflow's training-operator, 1.8 or earlier",
	[KUBE_PADDLEJOB] = "Kubeflow's training-operator",
	[KUBE_XGBOOSTJOB] = "Kubeflow's training-operator",
};

static const struct operator operators[] = {
	[KUBE_JOB] = {"batch/v1", "Job", "jobs"},
	[KUBE_JOBSET] = {"jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets"},
	[KUBE_PYTORCHJOB] = {"kubeflow.org/v1",
			     "PyTorchJob",
			     "pytorchjobs",
			     "pytorchReplicaSpecs",
			     "pytorch",
			     "Master",
			     false,
			     {{"Master", "master"}, {WORKER, "worker"}}},
	[KUBE_TFJOB] = {"kubeflow.org/v1",
			"TFJob",
			"tfjobs",
			"tfReplicaSpecs",
			"tensorflow",
			NULL,
			false,
			{{"Chief", "chief"},
			 {WORKER, "worker"},
			 {"PS", "ps"},
			 {"Evaluator", "evaluator"}}},
	[KUBE_MPIJOB] = {"kubeflow.org/v2beta1",
			 "MPIJob",
			 "mpijobs",
			 "mpiReplicaSpecs",
			 NULL,
			 "Launcher",
			 true,
			 {{"Launcher", "launcher"}, {WORKER, "worker"}}},
	[KUBE_MXJOB] = {"kubeflow.org/v1",
			"MXJob",
			"mxjobs",
			"mxReplicaSpecs",
			"mxnet",
			NULL,
			false,
			{{"Scheduler", "scheduler"}, {"Server", "server"}, {WORKER, "worker"}}},
	[KUBE_PADDLEJOB] =
		{"kubeflow.org/v1",
		 "PaddleJob",
		 "paddlejobs",
		 "paddleReplicaSpecs",
		 "paddle",
		 NULL,
		 false,
		 {{"Master", "master"}, {WORKER, "worker"}, {WORKER, "node"}, {WORKER, "trainer"}}},
	[KUBE_XGBOOSTJOB] = {"kubeflow.org/v1",
			     "XGBoostJob",
			     "xgboostjobs",
			     "xgbReplicaSpecs",
			     "xgboost",
			     "Master",
			     false,
			     {{"Master", "master"}, {WORKER, "worker"}}},
};

/* ---- names ---- */

static const char *type_of(const struct operator* op, const char *role)
{
	for (size_t i = 0; i < MAX_TYPES && op->types[i].type; i++)
		if (strcmp(op->types[i].role, role) == 0)
			return op->types[i].type;
	return NULL;
}

static const char *role_names(const struct operator* op, struct arena *a)
{
	const char *all = "";

	for (size_t i = 0; i < MAX_TYPES && op->types[i].type; i++)
		all = arena_printf(a, "%s%s%s", all, i ? ", " : "", op->types[i].role);
	return all;
}

void kube_check_operator(const struct job *job, const struct kube_table *t, struct arena *a,
			 struct problems *ps)
{
	const struct operator* op = & operators[t->as];

	for (size_t i = 0; op->replicas && i < job->roles.n; i++) {
		const struct role *r = job_role(job, i);

		if (!type_of(op, r->name))
			problems_add(ps, a, r->pos, "roles.%s: the roles of a %s are %s", r->name,
				     op->kind, role_names(op, a));
	}
	if (t->as != KUBE_JOB && t->agent_set && t->agent)
		problems_add(
			ps, a, t->as_pos,
			"kubernetes.agent: the pods of a %s run without the agent: leave it out",
			op->kind);
}

/* The container that a patch says something about, without being one beside it: it is named as the
 * default one, or has no image of its own. */
static const char *patched_name(const struct doc *pod)
{
	const struct doc *notes = doc_table(doc_table(pod, "metadata"), "annotations");
	const struct doc *list = doc_array(doc_table(pod, "spec"), "containers");
	const char *name =
		doc_str(notes, "kubectl.kubernetes.io/default-container", (struct str){0}).p;

	for (size_t i = 0; !name && list && i < list->array.n; i++)
		if (!doc_get(list->array.v[i], "image"))
			name = doc_str(list->array.v[i], "name", (struct str){0}).p;
	return name;
}

const char *kube_main_name(const struct kube_table *t, const struct role *role)
{
	const char *name = role && role->pod ? patched_name(role->pod) : NULL;

	if (!name && t->pod)
		name = patched_name(t->pod);
	if (!name)
		name = operators[t->as].container;
	return name ? name : "main";
}

/* ---- parts of an object ---- */

static void put(const struct kube_render *r, struct doc *d, const char *key, struct doc *value)
{
	doc_set(r->a, d, str_from(key), value);
}

static struct doc *put_table(const struct kube_render *r, struct doc *d, const char *key)
{
	struct doc *made = doc_new(r->a, DOC_TABLE);

	put(r, d, key, made);
	return made;
}

static void drop(struct doc *d, const char *key)
{
	for (size_t i = 0; i < d->table.n; i++)
		if (str_is(d->table.v[i].key, key)) {
			memmove(&d->table.v[i], &d->table.v[i + 1],
				(d->table.n - i - 1) * sizeof(d->table.v[0]));
			d->table.n--;
			return;
		}
}

static struct doc *part(struct doc *d, const char *key)
{
	return (struct doc *)(uintptr_t)doc_get(d, key);
}

static int64_t deadline_s(const struct kube_render *r)
{
	return r->plain ? r->p->job->max_runtime_ms / 1000 : plan_lifetime_ms(r->p) / 1000;
}

static int64_t retries_of(const struct kube_render *r)
{
	int64_t most = r->p->job->policy.retries;

	for (int i = 0; i < r->p->crew.nroles; i++)
		if (r->p->crew.roles[i].spec && r->p->crew.roles[i].spec->policy.retries > most)
			most = r->p->crew.roles[i].spec->policy.retries;
	return most;
}

/* The pod template of a role; the operator names the pods. */
static struct doc *template_of(const struct kube_render *r, int role)
{
	struct doc *d = kube_pod_template(r, role, KUBE_RUN);

	drop(part(d, "spec"), "subdomain");
	return d;
}

/* Takes the command out of the main container: the image or the operator brings one. */
static void drop_command(const struct kube_render *r, int role, struct doc *template)
{
	const char *name = kube_main_name(r->t, r->p->crew.roles[role].spec);
	struct doc *list = part(part(template, "spec"), "containers");

	for (size_t i = 0; i < list->array.n; i++)
		if (str_is(doc_str(list->array.v[i], "name", STR("")), name))
			drop(list->array.v[i], "command");
}

/* ---- Kubeflow ---- */

/* `from`: the number of its first node in the role. */
static struct doc *add_replica(const struct kube_render *r, struct doc *all, const char *type,
			       int role, int64_t from, int64_t count)
{
	struct doc *d = put_table(r, all, type), *template = template_of(r, role);
	struct doc *policy = part(part(template, "spec"), "restartPolicy");

	if (from > 0 && !r->plain)
		put(r, part(part(template, "metadata"), "labels"), KUBE_LABEL_FROM,
		    doc_new_str(r->a, str_from(arena_printf(r->a, "%d", (int)from))));
	put(r, d, "replicas", doc_new_int(r->a, count));
	put(r, d, "restartPolicy", policy);
	drop(part(template, "spec"), "restartPolicy");
	put(r, d, "template", template);
	return template;
}

/* Does the file itself give the workers a command? */
static bool has_command(const struct kube_render *r, const struct strategy_role *role)
{
	const struct strs *own = role->spec ? &role->spec->command : NULL;

	return own && own->n > 0 && own->v != r->p->job->command.v;
}

static void add_replicas(const struct kube_render *r, const struct operator* op, struct doc *all)
{
	const struct crew *crew = &r->p->crew;
	bool has_first = !op->first;

	for (int i = 0; i < crew->nroles && !has_first; i++) {
		const char *type = type_of(op, crew->roles[i].name);

		has_first = type && strcmp(type, op->first) == 0;
	}
	for (int i = 0; i < crew->nroles; i++) {
		const struct strategy_role *role = &crew->roles[i];
		const char *type = type_of(op, role->name);
		bool split = !has_first && i == 0;
		int64_t count = role->max - (split && !op->idle_workers);

		if (split)
			add_replica(r, all, op->first, i, 0, 1);
		if (count == 0)
			continue;
		struct doc *template =
			add_replica(r, all, type ? type : WORKER, i, role->max - count, count);

		if (op->idle_workers && (split || (type && strcmp(type, WORKER) == 0)) &&
		    (split || !has_command(r, role)))
			drop_command(r, i, template);
	}
}

/* Processes on each node, where one object says it for all. */
static int64_t processes_of(const struct kube_render *r)
{
	int most = 1;

	for (int i = 0; i < r->p->crew.nroles; i++)
		if (r->p->crew.roles[i].ranks > most)
			most = r->p->crew.roles[i].ranks;
	return most;
}

static void add_policy(const struct kube_render *r, struct doc *spec)
{
	struct doc *d = put_table(r, spec, "runPolicy");

	put(r, d, "cleanPodPolicy", doc_new_str(r->a, STR("None")));
	put(r, d, "backoffLimit", doc_new_int(r->a, retries_of(r)));
	put(r, d, "ttlSecondsAfterFinished", doc_new_int(r->a, FINISHED_TTL_S));
	if (deadline_s(r))
		put(r, d, "activeDeadlineSeconds", doc_new_int(r->a, deadline_s(r)));
	if (r->t->queue)
		put(r, d, "suspend", doc_new_bool(r->a, true));
	/* Only a scheduler that knows gangs looks at it. */
	if (r->t->scheduler)
		put(r, put_table(r, d, "schedulingPolicy"), "minAvailable",
		    doc_new_int(r->a, r->p->crew.n));
}

static void fill_kubeflow(const struct kube_render *r, const struct operator* op, struct doc *spec)
{
	int64_t processes = processes_of(r);

	add_policy(r, spec);
	if (r->t->as == KUBE_MPIJOB) {
		put(r, spec, "slotsPerWorker", doc_new_int(r->a, processes));
		/* A launcher that finds no sshd fails, and one that has failed ends the run. */
		put(r, spec, "launcherCreationPolicy",
		    doc_new_str(r->a, STR("WaitForWorkersReady")));
	} else if (r->t->as == KUBE_PYTORCHJOB && processes > 1)
		put(r, spec, "nprocPerNode",
		    doc_new_str(r->a, str_from(arena_printf(r->a, "%lld", (long long)processes))));
	else if (r->t->as == KUBE_MXJOB)
		put(r, spec, "jobMode", doc_new_str(r->a, STR("MXTrain")));
	add_replicas(r, op, put_table(r, spec, op->replicas));
}

/* ---- JobSet ---- */

static void add_replicated(const struct kube_render *r, int role, struct doc *list)
{
	const struct strategy_role *from = &r->p->crew.roles[role];
	struct doc *d = doc_new(r->a, DOC_TABLE);

	doc_append(r->a, list, d);
	put(r, d, "name", doc_new_str(r->a, str_from(from->name)));
	put(r, d, "replicas", doc_new_int(r->a, 1));
	struct doc *spec = put_table(r, put_table(r, d, "template"), "spec");

	put(r, spec, "parallelism", doc_new_int(r->a, from->max));
	put(r, spec, "completions", doc_new_int(r->a, from->max));
	put(r, spec, "completionMode", doc_new_str(r->a, STR("Indexed")));
	put(r, spec, "backoffLimit", doc_new_int(r->a, retries_of(r)));
	if (deadline_s(r))
		put(r, spec, "activeDeadlineSeconds", doc_new_int(r->a, deadline_s(r)));
	put(r, spec, "template", template_of(r, role));
}

/* The roles that count decide the end. */
static void add_success(const struct kube_render *r, struct doc *spec)
{
	struct doc *counted = doc_new(r->a, DOC_ARRAY);

	for (int i = 0; i < r->p->crew.nroles; i++)
		if (r->p->crew.roles[i].counted)
			doc_append(r->a, counted,
				   doc_new_str(r->a, str_from(r->p->crew.roles[i].name)));
	if ((int)counted->array.n == r->p->crew.nroles)
		return;
	struct doc *d = put_table(r, spec, "successPolicy");

	put(r, d, "operator", doc_new_str(r->a, STR("All")));
	put(r, d, "targetReplicatedJobs", counted);
}

static void fill_jobset(const struct kube_render *r, struct doc *spec)
{
	struct doc *list = doc_new(r->a, DOC_ARRAY);

	add_success(r, spec);
	put(r, put_table(r, spec, "failurePolicy"), "maxRestarts", doc_new_int(r->a, 0));
	put(r, spec, "ttlSecondsAfterFinished", doc_new_int(r->a, FINISHED_TTL_S));
	if (r->t->queue)
		put(r, spec, "suspend", doc_new_bool(r->a, true));
	for (int i = 0; i < r->p->crew.nroles; i++)
		add_replicated(r, i, list);
	put(r, spec, "replicatedJobs", list);
}

/* Of a run, whatever the file says: pods that have ended are read before they are deleted, and not by the
 * operator. */
static void prepare_run(const struct kube_render *r, struct doc *object)
{
	struct doc *spec = part(object, "spec"), *policy = part(spec, "runPolicy");
	struct doc *notes = part(part(object, "metadata"), "annotations");
	struct doc *ttl = r->t->as == KUBE_JOBSET ? spec : policy;

	if (!notes)
		notes = put_table(r, part(object, "metadata"), "annotations");
	put(r, notes, "regatta/operator", doc_new_str(r->a, str_from(installed_by[r->t->as])));
	put(r, notes, "regatta/nodes",
	    doc_new_str(r->a, str_from(arena_printf(r->a, "%d", r->p->crew.n))));
	if (ttl)
		put(r, ttl, "ttlSecondsAfterFinished", doc_new_int(r->a, FINISHED_TTL_S));
	if (policy)
		put(r, policy, "cleanPodPolicy", doc_new_str(r->a, STR("None")));
}

const char *kube_operator_kind(const struct kube_table *t, const char **ret_version,
			       const char **ret_install)
{
	*ret_version = operators[t->as].version;
	*ret_install = installed_by[t->as];
	return operators[t->as].kind;
}

const char *kube_operator_resource(const struct kube_table *t)
{
	return operators[t->as].resource;
}

struct doc *kube_operator_object(const struct kube_render *r)
{
	const struct operator* op = & operators[r->t->as];
	struct doc *d = kube_object(r, op->version, op->kind, KUBE_RUN, "");
	struct doc *spec = put_table(r, d, "spec");

	if (r->t->queue)
		put(r, part(part(d, "metadata"), "labels"), "kueue.x-k8s.io/queue-name",
		    doc_new_str(r->a, str_from(r->t->queue)));
	if (op->replicas)
		fill_kubeflow(r, op, spec);
	else
		fill_jobset(r, spec);
	if (r->t->object)
		kube_merge(r->a, d, r->t->object);
	if (!r->plain)
		prepare_run(r, d);
	return d;
}
