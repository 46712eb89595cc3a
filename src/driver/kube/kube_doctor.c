#include "driver/kube/kube_doctor.h"

#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/engine_tools.h"
#include "driver/kube/api/kube.h"
#include "driver/kube/kube_resolve.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"

#define WHOLE_MS 60000
#define TEXT_MAX 4096
#define GPU "nvidia.com/gpu"

struct kube_checkup {
	struct checkup *c;
	struct arena *a;
	struct deadline d;
	struct kube_access x;
	struct kube_client *k;
};

static void add(struct kube_checkup *d, const char *name, enum check_state state, const char *what,
		const char *todo)
{
	checkup_add(d->c, name, state, what, todo);
}

/* Something that no run needs could not be looked at. */
static void add_unknown(struct kube_checkup *d, const char *name, const struct err *err)
{
	add(d, name, CHECK_WARNING, err->msg, "nothing, if runs start");
}

/* "a, b, c" */
static void add_word(struct buf *out, const char *word)
{
	buf_printf(out, "%s%s", out->n ? ", " : "", word);
}

/* ---- where, and as whom ---- */

static bool check_context(struct kube_checkup *d)
{
	const struct kubeconfig_input q = {
		.context = d->c->context, .namespace = d->c->region, .deadline = &d->d};
	struct err err = {0};

	if (kubeconfig_read(&q, d->a, &d->x, &err) < 0 || kube_open(&d->x, &d->k, &err) < 0) {
		add(d, "context", CHECK_BAD, err.msg,
		    "set KUBECONFIG, or choose with --kube-context or 'kubectl config use-context'");
		return false;
	}
	add(d, "context", CHECK_FINE,
	    arena_printf(d->a, "%s: %s",
			 *d->x.context ? d->x.context : "service account of this pod", d->x.server),
	    NULL);
	return true;
}

static bool check_version(struct kube_checkup *d)
{
	const char *version = "";
	struct err err = {0};

	if (kube_ask_version(d->k, &d->d, d->a, &version, &err) < 0) {
		add(d, "version", CHECK_BAD, err.msg,
		    err.kind == ERR_DENIED
			    ? "renew the context's credentials, or its cluster's certificate-authority"
		    : err.kind == ERR_INVALID ? "use another cluster"
					      : "check the connection and the context's server");
		return false;
	}
	add(d, "version", CHECK_FINE, version, NULL);
	return true;
}

static bool check_namespace(struct kube_checkup *d)
{
	struct err err = {0};

	if (kube_check_namespace(d->k, &d->x, &d->d, d->a, &err) < 0) {
		add(d, "namespace", err.kind == ERR_NOT_FOUND ? CHECK_BAD : CHECK_WARNING, err.msg,
		    NULL);
		return err.kind != ERR_NOT_FOUND;
	}
	add(d, "namespace", CHECK_FINE, d->x.namespace, NULL);
	return true;
}

/* ---- permissions ---- */

#define RBAC "rbac.authorization.k8s.io"
/* What the drivers ask for, and what gc asks for besides. */
static const struct need {
	const char *group, *resource, *part;
	const char *verbs[4], *gc_verbs[3];
	bool of_master; /* only a run with a master in the cluster needs it */
} needs[] = {
	{"", "configmaps", "", {"create", "get", "delete"}, {"list"}},
	{"", "services", "", {"create", "get", "delete"}, {"list"}},
	{"", "secrets", "", {"create", "get", "patch", "delete"}, {"list"}},
	{"batch", "jobs", "", {"create", "get", "patch", "delete"}, {"list"}},
	{"", "pods", "", {"list"}, {"delete"}},
	{"", "pods", "log", {"get"}, {0}},
	{"", "events", "", {"list"}, {0}},
	{"", "services", "proxy", {"get", "create", "update"}, {0}, true},
	{"", "serviceaccounts", "", {"create", "get", "delete"}, {"list"}, true},
	{"", "persistentvolumeclaims", "", {"create", "get", "delete"}, {"list"}, true},
	{RBAC, "roles", "", {"create", "get", "delete"}, {"list"}, true},
	{RBAC, "rolebindings", "", {"create", "get", "delete"}, {"list"}, true},
};
#define NNEEDS (sizeof(needs) / sizeof(needs[0]))

/* Of a checkup: what is not allowed. */
struct missing {
	struct buf run, master, gc;
};

static int ask_one(struct kube_checkup *d, const struct need *n, const char *verb,
		   struct buf *missing, struct err *err)
{
	const struct kube_right right = {d->x.namespace, n->group, n->resource, n->part, verb};
	bool allowed = false;

	if (kube_may(d->k, &right, &d->d, d->a, &allowed, err) < 0)
		return -1;
	if (!allowed)
		add_word(missing, arena_printf(d->a, "%s %s%s%s", verb, n->resource,
					       *n->part ? "/" : "", n->part));
	return 0;
}

static int ask_all(struct kube_checkup *d, struct missing *m, struct err *err)
{
	for (const struct need *n = needs; n < needs + NNEEDS; n++) {
		for (size_t i = 0; i < 4 && n->verbs[i]; i++)
			if (ask_one(d, n, n->verbs[i], n->of_master ? &m->master : &m->run, err) <
			    0)
				return -1;
		for (size_t i = 0; i < 3 && n->gc_verbs[i]; i++)
			if (ask_one(d, n, n->gc_verbs[i], &m->gc, err) < 0)
				return -1;
	}
	return 0;
}

static void check_permissions(struct kube_checkup *d)
{
	struct missing m = {0};
	struct err err = {0};

	buf_init(&m.run, TEXT_MAX);
	buf_init(&m.master, TEXT_MAX);
	buf_init(&m.gc, TEXT_MAX);
	if (ask_all(d, &m, &err) < 0)
		add_unknown(d, "permissions", &err);
	else if (m.run.n > 0)
		add(d, "permissions", CHECK_BAD, arena_printf(d->a, "missing: %s", m.run.p),
		    "have a Role with these bound to you (docs/kubernetes.md)");
	else if (m.master.n > 0)
		add(d, "permissions", CHECK_WARNING,
		    arena_printf(
			    d->a,
			    "enough with master = \"here\" or a team's; missing for a master in the "
			    "cluster: %s",
			    m.master.p),
		    "have a Role with these bound to you (docs/kubernetes.md)");
	else if (m.gc.n > 0)
		add(d, "permissions", CHECK_WARNING,
		    arena_printf(d->a, "enough for runs; missing for 'regatta gc': %s", m.gc.p),
		    "have a Role with these bound to you (docs/kubernetes.md)");
	else
		add(d, "permissions", CHECK_FINE, "all that runs and gc need", NULL);
	buf_release(&m.run);
	buf_release(&m.master);
	buf_release(&m.gc);
}

/* ---- what the cluster has ---- */

/* What a list has told. */
struct told {
	struct kube_checkup *d;
	struct buf text;
	bool bad;      /* a run cannot start */
	bool is_short; /* something is used up that not every run needs */
	int n;
	int64_t gpus;
};

static int list(struct told *t, const char *path, const char *what, kube_item_fn *fn,
		struct err *err)
{
	buf_init(&t->text, TEXT_MAX);
	return kube_list(t->d->k, path, "", what, &t->d->d, fn, t, err);
}

/* Each run makes one of these at least. */
static bool is_needed(struct str resource)
{
	static const char *const all[] = {
		"pods",		 "count/pods", "configmaps",	 "count/configmaps", "secrets",
		"count/secrets", "services",   "count/services", "count/jobs.batch",
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (str_is(resource, all[i]))
			return true;
	return false;
}

/* A quota of some pods only is none of every run's. */
static bool is_partial(const struct doc *quota)
{
	const struct doc *spec = doc_table(quota, "spec");

	return doc_get(spec, "scopes") || doc_get(spec, "scopeSelector");
}

/* The API server writes both quantities in the same form. */
static int take_quota(void *ctx, const struct doc *quota)
{
	struct told *t = ctx;
	const struct doc *hard = doc_table(doc_table(quota, "status"), "hard");
	const struct doc *used = doc_table(doc_table(quota, "status"), "used");

	for (size_t i = 0; hard && i < hard->table.n; i++) {
		struct str key = hard->table.v[i].key;
		struct str most = doc_str(hard, key.p, STR("?")),
			   now = doc_str(used, key.p, STR("0"));

		add_word(&t->text, arena_printf(t->d->a, "%s: %s of %s %s",
						kube_meta(quota, "name"), now.p, most.p, key.p));
		if (!str_eq(most, now))
			continue;
		if (is_needed(key) && !is_partial(quota))
			t->bad = true;
		else
			t->is_short = true;
	}
	return 0;
}

static void check_quota(struct kube_checkup *d)
{
	struct told t = {.d = d};
	struct err err = {0};

	if (list(&t, kube_path(d->a, "v1", d->x.namespace, "resourcequotas", NULL), "list quotas",
		 take_quota, &err) < 0)
		add_unknown(d, "quota", &err);
	else
		add(d, "quota",
		    t.bad	 ? CHECK_BAD
		    : t.is_short ? CHECK_WARNING
				 : CHECK_FINE,
		    t.text.n ? t.text.p : "none in this namespace",
		    t.bad || t.is_short ? "delete what is not needed, or have the quota raised"
					: NULL);
	buf_release(&t.text);
}

static int take_node(void *ctx, const struct doc *node)
{
	struct told *t = ctx;
	struct str gpus =
		doc_str(doc_table(doc_table(node, "status"), "allocatable"), GPU, STR("0"));
	int64_t n = 0;

	t->n++;
	if (str_to_i64(gpus, &n))
		t->gpus += n;
	return 0;
}

static void check_gpus(struct kube_checkup *d)
{
	struct told t = {.d = d};
	struct err err = {0};

	if (list(&t, kube_path(d->a, "v1", NULL, "nodes", NULL), "list nodes", take_node, &err) < 0)
		add_unknown(d, "gpus", &err);
	else
		add(d, "gpus", CHECK_FINE,
		    t.gpus ? arena_printf(d->a, "%" PRId64 " " GPU " on %d nodes", t.gpus, t.n)
			   : arena_printf(d->a, "no " GPU " on %d nodes", t.n),
		    NULL);
	buf_release(&t.text);
}

static int take_class(void *ctx, const struct doc *class)
{
	struct told *t = ctx;
	struct str is_default = doc_str(doc_table(doc_table(class, "metadata"), "annotations"),
					"storageclass.kubernetes.io/is-default-class", STR(""));

	add_word(&t->text, arena_printf(t->d->a, "%s%s", kube_meta(class, "name"),
					str_is(is_default, "true") ? " (default)" : ""));
	return 0;
}

static void check_storage(struct kube_checkup *d)
{
	struct told t = {.d = d};
	struct err err = {0};

	if (list(&t, kube_path(d->a, "storage.k8s.io/v1", NULL, "storageclasses", NULL),
		 "list storage classes", take_class, &err) < 0)
		add_unknown(d, "storage", &err);
	else
		add(d, "storage", CHECK_FINE, t.text.n ? t.text.p : "no storage class", NULL);
	buf_release(&t.text);
}

/* What operators there are, and what of them the caller may not use. */
struct operators_told {
	struct buf kinds, missing;
};

/* A run with `as` needs these for the operator's object; one with `queue` for Kueue's words about it. */
static int ask_operator(struct kube_checkup *d, const char *version, const char *resource,
			struct buf *missing, struct err *err)
{
	static const char *const all[] = {"create", "get", "patch", "delete", NULL};
	static const char *const of_queue[] = {"list", "patch", NULL};
	const char *const *verbs = strcmp(resource, "workloads") == 0 ? of_queue : all;
	struct str rest = str_from(version);
	const struct need n = {
		.group = arena_str(d->a, str_cut(&rest, '/')).p, .resource = resource, .part = ""};

	for (size_t i = 0; verbs[i]; i++)
		if (ask_one(d, &n, verbs[i], missing, err) < 0)
			return -1;
	return 0;
}

/* The kinds of the API groups whose objects a run or 'regatta manifests' makes, and of Kueue. */
static int add_kinds(struct kube_checkup *d, const char *version, struct operators_told *t,
		     struct err *err)
{
	const struct kube_call c = {
		.method = "GET",
		.path = arena_printf(d->a, "/apis/%s", version),
		.what = "look for operators",
		.deadline = &d->d,
	};
	struct doc *answer = NULL;
	int status;

	if (kube_ask(d->k, &c, d->a, &answer, &status, err) < 0)
		return status == 404 ? 0 : -1;
	const struct doc *all = doc_array(answer, "resources");

	for (size_t i = 0; all && i < all->array.n; i++) {
		const char *kind = doc_str(all->array.v[i], "kind", STR("?")).p;
		const char *resource = kube_resource_of(kind);

		if (strchr(doc_str(all->array.v[i], "name", STR("")).p, '/') ||
		    (t->kinds.n > 0 && strstr(t->kinds.p, kind))) /* in another version */
			continue;
		add_word(&t->kinds, kind);
		if (resource && ask_operator(d, version, resource, &t->missing, err) < 0)
			return -1;
	}
	return 0;
}

static void check_operators(struct kube_checkup *d)
{
	static const char *const versions[] = {"kubeflow.org/v1", "kubeflow.org/v2beta1",
					       "jobset.x-k8s.io/v1alpha2",
					       "kueue.x-k8s.io/v1beta1"};
	struct operators_told t = {0};
	struct err err = {0};

	buf_init(&t.kinds, TEXT_MAX);
	buf_init(&t.missing, TEXT_MAX);
	for (size_t i = 0; err.kind == ERR_NONE && i < sizeof(versions) / sizeof(versions[0]); i++)
		if (add_kinds(d, versions[i], &t, &err) == 0)
			err = (struct err){0}; /* a group that is not there is none */
	if (err.kind != ERR_NONE)
		add_unknown(d, "operators", &err);
	else if (t.missing.n > 0)
		add(d, "operators", CHECK_WARNING,
		    arena_printf(d->a, "%s; missing for runs with these: %s", t.kinds.p,
				 t.missing.p),
		    "have a Role with these bound to you (docs/kubernetes.md)");
	else
		add(d, "operators", CHECK_FINE, t.kinds.n ? t.kinds.p : "none", NULL);
	buf_release(&t.kinds);
	buf_release(&t.missing);
}

static void check_all(struct kube_checkup *d)
{
	if (!check_context(d) || !check_version(d) || !check_namespace(d))
		return;
	check_permissions(d);
	check_quota(d);
	check_gpus(d);
	check_storage(d);
	check_operators(d);
}

void kube_doctor(struct checkup *c)
{
	struct kube_checkup d = {.c = c, .a = c->a, .d = deadline_in(WHOLE_MS, c->stop)};

	check_all(&d);
	kube_free(d.k);
}
