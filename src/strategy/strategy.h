#pragma once
/*
 * strategy - which roles a job has, which of them count for the finish, which start
 * after which, and the environment of each role's nodes as templates (base/expand.h).  One file per
 * strategy, one row in the table.  Pure: no I/O, no clock.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/expand.h"
#include "base/str.h"
#include "spec/job.h"

struct arena;
struct buf;

/* One role, with what the strategy decided. */
struct strategy_role {
	const char *name;
	const struct role *spec;
	int count; /* nodes at the start ... */
	int max;   /* ... and at most: so many members are planned */
	struct strs command;
	int port;      /* 0 = none */
	int processes; /* that each of its nodes starts */
	int ranks; /* of each of its nodes: as many as processes, or those that its one process starts (torchrun) */
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

/* Which nodes run the command of their role.  Those that do not idle: a launcher like mpirun starts
 * processes on them through Regatta. */
enum crew_launch {
	LAUNCH_ALL,
	LAUNCH_FIRST, /* the node of rank 0, once all others idle; only its end counts */
	LAUNCH_ROLE,  /* the node of the first role; the others are services */
};

struct crew {
	struct strategy_role *roles;
	int nroles;
	struct member *members; /* in rank order: members[i].rank == i */
	int n, ncounted;
	enum crew_launch launch;
	bool one_host; /* the engine: nodes may share a machine and its name */
};

/* The part of the environment's input that is the same for all nodes of a run. */
struct env_input {
	const struct job *job;
	const struct crew *crew;
	const char *run_id;
	const char *master_endpoint; /* host:port of the HTTP service, "" if none */
};

/* How a process ended that a launcher had started, as the launcher says it. */
struct strategy_end {
	int rank;	  /* as the launcher numbers it; -1: it does not say */
	struct str host;  /* address or name of its node; empty: it does not say */
	int signal;	  /* 0: none */
	int code;	  /* -1: none */
	const char *what; /* instead of, or before, the code; NULL: nothing */
};

/* A daemon that a launcher starts on a node, and without which its job cannot go on. */
struct strategy_daemon {
	struct str name; /* of its program; in the text of the command */
	bool leaves; /* the command ends when the daemon runs: with another code than 0 it does not */
};

/* How the command of a daemon has ended, as far as the launcher's job is concerned. */
enum strategy_daemon_end {
	DAEMON_IS_LAUNCHERS, /* whatever it was, the launcher notices it */
	DAEMON_IS_MISSING,   /* its program is not there, or not for this node */
	DAEMON_HAS_FAILED,   /* and the launcher would wait for it for ever */
};

/* Ports on which a node's processes listen although its role has none of these numbers. */
struct strategy_port {
	int port, count;
	bool any;	 /* on all addresses of the machine, not only on that of the node */
	const char *key; /* of the job file that chooses another one */
};

struct strategy {
	const char *name, *help;
	/* In each role ranks follow the addresses of the nodes, lowest first, not the order in which the nodes were
	 * planned: they are given once all nodes are here, before inputs are sent, and kept (core/places.c). */
	bool ranks_by_address;
	/* Where nodes can move to other machines, lost ones of counted roles are replaced unless the file says otherwise. */
	bool replaces_lost;
	bool ends_together; /* its ranks work in one group: one that ends early makes others fail */
	bool takes_rendezvous; /* the key `rendezvous` is for it */
	/* Adds the roles and commands that the file leaves to the strategy; may be NULL. */
	void (*complete)(struct job *job, struct arena *a);
	const char *const *brings; /* the names of these roles, NULL after the last; may be NULL */
	/* Roles from the job; problems with positions. */
	bool (*crew)(const struct job *job, struct arena *a, struct crew *ret, struct problems *ps);
	/* Names this strategy adds to the common environment of a role; may be NULL. */
	void (*env)(const struct env_input *in, int role, struct arena *a, struct env_list *out);
	/* The ports of a node besides that of its role; false: none.  May be NULL. */
	bool (*ports)(const struct env_input *in, int rank, struct strategy_port *ret);
	/* What ended the job, from the last bytes that its failed command has written; NULL: the command's own exit
	 * says it. */
	bool (*cause)(struct str tail, struct strategy_end *ret);
	/* The daemon that a command, which the launcher runs on a node, starts; false: none.  May be NULL. */
	bool (*daemon)(struct str command, struct strategy_daemon *ret);
};

/* The strategy of a job; a problem if its name is unknown. */
const struct strategy *strategy_for(const struct job *job, struct arena *a, struct problems *ps);
/* NULL if the name is unknown. */
const struct strategy *strategy_named(const char *name);
/* Adds to a job that was just loaded what its strategy brings; nothing if the strategy is unknown. */
void strategy_complete(struct job *job, struct arena *a);
/* Does the strategy of the job bring the command of this role, if the file has none? */
bool strategy_brings_command(const struct job *job, const char *role);
bool strategy_crew(const struct strategy *s, const struct job *job, struct arena *a,
		   struct crew *ret, struct problems *ps);
/* The whole environment of a role's nodes, each value a template: contracts of torch, TF, JAX, MPI,
 * Paddle, ours, then the job's own env, then the role's (later wins).  Sorted by name, each name once. */
void strategy_env(const struct strategy *s, const struct env_input *in, int role, struct arena *a,
		  struct env_list *out);
/* In a few words; node: the name of the host, NULL: it is none of the run's. */
void strategy_describe_end(const struct strategy_end *e, const char *node, struct buf *out);
/* The members as the templates name them; addresses are in rank order, kept, not copied. */
void strategy_members(const struct crew *crew, const char *const *addresses, struct arena *a,
		      struct expand_members *ret);
/* The environment of one node: every template expanded, and where a value is too long for an exec the name of a
 * file below long_dir instead (NAME_FILE; docs/environment.md). */
void strategy_env_expand(const struct env_list *templates, const struct expand_here *here,
			 const char *long_dir, struct arena *a, struct env_list *out);
/* Does the node run the command of its role?  Otherwise it idles until the launcher's node has ended. */
bool strategy_runs(const struct crew *crew, int rank);
/* Does the end of the node decide the finish? */
bool strategy_counts(const struct crew *crew, int rank);
/* kind: why the command was not run; ERR_NONE: it ran, and ended with the code (-1: none) or by the signal (0: none). */
enum strategy_daemon_end strategy_daemon_end(const struct crew *crew, bool leaves,
					     enum err_kind kind, int code, int signal);
/* What the node starts. */
struct strs strategy_command(const struct crew *crew, int rank);
/* The program that must be there before the start: of a node that idles for mpirun, mpirun. */
const char *strategy_program(const struct crew *crew, int rank);
/* The ranks of the world on each node of a role: none on those of services, or of a launcher's own role. */
int strategy_slots(const struct crew *crew, int role);
/* The ranks of all nodes that have slots. */
int strategy_world(const struct crew *crew);
/* Does a role have several ranks on a node? */
bool strategy_has_processes(const struct crew *crew);
/* Does the crew get a hostfile?  Not with a single node: without one mpirun uses all of its
 * cores and does not try to log in. */
bool strategy_has_hosts(const struct crew *crew);
/* The template of the hostfile: one "address slots=<processes>" line per node that has slots.  "" without
 * strategy_has_hosts(). */
const char *strategy_hostfile(const struct crew *crew, struct arena *a);
/* The same for Hydra (MPICH, Intel MPI), which does not take "slots=1": "address:<processes>" lines. */
const char *strategy_machinefile(const struct crew *crew, struct arena *a);
/* The crew without the members whose asleep[rank] is set; ranks are renumbered without holes.  ret_ranks[rank] is
 * the new rank of a member, -1 if it is asleep. */
void strategy_awake(const struct crew *crew, const bool *asleep, struct arena *a, struct crew *ret,
		    int *ret_ranks);
/* NULL-terminated names, for messages. */
const char *const *strategy_names(void);
