#pragma once
/*
 * provider - the places where credentials are looked for: private to driver/aws/api/.
 */
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct aws;
struct deadline;
struct doc;
struct err;

struct aws_found {
	const char *access_key, *secret_key, *session_token; /* the last may be NULL */
	int64_t expires_ms;				     /* wall clock; 0: never */
	bool renewable;					     /* a later search may find new ones */
	const char *source;				     /* for people */
};

struct aws_search {
	struct aws *s;
	struct arena *a; /* of what is found */
	const struct deadline *d;
	const char *profile;
	bool by_profile; /* asked for by name: the environment does not count */
	int hops;	 /* from profile to profile */
};

/* 1: found, 0: nothing is set up here, -1: something is, and does not work. */
typedef int (*provider_fn)(const struct aws_search *q, struct aws_found *ret, struct err *err);

/* Asks all providers in their order.  ERR_DENIED if none has credentials. */
int provider_chain(const struct aws_search *q, struct aws_found *ret, struct err *err);
/* Asks only the providers that q's profile names; returns what a provider_fn does. */
int provider_of_profile(const struct aws_search *q, struct aws_found *ret, struct err *err);

int provider_environment(const struct aws_search *q, struct aws_found *ret, struct err *err);
int provider_role(const struct aws_search *q, struct aws_found *ret, struct err *err);
int provider_web_identity(const struct aws_search *q, struct aws_found *ret, struct err *err);
int provider_sso(const struct aws_search *q, struct aws_found *ret, struct err *err);
int provider_keys(const struct aws_search *q, struct aws_found *ret, struct err *err);
int provider_process(const struct aws_search *q, struct aws_found *ret, struct err *err);
int provider_container(const struct aws_search *q, struct aws_found *ret, struct err *err);
int provider_instance(const struct aws_search *q, struct aws_found *ret, struct err *err);

/* The parameters of AssumeRole; those that are NULL are not sent. */
struct role_wish {
	const char *arn;
	const char *session_name, *external_id, *duration;
};
/* Assumes the role with the credentials in *found, and replaces them by those of the role. */
int provider_assume(const struct aws_search *q, const struct role_wish *w, struct aws_found *found,
		    struct err *err);
/* Assumes the role with the token of an identity provider, which is in a file. */
int provider_assume_by_token(const struct aws_search *q, const struct role_wish *w,
			     const char *token_file, struct aws_found *ret, struct err *err);

/* {"AccessKeyId", "SecretAccessKey", "Token" or "SessionToken", "Expiration"} */
int provider_read(const struct aws_search *q, const struct doc *doc, const char *source,
		  struct aws_found *ret, struct err *err);
/* The text of a small file, without blanks at its ends. */
int provider_read_file(const struct aws_search *q, const char *path, const char **ret,
		       struct err *err);
