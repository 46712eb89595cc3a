#pragma once
/*
 * engine - a kind of machines for nodes: one row of the table in plan.c, one file of plan/.
 *
 * This is the pure part of an engine.  Its I/O, finding facts and making resources, is in driver/:
 * see driver.h.
 */
#include "plan/plan.h"

struct plan_volume {
	int64_t gb; /* 0: the resource has none */
	const char *type;
	bool least; /* the size of its image is not known */
};

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
	bool moves_nodes; /* a lost node can start again on another machine */
	bool isolates;	  /* it can put nodes into network namespaces */
	bool contains; /* its nodes are containers of the job's images, with the memory that the job says */
	bool makes_machines; /* its nodes are root on a machine of their own */
	/* A master on one of its resources keeps the results of its run, until they are fetched. */
	bool keeps_results;
	bool queues; /* runs with `resources` wait until they fit on the machines that there are */
	/* Report what this engine cannot do for the job.  False if it added a problem. */
	bool (*check)(const struct job *job, struct arena *a, struct problems *ps);
	/*
	 * Set addresses, iface, resources with their spec, and resource_of; p->crew is set already.
	 * facts is the document made by the engine's resolve; NULL for a plan that is only printed or
	 * simulated.
	 */
	void (*plan)(const struct doc *facts, struct arena *a, struct plan *p);
	/* Sets the strategy that the engine's table stands for, in a job that names none; may be NULL. */
	void (*imply)(struct job *job, struct arena *a);
	/* The plan's job as documents for other tools, a list, or NULL and the error; may be NULL. */
	struct doc *(*manifests)(const struct plan *p, struct arena *a, struct err *err);
	/* The disk that is made with a machine; NULL: none is. */
	struct plan_volume (*volume)(const struct plan_resource *r, struct arena *a);
	/* Where results go unless the job says it, for a complete plan; NULL: nowhere. */
	struct plan_results (*results)(const struct plan *p, struct arena *a);
	/* Where metrics are sent while a run goes on, for a complete plan; NULL: nowhere. */
	const char *(*metrics)(const struct plan *p, struct arena *a);
};

/* The engine's table of the job file, a struct of schema->sub; defaults if the file has no such table. */
const void *engine_table(const struct engine *engine, const struct job *job, struct arena *a);
