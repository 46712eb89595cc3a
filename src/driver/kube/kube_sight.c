#include "driver/kube/kube_sight.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "driver/driver.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"

#define MAIN "kubectl.kubernetes.io/default-container"
#define INDEX "batch.kubernetes.io/job-completion-index"
#define REPLICA "training.kubeflow.org/replica-index"
/* A container that its pod starts again and again has failed after so many. */
#define MOST_RESTARTS 3
#define REASON_MAX 120

static const struct doc *of_name(const struct doc *list, const char *key, struct str value)
{
	for (size_t i = 0; list && i < list->array.n; i++)
		if (str_eq(doc_str(list->array.v[i], key, STR("")), value))
			return list->array.v[i];
	return NULL;
}

/* The container that runs the job: the one that the plan has named. */
static struct str main_name(const struct doc *pod)
{
	const struct doc *notes = doc_table(doc_table(pod, "metadata"), "annotations");
	const struct doc *all = doc_array(doc_table(pod, "spec"), "containers");
	struct str first =
		all && all->array.n ? doc_str(all->array.v[0], "name", STR("")) : STR("");

	return doc_str(notes, MAIN, first);
}

static bool is_taken(const struct doc *pod)
{
	const struct doc *status = doc_table(pod, "status");
	const struct doc *c =
		of_name(doc_array(status, "conditions"), "type", STR("DisruptionTarget"));

	return doc_str(status, "reason", STR("")).n > 0 ||
	       str_is(doc_str(c, "status", STR("")), "True");
}

static int number_of(const char *text)
{
	int64_t n = 0;

	return str_to_i64(str_from(text), &n) && n >= 0 && n < INT32_MAX ? (int)n : 0;
}

static int index_of(const struct doc *pod)
{
	const struct doc *notes = doc_table(doc_table(pod, "metadata"), "annotations");
	const char *completion = doc_str(notes, INDEX, str_from(kube_label(pod, INDEX))).p;

	return number_of(completion) + number_of(kube_label(pod, REPLICA)) +
	       number_of(kube_label(pod, KUBE_LABEL_FROM));
}

/* The end of a long message says what it was about. */
static struct str tail_of(struct str text)
{
	if (text.n > REASON_MAX) {
		text.p += text.n - REASON_MAX;
		text.n = REASON_MAX;
	}
	return text;
}

static void set_end(const struct doc *pod, const struct doc *container, const struct doc *how,
		    struct driver_sight *ret)
{
	struct str message = str_trim(doc_str(how, "message", STR("")));
	struct str name = doc_str(container, "name", STR(""));

	ret->ended = true;
	ret->code = (int)doc_int(how, "exitCode", -1);
	ret->oom = str_is(doc_str(how, "reason", STR("")), "OOMKilled");
	if (ret->oom)
		snprintf(ret->reason, sizeof(ret->reason),
			 "container %.*s of pod %.60s was killed for its memory (OOMKilled)",
			 STR_ARG(name), kube_meta(pod, "name"));
	else if (ret->code != 0 && message.n > 0)
		snprintf(ret->reason, sizeof(ret->reason), "%.*s", STR_ARG(tail_of(message)));
}

/* A container that failed before the main one could begin; NULL: none. */
static const struct doc *failed_init(const struct doc *pod)
{
	const struct doc *all = doc_array(doc_table(pod, "status"), "initContainerStatuses");

	for (size_t i = 0; all && i < all->array.n; i++) {
		const struct doc *end =
			doc_table(doc_table(all->array.v[i], "state"), "terminated");

		if (end && doc_int(end, "exitCode", 0) != 0)
			return all->array.v[i];
	}
	return NULL;
}

static void set_init_end(const struct doc *pod, const struct doc *init, struct driver_sight *ret)
{
	const struct doc *end = doc_table(doc_table(init, "state"), "terminated");

	set_end(pod, init, end, ret);
	if (!ret->oom)
		snprintf(ret->reason, sizeof(ret->reason), "init container %.*s ended with %d",
			 STR_ARG(doc_str(init, "name", STR(""))), ret->code);
	snprintf(ret->log, sizeof(ret->log), "%s/%.*s", kube_meta(pod, "name"),
		 STR_ARG(doc_str(init, "name", STR(""))));
}

/* It is started again, for as long as that is not hopeless. */
static void judge_restarts(const struct doc *pod, const struct doc *container,
			   struct driver_sight *ret)
{
	const struct doc *last = doc_table(doc_table(container, "lastState"), "terminated");
	const struct doc *waits = doc_table(doc_table(container, "state"), "waiting");

	if (!last || !str_is(doc_str(waits, "reason", STR("")), "CrashLoopBackOff") ||
	    doc_int(container, "restartCount", 0) < MOST_RESTARTS)
		return;
	set_end(pod, container, last, ret);
	if (!ret->oom)
		snprintf(ret->reason, sizeof(ret->reason),
			 "container %.*s ended %d times, the last time with %d (CrashLoopBackOff)",
			 STR_ARG(doc_str(container, "name", STR(""))),
			 (int)doc_int(container, "restartCount", 0) + 1, ret->code);
}

bool pod_sight(const struct doc *pod, struct driver_sight *ret)
{
	const struct doc *status = doc_table(pod, "status");
	struct str phase = doc_str(status, "phase", STR("")), name = main_name(pod);
	const struct doc *c = of_name(doc_array(status, "containerStatuses"), "name", name);
	const struct doc *end = doc_table(doc_table(c, "state"), "terminated");
	bool over = str_is(phase, "Failed") || str_is(phase, "Succeeded");
	bool once = str_is(doc_str(doc_table(pod, "spec"), "restartPolicy", STR("")), "Never");
	const struct doc *init = failed_init(pod);

	*ret = (struct driver_sight){.index = index_of(pod)};
	if (is_taken(pod))
		return false;
	snprintf(ret->role, sizeof(ret->role), "%s", kube_label(pod, "regatta/role"));
	snprintf(ret->identity, sizeof(ret->identity), "%s", kube_meta(pod, "uid"));
	snprintf(ret->address, sizeof(ret->address), "%s", doc_str(status, "podIP", STR("")).p);
	snprintf(ret->log, sizeof(ret->log), "%s/%.*s", kube_meta(pod, "name"), STR_ARG(name));
	if (end && (once || over)) {
		set_end(pod, c, end, ret);
		return true;
	}
	if (over && init) {
		set_init_end(pod, init, ret);
		return true;
	}
	if (over)
		return false;
	judge_restarts(pod, c, ret);
	return ret->ended || end || doc_table(doc_table(c, "state"), "running") ||
	       doc_int(c, "restartCount", 0) > 0;
}
