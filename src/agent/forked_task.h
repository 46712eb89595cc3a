#pragma once
/*
 * forked_task - work that may take long, done in a forked child while the loop goes on.
 *
 * The child runs fn(ctx, out) on a copy of our memory and its text comes back
 * through a pipe.  It dies with us.  `done` is called once from the loop, with
 * the text, or with an empty one if the child died.
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

int forked_task_start(struct loop *l, forked_task_fn fn, forked_task_done_fn done, void *ctx,
		      struct forked_task **ret, struct err *err);
/* The agent reaped child `pid`: a task whose child it was forgets the pid, which may be reused.  NULL allowed. */
void forked_task_reaped(struct forked_task *t, pid_t pid);
/* Is pid the child of this task?  NULL allowed. */
bool forked_task_is(const struct forked_task *t, pid_t pid);
/* Kills the child if it still works; done is not called.  NULL allowed.  Safe inside done. */
struct forked_task *forked_task_free(struct forked_task *t);
