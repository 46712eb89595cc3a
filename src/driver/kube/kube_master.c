/*
 * kube.master - the master that a run is handed to: a Job of one pod, the Service under which it is reached, and the
 * Secret of what it must know: its key, its token and its URL.  All three have one name.
 *
 * reach gives a URL that goes through the API server (kube_way.h), for whoever handed the run over; the agents of the
 * run dial the address of the Service.  The master ends its own machine by deleting the root of the run, which owns
 * everything, its own pod as well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "driver/engine_tools.h"
#include "driver/kube/kube_events.h"
#include "driver/kube/kube_gc.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/kube_pods.h"
#include "driver/kube/kube_queue.h"
#include "driver/kube/kube_way.h"
#include "driver/kube/object.h"
#include "driver/master_identity.h"
#include "fmt/doc.h"

#define HOME "/var/lib/regatta"
#define PROGRAM "/var/run/regatta-program"
#define KEY_MAX 1024
#define MOST_RESTARTS 3 /* of a pod that does not answer */

static void put(struct arena *a, struct doc *d, const char *key, const char *value)
{
	doc_set(a, d, str_from(key), doc_new_str(a, str_from(value)));
}

/* With the metadata of the Job. */
static struct doc *beside(const struct kube_work *w, const char *kind)
{
	struct doc *d = doc_new(w->a, DOC_TABLE);

	put(w->a, d, "apiVersion", "v1");
	put(w->a, d, "kind", kind);
	doc_set(w->a, d, STR("metadata"), doc_copy(w->a, doc_table(w->object, "metadata")));
	return d;
}

/* ---- the Service ---- */

static struct doc *service_object(const struct kube_work *w)
{
	struct doc *d = beside(w, "Service"), *spec = NULL;
	const char *json =
		arena_printf(w->a,
			     "{\"ports\":[{\"name\":\"master\",\"port\":%d}],\"selector\":"
			     "{\"regatta/run\":\"%s\",\"regatta/role\":\"%s\"}}",
			     KUBE_WAY_PORT, kube_label(w->object, "regatta/run"),
			     kube_label(w->object, "regatta/role"));

	(void)json_parse(str_from(json), w->a, &spec, NULL);
	doc_set(w->a, d, STR("spec"), spec);
	return d;
}

/* *ret_url: for the agents of the run, by address: names are not resolved in every pod. */
static enum outcome make_service(struct kube_work *w, const char **ret_url)
{
	struct doc *service = service_object(w), *made = NULL;
	const char *uid = "";
	enum outcome o = kube_object_create(w, service, &uid);

	if (o == OUTCOME_DONE)
		o = kube_object_find(w, service, uid, KUBE_OBSERVE, &made);
	if (o != OUTCOME_DONE)
		return o == OUTCOME_ABSENT ? OUTCOME_UNSURE : o;
	const char *address = doc_str(doc_table(made, "spec"), "clusterIP", STR("")).p;
	bool v6 = strchr(address, ':') != NULL;

	*ret_url = arena_printf(w->a, "https://%s%s%s:%d", v6 ? "[" : "", address, v6 ? "]" : "",
				KUBE_WAY_PORT);
	return OUTCOME_DONE;
}

/* ---- the Secret ---- */

/* The script of a pod whose image is the job's: it has a shell, and the program in parts. */
static const char *script(const struct kube_work *w)
{
	const char *sum = doc_str(doc_table(doc_table(w->object, "metadata"), "annotations"),
				  "regatta/program", STR(""))
				  .p;

	return arena_printf(
		w->a,
		"fail() {\n"
		"	echo \"regatta: $1\" >&2\n"
		"	echo \"$1\" >/dev/termination-log\n"
		"	exit 1\n"
		"}\n"
		"cd " HOME " || fail 'no directory " HOME "'\n"
		"is_program() {\n"
		"	! command -v sha256sum >/dev/null || echo \"%s  $1\" | sha256sum -c - >/dev/null\n"
		"}\n"
		"[ -x regatta ] && is_program regatta || {\n"
		"	cat " PROGRAM
		"/part-* >new && is_program new && chmod 755 new && mv new regatta\n"
		"} || fail 'the program cannot be put together from its ConfigMaps'\n"
		"exec ./regatta master --listen 0.0.0.0:%d\n",
		sum, KUBE_WAY_PORT);
}

static enum outcome make_secret(struct kube_work *w, const char *url)
{
	CLEANUP(buf_release) struct buf pem = {0};
	struct doc *secret = beside(w, "Secret"), *data = doc_new(w->a, DOC_TABLE);
	struct driver_master own;
	const char *uid;

	buf_init(&pem, KEY_MAX);
	if (master_identity(w->row, &own, &pem, &w->row->err) < 0)
		return OUTCOME_REFUSED;
	put(w->a, data, "token", own.token);
	put(w->a, data, "tls.key", arena_str(w->a, buf_str(&pem)).p);
	put(w->a, data, "url", url);
	put(w->a, data, "start", script(w));
	doc_set(w->a, secret, STR("stringData"), data);
	return kube_object_create(w, secret, &uid);
}

/* ---- the questions ---- */

static enum outcome do_create(struct kube_work *w)
{
	const char *url = "";
	enum outcome o = make_service(w, &url);

	if (o == OUTCOME_DONE)
		o = make_secret(w, url);
	return o == OUTCOME_DONE ? kube_kind_create(w) : o;
}

/* DONE: Service and Secret are gone. */
static enum outcome remove_rest(struct kube_work *w)
{
	static const char *const kinds[] = {"Service", "Secret"};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		enum outcome o = kube_object_delete(w, beside(w, kinds[i]), "");

		if (o != OUTCOME_DONE && o != OUTCOME_ABSENT)
			return o;
	}
	return OUTCOME_DONE;
}

static enum outcome do_find(struct kube_work *w)
{
	enum outcome o = kube_kind_find(w);

	if (o != OUTCOME_ABSENT)
		return o;
	o = remove_rest(w);
	return o == OUTCOME_DONE ? OUTCOME_ABSENT : o;
}

/* The master itself asks: nobody is left to look whether all is gone. */
static bool is_own_machine(const struct kube_work *w)
{
	const char *own = getenv("REGATTA_OWN_MACHINE");

	return own && strcmp(own, w->name) == 0;
}

static enum outcome delete_root(struct kube_work *w)
{
	const char *uid = "";
	int status = 0;

	for (size_t i = 0; i < w->row->nneeds; i++)
		if (strcmp(w->row->needs[i].kind, "kube.root") == 0)
			uid = w->row->needs[i].id;
	const struct kube_call c = {
		.method = "DELETE",
		.path = kube_path(w->a, "v1", w->namespace, "configmaps",
				  kube_label(w->object, "regatta/run")),
		.what = "delete the root of this run",
		.body = arena_printf(w->a,
				     "{\"apiVersion\":\"v1\",\"kind\":\"DeleteOptions\","
				     "\"propagationPolicy\":\"Background\","
				     "\"preconditions\":{\"uid\":\"%s\"}}",
				     uid),
		.deadline = &w->d,
	};

	if (kube_ask(w->k, &c, w->a, NULL, &status, &w->row->err) < 0 && status != 404)
		return kube_kind_failed(KUBE_DESTROY, status, w->row);
	err_set(&w->row->err, ERR_UNAVAILABLE, "this master is being removed");
	return OUTCOME_HELD;
}

static enum outcome do_destroy(struct kube_work *w)
{
	if (is_own_machine(w))
		return delete_root(w);
	enum outcome o = kube_kind_destroy(w);

	if (o != OUTCOME_DONE && o != OUTCOME_ABSENT)
		return o;
	enum outcome rest = remove_rest(w);

	return rest == OUTCOME_DONE ? o : rest;
}

/* ---- how its pod stands ---- */

struct master_pods {
	int n;
	struct err stuck, waits;
	char waits_uid[64];
};

/* A container that is started again and again will not answer. */
static bool is_crashing(const struct doc *pod, struct err *why)
{
	const struct doc *all = doc_array(doc_table(pod, "status"), "containerStatuses");
	const struct doc *one = all && all->array.n ? all->array.v[0] : NULL;
	const struct doc *last = doc_table(doc_table(one, "lastState"), "terminated");
	struct str said = str_trim(doc_str(last, "message", STR("")));

	if (doc_int(one, "restartCount", 0) < MOST_RESTARTS ||
	    !doc_table(doc_table(one, "state"), "waiting"))
		return false;
	err_set(why, ERR_UNAVAILABLE,
		"the master's pod %.60s ends as soon as it starts, with %d%s%.*s",
		kube_meta(pod, "name"), (int)doc_int(last, "exitCode", 0), said.n ? ": " : "",
		STR_ARG(said));
	return true;
}

static int take_pod(void *ctx, const struct doc *pod)
{
	struct master_pods *p = ctx;
	struct pod_state state;

	pod_judge(pod, &state);
	p->n++;
	if (state.life == POD_STUCK)
		p->stuck = state.why;
	else if (state.life == POD_RUNNING)
		(void)is_crashing(pod, &p->stuck);
	else if (state.life == POD_WAITING) {
		p->waits = state.why;
		snprintf(p->waits_uid, sizeof(p->waits_uid), "%s", kube_meta(pod, "uid"));
	}
	return 0;
}

static enum outcome given_up(struct kube_work *w, const struct err *why)
{
	w->row->err = *why;
	w->row->ended = true;
	return OUTCOME_ABSENT;
}

/* Has the Job ended, and why? */
static bool has_ended(const struct doc *job, struct err *why)
{
	const struct doc *all = doc_array(doc_table(job, "status"), "conditions");

	for (size_t i = 0; all && i < all->array.n; i++) {
		const struct doc *c = all->array.v[i];
		struct str type = doc_str(c, "type", STR(""));

		if (!str_is(doc_str(c, "status", STR("")), "True") ||
		    (!str_is(type, "Failed") && !str_is(type, "Complete")))
			continue;
		err_set(why, ERR_UNAVAILABLE, "the master's Job has ended: %.*s %.*s",
			STR_ARG(doc_str(c, "reason", type)),
			STR_ARG(doc_str(c, "message", STR(""))));
		return true;
	}
	return false;
}

/* What a pod that waits, or that is not made, waits for, in the words of an event. */
static enum outcome judge_waiting(struct kube_work *w, const struct doc *job, struct master_pods *p)
{
	struct err said = {0};

	kube_queue_refresh(w, job);
	if (doc_bool(doc_table(job, "spec"), "suspend", false))
		return kube_queue_judge(w, job);
	if (p->n == 0 || (p->waits_uid[0] && p->waits.kind == ERR_NONE))
		events_last_warning(w, p->n == 0 ? kube_meta(job, "uid") : p->waits_uid, &said);
	if (said.kind == ERR_QUOTA || said.kind == ERR_DENIED || said.kind == ERR_INVALID)
		return given_up(w, &said);
	const struct err *why = p->waits.kind != ERR_NONE ? &p->waits : &said;

	if (why->kind == ERR_NONE)
		return OUTCOME_DONE;
	w->row->err = *why;
	return OUTCOME_HELD;
}

static enum outcome do_observe(struct kube_work *w)
{
	const char *query = arena_printf(
		w->a, "labelSelector=regatta%%2Frun%%3D%s%%2Cregatta%%2Frole%%3D%s",
		kube_label(w->object, "regatta/run"), kube_label(w->object, "regatta/role"));
	struct doc *job = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_OBSERVE, &job);
	struct master_pods p = {0};
	struct err why = {0};

	if (o != OUTCOME_DONE)
		return o;
	if (has_ended(job, &why))
		return given_up(w, &why);
	if (kube_list(w->k, kube_path(w->a, "v1", w->namespace, "pods", NULL), query, "list pods",
		      &w->d, take_pod, &p, &w->row->err) < 0)
		return OUTCOME_UNSURE;
	return p.stuck.kind != ERR_NONE ? given_up(w, &p.stuck) : judge_waiting(w, job, &p);
}

/* It stays until its results are fetched, and no longer than they are kept. */
static enum outcome do_extend(struct kube_work *w)
{
	int64_t kept_s = 0;

	(void)str_to_i64(doc_str(doc_table(doc_table(w->object, "metadata"), "annotations"),
				 "regatta/kept", STR("")),
			 &kept_s);
	return kube_job_extend(w, kept_s);
}

/* ---- the master on it ---- */

static int reach(struct driver_row *row, struct driver_master *ret)
{
	struct kube_work w;

	if (master_identity(row, ret, NULL, &row->err) < 0 ||
	    kube_work_open(row, &w, &row->err) < 0)
		return -1;
	kube_way_url(ret->url, sizeof(ret->url), w.namespace, w.name, KUBE_WAY_PORT,
		     w.access.context);
	kube_work_close(&w);
	return 0;
}

/* Removes all that carries the labels of the row's run. */
static enum outcome do_sweep(struct kube_work *w)
{
	struct driver_row *row = w->row;
	const struct collect_input in = {.region = w->namespace,
					 .install = row->install,
					 .run = kube_label(w->object, "regatta/run"),
					 .credentials = row->credentials,
					 .stop = w->d.stop};
	struct collection all = {0};

	if (kube_gc(&in, w->a, &all, &row->err) < 0)
		return OUTCOME_UNSURE;
	for (size_t i = 0; i < all.n; i++)
		if (all.v[i].state == LEFTOVER_FOUND) {
			err_set(&row->err, ERR_UNAVAILABLE, "%s %s of the run is left: %s",
				all.v[i].kind, all.v[i].id,
				all.v[i].why ? all.v[i].why : "it is being deleted");
			return OUTCOME_HELD;
		}
	return OUTCOME_DONE;
}

#define ASK(name_, question_, fn_)                                                                 \
	static enum outcome name_(struct driver_row *row)                                          \
	{                                                                                          \
		return kube_kind_ask(row, question_, fn_);                                         \
	}
ASK(create, KUBE_CREATE, do_create)
ASK(find, KUBE_FIND, do_find)
ASK(observe, KUBE_OBSERVE, do_observe)
ASK(extend, KUBE_EXTEND, do_extend)
ASK(destroy, KUBE_DESTROY, do_destroy)
ASK(sweep, KUBE_DESTROY, do_sweep)

const struct driver kube_master_driver = {
	.kind = "kube.master",
	.pool = "kube",
	.create = create,
	.find = find,
	.observe = observe,
	.extend = extend,
	.destroy = destroy,
	.reach = reach,
	.sweep = sweep,
};
