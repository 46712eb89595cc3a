/*
 * The server: listeners, the set of connections and its bound, and what must be done
 * from the loop rather than inside a call.  One connection is http_conn.c, answers are
 * http_reply.c.
 */
#include "net/http_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "net/http_conn.h"
#include "net/tls.h"
#include "net/tls_handshake.h"
#include "sys/loop.h"

#define HANDSHAKES_MAX 512 /* at once; a handshake needs about 30 KB */
#define CROWDED_MS 2000	   /* limit of a handshake while HANDSHAKES_MAX are in progress */
#ifndef HANDSHAKE_MS
#define HANDSHAKE_MS 10000
#endif

static const struct http_limits defaults = {
	.max_header_bytes = 16 * 1024,
	.max_headers = 64,
	.max_body = 1024 * 1024,
	.max_upload = UINT64_C(8) << 30,
	.header_ms = 10 * 1000,
	.body_ms = 30 * 1000,
	.idle_ms = 60 * 1000,
	.stall_ms = 30 * 1000,
	.min_rate = 4 * 1024,
	.max_connections = 4096,
	.max_queue = 1024 * 1024,
};

static void fill_limits(struct http_limits *l)
{
#define FILL(field) l->field = l->field ? l->field : defaults.field
	FILL(max_header_bytes);
	FILL(max_headers);
	FILL(max_body);
	FILL(max_upload);
	FILL(header_ms);
	FILL(body_ms);
	FILL(idle_ms);
	FILL(stall_ms);
	FILL(min_rate);
	FILL(max_connections);
	FILL(max_queue);
#undef FILL
}

/* Tell the handlers of exchanges whose client left, and end these exchanges. */
static void tell_gone(struct http_server *s)
{
	while (!list_empty(&s->gone)) {
		struct http_exchange *x = list_item(s->gone.next, struct http_exchange, gone);

		list_remove(&x->gone);
		if (x->aborted && s->handler.on_abort)
			s->handler.on_abort(s->ctx, x);
		else if (!x->aborted && x->on_gone)
			x->on_gone(x->gone_ctx);
		http_exchange_free(x);
	}
}

static void run_later(void *ctx)
{
	struct http_server *s = ctx;
	struct list batch;

	/* Connections added meanwhile are handled in the next round, so that none blocks the loop. */
	list_init(&batch);
	while (!list_empty(&s->later)) {
		struct list *item = s->later.next;

		list_remove(item);
		list_append(&batch, item);
	}
	while (!list_empty(&batch)) {
		struct http_conn *c = list_item(batch.next, struct http_conn, later);

		list_remove(&c->later);
		if (!c->dead)
			http_conn_process_pending(c);
		if (!c->dead)
			http_conn_check_empty(c);
		/* A connection that died in this pass is in `later` again and is freed by the next one. */
		if (c->dead && list_empty(&c->later))
			http_conn_free(c);
	}
	tell_gone(s);
}

static void drop_shaking(struct http_shaking *k, struct http_server *s)
{
	crowd_leave(&s->shaking, &k->member);
	tls_handshake_free(k->handshake);
	free(k);
}

static struct http_shaking *shaking_of(struct crowd_member *m)
{
	return list_item(&m->link, struct http_shaking, member.link);
}

static void drop_member(void *ctx, struct crowd_member *m)
{
	drop_shaking(shaking_of(m), ctx);
}

void http_server_hold(struct http_server *s, bool hold)
{
	int before = s->holds;

	s->holds += hold ? 1 : -1;
	if ((before > 0) == (s->holds > 0))
		return;
	for (struct http_front *f = s->fronts; f; f = f->next)
		if (f->tls)
			listener_pause(f->listener, hold);
}

static void too_many_shake_hands(void *ctx, bool full)
{
	http_server_hold(ctx, full);
}

static const struct crowd_limits shaking_limits = {HANDSHAKES_MAX, HANDSHAKES_MAX, CROWDED_MS};
static const struct crowd_events shaking_events = {too_many_shake_hands, drop_member};

struct http_server *http_server_new(struct loop *l, const struct http_limits *limits,
				    const struct http_handler *h, void *ctx)
{
	struct http_server *s = xcalloc(1, sizeof(*s));

	*s = (struct http_server){.loop = l, .handler = *h, .ctx = ctx};
	if (limits)
		s->limits = *limits;
	fill_limits(&s->limits);
	list_init(&s->conns);
	list_init(&s->waiting);
	list_init(&s->later);
	list_init(&s->detached);
	list_init(&s->gone);
	crowd_init(&s->shaking, l, &shaking_limits, &shaking_events, s);
	s->soon = loop_timer_new(l, run_later, s);
	return s;
}

static void close_fronts(struct http_server *s)
{
	while (!list_empty(&s->shaking.members))
		drop_member(s, list_item(s->shaking.members.next, struct crowd_member, link));
	while (s->fronts) {
		struct http_front *f = s->fronts;

		s->fronts = f->next;
		listener_free(f->listener);
		free(f);
	}
}

struct http_server *http_server_free(struct http_server *s)
{
	if (!s)
		return NULL;
	close_fronts(s);
	while (!list_empty(&s->conns))
		http_conn_kill(list_item(s->conns.next, struct http_conn, all));
	tell_gone(s);
	while (!list_empty(&s->detached)) {
		struct http_exchange *x = list_item(s->detached.next, struct http_exchange, gone);

		list_remove(&x->gone);
		x->server = NULL;
	}
	while (!list_empty(&s->later)) {
		struct http_conn *c = list_item(s->later.next, struct http_conn, later);

		list_remove(&c->later);
		http_conn_free(c);
	}
	crowd_release(&s->shaking);
	loop_timer_free(s->soon);
	free(s);
	return NULL;
}

/* Make room for one more: the connection that has been idle longest is closed.  TCP clients may
 * occupy all connections but HTTP_LOCAL_RESERVE, which are kept for the unix socket. */
static bool make_room(struct http_server *s, bool local)
{
	if (s->nconns < s->limits.max_connections + (local ? HTTP_LOCAL_RESERVE : 0))
		return true;
	if (list_empty(&s->waiting))
		return false;
	http_conn_kill(list_item(s->waiting.next, struct http_conn, waiting));
	return true;
}

/* The TLS handshake is over: hand the connection to HTTP or to the other protocol. */
static void shaken(void *ctx, struct transport *t, const struct err *why)
{
	struct http_shaking *k = ctx;
	const struct http_front *f = k->front;
	struct http_server *s = f->server;

	(void)why;
	drop_shaking(k, s);
	if (!t)
		return;
	if (s->other && str_is(tls_protocol(t), s->other)) {
		tls_expect_goodbye(t);
		s->other_fn(s->other_ctx, t);
	} else if (make_room(s, f->local)) {
		http_conn_accept(f, t);
	} else { /* every connection is at work */
		t->ops->close(t);
	}
}

void http_front_shake_hands(const struct http_front *f, int fd)
{
	struct http_server *s = f->server;
	struct http_shaking *k = xcalloc(1, sizeof(*k));
	struct transport t;

	tls_accept(f->tls, &t, fd);
	k->front = f;
	k->handshake = tls_handshake_new(s->loop, &t, HANDSHAKE_MS, shaken, k);
	crowd_enter(&s->shaking, &k->member);
}

static void accepted(void *ctx, int fd)
{
	static const char full[] = "HTTP/1.1 503 Service Unavailable\r\n"
				   "Content-Length: 0\r\nConnection: close\r\n\r\n";
	struct http_front *f = ctx;

	struct iovec iov = {(void *)(uintptr_t)full, sizeof(full) - 1};
	struct transport t;

	if (f->tls && !f->plain_too) {
		http_front_shake_hands(f, fd);
		return;
	}
	transport_plain(&t, fd);
	if (make_room(f->server, f->local)) {
		http_conn_accept(f, &t);
		return;
	}
	/* All connections are busy.  The socket is new, so these bytes fit into its buffer. */
	(void)t.ops->writev(&t, &iov, 1);
	t.ops->close(&t);
}

static struct http_front *front_new(struct http_server *s, bool local)
{
	struct http_front *f = xcalloc(1, sizeof(*f));

	*f = (struct http_front){.server = s, .local = local};
	return f;
}

static int front_add(struct http_server *s, struct http_front *f, int rc)
{
	if (rc < 0) {
		free(f);
		return -1;
	}
	f->next = s->fronts;
	s->fronts = f;
	return 0;
}

int http_server_listen_unix(struct http_server *s, const char *dir, const char *name,
			    struct err *err)
{
	struct http_front *f = front_new(s, true);

	return front_add(s, f, listen_unix(s->loop, dir, name, accepted, f, &f->listener, err));
}

int http_server_listen_tcp(struct http_server *s, const char *addr, int port, int *ret_port,
			   struct err *err)
{
	struct http_front *f = front_new(s, false);

	return front_add(s, f,
			 listen_tcp(s->loop, addr, port, accepted, f, ret_port, &f->listener, err));
}

void http_server_other(struct http_server *s, const char *protocol, http_other_fn fn, void *ctx)
{
	s->other = protocol;
	s->other_fn = fn;
	s->other_ctx = ctx;
}

static int listen_tls(struct http_server *s, const char *addr, int port, struct tls_server *tls,
		      bool plain_too, int *ret_port, struct err *err)
{
	struct http_front *f = front_new(s, false);

	f->tls = tls;
	f->plain_too = plain_too;
	if (s->other)
		tls_server_offer(tls, s->other);
	return front_add(s, f,
			 listen_tcp(s->loop, addr, port, accepted, f, ret_port, &f->listener, err));
}

int http_server_listen_tls(struct http_server *s, const char *addr, int port,
			   struct tls_server *tls, int *ret_port, struct err *err)
{
	return listen_tls(s, addr, port, tls, false, ret_port, err);
}

int http_server_listen_both(struct http_server *s, const char *addr, int port,
			    struct tls_server *tls, int *ret_port, struct err *err)
{
	return listen_tls(s, addr, port, tls, true, ret_port, err);
}

uint64_t http_server_answers(const struct http_server *s, int hundreds)
{
	return hundreds >= 1 && hundreds <= 5 ? s->answers[hundreds] : 0;
}

int http_server_connections(const struct http_server *s)
{
	return s->nconns;
}

void http_server_cut(struct http_server *s, bool (*match)(const void *ctx, const void *user),
		     const void *ctx)
{
	struct list *pos, *next;

	list_each_safe (pos, next, &s->conns) {
		struct http_conn *c = list_item(pos, struct http_conn, all);

		if (c->state == HTTP_STREAMING && c->x && match(ctx, c->x->user))
			http_conn_kill(c);
	}
}

int http_server_count_streams(const struct http_server *s,
			      bool (*match)(const void *ctx, const void *user), const void *ctx)
{
	const struct list *pos;
	int n = 0;

	list_each (pos, &s->conns) {
		const struct http_conn *c = list_item(pos, struct http_conn, all);

		n += c->state == HTTP_STREAMING && c->x && match(ctx, c->x->user);
	}
	return n;
}
