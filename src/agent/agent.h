#pragma once
/*
 * agent - runs on every node: connects to the master, prepares the inputs, runs the job under a
 * shim, relays its output, extracts metrics, reports the exit, cleans up.
 *
 * Its files, all in the node's directory:
 *
 *	agent.json	{"run","node","token","link_dir","link_name","home","revive","mark","boot","cgroup","cgroup_memory","proto"};
 *			one line, written by the driver (see agent/config.h); locked by the living agent (a POSIX lock), which
 *			adds the line "clean" when it was released and nothing of this node is alive
 *	hostfile	hostfile of START, if it has one; machinefile likewise
 *	tail	there if the end of a job that fails is reported with its last words (agent/tail.h)
 *	regatta-rsh, rsh.sock	of a job with a launcher: how it starts commands on other nodes (agent/rsh.h)
 *	regatta-tee	starts a rank of that job and copies its output to the node's log (agent/rank_tee.h)
 *	tmp/		its TMPDIR
 *	work/		work directory: source and data; the job's cwd unless START names another
 *	output/		files kept of the job, unless agent.json names another directory (agent/places.h)
 *	status		of the first attempt (claimed once by the shim, see agent/status.h); out, err, metrics: its spools;
 *			*.fifo: the job's pipes; wakeup.fifo, acked, fence: between agent and shim (agent/shim/supervisor.h)
 *	a<attempt>/	the same files of later attempts
 *	setup/		the same files of what is run before the job (agent/setup.h)
 *
 * The directory belongs to the user, mode 0700.
 */
#include <stdbool.h>
#include <sys/types.h>

/* Runs until the agent leaves; returns the process's exit code. */
int agent_main(const char *node_dir);
/* stopped: by a signal.  As the first process of a pod its end is the pod's: one that is evicted has not done its work,
 * and is replaced only if it has failed. */
int agent_exit_code(bool stopped, pid_t self);
/* For the forkserver, which reaps orphans of this node: if pid is the job, record its exit status. */
bool agent_orphan_ended(const char *node_dir, pid_t pid, int wait_status);
