#pragma once
/*
 * attempt - one start of the job on this node, as the agent sees it.
 *
 * While the shim lives the agent only watches: the wakeup pipe says that something is
 * new, the shim's pidfd says that it ended.  If the shim was killed, the job is
 * our child now (we are a subreaper) and the agent supervises it itself.  If the shim
 * was forked by an earlier agent, nobody can learn the exit status any more: the
 * job is supervised to its end all the same, and that is what is reported then.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "agent/config.h"
#include "link/message.h"
#include "agent/shim/status.h"
#include "agent/shim/supervisor.h"

struct err;
struct loop;
struct start_files;

struct attempt_events {
	void (*changed)(void *ctx);		 /* something is new: status, sizes, the end */
	bool (*is_helper)(void *ctx, pid_t pid); /* a child of ours that is not the job's */
};

struct attempt {
	int no; /* 0: there is none */
	char *dir;
	int dirfd;
	bool other_boot;
	struct status st;
	int64_t status_size;
	bool has_exit;	   /* `exit` is final */
	int64_t zombie_ms; /* since when the dead job waits to be reaped */
	bool cut;	   /* nobody held the pipes of the job when this agent came */
	bool unproven;	   /* `exit` is final, but no process of the job was proven to be gone */
	struct exit_report exit;

	/* Watching. */
	struct loop *loop;
	const struct agent_config *cfg;
	const char *boot_id;
	int wakeup;
	struct loop_io *wakeup_io;
	pid_t shim;  /* pid of the shim if it is our child and alive; else 0 */
	bool parent; /* the shim was our child: its orphans are ours */
	int shim_fd;
	struct loop_io *shim_io;
	struct loop_timer *shim_timer; /* where the kernel has no pidfd */
	int hold[STREAMS];	       /* read ends: what is in a pipe survives a dead shim */
	struct cgroup cg;
	bool no_groups;		       /* the cgroups are removed */
	struct supervisor_fence fence; /* see attempt_fence(); at_ms 0: none */
	enum stop_cause stop;	       /* asked for since this agent started */
	char *mark;

	/* Supervising, after the shim's death. */
	bool supervising;
	struct supervisor supervisor;
	struct loop_io *supervise_io[STREAMS];
	struct loop_timer *supervise_timer;
	struct loop_timer *job_timer; /* looks whether a job that is not our child still lives */

	struct attempt_events ev;
	void *ctx;
};

/* The directory of attempt `no`; owned.  The first one, mostly the only one, is in the node's directory itself. */
char *attempt_dir(const char *node_dir, int no);
void attempt_init(struct attempt *at, struct loop *l, const struct agent_config *cfg,
		  const char *boot_id, const struct attempt_events *ev, void *ctx);
void attempt_release(struct attempt *at);
/* Look for the newest claimed attempt below node_dir and take it up.  None is fine. */
int attempt_find(struct attempt *at, const char *node_dir, struct err *err);
/* Start a new one.  A failure before the shim is reported by at->exit, like every other end. */
void attempt_start(struct attempt *at, const char *node_dir, const struct message_start *m,
		   const struct start_files *files);
/* Is something of the job running? */
bool attempt_is_live(const struct attempt *at);
void attempt_stop(struct attempt *at, enum stop_cause cause);
/* The job is stopped then, by whoever supervises it, unless that is moved on before.  Also for attempts that start
 * later. */
void attempt_fence(struct attempt *at, struct supervisor_fence fence);
/* A child of ours has this status and is not reaped yet. */
void attempt_child_ended(struct attempt *at, pid_t pid, int wait_status);
/* The child was reaped. */
void attempt_child_reaped(struct attempt *at, pid_t pid, int wait_status);
/* Give back the disk space of what the master has. */
void attempt_empty_spools(struct attempt *at);
/* Nothing of the job is alive; remove its groups. */
void attempt_remove_groups(struct attempt *at);
