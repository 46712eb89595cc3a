#pragma once
/*
 * agent - runs on every node: dials the master, prepares, runs the job under a
 * shim, relays its output, extracts metrics, reports the exit, cleans up.
 *
 * All it needs is in its node directory:
 *
 *	agent.json	{"run","node","token","link_dir","link_name","home","revive","mark","boot","cgroup","cgroup_memory","proto"};
 *			one line, written by the driver (see agent/config.h); locked by the living agent (a POSIX lock), which
 *			adds the line "clean" when it was released and nothing of this node is alive
 *	hostfile	START's hostfile, if it had one; machinefile the same
 *	work/		work directory: source and data; the job's cwd unless START names another
 *	output/		what is kept of the job, unless agent.json names another place (agent/places.h)
 *	status		of the first attempt (claimed once by the shim, see agent/status.h); out, err, metrics: its spools;
 *			*.fifo: the job's pipes; wakeup.fifo, acked: small words between agent and shim (agent/shim/supervisor.h)
 *	a<attempt>/	the same of later attempts
 *
 * The directory belongs to the user, mode 0700.
 */
#include <stdbool.h>
#include <sys/types.h>

/* The role's main loop; returns the process's exit code. */
int agent_main(const char *node_dir);
/* For the forkserver, which sees orphans of this node end: if the process is the job, record how it ended. */
bool agent_orphan_ended(const char *node_dir, pid_t pid, int wait_status);
