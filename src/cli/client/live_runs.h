#pragma once
/*
 * live_runs - the runs that are active, as the user's own master and the masters of all contexts know
 * them.
 */
#include <stdbool.h>

struct arena;
struct err;
struct live_runs;

/* NULL: the home has no store, so that nothing is known.  Starts the own master if there is none. */
int live_runs_open(const char *home, struct arena *a, struct live_runs **ret, struct err *err);
struct live_runs *live_runs_free(struct live_runs *l);
/* The install of the own master. */
const char *live_runs_install(const struct live_runs *l);
/* Does the own master know a run at all, active or ended? */
bool live_runs_had_any(const struct live_runs *l);
/* Asks all masters.  A context that does not answer is named once on stderr. */
int live_runs_refresh(struct live_runs *l, struct err *err);
/* Is it active, or may it be, because a master does not answer?  "": is any? */
bool live_runs_has(const struct live_runs *l, const char *run);
