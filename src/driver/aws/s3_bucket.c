/*
 * s3.bucket - the bucket for the program, inputs and results.
 *
 * One per account and region unless the user names another, whose settings are left alone.  Tags are
 * written last: a bucket that has them is complete.  It is shared, and nothing here deletes it, because
 * results outlive the install that made them.
 *
 * Results in it expire by their tag (S3_KEEP_TAG), with one rule per number of days.
 *
 * Spec: bucket, given, keep_days.
 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "driver/aws/api/s3.h"
#include "driver/aws/s3_kind.h"
#include "fmt/doc.h"

#define MAX_TAGS ((size_t)64 * 1024)
#define MARK "regatta:install\t"

static int make_complete(struct aws_work *w, const struct s3_place *at, struct err *err)
{
	struct aws_tag tags[AWS_MAX_TAGS];
	struct s3_tag list[AWS_MAX_TAGS];
	size_t n = aws_tags(w, false, tags);

	for (size_t i = 0; i < n; i++)
		list[i] = (struct s3_tag){tags[i].key, tags[i].value};
	if (s3_bucket_block_public(w->s, at, &w->d, err) < 0 ||
	    s3_bucket_encrypt(w->s, at, &w->d, err) < 0)
		return -1;
	return s3_bucket_tag(w->s, at, list, n, &w->d, err);
}

static bool is_complete(struct aws_work *w, const struct s3_place *at)
{
	CLEANUP(buf_release) struct buf tags = {0};
	struct err ignored;

	buf_init(&tags, MAX_TAGS);
	return s3_bucket_tags(w->s, at, &w->d, &tags, &ignored) == 0 && tags.p &&
	       strstr(tags.p, MARK);
}

/* The rule by which results expire.  A bucket that the user named keeps its own rules. */
static int add_rule(struct aws_work *w, const struct s3_place *at, struct err *err)
{
	int days = (int)doc_int(w->spec, "keep_days", 0);
	char value[16];
	struct s3_expiry rule = {.tag = {S3_KEEP_TAG, value}, .days = days};

	if (days <= 0 || doc_bool(w->spec, "given", false))
		return 0;
	snprintf(value, sizeof(value), "%dd", days);
	return s3_bucket_add_expiry(w->s, at, &rule, &w->d, err);
}

/* S3 does not let us look at a bucket of another account. */
static void tell_why(const struct s3_place *at, bool seen, struct err *err)
{
	if (err->kind == ERR_DENIED && !seen)
		err_wrap(err, "not yours, or no permission (`bucket` in [aws])");
	else if (err->kind == ERR_CONFLICT)
		err_wrap(err,
			 "the name '%s' is taken: name a bucket of yours with `bucket` in [aws]",
			 at->bucket);
	else if (err->kind == ERR_NOT_FOUND)
		err_wrap(err, "there is no bucket '%s': make it, or leave out `bucket` in [aws]",
			 at->bucket);
}

/* *ret_seen: the bucket could be looked at, so that it is not somebody else's. */
static int make(struct aws_work *w, const struct s3_place *at, bool given, bool *ret_seen,
		struct err *err)
{
	*ret_seen = true;
	if (s3_bucket_check(w->s, at, &w->d, err) == 0)
		return given || is_complete(w, at) ? 0 : make_complete(w, at, err);
	*ret_seen = err->kind == ERR_NOT_FOUND;
	if (!*ret_seen || given)
		return -1;
	*err = (struct err){0};
	if (s3_bucket_create(w->s, at, &w->d, err) < 0)
		return -1;
	return make_complete(w, at, err);
}

static enum outcome do_create(struct aws_work *w, struct driver_row *row)
{
	struct s3_place at = s3_kind_place(w);
	bool seen;

	if (make(w, &at, doc_bool(w->spec, "given", false), &seen, &row->err) < 0 ||
	    add_rule(w, &at, &row->err) < 0) {
		tell_why(&at, seen, &row->err);
		return s3_kind_failed(AWS_CREATE, row);
	}
	aws_take_id(row, at.bucket);
	return OUTCOME_DONE;
}

static enum outcome look(struct aws_work *w, struct driver_row *row, enum aws_question question)
{
	struct s3_place at = s3_kind_place(w);

	if (s3_bucket_check(w->s, &at, &w->d, &row->err) < 0)
		return s3_kind_failed(question, row);
	aws_take_id(row, at.bucket);
	return OUTCOME_DONE;
}

static enum outcome do_find(struct aws_work *w, struct driver_row *row)
{
	return look(w, row, AWS_FIND);
}

static enum outcome do_observe(struct aws_work *w, struct driver_row *row)
{
	return look(w, row, AWS_OBSERVE);
}

static enum outcome do_destroy(struct aws_work *w, struct driver_row *row)
{
	enum outcome outcome = look(w, row, AWS_DESTROY);

	if (outcome != OUTCOME_DONE)
		return outcome;
	err_set(&row->err, ERR_CONFLICT,
		"bucket '%s' is not deleted: results outlive the runs that made them",
		s3_kind_place(w).bucket);
	return OUTCOME_HELD;
}

AWS_DRIVER(s3_bucket_driver, "s3.bucket", NULL);
