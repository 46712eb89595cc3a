#include "master/upkeep/leftovers.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "driver/driver.h"
#include "master/internal.h"
#include "store/store.h"

static bool add_active(void *ctx, const struct run_row *row)
{
	map_put(ctx, str_from(row->id), ctx);
	return true;
}

static bool is_active(void *ctx, const char *run)
{
	return map_get(ctx, str_from(run)) != NULL;
}

void leftovers_sweep(struct master *m)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct map *active = map_new();
	struct err err = {0};
	struct sweep_input in = {
		.home = m->home,
		.install = store_install(m->store),
		.is_active = is_active,
		.ctx = active,
	};

	/* The active runs by their rows: a run that could not be resumed is in no map, and is
	 * active nevertheless. */
	if (store_runs_each(m->store, true, 0, 0, a, add_active, active, &err) == 0) {
		size_t n = driver_sweep(&in, &err);

		if (n > 0)
			log_info("removed %zu links and mounts that belong to no active run", n);
	}
	if (err.kind != ERR_NONE)
		log_warn("cannot remove leftovers of runs: %s", err.msg);
	map_free(active);
}
