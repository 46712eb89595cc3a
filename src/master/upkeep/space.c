/*
 * A full disk: nothing new begins, and what runs can be taken down.
 *
 * The database helps itself from the ballast (store.h).  The other files that teardown
 * writes, those of agents and the records of a run, get a part of it while a run is
 * being taken down.
 */
#include "master/internal.h"

#include "base/err.h"
#include "base/log.h"

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

void space_look(struct master *m)
{
	store_ballast_make(m->store);
	if (taking_down(m))
		store_ballast_ease(m->store);
	bool full = store_ballast_out(m->store);
	if (full && !m->disk_full)
		log_warn("the disk of '%s' is full: no new runs until there is room", m->home);
	if (!full && m->disk_full)
		log_info("there is room again on the disk of '%s'", m->home);
	m->disk_full = full;
}

int space_for_run(struct master *m, struct err *err)
{
	if (!store_disk_full(m->store))
		return 0;
	return err_set(err, ERR_CAPACITY,
		       "the disk of '%s' is full: free at least %d MB for new runs", m->home,
		       (BALLAST_BYTES + BALLAST_MARGIN) >> 20);
}
