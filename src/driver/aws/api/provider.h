#pragma once
/*
 * provider - the places where credentials are looked for: private to driver/aws/api/.
 */
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct aws;
struct aws_request;
struct deadline;
struct doc;
struct err;
struct sigv4_keys;
struct xml;

struct aws_found {
	const char *access_key, *secret_key, *session_token; /* the last may be NULL */
	int64_t expires_ms;				     /* wall clock; 0: never */
	bool renewable;					     /* looking again may give others */
	const char *source;				     /* for people */
};

struct aws_search {
	struct aws *s;
	struct arena *a; /* of what is found */
	const struct deadline *d;
	const char *profile;
	bool by_profile; /* asked for by name: the environment does not count */
};

/* 1: found, 0: nothing is set up here, -1: something is, and does not work. */
typedef int (*provider_fn)(const struct aws_search *q, struct aws_found *ret, struct err *err);

/* All in their order: 0, or -1 (ERR_DENIED if nobody has any). */
int provider_chain(const struct aws_search *q, struct aws_found *ret, struct err *err);
/* Take on a role with *found, and leave what comes in it. */
int provider_assume(const struct aws_search *q, const char *role_arn, struct aws_found *found,
		    struct err *err);

struct role_wish {
	const char *arn;
	const char *session_name, *external_id, *duration; /* NULL: not said */
};
int provider_assume_with(const struct aws_search *q, const struct role_wish *w,
			 struct aws_found *found, struct err *err);
/* An AssumeRole... of STS; keys NULL: not signed. */
int provider_sts(const struct aws_search *q, const struct aws_request *r,
		 const struct sigv4_keys *keys, const char *role_arn, struct aws_found *ret,
		 struct err *err);
