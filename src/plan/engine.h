#pragma once
/*
 * engine - where nodes live: one row of the table in plan.c, one file of plan/.
 *
 * This is the pure part of an engine.  What it may ask of the outside (its facts)
 * and what it makes (its kinds of resources) is in driver/: see driver.h.
 */
#include "plan/plan.h"

struct engine {
	const char *name, *help;
	/*
	 * Its own table of the job file: a row of type FIELD_BOX with name, sub, help and example, or
	 * NULL.  Engines may share one.  engine_table() gives its value.
	 */
	const struct field *schema;
	/* Its nodes have the directories of the master's machine: without source and data a job runs
	 * where its file is. */
	bool in_place;
	bool isolates; /* it can put nodes into network namespaces */
	/* What of the job this engine cannot do.  False if it added a problem. */
	bool (*check)(const struct job *job, struct arena *a, struct problems *ps);
	/*
	 * p->crew is already filled in.  Fill in addresses, iface, resources with their spec, resource_of.
	 * facts is the document that the engine's resolve made; NULL for an example that is
	 * only printed or simulated.
	 */
	void (*plan)(const struct doc *facts, struct arena *a, struct plan *p);
};

/* What the job has in the engine's table, a struct of schema->sub: the defaults if the file has no
 * such table. */
const void *engine_table(const struct engine *engine, const struct job *job, struct arena *a);
