#pragma once
/*
 * http_conn - one client of the HTTP server: private to net/http_*.c.
 *
 * A connection serves one exchange at a time; bytes of pipelined requests wait in `in`.
 * The exchange belongs to the connection until it is handed over (on_headers), then to the handler
 * until it answers; if the connection dies before, the exchange is detached (conn == NULL).  A
 * connection is freed from the loop, never inside a call, so that handlers may call any function.
 */
#include "base/buf.h"
#include "base/list.h"
#include "net/crowd.h"
#include "net/http1.h"
#include "net/http_server.h"
#include "net/listener.h"
#include "net/transport.h"

struct loop_io;
struct loop_timer;
struct arena;

enum http_state {
	HTTP_WAITING,	/* idle, or a head is incomplete */
	HTTP_HEADERS,	/* inside on_headers */
	HTTP_BODY,	/* the body is being read */
	HTTP_HANDLING,	/* the handler has the exchange */
	HTTP_ANSWERING, /* a complete answer is being sent; the exchange is over */
	HTTP_STREAMING, /* between http_stream_begin and http_stream_end */
	HTTP_LINGERING, /* output is shut down; waiting for the client's end of file */
};

struct http_front { /* one listener */
	struct http_server *server;
	struct listener *listener;
	struct tls_server *tls; /* NULL: plain */
	bool plain_too;		/* clients that do not begin with TLS speak plain HTTP */
	bool local;
	struct http_front *next;
};

struct http_shaking { /* a client of a TLS port during its handshake */
	struct crowd_member member;
	const struct http_front *front;
	struct tls_handshake *handshake;
};

struct http_server {
	struct loop *loop;
	struct http_limits limits;
	struct http_handler handler;
	void *ctx;
	struct http_front *fronts;
	struct list conns;   /* all of them */
	struct list waiting; /* connections without a request in progress, the longest idle first */
	struct list later;   /* to be handled from the loop */
	struct list detached; /* exchanges at a handler whose client left */
	struct list gone;     /* exchanges whose handler must be told that they are over */
	struct crowd shaking; /* struct http_shaking */
	int holds;	      /* reasons to let nobody in on a TLS port */
	const char *other;    /* the protocol of connections that are handed over; NULL: none */
	http_other_fn other_fn;
	void *other_ctx;
	struct loop_timer *soon; /* handles `later` and `gone` */
	int nconns;
	uint64_t answers[6]; /* by the first digit of the status */
	int64_t date_s;	     /* the second that `date` names */
	char date[40];
};

struct http_conn {
	struct list all, waiting, later;
	struct http_server *server;
	struct transport transport;
	struct loop_io *io;
	struct loop_timer *timer; /* its meaning depends on the state */
	enum http_state state;
	bool local, eof, close_after, processing, dead;
	/* The front of a client that has sent nothing yet and may begin with TLS; such a connection is
	 * closed with its front. */
	const struct http_front *undecided;

	struct http1 head;
	struct http1_body body;
	int upload_fd;
	int64_t upload_deadline_ms, answer_deadline_ms;
	struct http_exchange *x;
	struct buf in; /* read, not parsed yet */

	struct buf out; /* to be sent, from out_sent on; then the file */
	size_t out_sent;
	int file_fd;
	off_t file_off;
	int64_t file_left;

	int64_t peer_uid;
	char peer[64];
};

struct http_exchange {
	struct http_conn *conn;	    /* NULL: the client is gone */
	struct http_server *server; /* NULL: the server is gone too */
	struct list gone;	    /* in detached or gone of the server */
	struct http_request request;
	struct http1 head;
	struct arena *arena;
	struct buf body, extra; /* extra: headers of the answer */
	bool is_head, chunked, aborted;
	void *user;
	void (*on_gone)(void *ctx);
	void *gone_ctx;
	void (*when_empty)(void *ctx);
	void *when_empty_ctx;
};

/* http_server.c */
/* Takes over fd, whose client begins with TLS. */
void http_front_shake_hands(const struct http_front *f, int fd);

/* http_conn.c */
/* Takes over a transport, plain or TLS after its handshake. */
void http_conn_accept(const struct http_front *f, const struct transport *t);
/* Close now; a detached exchange's handler is told from the loop. */
void http_conn_kill(struct http_conn *c);
void http_conn_free(struct http_conn *c);
void http_conn_later(struct http_conn *c);
/* The answer is sent: wait for the next request, or end. */
void http_conn_answered(struct http_conn *c);
/* Parse the bytes in `in`. */
void http_conn_process_pending(struct http_conn *c);
/* Set interest in the socket from the state. */
void http_conn_watch(struct http_conn *c);

/* http_reply.c */
struct http_exchange *http_exchange_free(struct http_exchange *x);
/* Over without an answer: the handler is told from the loop. */
void http_exchange_gone(struct http_exchange *x);
/* Answer without a handler and close. */
void http_conn_refuse(struct http_conn *c, int status, const char *why);
/* Send what waits.  False when the connection died. */
bool http_conn_flush(struct http_conn *c);
size_t http_conn_unsent(const struct http_conn *c);
/* Queue text that is no answer ("100 Continue"). */
void http_conn_say(struct http_conn *c, struct str text);
/* The stream's queue ran empty: tell who asked. */
void http_conn_check_empty(struct http_conn *c);
