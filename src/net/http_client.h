#pragma once
/*
 * http_client - blocking HTTP/1.1 calls with a deadline, over a unix socket or TCP.
 *
 * One connection can carry several calls.  The answer's headers and body are
 * bounded.  Nothing is retried here.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"

struct err;
struct http_client;

struct http_target {
	const char *unix_dir, *unix_name; /* either these */
	const char *address;		  /* or a numeric address and port */
	int port;
	const char *pin;   /* TLS with the server whose key has this digest (tls.h); NULL: plain */
	const char *token; /* "Authorization: Bearer"; NULL = none */
};

/* ERR_UNAVAILABLE if nobody listens.  A connection that the server ended between two calls is
 * dialled anew by the next call, before anything is sent. */
int http_client_open(const struct http_target *t, int timeout_ms, struct http_client **ret,
		     struct err *err);
struct http_client *http_client_free(struct http_client *c);
int http_client_fd(const struct http_client *c);

struct http_answer {
	int status;
	char type[80];
	struct buf body; /* buf_init'ed by the caller with its maximum */
};
void http_answer_init(struct http_answer *a, size_t max_body);
void http_answer_release(struct http_answer *a);

/* A header of the last answer (p == NULL if absent); valid until the next call. */
struct str http_client_header(const struct http_client *c, const char *name);

/* timeout_ms is for the whole call (negative: none).  ERR_CAPACITY if the answer is larger than
 * its buffer. */
int http_call(struct http_client *c, const char *method, const char *path, struct str body,
	      const char *body_type, int timeout_ms, struct http_answer *ret, struct err *err);
/* Body of `size` bytes from fd, from where it stands.  A fd with fewer bytes is ERR_INVALID. */
int http_upload(struct http_client *c, const char *method, const char *path, int fd, uint64_t size,
		int timeout_ms, struct http_answer *ret, struct err *err);

/* A streamed answer: begin (ret_error->status and type are set), then read until *ret_n == 0 at
 * its end.  An answer other than 2xx is read whole into ret_error; its stream is at its end at
 * once. timeout_ms is the longest wait for the next bytes; ERR_TIMEOUT leaves the stream
 * usable.  ERR_CANCELLED when *stop became true (checked on EINTR and at least every 100 ms). */
int http_stream_open(struct http_client *c, const char *method, const char *path, int timeout_ms,
		     struct http_answer *ret_error /* body of a non-2xx answer */, struct err *err);
int http_stream_read(struct http_client *c, void *p, size_t max, int timeout_ms,
		     const volatile int *stop, size_t *ret_n, struct err *err);
