#pragma once
/* agents - the connections of agents: hello, frames in both directions, silence. */
#include "base/str.h"
#include "link/frame.h"

struct agents;
struct live_run;
struct master;

/* All connections of the link. */
struct agents *agents_new(struct master *m);
/* NULL is allowed.  Returns NULL. */
struct agents *agents_free(struct agents *as);
void agent_accept(void *agents, int fd);
void agent_send(struct live_run *lr, int rank, enum frame_type type, struct str payload);
void agent_send_stream(struct live_run *lr, int rank, enum frame_type type, enum stream s,
		       struct str payload);
void agent_drop(struct live_run *lr, int rank); /* its node is not told */
