/*
 * kube.operator_job - the object of an operator, a PyTorchJob or JobSet, which carries all nodes of its run.
 *
 * The operator makes the pods and names its own view of the whole in conditions.  The pods say how each
 * node stands, as without an operator: that the object calls itself succeeded is no end of a node.
 * That it has failed is the reason of pods that are gone, or will not come.
 */
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/kube_log.h"
#include "driver/kube/kube_pods.h"
#include "driver/kube/kube_queue.h"
#include "driver/kube/kube_wait.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"

static bool is_jobset(const struct kube_work *w)
{
	return str_is(doc_str(w->object, "kind", STR("")), "JobSet");
}

/* The operator's API is not there: the plan says what to install. */
static enum outcome do_create(struct kube_work *w)
{
	enum outcome o = kube_kind_create(w);
	const struct doc *notes = doc_table(doc_table(w->object, "metadata"), "annotations");

	if (o == OUTCOME_REFUSED && w->row->err.kind == ERR_NOT_FOUND)
		err_set(&w->row->err, ERR_NOT_FOUND, "the cluster has no %s: install %s",
			doc_str(w->object, "kind", STR("")).p,
			doc_str(notes, "regatta/operator", STR("its operator")).p);
	return o;
}

/* Why the operator has given up; ERR_NONE: it has not. */
static struct err failure_of(const struct doc *object)
{
	const struct doc *all = doc_array(doc_table(object, "status"), "conditions");
	struct err why = {0};

	for (size_t i = 0; all && i < all->array.n; i++) {
		const struct doc *c = all->array.v[i];

		if (str_is(doc_str(c, "type", STR("")), "Failed") &&
		    str_is(doc_str(c, "status", STR("")), "True"))
			err_set(&why, ERR_UNAVAILABLE, "%.40s: %.180s",
				doc_str(c, "reason", STR("Failed")).p,
				doc_str(c, "message", STR("")).p);
	}
	return why;
}

static bool has_failed_pod(const struct driver_row *row)
{
	for (size_t i = 0; i < row->nsights; i++)
		if (row->sights[i].ended && row->sights[i].code != 0)
			return true;
	return false;
}

/* The exit of a pod says more than that its job has failed. */
static enum outcome judge_failed(struct kube_work *w, const struct err *why)
{
	for (size_t i = 0; i < w->row->nmembers; i++)
		if (w->row->members[i].gone)
			w->row->members[i].why = *why;
	return has_failed_pod(w->row) ? OUTCOME_DONE : kube_given_up(w, why);
}

static struct pods_wanted wanted_of(const struct kube_work *w, const struct doc *object)
{
	const struct doc *spec = doc_table(object, "spec");
	const struct doc *policy = is_jobset(w) ? spec : doc_table(spec, "runPolicy");
	struct str n = doc_str(doc_table(doc_table(w->object, "metadata"), "annotations"),
			       "regatta/nodes", STR("0"));
	struct pods_wanted wanted = {.suspended = doc_bool(policy, "suspend", false),
				     .by_jobs = is_jobset(w)};

	(void)str_to_i64(n, &wanted.n);
	return wanted;
}

static enum outcome do_observe(struct kube_work *w)
{
	struct doc *object = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_OBSERVE, &object);
	struct pods_summary sum;

	if (o != OUTCOME_DONE)
		return o;
	kube_queue_refresh(w, object);
	if (pods_observe(w, &sum, &w->row->err) < 0)
		return OUTCOME_UNSURE;
	const struct err why = failure_of(object);

	return why.kind != ERR_NONE ? judge_failed(w, &why)
				    : kube_judge_awaited(w, object, wanted_of(w, object), &sum);
}

/* If the operator calls the job finished, its pods that run are cleaned up; if not, it is suspended. */
static enum outcome do_stop(struct kube_work *w)
{
	struct doc *object = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_EXTEND, &object);

	if (o != OUTCOME_DONE)
		return o;
	if (kube_queue_has(object))
		return kube_queue_stop(w, object);
	return kube_object_patch(
		w, "suspend the operator's object",
		is_jobset(w) ? "{\"spec\":{\"suspend\":true}}"
			     : "{\"spec\":{\"runPolicy\":{\"suspend\":true,\"cleanPodPolicy\":"
			       "\"Running\"}}}",
		KUBE_EXTEND);
}

static enum outcome ask_stop(struct driver_row *row)
{
	return kube_kind_ask(row, KUBE_EXTEND, do_stop);
}

/* The plan has no JobSet that expires: its Jobs cannot be changed. */
static enum outcome do_extend(struct kube_work *w)
{
	struct doc *object = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_EXTEND, &object);
	int64_t made_ms = 0;

	if (o != OUTCOME_DONE)
		return o;
	if (!clock_parse(str_from(kube_meta(object, "creationTimestamp")), &made_ms))
		return OUTCOME_UNSURE;
	return kube_object_patch(
		w, "extend the operator's object",
		arena_printf(w->a, "{\"spec\":{\"runPolicy\":{\"activeDeadlineSeconds\":%lld}}}",
			     (long long)((w->row->expires_ms - made_ms) / 1000)),
		KUBE_EXTEND);
}

static enum outcome ask_extend(struct driver_row *row)
{
	return kube_kind_ask(row, KUBE_EXTEND, do_extend);
}

KUBE_DRIVER(kube_operator_driver, "kube.operator_job", do_create, kube_kind_find, do_observe,
	    ask_extend, kube_kind_destroy, .stop = ask_stop, .log_open = kube_log_open,
	    .log_read = kube_log_read, .log_at = kube_log_at, .log_gap = kube_log_gap,
	    .log_free = kube_log_free, );
