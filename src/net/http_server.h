#pragma once
/*
 * http_server - a small strict HTTP/1.1 server on the loop.
 *
 * It parses and enforces limits; the handler implements the paths.  A request is handed over when it
 * is complete.  Malformed or ambiguous requests (CL+TE, duplicate length, obs-fold, bare LF, bad
 * characters) are answered with 400 and closed here.  Every request has a deadline, every answer a
 * deadline from its size and a stall limit, every connection an idle limit; buffers per client are
 * bounded.
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

/* Connections reserved for clients of the unix socket. */
#define HTTP_LOCAL_RESERVE 32

struct http_limits {		 /* zero = the default in brackets */
	size_t max_header_bytes; /* [16 KiB] 431; a longer request line 414 */
	size_t max_headers;	 /* [64] */
	size_t max_body;	 /* [1 MiB] 413 */
	uint64_t max_upload;	 /* [8 GiB] for bodies sent to a descriptor */
	int header_ms;		 /* [10 s] from the first byte to the end of the headers */
	int body_ms;		 /* [30 s] whole body, buffered ones */
	int idle_ms;		 /* [60 s] between requests */
	int stall_ms;		 /* [30 s] in which the client reads nothing of the answer */
	int min_rate;		 /* [4 KiB] per second that a client must read of a whole answer */
	/* [4096] beyond this the longest idle connection is closed for a new one; the unix socket
	 * has HTTP_LOCAL_RESERVE more */
	int max_connections;
	/* [1 MiB] bytes queued for a stream; a client that is behind with more is
	 * disconnected */
	size_t max_queue;
};

struct http_request {
	struct str method, path, raw_query; /* path still percent-coded, begins with '/' */
	struct url_query query;
	struct str body;
	bool local; /* came over the unix socket */
	bool tls;
	int64_t peer_uid; /* unix socket only, else -1 */
	char peer[64];	  /* address, for messages */
};
struct str http_header(const struct http_exchange *x, const char *name); /* p == NULL if absent */
const struct http_request *http_request(const struct http_exchange *x);
/* The local address and port of the connection, "127.0.0.1:5436" or "[::1]:5436"; "" for the unix
 * socket and for a client that left. */
void http_own_address(const struct http_exchange *x, char out[static 64]);
/* A pointer of the handler, stored in the exchange; initially NULL. */
void http_set_user(struct http_exchange *x, void *user);
void *http_user(const struct http_exchange *x);

struct http_handler {
	/* Headers are complete, no body read yet.  Return a descriptor to stream the body into
	 * (the server closes it), -1 to buffer it, or -2 after having answered.  May be NULL:
	 * always buffer. */
	int (*on_headers)(void *ctx, struct http_exchange *x);
	void (*on_request)(void *ctx, struct http_exchange *x);
	/* The body that on_headers asked for could not be read or stored (client gone, too slow,
	 * disk full): x is over and on_request will not be called.  May be NULL. */
	void (*on_abort)(void *ctx, struct http_exchange *x);
};

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits,
				    const struct http_handler *h, void *ctx);
/* Closes every connection; on_gone and on_abort are called before it returns.  Not to be called from a
 * callback. */
struct http_server *http_server_free(struct http_server *s);
/* A server may have several listeners.  A port in use is ERR_CONFLICT "port 5436 on 127.0.0.1 is
 * taken". */
int http_server_listen_unix(struct http_server *s, const char *dir, const char *name,
			    struct err *err);
int http_server_listen_tcp(struct http_server *s, const char *addr, int port, int *ret_port,
			   struct err *err);
/* Clients of TLS ports that ask for this protocol (ALPN) are passed to fn after the handshake, which
 * owns the transport; all others speak HTTP.  To be called before http_server_listen_tls. */
typedef void (*http_other_fn)(void *ctx, struct transport *t);
void http_server_other(struct http_server *s, const char *protocol, http_other_fn fn, void *ctx);
/* Accept no connections on TLS ports until as many calls with false as with true were made. */
void http_server_hold(struct http_server *s, bool hold);
/* http_server_listen_tcp with TLS; `tls` must outlive the server.  A handshake may take 10 seconds; with
 * more than 512 at once the oldest is closed. */
int http_server_listen_tls(struct http_server *s, const char *addr, int port,
			   struct tls_server *tls, int *ret_port, struct err *err);
/* The same, and clients that do not begin with TLS get plain HTTP; for loopback addresses. */
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
/* Exactly one of http_reply, http_reply_file and http_stream_end ends an exchange; x must not be used
 * afterwards.  If the client left, the answer is dropped; x stays valid until then.  Control characters
 * in a header's value become '?'. */
void http_add_header(struct http_exchange *x, const char *name,
		     const char *value); /* before the answer */
void http_reply(struct http_exchange *x, int status, const char *type, struct str body);
/* [off, off+len) of a regular file by sendfile; takes over fd. */
void http_reply_file(struct http_exchange *x, int status, const char *type, int fd, int64_t off,
		     int64_t len);
/* A chunked answer of unknown length (up to the end of the connection for HTTP/1.0).  on_gone is called
 * when the client closes its side, and at once for a HEAD request.  x stays valid until http_stream_end
 * or until on_gone was called. */
void http_stream_begin(struct http_exchange *x, int status, const char *type,
		       void (*on_gone)(void *ctx), void *ctx);
/* False: the client is too slow or gone; on_gone follows from the loop. */
bool http_stream_write(struct http_exchange *x, struct str bytes);
size_t http_stream_queued(const struct http_exchange *x);
/* Called once when the queue of the stream is empty again. */
void http_stream_when_empty(struct http_exchange *x, void (*fn)(void *ctx), void *ctx);
void http_stream_end(struct http_exchange *x);
