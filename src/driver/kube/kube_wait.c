#include "driver/kube/kube_wait.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "driver/kube/kube_events.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/kube_pods.h"
#include "driver/kube/kube_queue.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"

#define LOG_MAX 600
#define MOST_FAILED 3 /* pods that end before their agents speak, where others take their place */

/* The last lines of a pod that ended before its agent spoke. */
static void add_log(struct kube_work *w, const char *pod, struct err *why)
{
	CLEANUP(buf_release) struct buf log = {0};
	const char *path = arena_printf(w->a, "%s/log?tailLines=3&container=main",
					kube_path(w->a, "v1", w->namespace, "pods", pod));
	struct err ignored;

	buf_init(&log, LOG_MAX);
	if (kube_text(w->k, path, "read a log", &w->d, &log, &ignored) < 0)
		return;
	struct str text = arena_line(w->a, str_trim(buf_str(&log)));

	if (text.n > 0)
		err_set(why, why->kind, "%.140s; its log: %.*s", why->msg, STR_ARG(text));
}

enum outcome kube_given_up(struct kube_work *w, const struct err *why)
{
	w->row->err = *why;
	w->row->ended = true;
	return OUTCOME_ABSENT;
}

/* What the nodes wait for, if the cluster says it. */
static enum outcome waits(struct kube_work *w, const struct err *why)
{
	if (why->kind == ERR_NONE)
		return OUTCOME_DONE;
	w->row->err = *why;
	return OUTCOME_HELD;
}

enum outcome kube_judge_awaited(struct kube_work *w, const struct doc *object,
				struct pods_wanted wanted, struct pods_summary *sum)
{
	struct err said = {0};

	if (wanted.suspended) /* its pods are on their way out */
		return kube_queue_judge(w, object);
	if (sum->stuck.kind != ERR_NONE)
		return kube_given_up(w, &sum->stuck);
	if (sum->ended_unknown > 0 &&
	    (!wanted.again || (w->row->nmembers == 0 && sum->ended_unknown >= MOST_FAILED))) {
		if (sum->ended.kind == ERR_NONE)
			err_set(&sum->ended, ERR_UNAVAILABLE, "pod %.60s ended without a word",
				sum->ended_name);
		add_log(w, sum->ended_name, &sum->ended);
		return kube_given_up(w, &sum->ended);
	}
	if (sum->n < wanted.n) {
		events_last_warning(w, kube_meta(object, "uid"), &said);
		if (said.kind == ERR_NONE && wanted.by_jobs)
			events_last_of_its_jobs(w, &said);
		if (said.kind == ERR_QUOTA || said.kind == ERR_DENIED)
			return kube_given_up(w, &said);
	} else if (sum->waits_uid[0] && sum->waits.kind == ERR_NONE) {
		events_last_warning(w, sum->waits_uid, &said);
		if (said.kind != ERR_NONE)
			err_set(&sum->waits, said.kind, "pod %.60s: %.170s", sum->waits_name,
				said.msg);
		if (said.kind == ERR_INVALID)
			return kube_given_up(w, &sum->waits);
	}
	return waits(w, sum->waits.kind != ERR_NONE ? &sum->waits : &said);
}
