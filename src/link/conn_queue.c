#include "link/conn_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "link/conn.h"

#define MIN_CHUNK 2048 /* small frames share a chunk */

/* Whole frames of one queue. */
struct chunk {
	struct list link;
	size_t n, cap, sent;
	bool begun; /* must be finished before any other chunk is sent */
	/* The n bytes: the chunk's own, or those of `shared` (then no frame is appended). */
	const uint8_t *p;
	struct conn_shared *shared;
	uint8_t bytes[];
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

void conn_queue_init(struct conn_queue *q)
{
	list_init(&q->steering);
	list_init(&q->bulk);
	q->bytes = 0;
}

static struct chunk *first_of(const struct list *l)
{
	return list_empty(l) ? NULL : list_item(l->next, struct chunk, link);
}

/* The chunk to be sent next. */
static struct chunk *next_chunk(const struct conn_queue *q)
{
	struct chunk *bulk = first_of(&q->bulk), *steering = first_of(&q->steering);

	return steering && !(bulk && bulk->begun) ? steering : bulk;
}

static void drop_chunk(struct chunk *k)
{
	list_remove(&k->link);
	conn_shared_free(k->shared);
	free(k);
}

void conn_queue_clear(struct conn_queue *q)
{
	for (struct chunk *k; (k = next_chunk(q));)
		drop_chunk(k);
	q->bytes = 0;
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

void conn_queue_add(struct conn_queue *q, bool bulk, const struct iovec *iov, size_t parts,
		    size_t skip, size_t total)
{
	struct chunk *k = chunk_for(bulk ? &q->bulk : &q->steering, total - skip);

	if (skip > 0)
		k->begun = true; /* the queues were empty: k holds only this frame */
	q->bytes += total - skip;
	for (size_t i = 0; i < parts; i++) {
		size_t cut = skip < iov[i].iov_len ? skip : iov[i].iov_len;
		size_t n = iov[i].iov_len - cut;

		if (n > 0)
			memcpy(k->bytes + k->n, (const char *)iov[i].iov_base + cut, n);
		k->n += n;
		skip -= cut;
	}
}

void conn_queue_add_shared(struct conn_queue *q, struct conn_shared *s, size_t skip)
{
	struct chunk *k = xmalloc(sizeof(*k));

	*k = (struct chunk){.n = s->n,
			    .cap = s->n,
			    .sent = skip,
			    .begun = skip > 0,
			    .p = s->bytes,
			    .shared = s};
	s->refs++;
	q->bytes += s->n - skip;
	list_append(&q->steering, &k->link);
}

void conn_queue_sent(struct conn_queue *q, size_t sent, bool tls)
{
	struct chunk *k;

	q->bytes -= sent;
	while ((k = next_chunk(q)) && sent >= k->n - k->sent) {
		sent -= k->n - k->sent;
		drop_chunk(k);
	}
	if (!k)
		return;
	k->sent += sent;
	if (sent > 0 || tls)
		k->begun = true;
}

static struct iovec chunk_rest(const struct chunk *k)
{
	return (struct iovec){(void *)(uintptr_t)(k->p + k->sent), k->n - k->sent};
}

/* Append the chunks of one queue to iov[n..], except `ahead`, which is in iov already. */
static size_t gather_from(const struct list *queue, const struct chunk *ahead, struct iovec *iov,
			  size_t n)
{
	for (const struct list *pos = queue->next; pos != queue && n < CONN_QUEUE_PARTS;
	     pos = pos->next) {
		struct chunk *k = list_item(pos, struct chunk, link);

		if (ahead && k == ahead)
			continue;
		iov[n++] = chunk_rest(k);
	}
	return n;
}

size_t conn_queue_gather(const struct conn_queue *q, struct iovec iov[static CONN_QUEUE_PARTS])
{
	struct chunk *ahead = first_of(&q->bulk);
	size_t n = 0;

	if (ahead && !ahead->begun)
		ahead = NULL;
	if (ahead)
		iov[n++] = chunk_rest(ahead);
	n = gather_from(&q->steering, ahead, iov, n);
	return gather_from(&q->bulk, ahead, iov, n);
}
