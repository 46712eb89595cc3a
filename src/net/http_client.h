#pragma once
/*
 * http_client - blocking HTTP/1.1 calls with a deadline and a stop flag, over a unix socket, TCP or
 * TLS, directly or through a proxy.
 *
 * A client has one target and one connection, which carries its calls one after the other.  A
 * connection that the server ended between two calls is dialled anew by the next call, before
 * anything is sent.  Nothing else is retried here: after an error of a call the caller does not
 * know whether the server acted on it.  Heads of answers are at most 64 KiB, bodies as large as
 * their buffer.  A client belongs to one thread at a time.
 *
 * Kinds of errors: ERR_INVALID what was asked for cannot be sent · ERR_DENIED the server (or the
 * proxy) is not trusted or does not let us through · ERR_UNAVAILABLE it cannot be reached or hung
 * up · ERR_PROTOCOL it does not speak HTTP · ERR_CAPACITY its answer is larger than the buffer ·
 * ERR_TIMEOUT · ERR_CANCELLED.  A status such as 404 is an answer, not an error.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"
#include "net/proxy.h"
#include "net/resolve.h"
#include "net/tls_client.h"

struct err;
struct http_client;

struct http_target {
	const char *unix_dir, *unix_name; /* either these */
	const char *host;		  /* or a name or a numeric address, and a port */
	int port;
	/* Of a host: TLS_OFF, TLS_PIN or TLS_CA is the caller's choice; none is ERR_INVALID.  Only
	 * plain over a unix socket. */
	struct tls_trust tls;
	struct proxy_settings proxy;	/* {0}: none */
	struct resolve_options resolve; /* {0}: the system's files */
	const char *token;		/* "Authorization: Bearer"; NULL = none */
	const volatile int *stop;	/* see http_client_set_stop */
};

/* Copies the target and connects.  timeout_ms is for all of it (negative: none). */
int http_client_open(const struct http_target *t, int timeout_ms, struct http_client **ret,
		     struct err *err);
struct http_client *http_client_free(struct http_client *c);
/* Poll it only after a read of a stream said ERR_TIMEOUT: TLS may hold bytes back. */
int http_client_fd(const struct http_client *c);
/* Every wait of every call ends with ERR_CANCELLED within 100 ms once *stop is not 0 (deadline.h).
 * NULL: nobody stops it. */
void http_client_set_stop(struct http_client *c, const volatile int *stop);

struct http_answer {
	int status;
	char type[80];
	struct buf body; /* buf_init'ed by the caller with its maximum */
};
void http_answer_init(struct http_answer *a, size_t max_body);
void http_answer_release(struct http_answer *a);

/* A header of the last answer (p == NULL if absent); valid until the next call. */
struct str http_client_header(const struct http_client *c, const char *name);

/* A request in full.  What is 0 is not used. */
struct http_field {
	const char *name, *value;
};
#define HTTP_MAX_FIELDS 64
#define HTTP_MAX_REDIRECTS 10

struct http_outgoing {
	const char *method, *path;
	int timeout_ms; /* for the whole call (negative: none) */
	/* Headers besides those that say how the message is cut; "Authorization" if the target has no
	 * token. */
	const struct http_field *fields;
	size_t nfields;
	const char *type; /* "Content-Type" */

	struct str body; /* or: */
	bool from_fd;	 /* `size` bytes of fd; fewer in it are ERR_INVALID */
	int fd;
	int64_t offset; /* where they begin; -1: where fd stands */
	uint64_t size;
	bool expect_continue; /* ask before the body is sent */

	/* GET and HEAD: follow so many redirects; one more is ERR_PROTOCOL, one from https to http
	 * ERR_DENIED.  To another host go no token, no client certificate, and of the fields only
	 * harmless ones (Accept, Range, ...).  The next call is to the target again.
	 * 0: a redirect is an answer like others, as it always is for other methods. */
	int max_redirects;
};

int http_send(struct http_client *c, const struct http_outgoing *r, struct http_answer *ret,
	      struct err *err);
/* A streamed answer: begin (ret_error->status and type are set), then read until *ret_n == 0 at
 * its end.  An answer other than 2xx is read whole into ret_error; its stream is at its end at
 * once. */
int http_send_stream(struct http_client *c, const struct http_outgoing *r,
		     struct http_answer *ret_error, struct err *err);
/* timeout_ms is the longest wait for the next bytes; ERR_TIMEOUT leaves the stream usable.
 * ERR_CANCELLED when *stop (NULL: that of the client) is not 0. */
int http_stream_read(struct http_client *c, void *p, size_t max, int timeout_ms,
		     const volatile int *stop, size_t *ret_n, struct err *err);

/* Shorter forms. */
int http_call(struct http_client *c, const char *method, const char *path, struct str body,
	      const char *body_type, int timeout_ms, struct http_answer *ret, struct err *err);
/* Body of `size` bytes from fd, from where it stands. */
int http_upload(struct http_client *c, const char *method, const char *path, int fd, uint64_t size,
		int timeout_ms, struct http_answer *ret, struct err *err);
int http_stream_open(struct http_client *c, const char *method, const char *path, int timeout_ms,
		     struct http_answer *ret_error, struct err *err);

/* A body that goes to a file, from some offset on. */
struct http_download {
	/* method and body are not looked at; timeout_ms is for all of it */
	struct http_outgoing get;
	int fd;		    /* written at its offset, never truncated */
	uint64_t offset;    /* in: how much is there already; out: how much is there now */
	uint64_t max_bytes; /* of the whole; more is ERR_CAPACITY */
	/* longest wait for the head and for the next bytes; 0: only timeout_ms counts */
	int stall_ms;
};
/* 0: ret->status is 200 or 206 and the file is complete up to d->offset, or it is another and its
 * body in ret.  -1: what came so far is in the file, and a next call goes on at d->offset.  A server
 * that knows no ranges begins again at 0.  ERR_CONFLICT: what is there now is shorter. */
int http_download(struct http_client *c, struct http_download *d, struct http_answer *ret,
		  struct err *err);
