#pragma once
/*
 * rsh - commands that processes of this node's job run on other nodes of the run.
 *
 * The job finds a program in the node's directory (LAYOUT_RSH, a link to this one: rsh_client.h) that is
 * called as ssh is, with a host and a command.  It connects to a socket of this agent and sends EXEC_ASK;
 * the master has the command run there (docs/protocol.md).  The frames of the two connections are the
 * same, but for the channel.
 */
#include <stdint.h>
#include "base/list.h"

struct agent;
struct err;
struct frame;
struct listener;

struct rsh {
	struct listener *listener; /* NULL: the job may not */
	struct list calls;
	int n;
	uint16_t channel; /* the last one used */
};

#define RSH_MAX 1024 /* commands at a time */

/* The node's own directory for temporary files, to be freed; NULL if its path is so long that a socket in a directory
 * below it could not be named.  Daemons that are killed leave files there, and it is removed with the node. */
char *rsh_tmp(const struct agent *a);
/* Make the links (that of LAYOUT_TEE, too) and that directory, and listen, if that is not done. */
int rsh_open(struct agent *a, struct err *err);
/* The same for the job of an earlier agent of this node, if it has a link. */
int rsh_resume(struct agent *a, struct err *err);
/* A frame of the master about one of the commands. */
void rsh_frame(struct agent *a, const struct frame *f);
/* The connection to the master is gone: whoever waits is told. */
void rsh_drop_all(struct agent *a);
void rsh_release(struct agent *a);
