#include "driver/aws/api/s3.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "driver/aws/api/s3_call.h"

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
		if (strcmp(ans.version, "null") !=
		    0) /* from the time before the bucket kept them */
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

static int each_object(const struct xml *root, s3_list_fn fn, void *ctx, struct err *err)
{
	for (const struct xml *x = xml_at(root, "Contents"); x; x = xml_next(x)) {
		struct s3_object o = {.key = xml_text(x, "Key")};

		str_to_u64(str_from(xml_text(x, "Size")), &o.size);
		snprintf(o.etag, sizeof(o.etag), "%s", xml_text(x, "ETag"));
		if (fn(ctx, &o, err) < 0)
			return -1;
	}
	return 0;
}

/* 1: there are more, and `token` leads to them. */
static int list_page(struct aws *s, const struct s3_place *at, struct buf *token,
		     const struct deadline *d, s3_list_fn fn, void *ctx, struct err *err)
{
	struct aws_answer ans = {0};
	struct s3_call x;
	int rc = s3_call_init(&x, s, at, false, "GET", "ListObjectsV2", err);

	if (rc == 0) {
		s3_call_query(&x, "list-type", "2");
		if (at->key)
			s3_call_query(&x, "prefix", at->key);
		if (token->n > 0)
			s3_call_query(&x, "continuation-token", buf_str(token).p);
		rc = s3_call_run(&x, s, at, d, &ans, err);
	}
	if (rc == 0)
		rc = each_object(ans.root, fn, ctx, err);
	if (rc == 0 && strcmp(xml_text(ans.root, "IsTruncated"), "true") == 0) {
		const char *next = xml_text(ans.root, "NextContinuationToken");

		rc = 1;
		if (!*next || str_is(buf_str(token), next))
			rc = err_set(
				err, ERR_PROTOCOL,
				"bucket '%s': the list does not end: its pages lead to themselves",
				at->bucket);
		buf_reset(token);
		buf_addz(token, next);
	}
	aws_answer_release(&ans);
	s3_call_release(&x);
	return rc;
}

int s3_list(struct aws *s, const struct s3_place *at, const struct deadline *d, s3_list_fn fn,
	    void *ctx, struct err *err)
{
	CLEANUP(buf_release) struct buf token = {0};

	buf_init(&token, 8192);
	for (int page = 0; page < AWS_MAX_PAGES; page++) {
		int rc = list_page(s, at, &token, d, fn, ctx, err);

		if (rc <= 0)
			return rc;
	}
	return err_set(err, ERR_PROTOCOL, "bucket '%s': the list does not end", at->bucket);
}
