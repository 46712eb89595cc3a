#pragma once
/*
 * http_server - a small strict HTTP/1.1 server on the loop.
 *
 * It parses, limits and times; what a path means is the handler's business.  A
 * request is handed over when it is complete.  Malformed or ambiguous requests
 * (CL+TE, duplicate length, obs-fold, bare LF, bad characters) are answered 400
 * and closed here.  Every request has a whole-request deadline, every answer one
 * from its size and a stall limit, every connection an idle limit; per-client
 * buffers are bounded.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"
#include "fmt/url.h"

struct loop;
struct err;
struct http_server;
struct tls_server;
struct transport;
struct http_exchange; /* one request and its answer */

/* Connections that only those who come over the unix socket get. */
#define HTTP_LOCAL_RESERVE 32

struct http_limits {		 /* zero = the default in brackets */
	size_t max_header_bytes; /* [16 KiB] 431; a longer request line 414 */
	size_t max_headers;	 /* [64] */
	size_t max_body;	 /* [1 MiB] 413 */
	uint64_t max_upload;	 /* [8 GiB] for bodies sent to a descriptor */
	int header_ms;		 /* [10 s] from the first byte to the end of the headers */
	int body_ms;		 /* [30 s] whole body, buffered ones */
	int idle_ms;		 /* [60 s] between requests */
	int stall_ms;		 /* [30 s] without the client taking a byte of the answer */
	int min_rate;		 /* [4 KiB] of a whole answer that a client must take a second */
	/* [4096] the longest idle one is closed for a new one; the unix socket
	 * has HTTP_LOCAL_RESERVE more */
	int max_connections;
	/* [1 MiB] answer bytes waiting in a stream; a client that is behind is
	 * cut past it */
	size_t max_queue;
};

struct http_request {
	struct str method, path, raw_query; /* path still percent-coded, begins with '/' */
	struct url_query query;
	struct str body;
	bool local; /* came over the unix socket */
	bool tls;
	int64_t peer_uid; /* unix socket only, else -1 */
	char peer[64];	  /* address for people */
};
struct str http_header(const struct http_exchange *x, const char *name); /* p == NULL if absent */
const struct http_request *http_request(const struct http_exchange *x);
/* The address and port that the client reached us at, "127.0.0.1:5436" or "[::1]:5436"; empty for
 * the unix socket and for a client that left. */
void http_own_address(const struct http_exchange *x, char out[static 64]);
/* The handler's own pointer, kept with the exchange; NULL at first. */
void http_set_user(struct http_exchange *x, void *user);
void *http_user(const struct http_exchange *x);

struct http_handler {
	/* Headers are complete, no body read yet.  Return a descriptor to stream the body into
	 * (the server closes it), -1 to buffer it, or -2 after having answered.  May be NULL:
	 * always buffer. */
	int (*on_headers)(void *ctx, struct http_exchange *x);
	void (*on_request)(void *ctx, struct http_exchange *x);
	/* After on_headers asked for the body, the body failed to come (client gone, too slow,
	 * disk full): x is over and on_request will not be called.  May be NULL. */
	void (*on_abort)(void *ctx, struct http_exchange *x);
};

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits,
				    const struct http_handler *h, void *ctx);
/* Cuts every connection; on_gone and on_abort are called before it returns.  Not from inside a
 * callback. */
struct http_server *http_server_free(struct http_server *s);
/* Both may be called, several times.  A taken port is ERR_CONFLICT "port 5436 on 127.0.0.1 is
 * taken". */
int http_server_listen_unix(struct http_server *s, const char *dir, const char *name,
			    struct err *err);
int http_server_listen_tcp(struct http_server *s, const char *addr, int port, int *ret_port,
			   struct err *err);
/* Clients of TLS ports that ask for this protocol (ALPN) are handed to fn, whose the transport is,
 * once they have shaken hands; all others speak HTTP.  Before http_server_listen_tls. */
typedef void (*http_other_fn)(void *ctx, struct transport *t);
void http_server_other(struct http_server *s, const char *protocol, http_other_fn fn, void *ctx);
/* Let nobody in on TLS ports until as many calls have said false as have said true. */
void http_server_hold(struct http_server *s, bool hold);
/* The same as http_server_listen_tcp behind TLS; `tls` outlives the server.  A client has 10 seconds
 * to shake hands, and at most 512 are at it at once: then the oldest goes. */
int http_server_listen_tls(struct http_server *s, const char *addr, int port,
			   struct tls_server *tls, int *ret_port, struct err *err);
/* The same, and clients that do not begin with TLS speak plain HTTP; for addresses of this machine. */
int http_server_listen_both(struct http_server *s, const char *addr, int port,
			    struct tls_server *tls, int *ret_port, struct err *err);
int http_server_connections(const struct http_server *s);
/* Answers begun so far whose status is in 100 * hundreds .. 100 * hundreds + 99. */
uint64_t http_server_answers(const struct http_server *s, int hundreds);
/* Cut the streamed answers whose user pointer matches; their on_gone follows from the loop. */
void http_server_cut(struct http_server *s, bool (*match)(const void *ctx, const void *user),
		     const void *ctx);
int http_server_count_streams(const struct http_server *s,
			      bool (*match)(const void *ctx, const void *user), const void *ctx);
/* Stop accepting, finish what is being answered. */
void http_server_drain(struct http_server *s);

/* A client may leave while its request is being handled: the answer is then dropped, x stays
 * valid until it is given.  Control characters in a header's value become '?'. */
/* Exactly one of these three ends an exchange; x is not to be used afterwards. */
void http_add_header(struct http_exchange *x, const char *name,
		     const char *value); /* before the answer */
void http_reply(struct http_exchange *x, int status, const char *type, struct str body);
/* [off, off+len) of a regular file by sendfile; takes over fd. */
void http_reply_file(struct http_exchange *x, int status, const char *type, int fd, int64_t off,
		     int64_t len);
/* A chunked answer of unknown length (to the end of the connection for HTTP/1.0).  A client that
 * closes its side is gone, and so is one that asked for the HEAD, at once.  x stays valid until
 * http_stream_end or until on_gone was called. */
void http_stream_begin(struct http_exchange *x, int status, const char *type,
		       void (*on_gone)(void *ctx), void *ctx);
/* False: the client is too slow or gone; on_gone follows from the loop. */
bool http_stream_write(struct http_exchange *x, struct str bytes);
size_t http_stream_queued(const struct http_exchange *x);
/* Called once when the queue of the stream is empty again. */
void http_stream_when_empty(struct http_exchange *x, void (*fn)(void *ctx), void *ctx);
void http_stream_end(struct http_exchange *x);
