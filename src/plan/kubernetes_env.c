/*
 * kubernetes_env - the environment of a Job's pods that run without an agent.
 *
 * They know each other by the names that the Service gives them, and their index from the Job: with these
 * the environment of the strategy is written.
 */
#include <string.h>

#include "base/arena.h"
#include "fmt/doc.h"
#include "plan/internal.h"
#include "plan/kubernetes.h"
#include "spec/secret.h"

#define INDEX "REGATTA_INDEX"
#define INDEX_FIELD "metadata.annotations['batch.kubernetes.io/job-completion-index']"
#define MAX_SAMPLES 3

/* Some nodes of a role, with their environments: the first two and the last show how a value depends on
 * the index. */
struct samples {
	int index[MAX_SAMPLES];
	struct env_list env[MAX_SAMPLES];
	int n;
};

static void add_sample(struct samples *s, const struct plan *p, const char *run, int rank,
		       struct arena *a)
{
	s->index[s->n] = p->crew.members[rank].index;
	plan_env(p, run, rank, a, &s->env[s->n++]);
}

static struct samples sample(const struct plan *p, const char *run, int role, struct arena *a)
{
	struct samples s = {0};
	int last = -1;

	for (int rank = 0; rank < p->crew.n; rank++) {
		if (p->crew.members[rank].role != role)
			continue;
		if (p->crew.members[rank].index < MAX_SAMPLES - 1)
			add_sample(&s, p, run, rank, a);
		else
			last = rank;
	}
	if (last >= 0)
		add_sample(&s, p, run, last, a);
	return s;
}

static const char *value_of(const struct env_list *env, const char *name)
{
	for (size_t i = 0; i < env->n; i++)
		if (strcmp(env->v[i].name, name) == 0)
			return env->v[i].value;
	return "";
}

/* The value of a variable in terms of the index; NULL: it depends on something else, or is not known
 * before the start. */
static const char *general(const struct samples *s, const char *name, struct arena *a)
{
	const char *first = value_of(&s->env[0], name);
	bool same = true;
	size_t prefix = 0;

	if (!*first || strchr(first, '<') || strstr(first, "$("))
		return NULL;
	for (int i = 1; i < s->n; i++)
		same = same && strcmp(value_of(&s->env[i], name), first) == 0;
	if (same)
		return first;
	const char *second = value_of(&s->env[1], name);

	while (first[prefix] && first[prefix] == second[prefix])
		prefix++;
	if (first[prefix] != '0')
		return NULL;
	const char *rest = first + prefix + 1;

	for (int i = 0; i < s->n; i++)
		if (strcmp(value_of(&s->env[i], name),
			   arena_printf(a, "%.*s%d%s", (int)prefix, first, s->index[i], rest)) != 0)
			return NULL;
	return arena_printf(a, "%.*s$(" INDEX ")%s", (int)prefix, first, rest);
}

static struct doc *main_env(const struct kube_render *r, int role, const struct doc *job)
{
	const char *name = kube_main_name(r->t, r->p->crew.roles[role].spec);
	const struct doc *spec = doc_table(doc_table(doc_table(job, "spec"), "template"), "spec");
	const struct doc *list = doc_array(spec, "containers");

	for (size_t i = 0; list && i < list->array.n; i++) {
		struct doc *c = list->array.v[i];

		if (!str_is(doc_str(c, "name", STR("")), name))
			continue;
		if (!doc_array(c, "env"))
			doc_set(r->a, c, STR("env"), doc_new(r->a, DOC_ARRAY));
		return (struct doc *)(uintptr_t)doc_array(c, "env");
	}
	return NULL;
}

static bool has_variable(const struct doc *env, const char *name)
{
	for (size_t i = 0; i < env->array.n; i++)
		if (str_is(doc_str(env->array.v[i], "name", STR("")), name))
			return true;
	return false;
}

static struct doc *variable(const struct kube_render *r, struct doc *list, const char *name)
{
	struct doc *d = doc_new(r->a, DOC_TABLE);

	doc_set(r->a, d, STR("name"), doc_new_str(r->a, str_from(name)));
	doc_append(r->a, list, d);
	return d;
}

/* The index comes first: only variables before it may be referred to. */
static void add_index(const struct kube_render *r, struct doc *list)
{
	struct doc *field = doc_new(r->a, DOC_TABLE), *from = doc_new(r->a, DOC_TABLE);

	doc_set(r->a, field, STR("fieldPath"), doc_new_str(r->a, STR(INDEX_FIELD)));
	doc_set(r->a, from, STR("fieldRef"), field);
	doc_set(r->a, variable(r, list, INDEX), STR("valueFrom"), from);
}

/* The plan with the names of its pods as addresses.  run NULL: that of a run which no plan knows. */
static struct plan name_pods(const struct plan *p, const char *run, struct arena *a)
{
	struct plan named = *p;

	named.iface = "";
	named.addresses = arena_array(a, const char *, (size_t)p->crew.n);
	for (int i = 0; i < p->crew.n; i++) {
		const struct member *m = &p->crew.members[i];
		const char *role = p->crew.roles[m->role].name;

		named.addresses[i] =
			run ? arena_printf(a, "%s-%s-%d.%s", run, role, m->index, run)
			    : arena_printf(a, KUBE_NAME_OPEN "-%s" KUBE_NAME_CLOSE "-%d." KUBE_NAME,
					   role, m->index);
	}
	return named;
}

void kube_add_env(const struct kube_render *r, int role, const char *run, const struct doc *job)
{
	const struct plan named = name_pods(r->p, run, r->a);
	struct samples s = sample(&named, run ? run : KUBE_NAME, role, r->a);
	struct doc *own = main_env(r, role, job), *all = doc_new(r->a, DOC_ARRAY);

	if (!own || s.n == 0)
		return;
	add_index(r, all);
	for (size_t i = 0; i < s.env[0].n; i++) {
		const char *name = s.env[0].v[i].name;
		const char *value = general(&s, name, r->a);

		if (value && strcmp(name, INDEX) != 0 && !has_variable(own, name) &&
		    !secret_name(r->p->job, str_from(name)))
			doc_set(r->a, variable(r, all, name), STR("value"),
				doc_new_str(r->a, str_from(value)));
	}
	for (size_t i = 0; i < own->array.n; i++)
		doc_append(r->a, all, own->array.v[i]);
	*own = *all;
}
