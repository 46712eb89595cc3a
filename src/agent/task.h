#pragma once
/*
 * task - work that may take long, done in a forked child while the loop goes on.
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
struct task;

typedef void (*task_fn)(void *ctx, struct buf *out);
typedef void (*task_done_fn)(void *ctx, struct str text);

#define TASK_MAX_TEXT (64 * 1024)

int task_start(struct loop *l, task_fn fn, task_done_fn done, void *ctx, struct task **ret,
	       struct err *err);
/* Somebody reaped all children: tell every task, so that it does not mean a stranger by an old pid.  NULL allowed. */
void task_reaped(struct task *t, pid_t pid);
/* Is it the child of this task?  NULL allowed. */
bool task_is(const struct task *t, pid_t pid);
/* Kills the child if it still works; done is not called.  NULL allowed.  Safe inside done. */
struct task *task_free(struct task *t);
