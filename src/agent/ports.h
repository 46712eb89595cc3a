#pragma once
/*
 * ports - the ports on which the job will listen are free before it starts.
 *
 * A program takes seconds until it listens.  So that another run on the machine finds the port taken
 * meanwhile, ports that are of the whole machine are claimed: for each the agent holds an abstract
 * socket whose name has the port, and one that also names run and node.  Both end with the agent.
 */
#include <stddef.h>

struct err;
struct message_inputs;
struct agent_config;

#define PORT_CLAIMS_MAX 16

struct port_claims {
	int fds[PORT_CLAIMS_MAX];
	size_t n;
};

/* Checks `port` and `ports` of the inputs, and claims.  ERR_CONFLICT names the port, who has it and the
 * key that chooses another one.  What an earlier call has claimed is released first. */
int ports_claim(struct port_claims *c, const struct message_inputs *in,
		const struct agent_config *cfg, struct err *err);
void ports_release(struct port_claims *c);
