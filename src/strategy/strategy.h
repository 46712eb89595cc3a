#pragma once
/*
 * strategy - what the roles are, which of them count for the finish, who starts
 * after whom, and each node's environment.  One file per strategy, one row in
 * the table.  Pure: no I/O, no clock.
 */
#include <stdbool.h>
#include <stdint.h>
#include "spec/job.h"

struct arena;

/* One role, with what the strategy decided. */
struct strategy_role {
	const char *name;
	const struct role *spec;
	int count;
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

/* What is known at start time; arrays are in rank order. */
struct env_input {
	const struct job *job;
	const struct crew *crew;
	const char *run_id;
	const char *const *addresses;
	const char *iface;	/* the interface peers are reached by: "lo" on this machine */
	const char *output_dir; /* of this node */
	const char *work_dir;
	const char *hostfile; /* path on the node */
	const char *metrics_fifo;
	const char *master_endpoint; /* host:port of the HTTP service, "" if none */
	int attempt;
	/* Path on the node of strategy_machinefile()'s text; NULL: no names for MPICH and Intel MPI. */
	const char *machinefile;
};

struct strategy {
	const char *name, *help;
	/* Roles from the job; problems with positions. */
	bool (*crew)(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps);
	/* Names this strategy adds to the common environment; may be NULL. */
	void (*env)(const struct env_input *in, int rank, struct arena *a, struct env_list *out);
};

/* The strategy that a job asks for; a problem if there is none of that name. */
const struct strategy *strategy_for(const struct job *job, struct arena *a, struct problems *ps);
/* NULL if there is none of that name. */
const struct strategy *strategy_named(const char *name);
bool strategy_crew(const struct strategy *s, const struct job *job, struct arena *a,
		   struct crew *ret, struct problems *ps);
/* The whole environment of one rank: contracts of torch, TF, JAX, MPI, Paddle, ours, then the job's
 * own env, then the role's (later wins).  Sorted by name, each name once. */
void strategy_env(const struct strategy *s, const struct env_input *in, int rank, struct arena *a,
		  struct env_list *out);
/* Are there others to name?  mpirun on a single node needs no hostfile, and is better off without: it takes all of its
 * cores, and does not try to log in. */
bool strategy_has_hosts(const struct crew *crew);
/* The hostfile's text: one "address slots=1" line per counted rank; a name where the address is
 * NULL.  "" if there are no others. */
const char *strategy_hostfile(const struct crew *crew, const char *const *addresses,
			      struct arena *a);
/* The same for Hydra (MPICH, Intel MPI), which does not take "slots=1": "address:1" lines. */
const char *strategy_machinefile(const struct crew *crew, const char *const *addresses,
				 struct arena *a);
/* NULL-terminated names, for messages. */
const char *const *strategy_names(void);
