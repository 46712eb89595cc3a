#pragma once
/*
 * node_task - a call of a node whose answer takes a worker: it asks somebody else.
 *
 * The caller fills the arena with what the work needs; the work writes the answer or sets err.
 */
#include "base/buf.h"
#include "base/err.h"

struct api_call;
struct arena;
struct deadline;
struct http_exchange;

struct node_task {
	struct arena *a; /* of `with`; freed with the task */
	const void *with;
	struct buf answer; /* JSON */
	struct err err;
	void (*work)(struct node_task *t, const struct deadline *d);
	struct http_exchange *x;
};

/* A task whose answer has at most `max` bytes; node_task_start() takes it. */
struct node_task *node_task_new(size_t max);
/* Replies when the work is done, at the latest after 30 s. */
void node_task_start(struct api_call *c, struct node_task *t);
