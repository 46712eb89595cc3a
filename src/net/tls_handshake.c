#include "net/tls_handshake.h"

#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "net/tls_transport.h"
#include "net/transport.h"
#include "sys/loop.h"

struct tls_handshake {
	struct loop *loop;
	struct transport transport;
	struct loop_io *io; /* NULL: the handshake is over */
	struct loop_timer *limit;
	tls_shaken_fn fn;
	void *ctx;
};

static void stop_watching(struct tls_handshake *h)
{
	h->io = loop_io_free(h->io);
	h->limit = loop_timer_free(h->limit);
}

/* May free h. */
static void fail(struct tls_handshake *h, const struct err *why)
{
	stop_watching(h);
	h->transport.ops->close(&h->transport);
	h->fn(h->ctx, NULL, why);
}

/* The peer has closed the connection, also if bytes of it are left to be read. */
static bool has_left(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLRDHUP};

	return poll(&p, 1, 0) > 0;
}

static void step(void *ctx, int fd, int events)
{
	struct tls_handshake *h = ctx;
	struct err why = {0};
	short wait = 0;

	(void)events;
	/* One of very many that dialled at once gives up and dials again after some seconds.  A
	 * server that still answers its first dial is always late, for everybody behind it too. */
	if (tls_is_server(&h->transport) && has_left(fd)) {
		err_set(&why, ERR_UNAVAILABLE, "TLS: the peer has left");
		fail(h, &why);
		return;
	}
	if (!loop_take_costly(h->loop))
		return;
	int rc = tls_shake(&h->transport, &wait, &why);

	if (rc < 0) {
		fail(h, &why);
	} else if (rc == 0) {
		loop_io_set(h->io, wait == POLLOUT ? LOOP_WRITE : LOOP_READ);
	} else {
		struct transport t = h->transport;

		stop_watching(h);
		h->fn(h->ctx, &t, &why);
	}
}

static void limit_over(void *ctx)
{
	struct err why = {0};

	err_set(&why, ERR_TIMEOUT, "TLS: the peer did not shake hands in time");
	fail(ctx, &why);
}

struct tls_handshake *tls_handshake_new(struct loop *l, const struct transport *t, int64_t limit_ms,
					tls_shaken_fn fn, void *ctx)
{
	struct tls_handshake *h = xcalloc(1, sizeof(*h));

	*h = (struct tls_handshake){.loop = l, .transport = *t, .fn = fn, .ctx = ctx};
	/* The client sends first, so it waits for a writable socket; the server waits for bytes. */
	h->io = loop_io_new(l, t->fd, tls_is_server(t) ? LOOP_READ : LOOP_WRITE, step, h);
	h->limit = loop_timer_new(l, limit_over, h);
	loop_timer_set(h->limit, limit_ms);
	return h;
}

struct tls_handshake *tls_handshake_free(struct tls_handshake *h)
{
	if (h && h->io) {
		stop_watching(h);
		h->transport.ops->close(&h->transport);
	}
	free(h);
	return NULL;
}
