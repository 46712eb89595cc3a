#pragma once
/* What the files of plan/ share. */
#include "plan/engine.h"

extern const struct engine engine_local, engine_hosts, engine_aws_ec2;

/* What engines cannot do whose nodes are processes on machines that are there already.  False if it
 * added a problem. */
bool plan_check_own_machines(const struct job *job, const char *engine, struct arena *a,
			     struct problems *ps);

/* A run of up to so many nodes is printed with every node's environment, a larger one with the
 * first node's of each role. */
#define PLAN_ENV_RANKS 64
bool plan_shows_env(const struct plan *p, int rank);
/* The environment with words in angle brackets for what is only known at the start. */
void plan_env(const struct plan *p, const char *run_id, int rank, struct arena *a,
	      struct env_list *ret_env);

/* What the plan costs; NULL or nothing if it costs nothing. */
struct doc *plan_cost_doc(const struct plan *p, struct arena *a);
void plan_cost_text(const struct plan *p, struct arena *a, struct buf *out);
