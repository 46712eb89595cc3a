#pragma once
/* imds - the instance metadata service (net/imds.h) as the variables of a session have it. */
struct aws;
struct buf;
struct deadline;
struct err;

int imds_read(struct aws *s, const char *path, const struct deadline *d, struct buf *out,
	      struct err *err);
int imds_region(struct aws *s, const struct deadline *d, char out[static 32], struct err *err);
