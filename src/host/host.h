#pragma once
/*
 * host - the daemon of a machine that has joined a master: `regatta agent --join`.
 *
 * It connects to the master, reports the machine's capacity, and makes, observes and destroys nodes on
 * request, with the local driver.  Each node is an agent process with its own connection: jobs do not
 * depend on the daemon.
 *
 * Its files, all in its directory (mode 0700):
 *
 *	lock		locked by the running daemon; holds its pid
 *	id		a random identity; a name with another identity is another host
 *	runs/RUN/INCARNATION/NODE.node	the directory of a node, see agent/agent.h
 *	agents.log	the log of the nodes' agents
 *	trash/		directories to be removed
 */
#include <stddef.h>

struct env_pair;
struct err;

struct host_options {
	const char *url, *pin, *token;
	const char *name;
	const struct env_pair *labels;
	size_t nlabels;
	const char *dir;
};

/* ERR_INVALID: not a valid host name. */
int host_check_name(const char *name, struct err *err);
/* Runs until a signal or a refusal; returns the process's exit code. */
int host_main(const struct host_options *o);
