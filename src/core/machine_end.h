#pragma once
/*
 * machine_end - when a master that lives on a machine of a run ends that machine, and in which order.
 *
 * First the machine detaches itself from what only it uses, then what was made for it is destroyed,
 * then the machine, which ends the master too.  One step is open at a time; a step that fails is
 * repeated.  Steps that fail for GIVE_UP_MS do not keep the machine: it costs money, and the rest is
 * found by whoever made it, or by its tags.
 *
 * Pure, as core.h is.  Nothing is stored: every step may be repeated, also by the next master.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "core/outcome.h"

struct plan;

#define MACHINE_END_UNUSED_MS (15 * 60 * 1000) /* so long a master waits for its run */
/* So long whoever made the machine, and follows its run, has time to learn of the end and to delete everything itself,
 * which proves more than a resource that somebody else has deleted. */
#define MACHINE_END_FIRST_MS 5000
#define MACHINE_END_TELL_MS 60000 /* a failure can be asked for so long */
#define MACHINE_END_GIVE_UP_MS (10 * 60 * 1000)
#define MACHINE_END_AGAIN_MS 5000

struct machine_end {
	int64_t started_ms; /* when this master began */
	int64_t idle_ms;    /* when its runs were done; 0: they are not */
	int64_t next_ms;    /* no step is made before */
	bool asked;	    /* a step is open */
	bool detached;
	int done;      /* resources from this one on are destroyed; -1: none is yet */
	int index;     /* the resource of the open step; -1: it is the detaching */
	char why[160]; /* why the last step failed; "": it did not */
};

struct machine_end_facts {
	const struct plan *plan; /* of the run that the machine was made for; NULL: none has come */
	bool busy; /* a run is active, or its results or its report are not ready yet */
	bool lost; /* the results of a run could not be copied */
	int64_t keep_ms; /* so long the results of the run are kept on the machine for whoever made it; 0: they are not */
	bool copied; /* they go elsewhere: only those that could not be copied are kept */
};

enum machine_end_step {
	MACHINE_END_WAIT,    /* nothing is to be done now */
	MACHINE_END_DETACH,  /* the machine detaches itself */
	MACHINE_END_DESTROY, /* the resource *ret_index of the plan is destroyed */
	MACHINE_END_LEAVE,   /* the master leaves, and its machine switches itself off */
};

void machine_end_init(struct machine_end *e, int64_t now_ms);
/* The next step.  Every one but MACHINE_END_WAIT and MACHINE_END_LEAVE is to be answered. */
enum machine_end_step machine_end_next(struct machine_end *e, const struct machine_end_facts *f,
				       int64_t now_ms, int *ret_index);
/* What became of the open step; an answer to no step is ignored. */
void machine_end_answered(struct machine_end *e, enum outcome outcome, const struct err *err,
			  int64_t now_ms);
/* The resource on which the master lives; -1: the plan has none. */
int machine_end_machine(const struct plan *plan);
