#pragma once
/*
 * config - agent.json, written by the driver when it makes the node.
 *
 * Required: run, node, token, proto, and the master's address: link_dir and link_name (a unix socket
 * on this machine), or master and pin ("https://host:port" and the pin of its key).
 * Optional:
 *	home, revive		start a master with this home when none answers on its socket
 *	incarnation		counts the machines that were made for this node
 *	mark			value of a variable in the environment of every process of this node
 *	cgroup, cgroup_memory	parents of the job's groups
 *	boot			id of the boot in which the node was made.  If it is given, the driver
 *				makes sure that a node directory lost by a crash is not used in the same boot
 *	notices			where to ask whether the machine will be taken (notice.h)
 *	expires_file		of a machine that switches itself off: where its boot script looks for the
 *				time (sys/off_timer.h)
 *	own_env			the job gets the agent's variables too, where it has none of the name: those of
 *				the container that both are in
 *	netns			the job and its probes use the namespace in the node's directory
 *	settle_ms, unkill_ms, full_ms, spool_bytes	limits, see shim/supervisor.h
 * Only on the master's machine: base_dir (of the job file), blobs (the master's archives, by SHA-256)
 * and output_dir (of the first attempt).  On other machines: cache (a directory that the nodes of a
 * host may share, see fetch.h), cache_bytes (limit for all files in it) and address (under which other
 * nodes reach this machine; default: that of its connection to the master).
 */
#include <stdbool.h>
#include "agent/shim/supervisor.h"
#include "sys/cgroup.h"

struct arena;
struct err;

struct agent_config {
	const char *run, *node, *token;
	int incarnation;		  /* of the node; 0: not given */
	const char *link_dir, *link_name; /* NULL with a URL */
	const char *url, *pin;		  /* NULL with link_dir */
	const char *host;		  /* of the URL */
	int port;
	const char *home;
	bool revive;
	bool own_env;
	const char *mark, *boot;
	const char *notices;			   /* NULL: nowhere */
	const char *expires_file;		   /* NULL: the machine has no such timer */
	const char *base_dir, *blobs, *output_dir; /* NULL: the master is on another machine */
	const char *cache;			   /* NULL: in the node's directory */
	uint64_t cache_bytes;
	const char *address; /* NULL: that of its connection */
	struct cgroup cg;
	const char *netns, *hosts; /* paths; NULL: the job shares those of the machine */
	struct supervisor_limits limits;
	bool was_clean; /* an earlier agent added the line "clean" */
	int64_t length; /* of agent.json without that line */
};

int config_load(const char *dir, struct arena *a, struct agent_config *ret, struct err *err);
/* Host and port of a master's URL, https://HOST:PORT. */
int config_master_url(const char *url, struct arena *a, const char **ret_host, int *ret_port,
		      struct err *err);
