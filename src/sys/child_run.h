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
/* The same of argv[0], a path, with the environment of this process and both outputs.  *ret_code: its exit code, as
 * shells have it. */
int child_run_words(const char *const *argv, const struct deadline *d, struct buf *out,
		    int *ret_code, struct err *err);
