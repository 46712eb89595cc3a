#pragma once
/*
 * engine - a kind of machines for nodes: one row of the table in plan.c, one file of plan/.
 *
 * This is the pure part of an engine.  Its I/O, finding facts and making resources, is in driver/:
 * see driver.h.
 */
#include "plan/plan.h"

struct engine {
	const char *name, *help;
	/*
	 * The engine's table of the job file: a row of type FIELD_BOX with name, sub, help and example, or
	 * NULL.  Engines may share one.  engine_table() returns its value.
	 */
	const struct field *schema;
	/* Nodes are on the master's machine: without source and data a job runs in the directory of its
	 * job file. */
	bool in_place;
	/* What its resolver must know of a job; NULL: the keys of its table. */
	struct doc *(*options)(const struct job *job, struct arena *a);
	bool isolates; /* it can put nodes into network namespaces */
	/* Report what this engine cannot do for the job.  False if it added a problem. */
	bool (*check)(const struct job *job, struct arena *a, struct problems *ps);
	/*
	 * Set addresses, iface, resources with their spec, and resource_of; p->crew is set already.
	 * facts is the document made by the engine's resolve; NULL for a plan that is only printed or
	 * simulated.
	 */
	void (*plan)(const struct doc *facts, struct arena *a, struct plan *p);
};

/* The engine's table of the job file, a struct of schema->sub; defaults if the file has no such table. */
const void *engine_table(const struct engine *engine, const struct job *job, struct arena *a);
