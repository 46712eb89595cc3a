/* Empty the trash of the drivers on a worker: at the start, when nothing runs, and when it has grown. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "driver/driver.h"
#include "master/internal.h"
#include "sys/worker.h"

#define TRASH_RUNS 5000 /* more ended runs than this do not wait for a quiet moment */

struct trash_call {
	struct master *m;
	char *dir;
	struct err err;
};

static void empty_run(void *arg)
{
	struct trash_call *c = arg;
	file_remove_tree(c->dir, &c->err);
}

static void empty_done(void *arg)
{
	struct trash_call *c = arg;

	if (c->err.kind != ERR_NONE)
		log_warn("trash: %s", c->err.msg);
	c->m->trash_busy = false;
	free(c->dir);
	free(c);
}

void trash_look(struct master *m, bool idle)
{
	if (!m->workers || m->trash_busy || !m->trash_runs || (!idle && m->trash_runs < TRASH_RUNS))
		return;
	struct trash_call *c = xcalloc(1, sizeof(*c));
	c->m = m;
	c->dir = path_join(m->home, DRIVER_TRASH);
	m->trash_runs = 0;
	m->trash_busy = true;
	workers_submit(m->workers, empty_run, empty_done, c);
}
