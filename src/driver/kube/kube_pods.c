#include "driver/kube/kube_pods.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/str.h"
#include "driver/kube/kube_events.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/kube_sight.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"

#define SHELL "/bin/sh"
#define START "/var/run/regatta/start" /* its script, in a Secret: plan/kubernetes_objects.c */

/* ---- one pod ---- */

/* Why a container does not start, and that it will not without a change. */
static const struct {
	const char *reason, *words;
	enum err_kind kind;
} stuck_reasons[] = {
	{"ErrImagePull", "its image cannot be pulled", ERR_INVALID},
	{"ImagePullBackOff", "its image cannot be pulled", ERR_INVALID},
	{"InvalidImageName", "its image has no valid name", ERR_INVALID},
	{"ErrImageNeverPull", "its image is not on the node, and may not be pulled", ERR_INVALID},
	{"CreateContainerConfigError", "its container cannot be made", ERR_INVALID},
	{"CreateContainerError", "its container cannot be made", ERR_INVALID},
	{"RunContainerError", "its container cannot be started", ERR_INVALID},
	{"CrashLoopBackOff", "its container ends again and again", ERR_INVALID},
};

static const struct doc *first_status(const struct doc *pod, const char *list, size_t i)
{
	const struct doc *all = doc_array(doc_table(pod, "status"), list);

	return all && i < all->array.n ? all->array.v[i] : NULL;
}

static const struct doc *condition(const struct doc *pod, const char *type)
{
	const struct doc *all = doc_array(doc_table(pod, "status"), "conditions");

	for (size_t i = 0; all && i < all->array.n; i++)
		if (str_is(doc_str(all->array.v[i], "type", STR("")), type))
			return all->array.v[i];
	return NULL;
}

#define BEFORE_CAUSE 40 /* what others write before the words of a pod */

/* The end of what the cluster says, as much as a message can take: why an image cannot be pulled stands there, after
 * its name, twice, and what was tried. */
static struct str last_words(struct str said, size_t most)
{
	while (said.n > most) {
		const char *at = memmem(said.p, said.n, ": ", 2);

		if (!at)
			break;
		at += 2;
		said = (struct str){at, said.n - (size_t)(at - said.p)};
	}
	return said;
}

static void set_stuck(const struct doc *pod, const struct doc *status, size_t which,
		      struct pod_state *ret)
{
	const struct doc *waiting = doc_table(doc_table(status, "state"), "waiting");
	struct str said = doc_str(waiting, "message", STR(""));
	char before[160];
	int n = snprintf(before, sizeof(before), "pod %.60s: %s: %s: ", kube_meta(pod, "name"),
			 stuck_reasons[which].words, stuck_reasons[which].reason);
	const char *image = "";

	if (strstr(stuck_reasons[which].reason, "ImagePull") &&
	    said.n > sizeof(ret->why.msg) - BEFORE_CAUSE - (size_t)n) {
		image = doc_str(status, "image", STR("")).p;
		n += snprintf(NULL, 0, "%.70s: ", image);
		said = last_words(said, sizeof(ret->why.msg) - BEFORE_CAUSE - (size_t)n);
	}
	err_set(&ret->why, stuck_reasons[which].kind, "%s%.70s%s%.*s", before, image,
		*image ? ": " : "", STR_ARG(said));
}

/* What the cluster says of a container that waits. */
static bool judge_waiting(const struct doc *pod, const struct doc *status, struct pod_state *ret)
{
	const struct doc *waiting = doc_table(doc_table(status, "state"), "waiting");
	struct str reason = doc_str(waiting, "reason", STR(""));

	for (size_t i = 0; i < sizeof(stuck_reasons) / sizeof(stuck_reasons[0]); i++)
		if (str_is(reason, stuck_reasons[i].reason)) {
			ret->life = POD_STUCK;
			set_stuck(pod, status, i, ret);
			return true;
		}
	return false;
}

static void judge_pending(const struct doc *pod, struct pod_state *ret)
{
	const struct doc *scheduled = condition(pod, "PodScheduled");
	struct str message = doc_str(scheduled, "message", STR(""));
	const struct doc *status;

	ret->life = POD_WAITING;
	if (str_is(doc_str(scheduled, "status", STR("")), "False")) {
		bool missing = message.n && memmem(message.p, message.n, "not found", 9);

		ret->life = missing ? POD_STUCK : POD_WAITING;
		err_set(&ret->why, missing ? ERR_INVALID : ERR_CAPACITY, "pod %.60s: %.*s: %.*s",
			kube_meta(pod, "name"), STR_ARG(doc_str(scheduled, "reason", STR(""))),
			STR_ARG(message));
		return;
	}
	for (size_t i = 0; (status = first_status(pod, "initContainerStatuses", i)); i++)
		if (judge_waiting(pod, status, ret))
			return;
	for (size_t i = 0; (status = first_status(pod, "containerStatuses", i)); i++)
		if (judge_waiting(pod, status, ret))
			return;
}

/* How a container that failed ended; false: it did not fail. */
static bool judge_terminated(const struct doc *pod, const struct doc *status, struct pod_state *ret)
{
	const struct doc *ended = doc_table(doc_table(status, "state"), "terminated");
	int64_t code = doc_int(ended, "exitCode", 0);
	struct str reason = doc_str(ended, "reason", STR(""));
	struct str message = str_trim(doc_str(ended, "message", STR("")));

	if (!ended || (code == 0 && !str_is(reason, "OOMKilled")))
		return false;
	if (str_is(reason, "OOMKilled"))
		err_set(&ret->why, ERR_UNAVAILABLE,
			"pod %.60s: container %.*s was killed for its memory (OOMKilled)",
			kube_meta(pod, "name"), STR_ARG(doc_str(status, "name", STR(""))));
	else
		err_set(&ret->why, ERR_UNAVAILABLE, "pod %.60s: container %.*s ended with %d%s%.*s",
			kube_meta(pod, "name"), STR_ARG(doc_str(status, "name", STR(""))),
			(int)code, message.n ? ": " : "", STR_ARG(message));
	return true;
}

static bool is_disrupted(const struct doc *pod, struct err *why)
{
	const struct doc *c = condition(pod, "DisruptionTarget");
	struct str how = doc_str(c, "reason", STR(""));

	if (!c)
		return false;
	err_set(why, str_is(how, "PreemptionByScheduler") ? ERR_PREEMPTED : ERR_UNAVAILABLE,
		"pod %.60s: %.*s: %.*s", kube_meta(pod, "name"), STR_ARG(how),
		STR_ARG(doc_str(c, "message", STR(""))));
	return true;
}

bool pod_is_leaving(const struct doc *pod, struct err *why)
{
	return *kube_meta(pod, "deletionTimestamp") && is_disrupted(pod, why);
}

/* Only the cluster's own controllers say that a pod is not ready without saying why: a node that is heard gives a
 * reason, and counts the containers of the pod as not ready too. */
static bool is_cut_off(const struct doc *pod)
{
	const struct doc *ready = condition(pod, "Ready");

	return str_is(doc_str(ready, "status", STR("")), "False") &&
	       doc_str(ready, "reason", STR("")).n == 0 &&
	       str_is(doc_str(condition(pod, "ContainersReady"), "status", STR("")), "True");
}

bool pod_is_unheard(const struct doc *pod, struct err *why)
{
	const struct doc *status = doc_table(pod, "status");
	const struct doc *taken = condition(pod, "DisruptionTarget");

	if (!str_is(doc_str(status, "phase", STR("")), "Running"))
		return false;
	if (!is_cut_off(pod) &&
	    !str_is(doc_str(taken, "reason", STR("")), "DeletionByTaintManager"))
		return false;
	err_set(why, ERR_TIMEOUT, "pod %.60s: its node %.60s does not answer (NodeNotReady)",
		kube_meta(pod, "name"), doc_str(doc_table(pod, "spec"), "nodeName", STR("")).p);
	return true;
}

static void judge_ended(const struct doc *pod, struct pod_state *ret)
{
	const struct doc *status = doc_table(pod, "status"), *one;
	struct str reason = doc_str(status, "reason", STR(""));

	ret->life = POD_ENDED;
	if (is_disrupted(pod, &ret->why))
		return;
	if (reason.n > 0) {
		err_set(&ret->why, ERR_UNAVAILABLE, "pod %.60s: %.*s: %.*s", kube_meta(pod, "name"),
			STR_ARG(reason), STR_ARG(doc_str(status, "message", STR(""))));
		return;
	}
	for (size_t i = 0; (one = first_status(pod, "initContainerStatuses", i)); i++)
		if (judge_terminated(pod, one, ret))
			return;
	for (size_t i = 0; (one = first_status(pod, "containerStatuses", i)); i++)
		if (judge_terminated(pod, one, ret))
			return;
}

static bool names_shell(const struct doc *state, struct str *ret_said)
{
	*ret_said = doc_str(state, "message", STR(""));
	return ret_said->n && memmem(ret_said->p, ret_said->n, SHELL, sizeof(SHELL) - 1);
}

/* Without agent_image a shell of the image begins: an image without one will never start. */
static bool judge_shell(const struct doc *pod, struct pod_state *ret)
{
	const struct doc *all = doc_array(doc_table(pod, "spec"), "containers");
	const struct doc *main = all && all->array.n ? all->array.v[0] : NULL;
	const struct doc *command = doc_array(main, "command");
	const struct doc *status = first_status(pod, "containerStatuses", 0);
	const struct doc *now = doc_table(status, "state");
	struct str said;

	if (!command || command->array.n != 2 || !str_is(command->array.v[1]->s, START))
		return false;
	if (!names_shell(doc_table(now, "terminated"), &said) &&
	    !names_shell(doc_table(now, "waiting"), &said) &&
	    !names_shell(doc_table(doc_table(status, "lastState"), "terminated"), &said))
		return false;
	ret->life = POD_STUCK;
	err_set(&ret->why, ERR_INVALID,
		"pod %.60s: its image %.80s has no " SHELL
		" to begin with: set agent_image in [kubernetes]: %.*s",
		kube_meta(pod, "name"), doc_str(main, "image", STR("")).p, STR_ARG(said));
	return true;
}

void pod_judge(const struct doc *pod, struct pod_state *ret)
{
	struct str phase = doc_str(doc_table(pod, "status"), "phase", STR("Pending"));

	*ret = (struct pod_state){.life = POD_RUNNING};
	if (judge_shell(pod, ret))
		return;
	if (str_is(phase, "Failed") || str_is(phase, "Succeeded"))
		judge_ended(pod, ret);
	else if (str_is(phase, "Pending"))
		judge_pending(pod, ret);
}

/* ---- the pods of a role ---- */

struct look {
	struct kube_work *w;
	struct pods_summary *sum;
	bool *seen; /* per member: its pod is there */
};

static int member_of(const struct kube_work *w, const char *uid)
{
	for (size_t i = 0; i < w->row->nmembers; i++)
		if (strcmp(w->row->members[i].identity, uid) == 0)
			return (int)i;
	return -1;
}

static void keep_first(struct err *to, const struct err *why)
{
	if (to->kind == ERR_NONE)
		*to = *why;
}

/* Without an agent the pod itself tells that its job has begun, or ended. */
static bool take_sight(struct kube_work *w, const struct doc *pod)
{
	struct driver_row *row = w->row;
	struct driver_sight sight;

	if (kube_work_has_agent(w) || !pod_sight(pod, &sight))
		return false;
	row->sights = xrealloc(row->sights, (row->nsights + 1) * sizeof(*row->sights));
	row->sights[row->nsights++] = sight;
	return true;
}

/* The reason of an eviction is gone with the pod: the cluster says it nowhere else.  An agent that is still heard tells by
 * itself how its job ends: until then its pod is one that is not heard (ERR_TIMEOUT).  Of a preemption there is an
 * event. */
static bool takes_leave(const struct kube_work *w, const struct doc *pod, struct err *why)
{
	struct err said = {0};

	if (!pod_is_leaving(pod, &said))
		return false;
	if (kube_work_has_agent(w)) {
		if (said.kind == ERR_PREEMPTED)
			return false;
		said.kind = ERR_TIMEOUT;
	}
	*why = said;
	return true;
}

/* Kueue has taken its place, and its containers end for no other reason. */
static bool is_displaced(const struct kube_work *w, const struct doc *pod)
{
	return w->turn.evicted.kind != ERR_NONE && *kube_meta(pod, "deletionTimestamp");
}

static int take_pod(void *ctx, const struct doc *pod)
{
	struct look *l = ctx;
	struct pods_summary *sum = l->sum;
	int member = member_of(l->w, kube_meta(pod, "uid"));
	struct pod_state state;

	pod_judge(pod, &state);
	sum->n++;
	bool unheard = pod_is_unheard(pod, &state.why);

	bool displaced = !unheard && is_displaced(l->w, pod);

	if (!unheard && !displaced && take_sight(l->w, pod)) {
		if (member >= 0)
			l->seen[member] = true;
		return 0;
	}
	bool leaves = unheard || (displaced && !kube_work_has_agent(l->w)) ||
		      takes_leave(l->w, pod, &state.why);

	if (member >= 0) {
		l->seen[member] = true;
		l->w->row->members[member].gone = state.life == POD_ENDED || leaves;
		l->w->row->members[member].why = displaced ? l->w->turn.evicted : state.why;
		return 0;
	}
	switch (state.life) {
	case POD_STUCK:
		keep_first(&sum->stuck, &state.why);
		break;
	case POD_ENDED:
		if (sum->ended_unknown++ == 0) {
			sum->ended = state.why;
			snprintf(sum->ended_name, sizeof(sum->ended_name), "%s",
				 kube_meta(pod, "name"));
		}
		break;
	case POD_WAITING:
		keep_first(&sum->waits, &state.why);
		if (!sum->waits_uid[0]) {
			snprintf(sum->waits_uid, sizeof(sum->waits_uid), "%s",
				 kube_meta(pod, "uid"));
			snprintf(sum->waits_name, sizeof(sum->waits_name), "%s",
				 kube_meta(pod, "name"));
		}
		break;
	case POD_RUNNING:
		if (unheard)
			keep_first(&sum->waits, &state.why);
		break;
	}
	return 0;
}

int pods_observe(struct kube_work *w, struct pods_summary *ret, struct err *err)
{
	*ret = (struct pods_summary){0};

	struct look l = {w, ret, arena_array(w->a, bool, w->row->nmembers + 1)};
	const char *role = kube_label(w->object, "regatta/role");
	const char *query = arena_printf(w->a, "labelSelector=regatta%%2Frun%%3D%s%s%s",
					 kube_label(w->object, "regatta/run"),
					 *role ? "%2Cregatta%2Frole%3D" : "", role);

	if (kube_list(w->k, kube_path(w->a, "v1", w->namespace, "pods", NULL), query, "list pods",
		      &w->d, take_pod, &l, err) < 0)
		return -1;
	for (size_t i = 0; i < w->row->nmembers; i++)
		if (!l.seen[i]) {
			w->row->members[i].gone = true;
			w->row->members[i].why = w->turn.evicted;
			if (w->turn.evicted.kind == ERR_NONE)
				events_why_deleted(w, w->row->members[i].identity,
						   &w->row->members[i].why);
		}
	return 0;
}
