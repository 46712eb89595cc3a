/* S3 as a store of objects (driver/object_store.h): "s3://bucket/prefix". */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "driver/aws/api/aws.h"
#include "driver/aws/api/s3.h"
#include "driver/aws/aws_session.h"
#include "driver/aws/s3_kind.h"
#include "driver/object_store.h"
#include "fmt/doc.h"
#include "net/tls_client.h"

#define CARRIED_MAX ((size_t)512 * 1024) /* of certificates; those that everybody has are 220 KB */

_Static_assert(OBJECT_VERSION >= AWS_VERSION, "a version of S3 fits");

struct s3_store {
	struct aws_session *kept;
	struct aws *s;
	char *bucket, *prefix;
	char owner[AWS_ACCOUNT]; /* "": anybody's */
};

static void store_close(void *p)
{
	struct s3_store *st = p;

	if (st->kept)
		aws_session_give(st->kept);
	free(st->bucket);
	free(st->prefix);
	free(st);
}

static int store_open(const char *rest, const struct object_access *who, const struct deadline *d,
		      void **ret, struct err *err)
{
	struct s3_store *st = xcalloc(1, sizeof(*st));
	size_t n = strcspn(rest, "/");

	st->bucket = xstrndup(rest, n);
	st->prefix = xstrdup(rest[n] ? rest + n + 1 : "");
	if (n == 0) {
		err_set(err, ERR_INVALID, "'s3://%.80s' has no bucket", rest);
		goto bad;
	}
	if (aws_session_take(who->region, who->credentials, d, &st->kept, err) < 0)
		goto bad;
	st->s = aws_session_of(st->kept);
	if (who->own && aws_session_account(st->kept, d, st->owner, err) < 0)
		goto bad;
	*ret = st;
	return 0;
bad:
	store_close(st);
	return -1;
}

static int store_credentials(const struct doc *options, struct arena *a, struct doc **ret,
			     struct err *err)
{
	return aws_ec2_resolver.credentials(&(struct resolve_input){.options = options}, a, ret,
					    err);
}

static void carry(struct doc *credentials, struct arena *a)
{
	const struct doc *env = doc_table(credentials, "env");
	const char *named = doc_str(env, "AWS_CA_BUNDLE", (struct str){0}).p;
	CLEANUP(buf_release) struct buf pem = {0};

	buf_init(&pem, CARRIED_MAX);
	if (tls_bundle_read(named, &pem, NULL) == 0 && !pem.overflow)
		doc_set(a, credentials, STR(AWS_CA_PEM), doc_new_str(a, buf_str(&pem)));
}

/* The key is the caller's to free. */
static struct s3_place place_of(const struct s3_store *st, const char *name, char **ret_key)
{
	*ret_key = xasprintf("%s%s", st->prefix, name);
	return (struct s3_place){
		.bucket = st->bucket,
		.key = *ret_key,
		.owner = st->owner[0] ? st->owner : NULL,
	};
}

static int check(void *p, const struct deadline *d, struct err *err)
{
	const struct s3_store *st = p;
	CLEANUP(freep) char *key = NULL;
	struct s3_place at = place_of(st, "", &key);

	at.key = NULL;
	return s3_bucket_check(st->s, &at, d, err);
}

#define TAG_MAX 64

static struct s3_options options_of(const struct object_options *o, char tag[static TAG_MAX])
{
	if (!o)
		return (struct s3_options){0};
	snprintf(tag, TAG_MAX, "%s=%dd", S3_KEEP_TAG_ENCODED, o->keep_days);
	return (struct s3_options){.type = o->type, .tags = o->keep_days > 0 ? tag : NULL};
}

static int put_file(void *p, const char *name, int fd, uint64_t size,
		    const struct object_options *o, const struct deadline *d, struct err *err)
{
	struct s3_store *st = p;
	CLEANUP(freep) char *key = NULL;
	struct s3_place at = place_of(st, name, &key);
	char tag[TAG_MAX];
	struct s3_options options = options_of(o, tag);

	return s3_upload(st->s, &at, fd, size, &options, d, err);
}

static int put_text(void *p, const char *name, struct str text, const struct object_options *o,
		    const struct deadline *d, struct err *err)
{
	struct s3_store *st = p;
	CLEANUP(freep) char *key = NULL;
	struct s3_place at = place_of(st, name, &key);
	char tag[TAG_MAX];
	struct s3_options options = options_of(o, tag);

	return s3_put_bytes(st->s, &at, text, &options, d, err);
}

static int get_file(void *p, const char *name, int fd, uint64_t max, const struct deadline *d,
		    struct err *err)
{
	struct s3_store *st = p;
	CLEANUP(freep) char *key = NULL;
	struct s3_place at = place_of(st, name, &key);
	struct stat sb;

	if (fstat(fd, &sb) < 0)
		return err_errno(err, errno, "stat the download");
	uint64_t offset = (uint64_t)sb.st_size;

	return s3_download(st->s, &at, fd, &offset, max, d, err);
}

static int get_text(void *p, const char *name, struct buf *out, const struct deadline *d,
		    struct err *err)
{
	struct s3_store *st = p;
	CLEANUP(freep) char *key = NULL;
	struct s3_place at = place_of(st, name, &key);

	return s3_get_bytes(st->s, &at, out, d, err);
}

static struct object object_from(const struct s3_object *o, const char *name)
{
	struct object out = {.name = name, .size = o->size};

	memcpy(out.etag, o->etag, sizeof(out.etag));
	memcpy(out.version, o->version, sizeof(o->version));
	return out;
}

static int head(void *p, const char *name, const struct deadline *d, struct object *ret,
		struct err *err)
{
	struct s3_store *st = p;
	CLEANUP(freep) char *key = NULL;
	struct s3_place at = place_of(st, name, &key);
	struct s3_object o, same;

	if (s3_head(st->s, &at, d, &o, err) < 0)
		return -1;
	*ret = object_from(&o, NULL);
	/* Reading a version needs a permission of its own, s3:GetObjectVersion. */
	at.version = o.version;
	if (o.version[0] && s3_head(st->s, &at, d, &same, NULL) < 0)
		ret->version[0] = '\0';
	return 0;
}

struct store_listing {
	size_t skip;
	object_list_fn fn;
	void *ctx;
};

static int each(void *ctx, const struct s3_object *o, struct err *err)
{
	const struct store_listing *l = ctx;
	struct object out = object_from(o, o->key + l->skip);

	return l->fn(l->ctx, &out, err);
}

static int list(void *p, const char *prefix, const struct deadline *d, object_list_fn fn, void *ctx,
		struct err *err)
{
	struct s3_store *st = p;
	CLEANUP(freep) char *key = NULL;
	struct s3_place at = place_of(st, prefix, &key);
	struct store_listing l = {strlen(st->prefix), fn, ctx};

	return s3_list(st->s, &at, d, each, &l, err);
}

/* A list of versions, and what became of the first try to read one. */
struct version_listing {
	struct store_listing l;
	const struct s3_store *st;
	const struct deadline *d;
	size_t n;
	bool tried, readable;
};

static int each_version(void *ctx, const struct s3_object *o, struct err *err)
{
	struct version_listing *v = ctx;
	struct s3_object same = *o;

	if (o->version[0] && !v->tried) {
		struct s3_place at = {
			.bucket = v->st->bucket, .key = o->key, .version = o->version};

		v->tried = true;
		v->readable = s3_head(v->st->s, &at, v->d, &(struct s3_object){0}, NULL) == 0;
	}
	if (!v->readable)
		same.version[0] = '\0';
	v->n++;
	return each(&v->l, &same, err);
}

static int list_versions(void *p, const char *prefix, const struct deadline *d, object_list_fn fn,
			 void *ctx, struct err *err)
{
	struct s3_store *st = p;
	CLEANUP(freep) char *key = NULL;
	struct s3_place at = place_of(st, prefix, &key);
	struct version_listing v = {.l = {strlen(st->prefix), fn, ctx}, .st = st, .d = d};
	int rc = s3_list_versions(st->s, &at, d, each_version, &v, err);

	if (rc == 0 || v.n > 0)
		return rc;
	/* It needs a permission of its own, s3:ListBucketVersions, and some stores do not know it. */
	*err = (struct err){0};
	return s3_list(st->s, &at, d, each, &v.l, err);
}

static int presign(void *p, const char *name, const char *version, const char *method,
		   int64_t seconds, const struct deadline *d, struct buf *out, struct err *err)
{
	struct s3_store *st = p;
	CLEANUP(freep) char *key = NULL;
	struct s3_place at = place_of(st, name, &key);

	at.version = version && *version ? version : NULL;
	return s3_presign(st->s, &at, method, seconds, d, out, err);
}

static int is_file(const struct object *o, int fd, uint64_t size, struct err *err)
{
	return o->size == size ? s3_etag_is_of(o->etag, fd, size, err) : 0;
}

const struct object_scheme s3_objects = {
	.name = "s3",
	.open = store_open,
	.close = store_close,
	.credentials = store_credentials,
	.carry = carry,
	.check = check,
	.put_file = put_file,
	.put_text = put_text,
	.get_file = get_file,
	.get_text = get_text,
	.head = head,
	.list = list,
	.list_versions = list_versions,
	.presign = presign,
	.is_file = is_file,
};
