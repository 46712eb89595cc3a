#include "driver/object_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/err.h"

struct object_store {
	const struct object_scheme *scheme;
	void *s;
};

static const struct object_scheme *const schemes[] = {&s3_objects};

/* *ret_rest: what is behind "://". */
static const struct object_scheme *scheme_of(const char *url, const char **ret_rest)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		size_t n = strlen(schemes[i]->name);

		if (strncmp(url, schemes[i]->name, n) == 0 && strncmp(url + n, "://", 3) == 0) {
			*ret_rest = url + n + 3;
			return schemes[i];
		}
	}
	return NULL;
}

bool object_url_is(const char *url)
{
	const char *rest;

	return scheme_of(url, &rest) != NULL;
}

static int unknown(const char *url, struct err *err)
{
	return err_set(err, ERR_INVALID, "'%.100s' is no place for objects: it begins with s3://",
		       url);
}

int object_store_open(const char *url, const struct object_access *who, const struct deadline *d,
		      struct object_store **ret, struct err *err)
{
	const char *rest;
	const struct object_scheme *scheme = scheme_of(url, &rest);
	void *s;

	if (!scheme)
		return unknown(url, err);
	if (scheme->open(rest, who, d, &s, err) < 0)
		return -1;
	*ret = xcalloc(1, sizeof(**ret));
	**ret = (struct object_store){scheme, s};
	return 0;
}

struct object_store *object_store_free(struct object_store *st)
{
	if (st)
		st->scheme->close(st->s);
	free(st);
	return NULL;
}

int object_credentials(const char *url, const struct doc *options, struct arena *a,
		       struct doc **ret, struct err *err)
{
	const char *rest;
	const struct object_scheme *scheme = scheme_of(url, &rest);

	return scheme ? scheme->credentials(options, a, ret, err) : unknown(url, err);
}

void object_credentials_carry(struct doc *credentials, struct arena *a)
{
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++)
		schemes[i]->carry(credentials, a);
}

int object_store_check(struct object_store *st, const struct deadline *d, struct err *err)
{
	return st->scheme->check(st->s, d, err);
}

int object_put_file(struct object_store *st, const char *name, int fd, uint64_t size,
		    const struct object_options *o, const struct deadline *d, struct err *err)
{
	return st->scheme->put_file(st->s, name, fd, size, o, d, err);
}

int object_put_text(struct object_store *st, const char *name, struct str text,
		    const struct object_options *o, const struct deadline *d, struct err *err)
{
	return st->scheme->put_text(st->s, name, text, o, d, err);
}

int object_get_file(struct object_store *st, const char *name, int fd, uint64_t max,
		    const struct deadline *d, struct err *err)
{
	return st->scheme->get_file(st->s, name, fd, max, d, err);
}

int object_get_text(struct object_store *st, const char *name, struct buf *out,
		    const struct deadline *d, struct err *err)
{
	return st->scheme->get_text(st->s, name, out, d, err);
}

int object_head(struct object_store *st, const char *name, const struct deadline *d,
		struct object *ret, struct err *err)
{
	return st->scheme->head(st->s, name, d, ret, err);
}

int object_list(struct object_store *st, const char *prefix, const struct deadline *d,
		object_list_fn fn, void *ctx, struct err *err)
{
	return st->scheme->list(st->s, prefix, d, fn, ctx, err);
}

int object_list_versions(struct object_store *st, const char *prefix, const struct deadline *d,
			 object_list_fn fn, void *ctx, struct err *err)
{
	return st->scheme->list_versions(st->s, prefix, d, fn, ctx, err);
}

int object_presign(struct object_store *st, const char *name, const char *version,
		   const char *method, int64_t seconds, const struct deadline *d, struct buf *out,
		   struct err *err)
{
	return st->scheme->presign(st->s, name, version, method, seconds, d, out, err);
}

int object_is_file(struct object_store *st, const struct object *o, int fd, uint64_t size,
		   struct err *err)
{
	return st->scheme->is_file(o, fd, size, err);
}
