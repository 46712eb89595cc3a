#pragma once
/* agents - the connections of agents: hello, frames in both directions, silence. */
#include <stdint.h>
#include "base/err.h"
#include "base/str.h"
#include "link/frame.h"

struct agents;
struct conn_shared;
struct live_run;
struct master;
struct transport;

/* All connections of the link. */
struct agents *agents_new(struct master *m);
/* NULL is allowed.  Returns NULL. */
struct agents *agents_free(struct agents *as);
/* Accepts a peer, a stranger until its hello: one of the unix socket (fd is non-blocking), and
 * one of the TLS port. */
void agent_accept(void *agents, int fd);
void agent_accept_over(void *agents, struct transport *t);
void agent_send(struct live_run *lr, int rank, enum frame_type type, struct str payload);
void agent_send_stream(struct live_run *lr, int rank, enum frame_type type, enum stream s,
		       struct str payload);
/* Closes the node's connection with `why` as the reason; its agent dials again. */
void agent_fail(struct live_run *lr, int rank, const struct err *why);
/* Answers a connection that has not said hello, by its number (event.conn).  Nothing happens if it
 * is gone. */
void agent_refuse_stranger(struct master *m, uint64_t conn, enum err_kind kind, const char *reason);
void agent_tell_stranger(struct master *m, uint64_t conn, enum frame_type type, struct str payload);
void agent_send_shared(struct live_run *lr, int rank, struct conn_shared *frame);
/* Frames sent between cork == true and cork == false are gathered and go out together. */
void agent_cork(struct live_run *lr, int rank, bool cork);
/* When this master last heard from the node's agent, on clock_boot_ms(); 0: never. */
int64_t agent_heard_ms(const struct live_run *lr, int rank);
/* Closes the node's connection without an event for the core. */
void agent_drop(struct live_run *lr, int rank);
