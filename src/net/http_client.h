#pragma once
/*
 * http_client - blocking HTTP/1.1 calls with a deadline and a stop flag, over a unix socket, TCP or
 * TLS, directly or through a proxy.
 *
 * A client has one target and one connection, used for one call at a time.  If the server closed the
 * connection between two calls, the next call connects again before it sends anything.  Nothing else
 * is retried: after an error the caller does not know whether the server acted on the call.  Heads of
 * answers are at most 64 KiB, bodies as large as their buffer.  A client belongs to one thread at a
 * time.
 *
 * Kinds of errors: ERR_INVALID the request cannot be sent · ERR_DENIED the server or proxy is not
 * trusted, or refuses the connection · ERR_UNAVAILABLE it cannot be reached, or closed the connection
 * · ERR_PROTOCOL it does not speak HTTP · ERR_CAPACITY the answer is larger than the buffer ·
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
	const char *unix_dir, *unix_name; /* a unix socket, */
	const char *host;		  /* or a name or numeric address, and a port */
	int port;
	/* For a host TLS_OFF, TLS_PIN or TLS_CA; TLS_UNDECIDED is ERR_INVALID.  No TLS over a unix
	 * socket. */
	struct tls_trust tls;
	struct proxy_settings proxy;	/* {0}: none */
	struct resolve_options resolve; /* {0}: the system's files */
	const char *token;		/* "Authorization: Bearer"; NULL = none */
	/* For a server behind a gateway, which is spoken to: what stands before every path ("/a/b", without a slash at its
	 * end), and the token of the server itself, in HTTP_INNER_TOKEN; NULL = none. */
	const char *prefix, *inner_token;
	const volatile int *stop; /* see http_client_set_stop */
};

/* The header for the token of a master that is reached through a gateway, which keeps "Authorization" for itself. */
#define HTTP_INNER_TOKEN "X-Regatta-Token"

/* Copies the target and connects, within timeout_ms (negative: no limit). */
int http_client_open(const struct http_target *t, int timeout_ms, struct http_client **ret,
		     struct err *err);
struct http_client *http_client_free(struct http_client *c);
/* For poll(), only after http_stream_read returned ERR_TIMEOUT: TLS may hold decrypted bytes. */
int http_client_fd(const struct http_client *c);
/* Once *stop is not 0, every wait ends with ERR_CANCELLED within 100 ms (deadline.h).  NULL: no stop
 * flag. */
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

/* A request.  Members that are 0 are not used. */
struct http_field {
	const char *name, *value;
};
#define HTTP_MAX_FIELDS 64
#define HTTP_MAX_REDIRECTS 10

struct http_outgoing {
	const char *method, *path;
	int timeout_ms; /* for the whole call (negative: none) */
	/* Headers, without those of framing; "Authorization" only if the target has no token. */
	const struct http_field *fields;
	size_t nfields;
	const char *type; /* "Content-Type" */

	struct str body; /* or, with from_fd: */
	bool from_fd;	 /* `size` bytes of fd; ERR_INVALID if it has fewer */
	int fd;
	int64_t offset; /* in fd; -1: the file offset of fd */
	uint64_t size;
	bool expect_continue; /* wait for 100 Continue before the body is sent */

	/* GET and HEAD: follow up to this many redirects; one more is ERR_PROTOCOL, one from https to
	 * http ERR_DENIED.  Another host gets no token, no client certificate, and only harmless fields
	 * (Accept, Range, ...).  The next call goes to the target again.
	 * 0, and other methods: a redirect is returned as the answer. */
	int max_redirects;
};

int http_send(struct http_client *c, const struct http_outgoing *r, struct http_answer *ret,
	      struct err *err);
/* A streamed answer: sets ret_error->status and type; then call http_stream_read until *ret_n == 0.  An
 * answer other than 2xx is read whole into ret_error, and its stream is empty. */
int http_send_stream(struct http_client *c, const struct http_outgoing *r,
		     struct http_answer *ret_error, struct err *err);
/* timeout_ms is the longest wait for the next bytes; ERR_TIMEOUT leaves the stream usable.
 * ERR_CANCELLED when *stop (NULL: the client's flag) is not 0. */
int http_stream_read(struct http_client *c, void *p, size_t max, int timeout_ms,
		     const volatile int *stop, size_t *ret_n, struct err *err);

/* http_send and http_send_stream with fewer options. */
int http_call(struct http_client *c, const char *method, const char *path, struct str body,
	      const char *body_type, int timeout_ms, struct http_answer *ret, struct err *err);
/* The body is `size` bytes from the file offset of fd. */
int http_upload(struct http_client *c, const char *method, const char *path, int fd, uint64_t size,
		int timeout_ms, struct http_answer *ret, struct err *err);
int http_stream_open(struct http_client *c, const char *method, const char *path, int timeout_ms,
		     struct http_answer *ret_error, struct err *err);

/* Download to a file, from an offset on. */
struct http_download {
	/* method and body are ignored; timeout_ms is for the whole download */
	struct http_outgoing get;
	int fd;		    /* written at its offset, never truncated */
	uint64_t offset;    /* in: bytes that the file has already; out: bytes that it has now */
	uint64_t max_bytes; /* of the whole file; more is ERR_CAPACITY */
	/* longest wait for the head and for the next bytes; 0: only timeout_ms is the limit */
	int stall_ms;
};
/* 0: ret->status is 200 or 206 and the file is complete up to d->offset; or it is another status and ret
 * has the body.  -1: the bytes received are in the file, and the next call continues at d->offset.  With
 * a server without ranges it begins again at 0.  ERR_CONFLICT: the server's file is shorter than
 * d->offset. */
int http_download(struct http_client *c, struct http_download *d, struct http_answer *ret,
		  struct err *err);
