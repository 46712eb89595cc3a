#include "driver/aws/api/s3.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/s3_call.h"

/* The version of an object from the time before its bucket kept any. */
#define NO_VERSION "null"

int s3_put_bytes(struct aws *s, const struct s3_place *at, struct str body,
		 const struct s3_options *o, const struct deadline *d, struct err *err)
{
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, s, at, true, "PUT", "PutObject", err);

	x.c.shape = AWS_BYTES;
	x.c.body = body;
	if (rc == 0) {
		s3_call_options(&x, o);
		rc = s3_call_hash(&x, NULL, err);
	}
	if (rc == 0)
		rc = s3_call_run(&x, s, at, d, &ans, err);
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

/* A call without query, headers and body. */
static int plain(struct aws *s, const struct s3_place *at, const char *method, const char *action,
		 struct buf *sink, const struct deadline *d, struct aws_answer *ret,
		 struct err *err)
{
	struct s3_call x;
	int rc = s3_call_init(&x, s, at, true, method, action, err);

	x.c.shape = AWS_BYTES;
	x.c.sink = sink;
	if (rc == 0)
		rc = s3_call_run(&x, s, at, d, ret, err);
	s3_call_release(&x);
	return rc;
}

int s3_get_bytes(struct aws *s, const struct s3_place *at, struct buf *out,
		 const struct deadline *d, struct err *err)
{
	struct aws_answer ans = {0};
	int rc = plain(s, at, "GET", "GetObject", out, d, &ans, err);

	aws_answer_release(&ans);
	if (rc == 0 && out->overflow)
		return err_set(err, ERR_CAPACITY, "s3://%s/%.80s is larger than %zu bytes",
			       at->bucket, at->key, out->max);
	return rc;
}

int s3_head(struct aws *s, const struct s3_place *at, const struct deadline *d,
	    struct s3_object *ret, struct err *err)
{
	struct aws_answer ans = {0};
	/* the name of the permission: an answer to HEAD has no words that would say it */
	int rc = plain(s, at, "HEAD", "GetObject", NULL, d, &ans, err);

	if (rc == 0) {
		*ret = (struct s3_object){.key = at->key, .size = ans.length};
		memcpy(ret->etag, ans.etag, sizeof(ret->etag));
		if (strcmp(ans.version, NO_VERSION) != 0)
			memcpy(ret->version, ans.version, sizeof(ret->version));
	}
	aws_answer_release(&ans);
	return rc;
}

int s3_delete(struct aws *s, const struct s3_place *at, const struct deadline *d, struct err *err)
{
	struct aws_answer ans = {0};
	int rc = plain(s, at, "DELETE", "DeleteObject", NULL, d, &ans, err);

	if (rc < 0 && strcmp(ans.code, "NoSuchKey") == 0)
		rc = 0;
	aws_answer_release(&ans);
	return rc;
}

int s3_presign(struct aws *s, const struct s3_place *at, const char *method, int64_t seconds,
	       const struct deadline *d, struct buf *out, struct err *err)
{
	/* the user of the URL sends no header for the owner */
	struct s3_place open = {.bucket = at->bucket, .key = at->key, .version = at->version};
	struct s3_call x;
	int rc = s3_call_init(&x, s, &open, true, method, "GetObject", err);

	x.c.query = buf_str(&x.query).p;
	if (rc == 0)
		rc = aws_call_presign(s, &x.c, seconds, d, out, err);
	s3_call_release(&x);
	return rc;
}

/* ---- lists ---- */

/* One of the two lists, and where its next page begins. */
struct object_listing {
	const char *action;
	bool versions;
	struct buf token;   /* of the list of versions: the last key */
	struct buf version; /* and its version */
};

static int each_object(const struct xml *root, const struct object_listing *l, s3_list_fn fn,
		       void *ctx, struct err *err)
{
	const struct xml *x = xml_at(root, l->versions ? "Version" : "Contents");

	for (; x; x = xml_next(x)) {
		struct s3_object o = {.key = xml_text(x, "Key")};
		const char *version = xml_text(x, "VersionId");

		if (l->versions && strcmp(xml_text(x, "IsLatest"), "true") != 0)
			continue;
		str_to_u64(str_from(xml_text(x, "Size")), &o.size);
		snprintf(o.etag, sizeof(o.etag), "%s", xml_text(x, "ETag"));
		if (strcmp(version, NO_VERSION) != 0 && strlen(version) < sizeof(o.version))
			snprintf(o.version, sizeof(o.version), "%s", version);
		if (fn(ctx, &o, err) < 0)
			return -1;
	}
	return 0;
}

static void ask_for_page(struct s3_call *x, const struct s3_place *at,
			 const struct object_listing *l)
{
	if (l->versions)
		s3_call_query(x, "versions", NULL);
	else
		s3_call_query(x, "list-type", "2");
	if (at->key)
		s3_call_query(x, "prefix", at->key);
	if (l->token.n > 0)
		s3_call_query(x, l->versions ? "key-marker" : "continuation-token",
			      buf_str(&l->token).p);
	if (l->version.n > 0)
		s3_call_query(x, "version-id-marker", buf_str(&l->version).p);
}

/* The next page begins behind what the answer says; -1 if that is where this one began. */
static int go_on(const struct xml *root, struct object_listing *l)
{
	const char *next = xml_text(root, l->versions ? "NextKeyMarker" : "NextContinuationToken");
	const char *version = l->versions ? xml_text(root, "NextVersionIdMarker") : "";

	if (!*next || (str_is(buf_str(&l->token), next) && str_is(buf_str(&l->version), version)))
		return -1;
	buf_reset(&l->token);
	buf_addz(&l->token, next);
	buf_reset(&l->version);
	buf_addz(&l->version, version);
	return 0;
}

/* 1: there are more. */
static int list_page(struct aws *s, const struct s3_place *at, struct object_listing *l,
		     const struct deadline *d, s3_list_fn fn, void *ctx, struct err *err)
{
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, s, at, false, "GET", l->action, err);

	if (rc == 0) {
		ask_for_page(&x, at, l);
		rc = s3_call_run(&x, s, at, d, &ans, err);
	}
	if (rc == 0)
		rc = each_object(ans.root, l, fn, ctx, err);
	if (rc == 0 && strcmp(xml_text(ans.root, "IsTruncated"), "true") == 0) {
		rc = 1;
		if (go_on(ans.root, l) < 0)
			rc = err_set(
				err, ERR_PROTOCOL,
				"bucket '%s': the list does not end: its pages lead to themselves",
				at->bucket);
	}
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

static int list_pages(struct aws *s, const struct s3_place *at, struct object_listing *l,
		      const struct deadline *d, s3_list_fn fn, void *ctx, struct err *err)
{
	int rc = 1;

	buf_init(&l->token, 8192);
	buf_init(&l->version, 8192);
	for (int page = 0; rc > 0 && page < AWS_MAX_PAGES; page++)
		rc = list_page(s, at, l, d, fn, ctx, err);
	buf_release(&l->token);
	buf_release(&l->version);
	return rc > 0 ? err_set(err, ERR_PROTOCOL, "bucket '%s': the list does not end", at->bucket)
		      : rc;
}

int s3_list(struct aws *s, const struct s3_place *at, const struct deadline *d, s3_list_fn fn,
	    void *ctx, struct err *err)
{
	return list_pages(s, at, &(struct object_listing){.action = "ListObjectsV2"}, d, fn, ctx,
			  err);
}

int s3_list_versions(struct aws *s, const struct s3_place *at, const struct deadline *d,
		     s3_list_fn fn, void *ctx, struct err *err)
{
	return list_pages(
		s, at, &(struct object_listing){.action = "ListBucketVersions", .versions = true},
		d, fn, ctx, err);
}
