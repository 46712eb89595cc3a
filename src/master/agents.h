#pragma once
/* agents - the connections of agents: hello, frames in both directions, silence. */
#include "base/str.h"
#include "link/frame.h"

struct live_run;
struct master;

void agent_accept(void *m, int fd);
void agent_send(struct live_run *lr, int rank, enum frame_type type, struct str payload);
void agent_send_stream(struct live_run *lr, int rank, enum frame_type type, enum stream s,
		       struct str payload);
void agent_drop(struct live_run *lr, int rank); /* its node is not told */
void agents_free(struct master *m);
