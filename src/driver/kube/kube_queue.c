#include "driver/kube/kube_queue.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/kube_wait.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"

#define QUEUE "kueue.x-k8s.io/queue-name"
#define VERSION "kueue.x-k8s.io/v1beta1"

/* What the Workload of an object says. */
struct turn {
	char name[256];	    /* of the Workload; "": there is none */
	struct err waits;   /* why it is not its turn */
	struct err evicted; /* why it is no more its turn; ERR_NONE: it never was */
	bool never;	    /* the queue is not there */
};

bool kube_queue_has(const struct doc *object)
{
	return *kube_label(object, QUEUE) != '\0';
}

static bool is_now(const struct doc *condition, const char *type, const char *status)
{
	return str_is(doc_str(condition, "type", STR("")), type) &&
	       str_is(doc_str(condition, "status", STR("")), status);
}

static int take_workload(void *ctx, const struct doc *workload)
{
	const struct doc *all = doc_array(doc_table(workload, "status"), "conditions");
	struct turn *t = ctx;

	snprintf(t->name, sizeof(t->name), "%s", kube_meta(workload, "name"));
	for (size_t i = 0; all && i < all->array.n; i++) {
		const struct doc *c = all->array.v[i];
		struct str reason = doc_str(c, "reason", STR(""));
		struct str said = doc_str(c, "message", STR(""));

		if (is_now(c, "QuotaReserved", "False") ||
		    (t->waits.kind == ERR_NONE && is_now(c, "Admitted", "False"))) {
			err_set(&t->waits, ERR_CAPACITY, "%.*s", STR_ARG(said));
			t->never = str_is(reason, "Inadmissible") && said.n &&
				   memmem(said.p, said.n, "doesn't exist", 13);
		}
		if (is_now(c, "Evicted", "True"))
			err_set(&t->evicted,
				str_is(reason, "Preempted") ? ERR_PREEMPTED : ERR_UNAVAILABLE,
				"Kueue has taken its place: %.*s: %.*s", STR_ARG(reason),
				STR_ARG(said));
	}
	return 0;
}

static int ask(struct kube_work *w, const struct doc *object, struct turn *ret, struct err *err)
{
	const char *query = arena_printf(w->a, "labelSelector=kueue.x-k8s.io%%2Fjob-uid%%3D%s",
					 kube_meta(object, "uid"));

	*ret = (struct turn){0};
	return kube_list(w->k, kube_path(w->a, VERSION, w->namespace, "workloads", NULL), query,
			 "list workloads", &w->d, take_workload, ret, err);
}

enum outcome kube_queue_judge(struct kube_work *w, const struct doc *object)
{
	struct driver_row *row = w->row;
	struct turn t = {0};
	struct err err = {0};

	if (!kube_queue_has(object)) {
		err_set(&t.waits, ERR_CAPACITY, "it is suspended");
	} else if (ask(w, object, &t, &err) < 0) {
		err_set(&t.waits, ERR_CAPACITY, "why is not known: %.150s", err.msg);
	} else if (t.waits.kind == ERR_NONE) {
		err_set(&t.waits, ERR_CAPACITY, "Kueue has not looked at it yet");
	}
	for (size_t i = 0; i < row->nmembers && t.evicted.kind != ERR_NONE; i++)
		if (row->members[i].gone)
			row->members[i].why = t.evicted;
	if (kube_queue_has(object))
		err_wrap(&t.waits, "in queue %.60s", kube_label(object, QUEUE));
	if (t.never) {
		t.waits.kind = ERR_NOT_FOUND;
		return kube_given_up(w, &t.waits);
	}
	row->err = t.waits;
	row->queued = true;
	return OUTCOME_HELD;
}

enum outcome kube_queue_stop(struct kube_work *w, const struct doc *object)
{
	struct turn t = {0};
	int status = 0;

	if (ask(w, object, &t, &w->row->err) < 0)
		return OUTCOME_UNSURE;
	if (!t.name[0])
		return OUTCOME_DONE; /* nothing of it has begun */
	const struct kube_call c = {
		.method = "PATCH",
		.path = arena_printf(w->a, "%s?fieldManager=regatta",
				     kube_path(w->a, VERSION, w->namespace, "workloads", t.name)),
		.what = "end a workload",
		.body = "{\"spec\":{\"active\":false}}",
		.type = KUBE_MERGE,
		.deadline = &w->d,
	};

	return kube_ask(w->k, &c, w->a, NULL, &status, &w->row->err) < 0
		       ? kube_kind_failed(KUBE_EXTEND, status, w->row)
		       : OUTCOME_DONE;
}
