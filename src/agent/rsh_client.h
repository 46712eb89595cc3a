#pragma once
/*
 * rsh_client - the program that mpirun calls where it expects ssh: HOST COMMAND...
 *
 * Runs the command, its words joined by spaces, with /bin/sh on a node of the same run, given by name or
 * address.  The path of this program in the command becomes "$REGATTA_RSH", because that of the other node
 * has another one, and that of REGATTA_TEE likewise.  Standard input, output and error and the exit code are those of the command; 255 says that it
 * was not run, with one line on standard error.
 */

#include <stdbool.h>

/* Is the program called by this name (LAYOUT_RSH)? */
bool rsh_client_is(const char *argv0);
int rsh_client_main(int argc, char **argv);
