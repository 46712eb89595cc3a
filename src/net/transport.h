#pragma once
/*
 * transport - bytes in and out of a non-blocking stream socket.
 *
 * A table of functions for plain sockets and one for TLS.  Reads and writes return the number of bytes,
 * 0 at the end of input, or -1 with errno: EAGAIN means wait for the socket, any other error is final.
 * Calls interrupted by a signal are repeated.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct transport;

struct transport_ops {
	ssize_t (*read)(struct transport *t, void *p, size_t n);
	/* Fills the parts in order. */
	ssize_t (*readv)(struct transport *t, struct iovec *iov, size_t n);
	ssize_t (*writev)(struct transport *t, struct iovec *iov, size_t n);
	/* At most n bytes of a regular file from *off on; advances *off. */
	ssize_t (*send_file)(struct transport *t, int fd, off_t *off, size_t n);
	/* Is there input (bytes or the end) for which poll() does not report the socket as readable? */
	bool (*pending)(const struct transport *t);
	/* Shut down the output: the peer sees an end of file. */
	void (*end_output)(struct transport *t);
	void (*close)(struct transport *t);
};

struct transport {
	int fd;
	const struct transport_ops *ops;
	struct ssl_st *ssl; /* NULL: plain */
	/* After EAGAIN: a read has to wait for a writable socket, or a write for a readable one. */
	bool read_wants_write, write_wants_read;
	bool drained; /* TLS: the last read found no whole record, in OpenSSL's buffer nor in the socket */
};

/* Plain bytes; takes over fd. */
void transport_plain(struct transport *t, int fd);
