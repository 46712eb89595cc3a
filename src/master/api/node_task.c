#include "master/api/node_task.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "master/api/api.h"
#include "sys/pools.h"
#include "sys/worker.h"

#define WORK_MS 30000
#define WORKERS 2

struct node_task *node_task_new(size_t max)
{
	struct node_task *t = xcalloc(1, sizeof(*t));

	t->a = arena_new();
	buf_init(&t->answer, max);
	return t;
}

static void work(void *arg, const struct deadline *d)
{
	struct node_task *t = arg;

	t->work(t, d);
}

static void work_done(void *arg, enum err_kind how)
{
	struct node_task *t = arg;

	if (how != ERR_NONE)
		err_set(&t->err, ERR_UNAVAILABLE, "the master is about to stop");
	if (t->err.kind == ERR_NONE)
		http_reply(t->x, 200, "application/json", buf_str(&t->answer));
	else
		api_reply_error(t->x, &t->err);
	buf_release(&t->answer);
	arena_free(t->a);
	free(t);
}

void node_task_start(struct api_call *c, struct node_task *t)
{
	t->x = c->x;
	workers_submit(pools_get(c->m->pools, "urls", WORKERS), work, work_done, t, WORK_MS);
}
