#include "master/upkeep/trash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/path.h"
#include "driver/driver.h"
#include "link/layout.h"
#include "master/internal.h"
#include "master/upkeep/space.h"
#include "sys/worker.h"

/* with more ended runs than this the sweep does not wait until no run is active */
#define TRASH_RUNS 5000
#define PUT_TRIES 3 /* the directory may be removed between two steps */

struct trash {
	struct master *m;
	char *dir;
	int runs; /* runs ended since the last sweep */
	bool busy, wanted;
	struct err err; /* set by the worker */
};

struct trash *trash_new(struct master *m)
{
	struct trash *t = xcalloc(1, sizeof(*t));

	t->m = m;
	t->dir = path_join(m->home, LAYOUT_TRASH);
	t->runs = 1; /* an earlier master may have left files */
	return t;
}

struct trash *trash_free(struct trash *t)
{
	if (!t)
		return NULL;
	free(t->dir);
	free(t);
	return NULL;
}

/* Removes one entry after the other, so that a master that stops need not wait for all of them. */
static void empty_work(void *arg, const struct deadline *d)
{
	struct trash *t = arg;
	CLEANUP(closedirp) DIR *dir = opendir(t->dir);
	struct dirent *e;

	while (dir && (e = readdir(dir)) && t->err.kind == ERR_NONE) {
		if (deadline_check(d, "", NULL) < 0)
			return;
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		CLEANUP(freep) char *path = path_join(t->dir, e->d_name);

		file_remove_tree(path, &t->err);
	}
	if (t->err.kind == ERR_NONE)
		file_remove_tree(t->dir, &t->err);
}

static void empty_done(void *arg, enum err_kind how)
{
	struct trash *t = arg;

	if (t->err.kind != ERR_NONE)
		log_warn("trash: %s", t->err.msg);
	t->busy = false;
	if (how == ERR_NONE)
		trash_sweep(t, false); /* for what was put there meanwhile */
}

int trash_put(struct trash *t, const char *path, const char *name, struct err *err)
{
	CLEANUP(freep) char *to = path_join(t->dir, name);

	for (int i = 0; i < PUT_TRIES; i++) {
		if (file_mkdir_p(t->dir, 0700, NULL) < 0)
			break;
		if (rename(path, to) == 0) {
			t->wanted = true;
			return 0;
		}
		if (errno != ENOENT)
			break;
	}
	return file_remove_tree(path, err);
}

void trash_run_ended(struct trash *t)
{
	t->runs++;
	trash_sweep(t, false);
}

void trash_sweep(struct trash *t, bool idle)
{
	bool due = t->wanted || t->runs >= TRASH_RUNS ||
		   ((idle || space_is_full(t->m->space)) && t->runs);

	if (!t->m->pools || t->busy || !due)
		return;
	t->runs = 0;
	t->wanted = false;
	t->busy = true;
	t->err = (struct err){0};
	workers_submit(master_disk(t->m), empty_work, empty_done, t, -1);
}
