#pragma once
/* s3_kind - what the drivers of bucket and object share. */
#include "driver/aws/api/s3.h"
#include "driver/aws/aws_kind.h"

/* Objects with this tag and the value "<n>d" expire after n days: a rule of the bucket says so (s3_bucket.c). */
#define S3_KEEP_TAG "regatta:retention"
#define S3_KEEP_TAG_ENCODED "regatta%3Aretention"

/* bucket and key of the spec, and the run's account as the owner that is expected. */
struct s3_place s3_kind_place(const struct aws_work *w);
/* What row->err means.  All calls of S3 may be repeated, so what is not certain is asked again. */
enum outcome s3_kind_failed(enum aws_question question, struct driver_row *row);
