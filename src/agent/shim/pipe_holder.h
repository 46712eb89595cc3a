#pragma once
/*
 * pipe_holder - holds the read ends of an attempt's pipes and does nothing else.
 *
 * What is in a pipe is lost when the last descriptor of it is closed.  Agent and
 * shim both hold them; whoever of the two sees the other die forks a pipe holder at
 * once, so that the bytes of a job that ends while the second is killed too still
 * wait for the next agent.  It has the very descriptors of who forked it: there is no moment in which nobody
 * holds them.  A pipe holder leaves by itself when the attempt's end is on record or its directory is gone; not
 * before, for an agent that finds the pipes without a reader has to say that their bytes may be lost.
 */
#include "link/frame.h"

/* Fork a pipe holder.  A failed fork is ignored: bytes are lost only if the last reader is killed, too. */
void pipe_holder_fork(int attempt_dirfd, const int pipes[static STREAMS]);
