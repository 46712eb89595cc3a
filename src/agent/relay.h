#pragma once
/*
 * relay - send the spooled output to the master, from the offset up to which the master has it.
 *
 * Bytes are addressed by (stream, offset).  At most RELAY_WINDOW beyond the last
 * acknowledgement are under way, and at most RELAY_QUEUE wait in the connection,
 * so memory does not depend on the volume.  What the master has stored, and
 * whose samples it has taken, is punched out of the spool.
 */
#include <stdbool.h>
#include <stdint.h>
#include "link/conn.h"
#include "link/frame.h"

struct conn;

#define RELAY_WINDOW (4 * 1024 * 1024)
/* of at most 256 KiB: larger ones are not faster, only larger in memory */
#define RELAY_FRAME (64 * 1024)
#define RELAY_QUEUE                                                                                \
	(256 *                                                                                     \
	 1024) /* no frame is added to a longer queue; it must reach the connection's low water mark */
#define RELAY_PUNCH (16 * 1024 * 1024) /* freed in steps of this */

struct relay_stream {
	int fd;
	uint64_t size, sent, acked, looked, punched;
};

struct relay {
	struct relay_stream s[STREAMS];
	int dirfd;     /* of the attempt; borrowed */
	int acked_fd;  /* file that tells the shim; made by the first acknowledgement */
	uint64_t told; /* sum of what acked_fd says */
};

/* dirfd must outlive the relay. */
void relay_open(struct relay *r, int dirfd);
void relay_close(struct relay *r);
/* Read the current sizes of the spool files. */
void relay_refresh(struct relay *r);
/* A new connection: send again from what the master has. */
void relay_resume(struct relay *r, const uint64_t acks[static STREAMS],
		  const uint64_t looked[static STREAMS]);
/* Bytes below `acked` are on the master's disk, samples below `looked` are in its database. */
void relay_ack(struct relay *r, enum stream s, uint64_t acked, uint64_t looked);
/* Send what the window and the queue allow, with `scratch` of RELAY_FRAME bytes.  Returns the bytes sent. */
uint64_t relay_push(struct relay *r, struct conn *c, void *scratch);
/* Everything up to the given lengths was handed to the connection. */
bool relay_sent_all(const struct relay *r, const uint64_t lengths[static STREAMS]);
/* Bytes that wait for a connection or the window. */
uint64_t relay_waiting(const struct relay *r);
