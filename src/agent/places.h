#pragma once
/*
 * places - paths of a node's files on the agent's machine.
 *
 * Messages of the master contain no paths.  They follow from the node's directory and, on the
 * master's machine, from base_dir, blobs and output_dir of agent.json (config.h).  The caller owns
 * the results.
 */
struct agent_config;
struct message_inputs;

#include <stdbool.h>

/* Is the machine made for this node alone, so that data may go anywhere on it? */
bool place_is_own_machine(const struct agent_config *cfg);
/* The directory of source and data. */
char *place_work(const char *node_dir);
/* The job's working directory: place_work, or, without source and data, the directory of the job file. */
char *place_cwd(const struct agent_config *cfg, const char *node_dir,
		const struct message_inputs *in);
/* The directory of the files kept of an attempt. */
char *place_output(const struct agent_config *cfg, const char *node_dir, int attempt);
