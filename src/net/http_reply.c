/* Answers: whole, from a file, or streamed; and the queue of bytes for the client. */
#include "net/http_conn.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "sys/loop.h"

#define MAX_ANSWER_HEAD (64 * 1024)
#define FILE_BYTES_PER_ROUND (4 * 1024 * 1024) /* then other connections are served */
#define KEEP_OUT (16 * 1024)		       /* a larger queue is freed when it is empty */

struct http_exchange *http_exchange_free(struct http_exchange *x)
{
	list_remove(&x->gone);
	if (x->conn)
		x->conn->x = NULL;
	http1_reset(&x->head);
	x->arena = arena_free(x->arena);
	buf_release(&x->body);
	buf_release(&x->extra);
	free(x);
	return NULL;
}

void http_exchange_gone(struct http_exchange *x)
{
	list_remove(&x->gone);
	list_append(&x->server->gone, &x->gone);
	loop_timer_set(x->server->soon, 0);
}

struct str http_header(const struct http_exchange *x, const char *name)
{
	return http1_header(&x->head, name);
}

const struct http_request *http_request(const struct http_exchange *x)
{
	return &x->request;
}

void http_set_user(struct http_exchange *x, void *user)
{
	x->user = user;
}

void *http_user(const struct http_exchange *x)
{
	return x->user;
}

/* "Sun, 06 Nov 1994 08:49:37 GMT", made once a second. */
static const char *http_date(struct http_server *s)
{
	static const char days[] = "ThuFriSatSunMonTueWed"; /* 1970-01-01 was a Thursday */
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
	int64_t now_ms = clock_wall_ms(), now_s = now_ms / 1000;
	char t[32];

	if (s->date_s == now_s)
		return s->date;
	clock_format(now_ms, t); /* 0123-56-89T12:45:78.012Z */
	int month = (t[5] - '0') * 10 + t[6] - '0';

	snprintf(s->date, sizeof(s->date), "%.3s, %.2s %.3s %.4s %.8s GMT",
		 days + now_s / 86400 % 7 * 3, t + 8, months + (month - 1) * 3, t, t + 11);
	s->date_s = now_s;
	return s->date;
}

/* Output. */

size_t http_conn_unsent(const struct http_conn *c)
{
	return c->out.n - c->out_sent + (c->file_left > 0 ? 1 : 0);
}

/* Send the parts, or queue the bytes that the socket does not take.  False when the connection died. */
static bool send_parts(struct http_conn *c, struct iovec *iov, size_t n)
{
	size_t total = 0, skip = 0;

	for (size_t i = 0; i < n; i++)
		total += iov[i].iov_len;
	if (http_conn_unsent(c) == 0) {
		ssize_t sent = c->transport.ops->writev(&c->transport, iov, n);

		if (sent < 0 && errno != EAGAIN) {
			http_conn_kill(c);
			return false;
		}
		skip = sent > 0 ? (size_t)sent : 0;
	}
	if (skip == total)
		return true;
	if (http_conn_unsent(c) == 0)
		loop_timer_set(c->timer, c->server->limits.stall_ms);
	for (size_t i = 0; i < n; i++) {
		size_t cut = skip < iov[i].iov_len ? skip : iov[i].iov_len;

		buf_add(&c->out, (char *)iov[i].iov_base + cut, iov[i].iov_len - cut);
		skip -= cut;
	}
	http_conn_watch(c);
	return true;
}

static struct iovec part(struct str s)
{
	return (struct iovec){(void *)(uintptr_t)s.p, s.n};
}

void http_conn_say(struct http_conn *c, struct str text)
{
	struct iovec iov = part(text);

	send_parts(c, &iov, 1);
}

/* False when the connection died; *ret_progress: the socket took bytes. */
static bool flush_out(struct http_conn *c, bool *ret_progress)
{
	while (c->out_sent < c->out.n) {
		struct iovec iov = {c->out.p + c->out_sent, c->out.n - c->out_sent};
		ssize_t sent = c->transport.ops->writev(&c->transport, &iov, 1);

		if (sent < 0 && errno == EAGAIN)
			return true;
		if (sent <= 0) {
			http_conn_kill(c);
			return false;
		}
		c->out_sent += (size_t)sent;
		*ret_progress = true;
	}
	c->out_sent = 0;
	if (c->out.cap > KEEP_OUT)
		buf_release(&c->out);
	else
		buf_reset(&c->out);
	return true;
}

static bool flush_file(struct http_conn *c, bool *ret_progress)
{
	int64_t budget = FILE_BYTES_PER_ROUND;

	while (c->file_left > 0 && budget > 0) {
		int64_t want = c->file_left < budget ? c->file_left : budget;
		ssize_t sent = c->transport.ops->send_file(&c->transport, c->file_fd, &c->file_off,
							   (size_t)want);

		if (sent < 0 && errno == EAGAIN)
			return true;
		/* 0: the file is shorter than the Content-Length that was sent. */
		if (sent <= 0) {
			http_conn_kill(c);
			return false;
		}
		c->file_left -= sent;
		budget -= sent;
		*ret_progress = true;
	}
	if (c->file_left == 0 && c->file_fd >= 0) {
		close(c->file_fd);
		c->file_fd = -1;
	}
	return true;
}

/* A whole answer has a deadline computed from its size, and no pause may be longer than stall_ms.  A
 * stream has no size, so only stall_ms is its limit. */
static void set_answer_timer(struct http_conn *c)
{
	int64_t wait = c->server->limits.stall_ms;

	if (c->state == HTTP_ANSWERING) {
		int64_t left = c->answer_deadline_ms - clock_boot_ms();

		wait = left < wait ? left : wait;
	}
	loop_timer_set(c->timer, wait > 0 ? wait : 0);
}

/* The size of the answer is known: set its deadline. */
static void begin_answer_timer(struct http_conn *c)
{
	int64_t bytes = (int64_t)(c->out.n - c->out_sent) + c->file_left;

	c->answer_deadline_ms = clock_boot_ms() + c->server->limits.stall_ms +
				bytes / c->server->limits.min_rate * 1000;
	set_answer_timer(c);
}

bool http_conn_flush(struct http_conn *c)
{
	bool progress = false;

	if (!flush_out(c, &progress))
		return false;
	if (c->out.n == 0 && !flush_file(c, &progress))
		return false;
	if (http_conn_unsent(c) > 0) {
		if (progress && (c->state == HTTP_ANSWERING || c->state == HTTP_STREAMING))
			set_answer_timer(c);
	} else if (c->state == HTTP_ANSWERING) {
		http_conn_answered(c);
		return !c->dead;
	} else if (c->state == HTTP_STREAMING) {
		loop_timer_cancel(c->timer);
	}
	http_conn_watch(c);
	return true;
}

void http_conn_check_empty(struct http_conn *c)
{
	struct http_exchange *x = c->x;

	if (c->state != HTTP_STREAMING || !x || !x->when_empty || http_conn_unsent(c) > 0)
		return;
	void (*fn)(void *) = x->when_empty;

	x->when_empty = NULL;
	fn(x->when_empty_ctx); /* may end the exchange */
}

/* Heads. */

static void add_line(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, "%s: ", name);
	for (const char *p = value; *p; p++)
		buf_addc(out, http1_is_value((struct str){p, 1}) ? *p : '?');
	buf_addz(out, "\r\n");
}

void http_add_header(struct http_exchange *x, const char *name, const char *value)
{
	if (!http1_is_token(str_from(name)))
		abort(); /* a bug: header names are constants of the program */
	add_line(&x->extra, name, value);
}

static bool has_no_body(int status)
{
	return status == 204 || status == 304;
}

#define UNKNOWN_LENGTH (-1)

static void make_head(struct http_conn *c, struct buf *out, int status, const char *type,
		      int64_t length)
{
	if (status >= 100 && status < 600)
		c->server->answers[status / 100]++;
	buf_init(out, MAX_ANSWER_HEAD);
	buf_printf(out, "HTTP/1.1 %d %s\r\nDate: %s\r\n", status, http1_reason(status),
		   http_date(c->server));
	if (type)
		add_line(out, "Content-Type", type);
	if (length >= 0 && !has_no_body(status))
		buf_printf(out, "Content-Length: %" PRId64 "\r\n", length);
	if (c->x && c->x->chunked)
		buf_addz(out, "Transfer-Encoding: chunked\r\n");
	if (c->close_after)
		buf_addz(out, "Connection: close\r\n");
	if (c->x)
		buf_addstr(out, buf_str(&c->x->extra));
	else
		buf_addz(out, "X-Content-Type-Options: nosniff\r\n");
	buf_addz(out, "\r\n");
}

/* The whole answer is queued and the exchange is over: send it, then read the next request. */
static void finish_answer(struct http_conn *c)
{
	c->state = HTTP_ANSWERING;
	if (http_conn_unsent(c) == 0)
		http_conn_answered(c);
	else
		begin_answer_timer(c);
}

static void begin_answer(struct http_conn *c)
{
	/* An answer before the end of the request's body: close instead of reading the rest. */
	if (!c->body.done)
		c->close_after = true;
	loop_timer_cancel(c->timer);
}

static void send_whole(struct http_conn *c, int status, const char *type, struct str body,
		       bool is_head)
{
	struct buf head;

	make_head(c, &head, status, type, (int64_t)body.n);
	struct iovec iov[2] = {part(buf_str(&head)), part(body)};

	send_parts(c, iov, is_head || has_no_body(status) ? 1 : 2);
	buf_release(&head);
}

void http_reply(struct http_exchange *x, int status, const char *type, struct str body)
{
	struct http_conn *c = x->conn;

	if (c) {
		begin_answer(c);
		send_whole(c, status, type, body, x->is_head);
	}
	/* The answer may point into the request, so the request is freed only now. */
	http_exchange_free(x);
	if (c && !c->dead)
		finish_answer(c);
}

void http_reply_file(struct http_exchange *x, int status, const char *type, int fd, int64_t off,
		     int64_t len)
{
	struct http_conn *c = x->conn;
	struct buf head;

	if (!c) {
		close(fd);
		http_exchange_free(x);
		return;
	}
	begin_answer(c);
	make_head(c, &head, status, type, len);
	struct iovec iov = part(buf_str(&head));
	bool alive = send_parts(c, &iov, 1),
	     with_body = len > 0 && !x->is_head && !has_no_body(status);

	buf_release(&head);
	http_exchange_free(x);
	if (!alive || !with_body) {
		close(fd);
		if (alive)
			finish_answer(c);
		return;
	}
	c->state = HTTP_ANSWERING;
	c->file_fd = fd;
	c->file_off = off;
	c->file_left = len;
	begin_answer_timer(c);
	http_conn_flush(c);
}

void http_conn_refuse(struct http_conn *c, int status, const char *why)
{
	struct buf text;

	if (c->x) {
		struct http_exchange *x = TAKE_PTR(c->x);

		x->conn = NULL;
		x->aborted = true;
		http_exchange_gone(x);
	}
	list_remove(&c->waiting);
	if (c->upload_fd >= 0)
		close(c->upload_fd);
	c->upload_fd = -1;
	c->close_after = true;
	c->body.done = true;
	loop_timer_cancel(c->timer);
	buf_init(&text, 1024);
	buf_printf(&text, "%d %s: %s\n", status, http1_reason(status), why);
	send_whole(c, status, "text/plain; charset=utf-8", buf_str(&text), false);
	buf_release(&text);
	if (!c->dead)
		finish_answer(c);
}

/* Streams. */

void http_stream_begin(struct http_exchange *x, int status, const char *type,
		       void (*on_gone)(void *ctx), void *ctx)
{
	struct http_conn *c = x->conn;
	struct buf head;

	x->on_gone = on_gone;
	x->gone_ctx = ctx;
	if (!c && x->server) {
		http_exchange_gone(x);
		return;
	}
	if (!c) { /* the server may be gone, so on_gone cannot be called from the loop */
		if (on_gone)
			on_gone(ctx);
		http_exchange_free(x);
		return;
	}
	begin_answer(c);
	c->state = HTTP_STREAMING;
	x->chunked = x->head.minor == 1;
	if (!x->chunked)
		c->close_after = true;
	make_head(c, &head, status, type, UNKNOWN_LENGTH);
	struct iovec iov = part(buf_str(&head));

	send_parts(c, &iov, 1);
	buf_release(&head);
	if (!x->is_head || c->dead)
		return;
	/* A HEAD request: the stream is over, and on_gone follows. */
	c->x = NULL;
	x->conn = NULL;
	http_exchange_gone(x);
	finish_answer(c);
}

bool http_stream_write(struct http_exchange *x, struct str bytes)
{
	struct http_conn *c = x->conn;
	char size[24];
	int n = snprintf(size, sizeof(size), "%zx\r\n", bytes.n);
	struct iovec iov[3] = {{size, (size_t)n}, part(bytes), part(STR("\r\n"))};

	if (!c)
		return false;
	if (bytes.n == 0)
		return true;
	bool behind = http_conn_unsent(c) > 0;

	if (!(x->chunked ? send_parts(c, iov, 3) : send_parts(c, iov + 1, 1)))
		return false;
	/* A single write may be larger than max_queue: close only a client that was behind before it. */
	if (!behind || http_conn_unsent(c) <= c->server->limits.max_queue)
		return true;
	http_conn_kill(c);
	return false;
}

size_t http_stream_queued(const struct http_exchange *x)
{
	return x->conn ? http_conn_unsent(x->conn) : 0;
}

void http_stream_when_empty(struct http_exchange *x, void (*fn)(void *ctx), void *ctx)
{
	x->when_empty = fn;
	x->when_empty_ctx = ctx;
	if (x->conn && http_conn_unsent(x->conn) == 0)
		http_conn_later(x->conn);
}

void http_stream_end(struct http_exchange *x)
{
	struct http_conn *c = x->conn;

	if (c && x->chunked)
		http_conn_say(c, STR("0\r\n\r\n"));
	if (!x->conn) /* the client had left, or left during http_conn_say() */
		c = NULL;
	http_exchange_free(x);
	if (c)
		finish_answer(c);
}
