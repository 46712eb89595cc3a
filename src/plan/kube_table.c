/* kube_table - the keys of [kubernetes] in a job file. */
#include "plan/kube_table.h"

#include <string.h>

#include "base/arena.h"

const char *const kube_as_choices[] = {
	[KUBE_JOB] = "job",
	[KUBE_JOBSET] = "jobset",
	[KUBE_PYTORCHJOB] = "pytorchjob",
	[KUBE_TFJOB] = "tfjob",
	[KUBE_MPIJOB] = "mpijob",
	[KUBE_MXJOB] = "mxjob",
	[KUBE_PADDLEJOB] = "paddlejob",
	[KUBE_XGBOOSTJOB] = "xgboostjob",
	NULL,
};

#define MEMBER(m) .offset = offsetof(struct kube_table, m)

static const struct field fields[] = {
	{
		.name = "context",
		.type = FIELD_STR,
		MEMBER(context),
		.help = "Context of the kubeconfig. Without it: --kube-context, or the current one.",
		.example = "context = \"staging\"",
	},
	{
		.name = "namespace",
		.type = FIELD_STR,
		MEMBER(name_space),
		.help = "Namespace of everything that a run makes. Without it: --namespace, or that of the context.",
		.example = "namespace = \"training\"",
	},
	{
		.name = "service_account",
		.type = FIELD_STR,
		MEMBER(service_account),
		.help = "Service account of the nodes' pods. Without it: the namespace's default.",
		.example = "service_account = \"reads-my-bucket\"",
	},
	{
		.name = "image",
		.type = FIELD_STR,
		MEMBER(image),
		.help = "Container image of all nodes on Kubernetes. Without it: the job's or the role's image.",
		.example = "image = \"myrepo/ctr:1\"",
	},
	{
		.name = "agent_image",
		.type = FIELD_STR,
		MEMBER(agent_image),
		.help = "Image with /regatta, from which pods copy the agent (`make image` builds one). Without it "
			"the pod fetches the agent from the master with the curl, wget or python3 of its image.",
		.example = "agent_image = \"myrepo/regatta:1\"",
	},
	{
		.name = "node_selector",
		.type = FIELD_ENV,
		MEMBER(node_selector),
		.help = "Labels that the cluster's nodes must have.",
		.example =
			"node_selector = { \"cloud.google.com/gke-accelerator\" = \"nvidia-l4\" }",
	},
	{
		.name = "tolerations",
		.type = FIELD_STRS,
		MEMBER(tolerations),
		.pos_offset = offsetof(struct kube_table, tolerations_pos),
		.help = "Taints of nodes that pods accept, as kubectl writes them: key=value:Effect, key:Effect or key.",
		.example = "tolerations = [\"nvidia.com/gpu:NoSchedule\"]",
	},
	{
		.name = "annotations",
		.type = FIELD_ENV,
		MEMBER(annotations),
		.help = "Annotations of the pods.",
		.example = "annotations = { team = \"ads\" }",
	},
	{
		.name = "labels",
		.type = FIELD_ENV,
		MEMBER(labels),
		.help = "Labels of the pods, beside Regatta's own.",
		.example = "labels = { team = \"ads\" }",
	},
	{
		.name = "priority_class",
		.type = FIELD_STR,
		MEMBER(priority_class),
		.help = "Priority class of the pods.",
		.example = "priority_class = \"batch-low\"",
	},
	{
		.name = "queue",
		.type = FIELD_STR,
		MEMBER(queue),
		.help = "Local queue of Kueue that the run waits in.",
		.example = "queue = \"team-a\"",
	},
	{
		.name = "scheduler",
		.type = FIELD_STR,
		MEMBER(scheduler),
		.help = "Name of the scheduler of the pods. Without it: the cluster's default.",
		.example = "scheduler = \"volcano\"",
	},
	{
		.name = "image_pull_secrets",
		.type = FIELD_STRS,
		MEMBER(image_pull_secrets),
		.help = "Secrets of the namespace with the logins for the images' registries.",
		.example = "image_pull_secrets = [\"regcred\"]",
	},
	{
		.name = "pod",
		.type = FIELD_DOC,
		MEMBER(pod),
		.pos_offset = offsetof(struct kube_table, pod_pos),
		.help = "What the pods have besides, as in a manifest: metadata and spec, merged into the pod "
			"template. Lists of things with names (containers, volumes, env) are merged by name, other "
			"lists are replaced.",
		.example = "pod = { spec = { hostNetwork = true } }",
	},
	{
		.name = "object",
		.type = FIELD_DOC,
		MEMBER(object),
		.help = "What the object that `as` names has besides, as in its manifest: metadata and spec, merged "
			"into it like `pod`. With as = \"job\" into the Job of each role.",
		.example = "object = { spec = { podFailurePolicy = { rules = [] } } }",
	},
	{
		.name = "as",
		.type = FIELD_CHOICE,
		MEMBER(as),
		.pos_offset = offsetof(struct kube_table, as_pos),
		.fallback = "job",
		.choices = kube_as_choices,
		.help = "The kind of object that the nodes are. job: a Job for each role, started together by "
			"Regatta's agent. The others are objects of Kubeflow's operators or JobSet, which must be "
			"installed; they imply the strategy when the file names none.",
		.example = "as = \"pytorchjob\"",
	},
	{
		.name = "agent",
		.type = FIELD_BOOL,
		MEMBER(agent),
		.set_offset = offsetof(struct kube_table, agent_set),
		.help = "Does Regatta's agent run in the pods? Without it they start their own command by themselves, "
			"logs and exit codes come from the cluster, and there are no inputs, collected files, retries, "
			"barriers and exec. Default: true with as = \"job\", otherwise false.",
		.example = "agent = false",
	},
	{.name = NULL},
};

static const struct schema kube_schema = {
	.name = "kubernetes",
	.size = sizeof(struct kube_table),
	.pos_offset = offsetof(struct kube_table, pos),
	.fields = fields,
};

const struct field kube_field = {
	.name = "kubernetes",
	.type = FIELD_BOX,
	.sub = &kube_schema,
	.help = "Cluster, namespace and pods of engine kubernetes.",
	.example = "[kubernetes]\nnamespace = \"training\"",
};

bool kube_has_agent(const struct kube_table *t)
{
	return t->agent_set ? t->agent : t->as == KUBE_JOB;
}

const char *kube_strategy(const struct kube_table *t)
{
	static const char *const of[] = {
		[KUBE_PYTORCHJOB] = "torch", [KUBE_TFJOB] = "tf",	  [KUBE_MPIJOB] = "mpi",
		[KUBE_MXJOB] = "mxnet",	     [KUBE_PADDLEJOB] = "paddle", [KUBE_XGBOOSTJOB] = NULL,
	};

	return of[t->as];
}

bool kube_read_toleration(const char *text, struct kube_toleration *ret)
{
	static const char *const effects[] = {"NoSchedule", "PreferNoSchedule", "NoExecute"};
	struct str rest = str_from(text), head = str_cut(&rest, ':');
	struct kube_toleration t = {.effect = rest};
	bool known = !rest.p;

	t.key = str_cut(&head, '=');
	t.value = head;
	for (size_t i = 0; i < sizeof(effects) / sizeof(effects[0]); i++)
		known = known || str_is(rest, effects[i]);
	if (!known || (t.key.n == 0 && t.value.p))
		return false;
	*ret = t;
	return true;
}

void kube_check_table(const struct kube_table *t, struct arena *a, struct problems *ps)
{
	struct kube_toleration unused;

	for (size_t i = 0; i < t->tolerations.n; i++)
		if (!kube_read_toleration(t->tolerations.v[i], &unused))
			problems_add(
				ps, a, t->tolerations_pos,
				"kubernetes.tolerations: '%s': write key=value:Effect, key:Effect or "
				"key; effects are NoSchedule, PreferNoSchedule and NoExecute",
				t->tolerations.v[i]);
}
