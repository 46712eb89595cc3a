#pragma once
/*
 * space - a full disk: nothing new begins, and what runs can be taken down.
 *
 * The database helps itself from the disk reserve (store.h).  The other files that teardown writes,
 * those of agents and the records of a run, get a part of it while a run is being taken down.
 */
#include <stdbool.h>

struct err;
struct live_run;
struct master;
struct space;

struct space *space_new(struct master *m);
struct space *space_free(struct space *s); /* NULL is allowed */
/* From the loop, every second or so: notices that the disk is full, or has room again. */
void space_check(struct space *s);
/* Before a run is accepted; from then on there is a reserve, where there is room for one.
 * ERR_CAPACITY: there is no room for a new run. */
int space_for_run(const struct space *s, struct err *err);
/* As the last check found it. */
bool space_is_full(const struct space *s);
/* A run that waits for room, or soon will. */
bool space_missed_by(const struct space *s, const struct live_run *lr);
