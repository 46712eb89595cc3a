#include "driver/kube/kube_masters.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/vec.h"
#include "driver/driver.h"
#include "driver/engine_tools.h"
#include "driver/kube/api/kube.h"
#include "driver/kube/kube_way.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"

#define WHOLE_MS 60000
#define SELECTOR "labelSelector=regatta%2Frole%3D" KUBE_WAY_ROLE

struct found_pod {
	struct running_master is;
	const char *name; /* of its Job, Service and Secret */
};

/* A search under way. */
struct kube_search {
	struct arena *a;
	struct deadline d;
	struct kube_access x;
	struct kube_client *k;
	const char *place;
	VEC(struct found_pod) found;
};

static const char *owner_name(const struct doc *pod)
{
	const struct doc *all = doc_array(doc_table(pod, "metadata"), "ownerReferences");

	return all && all->array.n > 0 ? doc_str(all->array.v[0], "name", STR("")).p : "";
}

/* While a pod is replaced there may be two of a master: the one that runs counts. */
static struct found_pod *known(struct kube_search *q, const char *name)
{
	for (size_t i = 0; i < q->found.n; i++)
		if (strcmp(q->found.v[i].name, name) == 0)
			return &q->found.v[i];
	return NULL;
}

static int take_pod(void *ctx, const struct doc *pod)
{
	struct kube_search *q = ctx;
	struct str phase = doc_str(doc_table(pod, "status"), "phase", STR("Unknown"));
	const char *name = owner_name(pod), *install = kube_label(pod, "regatta/install");

	if (!*name || !*install || strcmp(install, "manifests") == 0 ||
	    str_is(phase, "Succeeded") || str_is(phase, "Failed"))
		return 0;
	struct found_pod *same = known(q, name);

	if (same) {
		if (str_is(phase, "Running"))
			same->is.state = "Running";
		return 0;
	}
	*vec_push(&q->found) = (struct found_pod){
		.is = {.run = arena_strdup(q->a, kube_label(pod, "regatta/run")),
		       .install = arena_strdup(q->a, install),
		       .region = q->place,
		       .state = arena_str(q->a, phase).p},
		.name = arena_strdup(q->a, name),
	};
	return 0;
}

/* The token that the master's Secret has. */
static int read_token(struct kube_search *q, const char *name, const char **ret, struct err *err)
{
	CLEANUP(buf_release) struct buf token = {0};
	const struct kube_call c = {
		.method = "GET",
		.path = kube_path(q->a, "v1", q->x.namespace, "secrets", name),
		.what = "read the Secret of the master",
		.deadline = &q->d,
	};
	struct doc *secret = NULL;

	if (kube_ask(q->k, &c, q->a, &secret, NULL, err) < 0)
		return -1;
	buf_init(&token, sizeof(((struct driver_master *)0)->token) - 1);
	b64_decode(&token, doc_str(doc_table(secret, "data"), "token", STR("")));
	if (token.n == 0 || token.overflow)
		return err_set(err, ERR_INVALID, "Secret %.60s has no token", name);
	*ret = arena_str(q->a, buf_str(&token)).p;
	return 0;
}

static void reach(struct kube_search *q, struct found_pod *p)
{
	char url[sizeof(((struct driver_master *)0)->url)];
	struct err why = {0};

	if (read_token(q, p->name, &p->is.token, &why) < 0) {
		p->is.why = arena_strdup(q->a, why.msg);
		return;
	}
	kube_way_url(url, sizeof(url), q->x.namespace, p->name, KUBE_WAY_PORT, q->x.context);
	p->is.url = arena_strdup(q->a, url);
}

static int search(struct kube_search *q, const struct masters_input *in, struct err *err)
{
	const struct kubeconfig_input config = {
		.context = in->context, .namespace = in->region, .deadline = &q->d};

	if (kubeconfig_read(&config, q->a, &q->x, err) < 0 || kube_open(&q->x, &q->k, err) < 0)
		return -1;
	q->place = arena_printf(q->a, "%s/%s", q->x.context, q->x.namespace);
	if (kube_list(q->k, kube_path(q->a, "v1", q->x.namespace, "pods", NULL), SELECTOR,
		      "list pods", &q->d, take_pod, q, err) < 0)
		return -1;
	for (size_t i = 0; i < q->found.n; i++)
		reach(q, &q->found.v[i]);
	return 0;
}

int kube_masters(const struct masters_input *in, struct arena *a, struct running_masters *ret,
		 struct err *err)
{
	struct kube_search q = {.a = a, .d = deadline_in(WHOLE_MS, in->stop), .place = ""};
	int rc = search(&q, in, err);

	*ret = (struct running_masters){.v = arena_array(a, struct running_master, q.found.n + 1),
					.region = q.place};
	for (size_t i = 0; i < q.found.n; i++)
		ret->v[ret->n++] = q.found.v[i].is;
	kube_free(q.k);
	vec_release(&q.found);
	return rc;
}
