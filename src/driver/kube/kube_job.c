/*
 * kube.job - the pods of a role's nodes: an indexed Job, and the Secret of the same name with what their
 * agents must know.  Without agents there is no Secret, and observe tells how the pods stand.
 *
 * Which pod carries which node is settled when its agent enrols, with the pod's uid as identity.  observe
 * tells which of these pods are gone and why, and ends the wait for pods that will never start.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "driver/boot_program.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/kube_log.h"
#include "driver/kube/kube_pods.h"
#include "driver/kube/kube_queue.h"
#include "driver/kube/kube_wait.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

#define HOME "/var/lib/regatta"
#define ENROL "/var/run/regatta/enrol.json"
#define TEXT_MAX 16384

/* ---- the Secret ---- */

static const char *enrolment(const struct kube_work *w)
{
	const struct driver_services *s = w->row->services;
	CLEANUP(buf_release) struct buf json = {0};
	struct jsonw j;

	buf_init(&json, TEXT_MAX);
	jsonw_init(&j, &json);
	jsonw_open(&j, '{');
	jsonw_kz(&j, "run", w->row->run);
	jsonw_kz(&j, "role", kube_label(w->object, "regatta/role"));
	jsonw_kz(&j, "token", w->row->enrol);
	jsonw_key(&j, "urls");
	jsonw_open(&j, '[');
	jsonw_z(&j, s && s->url ? s->url : "");
	jsonw_close(&j);
	jsonw_kz(&j, "pin", s && s->pin ? s->pin : "");
	jsonw_key(&j, "identity");
	jsonw_open(&j, '{');
	jsonw_kz(&j, "from", "pod");
	jsonw_close(&j);
	jsonw_kz(&j, "dir", HOME "/node");
	jsonw_kbool(&j, "own_env", true);
	jsonw_close(&j);
	return arena_str(w->a, buf_str(&json)).p;
}

/* The script that a pod without an init container runs; its image has a shell. */
static const char *script(const struct kube_work *w)
{
	const struct driver_services *s = w->row->services;
	const char *sha256 = doc_str(doc_table(doc_table(w->object, "metadata"), "annotations"),
				     "regatta/program", STR(""))
				     .p;
	CLEANUP(buf_release) struct buf out = {0};

	buf_init(&out, TEXT_MAX);
	buf_addz(&out, "fail() {\n"
		       "	echo \"regatta: $1\" >&2\n"
		       "	echo \"$1\" >/dev/termination-log\n"
		       "	exit 1\n"
		       "}\n"
		       "cd " HOME " || fail 'no directory " HOME "'\n");
	boot_program_put(arena_printf(w->a, "'%s/bin/%s'", s && s->url ? s->url : "", sha256),
			 sha256, &out);
	buf_addz(
		&out,
		"has curl || has wget || has python3 || fail 'the image has none of curl, wget and "
		"python3 to fetch the program with: set agent_image in [kubernetes]'\n"
		"tries=0\n"
		"until [ -x regatta ] || program; do\n"
		"	tries=$((tries + 1))\n"
		"	[ $tries -lt 10 ] || fail \"the program cannot be had from $url\"\n"
		"	sleep 3\n"
		"done >&2\n"
		"exec ./regatta node-agent --enrol " ENROL "\n");
	return arena_str(w->a, buf_str(&out)).p;
}

static void put(struct arena *a, struct doc *d, const char *key, const char *value)
{
	doc_set(a, d, str_from(key), doc_new_str(a, str_from(value)));
}

/* With the metadata of the Job; without content it serves to find and to delete. */
static struct doc *secret_object(const struct kube_work *w, bool content)
{
	struct doc *d = doc_new(w->a, DOC_TABLE), *data = doc_new(w->a, DOC_TABLE);

	put(w->a, d, "apiVersion", "v1");
	put(w->a, d, "kind", "Secret");
	doc_set(w->a, d, STR("metadata"), doc_copy(w->a, doc_table(w->object, "metadata")));
	if (!content)
		return d;
	put(w->a, data, "enrol.json", enrolment(w));
	put(w->a, data, "start", script(w));
	doc_set(w->a, d, STR("stringData"), data);
	return d;
}

/* A Secret that an earlier try has left gets the content of this one. */
static enum outcome make_secret(struct kube_work *w)
{
	const struct doc *secret = secret_object(w, true);
	const char *uid;
	enum outcome o = kube_object_create(w, secret, &uid);
	int status;

	if (o != OUTCOME_DONE)
		return o;
	struct doc *patch = doc_new(w->a, DOC_TABLE);

	doc_set(w->a, patch, STR("stringData"), doc_copy(w->a, doc_table(secret, "stringData")));
	const struct kube_call c = {
		.method = "PATCH",
		.path = arena_printf(w->a, "%s?fieldManager=regatta",
				     kube_kind_path(w, secret, w->name)),
		.what = "change a Secret",
		.body = doc_json_text(w->a, patch),
		.type = KUBE_MERGE,
		.deadline = &w->d,
	};

	if (kube_ask(w->k, &c, w->a, NULL, &status, &w->row->err) < 0)
		return kube_kind_failed(KUBE_CREATE, status, w->row);
	return OUTCOME_DONE;
}

static enum outcome do_create(struct kube_work *w)
{
	enum outcome o = kube_work_has_agent(w) ? make_secret(w) : OUTCOME_DONE;

	return o == OUTCOME_DONE ? kube_kind_create(w) : o;
}

/* Without its Job the Secret is nothing that anybody waits for, but it must go. */
static enum outcome do_find(struct kube_work *w)
{
	enum outcome o = kube_kind_find(w);

	if (o != OUTCOME_ABSENT || !kube_work_has_agent(w))
		return o;
	o = kube_object_delete(w, secret_object(w, false), "");
	return o == OUTCOME_DONE ? OUTCOME_ABSENT : o;
}

static enum outcome do_destroy(struct kube_work *w)
{
	enum outcome o = kube_kind_destroy(w);

	if ((o != OUTCOME_DONE && o != OUTCOME_ABSENT) || !kube_work_has_agent(w))
		return o;
	enum outcome rest = kube_object_delete(w, secret_object(w, false), "");

	return rest == OUTCOME_ABSENT ? o : rest;
}

/* ---- how the pods stand ---- */

static struct pods_wanted wanted_of(const struct doc *job)
{
	const struct doc *spec = doc_table(job, "spec");

	return (struct pods_wanted){
		.n = doc_int(spec, "completions", 0),
		.again = doc_int(spec, "backoffLimitPerIndex", 0) > 0,
		.suspended = doc_bool(spec, "suspend", false),
	};
}

static enum outcome do_observe(struct kube_work *w)
{
	struct doc *job = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_OBSERVE, &job);
	struct pods_summary sum;

	if (o != OUTCOME_DONE)
		return o;
	kube_queue_refresh(w, job);
	if (pods_observe(w, &sum, &w->row->err) < 0)
		return OUTCOME_UNSURE;
	return kube_judge_awaited(w, job, wanted_of(job), &sum);
}

/* ---- without agents ---- */

/* A Job that is suspended ends its pods; those that have ended stay. */
static enum outcome do_stop(struct kube_work *w)
{
	struct doc *job = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_EXTEND, &job);

	if (o != OUTCOME_DONE)
		return o;
	if (kube_queue_has(job))
		return kube_queue_stop(w, job);
	return kube_object_patch(w, "suspend a Job", "{\"spec\":{\"suspend\":true}}", KUBE_EXTEND);
}

static enum outcome ask_stop(struct driver_row *row)
{
	return kube_kind_ask(row, KUBE_EXTEND, do_stop);
}

/* ---- its time ---- */

enum outcome kube_job_extend(struct kube_work *w, int64_t more_s)
{
	struct doc *job = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_EXTEND, &job);
	int64_t made_ms = 0;

	if (o != OUTCOME_DONE)
		return o;
	if (!clock_parse(str_from(kube_meta(job, "creationTimestamp")), &made_ms))
		return OUTCOME_UNSURE;
	int64_t seconds = (w->row->expires_ms - made_ms) / 1000 + more_s;

	return kube_object_patch(
		w, "extend a Job",
		arena_printf(w->a, "{\"spec\":{\"activeDeadlineSeconds\":%" PRId64 "}}", seconds),
		KUBE_EXTEND);
}

static enum outcome do_extend(struct kube_work *w)
{
	return kube_job_extend(w, 0);
}

static enum outcome ask_extend(struct driver_row *row)
{
	return kube_kind_ask(row, KUBE_EXTEND, do_extend);
}

KUBE_DRIVER(kube_job_driver, "kube.job", do_create, do_find, do_observe, ask_extend, do_destroy,
	    .stop = ask_stop, .log_open = kube_log_open, .log_read = kube_log_read,
	    .log_at = kube_log_at, .log_gap = kube_log_gap, .log_free = kube_log_free, );
