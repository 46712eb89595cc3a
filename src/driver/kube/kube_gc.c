#include "driver/kube/kube_gc.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "driver/kube/api/kube.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"

#define WHOLE_MS (15 * 60000)
#define IDLE_MS 120000	     /* without any change, while something is being deleted */
#define IDLE_REFUSED_MS 1000 /* the same, if all that is left was refused */
#define FIRST_NAP_MS 250     /* between two looks; doubled up to */
#define LONGEST_NAP_MS 2000
/* Has the label, with another value than that of 'regatta manifests'. */
#define SELECTOR "labelSelector=regatta%2Finstall%2Cregatta%2Finstall%21%3Dmanifests"

#define RBAC "rbac.authorization.k8s.io/v1"
/* Of everything that a run makes, and of the pods that its Jobs make. */
static const struct kube_gc_kind {
	const char *version, *kind, *list, *delete;
	/* Only of a master in the cluster: whoever may not list them has made none, and they go with their owner. */
	bool of_master;
} kinds[] = {
	{"v1", "ConfigMap", "list ConfigMaps", "delete a ConfigMap"},
	{"batch/v1", "Job", "list Jobs", "delete a Job"},
	{"v1", "Pod", "list pods", "delete a pod"},
	{"v1", "Service", "list Services", "delete a Service"},
	{"v1", "Secret", "list Secrets", "delete a Secret"},
	{"v1", "ServiceAccount", "list ServiceAccounts", "delete a ServiceAccount", true},
	{"v1", "PersistentVolumeClaim", "list volume claims", "delete a volume claim", true},
	{RBAC, "Role", "list Roles", "delete a Role", true},
	{RBAC, "RoleBinding", "list RoleBindings", "delete a RoleBinding", true},
};
#define NKINDS (sizeof(kinds) / sizeof(kinds[0]))

struct item {
	const struct kube_gc_kind *kind;
	struct leftover is;
	const char *uid, *owner; /* owner "": it has none */
	bool seen;		 /* by the last look */
	bool ending;		 /* its delete is under way */
	bool refused;		 /* its delete was refused, and will be again */
};

/* A collection under way. */
struct kube_collect {
	const struct collect_input *in;
	struct arena *a;
	struct deadline d;
	struct kube_access access;
	struct kube_client *k;
	VEC(struct item *) items;
	struct map *by_uid;
};

/* ---- what is there ---- */

struct kube_page {
	struct kube_collect *g;
	const struct kube_gc_kind *kind;
};

static const char *owner_of(const struct doc *object)
{
	const struct doc *all = doc_array(doc_table(object, "metadata"), "ownerReferences");

	return all && all->array.n > 0 ? doc_str(all->array.v[0], "uid", STR("")).p : "";
}

/* What an object waits for that is being deleted; NULL: nothing that it names. */
static const char *finalizer_of(const struct doc *object, struct arena *a)
{
	const struct doc *all = doc_array(doc_table(object, "metadata"), "finalizers");

	if (!all || all->array.n == 0 || all->array.v[0]->type != DOC_STRING)
		return NULL;
	return arena_printf(a, "it is being deleted, and waits for finalizer %s",
			    all->array.v[0]->s.p);
}

/* The label is compared here once more: nothing depends on how a selector is read. */
static int take(void *ctx, const struct doc *object)
{
	const struct kube_page *p = ctx;
	struct arena *a = p->g->a;
	const char *uid = kube_meta(object, "uid"),
		   *install = kube_label(object, "regatta/install");
	struct item *item = map_get(p->g->by_uid, str_from(uid));

	if (!*install || strcmp(install, "manifests") == 0)
		return 0;
	if (!item) {
		item = arena_new_of(a, struct item);
		*item = (struct item){
			.kind = p->kind,
			.uid = arena_strdup(a, uid),
			.owner = arena_strdup(a, owner_of(object)),
			.is = {.kind = p->kind->kind,
			       .id = arena_strdup(a, kube_meta(object, "name")),
			       .region = arena_strdup(a, kube_meta(object, "namespace")),
			       .install = arena_strdup(a, install),
			       .run = arena_strdup(a, kube_label(object, "regatta/run"))},
		};
		map_put(p->g->by_uid, str_from(item->uid), item);
		*vec_push(&p->g->items) = item;
	}
	item->seen = true;
	item->ending = *kube_meta(object, "deletionTimestamp") != '\0';
	if (item->ending)
		item->is.why = finalizer_of(object, a);
	return 0;
}

static int find(struct kube_collect *g, struct err *err)
{
	const char *namespace = g->in->all_regions ? NULL : g->access.namespace;
	int of_master = 0, denied = 0;

	for (size_t i = 0; i < g->items.n; i++)
		g->items.v[i]->seen = false;
	for (size_t i = 0; i < NKINDS; i++) {
		struct kube_page p = {g, &kinds[i]};
		const char *path = kube_path(g->a, kinds[i].version, namespace,
					     kube_resource_of(kinds[i].kind), NULL);

		struct err why = {0};

		of_master += kinds[i].of_master;
		if (kube_list(g->k, path, SELECTOR, kinds[i].list, &g->d, take, &p, &why) == 0)
			continue;
		*err = why;
		if (!kinds[i].of_master || why.kind != ERR_DENIED)
			return -1;
		denied++;
	}
	/* Who may look at none of these has no masters in the cluster. */
	return denied > 0 && denied < of_master ? -1 : 0;
}

/* ---- what is to become of it ---- */

static enum leftover_state judge(const struct collect_input *in, const struct leftover *l)
{
	if (!in->install || strcmp(l->install, in->install) != 0)
		return LEFTOVER_OTHER;
	if (in->run)
		return leftover_is_of(l, in->run) ? LEFTOVER_FOUND : LEFTOVER_LIVE;
	return in->has_ledger && in->is_live(in->ctx, l->run) ? LEFTOVER_LIVE : LEFTOVER_FOUND;
}

/* What the last look says about the items. */
struct count {
	size_t found, ending, refused;
};

static struct count judge_all(struct kube_collect *g)
{
	struct count n = {0};

	for (size_t i = 0; i < g->items.n; i++) {
		struct item *item = g->items.v[i];

		if (item->seen)
			item->is.state = judge(g->in, &item->is);
		else if (item->is.state == LEFTOVER_FOUND)
			item->is.state = LEFTOVER_REMOVED;
		if (item->is.state == LEFTOVER_REMOVED)
			item->is.why = NULL;
		if (item->is.state != LEFTOVER_FOUND)
			continue;
		n.found++;
		n.ending += item->ending;
		n.refused += item->refused;
	}
	return n;
}

/* ---- deletes ---- */

/* It goes with its owner, if that can be deleted. */
static bool has_owner(const struct kube_collect *g, const struct item *item)
{
	const struct item *owner = map_get(g->by_uid, str_from(item->owner));

	return owner && owner->seen && !owner->refused && owner->is.state == LEFTOVER_FOUND;
}

static void remove_one(struct kube_collect *g, struct item *item)
{
	const struct kube_call c = {
		.method = "DELETE",
		.path = kube_path(g->a, item->kind->version, item->is.region,
				  kube_resource_of(item->kind->kind), item->is.id),
		.what = item->kind->delete,
		.body = kube_delete_body(g->a, item->uid),
		.deadline = &g->d,
	};
	struct err err = {0};
	int status;

	item->refused = false;
	item->is.why = NULL;
	if (kube_ask(g->k, &c, g->a, NULL, &status, &err) == 0 || status == 404 || status == 409)
		return; /* 409: another object has the name now */
	item->is.why = arena_strdup(g->a, err.msg);
	item->refused = status / 100 == 4 && status != 429;
}

static void remove_all(struct kube_collect *g)
{
	for (size_t i = 0; i < g->items.n; i++) {
		struct item *item = g->items.v[i];

		if (item->seen && item->is.state == LEFTOVER_FOUND && !item->ending &&
		    !has_owner(g, item))
			remove_one(g, item);
	}
}

/* ---- the whole ---- */

static bool is_stuck(const struct count *n, int64_t idle_ms)
{
	return idle_ms > (n->refused == n->found ? IDLE_REFUSED_MS : IDLE_MS);
}

/* The runs are asked for after the look, so that a run which has something is known by then. */
static int collect(struct kube_collect *g, struct err *err)
{
	int64_t changed_ms = clock_boot_ms(), nap_ms = FIRST_NAP_MS;
	struct count before = {0};

	for (;;) {
		if (find(g, err) < 0 || (g->in->has_ledger && g->in->refresh(g->in->ctx, err) < 0))
			return -1;
		struct count n = judge_all(g);

		if (g->in->dry_run || n.found == 0)
			return 0;
		if (n.found != before.found || n.ending != before.ending)
			changed_ms = clock_boot_ms();
		before = n;
		if (is_stuck(&n, clock_boot_ms() - changed_ms))
			return 0;
		remove_all(g);
		if (kube_nap(&g->d, nap_ms, "gc", err) < 0)
			return -1;
		nap_ms = nap_ms * 2 < LONGEST_NAP_MS ? nap_ms * 2 : LONGEST_NAP_MS;
	}
}

static int open_cluster(struct kube_collect *g, struct err *err)
{
	const struct kubeconfig_input q = {
		.context = g->in->context, .namespace = g->in->region, .deadline = &g->d};
	int rc = g->in->credentials
			 ? access_from_json(g->in->credentials, &g->d, g->a, &g->access, err)
			 : kubeconfig_read(&q, g->a, &g->access, err);

	return rc == 0 ? kube_open(&g->access, &g->k, err) : rc;
}

int kube_gc(const struct collect_input *in, struct arena *a, struct collection *ret,
	    struct err *err)
{
	struct kube_collect g = {
		.in = in, .a = a, .d = deadline_in(WHOLE_MS, in->stop), .by_uid = map_new()};
	int rc = open_cluster(&g, err);

	if (rc == 0)
		rc = collect(&g, err);
	*ret = (struct collection){.v = arena_array(a, struct leftover, g.items.n + 1)};
	for (size_t i = 0; i < g.items.n; i++)
		ret->v[ret->n++] = g.items.v[i]->is;
	kube_free(g.k);
	vec_release(&g.items);
	map_free(g.by_uid);
	return rc;
}
