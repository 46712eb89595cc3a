#pragma once
/*
 * forkserver - a small process that forks every new agent.
 *
 * An exec of a static program costs ten times as much as a fork: most of it is CPUID, which is slow in
 * a virtual machine.  So the master keeps one process that does nothing but fork.  The agents outlive
 * the master.
 *
 * When agent and shim were killed, the forkserver is the parent of the job, and the only process that
 * can record its exit status; so it stays as long as it has children.
 */
#include <stdbool.h>
#include <sys/types.h>

struct err;

/* ---- the forkserver's side ---- */

struct forkserver_role {
	int (*run)(const char *arg); /* in each forked process, which exits with its result */
	/* An orphan has ended and is not reaped yet: record it if it belongs to the node of this arg. */
	bool (*orphan_ended)(const char *arg, pid_t pid, int wait_status);
};
/* Serve requests on descriptor 0 until it is closed and no child is left.  Call title_init() before. */
int forkserver_serve(const struct forkserver_role *role, const char *name);

/* ---- the master's side, for any thread ---- */

struct forkserver_child {
	const char
		*mark;	 /* value of PROC_MARK in its environment; FORKSERVER_MARK_LEN characters */
	const char *arg; /* argument of the role, shown by ps */
	const char *log; /* standard output and error are appended to this file */
};
#define FORKSERVER_MARK_LEN 24
#define FORKSERVER_MARK_NONE                                                                       \
	"------------------------" /* placeholder for the mark in the environment */

struct forkserver;
/* `env` is copied; every child gets it, with its mark.  The process is started at the first use, and again
 * if it was killed; ps shows it with `name`. */
struct forkserver *forkserver_new(const char *name, const char *const *env);
int forkserver_fork(struct forkserver *f, const struct forkserver_child *c, pid_t *ret_pid,
		    struct err *err);
struct forkserver *forkserver_free(struct forkserver *f);
