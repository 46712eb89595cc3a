#pragma once
/*
 * runs - the runs in memory: submitted, resumed after a restart, loaded for reading, removed.
 *
 * An active run is in m->runs.  A run that has ended may be in memory more than once, for
 * several readers; live_run_done() frees it when nothing uses it any more.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct arena;
struct doc;
struct err;
struct live_run;
struct master;

/* Loads a run from its rows; if they cannot be read, for clean-up only (lr->unreadable).  The
 * functions live_run_*() are in run_load.c. */
struct live_run *live_run_load(struct master *m, int64_t no, struct err *err);
struct live_run *live_run_free(struct live_run *lr);
/* Finds a run by id or unique prefix.  One that is not active is loaded for reading: give it
 * back with live_run_done(). */
struct live_run *live_run_find(struct master *m, struct str id, struct arena *a,
			       const char ***ret_ids, size_t *ret_n, struct err *err);
/* The same by its whole id alone. */
struct live_run *live_run_exact(struct master *m, const char *id, struct arena *a, struct err *err);
/* The active run of the job of this name; NULL if there is none, or more than one. */
struct live_run *live_run_active_named(struct master *m, struct str name);
void live_run_done(struct live_run *lr);
int runs_resume(struct master *m, struct err *err);
int runs_submit(struct master *m, const struct doc *body, struct arena *a, struct live_run **ret,
		bool *ret_new, const char **ret_details, struct err *err);
int runs_remove(struct live_run *lr, struct err *err);
size_t runs_active(const struct master *m);
void runs_cancel_all(struct master *m, const char *why);
/* The rank of the node of this name; -1 if the run has none. */
int run_find_rank(struct live_run *lr, struct str node);
/* The same for a node by its name or its address, which hostfiles have. */
int run_find_host(struct live_run *lr, struct str host);
/* The same for the name of a log's owner: that of a node, or "<node>.p<p>" of one of its several processes. */
int run_find_process(struct live_run *lr, struct str name, int *ret_process);
/* The token that the agent of this incarnation of the node must present. */
void node_token(const struct live_run *lr, const char *node, int incarnation, char out[static 65]);
bool node_token_ok(const struct live_run *lr, struct str node, int incarnation, struct str token);
