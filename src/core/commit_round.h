#pragma once
/*
 * round - in which order the steps of a round become true.
 *
 * Step the core, save the rows that changed, commit, and only then hand out the effects; if
 * something cannot be stored, nothing goes out.  No I/O of its own: the shell does it in its
 * callbacks.  The master and the simulator both call this, so that a wrong order here breaks
 * an invariant there.
 */
#include "core/core.h"

struct err;

/* Where the rows of one run are put; each is one call into the open transaction. */
struct round_rows {
	int (*save_node)(void *run, int rank, const struct core_node *n, struct err *err);
	int (*save_resource)(void *run, int index, const struct core_resource *res,
			     struct err *err);
	int (*save_run)(void *run, const struct core_run *r, struct err *err);
};
/* Saves each row that changed since the last commit, once, and clears its mark. */
int round_save_rows(struct core_run *r, const struct effects *fx, const struct round_rows *to,
		    void *run, struct err *err);

struct round_order {
	int (*save)(void *shell, struct err *err); /* the rows of all runs of the round */
	int (*commit)(void *shell, struct err *err);
	void (*hand_out)(void *shell); /* the effects, to drivers and agents */
};
/* -1: no effect was handed out, and the stepped state must not be shown. */
int round_commit(const struct round_order *order, void *shell, struct err *err);
