#pragma once
/*
 * attempt - one start of the job on this node, as the agent sees it.
 *
 * While the shim lives the agent only watches: the wakeup FIFO reports new output and records, the
 * shim's pidfd reports its end.  If the shim is killed, the job becomes a child of the agent (a
 * subreaper), which supervises it itself.  If that shim was forked by an earlier agent, the exit
 * status is lost unless the forkserver recorded it: the job is supervised to its end, and the report
 * says that the status is unknown.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "agent/config.h"
#include "agent/container.h"
#include "link/message.h"
#include "agent/shim/status.h"
#include "agent/shim/supervisor.h"

struct arena;
struct err;
struct loop;
struct start_texts;

struct attempt_events {
	void (*changed)(void *ctx); /* a new record or output, or the end */
	bool (*is_helper)(void *ctx,
			  pid_t pid); /* is pid a child of the agent that is not the job's? */
};

struct attempt {
	int no;	       /* 0: no attempt was started */
	int processes; /* of the node */
	char *dir;
	int dirfd;
	bool other_boot;
	struct status st;
	int64_t status_size;
	bool has_exit;	   /* `exit` is final */
	int64_t zombie_ms; /* since when the job is a zombie */
	bool cut;	   /* no process held the job's pipes when this agent started */
	bool metrics_cut;  /* the same of its metrics FIFO */
	bool unproven;	   /* `exit` is final, but no process of the job was proven to be gone */
	struct exit_report exit;

	/* Watching. */
	struct loop *loop;
	const struct agent_config *cfg;
	const char *boot_id;
	int wakeup;
	struct loop_io *wakeup_io;
	pid_t shim;  /* the shim's pid if it is a child of this agent and alive; else 0 */
	bool parent; /* the shim was a child of this agent, so its orphans are too */
	int shim_fd;
	struct loop_io *shim_io;
	struct loop_timer *shim_timer; /* for kernels without pidfd */
	/* Read ends of the pipes, one per stream, so that their bytes outlive the shim; NULL: not held. */
	int *hold;
	struct cgroup cg;
	bool no_groups;		       /* the cgroups were removed */
	struct supervisor_fence fence; /* see attempt_fence(); at_ms 0: none */
	enum stop_cause stop;	       /* requested since this agent started */
	char *mark;

	/* Supervising, after the shim's death. */
	bool supervising;
	struct supervisor supervisor;
	struct loop_io **supervise_io; /* of each stream */
	struct loop_timer *supervise_timer;
	struct loop_timer *job_timer; /* checks a job that is not a child of this agent */

	struct attempt_events ev;
	void *ctx;
};

/* The directory of attempt `no`; the caller frees it.  That of the first attempt is the node's directory. */
char *attempt_dir(const char *node_dir, int no);
void attempt_init(struct attempt *at, struct loop *l, const struct agent_config *cfg,
		  const char *boot_id, const struct attempt_events *ev, void *ctx);
void attempt_release(struct attempt *at);
/* Find the newest claimed attempt below node_dir and go on with it.  Without one at->no stays 0. */
int attempt_find(struct attempt *at, const char *node_dir, struct err *err);
/* The container of a job. */
struct attempt_container {
	struct container_record record;
	const char *image;
	const char *workdir;		      /* NULL: that of the image */
	const char *mounts[CONTAINER_MOUNTS]; /* directories; those after the last are NULL */
};
/* Start a new attempt; c NULL: not in a container.  A failure to start the shim is reported in at->exit, as every
 * other end. */
void attempt_start(struct attempt *at, const char *node_dir, const struct message_start *m,
		   const struct start_texts *texts, const struct attempt_container *c);
/* Of the container of each process, if the job has any.  A container of this name cannot be made twice: another reason
 * why an attempt runs only once. */
const char *attempt_container_name(const struct attempt *at, int process, struct arena *a);
/* Is a process of the job running? */
bool attempt_is_live(const struct attempt *at);
/* Is it sure that no process of the job is left?  Of an attempt that is not live. */
bool attempt_is_proven(const struct attempt *at);
void attempt_stop(struct attempt *at, enum stop_cause cause);
/* Send a signal to the job's process group, if it runs; 0: none. */
void attempt_signal(const struct attempt *at, int signo);
/* Set the time at which the shim, or the agent in its place, stops the job (shim/supervisor.h), for
 * this attempt and later ones. */
void attempt_fence(struct attempt *at, struct supervisor_fence fence);
/* A child of the agent has ended with this status and is not reaped yet. */
void attempt_child_ended(struct attempt *at, pid_t pid, int wait_status);
/* The child was reaped. */
void attempt_child_reaped(struct attempt *at, pid_t pid, int wait_status);
/* Free the disk space of the spools: the master has stored them. */
void attempt_empty_spools(struct attempt *at);
/* Remove the job's cgroups.  No process of the job is alive. */
void attempt_remove_groups(struct attempt *at);
