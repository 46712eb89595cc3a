#pragma once
/*
 * plan - job x engine -> resources, nodes and limits.  Pure: the same job and
 * the same inputs give the same plan, byte for byte.
 */
#include <stdbool.h>
#include <stdint.h>
#include "spec/job.h"
#include "strategy/strategy.h"

struct arena;
struct buf;

struct plan_resource {
	const char *kind; /* "local.node" */
	const char *name; /* unique in the run */
	int node;	  /* the rank it carries, -1 if none */
	int *needs;	  /* resources that must be live first */
	int nneeds;
	int64_t late_ms; /* a create whose caller died may still be acted on for so long; 0 on this machine */
};

struct plan {
	const struct job *job;
	const struct strategy *strategy;
	struct crew crew;	/* the nodes are crew.members */
	const char **addresses; /* per rank; NULL entries where only the node will know */
	const char *iface;
	struct plan_resource *resources;
	int nresources;
	int *resource_of; /* per rank */
};

/* What the master knows and the job does not. */
struct plan_input {
	/* Host order: the address of rank 0 on this machine, e.g. 127.1.0.1; the others follow. */
	uint32_t local_base;
};

struct engine {
	const char *name, *help;
	bool (*plan)(const struct job *job, const struct plan_input *in, struct arena *a,
		     struct plan *p, struct problems *ps);
};

/* Strategy, engine, limits.  All problems in one go. */
bool plan_make(const struct job *job, const struct plan_input *in, struct arena *a,
	       struct plan *ret, struct problems *ps);
/* rank r lives at base + r, skipping .0 and .255 so that every tool accepts the address */
uint32_t plan_local_address(uint32_t base, int rank);
/* How many addresses from base on `n` nodes use. */
uint32_t plan_local_span(uint32_t base, int n);
/*
 * For `regatta plan`: JSON (also plan.json of the run) and text for people.  Up to 64 nodes each is
 * shown with its whole environment, beyond that the first node of each role; what is only known at
 * the start stands there as "<work directory>", "<hostfile>" and so on.
 */
void plan_to_json(const struct plan *p, const char *run_id, struct arena *a, struct buf *out);
void plan_to_text(const struct plan *p, const char *run_id, struct arena *a, struct buf *out);
