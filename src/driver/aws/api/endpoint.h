#pragma once
/*
 * endpoint - where a service is, and what its signature names.
 *
 * By partition (aws, aws-cn, aws-us-gov, ...) and region, unless an address is given: by the
 * session's own endpoint_url, AWS_ENDPOINT_URL_<SERVICE>, AWS_ENDPOINT_URL, the `services` of the
 * profile, or its endpoint_url, in this order.
 */
#include <stdbool.h>
#include "base/env.h"
#include "fmt/http_url.h"

struct err;
struct profiles;

struct aws_service {
	const char *name;    /* as calls and hosts name it: "ec2", "monitoring" */
	const char *env;     /* AWS_ENDPOINT_URL_<this>: "EC2", "AUTO_SCALING" */
	const char *id;	     /* in the `services` of a profile: "ec2", "auto_scaling" */
	const char *version; /* of the query protocol; NULL: another protocol */
	const char *target;  /* of the JSON protocol: "AmazonSSM" */
	bool global;	     /* one for the partition */
};
/* NULL if it is not known. */
const struct aws_service *aws_service_named(const char *name);

struct aws_partition {
	const char *name, *prefix /* of its regions */, *suffix /* of its hosts */;
	const char *home; /* the region that global services are signed for */
};
const struct aws_partition *aws_partition_of(const char *region);

/* The settings that decide where a service is. */
struct aws_places {
	const char *region, *profile, *endpoint_url;
	struct env_lookup env;
	const struct profiles *profiles;
};

struct aws_endpoint {
	bool tls, given; /* given: by an address, not by the partition's rule */
	char host[HTTP_HOST_MAX];
	int port;
	char base[256];	 /* of paths: "" or "/prefix" */
	char region[32]; /* of the signature */
};
/* `region` NULL: the session's. */
int aws_endpoint_find(const struct aws_places *p, const struct aws_service *service,
		      const char *region, struct aws_endpoint *ret, struct err *err);
/* Letters, digits and dashes, so that it can be part of a name. */
bool aws_region_is_proper(const char *region);
