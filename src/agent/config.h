#pragma once
/*
 * config - agent.json, written by the driver when it makes the node.
 *
 * Required: run, node, token, proto, and where the master is: link_dir and
 * link_name (a unix socket on this machine), or master and pin ("https://host:port"
 * and the pin of its key).  Optional: home and revive (start a master there when
 * none answers on its socket), incarnation (which machine of its node this is), mark (what every process
 * of this node carries in its environment), cgroup and cgroup_memory (where
 * the job's groups go), boot (the boot in which the node was made; who writes it
 * sees to it that a node directory that was lost is not of this boot), netns (the job and its
 * probes belong into the namespace that the node's directory holds), and the limits
 * settle_ms, unkill_ms, full_ms, spool_bytes.  Only on the master's machine: base_dir (of
 * the job file), blobs (the master's archives, by SHA-256) and output_dir (of the first attempt).  Elsewhere: cache
 * (a directory that the nodes of a host may share, see fetch.h) and cache_bytes (of all files in it).
 */
#include <stdbool.h>
#include "agent/shim/supervisor.h"
#include "sys/cgroup.h"

struct arena;
struct err;

struct agent_config {
	const char *run, *node, *token;
	int incarnation;		  /* of the node; 0: none is given */
	const char *link_dir, *link_name; /* NULL with a URL */
	const char *url, *pin;		  /* NULL without */
	const char *host;		  /* of the URL */
	int port;
	const char *home;
	bool revive;
	const char *mark, *boot;
	const char *base_dir, *blobs, *output_dir; /* NULL: not on this machine */
	const char *cache;			   /* NULL: one of its own */
	uint64_t cache_bytes;
	struct cgroup cg;
	const char *netns, *hosts; /* where they are; NULL: the job shares the machine's */
	struct supervisor_limits limits;
	bool was_clean; /* an earlier agent added the line "clean" */
	int64_t length; /* of the file without that line */
};

int config_load(const char *dir, struct arena *a, struct agent_config *ret, struct err *err);
