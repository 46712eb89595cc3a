#pragma once
/*
 * places - where the files of a node are, on the machine of its agent.
 *
 * No message says so: the node's directory is the agent's own, and on the master's machine agent.json
 * (config.h) adds where the job file is, where archives are and where outputs go.  All paths are owned by the
 * caller.
 */
struct agent_config;
struct message_inputs;

/* Source and data are put here. */
char *place_work(const char *node_dir);
/* Where the job runs: the work directory, or, with nothing to put into it, where the job file is. */
char *place_cwd(const struct agent_config *cfg, const char *node_dir,
		const struct message_inputs *in);
/* What the job leaves for its user. */
char *place_output(const struct agent_config *cfg, const char *node_dir, int attempt);
