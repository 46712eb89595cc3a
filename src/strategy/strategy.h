#pragma once
/*
 * strategy - which roles a job has, which of them count for the finish, which start
 * after which, and the environment of each role's nodes as templates (base/expand.h).  One file per
 * strategy, one row in the table.  Pure: no I/O, no clock.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/expand.h"
#include "spec/job.h"

struct arena;

/* One role, with what the strategy decided. */
struct strategy_role {
	const char *name;
	const struct role *spec;
	int count; /* nodes at the start ... */
	int max;   /* ... and at most: so many members are planned */
	struct strs command;
	int port;	/* 0 = none */
	bool counted;	/* its nodes decide the finish */
	int ready_when; /* resolved: never READY_DEFAULT */
	int *after;	/* indices of roles */
	int nafter;
};

struct member {
	const char *name; /* "<role>-<index>" */
	int role, index;
	int rank; /* counted roles first, in the order of the file; then the services */
};

struct crew {
	struct strategy_role *roles;
	int nroles;
	struct member *members; /* in rank order: members[i].rank == i */
	int n, ncounted;
};

/* The part of the environment's input that is the same for all nodes of a run. */
struct env_input {
	const struct job *job;
	const struct crew *crew;
	const char *run_id;
	const char *master_endpoint; /* host:port of the HTTP service, "" if none */
};

struct strategy {
	const char *name, *help;
	/* Roles from the job; problems with positions. */
	bool (*crew)(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps);
	/* Names this strategy adds to the common environment of a role; may be NULL. */
	void (*env)(const struct env_input *in, int role, struct arena *a, struct env_list *out);
};

/* The strategy of a job; a problem if its name is unknown. */
const struct strategy *strategy_for(const struct job *job, struct arena *a, struct problems *ps);
/* NULL if the name is unknown. */
const struct strategy *strategy_named(const char *name);
bool strategy_crew(const struct strategy *s, const struct job *job, struct arena *a,
		   struct crew *ret, struct problems *ps);
/* The whole environment of a role's nodes, each value a template: contracts of torch, TF, JAX, MPI,
 * Paddle, ours, then the job's own env, then the role's (later wins).  Sorted by name, each name once. */
void strategy_env(const struct strategy *s, const struct env_input *in, int role, struct arena *a,
		  struct env_list *out);
/* The members as the templates name them; addresses are in rank order, kept, not copied. */
void strategy_members(const struct crew *crew, const char *const *addresses, struct arena *a,
		      struct expand_members *ret);
/* The environment of one node: every template expanded, and where a value is too long for an exec the name of a
 * file below long_dir instead (NAME_FILE; docs/environment.md). */
void strategy_env_expand(const struct env_list *templates, const struct expand_here *here,
			 const char *long_dir, struct arena *a, struct env_list *out);
/* Does the crew get a hostfile?  Not with a single node: without one mpirun uses all of its
 * cores and does not try to log in. */
bool strategy_has_hosts(const struct crew *crew);
/* The template of the hostfile: one "address slots=1" line per counted rank.  "" without strategy_has_hosts(). */
const char *strategy_hostfile(const struct crew *crew);
/* The same for Hydra (MPICH, Intel MPI), which does not take "slots=1": "address:1" lines. */
const char *strategy_machinefile(const struct crew *crew);
/* The crew without the members whose asleep[rank] is set; ranks are renumbered without holes.  ret_ranks[rank] is
 * the new rank of a member, -1 if it is asleep. */
void strategy_awake(const struct crew *crew, const bool *asleep, struct arena *a, struct crew *ret,
		    int *ret_ranks);
/* NULL-terminated names, for messages. */
const char *const *strategy_names(void);
