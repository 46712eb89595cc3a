#include "net/http_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/deadline.h"
#include "base/err.h"

#define MAX_HEAD (64 * 1024)
#define MAX_HEADERS 128
#define MAX_INTERIMS 16
#define CONTINUE_MS 1000 /* a server without 100-continue does not answer */

void http_wire_init(struct http_wire *w)
{
	*w = (struct http_wire){.transport.fd = -1, .in = xmalloc(HTTP_WIRE_BUFFER)};
	http1_init(&w->head, HTTP1_RESPONSE, MAX_HEAD, MAX_HEADERS);
}

void http_wire_release(struct http_wire *w)
{
	http_wire_hang_up(w);
	http1_reset(&w->head);
	free(w->in);
}

void http_wire_hang_up(struct http_wire *w)
{
	if (w->transport.fd >= 0)
		w->transport.ops->close(&w->transport);
	w->transport.fd = -1;
	w->at = w->n = 0;
	w->open_answer = w->spoiled = false;
}

/* Read without waiting: > 0 bytes are buffered now, 0 end of input, -1 with errno. */
static ssize_t take_some(struct http_wire *w)
{
	ssize_t n = w->transport.ops->read(&w->transport, w->in, HTTP_WIRE_BUFFER);

	w->at = 0;
	w->n = n > 0 ? (size_t)n : 0;
	return n;
}

bool http_wire_is_ready(struct http_wire *w)
{
	if (w->transport.fd < 0)
		return false;
	/* An idle connection can only receive its end of file.  TLS session tickets are consumed by the
	 * read, which then returns EAGAIN. */
	if (w->open_answer || w->spoiled || w->at < w->n || take_some(w) >= 0 || errno != EAGAIN)
		http_wire_hang_up(w);
	return w->transport.fd >= 0;
}

void http_wire_begin(struct http_wire *w)
{
	http1_reset(&w->head);
	w->interims = 0;
	w->got_head = HTTP1_MORE;
	w->got_continue = false;
}

/* Parse the buffered bytes as the answer's head; true when it is complete, or bad. */
static bool feed_head(struct http_wire *w)
{
	while (w->at < w->n && w->got_head == HTTP1_MORE) {
		size_t used;
		enum http1_result r =
			http1_feed(&w->head, (struct str){w->in + w->at, w->n - w->at}, &used);

		w->at += used;
		if (r == HTTP1_DONE && w->head.status < 200 && w->head.status != 101) {
			w->got_continue |= w->head.status == 100;
			http1_reset(&w->head);
			r = HTTP1_MORE;
			if (++w->interims > MAX_INTERIMS) {
				w->head.bad_why = "too many answers of 1xx";
				r = HTTP1_BAD;
			}
		}
		w->got_head = r;
	}
	return w->got_head != HTTP1_MORE;
}

/* Read what the server sends during the request; true for an answer or an end of file. */
static bool is_answered(struct http_wire *w)
{
	ssize_t n = take_some(w);

	if (n < 0 && errno == EAGAIN)
		return false;
	return n <= 0 || feed_head(w);
}

int http_wire_send(struct http_wire *w, struct str bytes, const struct deadline *d, struct err *err)
{
	while (bytes.n > 0) {
		int events = deadline_poll(d, w->transport.fd, POLLOUT | POLLIN,
					   "the server did not take the request", err);

		if (events < 0)
			return -1;
		if ((events & POLLIN) && is_answered(w))
			return 0;
		struct iovec iov = {(void *)(uintptr_t)bytes.p, bytes.n};
		ssize_t n = w->transport.ops->writev(&w->transport, &iov, 1);

		if (n < 0 && errno != EAGAIN)
			return 0; /* an answer sent before the server closed may still be read */
		if (n > 0) {
			bytes.p += n;
			bytes.n -= (size_t)n;
		}
	}
	return 1;
}

/* 1: there are unread bytes.  0: end of input. */
static int fill(struct http_wire *w, const struct deadline *d, struct err *err)
{
	while (w->at == w->n) {
		ssize_t n = take_some(w);

		if (n == 0)
			return 0;
		if (n < 0 && errno != EAGAIN)
			return err_errno(err, errno, "read the answer");
		if (n < 0 &&
		    deadline_poll(d, w->transport.fd, POLLIN, "the server did not answer", err) < 0)
			return -1;
	}
	return 1;
}

int http_wire_await_continue(struct http_wire *w, const struct deadline *d, struct err *err)
{
	struct deadline soon = deadline_within(d, CONTINUE_MS);
	struct err own;

	while (!feed_head(w) && !w->got_continue) {
		int rc = fill(w, &soon, &own);

		if (rc == 0)
			return 0;
		if (rc < 0 && own.kind == ERR_TIMEOUT && deadline_left_ms(d) > 0)
			return 1;
		if (rc < 0) {
			if (err)
				*err = own;
			return -1;
		}
	}
	return w->got_head == HTTP1_MORE;
}

int http_wire_read_head(struct http_wire *w, bool bodiless, const struct deadline *d,
			struct err *err)
{
	while (!feed_head(w)) {
		int rc = fill(w, d, err);

		if (rc < 0)
			return -1;
		if (rc == 0)
			return err_set(err, ERR_UNAVAILABLE,
				       "the server hung up without an answer");
	}
	if (w->got_head == HTTP1_BAD)
		return err_set(err, ERR_PROTOCOL, "the answer is not HTTP: %s", w->head.bad_why);
	http1_body_of_response(&w->body, &w->head, bodiless);
	if (w->head.wants_close || w->head.minor == 0 || w->head.status < 200 ||
	    w->body.mode == HTTP1_UNTIL_CLOSE)
		w->spoiled = true;
	return 0;
}

int http_wire_read_body(struct http_wire *w, size_t max, const struct deadline *d, struct str *ret,
			struct err *err)
{
	*ret = STR("");
	while (!w->body.done && ret->n == 0) {
		size_t used;
		int rc = fill(w, d, err);

		if (rc < 0)
			return -1;
		if (rc == 0 && w->body.mode == HTTP1_UNTIL_CLOSE) {
			w->body.done = true;
			break;
		}
		if (rc == 0)
			return err_set(err, ERR_UNAVAILABLE,
				       "the server hung up in the middle of its answer");
		size_t n = w->n - w->at < max ? w->n - w->at : max;

		if (http1_body_feed(&w->body, (struct str){w->in + w->at, n}, ret, &used) ==
		    HTTP1_BAD)
			return err_set(err, ERR_PROTOCOL, "the body of the answer is malformed");
		w->at += used;
	}
	return 0;
}
