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
	POLICY_ALL,	/* of who submits: makes role, profile and bucket too */
	POLICY_MASTER,	/* of the instance of a master, without the bucket */
	POLICY_BUCKET,	/* of the same: the objects of one bucket */
	POLICY_READ,	/* of the same: a bucket with inputs of a job */
	POLICY_METRICS, /* of the same: the namespace of metrics */
	POLICY_RESULTS, /* of the same: a bucket of the user that results go to */
};

/* A member that is NULL matches any value. */
struct policy_input {
	enum policy_part part;
	const char *partition, *account, *region, *bucket, *install;
	/* The namespace of CloudWatch that jobs name; NULL: they name none, and need no permission for it. */
	const char *metrics;
};

/* Writes the policy as one JSON document. */
void policy_write(const struct policy_input *in, struct buf *out);
/* The trust policy of the role of a master's instance: EC2 may assume it. */
void policy_write_trust(const char *dns_suffix, struct buf *out);
