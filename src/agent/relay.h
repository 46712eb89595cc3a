#pragma once
/*
 * relay - send the spooled output to the master.
 *
 * Bytes are addressed by (stream, offset).  At most RELAY_WINDOW bytes are sent beyond the last
 * acknowledgement, and at most RELAY_QUEUE bytes are queued in the connection, so memory does not
 * depend on the volume.  Bytes that the master has stored, and whose metrics it has stored, are
 * punched out of the spool files.
 */
#include <stdbool.h>
#include <stdint.h>
#include "link/conn.h"
#include "link/frame.h"

struct conn;

#define RELAY_WINDOW (4 * 1024 * 1024)
/* bytes per frame; up to 256 KiB would do, but larger frames are not faster */
#define RELAY_FRAME (64 * 1024)
#define RELAY_QUEUE                                                                                \
	(256 *                                                                                     \
	 1024) /* no frame is added to a longer queue; at least CONN_LOW_WATER, so that on_drained comes */
#define RELAY_PUNCH (16 * 1024 * 1024) /* spool space is freed in steps of this */

struct relay_stream {
	int fd;
	uint64_t size, sent, acked, scanned, punched;
};

struct relay {
	struct relay_stream *s;
	int n;
	int dirfd;     /* of the attempt; borrowed */
	int acked_fd;  /* SUPERVISOR_ACKED, made by the first acknowledgement */
	uint64_t told; /* sum of the offsets in that file */
};

/* Of n streams; dirfd must outlive the relay. */
void relay_open(struct relay *r, int dirfd, int n);
/* The attempt has more streams than were opened. */
void relay_widen(struct relay *r, int n);
void relay_close(struct relay *r);
/* Read the current sizes of the spool files. */
void relay_refresh(struct relay *r);
/* A new connection: send from the offsets up to which the master has stored the streams. */
void relay_resume(struct relay *r, const uint64_t acks[static STREAMS_MAX],
		  const uint64_t scanned[static STREAMS_MAX]);
/* Bytes below `acked` are on the master's disk, samples below `scanned` are in its database. */
void relay_ack(struct relay *r, enum stream s, uint64_t acked, uint64_t scanned);
/* Send what the window and the queue allow, with `scratch` of RELAY_FRAME bytes.  Returns the bytes sent. */
uint64_t relay_push(struct relay *r, struct conn *c, void *scratch);
/* Were the streams handed to the connection up to these lengths? */
bool relay_sent_all(const struct relay *r, const uint64_t lengths[static STREAMS_MAX]);
/* Bytes that are not handed to a connection yet. */
uint64_t relay_waiting(const struct relay *r);
