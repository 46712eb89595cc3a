#pragma once
/*
 * conn - one framed connection on the loop, the same at both ends and on every transport.
 *
 * Queued control frames (all but DATA, METRICS, SAMPLE and BYE) are sent before queued bulk frames;
 * both kinds keep their order.  So an EXIT or PONG waits for at most one frame of log bytes.
 * An idle connection has small buffers (10,000 connections fit in 64 MB); they grow only for a
 * frame in flight.  on_frame may call conn_close but not conn_free; on_close and on_drained may
 * call conn_free.  No callback comes after on_close.  A peer that breaks the framing is closed with
 * ERR_PROTOCOL, one that does not read with ERR_CAPACITY.  When sending fails, frames that the peer
 * sent before (REFUSE, BYE) are still delivered.
 */
#include <stdbool.h>
#include <stdint.h>
#include "link/frame.h"
#include "net/dial.h"
#include "net/listener.h"

struct loop;
struct err;
struct conn;
struct transport;

struct conn_events {
	void (*on_frame)(void *ctx, const struct frame *f);
	void (*on_drained)(void *ctx); /* the send queue fell below CONN_LOW_WATER; may be NULL */
	void (*on_close)(void *ctx,
			 const struct err *why); /* kind ERR_NONE: the peer closed in order */
};
#define CONN_LOW_WATER (256 * 1024)
#define CONN_MAX_QUEUE (8 * 1024 * 1024) /* bytes; a peer for which more wait is closed */
#ifndef CONN_FLUSH_MS
#define CONN_FLUSH_MS 5000
#endif

/* Takes over a transport, plain or TLS after its handshake. */
struct conn *conn_new_over(struct loop *l, const struct transport *t, const struct conn_events *ev,
			   void *ctx);
/* The same for a plain descriptor, which is made non-blocking. */
struct conn *conn_new(struct loop *l, int fd, const struct conn_events *ev, void *ctx);
/* Closes without on_close.  NULL allowed.  Returns NULL. */
struct conn *conn_free(struct conn *c);
/* The longest payload accepted from the peer; initially FRAME_MAX_PAYLOAD.  A longer frame is refused
 * by its header, before memory is allocated for it. */
void conn_set_max(struct conn *c, size_t max_payload);
/* Send the queue (give up when the peer reads nothing for CONN_FLUSH_MS), then close; on_close is
 * called later from the loop.  No frame is delivered after this call; conn_send does nothing. */
void conn_close(struct conn *c);
/* Send or queue one frame whose payload is head (may be empty) followed by body. */
void conn_send(struct conn *c, enum frame_type type, uint16_t channel, struct str head,
	       struct str body);
/* A frame for many peers, whose bytes all queues share. */
struct conn_shared;
struct conn_shared *conn_shared_new(enum frame_type type, struct str payload);
/* Drops the caller's reference.  NULL allowed.  Returns NULL. */
struct conn_shared *conn_shared_free(struct conn_shared *s);
void conn_send_shared(struct conn *c, struct conn_shared *s);
/* Frames sent between cork and uncork go out in one write.  Do not return to the loop in between. */
void conn_cork(struct conn *c);
void conn_uncork(struct conn *c);
size_t conn_queued(const struct conn *c);
/* The local address of the connection and the interface that has it ("" if unknown).  False on a
 * unix socket. */
#define CONN_INTERFACE 16
struct address;
bool conn_own_address(const struct conn *c, struct address *ret,
		      char interface[static CONN_INTERFACE]);
