#pragma once
/* What the files of driver/aws/api/ share. */
#include <pthread.h>
#include <stdatomic.h>
#include "driver/aws/api/aws.h"
#include "driver/aws/api/credentials.h"
#include "driver/aws/api/endpoint.h"
#include "driver/aws/api/errors.h"
#include "driver/aws/api/governor.h"
#include "driver/aws/api/sigv4.h"
#include "net/http_client.h"

#define AWS_IDLE 8 /* connections that are kept */

/* A connection that nobody uses at the moment. */
struct aws_idle {
	struct http_client *client;
	char host[HTTP_HOST_MAX];
	int port;
	bool tls;
};

struct aws {
	struct arena *arena; /* of the settings */
	struct aws_places places;
	const struct aws_partition *partition;
	const char *ca_file;
	struct str ca_pem; /* beats ca_file */
	struct proxy_settings proxy;
	struct governor *governor;
	atomic_int_fast64_t skew_ms; /* AWS' clock minus ours */
	struct credentials *credentials;

	pthread_mutex_t lock; /* of the rest */
	struct aws_idle idle[AWS_IDLE];
	char account[AWS_ACCOUNT]; /* "": not asked yet */
};

/* ---- calls of any protocol ---- */

enum aws_shape { AWS_XML, AWS_JSON, AWS_BYTES };

#define AWS_MAX_HEADERS 24
#define AWS_FORM "application/x-www-form-urlencoded; charset=utf-8"

struct aws_call {
	const char *service, *action; /* "s3", "PutObject" */
	const char *method;
	const char *label;			      /* put before the host ("bucket."); NULL */
	const char *path;			      /* encoded */
	const char *query;			      /* encoded; "" */
	const char *region;			      /* NULL: the session's */
	struct sigv4_header headers[AWS_MAX_HEADERS]; /* besides those that every call has */
	size_t nheaders;
	const char *type;
	struct str body; /* or: */
	bool from_fd;
	int fd;
	int64_t offset;
	uint64_t size;
	const char *payload; /* hex SHA-256, SIGV4_UNSIGNED; NULL: that of body */
	int64_t resources;   /* that the governor counts */
	bool once;
	const struct sigv4_keys *keys; /* NULL: the session's */
	bool anonymous;		       /* not signed at all */
	enum aws_shape shape;	       /* of the answer; errors are XML or JSON as they come */
	struct buf *sink;	       /* AWS_BYTES: where the answer goes, or: */
	struct http_download *file;    /* to a file; `get` is filled in here */
};

void aws_call_header(struct aws_call *c, const char *name, const char *value);
/* With retries; `ret` is released first. */
int aws_call_run(struct aws *s, const struct aws_call *c, const struct deadline *d,
		 struct aws_answer *ret, struct err *err);
/* A URL that is good for `seconds`. */
int aws_call_presign(struct aws *s, const struct aws_call *c, int64_t seconds,
		     const struct deadline *d, struct buf *out, struct err *err);

/* ---- connections (connect.c) ---- */

int aws_connect(struct aws *s, const char *host, int port, bool tls, const struct deadline *d,
		struct http_client **ret, struct err *err);
/* Gives it back; `good`: it can carry another call. */
void aws_disconnect(struct aws *s, struct http_client *client, const char *host, int port, bool tls,
		    bool good);
/* One plain call to a URL, not signed, not tried again; for metadata services.  No proxy. */
int aws_fetch(struct aws *s, const char *method, const char *url, const struct http_field *fields,
	      size_t nfields, const struct deadline *d, struct buf *out, int *ret_status,
	      struct err *err);

/* Milliseconds of an http_outgoing's timeout. */
int aws_timeout_ms(const struct deadline *d, int64_t at_most);
