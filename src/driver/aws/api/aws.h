#pragma once
/*
 * aws - a session with AWS: who acts, where, and calls that are signed, paced and tried again.
 *
 * How to call it:
 *
 *	struct aws_config c = {.region = "eu-west-1", .env = env};	(what is NULL is looked for)
 *	struct aws *s;
 *
 *	if (aws_open(&c, deadline, &s, err) < 0)
 *		return -1;
 *
 *	struct aws_request r;
 *	struct aws_answer ans = {0};
 *
 *	aws_request_init(&r, "ec2", "DescribeInstances");
 *	aws_param(&r, "tag:regatta:run", "Filter.%d.Name", 1);
 *	aws_param(&r, run, "Filter.%d.Value.%d", 1, 1);
 *	if (aws_query(s, &r, deadline, &ans, err) == 0)
 *		for (x = xml_at(ans.root, "reservationSet/item"); x; x = xml_next(x))
 *			...
 *	aws_answer_release(&ans);
 *	aws_request_release(&r);
 *
 * Lists that may have several pages are read with aws_query_pages().  A create renders its bytes
 * beforehand (aws_request_bytes()), stores them, and sends what was stored
 * (aws_request_from_bytes()); the signature is not part of them.  S3 is in s3.h.
 *
 * A failed call gives err "CODE: message (request id ID)", whose kind is what core/ladder.c knows:
 * ERR_CAPACITY try another choice · ERR_QUOTA · ERR_DENIED (credentials, permissions, clock) ·
 * ERR_THROTTLED · ERR_NOT_FOUND · ERR_CONFLICT (it exists, it is in use, its state forbids it) ·
 * ERR_INVALID what was asked for cannot be had · ERR_UNAVAILABLE, ERR_TIMEOUT nobody knows ·
 * ERR_CANCELLED.  ans.code has AWS' own word for it.  Only ans.refused says that nothing was done:
 * without it the outcome of a create is open (OUTCOME_UNSURE).
 *
 * A session is safe on any thread.  Throttled, unavailable and unanswered calls are tried again
 * with full jitter, AWS_MAX_TRIES times at most and until the deadline; whatever AWS refuses for
 * another reason is not.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/env.h"
#include "base/str.h"
#include "driver/aws/api/sigv4.h"
#include "fmt/xml.h"

struct arena;
struct aws;
struct deadline;
struct doc;
struct err;

#define AWS_MAX_TRIES 8
#define AWS_MAX_PAGES 10000
#define AWS_ACCOUNT 13 /* twelve digits and a NUL */

/* Texts are copied; what is NULL is looked for (docs/aws.md). */
struct aws_config {
	const char *region, *profile;
	const char *assume_role;  /* ARN: taken on with the credentials that were found */
	const char *endpoint_url; /* of all services */
	/* Explicit credentials beat all others; session_token may be NULL. */
	const char *access_key, *secret_key, *session_token;
	/* Certificates of CAs (PEM), in place of any file of this machine; empty: none. */
	struct str ca_pem;
	struct env_lookup env; /* must outlive the session */
};

/* Finds the region (ERR_INVALID if there is none) and reads the shared files.  Credentials are
 * looked for by the first call. */
int aws_open(const struct aws_config *c, const struct deadline *d, struct aws **ret,
	     struct err *err);
/* NULL is allowed.  Returns NULL. */
struct aws *aws_free(struct aws *s);
static inline void aws_freep(struct aws **s)
{
	*s = aws_free(*s);
}

const char *aws_region(const struct aws *s);
/* The file of the certificates of CAs that the environment or the profile names; NULL: none. */
const char *aws_ca_file(const struct aws *s);
const char *aws_partition(const struct aws *s);	 /* "aws", "aws-cn", "aws-us-gov" */
const char *aws_dns_suffix(const struct aws *s); /* "amazonaws.com" */
/* The account of the credentials, by sts:GetCallerIdentity, which is asked once per session. */
int aws_account(struct aws *s, const struct deadline *d, char out[static AWS_ACCOUNT],
		struct err *err);
/* Where the credentials came from, for people: "environment", "profile 'x'", ...; looks for them. */
int aws_credentials_source(struct aws *s, const struct deadline *d, struct buf *out,
			   struct err *err);
/* The keys themselves, for whoever acts in our place: a master that gets them with a run.  Texts of the
 * arena. */
struct aws_credentials {
	const char *access_key, *secret_key;
	const char *session_token; /* NULL: none */
	int64_t expires_ms;	   /* wall clock; 0: never */
};
int aws_credentials_get(struct aws *s, struct arena *a, const struct deadline *d,
			struct aws_credentials *ret, struct err *err);
/* Keys that are good now, for who acts in the caller's name elsewhere; texts of the arena. */
int aws_keys(struct aws *s, struct arena *a, const struct deadline *d, struct sigv4_keys *ret,
	     struct err *err);
/* Wall clock as AWS has it. */
int64_t aws_clock_ms(const struct aws *s);

/* ---- requests ---- */

struct aws_request {
	const char *service; /* "ec2", "iam", "sts", "autoscaling"; "ssm", ...: see aws_json */
	char action[64];
	struct buf body; /* exactly what is sent */
	/* Not tried again once its outcome is open.  For calls that are not idempotent. */
	bool once;
};

#define AWS_MAX_REQUEST ((size_t)1024 * 1024)

/* The query protocol: "Action=...&Version=..." and parameters in the order in which they are added.
 * `service` is kept as it is, not copied. */
void aws_request_init(struct aws_request *r, const char *service, const char *action);
/* Bytes that aws_request_bytes() gave once. */
int aws_request_from_bytes(struct aws_request *r, const char *service, struct str bytes,
			   struct err *err);
void aws_request_release(struct aws_request *r);
/* A value and its name: aws_param(&r, id, "InstanceId.%d", 1).  A value that is NULL is left out. */
void aws_param(struct aws_request *r, const char *value, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
void aws_param_int(struct aws_request *r, int64_t value, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
void aws_param_bool(struct aws_request *r, bool value, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
/* Base64, as user data is sent. */
void aws_param_base64(struct aws_request *r, struct str value, const char *name, ...)
	__attribute__((format(printf, 3, 4)));
/* A view; the request stays its owner. */
struct str aws_request_bytes(const struct aws_request *r);

/* ---- answers ---- */

#define AWS_VERSION 1025 /* room for the version of an object */

struct aws_answer {
	int status;   /* of HTTP; 0: there was none */
	bool refused; /* AWS said no to every try, so nothing was done */
	char code[96], message[512], request_id[96];
	const struct xml *root; /* aws_query: the root element, "DescribeInstancesResponse" */
	const struct doc *doc;	/* aws_json */
	/* Of S3; "" and 0 where the answer has none. */
	char etag[128], region[32], version[AWS_VERSION];
	uint64_t length;
	struct arena *arena; /* of the trees */
};
/* {0} is an answer; it may be used again after a release. */
void aws_answer_release(struct aws_answer *a);

/* One call.  A DryRun that would have been allowed is a success (code "DryRunOperation"). */
int aws_query(struct aws *s, const struct aws_request *r, const struct deadline *d,
	      struct aws_answer *ret, struct err *err);

/* Each page of a list; the tree is gone after fn.  fn returns -1 with an error to end it. */
typedef int (*aws_page_fn)(void *ctx, const struct xml *root, struct err *err);
/* `ret` has the codes of the call that failed; NULL: not wanted. */
int aws_query_pages(struct aws *s, const struct aws_request *r, const struct deadline *d,
		    aws_page_fn fn, void *ctx, struct aws_answer *ret, struct err *err);

/* A call of a service that speaks JSON ("ssm", "servicequotas"); ret->doc is what it answered. */
int aws_json(struct aws *s, const char *service, const char *action, struct str body,
	     const struct deadline *d, struct aws_answer *ret, struct err *err);
/* Waits; ERR_CANCELLED or ERR_TIMEOUT when it must end before. */
int aws_nap(const struct deadline *d, int64_t ms, struct err *err);
/* A page of somebody else: a GET that is not signed, directly.  ERR_UNAVAILABLE unless it is 200. */
int aws_get_url(struct aws *s, const char *url, const struct deadline *d, struct buf *out,
		struct err *err);
/* ssm:GetParameter: its value, or ERR_NOT_FOUND. */
int aws_ssm_parameter(struct aws *s, const char *name, const struct deadline *d, struct buf *out,
		      struct err *err);
