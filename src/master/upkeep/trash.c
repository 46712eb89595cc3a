/* Empty the trash on a worker: at the start, when nothing runs, when it has grown, and when somebody wants the space. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "driver/driver.h"
#include "master/internal.h"
#include "sys/worker.h"

#define TRASH_RUNS 5000 /* more ended runs than this do not wait for a quiet moment */
#define PUT_TRIES 3	/* the trash may be removed between two steps */

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
	trash_look(c->m, false); /* for what came too late */
	free(c->dir);
	free(c);
}

int trash_put(struct master *m, const char *path, const char *name, struct err *err)
{
	CLEANUP(freep) char *trash = path_join(m->home, DRIVER_TRASH);
	CLEANUP(freep) char *to = path_join(trash, name);

	for (int i = 0; i < PUT_TRIES; i++) {
		if (file_mkdir_p(trash, 0700, NULL) < 0)
			break;
		if (rename(path, to) == 0) {
			m->trash_wanted = true;
			return 0;
		}
		if (errno != ENOENT)
			break;
	}
	return file_remove_tree(path, err);
}

void trash_look(struct master *m, bool idle)
{
	bool due = m->trash_wanted || m->trash_runs >= TRASH_RUNS || (idle && m->trash_runs);

	if (!m->workers || m->trash_busy || !due)
		return;
	struct trash_call *c = xcalloc(1, sizeof(*c));
	c->m = m;
	c->dir = path_join(m->home, DRIVER_TRASH);
	m->trash_runs = 0;
	m->trash_wanted = false;
	m->trash_busy = true;
	workers_submit(m->workers, empty_run, empty_done, c);
}
