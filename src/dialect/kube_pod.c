/*
 * kube_pod - a pod template, taken apart.
 *
 * What a job file can say moves to the role: command, env, resources, image, volumes.  All the rest stays
 * in the role's `pod`, which the engine merges into the template it makes: nothing of a manifest is lost.
 */
#include <string.h>

#include "base/arena.h"
#include "dialect/internal.h"
#include "dialect/kube.h"
#include "fmt/schema.h"

#define DEFAULT_CONTAINER "kubectl.kubernetes.io/default-container"

/* ---- the main container ---- */

static bool find_container(struct kube *x, struct kube_role *r, struct doc_pos pos,
			   const char *main_name)
{
	struct doc *list =
		kube_within(kube_within(r->pod, "spec", DOC_TABLE), "containers", DOC_ARRAY);

	for (size_t i = 0; list && i < list->array.n; i++) {
		struct doc *c = list->array.v[i];

		if (c->type != DOC_TABLE) {
			problems_add(x->ps, x->a, c->pos, "a container is a table, not a %s",
				     doc_type_name(c->type));
			return false;
		}
		if (!r->container || (main_name && str_is(doc_str(c, "name", STR("")), main_name)))
			r->container = c;
	}
	if (r->container)
		return true;
	problems_add(x->ps, x->a, pos,
		     "the pod template has no containers: spec.containers needs one");
	return false;
}

/* "bin/bash" is meant from the container's directory, which is not where a node runs its command. */
static void make_absolute(struct kube *x, const struct kube_role *r, struct doc *command)
{
	struct str from = doc_str(r->container, "workingDir", STR("/"));

	if (command->type != DOC_ARRAY || command->array.n == 0 ||
	    command->array.v[0]->type != DOC_STRING)
		return;
	struct doc *program = command->array.v[0];

	if (program->s.p[0] != '/' && memchr(program->s.p, '/', program->s.n))
		program->s = str_from(arena_printf(
			x->a, "%s%s%s", from.p, str_ends(from, STR("/")) ? "" : "/", program->s.p));
}

/* command and args are one command; args alone follow the entry point of the image, and stay. */
static void take_command(struct kube *x, struct kube_role *r)
{
	struct doc_entry command = kube_take(r->container, "command"), args;

	if (!command.value)
		return;
	args = kube_take(r->container, "args");
	if (args.value && args.value->type == DOC_ARRAY && command.value->type == DOC_ARRAY)
		for (size_t i = 0; i < args.value->array.n; i++)
			doc_append(x->a, command.value, args.value->array.v[i]);
	make_absolute(x, r, command.value);
	kube_put(x, r->native, "command", command.value, command.key_pos);
}

/* A name that a job file takes, and a text that Kubernetes does not expand. */
static bool is_plain_variable(const struct doc *d)
{
	struct str name = doc_str(d, "name", STR(""));
	const struct doc *value = doc_get(d, "value");

	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_' &&
		    !(i > 0 && c >= '0' && c <= '9'))
			return false;
	}
	if (name.n == 0 || str_starts(name, STR("REGATTA_")) || d->table.n > 2)
		return false;
	if (!value)
		return d->table.n == 1;
	return value->type != DOC_STRING || !strstr(value->s.p, "$(");
}

static void take_env(struct kube *x, struct kube_role *r)
{
	struct doc *list = kube_within(r->container, "env", DOC_ARRAY);
	const struct doc_entry *key = dialect_entry(r->container, "env");
	struct doc *env = doc_new(x->a, DOC_TABLE);
	size_t left = 0;

	for (size_t i = 0; list && i < list->array.n; i++) {
		struct doc *d = list->array.v[i];

		if (!is_plain_variable(d)) {
			list->array.v[left++] = d;
			continue;
		}
		struct doc_entry value = kube_take(d, "value");
		const char *name = doc_str(d, "name", STR("")).p;

		if (!value.value)
			kube_put_text(x, env, name, "", d->pos);
		else
			kube_put(x, env, name, value.value, d->pos);
	}
	if (!list)
		return;
	list->array.n = left;
	if (env->table.n > 0) {
		env->pos = list->pos;
		kube_put(x, r->native, "env", env, key->key_pos);
	}
}

/* ---- resources ---- */

static struct doc *resources_of(struct kube *x, struct kube_role *r, struct doc_pos pos)
{
	struct doc *d = kube_within(r->native, "resources", DOC_TABLE);

	if (d)
		return d;
	d = doc_new(x->a, DOC_TABLE);
	d->pos = pos;
	kube_put(x, r->native, "resources", d, pos);
	return d;
}

static struct doc *place(struct doc *value, struct doc_pos pos)
{
	value->pos = pos;
	return value;
}

/* Requests are what is kept free, the limit of memory is that of the role; other limits stay. */
static void take_resources(struct kube *x, struct kube_role *r)
{
	struct doc *given = kube_within(r->container, "resources", DOC_TABLE);
	struct doc *requests = kube_within(given, "requests", DOC_TABLE);
	struct doc *limits = kube_within(given, "limits", DOC_TABLE);
	const struct doc *cpu = doc_get(requests, "cpu"), *needed = doc_get(requests, "memory"),
			 *most = doc_get(limits, "memory"),
			 *gpus = doc_get(limits, "nvidia.com/gpu");
	uint64_t bytes;
	double n;

	if (cpu && kube_cpus(cpu, &n)) {
		struct doc_entry e = kube_take(requests, "cpu");

		kube_put(x, resources_of(x, r, e.key_pos), "cpus",
			 place(doc_new_float(x->a, n), cpu->pos), e.key_pos);
	}
	if (needed && kube_bytes(needed, &bytes)) {
		struct doc_entry e = kube_take(requests, "memory");

		kube_put(x, resources_of(x, r, e.key_pos), "memory",
			 place(doc_new_int(x->a, (int64_t)bytes), needed->pos), e.key_pos);
	}
	if (gpus && kube_cpus(gpus, &n) && n == (double)(int64_t)n) {
		struct doc_entry e = kube_take(limits, "nvidia.com/gpu");

		kube_put(x, resources_of(x, r, e.key_pos), "gpus",
			 place(doc_new_int(x->a, (int64_t)n), gpus->pos), e.key_pos);
	}
	/* A job without roles has no limit of memory. */
	if (most && r->native != x->to && kube_bytes(most, &bytes)) {
		struct doc_entry e = kube_take(limits, "memory");

		kube_put(x, r->native, "memory",
			 place(doc_new_int(x->a, (int64_t)bytes), most->pos), e.key_pos);
	}
}

/* ---- volumes ---- */

/* The item of a list with this name, and its index. */
static struct doc *named(struct doc *list, struct str name, size_t *ret_at)
{
	for (size_t i = 0; list && i < list->array.n; i++)
		if (str_eq(doc_str(list->array.v[i], "name", STR("")), name)) {
			*ret_at = i;
			return list->array.v[i];
		}
	return NULL;
}

static int count_mounts(struct doc *spec, struct str name)
{
	static const char *const lists[] = {"containers", "initContainers"};
	int n = 0;

	for (size_t k = 0; k < 2; k++) {
		const struct doc *list = doc_array(spec, lists[k]);

		for (size_t i = 0; list && i < list->array.n; i++) {
			const struct doc *mounts = doc_array(list->array.v[i], "volumeMounts");

			for (size_t m = 0; mounts && m < mounts->array.n; m++)
				n += str_eq(doc_str(mounts->array.v[m], "name", STR("")), name);
		}
	}
	return n;
}

/* A source of which a job file can say everything. */
static bool put_source(struct kube *x, const struct doc *volume, struct doc *to)
{
	static const struct {
		const char *kind, *key, *native;
	} sources[] = {
		{"hostPath", "path", "host"},
		{"persistentVolumeClaim", "claimName", "pvc"},
		{"configMap", "name", "config_map"},
		{"secret", "secretName", "secret"},
	};
	const struct doc *empty = doc_table(volume, "emptyDir"), *nfs = doc_table(volume, "nfs");

	if (volume->table.n != 2)
		return false;
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		const struct doc *from = doc_table(volume, sources[i].kind);
		struct str value = doc_str(from, sources[i].key, STR(""));

		if (!from || from->table.n != 1 || !value.n)
			continue;
		kube_put_text(x, to, sources[i].native, value.p, from->pos);
		return true;
	}
	if (empty && empty->table.n == 0) {
		kube_put(x, to, "empty", place(doc_new_bool(x->a, true), empty->pos), empty->pos);
		return true;
	}
	if (!nfs || nfs->table.n != 2 || !doc_str(nfs, "server", STR("")).n ||
	    !str_starts(doc_str(nfs, "path", STR("")), STR("/")))
		return false;
	kube_put_text(x, to, "nfs",
		      arena_printf(x->a, "%s:%s", doc_str(nfs, "server", STR("")).p,
				   doc_str(nfs, "path", STR("")).p),
		      nfs->pos);
	return true;
}

/* The volume of a mount as one of a job file; NULL: a job file cannot say it. */
static struct doc *volume_of(struct kube *x, struct doc *spec, const struct doc *mount)
{
	const struct doc_entry *path = dialect_entry(mount, "mountPath"),
			       *read_only = dialect_entry(mount, "readOnly");
	struct str name = doc_str(mount, "name", STR(""));
	struct doc *to = doc_new(x->a, DOC_TABLE);
	size_t at, known = 2 + (read_only != NULL);
	const struct doc *volume = named(kube_within(spec, "volumes", DOC_ARRAY), name, &at);

	if (!path || !volume || mount->table.n != known || count_mounts(spec, name) != 1)
		return NULL;
	to->pos = mount->pos;
	kube_put(x, to, "path", doc_copy(x->a, path->value), path->key_pos);
	if (!put_source(x, volume, to))
		return NULL;
	if (read_only)
		kube_put(x, to, "read_only", doc_copy(x->a, read_only->value), read_only->key_pos);
	return to;
}

static void drop(struct doc *list, size_t at)
{
	memmove(&list->array.v[at], &list->array.v[at + 1],
		(list->array.n - at - 1) * sizeof(list->array.v[0]));
	list->array.n--;
}

/* The volumes that a job file can say; with `strip` they leave the pod. */
static struct doc *split_volumes(struct kube *x, struct kube_role *r, bool strip)
{
	struct doc *spec = kube_within(r->pod, "spec", DOC_TABLE);
	struct doc *mounts = kube_within(r->container, "volumeMounts", DOC_ARRAY);
	struct doc *found = doc_new(x->a, DOC_ARRAY);

	for (size_t i = 0; mounts && i < mounts->array.n;) {
		struct doc *mount = mounts->array.v[i], *to = volume_of(x, spec, mount);
		struct doc *volumes = kube_within(spec, "volumes", DOC_ARRAY);
		size_t at;

		if (to)
			doc_append(x->a, found, to);
		if (to && strip && named(volumes, doc_str(mount, "name", STR("")), &at)) {
			drop(volumes, at);
			drop(mounts, i);
		} else {
			i++;
		}
	}
	return found;
}

/* Pods of a manifest may ask the cluster, as Paddle's own scripts do; those of a job file may not. */
static void keep_token(struct kube *x, struct kube_role *r)
{
	static const char key[] = "automountServiceAccountToken";
	struct doc *spec = kube_within(r->pod, "spec", DOC_TABLE);

	if (!doc_get(spec, key))
		kube_put(x, spec, key, place(doc_new_bool(x->a, true), spec->pos), spec->pos);
}

bool kube_take_pod(struct kube *x, const struct doc *template, const char *main_name,
		   struct kube_role *ret)
{
	ret->pod = doc_copy(x->a, template);
	if (!find_container(x, ret, template->pos, main_name))
		return false;
	take_command(x, ret);
	take_env(x, ret);
	take_resources(x, ret);
	ret->image = kube_take(ret->container, "image");
	keep_token(x, ret);
	ret->volumes = split_volumes(x, ret, false);
	return true;
}

/* ---- what the roles share ---- */

static void share_image(struct kube *x, struct kube_role *roles, size_t n)
{
	const struct doc_entry *first = &roles[0].image;
	bool same = first->value && first->value->type == DOC_STRING;

	for (size_t i = 1; i < n && same; i++)
		same = roles[i].image.value && roles[i].image.value->type == DOC_STRING &&
		       str_eq(roles[i].image.value->s, first->value->s);
	if (same)
		kube_put(x, x->table, "image", first->value, first->key_pos);
	for (size_t i = 0; i < n && !same; i++)
		if (roles[i].image.value)
			kube_put(x, roles[i].container, "image", roles[i].image.value,
				 roles[i].image.key_pos);
}

static void share_volumes(struct kube *x, struct kube_role *roles, size_t n)
{
	const char *first = doc_json_text(x->a, roles[0].volumes);
	bool same = roles[0].volumes->array.n > 0;

	for (size_t i = 1; i < n && same; i++)
		same = strcmp(doc_json_text(x->a, roles[i].volumes), first) == 0;
	if (!same)
		return;
	for (size_t i = 0; i < n; i++)
		split_volumes(x, &roles[i], true);
	kube_put(x, x->to, "volumes", roles[0].volumes, roles[0].volumes->array.v[0]->pos);
}

/* A patch whose main container cannot be told by its lack of an image names it. */
static void name_main(struct kube *x, struct kube_role *r)
{
	struct doc *list =
		kube_within(kube_within(r->pod, "spec", DOC_TABLE), "containers", DOC_ARRAY);
	struct doc *meta = kube_within(r->pod, "metadata", DOC_TABLE);

	if (list->array.n == 1 && !doc_get(r->container, "image"))
		return;
	if (!meta) {
		meta = doc_new(x->a, DOC_TABLE);
		kube_put(x, r->pod, "metadata", meta, r->pod->pos);
	}
	struct doc *notes = kube_within(meta, "annotations", DOC_TABLE);

	if (!notes) {
		notes = doc_new(x->a, DOC_TABLE);
		kube_put(x, meta, "annotations", notes, meta->pos);
	}
	if (!doc_get(notes, DEFAULT_CONTAINER))
		kube_put_text(x, notes, DEFAULT_CONTAINER,
			      doc_str(r->container, "name", STR("main")).p, r->container->pos);
}

static void prune_pod(struct kube_role *r)
{
	static const char *const env[] = {"env"}, *const mounts[] = {"volumeMounts"},
				 *const requests[] = {"resources", "requests"},
				 *const limits[] = {"resources", "limits"},
				 *const volumes[] = {"spec", "volumes"};

	kube_prune(r->container, env, 1);
	kube_prune(r->container, mounts, 1);
	kube_prune(r->container, requests, 2);
	kube_prune(r->container, limits, 2);
	kube_prune(r->pod, volumes, 2);
}

void kube_share(struct kube *x, struct kube_role *roles, size_t n)
{
	share_image(x, roles, n);
	share_volumes(x, roles, n);
	for (size_t i = 0; i < n; i++) {
		prune_pod(&roles[i]);
		name_main(x, &roles[i]);
		/* The pods of a job without roles are all alike. */
		kube_put(x, roles[i].native == x->to ? x->table : roles[i].native, "pod",
			 roles[i].pod, roles[i].pod->pos);
	}
}
