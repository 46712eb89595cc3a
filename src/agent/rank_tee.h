#pragma once
/*
 * rank_tee - the program through which a launcher starts a rank: PROGRAM ARGUMENT...
 *
 * mpirun collects what all ranks print on its own node.  This program copies it, on its way there, to the log
 * of the node on which the rank runs: REGATTA_TEE_LOG is the directory of the attempt, whose FIFOs take it.
 * Without that variable, as on the launcher's node, nothing is copied.
 *
 * It becomes PROGRAM by exec, so that the launcher sees the rank's own pid, signals and exit code; the copying
 * is done by a process beside it, which ends when the rank's output is closed.  Bytes reach the node's log
 * before the launcher: when that has all of them, the log has too.
 */
#include <stdbool.h>

/* Is the program called by this name (LAYOUT_TEE)? */
bool rank_tee_is(const char *argv0);
int rank_tee_main(int argc, char **argv);
