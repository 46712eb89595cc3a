#pragma once
/*
 * queue - which run that asks for resources may start.  Pure.
 *
 * A run with `resources` is accepted and waits until it is admitted.  The order: a higher priority
 * first, then the time of submission.  The first one is admitted when all of its nodes fit on what is
 * free, and nobody overtakes it: so a large run is not kept waiting by small ones that come later.
 * A run waits for ever only while runs of a higher priority keep coming.
 *
 * What a run holds follows from its phase, which is stored: from its admission until it has ended.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "spec/job.h"

/* A machine, with what it has. */
struct queue_machine {
	const char *name;
	struct resources_spec has;
	int64_t slots; /* so many nodes at most; 0: any number */
};

struct queue_machines {
	struct queue_machine *v;
	size_t n;
	/* Each of them has nodes of one run only; those that are taken are not in the list.  Otherwise there is
	 * one, which all runs share, and what runs hold is not subtracted yet. */
	bool whole;
};

struct queue_run {
	int64_t priority, no;		    /* no: in the order of submission */
	bool waits;			    /* not admitted yet; otherwise it holds what it wants */
	bool placing;			    /* admitted, and its machines may not be taken yet */
	const struct resources_spec *nodes; /* what each of its nodes wants */
	size_t n;
};

/* Put each node on a machine that has room for it beside the others: ret_where[i] is that of node i (NULL: nobody wants to
 * know).  Machines and nodes that are alike are taken in their order.  What the machines have becomes what is left. */
bool queue_assign(struct queue_machines *machines, const struct resources_spec *nodes, size_t n,
		  size_t *ret_where);
/* The run that is to be admitted now; -1: none. */
int queue_admit(const struct queue_run *runs, size_t n, const struct queue_machines *machines);
/* The place of a waiting run in the queue, from 1. */
int queue_place(const struct queue_run *runs, size_t n, size_t which);
/* Why the run is not admitted, in a few words. */
#define QUEUE_WHY 160
void queue_why(const struct queue_run *runs, size_t n, size_t which,
	       const struct queue_machines *machines, char out[static QUEUE_WHY]);
/* Could these nodes run if nobody else did?  If not, `out` says what is missing. */
bool queue_possible(const struct resources_spec *nodes, size_t n,
		    const struct queue_machines *machines, char out[static QUEUE_WHY]);
