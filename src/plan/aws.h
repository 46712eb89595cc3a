#pragma once
/*
 * aws - what the AWS engines share: the table [aws] of the job file, and what a node of a role is
 * made of.
 */
#include "fmt/schema.h"
#include "plan/engine.h"

#define AWS_DEFAULT_TYPE "m5.large"
#define AWS_MASTER_TYPE "t3.micro"

enum aws_placement { AWS_SPREAD, AWS_CLUSTER };

struct aws_table {
	struct doc_pos pos;
	const char *region, *profile, *assume_role, *endpoint_url;
	const char *vpc, *key_name, *instance_profile, *ami, *bucket, *reservation, *client_cidr;
	struct doc_pos client_cidr_pos, endpoint_url_pos;
	const char *cloudwatch; /* namespace that metrics are sent to; NULL: they are not */
	struct doc_pos cloudwatch_pos;
	struct strs subnets, zones, security_groups;
	int64_t volume_gb; /* 0: as large as image, source and data need */
	const char *volume_type;
	const char *task_name; /* of the old tool's tags; NULL: without them */
	int64_t master_port;
	struct env_list tags;
	struct doc_pos tags_pos, bucket_pos;
	int placement; /* enum aws_placement */
	bool public_ip;
};

/* The row of the job file for [aws]. */
extern const struct field aws_field;

/* Machine of the nodes of a role, or of a job without roles. */
struct aws_machine {
	struct strs types; /* in the order of preference */
	bool spot;
	const char *ami, *instance_profile;
	int64_t volume_gb;
};
struct aws_machine aws_machine_of(const struct job *job, const struct role *role,
				  const struct aws_table *t, struct arena *a);
/* What a resolver must know: the keys of [aws], and roles: {NAME: {types, ami, max}}, master, master_type, inputs:
 * [path] source and data on the client's machine, results: the bucket of output.s3. */
struct doc *aws_options(const struct job *job, const struct aws_table *t, struct arena *a);
/* "b" of "s3://b/x/"; empty: it is no URL of S3.  NULL is allowed. */
struct str aws_bucket_of(const char *url);
/* Adds the problems that every AWS engine has with a job. */
void aws_check(const struct job *job, const struct aws_table *t, const char *engine,
	       struct arena *a, struct problems *ps);
