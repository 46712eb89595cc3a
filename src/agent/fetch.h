#pragma once
/*
 * fetch - the bytes of a blob on this machine, checked.
 *
 * On the master's machine they are in its own store.  Elsewhere they are fetched, from where an earlier try left
 * off, into a cache by content, which the nodes of a host may share (agent.json: cache, cache_bytes): a file gets
 * its name when its digest is right, several nodes that want it wait for one download, what was not used for the
 * longest time makes room.  The digest is computed again at every use, so a file that was damaged is fetched anew.
 */
struct agent_config;
struct err;
struct message_blob;

/* A descriptor at its beginning; blocks (transfer.h). */
int fetch_open(const struct agent_config *cfg, const char *node_dir, const struct message_blob *b,
	       struct err *err);
