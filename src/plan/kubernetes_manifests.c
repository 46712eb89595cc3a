/*
 * kubernetes_manifests - the objects of a job for kubectl apply.
 *
 * There is no master beside them: their pods run the roles' commands without an agent, nothing in them
 * is secret, and nobody moves their deadlines on.
 */
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "fmt/doc.h"
#include "plan/kubernetes.h"

#define INSTALL "manifests" /* the value of the label, which no install has */

/* Texts begin with what the plan could not know. */
static void fill(struct doc *d, const char *run, struct arena *a)
{
	struct str from = STR(KUBE_RUN);

	for (size_t i = 0; d->type == DOC_ARRAY && i < d->array.n; i++)
		fill(d->array.v[i], run, a);
	for (size_t i = 0; d->type == DOC_TABLE && i < d->table.n; i++)
		fill(d->table.v[i].value, run, a);
	if (d->type != DOC_STRING)
		return;
	if (str_is(d->s, KUBE_INSTALL))
		d->s = arena_str(a, STR(INSTALL));
	else if (str_starts(d->s, from))
		d->s = str_from(arena_printf(a, "%s%s", run, d->s.p + from.n));
}

/* ---- all objects ---- */

struct doc *kube_manifests(const struct plan *p, struct arena *a, struct err *err)
{
	struct kube_table *t = arena_new_of(a, struct kube_table);
	const struct kube_render r = {.p = p, .t = t, .a = a, .plain = true};
	struct doc *all = doc_new(a, DOC_ARRAY);

	*t = *kube_table_of(p->job, a);
	t->agent = false;
	t->agent_set = true;
	if (t->as != KUBE_JOB) {
		doc_append(a, all, kube_operator_object(&r));
		fill(all, p->job->name, a);
		return all;
	}
	if (p->crew.launch != LAUNCH_ALL) {
		err_set(err, ERR_INVALID,
			"strategy '%s' starts processes through Regatta's agents, which the pods of a "
			"manifest do not have: set as = \"mpijob\" in [kubernetes]",
			p->strategy->name);
		return NULL;
	}
	doc_append(a, all, kube_service_object(&r));
	for (int i = 0; i < p->crew.nroles; i++) {
		struct doc *job = kube_job_object(&r, i);

		fill(job, p->job->name, a);
		kube_add_env(&r, i, p->job->name, job);
		doc_append(a, all, job);
	}
	fill(all, p->job->name, a);
	return all;
}
