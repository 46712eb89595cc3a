#pragma once
/*
 * plan - job x engine -> resources, nodes and limits.  Pure: the same job and
 * the same facts give the same plan, byte for byte.
 */
#include <stdbool.h>
#include <stdint.h>
#include "spec/job.h"
#include "strategy/strategy.h"

struct arena;
struct buf;
struct doc;
struct err;

struct plan_resource {
	const char *kind; /* "local.node" */
	const char *name; /* unique in the run */
	int node;	  /* rank of its node, -1 if none */
	/* It carries all nodes whose resource_of it is, and makes and replaces their machines by itself
	 * (an Auto Scaling group, an indexed Job).  node is -1. */
	bool carries_many;
	/* It belongs to the install: made if it does not exist, used by many runs, deleted by none. */
	bool shared;
	/* It carries the time at which it ends by itself, or may be removed by anybody; the master of a run
	 * without max_runtime moves that on. */
	bool expires;
	/* A master lives on it: the one that the run is handed to, or that has it. */
	bool master;
	/* The provider's id of a shared resource that is there already, and for how long; NULL: it is found
	 * or made. */
	const char *id;
	int64_t age_ms;
	int *needs; /* resources that must be live first */
	int nneeds;
	/* Resources of one group differ only in their names, so that one call can make many of them;
	 * 0: each is made by its own call. */
	int64_t group;
	/* how long after a create was sent the provider may still act on it; 0 on this machine */
	int64_t late_ms;
	/* "Absent" is believed only settle_ms after the resource was last known to exist, and after
	 * absent_looks answers in that time (0 means 1): some providers do not list a resource at once. */
	int64_t settle_ms;
	int64_t least_paid_ms; /* a machine is charged for this time at least */
	int64_t absent_looks;
	/* JSON from the engine, only for the driver of this kind. */
	const char *spec;
	/* Alternatives (type, zone, ...) as JSON for the driver, best first.  All resources of a group use
	 * the same choice: those made with another one are destroyed first. */
	const char **choices;
	int nchoices;
	/* What an hour costs, in millionths of a US dollar: of each choice, or one without choices; none:
	 * nothing.  People know a choice by its "type". */
	struct ints prices;
};

struct plan {
	const struct job *job;
	const struct strategy *strategy;
	struct crew crew;	/* the nodes are crew.members */
	const char **addresses; /* per rank; NULL: the node's HELLO tells its address */
	const char *iface;
	struct plan_resource *resources;
	int nresources;
	int *resource_of; /* per rank */
	/* Its machines are made for the run, and boot before their agents speak: timeouts.boot. */
	bool boots;
	/* No agent is on its machines, which start the job by themselves: what observe sees of them stands for
	 * an agent's words (core/agentless.c). */
	bool agentless;
	/* No nodes of its own: when its resources are live the run is handed to the master that they are. */
	bool hands_over;
	/* No nodes of its own: it stands for the suite of its id, whose runs share the master that lives on its
	 * resources (core/carrier.h).  Also hands_over: the suite is with that master, or will be. */
	bool carries;
	const char *
		prices_as_of; /* date and place of the prices of resources; NULL: it costs nothing */
};

/* The engines' tables and checks, for job_load() and job_read(). */
struct job_rules plan_job_rules(void);
/* The schema of a job file, with the engines' tables. */
const struct schema *plan_job_schema(struct arena *a);
/* What the resolver of its engine must know of a job; NULL if that is nothing. */
const struct doc *plan_engine_options(const struct job *job, struct arena *a);
/* The context whose master the job asks for; NULL: it names none. */
const char *plan_context(const struct job *job);
/* Does the job run in the directory of its job file, on the master's machine? */
bool plan_runs_in_place(const struct job *job);
/* Has each node a machine of its own, made for the run, on which it may install packages? */
bool plan_makes_machines(const struct job *job);
/* Has the run nodes in this plan? */
static inline bool plan_has_nodes(const struct plan *p)
{
	return !p->hands_over && !p->carries;
}
/* Is each node a container of its image, with its limit of memory, so that its agent makes none? */
bool plan_contains(const struct job *job);
/* Are its nodes on the master's machine?  If not, source, data and outputs are sent. */
bool plan_shares_files(const struct job *job);

/* How long the run waits for its nodes to be ready, once their resources are live; if those boot, once
 * the last agent has spoken. */
int64_t plan_gather_ms(const struct plan *p);
/* Resources that cost money end by themselves after this time, even without a master. */
int64_t plan_lifetime_ms(const struct plan *p);
/* The choice of this step; after the last one comes the first again.  NULL if there are none. */
const char *plan_choice(const struct plan_resource *pr, int step);

/* Checks the job against its strategy and engine, and reports all problems at once.  Fills in
 * p->job, p->strategy and p->crew. */
bool plan_check(const struct job *job, struct arena *a, struct plan *ret, struct problems *ps);
/* Complete a checked plan with the facts of its engine (driver_resolve); again, if more is known. */
void plan_complete(struct plan *p, const struct doc *facts, struct arena *a);
/* plan_check() and plan_complete(). */
bool plan_make(const struct job *job, const struct doc *facts, struct arena *a, struct plan *ret,
	       struct problems *ps);

/* The engine whose plans can be printed as documents for other tools. */
const char *plan_manifests_engine(void);
/* The documents of a plan of that engine, a list; NULL and the error. */
struct doc *plan_manifests(const struct plan *p, struct arena *a, struct err *err);

/* Of two runs that would be handed over: could one master, with what was made for it, have both, and leave their results
 * at one place?  Its machine itself may differ. */
bool plan_same_master(const struct plan *x, const struct plan *y, struct arena *a);

/* Where the directory of a run is copied to when it has ended. */
struct plan_results {
	const char *url; /* "s3://bucket/runs/", before the id of the run; NULL: nowhere */
	int keep_days;	 /* the store removes them then; 0: whatever its owner's rules say */
	/* How long they stay on the machine of the run's master, if nobody fetches them and they are not at the URL
	 * (plan_keeps_results()); 0: they do not. */
	int64_t there_ms;
};
/* Do its nodes try out the network between them before they start? */
bool plan_preflight(const struct plan *p);
/* How many others each of n nodes tries to reach, at most. */
int plan_preflight_peers(const struct plan *p, int n);
/* Do the results of the run stay on the machine of the master that it is handed to, until they are at their URL or
 * whoever handed it over has fetched them? */
bool plan_keeps_results(const struct plan *p);
/* The name of an engine whose runs can have such plans, for the simulator; NULL: there is none. */
const char *plan_engine_that_keeps_results(void);
/* Does it wait in the queue until all of its nodes fit? */
bool plan_queues(const struct plan *p);
/* What each node takes of its machine, by rank. */
struct resources_spec *plan_shares(const struct plan *p, struct arena *a);
/* Does a role have as many processes as its machine has GPUs (or CPUs), a number that only the facts tell? */
bool plan_counts_by(const struct job *job, enum processes_by by);
struct plan_results plan_results(const struct plan *p, struct arena *a);
/* The URL of driver/metric_sink.h that the metrics of the run are sent to; NULL: they are not. */
const char *plan_metrics(const struct plan *p, struct arena *a);

/*
 * A plan as it is stored with its run.  It is complete, with the job in it, so that later versions do
 * not plan the run anew.  An unknown or missing key or a wrong type is a problem.  The job's base_dir
 * and the values of its secrets (spec/secret.h) are not in it.
 */
#define PLAN_MAX_BYTES (64u << 20)
#define PLAN_MAX_VALUES 4000000
void plan_to_stored(const struct plan *p, struct buf *out); /* as JSON */
bool plan_from_doc(const struct doc *doc, struct arena *a, struct plan *ret, struct problems *ps);
/*
 * For `regatta plan`: JSON (also plan.json of the run) and text for people.  With up to
 * PLAN_ENV_RANKS nodes the environment of each is shown, beyond that of the first of each role; values
 * that are only known at the start are shown as "<work directory>", "<hostfile>" and so on.
 */
void plan_to_json(const struct plan *p, const char *run_id, struct arena *a, struct buf *out);
void plan_to_text(const struct plan *p, const char *run_id, struct arena *a, struct buf *out);
