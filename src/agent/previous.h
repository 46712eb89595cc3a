#pragma once
/*
 * previous - the outputs of the node's previous attempt, which ran on another machine: fetched from
 * the master into `previous` of the node's directory, through the cache of inputs.
 */
struct agent_config;
struct err;

/* The directory; the caller frees it.  It exists only when all files are in it. */
char *place_previous(const char *node_dir);
/* Fetches the outputs of that attempt unless they are there.  Blocks (transfer.h). */
int previous_fetch(const struct agent_config *cfg, const char *node_dir, int attempt,
		   struct err *err);
