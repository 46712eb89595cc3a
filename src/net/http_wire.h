#pragma once
/*
 * http_wire - one connection of the HTTP client: private to net/http_*.c.
 *
 * It sends the bytes of requests and reads heads and bodies of answers, each wait with a deadline.
 * The socket is non-blocking.  While a request is sent an early answer is read, because a server that
 * refuses an upload answers and stops reading.  Other TLS records (session tickets, keys) are no
 * answer.
 */
#include <stdbool.h>
#include "base/str.h"
#include "net/http1.h"
#include "net/transport.h"

struct deadline;
struct err;

#define HTTP_WIRE_BUFFER (64 * 1024)

struct http_wire {
	struct transport transport; /* fd -1: not connected */
	struct http1 head;
	struct http1_body body;
	char *in;		    /* HTTP_WIRE_BUFFER bytes */
	size_t at, n;		    /* unread: in[at..n) */
	int interims;		    /* answers of 1xx before the final one */
	enum http1_result got_head; /* HTTP1_MORE: not yet */
	bool got_continue;
	bool open_answer; /* a streamed answer is not read to its end */
	bool spoiled;	  /* the connection cannot be used for another call */
};

void http_wire_init(struct http_wire *w);
void http_wire_release(struct http_wire *w);
void http_wire_hang_up(struct http_wire *w);
/* Is it connected and usable for another request?  If not it is closed. */
bool http_wire_is_ready(struct http_wire *w);

/* Before each request: forget the previous answer. */
void http_wire_begin(struct http_wire *w);
/* 1: sent.  0: the answer arrived before all was sent, or the server closed: read it.  -1: error. */
int http_wire_send(struct http_wire *w, struct str bytes, const struct deadline *d,
		   struct err *err);
/* After the head of a request that expects 100-continue: 1: send the body (the server said so, or did
 * not answer for a second).  0 and -1 as above. */
int http_wire_await_continue(struct http_wire *w, const struct deadline *d, struct err *err);
/* bodiless: the answer has no body, regardless of its head (HEAD, CONNECT). */
int http_wire_read_head(struct http_wire *w, bool bodiless, const struct deadline *d,
			struct err *err);
/* The next bytes of the body, at most max; a view.  n == 0 at its end. */
int http_wire_read_body(struct http_wire *w, size_t max, const struct deadline *d, struct str *ret,
			struct err *err);
