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

struct plan_resource {
	const char *kind; /* "local.node" */
	const char *name; /* unique in the run */
	int node;	  /* the rank it carries, -1 if none */
	/* It carries all nodes whose resource_of it is: machines that come and go by themselves (an
	 * Auto Scaling group, an indexed Job).  node is -1. */
	bool carries_many;
	/* It belongs to the install: made if it is not there, used by many runs, deleted by none. */
	bool shared;
	int *needs; /* resources that must be live first */
	int nneeds;
	/* Resources of one group have the same request but for their names, so that one call makes
	 * many of them; 0: each is asked for alone. */
	int64_t group;
	/* a create whose caller died may still be acted on for so long; 0 on this machine */
	int64_t late_ms;
	/* "Not there" is believed only so long after it was last known to exist, and after so many
	 * looks spread over that time (0 is 1): some providers forget what they have for a while. */
	int64_t settle_ms;
	int64_t absent_looks;
	/* JSON that the engine wrote for the driver of this kind; nobody else reads it. */
	const char *spec;
	/* The same, of what may be chosen (type, zone, ...), in the order of preference; 0: nothing.  Of
	 * a group all resources are of one choice: what came of another is given back first. */
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
	const char **addresses; /* per rank; NULL entries where only the node will know */
	const char *iface;
	struct plan_resource *resources;
	int nresources;
	int *resource_of; /* per rank */
	/* No nodes of its own: when its resources are live the run is handed to the master that they are. */
	bool hands_over;
	const char *
		prices_as_of; /* date and place of the prices of resources; NULL: it costs nothing */
};

/* What the engines add to the job file, for job_load() and job_read(). */
struct job_rules plan_job_rules(void);
/* Every key of a job file. */
const struct schema *plan_job_schema(struct arena *a);
/* What the job has in the table of its engine, with the defaults; NULL if that has no table. */
const struct doc *plan_engine_options(const struct job *job, struct arena *a);
/* The job runs where its file is, in a directory of the master's machine. */
bool plan_runs_in_place(const struct job *job);
/* Do its nodes see the files of the master's machine?  If not, source, data and outputs are sent. */
bool plan_shares_files(const struct job *job);

/* What costs ends by itself so long after it was made, even if nobody is left to end it. */
int64_t plan_lifetime_ms(const struct plan *p);
/* The choice of this step of the ladder; NULL if there are none. */
const char *plan_choice(const struct plan_resource *pr, int step);

/* Checks the job against its strategy and engine, and reports all problems at once.  Fills in
 * p->job, p->strategy and p->crew. */
bool plan_check(const struct job *job, struct arena *a, struct plan *ret, struct problems *ps);
/* The rest of a plan that was checked, from the facts of its engine (driver_resolve). */
void plan_complete(struct plan *p, const struct doc *facts, struct arena *a);
/* plan_check() and plan_complete(). */
bool plan_make(const struct job *job, const struct doc *facts, struct arena *a, struct plan *ret,
	       struct problems *ps);

/*
 * A plan as it is stored with its run: complete, with the job in it, so that what was decided at
 * the submit holds for the life of the run, whatever a later version would decide.  Strict: a key
 * that is not known, missing or of another type is a problem.  The job's base_dir
 * and the values of its secrets (spec/secret.h) are not in it.
 */
#define PLAN_MAX_BYTES (64u << 20)
#define PLAN_MAX_VALUES 4000000
struct doc *plan_to_doc(const struct plan *p, struct arena *a);
bool plan_from_doc(const struct doc *doc, struct arena *a, struct plan *ret, struct problems *ps);
/*
 * For `regatta plan`: JSON (also plan.json of the run) and text for people.  Up to 64 nodes each is
 * shown with its whole environment, beyond that the first node of each role; what is only known at
 * the start stands there as "<work directory>", "<hostfile>" and so on.
 */
void plan_to_json(const struct plan *p, const char *run_id, struct arena *a, struct buf *out);
void plan_to_text(const struct plan *p, const char *run_id, struct arena *a, struct buf *out);
