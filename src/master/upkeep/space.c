#include "master/upkeep/space.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/err.h"
#include "base/log.h"
#include "master/internal.h"
#include "master/live_run.h"

struct space {
	struct master *m;
	bool full; /* as the last check found it, and logged */
};

struct space *space_new(struct master *m)
{
	struct space *s = xcalloc(1, sizeof(*s));

	s->m = m;
	return s;
}

struct space *space_free(struct space *s)
{
	free(s);
	return NULL;
}

static bool taking_down(const struct master *m)
{
	struct str id;
	void *value;

	for (size_t i = 0; map_at(m->runs, &i, &id, &value);) {
		const struct live_run *lr = value;
		if (!lr->ended && (lr->core->cancel_asked || lr->core->phase >= RUN_COLLECTING))
			return true;
	}
	return false;
}

void space_check(struct space *s)
{
	const struct master *m = s->m;

	store_disk_reserve_make(m->store);
	if (taking_down(m))
		store_disk_reserve_ease(m->store);
	bool full = store_disk_reserve_is_out(m->store);
	if (full && !s->full)
		log_warn("the disk of '%s' is full: no new runs until there is room", m->home);
	if (!full && s->full)
		log_info("the disk of '%s' has room again", m->home);
	s->full = full;
}

int space_for_run(const struct space *s, struct err *err)
{
	/* A run can fill the disk before the next space_check(), so the reserve is made now. */
	store_disk_reserve_make(s->m->store);
	if (!store_disk_full(s->m->store))
		return 0;
	return err_set(err, ERR_CAPACITY,
		       "the disk of '%s' is full: free at least %d MB for new runs", s->m->home,
		       (DISK_RESERVE_BYTES + DISK_RESERVE_MARGIN) >> 20);
}

bool space_is_full(const struct space *s)
{
	return s->full;
}

bool space_missed_by(const struct space *s, const struct live_run *lr)
{
	if (lr->ended)
		return false;
	for (int i = 0; i < lr->plan.crew.n; i++)
		if (lr->core->nodes[i].no_room)
			return true;
	return s->full;
}
