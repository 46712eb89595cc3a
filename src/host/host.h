#pragma once
/*
 * host - the daemon of a machine that has joined a master: `regatta agent --join`.
 *
 * It dials the master, says what the machine has, and makes, looks at and destroys nodes when it
 * is asked to, with the functions of the local driver.  A node is an agent process of its own with
 * a connection of its own: whatever happens to the daemon, the jobs go on.
 *
 * All it needs is in its directory (mode 0700):
 *
 *	lock		locked by the living daemon; holds its pid
 *	id		a random identity; a name with another identity is another host
 *	runs/RUN/INCARNATION/NODE.node	the directory of a node, see agent/agent.h
 *	agents.log	what the nodes' agents say
 *	trash/		what is being removed
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

/* ERR_INVALID: no host can be called so. */
int host_check_name(const char *name, struct err *err);
/* Until a signal or a refusal; returns the process's exit code. */
int host_main(const struct host_options *o);
