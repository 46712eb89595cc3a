/*
 * Engine kubernetes before a run is planned: which cluster and namespace, and as whom.  It runs on the
 * caller's machine; what it finds is stored with the run, the credentials as secrets.
 */
#include "driver/kube/kube_resolve.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/driver.h"
#include "driver/kube/api/kube.h"
#include "driver/own_program.h"
#include "fmt/doc.h"

#define RESOLVE_MS 60000
#define KUEUE "kueue.x-k8s.io"
#define LEAST_MINOR 29 /* of version 1: backoffLimitPerIndex */

static const char *option(const struct resolve_input *in, const char *key)
{
	struct str text = doc_str(in->options, key, (struct str){0});

	return text.n ? text.p : NULL;
}

static int find_access(const struct resolve_input *in, const struct deadline *d, struct arena *a,
		       struct kube_access *ret, struct err *err)
{
	const struct kubeconfig_input q = {
		.context = option(in, "context"),
		.namespace = option(in, "namespace"),
		.deadline = d,
	};

	return kubeconfig_read(&q, a, ret, err);
}

static void put(struct arena *a, struct doc *d, const char *key, const char *value)
{
	doc_set(a, d, str_from(key), doc_new_str(a, str_from(value)));
}

/* The minor version is 34 of {"major":"1","minor":"34+"}. */
int kube_ask_version(struct kube_client *k, const struct deadline *d, struct arena *a,
		     const char **ret, struct err *err)
{
	const struct kube_call c = {
		.method = "GET", .path = "/version", .what = "ask its version", .deadline = d};
	struct doc *version = NULL;

	if (kube_ask(k, &c, a, &version, NULL, err) < 0)
		return -1;
	struct str minor = doc_str(version, "minor", STR(""));
	int64_t n = 0;

	while (minor.n > 0 && (minor.p[minor.n - 1] < '0' || minor.p[minor.n - 1] > '9'))
		minor.n--;
	if (str_to_i64(minor, &n) && n < LEAST_MINOR)
		return err_set(err, ERR_INVALID,
			       "the cluster has Kubernetes 1.%d: 1.%d or later is needed", (int)n,
			       LEAST_MINOR);
	*ret = doc_str(version, "gitVersion", STR("")).p;
	return 0;
}

int kube_check_namespace(struct kube_client *k, const struct kube_access *x,
			 const struct deadline *d, struct arena *a, struct err *err)
{
	const struct kube_call c = {
		.method = "GET",
		.path = arena_printf(a, "/api/v1/namespaces/%s", x->namespace),
		.what = "look for the namespace",
		.deadline = d,
	};
	int status;

	if (kube_ask(k, &c, a, NULL, &status, err) == 0 || status == 403)
		return 0;
	if (status == 404)
		return err_set(
			err, ERR_NOT_FOUND,
			"the cluster has no namespace '%s': 'kubectl create namespace %s', or set "
			"another one",
			x->namespace, x->namespace);
	return -1;
}

int kube_may(struct kube_client *k, const struct kube_right *right, const struct deadline *d,
	     struct arena *a, bool *ret, struct err *err)
{
	const struct kube_call c = {
		.method = "POST",
		.path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
		.what = "ask for permissions",
		.body = arena_printf(
			a,
			"{\"apiVersion\":\"authorization.k8s.io/v1\",\"kind\":\"SelfSubjectAccessReview\","
			"\"spec\":{\"resourceAttributes\":{\"namespace\":\"%s\",\"group\":\"%s\","
			"\"resource\":\"%s\",\"subresource\":\"%s\",\"verb\":\"%s\"}}}",
			right->namespace, right->group, right->resource, right->part, right->verb),
		.deadline = d,
	};
	struct doc *answer = NULL;

	if (kube_ask(k, &c, a, &answer, NULL, err) < 0)
		return -1;
	*ret = doc_bool(doc_table(answer, "status"), "allowed", false);
	return 0;
}

/* A master in the cluster looks at the queue as far as the user may, who cannot give it more. */
static int check_queue(const struct resolve_input *in, struct kube_client *k, const char *namespace,
		       const struct deadline *d, struct arena *a, struct doc *facts,
		       struct err *err)
{
	static const char *const verbs[] = {"list", "patch"};
	const struct kube_call c = {
		.method = "GET", .path = "/apis/" KUEUE, .what = "look for Kueue", .deadline = d};
	struct doc *may = doc_new(a, DOC_ARRAY);
	bool allowed = false;
	int status;

	if (!option(in, "queue"))
		return 0;
	if (kube_ask(k, &c, a, NULL, &status, err) < 0)
		return status != 404
			       ? -1
			       : err_set(err, ERR_NOT_FOUND,
					 "the cluster has no Kueue, in whose queue '%s' the run "
					 "is to wait: install it, or leave out queue",
					 option(in, "queue"));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		const struct kube_right right = {namespace, KUEUE, "workloads", "", verbs[i]};

		if (kube_may(k, &right, d, a, &allowed, err) < 0)
			return -1;
		if (allowed)
			doc_append(a, may, doc_new_str(a, str_from(verbs[i])));
	}
	if (may->array.n)
		doc_set(a, facts, STR("workloads"), may);
	return 0;
}

/* Does the cluster know the operator's kind? */
static int check_kind(const struct resolve_input *in, struct kube_client *k,
		      const struct deadline *d, struct arena *a, struct err *err)
{
	const char *as = option(in, "as"), *kind = option(in, "kind");
	struct doc *all = NULL;
	bool known = false;
	int status;

	if (!as || strcmp(as, "job") == 0 || !kind || !option(in, "version"))
		return 0;
	const struct kube_call c = {
		.method = "GET",
		.path = arena_printf(a, "/apis/%s", option(in, "version")),
		.what = "look for the operator",
		.deadline = d,
	};

	if (kube_ask(k, &c, a, &all, &status, err) < 0 && status != 404)
		return -1;
	const struct doc *list = all ? doc_array(all, "resources") : NULL;

	for (size_t i = 0; list && i < list->array.n; i++)
		known |= str_is(doc_str(list->array.v[i], "kind", STR("")), kind);
	if (known)
		return 0;
	return err_set(
		err, ERR_NOT_FOUND,
		"the cluster has no %s: install %s, or --set kubernetes.as=job runs it as Jobs",
		kind, option(in, "install"));
}

static int check_options(const struct resolve_input *in, struct err *err)
{
	if (option(in, "needs_agent"))
		return err_set(
			err, ERR_INVALID,
			"agent = false in [kubernetes]: without the agent in the pods there is "
			"nothing for %s: leave that out, or set agent = true",
			option(in, "needs_agent"));
	return 0;
}

/* A master in the cluster keeps its state on a disk that outlives its pod, if the cluster makes one by itself.  The
 * storage classes of a cluster may be hidden from who may use one: so a claim is made for a trial. */
static void find_storage(struct kube_client *k, const struct kube_access *x,
			 const struct deadline *d, struct arena *a, struct doc *facts)
{
	const struct kube_call c = {
		.method = "POST",
		.path = arena_printf(
			a, "%s?dryRun=All",
			kube_path(a, "v1", x->namespace, "persistentvolumeclaims", NULL)),
		.what = "try a volume claim",
		.body = "{\"apiVersion\":\"v1\",\"kind\":\"PersistentVolumeClaim\","
			"\"metadata\":{\"generateName\":\"regatta-\"},"
			"\"spec\":{\"accessModes\":[\"ReadWriteOnce\"],"
			"\"resources\":{\"requests\":{\"storage\":\"10Gi\"}}}}",
		.deadline = d,
	};
	struct doc *tried = NULL;
	struct err ignored = {0};

	if (kube_ask(k, &c, a, &tried, NULL, &ignored) < 0)
		return; /* it may not have one: its pod's own directory will do */
	struct str class = doc_str(doc_table(tried, "spec"), "storageClassName", (struct str){0});

	if (class.n > 0)
		put(a, facts, "storage_class", class.p);
}

/* All pods of a run are on nodes of one architecture: the one of node_selector, else that of this program (NULL).
 * Where the image has the agent, or there is none, nobody fetches the program. */
static const char *machine_of(const struct resolve_input *in)
{
	if (option(in, "agent_image") || !doc_bool(in->options, "with_agent", true))
		return NULL;
	struct str arch = doc_str(doc_table(in->options, "node_selector"), "kubernetes.io/arch",
				  (struct str){0});

	return str_is(arch, "amd64") ? "x86_64" : arch.p;
}

static int resolve(const struct resolve_input *in, struct arena *a, struct doc **ret_facts,
		   struct err *err)
{
	CLEANUP(kube_freep) struct kube_client *k = NULL;
	const struct deadline d = deadline_in(RESOLVE_MS, NULL);
	struct doc *facts = doc_new(a, DOC_TABLE);
	const char *version = "";
	struct kube_access x;

	if (check_options(in, err) < 0 || find_access(in, &d, a, &x, err) < 0 ||
	    kube_open(&x, &k, err) < 0 || kube_ask_version(k, &d, a, &version, err) < 0 ||
	    kube_check_namespace(k, &x, &d, a, err) < 0 || check_kind(in, k, &d, a, err) < 0 ||
	    check_queue(in, k, x.namespace, &d, a, facts, err) < 0)
		return -1;
	put(a, facts, "version", version);
	put(a, facts, "server", x.server);
	put(a, facts, "namespace", x.namespace);
	if (strcmp(option(in, "master") ? option(in, "master") : "", "auto") == 0) {
		put(a, facts, "at", "client");
		find_storage(k, &x, &d, a, facts);
	}
	if (own_program_add(facts, machine_of(in), a, err) < 0)
		return err_wrap(err, "node_selector");
	*ret_facts = facts;
	return 0;
}

static int credentials(const struct resolve_input *in, struct arena *a, struct doc **ret,
		       struct err *err)
{
	const struct deadline d = deadline_in(RESOLVE_MS, NULL);
	struct kube_access x;

	if (find_access(in, &d, a, &x, err) < 0)
		return -1;
	*ret = access_to_doc(&x, a);
	return 0;
}

const struct resolver kube_resolver = {
	.engine = "kubernetes",
	.at_client = true,
	.nodes_dial = true,
	.credentials = credentials,
	.resolve = resolve,
};
