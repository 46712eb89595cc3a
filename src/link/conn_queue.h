#pragma once
/*
 * conn_queue - the frames of a connection that wait for the socket, private to link/conn*.c.
 *
 * There are two queues, `steering` for control frames and `bulk` for the others.  A chunk holds whole
 * frames, so the queue can change between two chunks; `steering` is sent first.  A chunk is finished
 * before any other once some of its bytes are sent, or once it was passed to OpenSSL (a repeated
 * SSL_write must pass the same bytes).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "base/list.h"

#define CONN_QUEUE_PARTS 16 /* chunks per write */

/* A whole frame with its header, for many peers. */
struct conn_shared {
	size_t refs, n;
	uint8_t bytes[];
};

struct conn_queue {
	struct list steering, bulk; /* of struct chunk */
	size_t bytes;		    /* in both */
};

void conn_queue_init(struct conn_queue *q);
void conn_queue_clear(struct conn_queue *q);
/* Copy the parts of one frame of `total` bytes, without their first `skip` bytes, which are sent. */
void conn_queue_add(struct conn_queue *q, bool bulk, const struct iovec *iov, size_t parts,
		    size_t skip, size_t total);
/* Add a control frame without its first `skip` bytes; the queue has a reference to it. */
void conn_queue_add_shared(struct conn_queue *q, struct conn_shared *s, size_t skip);
/* The first chunks, in the order of sending. */
size_t conn_queue_gather(const struct conn_queue *q, struct iovec iov[static CONN_QUEUE_PARTS]);
/* Remove the first `sent` bytes.  tls: the next chunk was passed to OpenSSL too. */
void conn_queue_sent(struct conn_queue *q, size_t sent, bool tls);
