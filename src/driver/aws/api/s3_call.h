#pragma once
/* What s3.c, s3_transfer.c and s3_bucket.c share. */
#include "driver/aws/api/internal.h"
#include "driver/aws/api/s3.h"

struct s3_call {
	struct aws_call c;
	struct arena *arena;
	char label[80];
	struct buf query;
};

/* A call of this bucket and key (at->key NULL, or with_key false: of the bucket). */
int s3_call_init(struct s3_call *x, struct aws *s, const struct s3_place *at, bool with_key,
		 const char *method, const char *action, struct err *err);
void s3_call_release(struct s3_call *x);
/* "uploads", or "prefix=a%2Fb". */
void s3_call_query(struct s3_call *x, const char *name, const char *value);
/* As aws_call_run, with the bucket in the text of an error. */
int s3_call_run(struct s3_call *x, struct aws *s, const struct s3_place *at,
		const struct deadline *d, struct aws_answer *ret, struct err *err);
/* Header "x-amz-checksum-sha256", and the hash that is signed, of the body or of a piece of a file;
 * ret_b64 may be NULL. */
int s3_call_hash(struct s3_call *x, const char **ret_b64, struct err *err);
void s3_call_options(struct s3_call *x, const struct s3_options *o);
