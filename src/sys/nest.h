#pragma once
/*
 * nest - a process that was made ready once and is forked for every new agent.
 *
 * To exec a static program costs ten times as much as to fork one that runs
 * already: most of it is asking the processor what it can do, which is slow in a
 * virtual machine.  So the master keeps one small process of its own that does
 * nothing but fork.  What it forks is nobody's child for long (the kernel reaps
 * it) and outlives nest and master.  The nest ends when its master does.
 */
#include <sys/types.h>

struct err;

/* ---- the nest's side ---- */

/* Serve requests that come in on descriptor 0 until it is closed; in each process that is forked call `role` and
 * exit with its result.  title_init() must have been called. */
int nest_serve(int (*role)(const char *arg));

/* ---- the master's side; any thread ---- */

struct nest_child {
	const char *mark; /* value of PROC_MARK in its environment; NEST_MARK_LEN characters */
	const char *arg;  /* what the role is called with, and what ps shows */
	const char *log;  /* standard output and error are appended to this file */
};
#define NEST_MARK_LEN 24

struct nest;
/* `env` is what every child gets, beside its mark; copied.  The process is started when it is first needed, and
 * again if it was killed. */
struct nest *nest_new(const char *const *env);
int nest_fork(struct nest *n, const struct nest_child *c, pid_t *ret_pid, struct err *err);
struct nest *nest_free(struct nest *n);
