/*
 * One framed connection.
 *
 * Reads go to the loop's scratch buffer, and frames are delivered out of it without a copy.  Only an
 * incomplete frame at its end gets a buffer of its own, of exactly the frame's size.  Frames are
 * written to the socket at once; what the socket does not take waits in conn_queue.c.  Over TLS header
 * and body must get into one record: a small frame is put together on the stack, a larger one in the
 * queue.
 */
#include "link/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/err.h"
#include "link/conn_queue.h"
#include "net/address.h"
#include "net/tls.h"
#include "net/transport.h"
#include "sys/loop.h"

#define SOCKET_BUFFER (1024 * 1024)
#define UNSENT_MAX                                                                                 \
	(128 * 1024)	  /* bytes in the kernel, where a control frame cannot overtake them */
#define READS_PER_ROUND 4 /* then other connections are served */
#define SMALL_FRAME 512	  /* a PING or PONG, an ACK, a sample */
#define DISCARD_READS 64
#define DISCARD_BYTES 16384

enum conn_state {
	CONN_OPEN,
	CONN_FLUSHING, /* conn_close was called; nothing is read any more */
	CONN_CLOSED,   /* the descriptor is gone */
};

struct conn {
	struct loop *loop;
	struct loop_io *io;
	struct loop_timer *later; /* made when needed: calls finish from the loop */
	struct loop_timer *more;  /* made when needed: reads bytes that OpenSSL holds */
	struct transport t;
	enum conn_state state;
	struct conn_events ev;
	void *ctx;

	bool corked, delivering, freed;
	bool send_failed; /* `why` is the error; reading goes on */
	struct err why;
	size_t max_payload; /* of a frame from the peer */

	uint8_t head[FRAME_HEADER]; /* an incomplete header */
	size_t head_n;
	uint8_t *rx; /* an incomplete frame */
	size_t rx_n, rx_size;

	struct conn_queue queue;
};

static void io_ready(void *ctx, int fd, int events);

static void read_more(void *ctx);

static void tune_socket(int fd)
{
	int size = SOCKET_BUFFER, domain = 0, on = 1, unsent = UNSENT_MAX;
	socklen_t len = sizeof(domain);

	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0)
		return;
	if (domain != AF_UNIX) {
		/* TCP tunes its buffer sizes itself, better than a fixed setting would. */
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
		setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof(unsent));
		return;
	}
	/* Refused or cut down by a limit of the system: slower, not wrong. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

struct conn *conn_new_over(struct loop *l, const struct transport *t, const struct conn_events *ev,
			   void *ctx)
{
	struct conn *c = xcalloc(1, sizeof(*c));

	tune_socket(t->fd);
	*c = (struct conn){
		.loop = l, .t = *t, .ev = *ev, .ctx = ctx, .max_payload = FRAME_MAX_PAYLOAD};
	if (t->ssl)
		tls_read_ahead(&c->t);
	conn_queue_init(&c->queue);
	c->io = loop_io_new(l, t->fd, LOOP_READ, io_ready, c);
	return c;
}

struct conn *conn_new(struct loop *l, int fd, const struct conn_events *ev, void *ctx)
{
	int flags = fcntl(fd, F_GETFL);
	struct transport t;

	if (flags >= 0 && !(flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	transport_plain(&t, fd);
	return conn_new_over(l, &t, ev, ctx);
}

void conn_set_max(struct conn *c, size_t max_payload)
{
	c->max_payload = max_payload;
}

/*
 * Closing a socket with unread bytes would send the peer a reset.  Not read into the scratch buffer:
 * another connection may be delivering a frame from it.
 */
static void discard_input(int fd)
{
	char bin[DISCARD_BYTES];

	for (int i = 0; i < DISCARD_READS; i++)
		if (recv(fd, bin, sizeof(bin), MSG_DONTWAIT) <= 0)
			break;
}

/* Close the descriptor and free all buffers, without a callback. */
static void shut(struct conn *c)
{
	if (c->state == CONN_CLOSED)
		return;
	c->state = CONN_CLOSED;
	c->io = loop_io_free(c->io);
	/* close_notify only after a whole frame: it tells the peer that nothing was cut off. */
	if (c->t.ssl && !c->send_failed && c->queue.bytes == 0)
		c->t.ops->end_output(&c->t);
	discard_input(c->t.fd);
	c->t.ops->close(&c->t);
	c->more = loop_timer_free(c->more);
	conn_queue_clear(&c->queue);
	free(c->rx);
	c->rx = NULL;
	c->head_n = 0;
}

struct conn *conn_free(struct conn *c)
{
	if (!c)
		return NULL;
	shut(c);
	c->later = loop_timer_free(c->later);
	c->freed = true;
	if (!c->delivering)
		free(c);
	return NULL;
}

/* Close and call on_close, from the loop: c may be freed when this returns. */
static void finish(struct conn *c)
{
	struct err why = c->why;

	if (c->later)
		loop_timer_cancel(c->later);
	shut(c);
	c->ev.on_close(c->ctx, &why);
}

static void late(void *ctx)
{
	struct conn *c = ctx;

	if (c->state == CONN_FLUSHING && c->queue.bytes > 0)
		err_set(&c->why, ERR_TIMEOUT, "the peer did not take the last %zu bytes",
			c->queue.bytes);
	finish(c);
}

static void finish_within(struct conn *c, int64_t ms)
{
	if (!c->later)
		c->later = loop_timer_new(c->loop, late, c);
	loop_timer_set(c->later, ms);
}

static void watch(struct conn *c)
{
	int events = 0;

	if (c->state == CONN_OPEN)
		events |= c->t.read_wants_write ? LOOP_READ | LOOP_WRITE : LOOP_READ;
	if (c->queue.bytes > 0)
		events |= c->t.write_wants_read ? LOOP_READ : LOOP_WRITE;
	loop_io_set(c->io, events);
}

/* Sending failed: drop the queue.  What the peer sent is still read, up to its end of file. */
static void send_broke(struct conn *c, int errnum)
{
	c->send_failed = true;
	err_errno(&c->why, errnum, "send to the peer");
	conn_queue_clear(&c->queue);
	finish_within(c, c->state == CONN_FLUSHING ? 0 : CONN_FLUSH_MS);
}

/* Bytes that the socket took (0: none now), or -1 when sending failed. */
static ssize_t send_now(struct conn *c, struct iovec *iov, size_t n)
{
	ssize_t sent = c->t.ops->writev(&c->t, iov, n);

	if (sent >= 0)
		return sent;
	if (errno == EAGAIN || errno == ENOBUFS)
		return 0;
	send_broke(c, errno);
	return -1;
}

static bool is_bulk(enum frame_type type)
{
	/* BYE is bulk, because it must come last. */
	return type == FRAME_DATA || type == FRAME_METRICS || type == FRAME_SAMPLE ||
	       type == FRAME_BYE;
}

static void send_queue(struct conn *c)
{
	while (c->queue.bytes > 0) {
		struct iovec iov[CONN_QUEUE_PARTS];
		ssize_t sent = send_now(c, iov, conn_queue_gather(&c->queue, iov));

		if (sent < 0)
			break;
		conn_queue_sent(&c->queue, (size_t)sent, c->t.ssl);
		if (sent == 0)
			break;
		if (c->state == CONN_FLUSHING)
			finish_within(c, CONN_FLUSH_MS); /* the peer reads: wait on */
	}
	watch(c);
}

/* A small frame as one record.  After 0 the queue sends the same bytes, as OpenSSL requires. */
static ssize_t send_record(struct conn *c, const struct iovec *iov, size_t parts)
{
	char bytes[SMALL_FRAME];
	struct iovec whole = {bytes, 0};

	for (size_t i = 0; i < parts; i++) {
		if (iov[i].iov_len > 0)
			memcpy(bytes + whole.iov_len, iov[i].iov_base, iov[i].iov_len);
		whole.iov_len += iov[i].iov_len;
	}
	return send_now(c, &whole, 1);
}

/* Send the parts of one frame, or queue what the socket does not take of it. */
static void transmit(struct conn *c, bool bulk, struct iovec *iov, size_t parts, size_t total,
		     struct conn_shared *shared)
{
	ssize_t sent = 0;

	if (c->state != CONN_OPEN || c->send_failed)
		return;
	if (c->queue.bytes == 0 && !c->corked && !c->t.ssl)
		sent = send_now(c, iov, parts);
	else if (c->queue.bytes == 0 && !c->corked && total <= SMALL_FRAME)
		sent = send_record(c, iov, parts);
	if (sent < 0 || (size_t)sent == total)
		return;
	if (c->queue.bytes + total - (size_t)sent > CONN_MAX_QUEUE) {
		err_set(&c->why, ERR_CAPACITY, "the peer does not read: %zu bytes wait for it",
			c->queue.bytes);
		c->send_failed = true;
		c->state = CONN_FLUSHING;
		conn_queue_clear(&c->queue);
		watch(c);
		finish_within(c, 0);
		return;
	}
	bool waited = c->queue.bytes > 0;

	if (shared)
		conn_queue_add_shared(&c->queue, shared, (size_t)sent);
	else
		conn_queue_add(&c->queue, bulk, iov, parts, (size_t)sent, total);
	if (c->corked)
		return;
	if (c->t.ssl && !waited)
		send_queue(c);
	else
		watch(c);
}

void conn_send(struct conn *c, enum frame_type type, uint16_t channel, struct str head,
	       struct str body)
{
	uint8_t header[FRAME_HEADER];
	size_t payload = head.n + body.n;

	if (payload > FRAME_MAX_PAYLOAD)
		abort(); /* a bug of the caller: the peer would close the connection */
	frame_header(header, (uint8_t)type, 0, channel, (uint32_t)payload);
	struct iovec iov[] = {
		{header, sizeof(header)},
		{(void *)(uintptr_t)head.p, head.n},
		{(void *)(uintptr_t)body.p, body.n},
	};
	transmit(c, is_bulk(type), iov, 3, sizeof(header) + payload, NULL);
}

void conn_send_shared(struct conn *c, struct conn_shared *s)
{
	struct iovec iov = {s->bytes, s->n};

	transmit(c, false, &iov, 1, s->n, s);
}

void conn_cork(struct conn *c)
{
	/* While frames are queued, conn_send only appends to the queue: no cork needed. */
	c->corked = c->queue.bytes == 0;
}

void conn_uncork(struct conn *c)
{
	if (!c->corked)
		return;
	c->corked = false;
	if (c->queue.bytes > 0)
		send_queue(c);
}

/* May free c. */
static void writable(struct conn *c)
{
	bool was_high = c->queue.bytes >= CONN_LOW_WATER;

	send_queue(c);
	if (c->state == CONN_FLUSHING && c->queue.bytes == 0)
		finish(c);
	else if (was_high && c->queue.bytes < CONN_LOW_WATER && !c->send_failed && c->ev.on_drained)
		c->ev.on_drained(c->ctx);
}

/* False when on_frame closed c; c is not freed yet. */
static bool deliver(struct conn *c, const struct frame *f)
{
	c->ev.on_frame(c->ctx, f);
	return c->state == CONN_OPEN;
}

/* As frame_decode, and -1 for a frame longer than c->max_payload. */
static int next_frame(const struct conn *c, const uint8_t *p, size_t n, struct frame *ret,
		      size_t *ret_used)
{
	if (n >= FRAME_HEADER && frame_size(p) - FRAME_HEADER > c->max_payload)
		return -1;
	return frame_decode((struct str){(const char *)p, n}, ret, ret_used);
}

/* Deliver every frame in p[0..n) and keep an incomplete one.  False when c takes no more. */
static bool take_bytes(struct conn *c, const uint8_t *p, size_t n)
{
	struct frame f;
	size_t used;
	int r;

	while ((r = next_frame(c, p, n, &f, &used)) > 0) {
		if (!deliver(c, &f))
			return false;
		p += used;
		n -= used;
	}
	if (r < 0) {
		err_set(&c->why, ERR_PROTOCOL,
			"the peer sent something that is not a frame, or one that is too long");
		return false;
	}
	if (n < FRAME_HEADER) {
		memcpy(c->head, p, n);
		c->head_n = n;
		return true;
	}
	c->rx_size = frame_size(p);
	c->rx = xmalloc(c->rx_size);
	memcpy(c->rx, p, n);
	c->rx_n = n;
	return true;
}

/* n new bytes: first those that complete c->rx, then the rest in scratch. */
static bool take_read(struct conn *c, uint8_t *scratch, size_t n)
{
	if (!c->rx) {
		n += c->head_n; /* read_some put the header's first bytes before the new ones */
		c->head_n = 0;
		return take_bytes(c, scratch, n);
	}
	size_t want = c->rx_size - c->rx_n;

	if (n < want) {
		c->rx_n += n;
		return true;
	}
	uint8_t *rx = c->rx;
	struct frame f;
	size_t used;

	c->rx = NULL;
	bool go_on =
		frame_decode((struct str){(char *)rx, c->rx_size}, &f, &used) > 0 && deliver(c, &f);

	free(rx);
	return go_on && take_bytes(c, scratch, n - want);
}

/* The peer closed (errnum 0) or the socket failed. */
static void read_ended(struct conn *c, int errnum)
{
	if (c->why.kind != ERR_NONE)
		return;
	if (errnum)
		err_errno(&c->why, errnum, "read from the peer");
	else if (c->rx || c->head_n)
		err_set(&c->why, ERR_UNAVAILABLE, "the peer left in the middle of a frame");
}

/* False at the end of the connection, with c->why set. */
static bool read_some(struct conn *c)
{
	for (int i = 0; i < READS_PER_ROUND; i++) {
		uint8_t *scratch = loop_scratch(c->loop);
		size_t room = LOOP_SCRATCH;
		struct iovec iov[2];
		size_t parts = 0;

		if (c->rx)
			iov[parts++] = (struct iovec){c->rx + c->rx_n, c->rx_size - c->rx_n};
		memcpy(scratch, c->head, c->head_n);
		iov[parts++] = (struct iovec){scratch + c->head_n, room - c->head_n};
		ssize_t n = c->t.ops->readv(&c->t, iov, parts);

		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0) {
			read_ended(c, n < 0 ? errno : 0);
			return false;
		}
		if (!take_read(c, scratch, (size_t)n))
			return false;
		if ((size_t)n < LOOP_SCRATCH / 2)
			return true; /* the socket is likely empty; if not, the loop calls again */
	}
	return true;
}

/* OpenSSL holds decrypted bytes, for which the socket never becomes readable. */
static void read_soon(struct conn *c)
{
	if (c->state != CONN_OPEN || !c->t.ops->pending(&c->t))
		return;
	if (!c->more)
		c->more = loop_timer_new(c->loop, read_more, c);
	loop_timer_set(c->more, 0);
}

static void readable(struct conn *c)
{
	bool crossed = c->t.read_wants_write;

	if (c->state != CONN_OPEN)
		return;
	c->delivering = true;
	bool go_on = read_some(c);

	c->delivering = false;
	if (c->freed) {
		free(c);
	} else if (!go_on && c->state == CONN_OPEN) {
		finish(c);
	} else if (c->state == CONN_OPEN) {
		read_soon(c);
		if (crossed != c->t.read_wants_write)
			watch(c);
	}
}

static void read_more(void *ctx)
{
	readable(ctx);
}

static void io_ready(void *ctx, int fd, int events)
{
	struct conn *c = ctx;
	bool writes = c->t.write_wants_read ? events & LOOP_READ : events & LOOP_WRITE;

	(void)fd;
	/* One direction per call: events are level-triggered, the other one is reported again. */
	if (writes && c->queue.bytes > 0)
		writable(c);
	else
		readable(c);
}

void conn_close(struct conn *c)
{
	if (c->state != CONN_OPEN)
		return;
	c->state = CONN_FLUSHING;
	watch(c);
	finish_within(c, c->queue.bytes > 0 ? CONN_FLUSH_MS : 0);
}

size_t conn_queued(const struct conn *c)
{
	return c->queue.bytes;
}

bool conn_own_address(const struct conn *c, struct address *ret,
		      char interface[static CONN_INTERFACE])
{
	*ret = (struct address){.len = sizeof(ret->in6)};
	interface[0] = '\0';
	if (c->state == CONN_CLOSED || getsockname(c->t.fd, &ret->sa, &ret->len) < 0 ||
	    (ret->sa.sa_family != AF_INET && ret->sa.sa_family != AF_INET6))
		return false;
	address_interface(ret, interface, CONN_INTERFACE);
	return true;
}
