#pragma once
/*
 * kube_kind - what the drivers of Kubernetes objects have in common: how a call begins, what an error
 * means, whose an object is, and create, find, observe and destroy of one object.
 *
 * The id of a row is the uid of its object: another object of the same name is never touched.
 */
#include "base/arena.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/driver.h"
#include "driver/kube/api/kube.h"

enum kube_question { KUBE_CREATE, KUBE_FIND, KUBE_OBSERVE, KUBE_EXTEND, KUBE_DESTROY };

/* What Kueue says of an object in one of its queues. */
struct kube_turn {
	char workload[256]; /* the name of its Workload; "": there is none */
	struct err waits;   /* why it has not its turn; ERR_NONE: it says nothing */
	struct err evicted; /* why it has it no more, or had not; ERR_NONE: it never lost it */
	bool never;	    /* there is no such queue */
};

/* What a call of a driver works with. */
struct kube_work {
	struct kube_client *k;
	struct arena *a; /* of this call */
	struct kube_access access;
	struct driver_row *row;
	struct doc *object; /* the spec, with run, install and owner put in */
	const char *namespace, *name;
	struct deadline d;
	struct kube_turn turn; /* of kube_queue_refresh() */
};

/* A question about a row. */
typedef enum outcome kube_kind_fn(struct kube_work *w);
/* Reads spec and credentials, sets identity_checked, asks. */
/* Do its pods run the agent? */
bool kube_work_has_agent(const struct kube_work *w);
enum outcome kube_kind_ask(struct driver_row *row, enum kube_question question, kube_kind_fn *fn);
int kube_work_open(struct driver_row *row, struct kube_work *ret, struct err *err);
void kube_work_close(struct kube_work *w);

/* The path of an object of the row's namespace; name NULL: of all. */
const char *kube_kind_path(const struct kube_work *w, const struct doc *object, const char *name);
/* What a failed call means for the question. */
enum outcome kube_kind_failed(enum kube_question question, int status, struct driver_row *row);

/* Creates an object, or adopts the one of its name if it is of this run.  *ret_uid is of the arena. */
enum outcome kube_object_create(struct kube_work *w, const struct doc *object,
				const char **ret_uid);
/* GET; ABSENT also if another object has the name.  *ret_found may be NULL. */
enum outcome kube_object_find(struct kube_work *w, const struct doc *object, const char *uid,
			      enum kube_question question, struct doc **ret_found);
/* Deletes it with all that it owns, and waits a moment for its end.  uid "": that of the row's run. */
enum outcome kube_object_delete(struct kube_work *w, const struct doc *object, const char *uid);

/* Changes the row's object by a JSON merge. */
enum outcome kube_object_patch(struct kube_work *w, const char *what, const char *body,
			       enum kube_question question);

/* The four questions of a kind that is one object. */
enum outcome kube_kind_create(struct kube_work *w);
enum outcome kube_kind_find(struct kube_work *w);
enum outcome kube_kind_observe(struct kube_work *w);
enum outcome kube_kind_destroy(struct kube_work *w);

/* Moves the end of the row's Job to so many seconds after expires_ms. */
enum outcome kube_job_extend(struct kube_work *w, int64_t more_s);

/* A driver made of do_create, do_find, do_observe and do_destroy. */
#define KUBE_DRIVER(driver_, kind_, create_, find_, observe_, extend_, destroy_, ...)              \
	static enum outcome ask_create(struct driver_row *row)                                     \
	{                                                                                          \
		return kube_kind_ask(row, KUBE_CREATE, create_);                                   \
	}                                                                                          \
	static enum outcome ask_find(struct driver_row *row)                                       \
	{                                                                                          \
		return kube_kind_ask(row, KUBE_FIND, find_);                                       \
	}                                                                                          \
	static enum outcome ask_observe(struct driver_row *row)                                    \
	{                                                                                          \
		return kube_kind_ask(row, KUBE_OBSERVE, observe_);                                 \
	}                                                                                          \
	static enum outcome ask_destroy(struct driver_row *row)                                    \
	{                                                                                          \
		return kube_kind_ask(row, KUBE_DESTROY, destroy_);                                 \
	}                                                                                          \
	const struct driver driver_ = {.kind = (kind_),                                            \
				       .pool = "kube",                                             \
				       .create = ask_create,                                       \
				       .find = ask_find,                                           \
				       .observe = ask_observe,                                     \
				       .extend = (extend_),                                        \
				       .destroy = ask_destroy,                                     \
				       __VA_ARGS__}
