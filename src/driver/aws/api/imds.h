#pragma once
/*
 * imds - the instance metadata service, version 2: what an instance knows of itself.
 *
 * AWS_EC2_METADATA_DISABLED=true switches it off, AWS_EC2_METADATA_SERVICE_ENDPOINT moves it.
 * Machines elsewhere have none: it is given a second to answer.
 */
struct aws;
struct buf;
struct deadline;
struct err;

/* The text at a path ("placement/region") below latest/meta-data/.  ERR_NOT_FOUND if it has no such
 * path; ERR_UNAVAILABLE or ERR_TIMEOUT if nobody answers. */
int imds_read(struct aws *s, const char *path, const struct deadline *d, struct buf *out,
	      struct err *err);
int imds_region(struct aws *s, const struct deadline *d, char out[static 32], struct err *err);
