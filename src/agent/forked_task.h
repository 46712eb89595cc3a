#pragma once
/*
 * forked_task - long work in a forked child, while the agent's loop goes on.
 *
 * The child runs fn(ctx, out) on a copy of the agent's memory and sends the text in `out` through a
 * pipe.  It is killed when the agent dies.  `done` is called once from the loop, with the text, or
 * with an empty one if the child died.
 */
#include <stdbool.h>
#include <sys/types.h>
#include "base/str.h"

struct buf;
struct err;
struct loop;
struct forked_task;

typedef void (*forked_task_fn)(void *ctx, struct buf *out);
typedef void (*forked_task_done_fn)(void *ctx, struct str text);

#define FORKED_TASK_MAX_TEXT (64 * 1024)
#define FORKED_TASK_TRIES 3 /* by callers that start killed work again */

int forked_task_start(struct loop *l, forked_task_fn fn, forked_task_done_fn done, void *ctx,
		      struct forked_task **ret, struct err *err);
/* Child `pid` was reaped: if it is the task's, the task forgets the pid, which may be reused.  NULL allowed. */
void forked_task_reaped(struct forked_task *t, pid_t pid);
/* Is pid the child of this task?  NULL allowed. */
bool forked_task_is(const struct forked_task *t, pid_t pid);
/* Kills the child if it is alive; done is not called.  NULL allowed.  Safe inside done. */
struct forked_task *forked_task_free(struct forked_task *t);
