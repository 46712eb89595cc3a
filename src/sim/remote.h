#pragma once
/* remote - the other master of a run that is handed over, on a machine of the simulated cloud. */
#include <stdbool.h>
#include <stdint.h>
#include "core/core.h"
#include "core/machine_end.h"

struct happening;
struct world;

struct sim_remote {
	int index;	 /* the resource that it lives on; -1: the run is not handed over */
	int64_t up_at;	 /* when its machine has booted */
	bool has, ended; /* it has the run, and the run has ended there */
	enum verdict verdict;
	bool stored; /* the results are in the store, or ready to be fetched: */
	bool keeps;  /* its machine has the only copy, until it is fetched */
	bool fetched;
	bool left; /* what it has made for the run exists */
	/* The end of its machine: its own plan of the run, and whether the network is still in use by the
	 * machine. */
	struct plan plan;
	struct machine_end end;
	bool detached;
};

/* Makes the plan one that is handed over: a network, and the machine of a master. */
void draw_handover(struct world *w);
/* The machine of the resource was made. */
void remote_boots(struct world *w, int index);
/* A question of our master arrives. */
void remote_effect(struct world *w, const struct effect *fx, uint64_t master);
void remote_happens(struct world *w, const struct happening *h);
/* I21: our master is about to delete the machine. */
void check_remote_deleted(struct world *w, int index);
/* I22: how a run that was handed over has ended. */
void check_remote_end(struct world *w);
