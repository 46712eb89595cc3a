/*
 * One framed connection.
 *
 * Reading goes to the loop's scratch buffer and frames are handed out of it without a
 * copy; only the frame that is cut off at its end gets a buffer of its own, of exactly
 * its size, for as long as it is incomplete.  Sending goes straight to the socket; what
 * it does not take is copied to a queue of chunks.
 */
#include "link/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/list.h"
#include "sys/loop.h"

#define SOCKET_BUFFER (1024 * 1024)
#define READS_PER_ROUND 4 /* then the others get their turn */
#define CHUNKS_PER_WRITE 16
#define MIN_CHUNK 2048 /* small frames share a chunk */
#define DISCARD_READS 64
#define DISCARD_BYTES 16384

enum conn_state {
	CONN_OPEN,
	CONN_FLUSHING, /* conn_close was called; nothing is read any more */
	CONN_CLOSED,   /* the descriptor is gone */
};

struct chunk {
	struct list link;
	size_t n, cap, sent;
	uint8_t bytes[];
};

struct conn {
	struct loop *loop;
	struct loop_io *io;
	struct loop_timer *later; /* made when needed: a deferred or late end */
	int fd;
	enum conn_state state;
	struct conn_events ev;
	void *ctx;
	int64_t peer_uid;

	bool paused, corked, delivering, freed;
	bool send_failed; /* `why` says how; only reading goes on */
	struct err why;
	size_t max_payload; /* of a frame from the peer */

	uint8_t head[FRAME_HEADER]; /* an incomplete header */
	size_t head_n;
	uint8_t *rx; /* an incomplete frame */
	size_t rx_n, rx_size;

	struct list queue;
	size_t queued;
};

static void io_ready(void *ctx, int fd, int events);

static void grow_socket_buffers(int fd)
{
	int size = SOCKET_BUFFER, domain = 0;
	socklen_t len = sizeof(domain);

	/* TCP tunes itself, and better when it is left alone. */
	if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) < 0 || domain != AF_UNIX)
		return;
	/* Refused or cut down by a limit of the system: slower, not wrong. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
}

struct conn *conn_new(struct loop *l, int fd, const struct conn_events *ev, void *ctx)
{
	struct conn *c = xcalloc(1, sizeof(*c));
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && !(flags & O_NONBLOCK))
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	grow_socket_buffers(fd);
	*c = (struct conn){
		.loop = l, .fd = fd, .ev = *ev, .ctx = ctx, .max_payload = FRAME_MAX_PAYLOAD};
	c->peer_uid = socket_peer_uid(fd);
	list_init(&c->queue);
	c->io = loop_io_new(l, fd, LOOP_READ, io_ready, c);
	return c;
}

void conn_set_max(struct conn *c, size_t max_payload)
{
	c->max_payload = max_payload;
}

static void drop_queue(struct conn *c)
{
	while (!list_empty(&c->queue)) {
		struct chunk *k = list_item(c->queue.next, struct chunk, link);

		list_remove(&k->link);
		free(k);
	}
	c->queued = 0;
}

/*
 * Unread bytes would turn our orderly end into a reset at the peer.  Not into the
 * scratch buffer: another connection may be handing out a frame from it.
 */
static void discard_input(int fd)
{
	char bin[DISCARD_BYTES];

	for (int i = 0; i < DISCARD_READS; i++)
		if (recv(fd, bin, sizeof(bin), MSG_DONTWAIT) <= 0)
			break;
}

/* Let go of the descriptor and of every buffer.  No callback. */
static void shut(struct conn *c)
{
	if (c->state == CONN_CLOSED)
		return;
	c->state = CONN_CLOSED;
	c->io = loop_io_free(c->io);
	discard_input(c->fd);
	close(c->fd);
	c->fd = -1;
	drop_queue(c);
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

/* The end, from the loop: c may be freed when this returns. */
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

	if (c->state == CONN_FLUSHING && c->queued > 0)
		err_set(&c->why, ERR_TIMEOUT, "the peer did not take the last %zu bytes",
			c->queued);
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

	if (c->state == CONN_OPEN && !c->paused)
		events |= LOOP_READ;
	if (c->queued > 0)
		events |= LOOP_WRITE;
	loop_io_set(c->io, events);
}

/* Sending is over.  What the peer sent before it left is still read, up to its end of file. */
static void send_broke(struct conn *c, int errnum)
{
	c->send_failed = true;
	err_errno(&c->why, errnum, "send to the peer");
	drop_queue(c);
	finish_within(c, c->state == CONN_FLUSHING ? 0 : CONN_FLUSH_MS);
}

/* Bytes that the socket took (0: none now), or -1 when sending is over. */
static ssize_t send_now(struct conn *c, struct iovec *iov, size_t n)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};

	for (;;) {
		ssize_t sent = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent >= 0)
			return sent;
		if (errno == EAGAIN || errno == ENOBUFS)
			return 0;
		if (errno != EINTR) {
			send_broke(c, errno);
			return -1;
		}
	}
}

/* The chunk at the end of the queue, with room for n bytes. */
static struct chunk *chunk_for(struct conn *c, size_t n)
{
	if (!list_empty(&c->queue)) {
		struct chunk *last = list_item(c->queue.prev, struct chunk, link);

		if (last->cap - last->n >= n)
			return last;
	}
	size_t cap = n > MIN_CHUNK ? n : MIN_CHUNK;
	struct chunk *k = xmalloc(sizeof(*k) + cap);

	k->n = k->sent = 0;
	k->cap = cap;
	list_append(&c->queue, &k->link);
	return k;
}

/* Queue what is left of the parts after the first `skip` bytes. */
static void enqueue(struct conn *c, const struct iovec *iov, size_t parts, size_t skip,
		    size_t total)
{
	struct chunk *k = chunk_for(c, total - skip);

	c->queued += total - skip;
	for (size_t i = 0; i < parts; i++) {
		size_t cut = skip < iov[i].iov_len ? skip : iov[i].iov_len;
		size_t n = iov[i].iov_len - cut;

		if (n > 0)
			memcpy(k->bytes + k->n, (const char *)iov[i].iov_base + cut, n);
		k->n += n;
		skip -= cut;
	}
}

void conn_send(struct conn *c, enum frame_type type, uint16_t channel, struct str head,
	       struct str body)
{
	uint8_t header[FRAME_HEADER];
	size_t payload = head.n + body.n, total = sizeof(header) + payload;
	ssize_t sent = 0;

	if (c->state != CONN_OPEN || c->send_failed)
		return;
	if (payload > FRAME_MAX_PAYLOAD)
		abort(); /* a bug of the caller: the peer would have to hang up */
	frame_header(header, (uint8_t)type, 0, channel, (uint32_t)payload);
	struct iovec iov[] = {
		{header, sizeof(header)},
		{(void *)(uintptr_t)head.p, head.n},
		{(void *)(uintptr_t)body.p, body.n},
	};

	if (c->queued == 0 && !c->corked)
		sent = send_now(c, iov, 3);
	if (sent < 0 || (size_t)sent == total)
		return;
	if (c->queued + total - (size_t)sent > CONN_MAX_QUEUE) {
		err_set(&c->why, ERR_CAPACITY, "the peer does not read: %zu bytes wait for it",
			c->queued);
		c->send_failed = true;
		c->state = CONN_FLUSHING;
		drop_queue(c);
		watch(c);
		finish_within(c, 0);
		return;
	}
	enqueue(c, iov, 3, (size_t)sent, total);
	if (!c->corked)
		watch(c);
}

static void drop_sent(struct conn *c, size_t sent)
{
	c->queued -= sent;
	while (sent > 0) {
		struct chunk *k = list_item(c->queue.next, struct chunk, link);
		size_t rest = k->n - k->sent;

		if (sent < rest) {
			k->sent += sent;
			return;
		}
		sent -= rest;
		list_remove(&k->link);
		free(k);
	}
}

static void send_queue(struct conn *c)
{
	while (c->queued > 0) {
		struct iovec iov[CHUNKS_PER_WRITE];
		size_t n = 0;
		struct list *pos;

		list_each (pos, &c->queue) {
			struct chunk *k = list_item(pos, struct chunk, link);

			iov[n++] = (struct iovec){k->bytes + k->sent, k->n - k->sent};
			if (n == CHUNKS_PER_WRITE)
				break;
		}
		ssize_t sent = send_now(c, iov, n);

		if (sent <= 0)
			break;
		drop_sent(c, (size_t)sent);
		if (c->state == CONN_FLUSHING)
			finish_within(c, CONN_FLUSH_MS); /* it does read */
	}
	watch(c);
}

void conn_cork(struct conn *c)
{
	/* What waits already waits for the peer. */
	c->corked = c->queued == 0;
}

void conn_uncork(struct conn *c)
{
	if (!c->corked)
		return;
	c->corked = false;
	if (c->queued > 0)
		send_queue(c);
}

/* May free c. */
static void writable(struct conn *c)
{
	bool was_high = c->queued >= CONN_LOW_WATER;

	send_queue(c);
	if (c->state == CONN_FLUSHING && c->queued == 0)
		finish(c);
	else if (was_high && c->queued < CONN_LOW_WATER && !c->send_failed && c->ev.on_drained)
		c->ev.on_drained(c->ctx);
}

/* False when c takes no more frames; c itself stays. */
static bool deliver(struct conn *c, const struct frame *f)
{
	c->ev.on_frame(c->ctx, f);
	return c->state == CONN_OPEN;
}

/* As frame_decode, and -1 for a frame that is longer than this peer may send. */
static int next_frame(const struct conn *c, const uint8_t *p, size_t n, struct frame *ret,
		      size_t *ret_used)
{
	if (n >= FRAME_HEADER && frame_size(p) - FRAME_HEADER > c->max_payload)
		return -1;
	return frame_decode((struct str){(const char *)p, n}, ret, ret_used);
}

/* Hand out every frame in p[0..n) and keep what is cut off.  False when c takes no more. */
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
		err_set(&c->why, ERR_PROTOCOL, "the peer sent no frame, or one that is too long");
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
		n += c->head_n; /* the header's first bytes stand in front of the new ones */
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
	for (int i = 0; i < READS_PER_ROUND && !c->paused; i++) {
		uint8_t *scratch = loop_scratch(c->loop);
		size_t room = LOOP_SCRATCH;
		struct iovec iov[2];
		int parts = 0;

		if (c->rx)
			iov[parts++] = (struct iovec){c->rx + c->rx_n, c->rx_size - c->rx_n};
		memcpy(scratch, c->head, c->head_n);
		iov[parts++] = (struct iovec){scratch + c->head_n, room - c->head_n};
		ssize_t n = readv(c->fd, iov, parts);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0) {
			read_ended(c, n < 0 ? errno : 0);
			return false;
		}
		if (!take_read(c, scratch, (size_t)n))
			return false;
		if ((size_t)n < LOOP_SCRATCH / 2)
			return true; /* most likely empty now; level-triggered tells if not */
	}
	return true;
}

static void io_ready(void *ctx, int fd, int events)
{
	struct conn *c = ctx;

	(void)fd;
	if (events & LOOP_WRITE) {
		writable(c);
		return;
	}
	if (c->state != CONN_OPEN)
		return;
	c->delivering = true;
	bool go_on = read_some(c);

	c->delivering = false;
	if (c->freed)
		free(c);
	else if (!go_on && c->state == CONN_OPEN)
		finish(c);
}

void conn_close(struct conn *c)
{
	if (c->state != CONN_OPEN)
		return;
	c->state = CONN_FLUSHING;
	watch(c);
	finish_within(c, c->queued > 0 ? CONN_FLUSH_MS : 0);
}

size_t conn_queued(const struct conn *c)
{
	return c->queued;
}

void conn_pause(struct conn *c, bool pause)
{
	c->paused = pause;
	if (c->state == CONN_OPEN)
		watch(c);
}

int64_t conn_peer_uid(const struct conn *c)
{
	return c->peer_uid;
}
