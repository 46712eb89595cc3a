#include "driver/kube/kube_kind.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "driver/kube/object.h"
#include "driver/object_store.h"
#include "fmt/doc.h"
#include "link/layout.h"

#define GONE_MS 4000 /* so long a delete waits for the end of what it deletes */
#define LOOK_MS 200

/* ---- the beginning of a call ---- */

/* A master in the cluster has those of its account, and gets others only for the stores of the run. */
static bool has_access(const struct kube_work *w)
{
	struct doc *d = NULL;

	if (!w->row->credentials || json_parse(str_from(w->row->credentials), w->a, &d, NULL) < 0)
		return w->row->credentials != NULL;
	return doc_get(d, "server") || !doc_get(d, OBJECT_CREDENTIALS);
}

static int read_access(struct kube_work *w, struct err *err)
{
	const struct env_lookup own = {0};

	if (has_access(w))
		return access_from_json(w->row->credentials, &w->d, w->a, &w->access, err);
	return access_in_cluster(&own, w->a, &w->access, err);
}

/* The run whose root it is that owns what the row's run makes: that which carries it, or itself. */
static const char *run_of_root(const struct kube_work *w)
{
	struct str carrier = layout_carrier_of(str_from(w->row->run));

	return carrier.n ? arena_str(w->a, carrier).p : w->row->run;
}

/* The uid of the root, if the row needs it. */
static void own_object(struct kube_work *w)
{
	for (size_t i = 0; i < w->row->nneeds; i++)
		if (strcmp(w->row->needs[i].kind, "kube.root") == 0)
			kube_object_own(w->object, run_of_root(w), w->row->needs[i].id, w->a);
}

int kube_work_open(struct driver_row *row, struct kube_work *ret, struct err *err)
{
	struct kube_work w = {
		.a = arena_new(),
		.row = row,
		.d = row->deadline ? *row->deadline : deadline_in(-1, NULL),
	};

	if (json_parse(str_from(row->spec), w.a, &w.object, err) < 0) {
		err_wrap(err, "the spec of %s '%s'", row->kind, row->name);
		goto bad;
	}
	bool is_root = strcmp(row->kind, "kube.root") == 0;

	kube_object_fill(w.object, is_root ? run_of_root(&w) : row->run, row->install, w.a);
	if (read_access(&w, err) < 0)
		goto bad;
	own_object(&w);
	w.name = kube_meta(w.object, "name");
	w.namespace = kube_meta(w.object, "namespace");
	if (!*w.namespace)
		w.namespace = w.access.namespace;
	*ret = w;
	if (kube_open(&ret->access, &ret->k, err) == 0)
		return 0;
bad:
	arena_free(w.a);
	return -1;
}

void kube_work_close(struct kube_work *w)
{
	w->k = kube_free(w->k);
	w->a = arena_free(w->a);
}

bool kube_work_has_agent(const struct kube_work *w)
{
	const struct doc *notes = doc_table(doc_table(w->object, "metadata"), "annotations");

	return doc_str(notes, "regatta/program", STR("")).n > 0;
}

enum outcome kube_kind_ask(struct driver_row *row, enum kube_question question, kube_kind_fn *fn)
{
	struct kube_work w;
	enum outcome outcome;

	if (kube_work_open(row, &w, &row->err) < 0)
		return question == KUBE_CREATE ? OUTCOME_REFUSED : OUTCOME_UNSURE;
	row->identity_checked = true;
	outcome = fn(&w);
	kube_work_close(&w);
	return outcome;
}

const char *kube_kind_path(const struct kube_work *w, const struct doc *object, const char *name)
{
	const char *resource = kube_resource_of(doc_str(object, "kind", STR("")).p);

	return kube_path(w->a, doc_str(object, "apiVersion", STR("v1")).p, w->namespace,
			 resource ? resource : "", name);
}

static const char *what(const struct kube_work *w, const char *verb, const struct doc *object)
{
	return arena_printf(w->a, "%s %s %s", verb, doc_str(object, "kind", STR("")).p,
			    kube_meta(object, "name"));
}

enum outcome kube_kind_failed(enum kube_question question, int status, struct driver_row *row)
{
	if (status == 0 || status >= 500 || status == 429)
		return OUTCOME_UNSURE;
	if (status == 404 && question != KUBE_CREATE)
		return OUTCOME_ABSENT;
	switch (question) {
	case KUBE_CREATE:
		return OUTCOME_REFUSED;
	case KUBE_DESTROY:
		return OUTCOME_HELD;
	case KUBE_FIND:
	case KUBE_OBSERVE:
	case KUBE_EXTEND:
		break;
	}
	(void)row;
	return OUTCOME_UNSURE;
}

/* ---- one object ---- */

static bool is_ours(const struct kube_work *w, const struct doc *found)
{
	return strcmp(kube_label(found, "regatta/install"),
		      kube_label(w->object, "regatta/install")) == 0 &&
	       strcmp(kube_label(found, "regatta/run"), kube_label(w->object, "regatta/run")) == 0;
}

/* A uid is of one object for ever, whatever somebody has made of its labels; without one these tell whose it is. */
static bool is_the_one(const struct kube_work *w, const struct doc *found, const char *uid)
{
	return *uid ? strcmp(uid, kube_meta(found, "uid")) == 0 : is_ours(w, found);
}

static bool is_ending(const struct doc *found)
{
	return *kube_meta(found, "deletionTimestamp") != '\0';
}

/* Whatever the API server makes or shows has a uid. */
static int check_object(struct kube_work *w, const struct doc *answer, const char *what_for)
{
	if (*kube_meta(answer, "uid"))
		return 0;
	return err_set(&w->row->err, ERR_PROTOCOL, "%s: what answers at %.80s is no Kubernetes API",
		       what_for, w->access.server);
}

static int get(struct kube_work *w, const struct doc *object, struct doc **ret, int *ret_status)
{
	const struct kube_call c = {
		.method = "GET",
		.path = kube_kind_path(w, object, kube_meta(object, "name")),
		.what = what(w, "get", object),
		.deadline = &w->d,
	};

	if (kube_ask(w->k, &c, w->a, ret, ret_status, &w->row->err) < 0)
		return -1;
	*ret_status = 0;
	return check_object(w, *ret, c.what);
}

/* The name is taken: by the same create, sent before, or by somebody else. */
static enum outcome adopt(struct kube_work *w, const struct doc *object, const char **ret_uid)
{
	struct doc *found = NULL;
	int status;

	if (get(w, object, &found, &status) < 0)
		return OUTCOME_UNSURE;
	if (!is_ours(w, found)) {
		err_set(&w->row->err, ERR_CONFLICT,
			"%s %s in namespace %s exists and is not of this run: it is not touched",
			doc_str(object, "kind", STR("")).p, kube_meta(object, "name"),
			w->namespace);
		return OUTCOME_REFUSED;
	}
	if (is_ending(found)) {
		err_set(&w->row->err, ERR_UNAVAILABLE, "%s %s is still being deleted",
			doc_str(object, "kind", STR("")).p, kube_meta(object, "name"));
		return OUTCOME_REFUSED;
	}
	*ret_uid = arena_strdup(w->a, kube_meta(found, "uid"));
	return OUTCOME_DONE;
}

enum outcome kube_object_create(struct kube_work *w, const struct doc *object, const char **ret_uid)
{
	struct kube_call c = {
		.method = "POST",
		.path = arena_printf(w->a, "%s?fieldManager=regatta",
				     kube_kind_path(w, object, NULL)),
		.what = what(w, "create", object),
		.body = doc_json_text(w->a, object),
		.deadline = &w->d,
	};
	struct doc *made = NULL;
	int status;

	if (kube_ask(w->k, &c, w->a, &made, &status, &w->row->err) == 0) {
		if (check_object(w, made, c.what) < 0)
			return OUTCOME_UNSURE;
		*ret_uid = arena_strdup(w->a, kube_meta(made, "uid"));
		return OUTCOME_DONE;
	}
	if (status == 409)
		return adopt(w, object, ret_uid);
	return kube_kind_failed(KUBE_CREATE, status, w->row);
}

enum outcome kube_object_patch(struct kube_work *w, const char *what_for, const char *body,
			       enum kube_question question)
{
	const struct kube_call c = {
		.method = "PATCH",
		.path = arena_printf(w->a, "%s?fieldManager=regatta",
				     kube_kind_path(w, w->object, w->name)),
		.what = what_for,
		.body = body,
		.type = KUBE_MERGE,
		.deadline = &w->d,
	};
	int status;

	return kube_ask(w->k, &c, w->a, NULL, &status, &w->row->err) < 0
		       ? kube_kind_failed(question, status, w->row)
		       : OUTCOME_DONE;
}

static enum outcome absent(struct kube_work *w, const struct doc *object)
{
	err_set(&w->row->err, ERR_NOT_FOUND, "%s %s is not there",
		doc_str(object, "kind", STR("")).p, kube_meta(object, "name"));
	return OUTCOME_ABSENT;
}

enum outcome kube_object_find(struct kube_work *w, const struct doc *object, const char *uid,
			      enum kube_question question, struct doc **ret_found)
{
	struct doc *found = NULL;
	int status;

	if (get(w, object, &found, &status) < 0)
		return kube_kind_failed(question, status, w->row);
	if (!is_the_one(w, found, uid))
		return absent(w, object);
	if (ret_found)
		*ret_found = found;
	return OUTCOME_DONE;
}

/* Until the object is gone, or GONE_MS is over. */
static enum outcome await_end(struct kube_work *w, const struct doc *object, const char *uid)
{
	struct deadline soon = deadline_within(&w->d, GONE_MS);

	/* The pods of a large Job take a while: looks become rarer. */
	for (int64_t pause_ms = LOOK_MS;; pause_ms *= 3) {
		enum outcome o = kube_object_find(w, object, uid, KUBE_DESTROY, NULL);
		int64_t left_ms = deadline_left_ms(&soon);

		if (o == OUTCOME_ABSENT)
			return OUTCOME_DONE;
		if (o != OUTCOME_DONE)
			return o;
		if (kube_nap(&w->d, pause_ms < left_ms ? pause_ms : left_ms, "a delete",
			     &w->row->err) < 0 ||
		    deadline_left_ms(&soon) == 0)
			break;
	}
	err_set(&w->row->err, ERR_UNAVAILABLE, "%s %s is being deleted",
		doc_str(object, "kind", STR("")).p, kube_meta(object, "name"));
	return OUTCOME_HELD;
}

enum outcome kube_object_delete(struct kube_work *w, const struct doc *object, const char *uid)
{
	struct doc *found = NULL;
	enum outcome o = kube_object_find(w, object, uid, KUBE_DESTROY, &found);
	int status;

	if (o != OUTCOME_DONE)
		return o;
	const struct kube_call c = {
		.method = "DELETE",
		.path = kube_kind_path(w, object, kube_meta(object, "name")),
		.what = what(w, "delete", object),
		.body = kube_delete_body(w->a, kube_meta(found, "uid")),
		.deadline = &w->d,
	};

	if (!is_ending(found) && kube_ask(w->k, &c, w->a, NULL, &status, &w->row->err) < 0 &&
	    status != 404)
		return status == 409 ? OUTCOME_UNSURE
				     : kube_kind_failed(KUBE_DESTROY, status, w->row);
	return await_end(w, object, kube_meta(found, "uid"));
}

/* ---- a kind that is one object ---- */

static enum outcome with_id(struct kube_work *w, enum outcome o, const char *uid)
{
	if (o == OUTCOME_DONE)
		snprintf(w->row->id, sizeof(w->row->id), "%s", uid);
	return o;
}

enum outcome kube_kind_create(struct kube_work *w)
{
	const char *uid = "";
	enum outcome o = kube_object_create(w, w->object, &uid);

	return with_id(w, o, uid);
}

enum outcome kube_kind_find(struct kube_work *w)
{
	struct doc *found = NULL;
	enum outcome o = kube_object_find(w, w->object, w->row->id, KUBE_FIND, &found);

	return with_id(w, o, o == OUTCOME_DONE ? kube_meta(found, "uid") : "");
}

enum outcome kube_kind_observe(struct kube_work *w)
{
	return kube_object_find(w, w->object, w->row->id, KUBE_OBSERVE, NULL);
}

enum outcome kube_kind_destroy(struct kube_work *w)
{
	return kube_object_delete(w, w->object, w->row->id);
}
