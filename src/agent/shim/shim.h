#pragma once
/*
 * shim - the small process between agent and job.
 *
 * Forked by the agent (no exec), in a session of its own, and a subreaper: every orphan of the job
 * becomes its child, so "no children" proves that no process of the job is left.  It claims the
 * attempt, starts the job, copies its pipes to the spools, enforces the time limit and the fence,
 * kills the whole process tree at the end and records the exit.  It needs neither agent nor master.
 *
 * Signals to the shim: SIGTERM stops the job (SIGTERM, grace, SIGKILL), SIGUSR1
 * kills it now, SIGUSR2 stops it because the lease ran out.
 */
#include "agent/shim/isolation.h"
#include "agent/shim/supervisor.h"
#include "link/message.h"
#include "sys/cgroup.h"
#include "sys/cpus.h"

struct err;

#define SHIM_STOP SIGTERM
#define SHIM_HURRY SIGUSR1
#define SHIM_LEASE SIGUSR2
#define SHIM_ORPHAN SIGURG /* from the kernel: the agent died */

struct shim_start {
	const char *dir; /* of the attempt, absolute, with its FIFOs */
	int attempt;
	const char *boot_id;
	bool sync;	  /* make the claim durable */
	const char *file; /* the program; NULL: it was not found, and `unfit` is the error */
	struct err unfit;
	const char *const *const
		*argvs; /* of each process, NULL-terminated; the program is the same */
	int processes;
	const char *const *const *envs; /* of each process, NULL-terminated */
	const struct cpus *cpus;	/* of each process; NULL: it may use all */
	const char *cwd;
	struct isolation isolation;
	bool pty;		       /* the job gets a terminal */
	struct cgroup cg;	       /* exists, with its limits set */
	int64_t grace_ms, deadline_ms; /* deadline: ms from now; 0 = none */
	struct supervisor_limits limits;
	const int *keep; /* descriptors, in rising order, that stay open while the shim lives */
	size_t nkeep;
};

/* A shim that cannot claim the attempt exits with an errno as its code (EEXIST: it is claimed already);
 * later errors are in the status file. */
int shim_fork(const struct shim_start *s, pid_t *ret_pid, struct err *err);
/* The exit code reported for a program that cannot be started. */
int shim_failed_code(enum err_kind kind);
