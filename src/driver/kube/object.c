#include "driver/kube/object.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/hex.h"
#include "fmt/doc.h"
#include "net/digest.h"

#define RUN "<run>"
#define INSTALL "<install>"
#define DIGEST_BYTES 4
#define NAME_OPEN '\1'
#define NAME_CLOSE '\2'

static const struct {
	const char *kind, *resource;
} resources[] = {
	{"ConfigMap", "configmaps"},
	{"Job", "jobs"},
	{"JobSet", "jobsets"},
	{"MPIJob", "mpijobs"},
	{"MXJob", "mxjobs"},
	{"PaddleJob", "paddlejobs"},
	{"PersistentVolumeClaim", "persistentvolumeclaims"},
	{"Pod", "pods"},
	{"PyTorchJob", "pytorchjobs"},
	{"Role", "roles"},
	{"RoleBinding", "rolebindings"},
	{"Secret", "secrets"},
	{"Service", "services"},
	{"ServiceAccount", "serviceaccounts"},
	{"TFJob", "tfjobs"},
	{"Workload", "workloads"},
	{"XGBoostJob", "xgboostjobs"},
};

const char *kube_resource_of(const char *kind)
{
	for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
		if (strcmp(resources[i].kind, kind) == 0)
			return resources[i].resource;
	return NULL;
}

static struct str shortened(struct arena *a, const char *text)
{
	uint8_t digest[SHA256_BYTES];
	char hex[2 * DIGEST_BYTES + 1];

	if (strlen(text) <= KUBE_NAME_MAX)
		return str_from(text);
	sha256_of(text, strlen(text), digest);
	hex_encode(digest, DIGEST_BYTES, hex);
	return str_from(
		arena_printf(a, "%.*s-%s", KUBE_NAME_MAX - 1 - 2 * DIGEST_BYTES, text, hex));
}

/* Names within a text, such as an address (plan/kubernetes.h, KUBE_NAME_OPEN). */
static void fill_names(struct doc *d, const char *run, struct arena *a)
{
	struct str rest = d->s;
	const char *made = "";

	if (rest.n == 0 || !memchr(rest.p, NAME_OPEN, rest.n))
		return;
	while (rest.n > 0) {
		struct str before = str_cut(&rest, NAME_OPEN);
		bool named = rest.p != NULL;
		struct str name = named ? str_cut(&rest, NAME_CLOSE) : STR("");

		made = arena_printf(
			a, "%s%.*s%.*s", made, STR_ARG(before),
			STR_ARG(named ? shortened(a, arena_printf(a, "%s%.*s", run, STR_ARG(name)))
				      : STR("")));
		if (!rest.p)
			break;
	}
	d->s = str_from(made);
}

static void fill_text(struct doc *d, const char *mark, const char *value, struct arena *a)
{
	struct str rest = d->s;

	if (!str_starts(rest, str_from(mark)))
		return;
	d->s = shortened(a, arena_printf(a, "%s%s", value, rest.p + strlen(mark)));
}

void kube_object_fill(struct doc *d, const char *run, const char *install, struct arena *a)
{
	switch (d->type) {
	case DOC_STRING:
		fill_text(d, RUN, run, a);
		fill_text(d, INSTALL, install, a);
		fill_names(d, run, a);
		break;
	case DOC_ARRAY:
		for (size_t i = 0; i < d->array.n; i++)
			kube_object_fill(d->array.v[i], run, install, a);
		break;
	case DOC_TABLE:
		for (size_t i = 0; i < d->table.n; i++)
			kube_object_fill(d->table.v[i].value, run, install, a);
		break;
	case DOC_NULL:
	case DOC_BOOL:
	case DOC_INT:
	case DOC_FLOAT:
	case DOC_TIME:
		break;
	}
}

static void put(struct arena *a, struct doc *d, const char *key, const char *value)
{
	doc_set(a, d, str_from(key), doc_new_str(a, str_from(value)));
}

void kube_object_own(struct doc *object, const char *root, const char *uid, struct arena *a)
{
	struct doc *list = doc_new(a, DOC_ARRAY), *owner = doc_new(a, DOC_TABLE);

	put(a, owner, "apiVersion", "v1");
	put(a, owner, "kind", "ConfigMap");
	put(a, owner, "name", root);
	put(a, owner, "uid", uid);
	doc_append(a, list, owner);
	for (size_t i = 0; i < object->table.n; i++)
		if (str_is(object->table.v[i].key, "metadata"))
			doc_set(a, object->table.v[i].value, STR("ownerReferences"), list);
}

const char *kube_meta(const struct doc *object, const char *key)
{
	return doc_str(doc_table(object, "metadata"), key, STR("")).p;
}

const char *kube_label(const struct doc *object, const char *key)
{
	return doc_str(doc_table(doc_table(object, "metadata"), "labels"), key, STR("")).p;
}

const char *kube_delete_body(struct arena *a, const char *uid)
{
	return arena_printf(
		a,
		"{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
		"\"propagationPolicy\":\"Foreground\",\"preconditions\":{\"uid\":\"%s\"}}",
		uid);
}
