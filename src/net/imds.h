#pragma once
/*
 * imds - the instance metadata service of EC2, version 2: what a machine there knows of itself.
 *
 * AWS_EC2_METADATA_DISABLED=true switches it off, AWS_EC2_METADATA_SERVICE_ENDPOINT moves it.
 * Machines elsewhere have none: it is given a second to answer.  Blocking; safe on any thread.
 */
struct buf;
struct deadline;
struct env_lookup;
struct err;

/* The text at a path ("placement/region") below latest/meta-data/.  ERR_NOT_FOUND if it has no such
 * path; ERR_UNAVAILABLE or ERR_TIMEOUT if nobody answers. */
int imds_get(const struct env_lookup *env, const char *path, const struct deadline *d,
	     struct buf *out, struct err *err);
