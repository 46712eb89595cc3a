#pragma once
/*
 * space - a full disk: no new run is accepted, and active runs can still be taken down.
 *
 * The database takes space from the disk reserve (store.h).  Other files that teardown writes,
 * those of agents and the records of a run, get a part of the reserve while a run is being taken
 * down.
 */
#include <stdbool.h>

struct err;
struct live_run;
struct master;
struct space;

struct space *space_new(struct master *m);
struct space *space_free(struct space *s);
/* The loop calls this about every second: notices that the disk is full, or has room again. */
void space_check(struct space *s);
/* To be called before a run is accepted: makes the reserve, if there is room for it.
 * ERR_CAPACITY: the disk is too full for a new run. */
int space_for_run(const struct space *s, struct err *err);
/* As the last space_check() found it. */
bool space_is_full(const struct space *s);
/* True if the run waits for room on the disk, or soon will. */
bool space_missed_by(const struct space *s, const struct live_run *lr);
