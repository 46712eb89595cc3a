#pragma once
/*
 * pipe_holder - holds the read ends of an attempt's pipes and does nothing else.
 *
 * The bytes in a pipe are lost when its last descriptor is closed.  Agent and shim both hold the
 * pipes.  When one of them sees the other die it forks a pipe holder at once, which inherits its
 * descriptors: if the survivor is killed too, the bytes still wait for the next agent.  A pipe holder
 * exits when the attempt's end is recorded or its directory is gone.  It must not exit earlier: an
 * agent that finds the pipes without a reader reports that output may be lost.
 */
#include "link/frame.h"

/* Fork a pipe holder of n pipes.  A failed fork is ignored: bytes are lost only if the last reader is killed, too. */
void pipe_holder_fork(int attempt_dirfd, const int *pipes, int n);
