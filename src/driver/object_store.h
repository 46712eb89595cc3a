#pragma once
/*
 * object_store - files in a store of objects, which is known by its URL: "s3://bucket/results/".
 *
 *	struct object_access who = {.credentials = lr->credentials, .own = true};
 *	struct object_store *st;
 *
 *	if (object_store_open("s3://bucket/results/", &who, deadline, &st, err) < 0)
 *		return -1;
 *	object_put_file(st, "run-1/summary.json", fd, size, NULL, deadline, err);
 *	object_list(st, "run-1/", deadline, each, ctx, err);
 *	st = object_store_free(st);
 *
 * Names are put behind the URL as they are; "" is what the URL itself names.  The schemes are a table
 * (object_store.c), and nobody else knows one.  Calls block until their deadline, try again what may
 * pass, and have the kinds of errors of aws.h: ERR_NOT_FOUND, ERR_DENIED, ERR_INVALID (it is in another
 * region), ERR_UNAVAILABLE.  An open store may be used on any thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

struct arena;
struct buf;
struct deadline;
struct doc;
struct err;
struct object_store;

/* Among the credentials of a run whose engine has others: those for its stores. */
#define OBJECT_CREDENTIALS "store"

/* Who asks. */
struct object_access {
	/* JSON, as in driver_row; NULL: what this process finds for itself */
	const char *credentials;
	const char *region; /* NULL: that of the credentials */
	/* The store must belong to the account of the credentials: nobody else's gets our files. */
	bool own;
};

struct object_options {
	const char *type; /* Content-Type; NULL: application/octet-stream */
	int keep_days; /* it may be removed after so many days, where the store has a rule for that; 0: never */
};

#define OBJECT_VERSION 1032
struct object {
	const char *name; /* of a list: behind the URL; valid during the callback */
	uint64_t size;
	char etag[128];
	/* What object_presign() takes to name these bytes whatever the object becomes; "": the store keeps only the
	 * newest, or lets us read no other.  Not in object_list(). */
	char version[OBJECT_VERSION];
};

/* Is it a URL of a store that this version knows? */
bool object_url_is(const char *url);
/* ERR_INVALID for a URL that is not one. */
int object_store_open(const char *url, const struct object_access *who, const struct deadline *d,
		      struct object_store **ret, struct err *err);
/* NULL is allowed.  Returns NULL. */
struct object_store *object_store_free(struct object_store *st);
static inline void object_store_freep(struct object_store **st)
{
	*st = object_store_free(*st);
}
/* What a master needs to act for the caller: object_access.credentials, found on this machine.
 * `options` are those of the engine (plan_engine_options()) or NULL. */
int object_credentials(const char *url, const struct doc *options, struct arena *a,
		       struct doc **ret, struct err *err);

/* For a master on another machine: adds to such credentials the certificates of CAs that this machine trusts.  A path
 * means nothing there, and an image of a container may have none. */
void object_credentials_carry(struct doc *credentials, struct arena *a);

/* Is the store there, and may we look at it?  Its owner is looked at too if object_access.own was set. */
int object_store_check(struct object_store *st, const struct deadline *d, struct err *err);

/* `size` bytes of fd from 0 on, of any size.  A large file that was sent in part by an earlier try is not
 * sent again from its beginning.  o may be NULL. */
int object_put_file(struct object_store *st, const char *name, int fd, uint64_t size,
		    const struct object_options *o, const struct deadline *d, struct err *err);
int object_put_text(struct object_store *st, const char *name, struct str text,
		    const struct object_options *o, const struct deadline *d, struct err *err);
/* Behind what fd has already, from an earlier try.  Larger than max is ERR_CAPACITY. */
int object_get_file(struct object_store *st, const char *name, int fd, uint64_t max,
		    const struct deadline *d, struct err *err);
/* Appends it; larger than the buffer's maximum is ERR_CAPACITY. */
int object_get_text(struct object_store *st, const char *name, struct buf *out,
		    const struct deadline *d, struct err *err);
/* ERR_NOT_FOUND if there is none; *ret has no name. */
int object_head(struct object_store *st, const char *name, const struct deadline *d,
		struct object *ret, struct err *err);
/* All whose names begin with the prefix, in their order.  fn returns -1 with an error to end it. */
typedef int (*object_list_fn)(void *ctx, const struct object *o, struct err *err);
int object_list(struct object_store *st, const char *prefix, const struct deadline *d,
		object_list_fn fn, void *ctx, struct err *err);
/* The same with versions. */
int object_list_versions(struct object_store *st, const char *prefix, const struct deadline *d,
			 object_list_fn fn, void *ctx, struct err *err);
/* A URL with which anybody may GET or PUT the object for so many seconds.  version: NULL or "" is the newest. */
int object_presign(struct object_store *st, const char *name, const char *version,
		   const char *method, int64_t seconds, const struct deadline *d, struct buf *out,
		   struct err *err);
/* 1 if the object, as object_put_file() would have made it, has the bytes of the file; 0 if it has
 * others, or if nobody can tell without reading it. */
int object_is_file(struct object_store *st, const struct object *o, int fd, uint64_t size,
		   struct err *err);

/* ---- for the files that know a scheme ---- */

struct object_scheme {
	const char *name;
	/* rest: the URL behind "name://" */
	int (*open)(const char *rest, const struct object_access *who, const struct deadline *d,
		    void **ret, struct err *err);
	void (*close)(void *s);
	int (*credentials)(const struct doc *options, struct arena *a, struct doc **ret,
			   struct err *err);
	void (*carry)(struct doc *credentials, struct arena *a);
	int (*check)(void *s, const struct deadline *d, struct err *err);
	int (*put_file)(void *s, const char *name, int fd, uint64_t size,
			const struct object_options *o, const struct deadline *d, struct err *err);
	int (*put_text)(void *s, const char *name, struct str text, const struct object_options *o,
			const struct deadline *d, struct err *err);
	int (*get_file)(void *s, const char *name, int fd, uint64_t max, const struct deadline *d,
			struct err *err);
	int (*get_text)(void *s, const char *name, struct buf *out, const struct deadline *d,
			struct err *err);
	int (*head)(void *s, const char *name, const struct deadline *d, struct object *ret,
		    struct err *err);
	int (*list)(void *s, const char *prefix, const struct deadline *d, object_list_fn fn,
		    void *ctx, struct err *err);
	int (*list_versions)(void *s, const char *prefix, const struct deadline *d,
			     object_list_fn fn, void *ctx, struct err *err);
	int (*presign)(void *s, const char *name, const char *version, const char *method,
		       int64_t seconds, const struct deadline *d, struct buf *out, struct err *err);
	int (*is_file)(const struct object *o, int fd, uint64_t size, struct err *err);
};

extern const struct object_scheme s3_objects;
