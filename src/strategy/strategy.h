#pragma once
/*
 * strategy - what the roles are, which of them count for the finish, who starts
 * after whom, and the environment of each role's nodes as templates (base/expand.h).  One file per
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
	int count; /* nodes that it has at first ... */
	int max;   /* ... and may have: so many members are planned */
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

/* What is the same for all nodes of a run. */
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

/* The strategy that a job asks for; a problem if there is none of that name. */
const struct strategy *strategy_for(const struct job *job, struct arena *a, struct problems *ps);
/* NULL if there is none of that name. */
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
/* Are there others to name?  mpirun on a single node needs no hostfile, and is better off without: it takes all of its
 * cores, and does not try to log in. */
bool strategy_has_hosts(const struct crew *crew);
/* The template of the hostfile: one "address slots=1" line per counted rank.  "" if there are no others. */
const char *strategy_hostfile(const struct crew *crew);
/* The same for Hydra (MPICH, Intel MPI), which does not take "slots=1": "address:1" lines. */
const char *strategy_machinefile(const struct crew *crew);
/* The same crew without those for whom asleep[rank] is set; ranks have no holes.  ret_ranks[rank] is
 * a member's place there, -1 if it has none. */
void strategy_awake(const struct crew *crew, const bool *asleep, struct arena *a, struct crew *ret,
		    int *ret_ranks);
/* NULL-terminated names, for messages. */
const char *const *strategy_names(void);
