#pragma once
/* aws_resolve - what the parts of the resolver of the AWS engines share. */
#include "base/arena.h"
#include "base/deadline.h"
#include "driver/aws/api/aws.h"
#include "driver/driver.h"
#include "fmt/doc.h"

/* The bucket of whoever names none: account and region. */
#define AWS_BUCKET "regatta-%s-%s"

/* A run that is being resolved. */
struct aws_inquiry {
	struct aws *s;
	struct arena *a;
	struct deadline d;
	const struct resolve_input *in;
	struct doc *facts;
};

/* Text of the options ([aws] of the job, and master); NULL if it has none. */
const char *inquiry_option(const struct aws_inquiry *q, const char *key);
void inquiry_set(const struct aws_inquiry *q, struct doc *table, const char *key,
		 const char *value);
/* The address of EC2 that was given instead of AWS' own; NULL: none. */
const char *inquiry_endpoint(const struct aws_inquiry *q);
bool inquiry_master_is_apart(const struct aws_inquiry *q);

/* Sets the facts vpc, subnets and zones_of; also master, if the master gets an instance. */
int inquiry_network(struct aws_inquiry *q, struct err *err);
/* Sets the fact images. */
int inquiry_images(struct aws_inquiry *q, struct err *err);
/* Sets the fact client, the addresses that may reach the master, if the master gets an instance. */
int inquiry_client(struct aws_inquiry *q, struct err *err);

/* The architecture of an instance type, told from its name: "arm64" or "x86_64". */
const char *aws_type_architecture(const char *type);
bool aws_type_has_gpus(const char *type);
