#pragma once
/* iam - what the drivers of role and instance profile share. */
#include "driver/aws/aws_kind.h"

/* Tags.member.<n> of a create: the install's, and the user's. */
void iam_tags(struct aws_request *r, const struct aws_work *w);
/* Does a role or profile of an answer carry the tag of this install? */
bool iam_is_ours(const struct xml *x, const struct driver_row *row);
/* One call; params: name, value, name, value, ..., NULL. */
int iam_call(const struct aws_work *w, const char *action, const char *const *params,
	     struct aws_answer *ans, struct err *err);
