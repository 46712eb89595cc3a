#include "driver/kube/kube_events.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"

struct last {
	struct err *why;
	const char *prefix; /* of the names of the objects that count; "": all */
	char at[40];
};

static bool says(struct str text, const char *word)
{
	return text.n > 0 && memmem(text.p, text.n, word, strlen(word)) != NULL;
}

static enum err_kind kind_of(struct str reason, struct str message)
{
	/* of a Job; of Kubeflow's: FailedCreatePod, FailedCreateService; of an MPIJob */
	if (str_starts(reason, STR("FailedCreate")) || says(message, "pod created failed"))
		return says(message, "exceeded quota")			       ? ERR_QUOTA
		       : says(message, "forbidden") || says(message, "denied") ? ERR_DENIED
									       : ERR_UNAVAILABLE;
	if (str_is(reason, "FailedMount") && says(message, "not found"))
		return ERR_INVALID;
	return ERR_UNAVAILABLE;
}

/* Times are RFC 3339 in UTC: they sort as text. */
static int take_event(void *ctx, const struct doc *event)
{
	struct last *l = ctx;
	struct str at = doc_str(event, "lastTimestamp", STR(""));
	struct str reason = doc_str(event, "reason", STR(""));
	struct str message = doc_str(event, "message", STR(""));

	if (!str_starts(doc_str(doc_table(event, "involvedObject"), "name", STR("")),
			str_from(l->prefix)) ||
	    (l->why->kind != ERR_NONE && strcmp(at.p, l->at) < 0))
		return 0;
	snprintf(l->at, sizeof(l->at), "%s", at.p);
	err_set(l->why, kind_of(reason, message), "%.*s: %.*s", STR_ARG(reason), STR_ARG(message));
	return 0;
}

static void find_last(struct kube_work *w, const char *selector, const char *prefix,
		      struct err *ret)
{
	const char *query = arena_printf(w->a, "fieldSelector=%s%%2Ctype%%3DWarning", selector);
	struct last l = {.why = ret, .prefix = prefix};
	struct err why = {0};

	*ret = (struct err){0};
	if (kube_list(w->k, kube_path(w->a, "v1", w->namespace, "events", NULL), query,
		      "list events", &w->d, take_event, &l, &why) < 0 &&
	    why.kind == ERR_DENIED) /* of the asking, and not of the pods */
		err_set(ret, ERR_UNAVAILABLE, "%.230s", why.msg);
}

void events_last_warning(struct kube_work *w, const char *uid, struct err *ret)
{
	find_last(w, arena_printf(w->a, "involvedObject.uid%%3D%s", uid), "", ret);
}

void events_last_of_its_jobs(struct kube_work *w, struct err *ret)
{
	find_last(w, "involvedObject.kind%3DJob", arena_printf(w->a, "%s-", w->name), ret);
}

/* The cluster's own reasons to delete a pod, as it names them in events. */
static int take_taken(void *ctx, const struct doc *event)
{
	static const struct {
		const char *reason;
		enum err_kind kind;
	} reasons[] = {
		{"Preempted", ERR_PREEMPTED},
		{"Evicted", ERR_UNAVAILABLE},
		{"TaintManagerEviction", ERR_UNAVAILABLE},
	};
	struct err *why = ctx;
	struct str reason = doc_str(event, "reason", STR(""));

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (str_is(reason, reasons[i].reason))
			err_set(why, reasons[i].kind, "its pod was deleted: %.*s: %.*s",
				STR_ARG(reason), STR_ARG(doc_str(event, "message", STR(""))));
	return 0;
}

void events_why_deleted(struct kube_work *w, const char *uid, struct err *ret)
{
	const char *query = arena_printf(w->a, "fieldSelector=involvedObject.uid%%3D%s", uid);
	struct err ignored;

	err_set(ret, ERR_UNAVAILABLE, "its pod was deleted");
	(void)kube_list(w->k, kube_path(w->a, "v1", w->namespace, "events", NULL), query,
			"list events", &w->d, take_taken, ret, &ignored);
}
