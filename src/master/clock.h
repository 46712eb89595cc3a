#pragma once
/*
 * clock - the master's time in ms: never goes back over restarts, and until the next boot follows no
 * change of the wall clock.
 */
#include <stdint.h>

struct master;

int64_t master_now(const struct master *m);
void master_clock_start(struct master *m);
/* What to add to boot_ms, with the clocks given. */
int64_t clock_base_for(const char *home, const char *boot_id, int64_t boot_ms, int64_t wall_ms,
		       int64_t last_ms);
