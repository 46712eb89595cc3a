#pragma once
/*
 * pipe_holder - holds the read ends of an attempt's pipes and does nothing else.
 *
 * What is in a pipe is lost when the last descriptor of it is closed.  Agent and
 * shim both hold them; whoever of the two sees the other die forks a pipe holder at
 * once, so that the bytes of a job that ends while the second is killed too still
 * wait for the next agent.  A pipe holder leaves by itself when the pipes are closed and
 * empty, or when the attempt's directory is gone.
 */

/* Fork a pipe holder.  A failed fork is ignored: bytes are lost only if the last reader is killed, too. */
void pipe_holder_fork(int attempt_dirfd);
