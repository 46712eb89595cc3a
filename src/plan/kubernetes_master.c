/*
 * kubernetes_master - the objects of a master that lives in the cluster (docs/adr/0018).
 *
 * Its pod is that of a Job, so that a pod whose node is lost is made anew, and all ends by itself; never two at a
 * time.  It has the program from `agent_image`, or, in the job's image, from ConfigMaps that its shell puts together.
 */
#include <string.h>

#include "base/arena.h"
#include "plan/kubernetes.h"

#define HOME "/var/lib/regatta"
#define SECRETS "/var/run/regatta" /* token, tls.key, url, start: driver/kube/kube_master.c */
#define PROGRAM "/var/run/regatta-program" /* the parts of the program */
#define CLAIM_SIZE "10Gi"
#define FINISHED_TTL_S 86400
#define RESTARTS 6

/* A text of ours, which is right. */
static struct doc *parsed(const struct kube_render *r, const char *json)
{
	struct doc *d = NULL;

	(void)json_parse(str_from(arena_strdup(r->a, json)), r->a, &d, NULL);
	return d;
}

static void put(const struct kube_render *r, struct doc *d, const char *key, struct doc *value)
{
	doc_set(r->a, d, str_from(key), value);
}

static void put_text(const struct kube_render *r, struct doc *d, const char *key, const char *value)
{
	put(r, d, key, doc_new_str(r->a, str_from(value)));
}

static void put_int(const struct kube_render *r, struct doc *d, const char *key, int64_t value)
{
	put(r, d, key, doc_new_int(r->a, value));
}

static struct doc *object(const struct kube_render *r, const char *version, const char *kind)
{
	return kube_object(r, version, kind, KUBE_RUN KUBE_MASTER, KUBE_MASTER_ROLE);
}

/* ---- its account ---- */

struct doc *kube_account_object(const struct kube_render *r)
{
	struct doc *d = object(r, "v1", "ServiceAccount");

	put(r, d, "automountServiceAccountToken", doc_new_bool(r->a, false));
	return d;
}

/* How many runs its master will have, if it carries a suite: each entry has one run there at most. */
static int64_t carried(const struct kube_render *r)
{
	return doc_int(r->facts, "runs", 0);
}

/* Names of what is made for the runs that this master has: the name of the run and `more`. */
static void add_names(const struct kube_render *r, struct doc *names, const char *more)
{
	if (!carried(r))
		doc_append(r->a, names,
			   doc_new_str(r->a, str_from(arena_printf(r->a, KUBE_RUN "%s", more))));
	for (int64_t i = 1; i <= carried(r); i++)
		doc_append(r->a, names,
			   doc_new_str(r->a, str_from(arena_printf(r->a, KUBE_RUN "-%d%s", (int)i,
								   more))));
}

/* Secrets other than those of its runs' roles are out of its reach. */
static struct doc *own_secrets(const struct kube_render *r)
{
	struct doc *rule = parsed(r, "{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],"
				     "\"verbs\":[\"get\",\"patch\",\"delete\"]}");
	struct doc *names = doc_new(r->a, DOC_ARRAY);

	for (int i = 0; i < r->p->crew.nroles; i++)
		add_names(r, names, arena_printf(r->a, "-%s", r->p->crew.roles[i].name));
	put(r, rule, "resourceNames", names);
	return rule;
}

/* Of the operator's kind: the objects of its runs, by name. */
static void add_operator_rules(const struct kube_render *r, struct doc *list)
{
	const char *version, *install;

	(void)kube_operator_kind(r->t, &version, &install);
	struct str rest = str_from(version), group = str_cut(&rest, '/');
	const char *of = arena_printf(r->a, "\"apiGroups\":[\"%.*s\"],\"resources\":[\"%s\"]",
				      STR_ARG(group), kube_operator_resource(r->t));

	doc_append(r->a, list, parsed(r, arena_printf(r->a, "{%s,\"verbs\":[\"create\"]}", of)));
	struct doc *own =
		parsed(r, arena_printf(r->a, "{%s,\"verbs\":[\"get\",\"patch\",\"delete\"]}", of));
	struct doc *names = doc_new(r->a, DOC_ARRAY);

	add_names(r, names, "");
	put(r, own, "resourceNames", names);
	doc_append(r->a, list, own);
}

/* Of Kueue's Workloads, as far as the user has it: nobody can give more than that. */
static void add_queue_rule(const struct kube_render *r, struct doc *list)
{
	struct doc *rule =
		parsed(r, "{\"apiGroups\":[\"kueue.x-k8s.io\"],\"resources\":[\"workloads\"]}");
	const struct doc *verbs = r->facts ? doc_array(r->facts, "workloads") : NULL;

	if (!r->t->queue || !verbs)
		return;
	put(r, rule, "verbs", doc_copy(r->a, verbs));
	doc_append(r->a, list, rule);
}

struct doc *kube_role_object(const struct kube_render *r)
{
	static const struct {
		const char *text;
		bool of_jobs, of_operators; /* whether the run is Jobs, or an operator's object */
	} rules[] = {
		{"{\"apiGroups\":[\"\"],\"resources\":[\"secrets\"],\"verbs\":[\"create\"]}", true},
		{"{\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"],\"resourceNames\":[\"" KUBE_RUN
		 "\"],\"verbs\":[\"get\",\"delete\"]}",
		 true, true},
		{"{\"apiGroups\":[\"\"],\"resources\":[\"services\"],"
		 "\"verbs\":[\"create\",\"get\",\"delete\"]}",
		 true},
		{"{\"apiGroups\":[\"batch\"],\"resources\":[\"jobs\"],"
		 "\"verbs\":[\"create\",\"get\",\"patch\",\"delete\"]}",
		 true},
		{"{\"apiGroups\":[\"batch\"],\"resources\":[\"jobs\"],\"resourceNames\":[\"" KUBE_RUN
			 KUBE_MASTER "\"],\"verbs\":[\"get\",\"patch\"]}",
		 false, true},
		{"{\"apiGroups\":[\"\"],\"resources\":[\"pods\",\"events\"],\"verbs\":[\"list\"]}",
		 true, true},
		{"{\"apiGroups\":[\"\"],\"resources\":[\"pods/log\"],\"verbs\":[\"get\"]}", true,
		 true},
	};
	struct doc *d = object(r, "rbac.authorization.k8s.io/v1", "Role");
	struct doc *list = doc_new(r->a, DOC_ARRAY);
	bool has_operator = r->t->as != KUBE_JOB;

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (has_operator ? rules[i].of_operators : rules[i].of_jobs)
			doc_append(r->a, list, parsed(r, rules[i].text));
	if (has_operator)
		add_operator_rules(r, list);
	else
		doc_append(r->a, list, own_secrets(r));
	add_queue_rule(r, list);
	put(r, d, "rules", list);
	return d;
}

struct doc *kube_binding_object(const struct kube_render *r)
{
	struct doc *d = object(r, "rbac.authorization.k8s.io/v1", "RoleBinding");

	put(r, d, "roleRef",
	    parsed(r, "{\"apiGroup\":\"rbac.authorization.k8s.io\",\"kind\":\"Role\","
		      "\"name\":\"" KUBE_RUN KUBE_MASTER "\"}"));
	put(r, d, "subjects",
	    parsed(r, "[{\"kind\":\"ServiceAccount\",\"name\":\"" KUBE_RUN KUBE_MASTER "\"}]"));
	return d;
}

/* ---- its disk and its program ---- */

static const char *storage_class(const struct kube_render *r)
{
	return doc_str(r->facts, "storage_class", (struct str){0}).p;
}

struct doc *kube_claim_object(const struct kube_render *r)
{
	struct doc *d = object(r, "v1", "PersistentVolumeClaim");
	struct doc *spec = parsed(r, "{\"accessModes\":[\"ReadWriteOnce\"],\"resources\":"
				     "{\"requests\":{\"storage\":\"" CLAIM_SIZE "\"}}}");

	if (!storage_class(r))
		return NULL;
	put_text(r, spec, "storageClassName", storage_class(r));
	put(r, d, "spec", spec);
	return d;
}

static int64_t program_size(const struct kube_render *r)
{
	return doc_int(doc_table(r->facts, "binary"), "size", 0);
}

static const char *program_sum(const struct kube_render *r)
{
	return doc_str(doc_table(r->facts, "binary"), "sha256", STR("<sha256>")).p;
}

struct doc *kube_program_object(const struct kube_render *r)
{
	struct doc *d =
		kube_object(r, "v1", "ConfigMap", KUBE_RUN KUBE_PROGRAM_NAME, KUBE_MASTER_ROLE);
	struct doc *data = doc_new(r->a, DOC_TABLE);

	put_text(r, data, "sha256", program_sum(r));
	put_text(r, data, "size", arena_printf(r->a, "%lld", (long long)program_size(r)));
	put(r, d, "data", data);
	return d;
}

/* All parts, as files of one directory. */
static struct doc *program_volume(const struct kube_render *r)
{
	struct doc *v = parsed(r, "{\"name\":\"regatta-program\"}");
	struct doc *from = doc_new(r->a, DOC_ARRAY), *projected = doc_new(r->a, DOC_TABLE);

	for (int64_t at = 0; at < program_size(r); at += KUBE_PROGRAM_PART) {
		struct doc *map = doc_new(r->a, DOC_TABLE), *one = doc_new(r->a, DOC_TABLE);

		put_text(r, map, "name",
			 arena_printf(r->a, KUBE_RUN KUBE_PROGRAM_NAME "-%02lld",
				      (long long)(at / KUBE_PROGRAM_PART)));
		put(r, one, "configMap", map);
		doc_append(r->a, from, one);
	}
	put(r, projected, "sources", from);
	put(r, v, "projected", projected);
	return v;
}

/* ---- its pod ---- */

static const char *image(const struct kube_render *r)
{
	const struct strategy_role *first = r->p->crew.nroles ? &r->p->crew.roles[0] : NULL;

	return r->t->agent_image ? r->t->agent_image
				 : kube_image(r->p->job, r->t, first ? first->spec : NULL);
}

static struct doc *container(const struct kube_render *r)
{
	struct doc *c = parsed(
		r,
		"{\"name\":\"main\","
		"\"resources\":{\"requests\":{\"cpu\":\"100m\",\"memory\":\"128Mi\"}},"
		"\"env\":[{\"name\":\"REGATTA_HOME\",\"value\":\"" HOME "/home\"},"
		"{\"name\":\"REGATTA_INSTALL\",\"value\":\"" KUBE_INSTALL "\"},"
		"{\"name\":\"REGATTA_OWN_MACHINE\",\"value\":\"" KUBE_RUN KUBE_MASTER "\"},"
		"{\"name\":\"REGATTA_IDENTITY\",\"value\":\"" SECRETS "\"},"
		"{\"name\":\"REGATTA_URL\",\"valueFrom\":{\"secretKeyRef\":{\"name\":\"" KUBE_RUN
			KUBE_MASTER "\",\"key\":\"url\"}}}],"
		"\"volumeMounts\":[{\"name\":\"regatta\",\"mountPath\":\"" HOME "\"},"
		"{\"name\":\"regatta-secrets\",\"mountPath\":\"" SECRETS "\",\"readOnly\":true}]}");
	struct doc *mounts = (struct doc *)(uintptr_t)doc_array(c, "volumeMounts");

	put_text(r, c, "image", image(r));
	if (r->t->agent_image) {
		put(r, c, "command",
		    parsed(r, "[\"/regatta\",\"master\",\"--listen\",\"0.0.0.0:5436\"]"));
		return c;
	}
	put(r, c, "command", parsed(r, "[\"/bin/sh\",\"" SECRETS "/start\"]"));
	doc_append(r->a, mounts,
		   parsed(r, "{\"name\":\"regatta-program\",\"mountPath\":\"" PROGRAM
			     "\",\"readOnly\":true}"));
	return c;
}

static struct doc *volumes(const struct kube_render *r)
{
	struct doc *list = doc_new(r->a, DOC_ARRAY);

	doc_append(r->a, list,
		   parsed(r, storage_class(r) ? "{\"name\":\"regatta\",\"persistentVolumeClaim\":"
						"{\"claimName\":\"" KUBE_RUN KUBE_MASTER "\"}}"
					      : "{\"name\":\"regatta\",\"emptyDir\":{}}"));
	doc_append(r->a, list,
		   parsed(r, "{\"name\":\"regatta-secrets\",\"secret\":{\"secretName\":\"" KUBE_RUN
				     KUBE_MASTER "\"}}"));
	if (!r->t->agent_image)
		doc_append(r->a, list, program_volume(r));
	return list;
}

static struct doc *pod_template(const struct kube_render *r, const struct doc *labels)
{
	struct doc *d = doc_new(r->a, DOC_TABLE), *meta = doc_new(r->a, DOC_TABLE);
	struct doc *spec = doc_new(r->a, DOC_TABLE), *list = doc_new(r->a, DOC_ARRAY);

	put(r, meta, "labels", doc_copy(r->a, labels));
	put(r, d, "metadata", meta);
	put_text(r, spec, "restartPolicy", "OnFailure");
	doc_append(r->a, list, container(r));
	put(r, spec, "containers", list);
	put(r, spec, "volumes", volumes(r));
	kube_add_place(r, spec);
	put_text(r, spec, "serviceAccountName", KUBE_RUN KUBE_MASTER);
	put(r, spec, "automountServiceAccountToken", doc_new_bool(r->a, true));
	put(r, d, "spec", spec);
	return d;
}

struct doc *kube_master_object(const struct kube_render *r)
{
	struct doc *d = object(r, "batch/v1", "Job"), *spec = doc_new(r->a, DOC_TABLE);
	struct doc *meta = (struct doc *)(uintptr_t)doc_table(d, "metadata");
	struct doc *notes = doc_new(r->a, DOC_TABLE);
	int64_t kept_s = r->p->job->output.retention_ms / 1000;

	put_text(r, notes, KUBE_PROGRAM, program_sum(r));
	put_text(r, notes, KUBE_KEPT, arena_printf(r->a, "%lld", (long long)kept_s));
	put(r, meta, "annotations", notes);
	put_int(r, spec, "parallelism", 1);
	put_int(r, spec, "completions", 1);
	put_int(r, spec, "backoffLimit", RESTARTS);
	/* A new pod is made when the old one is certainly gone: two masters never have the run. */
	put_text(r, spec, "podReplacementPolicy", "Failed");
	put_int(r, spec, "activeDeadlineSeconds", plan_lifetime_ms(r->p) / 1000 + kept_s);
	put_int(r, spec, "ttlSecondsAfterFinished", FINISHED_TTL_S);
	put(r, spec, "template", pod_template(r, doc_table(meta, "labels")));
	put(r, d, "spec", spec);
	return d;
}
