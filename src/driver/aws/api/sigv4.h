#pragma once
/*
 * sigv4 - AWS Signature Version 4: in headers, or in the query of a URL.
 *
 * Pure: values in, texts of the arena out.  The steps are public because the published vectors
 * test them one by one: canonical request, string to sign, signature.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct arena;

#define SIGV4_UNSIGNED "UNSIGNED-PAYLOAD"
#define SIGV4_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define SIGV4_HEX 65  /* of a SHA-256, with NUL */
#define SIGV4_DATE 17 /* "20150830T123600Z" with NUL */

struct sigv4_keys {
	const char *access_key, *secret_key;
	const char *session_token; /* NULL: none */
};

struct sigv4_scope {
	const char *region, *service;
	int64_t time_ms; /* as the service's clock has it */
};

struct sigv4_header {
	const char *name, *value;
};

struct sigv4_request {
	const char *method;
	struct str path;  /* as it is sent, without query */
	struct str query; /* as it is sent, without '?' */
	/* Those to be signed, in any order; Host must be among them. */
	const struct sigv4_header *headers;
	size_t nheaders;
	const char *payload; /* hex SHA-256 of the body, or SIGV4_UNSIGNED */
	/* S3 takes the path as it is.  All others want it encoded once more, and most of them without
	 * "." and ".." and double slashes. */
	bool path_as_is, keep_dots;
};

/* Both are of the arena. */
const char *sigv4_canonical_request(const struct sigv4_request *r, struct arena *a,
				    const char **ret_signed_headers);
const char *sigv4_string_to_sign(const struct sigv4_scope *s, const char *canonical,
				 struct arena *a);
void sigv4_signature(const char *secret_key, const struct sigv4_scope *s,
		     const char *string_to_sign, char out[static SIGV4_HEX]);

/* The value of "Authorization".  X-Amz-Date and, with a token, X-Amz-Security-Token are headers of r
 * already. */
const char *sigv4_authorization(const struct sigv4_keys *k, const struct sigv4_scope *s,
				const struct sigv4_request *r, struct arena *a);
/* The whole query of a URL that is good for `seconds`; r's own query is its beginning. */
const char *sigv4_presigned_query(const struct sigv4_keys *k, const struct sigv4_scope *s,
				  const struct sigv4_request *r, int64_t seconds, struct arena *a);

void sigv4_date(int64_t time_ms, char out[static SIGV4_DATE]);
void sigv4_hash(struct str body, char out[static SIGV4_HEX]);
/* RFC 3986, as S3 wants keys in a path: '/' stays. */
const char *sigv4_encode_path(struct str path, struct arena *a);
