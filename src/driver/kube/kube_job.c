/*
 * kube.job - the pods of a role's nodes: an indexed Job, and the Secret of the same name with what their
 * agents must know.
 *
 * Which pod carries which node is settled when its agent enrols, with the pod's uid as identity.  observe
 * tells which of these pods are gone and why, and ends the wait for pods that will never start.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "driver/boot_program.h"
#include "driver/kube/kube_events.h"
#include "driver/kube/kube_kind.h"
#include "driver/kube/kube_pods.h"
#include "driver/kube/object.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

#define HOME "/var/lib/regatta"
#define ENROL "/var/run/regatta/enrol.json"
#define TEXT_MAX 16384
#define LOG_MAX 600
#define MOST_FAILED 3 /* pods that end before their agents speak, where others take their place */

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
	enum outcome o = make_secret(w);

	return o == OUTCOME_DONE ? kube_kind_create(w) : o;
}

/* Without its Job the Secret is nothing that anybody waits for, but it must go. */
static enum outcome do_find(struct kube_work *w)
{
	enum outcome o = kube_kind_find(w);

	if (o != OUTCOME_ABSENT)
		return o;
	o = kube_object_delete(w, secret_object(w, false), "");
	return o == OUTCOME_DONE ? OUTCOME_ABSENT : o;
}

static enum outcome do_destroy(struct kube_work *w)
{
	enum outcome o = kube_kind_destroy(w);

	if (o != OUTCOME_DONE && o != OUTCOME_ABSENT)
		return o;
	enum outcome rest = kube_object_delete(w, secret_object(w, false), "");

	return rest == OUTCOME_ABSENT ? o : rest;
}

/* ---- how the pods stand ---- */

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
	struct str text = str_trim(buf_str(&log));

	for (size_t i = 0; i < log.n; i++)
		if (log.p[i] == '\n')
			log.p[i] = ' ';
	if (text.n > 0)
		err_set(why, why->kind, "%.140s; its log: %.*s", why->msg, STR_ARG(text));
}

/* Nobody else will carry the nodes that wait: they are lost, and the reason is said. */
static enum outcome given_up(struct kube_work *w, const struct err *why)
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

/* Pods whose agents have not spoken. */
static enum outcome judge_awaited(struct kube_work *w, const struct doc *job,
				  struct pods_summary *sum)
{
	int64_t wanted = doc_int(doc_table(job, "spec"), "completions", 0);
	int64_t again = doc_int(doc_table(job, "spec"), "backoffLimitPerIndex", 0);
	struct err said = {0};

	if (sum->stuck.kind != ERR_NONE)
		return given_up(w, &sum->stuck);
	if (sum->ended_unknown > 0 &&
	    (again == 0 || (w->row->nmembers == 0 && sum->ended_unknown >= MOST_FAILED))) {
		if (sum->ended.kind == ERR_NONE)
			err_set(&sum->ended, ERR_UNAVAILABLE, "pod %.60s ended without a word",
				sum->ended_name);
		add_log(w, sum->ended_name, &sum->ended);
		return given_up(w, &sum->ended);
	}
	if (sum->n < wanted && !doc_bool(doc_table(job, "spec"), "suspend", false)) {
		events_last_warning(w, kube_meta(job, "uid"), &said);
		if (said.kind == ERR_QUOTA || said.kind == ERR_DENIED)
			return given_up(w, &said);
	} else if (sum->waits_uid[0] && sum->waits.kind == ERR_NONE) {
		events_last_warning(w, sum->waits_uid, &said);
		if (said.kind != ERR_NONE)
			err_set(&sum->waits, said.kind, "pod %.60s: %.170s", sum->waits_name,
				said.msg);
		if (said.kind == ERR_INVALID)
			return given_up(w, &sum->waits);
	}
	return waits(w, sum->waits.kind != ERR_NONE ? &sum->waits : &said);
}

static enum outcome do_observe(struct kube_work *w)
{
	struct doc *job = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_OBSERVE, &job);
	struct pods_summary sum;

	if (o != OUTCOME_DONE)
		return o;
	if (pods_observe(w, &sum, &w->row->err) < 0)
		return OUTCOME_UNSURE;
	return judge_awaited(w, job, &sum);
}

/* ---- its time ---- */

static enum outcome do_extend(struct kube_work *w)
{
	struct doc *job = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_EXTEND, &job);
	int64_t made_ms = 0;
	int status;

	if (o != OUTCOME_DONE)
		return o;
	if (!clock_parse(str_from(kube_meta(job, "creationTimestamp")), &made_ms))
		return OUTCOME_UNSURE;
	const struct kube_call c = {
		.method = "PATCH",
		.path = arena_printf(w->a, "%s?fieldManager=regatta",
				     kube_kind_path(w, w->object, w->name)),
		.what = "extend a Job",
		.body = arena_printf(w->a, "{\"spec\":{\"activeDeadlineSeconds\":%lld}}",
				     (long long)((w->row->expires_ms - made_ms) / 1000)),
		.type = KUBE_MERGE,
		.deadline = &w->d,
	};

	return kube_ask(w->k, &c, w->a, NULL, &status, &w->row->err) < 0
		       ? kube_kind_failed(KUBE_EXTEND, status, w->row)
		       : OUTCOME_DONE;
}

static enum outcome ask_extend(struct driver_row *row)
{
	return kube_kind_ask(row, KUBE_EXTEND, do_extend);
}

KUBE_DRIVER(kube_job_driver, "kube.job", do_create, do_find, do_observe, ask_extend, do_destroy);
