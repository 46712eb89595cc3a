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
#define AGAIN "Previously: " /* it has its turn again */
#define VERSION "kueue.x-k8s.io/v1beta1"

bool kube_queue_has(const struct doc *object)
{
	return *kube_label(object, QUEUE) != '\0';
}

static bool has(struct str text, const char *words)
{
	return text.n > 0 && memmem(text.p, text.n, words, strlen(words)) != NULL;
}

static bool is_now(const struct doc *condition, const char *type, const char *status)
{
	return str_is(doc_str(condition, "type", STR("")), type) &&
	       str_is(doc_str(condition, "status", STR("")), status);
}

/* Of the last time that it had its turn.  What a user ends is no loss. */
static void take_eviction(const struct doc *c, struct err *ret)
{
	struct str said = doc_str(c, "message", STR(""));

	if (!str_is(doc_str(c, "type", STR("")), "Evicted") || has(said, "deactivated"))
		return;
	if (str_starts(said, STR(AGAIN))) {
		said.p += strlen(AGAIN);
		said.n -= strlen(AGAIN);
	}
	err_set(ret, has(said, "Preempted") ? ERR_PREEMPTED : ERR_UNAVAILABLE,
		"Kueue has taken its place: %.*s", STR_ARG(said));
}

static int take_workload(void *ctx, const struct doc *workload)
{
	const struct doc *all = doc_array(doc_table(workload, "status"), "conditions");
	struct kube_turn *t = ctx;

	snprintf(t->workload, sizeof(t->workload), "%s", kube_meta(workload, "name"));
	for (size_t i = 0; all && i < all->array.n; i++) {
		const struct doc *c = all->array.v[i];
		struct str said = doc_str(c, "message", STR(""));

		take_eviction(c, &t->evicted);
		if (!is_now(c, "QuotaReserved", "False") &&
		    (t->waits.kind != ERR_NONE || !is_now(c, "Admitted", "False")))
			continue;
		t->never = str_is(doc_str(c, "reason", STR("")), "Inadmissible") &&
			   has(said, "doesn't exist");
		err_set(&t->waits, ERR_CAPACITY, "%.*s", STR_ARG(said));
	}
	return 0;
}

static int ask(struct kube_work *w, const struct doc *object, struct err *err)
{
	const char *query = arena_printf(w->a, "labelSelector=kueue.x-k8s.io%%2Fjob-uid%%3D%s",
					 kube_meta(object, "uid"));

	w->turn = (struct kube_turn){0};
	return kube_list(w->k, kube_path(w->a, VERSION, w->namespace, "workloads", NULL), query,
			 "list workloads", &w->d, take_workload, &w->turn, err);
}

void kube_queue_refresh(struct kube_work *w, const struct doc *object)
{
	struct err err = {0};

	if (kube_queue_has(object) && ask(w, object, &err) < 0)
		err_set(&w->turn.waits, ERR_CAPACITY, "why is not known: %.150s", err.msg);
}

enum outcome kube_queue_judge(struct kube_work *w, const struct doc *object)
{
	struct err why = w->turn.waits;

	if (!kube_queue_has(object))
		err_set(&why, ERR_CAPACITY, "it is suspended");
	else if (why.kind == ERR_NONE)
		err_set(&why, ERR_CAPACITY, "Kueue has not looked at it yet");
	if (kube_queue_has(object))
		err_wrap(&why, "in queue %.60s", kube_label(object, QUEUE));
	if (w->turn.never) {
		why.kind = ERR_INVALID;
		return kube_given_up(w, &why);
	}
	w->row->err = why;
	w->row->queued = true;
	return OUTCOME_HELD;
}

enum outcome kube_queue_stop(struct kube_work *w, const struct doc *object)
{
	int status = 0;

	if (ask(w, object, &w->row->err) < 0)
		return OUTCOME_UNSURE;
	if (!w->turn.workload[0])
		return OUTCOME_DONE; /* nothing of it has begun */
	const struct kube_call c = {
		.method = "PATCH",
		.path = arena_printf(
			w->a, "%s?fieldManager=regatta",
			kube_path(w->a, VERSION, w->namespace, "workloads", w->turn.workload)),
		.what = "end a workload",
		.body = "{\"spec\":{\"active\":false}}",
		.type = KUBE_MERGE,
		.deadline = &w->d,
	};

	return kube_ask(w->k, &c, w->a, NULL, &status, &w->row->err) < 0
		       ? kube_kind_failed(KUBE_EXTEND, status, w->row)
		       : OUTCOME_DONE;
}
