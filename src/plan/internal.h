#pragma once
/* Declarations for the files of plan/. */
#include "plan/engine.h"

extern const struct engine engine_local, engine_hosts, engine_aws_ec2, engine_kubernetes;

/* Adds a problem for each form of source, data and output that no engine has so far. */
void plan_check_files(const struct job *job, const char *engine, struct arena *a,
		      struct problems *ps);
/* Warns of what only an engine of containers does: volumes. */
void plan_warn_of_containers(const struct job *job, const char *engine, struct arena *a,
			     struct problems *ps);
/* Warns of resources, which this engine does not keep free. */
void plan_warn_of_resources(const struct job *job, const char *engine, struct arena *a,
			    struct problems *ps);
/* Report what engines that use existing machines cannot do.  False if it added a problem. */
bool plan_check_own_machines(const struct job *job, const char *engine, struct arena *a,
			     struct problems *ps);

/* Has the run a master of its own, on one of its resources (master = "auto")? */
bool plan_master_is_apart(const struct plan *p);
/* Takes from the facts who has the run (at, carries); false: it has no nodes in this plan. */
bool plan_settle(struct plan *p, const struct doc *facts);
/* On the machine of that master: what the client made for it (facts: adopted: [{name, id, age_ms}]) is there.  Without
 * age_ms another run pays for it. */
void plan_adopt(struct plan *p, const struct doc *facts);

/* Up to this many nodes the environment of each is printed, beyond that of the first of each role. */
#define PLAN_ENV_RANKS 64
bool plan_shows_env(const struct plan *p, int rank);
/* The environment, with placeholders in angle brackets for values that are only known at the start. */
void plan_env(const struct plan *p, const char *run_id, int rank, struct arena *a,
	      struct env_list *ret_env);

/* What the machines of the plan have as disks, if they are made with them. */
struct plan_volume plan_volume(const struct plan *p, const struct plan_resource *r,
			       struct arena *a);
struct doc *plan_volumes_doc(const struct plan *p, struct arena *a);
void plan_volumes_text(const struct plan *p, struct arena *a, struct buf *out);
/* What the plan costs; NULL or nothing if it costs nothing. */
struct doc *plan_cost_doc(const struct plan *p, struct arena *a);
void plan_cost_text(const struct plan *p, struct arena *a, struct buf *out);
