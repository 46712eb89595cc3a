#pragma once
/*
 * policy - what the drivers of AWS may be allowed to do, and no more: the table of the calls that they
 * make, each with the resources and the condition under which it is needed.
 *
 * `regatta iam-policy` prints it for who submits; the role of a master's instance is the part of it
 * that a master needs.
 */
#include <stdbool.h>

struct buf;

enum policy_part {
	POLICY_ALL,    /* of who submits: makes role, profile and bucket too */
	POLICY_MASTER, /* of the instance of a master, without the bucket */
	POLICY_BUCKET, /* of the same: the objects of one bucket */
};

/* What is NULL is any. */
struct policy_input {
	enum policy_part part;
	const char *partition, *account, *region, *bucket, *install;
};

/* One document as JSON. */
void policy_write(const struct policy_input *in, struct buf *out);
/* Who may take on the role of a master's instance. */
void policy_write_trust(const char *dns_suffix, struct buf *out);
