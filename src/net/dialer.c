#include "net/dialer.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/resolve.h"
#include "net/tls_handshake.h"
#include "net/transport.h"
#include "sys/loop.h"

struct dialer {
	struct loop *loop;
	struct dialer_target target;
	dialed_fn fn;
	void *ctx;
	int64_t give_up_ms; /* on clock_boot_ms() */

	struct resolving *resolving;
	struct address all[RESOLVE_MAX];
	size_t n, next;

	int fd; /* connecting; -1: none */
	struct loop_io *io;
	struct loop_timer *limit; /* of this address */
	struct tls_handshake *handshake;
	struct err why; /* of the last address */
};

static void try_next(struct dialer *d);

static void stop_connecting(struct dialer *d)
{
	d->io = loop_io_free(d->io);
	loop_timer_cancel(d->limit);
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

static void address_failed(struct dialer *d)
{
	stop_connecting(d);
	if (d->next < d->n && d->why.kind != ERR_DENIED && clock_boot_ms() < d->give_up_ms) {
		try_next(d);
		return;
	}
	struct err why = d->why; /* fn may free d before it reads the error */

	d->fn(d->ctx, NULL, &why);
}

static int64_t time_left(const struct dialer *d)
{
	int64_t left = d->give_up_ms - clock_boot_ms();

	return left > 0 ? left : 0;
}

static void shaken(void *ctx, struct transport *t, const struct err *why)
{
	struct dialer *d = ctx;

	d->handshake = tls_handshake_free(d->handshake);
	if (!t) {
		d->why = *why;
		address_failed(d);
	} else if (tls_client_check(t, &d->target.trust, d->target.protocol, &d->why) < 0) {
		t->ops->close(t);
		address_failed(d);
	} else {
		d->fn(d->ctx, t, why);
	}
}

/* The socket is connected. */
static void reached(struct dialer *d)
{
	struct transport t;
	int on = 1, fd = d->fd;

	d->io = loop_io_free(d->io);
	loop_timer_cancel(d->limit);
	d->fd = -1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (d->target.trust.mode == TLS_OFF) {
		struct err none = {0};

		transport_plain(&t, fd);
		d->fn(d->ctx, &t, &none);
		return;
	}
	if (tls_client_begin(&t, fd, &d->target.trust, d->target.host, d->target.protocol,
			     &d->why) < 0) {
		address_failed(d);
		return;
	}
	d->handshake = tls_handshake_new(d->loop, &t, time_left(d), shaken, d);
}

/* e: errno of the connect; 0: connected. */
static void connect_ended(struct dialer *d, int e)
{
	const struct address *a = &d->all[d->next - 1];
	char text[ADDRESS_TEXT];

	if (e == 0) {
		reached(d);
		return;
	}
	address_text(a, text);
	if (e == ECONNREFUSED)
		err_set(&d->why, ERR_UNAVAILABLE, "nobody listens on port %d of %s", d->target.port,
			text);
	else
		err_errno(&d->why, e, "connect to port %d of %s", d->target.port, text);
	/* EACCES of a firewall must not become ERR_DENIED. */
	if (d->why.kind != ERR_TIMEOUT)
		d->why.kind = ERR_UNAVAILABLE;
	address_failed(d);
}

static void connect_ready(void *ctx, int fd, int events)
{
	int e = 0;
	socklen_t len = sizeof(e);

	(void)events;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len) < 0)
		e = errno;
	connect_ended(ctx, e);
}

static void limit_over(void *ctx)
{
	connect_ended(ctx, ETIMEDOUT);
}

/* From the loop: fn may be called, and d freed. */
static void try_next(struct dialer *d)
{
	struct address *a = &d->all[d->next++];

	address_set_port(a, d->target.port);
	d->fd = socket(a->sa.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (d->fd < 0 || (connect(d->fd, &a->sa, a->len) < 0 && errno != EINPROGRESS)) {
		connect_ended(d, errno);
		return;
	}
	d->io = loop_io_new(d->loop, d->fd, LOOP_WRITE, connect_ready, d);
	loop_timer_set(d->limit, time_left(d) / (int64_t)(d->n - d->next + 1));
}

static void resolved(void *ctx, const struct address *all, size_t n, const struct err *why)
{
	struct dialer *d = ctx;

	memcpy(d->all, all, n * sizeof(all[0]));
	d->n = n;
	d->why = *why;
	d->resolving = resolving_free(d->resolving);
	if (n == 0)
		address_failed(d);
	else
		try_next(d);
}

struct dialer *dialer_start(struct loop *l, const struct dialer_target *target, dialed_fn fn,
			    void *ctx)
{
	struct dialer *d = xcalloc(1, sizeof(*d));

	*d = (struct dialer){.loop = l, .target = *target, .fn = fn, .ctx = ctx, .fd = -1};
	d->give_up_ms = clock_boot_ms() + target->limit_ms;
	d->limit = loop_timer_new(l, limit_over, d);
	d->resolving =
		resolve_start(l, target->resolve, target->host, target->limit_ms, resolved, d);
	return d;
}

struct dialer *dialer_free(struct dialer *d)
{
	if (!d)
		return NULL;
	d->resolving = resolving_free(d->resolving);
	stop_connecting(d);
	d->handshake = tls_handshake_free(d->handshake);
	d->limit = loop_timer_free(d->limit);
	free(d);
	return NULL;
}
