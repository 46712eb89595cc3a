#pragma once
/*
 * transport - bytes in and out of a non-blocking stream socket.
 *
 * Server and client move bytes only through this, so that another transport (TLS) is
 * one more table.  Reads and writes return what was moved, 0 at the end of input, or
 * -1 with errno: EAGAIN means wait for the socket, anything else that it is over.
 * Interrupted calls are repeated here.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct transport;

struct transport_ops {
	ssize_t (*read)(struct transport *t, void *p, size_t n);
	/* Fills the parts in order, as far as there is something. */
	ssize_t (*readv)(struct transport *t, struct iovec *iov, size_t n);
	ssize_t (*writev)(struct transport *t, struct iovec *iov, size_t n);
	/* At most n bytes of a regular file from *off on; advances *off. */
	ssize_t (*send_file)(struct transport *t, int fd, off_t *off, size_t n);
	/* There is something to read that the socket will not tell of: bytes or the end. */
	bool (*pending)(const struct transport *t);
	void (*end_output)(struct transport *t); /* the peer sees the end of what we sent */
	void (*close)(struct transport *t);
};

struct transport {
	int fd;
	const struct transport_ops *ops;
	struct ssl_st *ssl; /* NULL: plain */
	/* After EAGAIN: the other direction is what the socket must be ready for. */
	bool read_wants_write, write_wants_read;
};

/* The socket itself; takes over fd. */
void transport_plain(struct transport *t, int fd);
