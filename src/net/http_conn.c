/*
 * One client: reading, parsing requests, handing them over, timeouts.
 *
 * An idle connection has no buffer.  At most PIPELINE_MAX bytes are read beyond the current request;
 * then reading stops until the answer is sent.
 */
#include "net/http_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "sys/loop.h"

#define PIPELINE_MAX (16 * 1024)
#define LINGER_MS 1000
#define TLS_HANDSHAKE 0x16	    /* the first byte of a TLS connection */
#define UPLOAD_MIN_RATE (64 * 1024) /* bytes per second, on average */

static void io_ready(void *ctx, int fd, int events);
static void timed_out(void *ctx);
static void process(struct http_conn *c, struct str bytes);

union address {
	struct sockaddr sa;
	struct sockaddr_in in4;
	struct sockaddr_in6 in6;
};

static void address_text(const union address *a, char *out, size_t size)
{
	char text[INET6_ADDRSTRLEN] = "?";

	if (a->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->in6.sin6_addr, text, sizeof(text));
		snprintf(out, size, "[%s]:%d", text, ntohs(a->in6.sin6_port));
	} else {
		inet_ntop(AF_INET, &a->in4.sin_addr, text, sizeof(text));
		snprintf(out, size, "%s:%d", text, ntohs(a->in4.sin_port));
	}
}

static void describe_peer(struct http_conn *c)
{
	union address a = {0};
	socklen_t len = sizeof(a);

	c->peer_uid = -1;
	if (c->local) {
		c->peer_uid = socket_peer_uid(c->transport.fd);
		snprintf(c->peer, sizeof(c->peer), "unix uid %lld", (long long)c->peer_uid);
		return;
	}
	/* Fails when the peer has left; then it has no address. */
	(void)getpeername(c->transport.fd, &a.sa, &len);
	address_text(&a, c->peer, sizeof(c->peer));
}

void http_own_address(const struct http_exchange *x, char out[static 64])
{
	union address a = {0};
	socklen_t len = sizeof(a);

	out[0] = 0;
	if (x->conn && !x->conn->local && getsockname(x->conn->transport.fd, &a.sa, &len) == 0)
		address_text(&a, out, 64);
}

void http_conn_accept(const struct http_front *f, const struct transport *t)
{
	struct http_server *s = f->server;
	struct http_conn *c = xcalloc(1, sizeof(*c));
	int on = 1;

	*c = (struct http_conn){
		.server = s, .transport = *t, .local = f->local, .upload_fd = -1, .file_fd = -1};
	if (f->plain_too && !t->ssl)
		c->undecided = f;
	if (!f->local)
		setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	describe_peer(c);
	http1_init(&c->head, HTTP1_REQUEST, s->limits.max_header_bytes, s->limits.max_headers);
	buf_init(&c->in, PIPELINE_MAX + LOOP_SCRATCH);
	buf_init(&c->out, SIZE_MAX / 2);
	list_init(&c->later);
	list_append(&s->conns, &c->all);
	list_append(&s->waiting, &c->waiting);
	s->nconns++;
	c->timer = loop_timer_new(s->loop, timed_out, c);
	c->io = loop_io_new(s->loop, t->fd, LOOP_READ, io_ready, c);
	loop_timer_set(c->timer, s->limits.idle_ms);
}

void http_conn_later(struct http_conn *c)
{
	if (!list_empty(&c->later))
		return;
	list_append(&c->server->later, &c->later);
	loop_timer_set(c->server->soon, 0);
}

static void close_upload(struct http_conn *c)
{
	if (c->upload_fd >= 0)
		close(c->upload_fd);
	c->upload_fd = -1;
}

/* The exchange loses its connection. */
static void detach(struct http_conn *c)
{
	struct http_exchange *x = TAKE_PTR(c->x);

	if (!x)
		return;
	x->conn = NULL;
	switch (c->state) {
	case HTTP_BODY:
		x->aborted = true;
		http_exchange_gone(x);
		break;
	case HTTP_STREAMING:
		http_exchange_gone(x);
		break;
	case HTTP_HEADERS:
	case HTTP_HANDLING:
		list_append(&c->server->detached, &x->gone);
		break;
	case HTTP_WAITING:
	case HTTP_ANSWERING:
	case HTTP_LINGERING:
		abort(); /* no exchange in these states */
	}
}

void http_conn_kill(struct http_conn *c)
{
	if (c->dead)
		return;
	c->dead = true;
	c->io = loop_io_free(c->io);
	c->timer = loop_timer_free(c->timer);
	c->transport.ops->close(&c->transport);
	close_upload(c);
	if (c->file_fd >= 0)
		close(c->file_fd);
	detach(c);
	list_remove(&c->all);
	list_remove(&c->waiting);
	c->server->nconns--;
	http_conn_later(c);
}

void http_conn_free(struct http_conn *c)
{
	http1_reset(&c->head);
	buf_release(&c->in);
	buf_release(&c->out);
	free(c);
}

void http_conn_watch(struct http_conn *c)
{
	int events = 0;

	if (!c->eof && c->in.n < PIPELINE_MAX)
		events |= LOOP_READ;
	if (http_conn_unsent(c) > 0)
		events |= LOOP_WRITE;
	loop_io_set(c->io, events);
}

static void linger(struct http_conn *c)
{
	/* Closing with unread bytes would reset the connection and lose the answer: shut down the output
	 * and let the client read. */
	c->transport.ops->end_output(&c->transport);
	if (c->eof) {
		http_conn_kill(c);
		return;
	}
	c->state = HTTP_LINGERING;
	buf_release(&c->in);
	http1_reset(&c->head);
	list_append(&c->server->waiting, &c->waiting);
	loop_timer_set(c->timer, LINGER_MS);
	http_conn_watch(c);
}

void http_conn_answered(struct http_conn *c)
{
	bool last = c->eof && c->in.n == 0 && !c->processing;

	if (c->close_after || last) {
		linger(c);
		return;
	}
	c->state = HTTP_WAITING;
	list_append(&c->server->waiting, &c->waiting);
	loop_timer_set(c->timer, c->server->limits.idle_ms);
	http_conn_watch(c);
	if (c->in.n > 0 && !c->processing)
		http_conn_later(c);
}

static void timed_out(void *ctx)
{
	struct http_conn *c = ctx;

	switch (c->state) {
	case HTTP_WAITING:
		if (http1_started(&c->head))
			http_conn_refuse(c, 408, "the headers took too long");
		else
			http_conn_kill(c);
		break;
	case HTTP_BODY:
		http_conn_refuse(c, 408, "the body took too long");
		break;
	case HTTP_HEADERS:
	case HTTP_HANDLING:
		break; /* no timer: the handler decides how long it takes */
	case HTTP_ANSWERING:
	case HTTP_STREAMING:
	case HTTP_LINGERING:
		http_conn_kill(c);
		break;
	}
}

/* The upload has a deadline computed from its size, and no pause may be longer than stall_ms. */
static void set_upload_timer(struct http_conn *c)
{
	int64_t left = c->upload_deadline_ms - clock_boot_ms();
	int64_t stall = c->server->limits.stall_ms;

	loop_timer_set(c->timer, left < stall ? left : stall);
}

static bool make_exchange(struct http_conn *c)
{
	struct http_exchange *x = xcalloc(1, sizeof(*x));
	struct http_request *r = &x->request;

	x->conn = c;
	x->server = c->server;
	list_init(&x->gone);
	x->head = c->head;
	http1_init(&c->head, HTTP1_REQUEST, c->server->limits.max_header_bytes,
		   c->server->limits.max_headers);
	buf_init(&x->body, c->server->limits.max_body);
	buf_init(&x->extra, c->server->limits.max_header_bytes);
	c->x = x;

	struct str target = http1_target(&x->head);

	r->method = http1_method(&x->head);
	r->path = str_cut(&target, '?');
	r->raw_query = target.p ? target : STR("");
	r->local = c->local;
	r->tls = c->transport.ssl != NULL;
	r->peer_uid = c->peer_uid;
	memcpy(r->peer, c->peer, sizeof(r->peer));
	x->is_head = str_is(r->method, "HEAD");
	if (x->head.wants_close || x->head.minor == 0)
		c->close_after = true;
	if (r->raw_query.n == 0)
		return true;
	x->arena = arena_new();
	return query_parse(r->raw_query, x->arena, &r->query);
}

static void deliver(struct http_conn *c)
{
	struct http_exchange *x = c->x;

	close_upload(c);
	loop_timer_cancel(c->timer);
	c->state = HTTP_HANDLING;
	x->request.body = buf_str(&x->body);
	c->server->handler.on_request(c->server->ctx, x);
}

/* Call on_headers, which decides about the body.  False: the handler answers without the body. */
static bool ask_handler(struct http_conn *c)
{
	const struct http_handler *h = &c->server->handler;
	int fd = -1;

	c->state = HTTP_HEADERS;
	if (h->on_headers)
		fd = h->on_headers(c->server->ctx, c->x);
	if (c->state != HTTP_HEADERS || c->dead || fd == -2) {
		if (c->state == HTTP_HEADERS && !c->dead)
			c->state = HTTP_HANDLING; /* the handler answers later */
		if (fd >= 0)
			close(fd);
		return false;
	}
	c->upload_fd = fd;
	return true;
}

static void begin_body(struct http_conn *c)
{
	const struct http_limits *l = &c->server->limits;
	uint64_t length = c->body.left;

	c->state = HTTP_BODY;
	if (c->body.done) {
		deliver(c);
		return;
	}
	if (c->upload_fd < 0 && length > l->max_body) {
		http_conn_refuse(c, 413, "the body is too large");
		return;
	}
	if (c->x->head.expects_continue && c->x->head.minor == 1)
		http_conn_say(c, STR("HTTP/1.1 100 Continue\r\n\r\n"));
	if (c->dead)
		return;
	if (c->upload_fd < 0) {
		loop_timer_set(c->timer, l->body_ms);
		return;
	}
	c->upload_deadline_ms =
		clock_boot_ms() + l->body_ms + (int64_t)(length / UPLOAD_MIN_RATE) * 1000;
	set_upload_timer(c);
}

static void head_complete(struct http_conn *c)
{
	list_remove(&c->waiting);
	loop_timer_cancel(c->timer);
	http1_body_of_request(&c->body, &c->head);
	if (c->head.chunked) {
		/* RFC 9112 allows chunked requests, but they are the usual way of request smuggling, and
		 * no client of Regatta sends them. */
		http_conn_refuse(c, 411, "send a Content-Length");
		return;
	}
	if (c->body.left > c->server->limits.max_upload) {
		http_conn_refuse(c, 413, "the body is too large");
		return;
	}
	if (!make_exchange(c)) {
		c->x = http_exchange_free(c->x);
		http_conn_refuse(c, 400, "malformed query");
		return;
	}
	if (ask_handler(c))
		begin_body(c);
}

static size_t take_head(struct http_conn *c, struct str bytes)
{
	size_t used = 0;

	if (!http1_started(&c->head))
		loop_timer_set(c->timer, c->server->limits.header_ms);
	switch (http1_feed(&c->head, bytes, &used)) {
	case HTTP1_MORE:
		break;
	case HTTP1_DONE:
		head_complete(c);
		break;
	case HTTP1_BAD:
		http_conn_refuse(c, c->head.bad_status, c->head.bad_why);
		break;
	}
	return used;
}

static void store_body(struct http_conn *c, struct str data)
{
	struct err err;

	if (c->upload_fd < 0) {
		buf_addstr(&c->x->body, data);
		return;
	}
	if (file_write_all(c->upload_fd, data.p, data.n, &err) == 0) {
		set_upload_timer(c);
		return;
	}
	bool full = err.kind == ERR_CAPACITY || err.kind == ERR_QUOTA;

	http_conn_refuse(c, full ? 507 : 500,
			 full ? "the disk is full: no room for the body"
			      : "the body could not be stored");
}

static size_t take_body(struct http_conn *c, struct str bytes)
{
	struct str data;
	size_t used;

	http1_body_feed(&c->body, bytes, &data, &used);
	store_body(c, data);
	if (c->state == HTTP_BODY && !c->dead && c->body.done)
		deliver(c);
	return used;
}

/* Pass the bytes to the head or body parser, depending on the state.  Bytes that arrive while a handler
 * has the exchange wait in `in`. */
static void process(struct http_conn *c, struct str bytes)
{
	c->processing = true;
	while (bytes.n > 0 && !c->dead) {
		size_t used;

		if (c->state == HTTP_WAITING) {
			used = take_head(c, bytes);
		} else if (c->state == HTTP_BODY) {
			used = take_body(c, bytes);
		} else {
			if (c->state != HTTP_LINGERING)
				buf_addstr(&c->in, bytes);
			used = bytes.n;
		}
		bytes.p += used;
		bytes.n -= used;
	}
	c->processing = false;
	if (!c->dead)
		http_conn_watch(c);
}

void http_conn_process_pending(struct http_conn *c)
{
	struct buf in = c->in;

	if (in.n == 0 || (c->state != HTTP_WAITING && c->state != HTTP_BODY))
		return;
	buf_init(&c->in, in.max);
	process(c, buf_str(&in));
	buf_release(&in);
	/* The client has shut down its side in the middle of a request. */
	if (!c->dead && c->eof && c->in.n == 0 &&
	    (c->state == HTTP_WAITING || c->state == HTTP_BODY))
		http_conn_kill(c);
}

/* How many bytes to read now, so that at most PIPELINE_MAX are read ahead. */
static size_t read_room(const struct http_conn *c)
{
	if (c->state == HTTP_LINGERING)
		return LOOP_SCRATCH;
	if (c->state == HTTP_BODY && c->body.left < LOOP_SCRATCH - PIPELINE_MAX)
		return (size_t)c->body.left + PIPELINE_MAX;
	return c->state == HTTP_BODY ? LOOP_SCRATCH : PIPELINE_MAX;
}

static void saw_eof(struct http_conn *c)
{
	c->eof = true;
	switch (c->state) {
	case HTTP_HEADERS:
	case HTTP_HANDLING:
	case HTTP_ANSWERING:
		http_conn_watch(c); /* the client may have closed one side only: send the answer */
		break;
	case HTTP_WAITING:
	case HTTP_BODY:
	case HTTP_STREAMING:
	case HTTP_LINGERING:
		http_conn_kill(c);
		break;
	}
}

/* If the client's first byte is that of a TLS handshake, with which no HTTP method begins, its socket
 * goes to a handshake and this connection ends.  True if so. */
static bool left_for_tls(struct http_conn *c)
{
	const struct http_front *f = c->undecided;
	int fd = c->transport.fd;
	unsigned char first;

	if (!f || recv(fd, &first, 1, MSG_PEEK | MSG_DONTWAIT) != 1)
		return false;
	c->undecided = NULL;
	if (first != TLS_HANDSHAKE)
		return false;
	c->transport.fd = -1;
	http_conn_kill(c);
	http_front_shake_hands(f, fd);
	return true;
}

static void readable(struct http_conn *c)
{
	char *scratch = loop_scratch(c->server->loop);

	if (left_for_tls(c))
		return;

	http_conn_process_pending(c);
	if (c->dead || c->eof || c->in.n >= PIPELINE_MAX)
		return;
	ssize_t n = c->transport.ops->read(&c->transport, scratch, read_room(c));

	if (n > 0)
		process(c, (struct str){scratch, (size_t)n});
	else if (n == 0)
		saw_eof(c);
	else if (errno != EAGAIN)
		http_conn_kill(c);
}

static void io_ready(void *ctx, int fd, int events)
{
	struct http_conn *c = ctx;

	(void)fd;
	if (events & LOOP_READ) {
		readable(c);
		return;
	}
	if (http_conn_flush(c))
		http_conn_check_empty(c);
}
