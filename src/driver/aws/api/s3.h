#pragma once
/*
 * s3 - objects and buckets.
 *
 *	struct s3_place at = {.bucket = b, .key = "runs/x/log", .owner = account};
 *	s3_put_bytes(s, &at, text, NULL, deadline, err);
 *	s3_upload(s, &at, fd, size, NULL, deadline, err);	(any size; goes on where it was left)
 *	s3_download(s, &at, fd, &offset, max, deadline, err);	(from offset on)
 *	s3_presign(s, &at, "GET", 3600, deadline, &url, err);
 *
 * With an owner every call says whose bucket is expected, so that nobody else's of the same name is
 * used.  Buckets are part of the host's name (virtual host style) unless they have dots in their
 * name, an endpoint was given, or the profile's s3.addressing_style says otherwise.  Errors are as
 * in aws.h; a bucket that is elsewhere is ERR_INVALID with its region in the text.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"
#include "driver/aws/api/aws.h"

struct aws;
struct deadline;
struct err;

struct s3_place {
	const char *bucket, *key;
	const char *owner;   /* the account; NULL: anybody */
	const char *version; /* of the object, to read that one; NULL: the newest */
};

struct s3_options {
	const char *type; /* Content-Type; NULL: application/octet-stream */
	const char *tags; /* "a=b&c=d", encoded; NULL: none */
	bool if_absent;	  /* ERR_CONFLICT if there is one already */
};

struct s3_object {
	const char *key; /* of a list; valid during its callback */
	uint64_t size;
	char etag[128];
	char version[AWS_VERSION]; /* "": the bucket keeps none, or a list does not say */
};

/* o may be NULL. */
int s3_put_bytes(struct aws *s, const struct s3_place *at, struct str body,
		 const struct s3_options *o, const struct deadline *d, struct err *err);
/* Appends the object; larger than the buffer's maximum is ERR_CAPACITY. */
int s3_get_bytes(struct aws *s, const struct s3_place *at, struct buf *out,
		 const struct deadline *d, struct err *err);
/* ERR_NOT_FOUND if there is none. */
int s3_head(struct aws *s, const struct s3_place *at, const struct deadline *d,
	    struct s3_object *ret, struct err *err);
/* Deleting an object that does not exist is a success. */
int s3_delete(struct aws *s, const struct s3_place *at, const struct deadline *d, struct err *err);
/* All keys that begin with at->key (NULL: all), page by page, in their order. */
typedef int (*s3_list_fn)(void *ctx, const struct s3_object *o, struct err *err);
int s3_list(struct aws *s, const struct s3_place *at, const struct deadline *d, s3_list_fn fn,
	    void *ctx, struct err *err);
/* The same with the newest version of each; what was deleted is not in it. */
int s3_list_versions(struct aws *s, const struct s3_place *at, const struct deadline *d,
		     s3_list_fn fn, void *ctx, struct err *err);
/* A URL that is good for so many seconds, but no longer than the credentials; method GET or PUT. */
int s3_presign(struct aws *s, const struct s3_place *at, const char *method, int64_t seconds,
	       const struct deadline *d, struct buf *out, struct err *err);

/* ---- files ---- */

#define S3_PART ((uint64_t)16 * 1024 * 1024)
#define S3_MAX_PARTS 10000

/* `size` bytes of fd from 0 on.  More than a part is sent in parts; parts of an earlier upload of the
 * same bytes that was not completed are not sent again (their SHA-256 tells). */
int s3_upload(struct aws *s, const struct s3_place *at, int fd, uint64_t size,
	      const struct s3_options *o, const struct deadline *d, struct err *err);
/* Of a file that s3_upload() sends in parts. */
uint64_t s3_part_size(uint64_t size);
/* Is it the ETag that an upload of the file has (1), or another one (0)?  Buckets with keys of KMS have
 * other ETags, so that 0 does not mean other bytes. */
int s3_etag_is_of(const char *etag, int fd, uint64_t size, struct err *err);
/* Drop what unfinished uploads of this key have left. */
int s3_abort_uploads(struct aws *s, const struct s3_place *at, const struct deadline *d,
		     struct err *err);
/* Bytes from *offset on to fd, which grows to the whole; *offset says how far it came, also on an
 * error.  An object that changes meanwhile is ERR_CONFLICT. */
int s3_download(struct aws *s, const struct s3_place *at, int fd, uint64_t *offset, uint64_t max,
		const struct deadline *d, struct err *err);

/* ---- buckets ---- */

struct s3_tag {
	const char *name, *value;
};

/* In the session's region.  One that is ours already is a success; somebody else's ERR_CONFLICT. */
int s3_bucket_create(struct aws *s, const struct s3_place *at, const struct deadline *d,
		     struct err *err);
int s3_bucket_block_public(struct aws *s, const struct s3_place *at, const struct deadline *d,
			   struct err *err);
/* SSE-S3 for everything. */
int s3_bucket_encrypt(struct aws *s, const struct s3_place *at, const struct deadline *d,
		      struct err *err);
int s3_bucket_tag(struct aws *s, const struct s3_place *at, const struct s3_tag *tags, size_t n,
		  const struct deadline *d, struct err *err);
/* Objects that carry a tag are removed so many days after they were made. */
struct s3_expiry {
	struct s3_tag tag;
	int days;
};
/* Replaces the rules that there are; uploads that were not completed are removed after seven days. */
int s3_bucket_lifecycle(struct aws *s, const struct s3_place *at, const struct s3_expiry *rules,
			size_t n, const struct deadline *d, struct err *err);
/* Adds a rule, unless there is one for as many days; the others stay as they are. */
int s3_bucket_add_expiry(struct aws *s, const struct s3_place *at, const struct s3_expiry *rule,
			 const struct deadline *d, struct err *err);
/* 0 if it is there, in the session's region, and its owner is the expected one. */
int s3_bucket_check(struct aws *s, const struct s3_place *at, const struct deadline *d,
		    struct err *err);
/* Its tags as "name\tvalue\n" lines; none is "". */
int s3_bucket_tags(struct aws *s, const struct s3_place *at, const struct deadline *d,
		   struct buf *out, struct err *err);
/* Must be empty. */
int s3_bucket_delete(struct aws *s, const struct s3_place *at, const struct deadline *d,
		     struct err *err);
