#pragma once
/*
 * forkserver - a process that was made ready once and is forked for every new agent.
 *
 * To exec a static program costs ten times as much as to fork one that runs
 * already: most of it is asking the processor what it can do, which is slow in a
 * virtual machine.  So the master keeps one small process of its own that does
 * nothing but fork.  What it forks outlives the master.
 *
 * It is also the last one who can tell how an orphan ended, when everybody between
 * the two was killed; so it stays as long as it has children.
 */
#include <stdbool.h>
#include <sys/types.h>

struct err;

/* ---- the forkserver's side ---- */

struct forkserver_role {
	int (*run)(const char *arg); /* in each forked process, which exits with its result */
	/* An orphan has ended and is not reaped yet.  Does it belong to the node of this arg? */
	bool (*orphan_ended)(const char *arg, pid_t pid, int wait_status);
};
/* Serve requests that come in on descriptor 0 until it is closed and no child is left.  title_init() must have been
 * called. */
int forkserver_serve(const struct forkserver_role *role, const char *name);

/* ---- the master's side; any thread ---- */

struct forkserver_child {
	const char
		*mark;	 /* value of PROC_MARK in its environment; FORKSERVER_MARK_LEN characters */
	const char *arg; /* what the role is called with, and what ps shows */
	const char *log; /* standard output and error are appended to this file */
};
#define FORKSERVER_MARK_LEN 24
#define FORKSERVER_MARK_NONE "------------------------" /* the place that marks are written to */

struct forkserver;
/* `env` is what every child gets, beside its mark; copied.  The process is started when it is first needed, and
 * again if it was killed; ps shows it with `name`. */
struct forkserver *forkserver_new(const char *name, const char *const *env);
int forkserver_fork(struct forkserver *f, const struct forkserver_child *c, pid_t *ret_pid,
		    struct err *err);
struct forkserver *forkserver_free(struct forkserver *f);
