#pragma once
/* child_run - run a program to its end and keep what it prints. */
#include "sys/child.h"

struct buf;
struct deadline;

#define CHILD_KEPT                                                                                 \
	(-2) /* for `out` and `err` of struct child_spec: the output goes to the buffer */

/*
 * Start the program in a session of its own, append what it prints to out, and wait for its end.  At the deadline
 * the session is killed.  *ret_status is that of wait(); it is 0 if this process reaps its children elsewhere and was
 * faster.  More output than the buffer may have is ERR_CAPACITY.
 */
int child_run(struct child_spec spec, const struct deadline *d, struct buf *out, int *ret_status,
	      struct err *err);
/* The same for a program that prints credentials.  ERR_DENIED when it ends with another exit code than 0, with the last
 * line of its errors, which are kept nowhere, however many they are. */
int child_run_helper(struct child_spec spec, const struct deadline *d, struct buf *out,
		     struct err *err);
/* child_run() of argv[0], a path, with the environment of this process and both outputs.  *ret_code: its exit code,
 * as shells have it. */
int child_run_words(const char *const *argv, const struct deadline *d, struct buf *out,
		    int *ret_code, struct err *err);

/*
 * Run a command as hooks are: in a directory, with the file `in` as its input, its output appended to the file `log`.
 * *ret_code is its exit code, as shells have it.  Its session is killed when this process dies, however it does: what
 * is run again by the next one does not overlap with it.  ERR_IO: it was killed.
 */
struct child_job {
	const char *dir, *in, *log;
	const char *const *argv, *const *env; /* argv[0] is searched in the PATH of env */
};
int child_run_job(const struct child_job *job, const struct deadline *d, int *ret_code,
		  struct err *err);
