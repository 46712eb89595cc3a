#pragma once
/*
 * ec2_types - the instance types of EC2: size and price, from ec2_types.csv.
 *
 * Prices are those of Linux on demand in one region, at a date: estimates elsewhere and later.
 */
#include <stdint.h>

#define EC2_PRICES_AS_OF "2026-07"
#define EC2_PRICES_REGION "us-east-1"

struct ec2_type {
	const char *name;
	int vcpus;
	int64_t memory_mib;
	int gpus;
	const char *gpu;    /* its model; "" if there is none */
	int64_t micro_hour; /* price of an hour in millionths of a US dollar; 0: not known */
};

/* NULL if there is none of that name. */
const struct ec2_type *ec2_type_find(const char *name);
/* The type whose name is most like this; NULL if none is. */
const char *ec2_type_suggest(const char *name);
