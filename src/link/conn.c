/*
 * One framed connection.
 *
 * Reads go to the loop's scratch buffer, and frames are delivered out of it without a copy.  Only an
 * incomplete frame at its end gets a buffer of its own, of exactly the frame's size.  Frames are
 * written to the socket at once; what the socket does not take is copied to a queue of chunks.
 *
 * There are two queues, `steering` for control frames and `bulk` for the others.  A chunk holds whole
 * frames, so the queue can change between two chunks; `steering` is sent first.  A chunk is finished
 * before any other once some of its bytes are sent, or once it was passed to OpenSSL (a repeated
 * SSL_write must pass the same bytes).  Over TLS every frame goes through a queue, so that header and
 * body get into one record.
 */
#include "link/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/list.h"
#include "net/address.h"
#include "net/transport.h"
#include "sys/loop.h"

#define SOCKET_BUFFER (1024 * 1024)
#define UNSENT_MAX                                                                                 \
	(128 * 1024)	  /* bytes in the kernel, where a control frame cannot overtake them */
#define READS_PER_ROUND 4 /* then other connections are served */
#define CHUNKS_PER_WRITE 16
#define MIN_CHUNK 2048 /* small frames share a chunk */
#define DISCARD_READS 64
#define DISCARD_BYTES 16384

enum conn_state {
	CONN_OPEN,
	CONN_FLUSHING, /* conn_close was called; nothing is read any more */
	CONN_CLOSED,   /* the descriptor is gone */
};

/* A whole frame, header and all. */
struct conn_shared {
	size_t refs, n;
	uint8_t bytes[];
};

struct chunk {
	struct list link;
	size_t n, cap, sent;
	bool begun; /* must be finished before any other chunk is sent */
	/* The n bytes: the chunk's own, or those of `shared` (then no frame is appended). */
	const uint8_t *p;
	struct conn_shared *shared;
	uint8_t bytes[];
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

	struct list steering, bulk; /* of struct chunk */
	size_t queued;		    /* bytes in both */
};

struct conn_shared *conn_shared_new(enum frame_type type, struct str payload)
{
	struct conn_shared *s = xmalloc(sizeof(*s) + FRAME_HEADER + payload.n);

	*s = (struct conn_shared){.refs = 1, .n = FRAME_HEADER + payload.n};
	frame_header(s->bytes, (uint8_t)type, 0, 0, (uint32_t)payload.n);
	memcpy(s->bytes + FRAME_HEADER, payload.p, payload.n);
	return s;
}

struct conn_shared *conn_shared_free(struct conn_shared *s)
{
	if (s && --s->refs == 0)
		free(s);
	return NULL;
}

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
	list_init(&c->steering);
	list_init(&c->bulk);
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

static struct chunk *first_of(const struct list *l)
{
	return list_empty(l) ? NULL : list_item(l->next, struct chunk, link);
}

/* The chunk to be sent next. */
static struct chunk *next_chunk(const struct conn *c)
{
	struct chunk *bulk = first_of(&c->bulk), *steering = first_of(&c->steering);

	return steering && !(bulk && bulk->begun) ? steering : bulk;
}

static void drop_chunk(struct chunk *k)
{
	list_remove(&k->link);
	conn_shared_free(k->shared);
	free(k);
}

static void drop_queue(struct conn *c)
{
	for (struct chunk *k; (k = next_chunk(c));)
		drop_chunk(k);
	c->queued = 0;
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
	if (c->t.ssl && !c->send_failed && c->queued == 0)
		c->t.ops->end_output(&c->t);
	discard_input(c->t.fd);
	c->t.ops->close(&c->t);
	c->more = loop_timer_free(c->more);
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

	if (c->state == CONN_OPEN)
		events |= c->t.read_wants_write ? LOOP_READ | LOOP_WRITE : LOOP_READ;
	if (c->queued > 0)
		events |= c->t.write_wants_read ? LOOP_READ : LOOP_WRITE;
	loop_io_set(c->io, events);
}

/* Sending failed: drop the queue.  What the peer sent is still read, up to its end of file. */
static void send_broke(struct conn *c, int errnum)
{
	c->send_failed = true;
	err_errno(&c->why, errnum, "send to the peer");
	drop_queue(c);
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

/* The last chunk of a queue, a new one if it has no room for n bytes. */
static struct chunk *chunk_for(struct list *queue, size_t n)
{
	if (!list_empty(queue)) {
		struct chunk *last = list_item(queue->prev, struct chunk, link);

		if (last->cap - last->n >= n)
			return last;
	}
	size_t cap = n > MIN_CHUNK ? n : MIN_CHUNK;
	struct chunk *k = xmalloc(sizeof(*k) + cap);

	*k = (struct chunk){.cap = cap, .p = k->bytes};
	list_append(queue, &k->link);
	return k;
}

/* Queue the parts without their first `skip` bytes, which are sent. */
static void enqueue(struct conn *c, struct list *queue, const struct iovec *iov, size_t parts,
		    size_t skip, size_t total)
{
	struct chunk *k = chunk_for(queue, total - skip);

	if (skip > 0)
		k->begun = true; /* the queues were empty: k holds only this frame */
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

static void enqueue_shared(struct conn *c, struct conn_shared *s, size_t skip)
{
	struct chunk *k = xmalloc(sizeof(*k));

	*k = (struct chunk){.n = s->n,
			    .cap = s->n,
			    .sent = skip,
			    .begun = skip > 0,
			    .p = s->bytes,
			    .shared = s};
	s->refs++;
	c->queued += s->n - skip;
	list_append(&c->steering, &k->link);
}

static void drop_sent(struct conn *c, size_t sent)
{
	struct chunk *k;

	c->queued -= sent;
	while ((k = next_chunk(c)) && sent >= k->n - k->sent) {
		sent -= k->n - k->sent;
		drop_chunk(k);
	}
	if (!k)
		return;
	k->sent += sent;
	if (sent > 0 || c->t.ssl)
		k->begun = true;
}

static struct iovec chunk_rest(const struct chunk *k)
{
	return (struct iovec){(void *)(uintptr_t)(k->p + k->sent), k->n - k->sent};
}

/* Append the chunks of one queue to iov[n..], except `ahead`, which is in iov already. */
static size_t gather_from(struct list *queue, const struct chunk *ahead, struct iovec *iov,
			  size_t n)
{
	for (struct list *pos = queue->next; pos != queue && n < CHUNKS_PER_WRITE;
	     pos = pos->next) {
		struct chunk *k = list_item(pos, struct chunk, link);

		if (ahead && k == ahead)
			continue;
		iov[n++] = chunk_rest(k);
	}
	return n;
}

/* The first chunks, in the order of sending. */
static size_t gather(struct conn *c, struct iovec iov[static CHUNKS_PER_WRITE])
{
	struct chunk *ahead = first_of(&c->bulk);
	size_t n = 0;

	if (ahead && !ahead->begun)
		ahead = NULL;
	if (ahead)
		iov[n++] = chunk_rest(ahead);
	n = gather_from(&c->steering, ahead, iov, n);
	return gather_from(&c->bulk, ahead, iov, n);
}

static void send_queue(struct conn *c)
{
	while (c->queued > 0) {
		struct iovec iov[CHUNKS_PER_WRITE];
		ssize_t sent = send_now(c, iov, gather(c, iov));

		if (sent < 0)
			break;
		drop_sent(c, (size_t)sent);
		if (sent == 0)
			break;
		if (c->state == CONN_FLUSHING)
			finish_within(c, CONN_FLUSH_MS); /* the peer reads: wait on */
	}
	watch(c);
}

/* Send the parts of one frame, or queue what the socket does not take of it. */
static void transmit(struct conn *c, struct list *queue, struct iovec *iov, size_t parts,
		     size_t total, struct conn_shared *shared)
{
	ssize_t sent = 0;

	if (c->state != CONN_OPEN || c->send_failed)
		return;
	if (c->queued == 0 && !c->corked && !c->t.ssl)
		sent = send_now(c, iov, parts);
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
	bool waited = c->queued > 0;

	if (shared)
		enqueue_shared(c, shared, (size_t)sent);
	else
		enqueue(c, queue, iov, parts, (size_t)sent, total);
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
	transmit(c, is_bulk(type) ? &c->bulk : &c->steering, iov, 3, sizeof(header) + payload,
		 NULL);
}

void conn_send_shared(struct conn *c, struct conn_shared *s)
{
	struct iovec iov = {s->bytes, s->n};

	transmit(c, &c->steering, &iov, 1, s->n, s);
}

void conn_cork(struct conn *c)
{
	/* While frames are queued, conn_send only appends to the queue: no cork needed. */
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
	if (writes && c->queued > 0)
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
	finish_within(c, c->queued > 0 ? CONN_FLUSH_MS : 0);
}

size_t conn_queued(const struct conn *c)
{
	return c->queued;
}

bool conn_own_address(const struct conn *c, struct address *ret,
		      char interface[static CONN_INTERFACE])
{
	struct ifaddrs *all = NULL;
	char own[ADDRESS_TEXT], other[ADDRESS_TEXT];

	*ret = (struct address){.len = sizeof(ret->in6)};
	interface[0] = '\0';
	if (c->state == CONN_CLOSED || getsockname(c->t.fd, &ret->sa, &ret->len) < 0 ||
	    (ret->sa.sa_family != AF_INET && ret->sa.sa_family != AF_INET6))
		return false;
	address_text(ret, own);
	if (getifaddrs(&all) < 0)
		return true;
	for (const struct ifaddrs *i = all; i; i = i->ifa_next) {
		struct address a = {.len = sizeof(a.in6)};

		if (!i->ifa_addr || i->ifa_addr->sa_family != ret->sa.sa_family)
			continue;
		memcpy(&a.sa, i->ifa_addr,
		       ret->sa.sa_family == AF_INET ? sizeof(a.in4) : sizeof(a.in6));
		address_text(&a, other);
		if (strcmp(own, other) != 0)
			continue;
		snprintf(interface, CONN_INTERFACE, "%s", i->ifa_name);
		break;
	}
	freeifaddrs(all);
	return true;
}
