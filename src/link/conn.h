#pragma once
/*
 * conn - one framed connection on the loop, the same at both ends and on every transport.
 *
 * When frames wait for the peer, those that steer (all but DATA, METRICS, SAMPLE and BYE) go
 * before the others, each kind in its own order: an EXIT or PONG waits for at most one frame of
 * log bytes, not for all of them.
 * Buffers are small while idle (10,000 connections fit in 64 MB) and grow only
 * for a frame in flight.  on_frame may call conn_close but not conn_free; after
 * on_close no callback comes (on_close and on_drained may call conn_free).  A peer
 * that breaks the framing is closed with ERR_PROTOCOL, one that does not read with
 * ERR_CAPACITY; when sending fails, what the peer said before it left (REFUSE, BYE) is
 * still delivered first.
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
#define CONN_MAX_QUEUE (8 * 1024 * 1024) /* a peer that does not read is closed past this */
#ifndef CONN_FLUSH_MS
#define CONN_FLUSH_MS 5000
#endif

/* Takes over a connection, plain or TLS (shaken hands already). */
struct conn *conn_new_over(struct loop *l, const struct transport *t, const struct conn_events *ev,
			   void *ctx);
/* The same of a plain descriptor (made non-blocking). */
struct conn *conn_new(struct loop *l, int fd, const struct conn_events *ev, void *ctx);
/* Closes without on_close.  NULL allowed.  Returns NULL. */
struct conn *conn_free(struct conn *c);
/* The longest payload that is taken from the peer; FRAME_MAX_PAYLOAD until this is called.  A longer
 * frame is refused when its header is there, before anything is allocated for it. */
void conn_set_max(struct conn *c, size_t max_payload);
/* Flush what is queued (giving up after CONN_FLUSH_MS in which the peer took nothing), then close;
 * on_close comes later from the loop.
 * No frame is delivered after this call, and what is sent after it is dropped. */
void conn_close(struct conn *c);
/* Queue one frame; head (may be empty) and body are joined to one payload.  Tries to write at
 * once. */
void conn_send(struct conn *c, enum frame_type type, uint16_t channel, struct str head,
	       struct str body);
/* A frame for many peers: its bytes are there once, in however many queues they wait. */
struct conn_shared;
struct conn_shared *conn_shared_new(enum frame_type type, struct str payload);
/* Gives up the caller's share.  NULL allowed.  Returns NULL. */
struct conn_shared *conn_shared_free(struct conn_shared *s);
void conn_send_shared(struct conn *c, struct conn_shared *s);
/* Between these two small frames are gathered, to be sent at once.  No return to the loop in between. */
void conn_cork(struct conn *c);
void conn_uncork(struct conn *c);
size_t conn_queued(const struct conn *c);
/* Stop / go on reading (back-pressure to the peer).  Frames that were read already still come:
 * at most LOOP_SCRATCH bytes of them. */
void conn_pause(struct conn *c, bool pause);
/* Uid of the peer of a unix socket; -1 if unknown. */
int64_t conn_peer_uid(const struct conn *c);
/* The address of our end as others on the network would name it, and the interface that has it
 * ("" if unknown).  False on a unix socket. */
#define CONN_INTERFACE 16
struct address;
bool conn_own_address(const struct conn *c, struct address *ret,
		      char interface[static CONN_INTERFACE]);

/* listen_unix, listener_free, dial_unix: from net/listener.h and net/dial.h, the HTTP server listens with them
 * too. */
