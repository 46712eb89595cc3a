#include "master/upkeep/suite_requests.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/file.h"
#include "base/log.h"
#include "base/map.h"
#include "base/path.h"
#include "link/layout.h"
#include "master/internal.h"
#include "master/suite_submission.h"
#include "master/suites.h"

void suite_request_drop(const char *dir, const struct core_suite *s)
{
	CLEANUP(freep) char *path = path_join(dir, SUITE_REQUEST_FILE);

	if (suite_is_done(s) && unlink(path) < 0 && errno != ENOENT)
		log_warn("'%s' has secrets in it and cannot be removed: errno %d", path, errno);
}

static char kept, done; /* what the map of suites says about one */

static bool note_suite(void *ctx, const struct suite_row *row)
{
	int left = 0;

	for (int i = 0; i < ENTRY_STATES; i++)
		left += i == ENTRY_SUCCEEDED ? 0 : row->entries[i];
	map_put(ctx, str_from(row->id), row->ended_ms && left == 0 ? &done : &kept);
	return true;
}

static void sweep_one(const char *dir, const char *request, const void *what)
{
	struct err err = {0};

	if (what == &kept)
		return;
	if (what == &done) {
		(void)unlink(request);
		return;
	}
	log_info("'%s' is of a suite that was never stored: it is removed", dir);
	if (file_remove_tree(dir, &err) < 0)
		log_warn("'%s': %s", dir, err.msg);
}

int suite_requests_sweep(struct master *m, struct err *err)
{
	CLEANUP(freep) char *suites = path_join(m->home, LAYOUT_SUITES);
	CLEANUP(closedirp) DIR *dir = opendir(suites);
	CLEANUP(map_freep) struct map *known = map_new();
	CLEANUP(arena_freep) struct arena *a = arena_new();

	if (!dir)
		return errno == ENOENT ? 0 : err_errno(err, errno, "open '%s'", suites);
	if (store_suites_each(m->store, false, 0, a, note_suite, known, err) < 0)
		return -1;
	for (const struct dirent *e; (e = readdir(dir));) {
		CLEANUP(freep) char *path = path_join(suites, e->d_name);
		CLEANUP(freep) char *request = path_join(path, SUITE_REQUEST_FILE);

		if (e->d_name[0] != '.' && file_exists(request))
			sweep_one(path, request, map_get(known, str_from(e->d_name)));
	}
	return 0;
}
