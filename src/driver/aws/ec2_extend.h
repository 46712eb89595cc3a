#pragma once
/* ec2_extend - moves on the time that the tag regatta:expires of EC2 resources tells. */
#include "driver/aws/aws_kind.h"

/* One call for all ids, with the time of w->row. */
int ec2_extend_ids(const struct aws_work *w, const char *const *ids, size_t n,
		   struct aws_answer *ans, struct err *err);
/* For drivers of one row per call whose id is the one that tags take. */
enum outcome ec2_extend(struct driver_row *row);
/* The same for many rows. */
void ec2_extend_many(struct driver_row *rows, size_t n);
