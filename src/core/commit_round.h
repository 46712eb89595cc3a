#pragma once
/*
 * round - the order of the steps of a round.
 *
 * Step the core, save the rows that changed, commit, and only then carry out the effects; if
 * something cannot be stored, no effect is carried out.  There is no I/O here: the callbacks of
 * the shell do it.  The master and the simulator both use this, so that a wrong order here
 * breaks an invariant in the simulator.
 */
#include "core/core.h"

struct err;

/* Saves rows of one run; each is one call into the open transaction. */
struct round_rows {
	int (*save_node)(void *run, int rank, const struct core_node *n, struct err *err);
	int (*save_resource)(void *run, int index, const struct core_resource *res,
			     struct err *err);
	int (*save_run)(void *run, const struct core_run *r, struct err *err);
};
/* Saves each row that changed since the last commit, once, and clears its `dirty` mark. */
int round_save_rows(struct core_run *r, const struct effects *fx, const struct round_rows *to,
		    void *run, struct err *err);

struct round_order {
	int (*save)(void *shell, struct err *err); /* saves the rows of all runs of the round */
	int (*commit)(void *shell, struct err *err);
	void (*hand_out)(void *shell); /* carries out the effects */
};
/* -1: no effect was carried out, and the stepped state must not be shown. */
int round_commit(const struct round_order *order, void *shell, struct err *err);
