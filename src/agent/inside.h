#pragma once
/*
 * inside - this program in the container of a job: runs a command there that the agent can end.
 *
 * Whoever kills the program that runs a command in a container ("docker exec") does not end the command.  So
 * the command is a child of this program, which the agent has put into the node's directory (LAYOUT_INSIDE),
 * and which reads a FIFO there: a byte is the number of a signal for the command, and when the agent has
 * closed the FIFO, or is gone, the command and its process group are killed.
 */
#include <stdbool.h>

/* Is the program called by this name (LAYOUT_INSIDE)? */
bool inside_is(const char *argv0);
/* FIFO COMMAND...: ends with the exit code of the command, as shells have it. */
int inside_main(int argc, char **argv);
