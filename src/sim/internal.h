#pragma once
/*
 * world - one simulated history: the truth about machines and jobs, the master's
 * memory and its disk, and what is on its way between them.
 */
#include "base/rand.h"
#include "core/core.h"
#include "sim/queue.h"
#include "sim/sim.h"

struct arena;

/* Chances in 1/1000, drawn anew for each seed; all zero after the faults cease. */
struct faults {
	int refuse_capacity, refuse_hard, answer_lost, answer_twice, slow;
	int never_boots, agent_dies, machine_dies, conn_cut, job_fails, job_hangs, unfit;
	int destroy_held, destroy_unsure, master_dies, reboots, long_copy;
	int wrong_account, stale_answer;
	int lose_files, lose_log;
	int partition;
};

/* A machine as it really is. */
struct machine {
	bool exists;
	int token;  /* batch of the create that made it */
	int choice; /* step of the ladder that it is of */
	/* Eventually consistent kinds: not found before this, ... */
	int64_t visible_at;
	uint64_t epoch;	 /* of the machine: a new one has no memory */
	int incarnation; /* of its node, as its configuration says */
	bool agent_up;
	bool prepared;			    /* has its inputs, as asked over this connection */
	uint64_t agent;			    /* number of the agent's life */
	uint64_t heard;			    /* the connection whose hello the master has taken */
	uint64_t conn;			    /* number of its connection, 0 = none */
	int64_t last_word_at, last_told_at; /* order within a connection is kept */
	int64_t alone_since;
	/* The job's marker on the machine's disk. */
	int attempt;
	bool started, running, serving, ended, copied, other_boot, lost;
	int64_t silent_since;  /* nothing of its was answered since then */
	int64_t cut_off_until; /* a partition */
	struct exit_info exit;
	bool stop_asked;
};

#define SIM_MAX_EXECS 64
#define SIM_CHOICES 4

/* What is kept of the calls about one resource. */
struct account {
	int64_t stale_until,
		fresh_until; /* a replica that has not heard of it answers, or none does */
	int made;	     /* the last token that made one */
	int64_t window_at;   /* I13: calls in the window that began then */
	int calls;
};

/* A machine that its driver gave up because it could not be reached (engine hosts). */
struct ghost {
	uint64_t conn;	   /* its next connection */
	int64_t run_until; /* its job has ended by then */
};

struct world {
	uint64_t seed;
	int verbose;
	struct rng rng;
	struct queue queue;
	int64_t now, heal_at, end_at;
	struct faults f;
	struct arena *arena;
	struct job *job;
	struct plan plan;

	struct machine *machines;	   /* per resource */
	struct ghost *ghosts;		   /* per rank */
	bool hosts;			   /* a machine that cannot be reached counts as gone */
	uint64_t released_conn;		   /* the last that was sent away alone */
	struct core_run *recount;	   /* the rows again, counted anew */
	struct account *accounts;	   /* per resource, whatever becomes of its machine */
	int64_t gone_at;		   /* the master is gone for ever then; 0: never */
	int64_t denied_from, denied_until; /* the credentials are not valid */
	int64_t throttled_from, throttled_until;
	int64_t throttle_free_ms; /* calls that came so fast that the next are refused until then */
	int64_t quiet_until;	  /* the master knows that the provider wants no calls */
	int rooms[SIM_CHOICES];	  /* how many machines of each choice there are; -1: enough */
	/* A token that has made something makes nothing else, even when that is gone; names do. */
	bool tokens_last;
	int (*execs)[SIM_MAX_EXECS]; /* per rank and attempt: how often it was executed */
	uint64_t epochs;
	VEC(int64_t) requests; /* per batch: whose request it was; 0: none yet */

	/* The master: memory, disk, and which life of it this is. */
	struct core_run *memory, *disk;
	bool master_up;
	uint64_t master;
	int64_t tick_at;
	bool ended;
	bool slow_calls;
	bool hung; /* some job never ends by itself */
	/* A cancel that was taken while collecting: when, and of a run that had succeeded. */
	int64_t gave_up_at;
	bool gave_up_success;
	bool lost_output; /* of a node that the run still waited for: files, or its log */

	struct sim_result *res;
	uint64_t hash;
};

bool sim_chance(struct world *w, int per_mille);
int64_t sim_delay(struct world *w, int64_t usual_ms);
void sim_trace(struct world *w, const char *what, int index, int64_t a, int64_t b);
void sim_broken(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* cloud_calls.c: the provider */
/* `master`: the life of it that asked, and that alone hears the answer. */
void cloud_effect(struct world *w, const struct effect *fx, uint64_t master);

/* The master has died and will not come back. */
bool sim_master_is_gone(const struct world *w);

/* cloud.c: machines */
void machine_new(struct world *w, const struct effect *fx);
void machine_cut(struct world *w, int index, bool master_sees);
void machine_happens(struct world *w, const struct happening *h);
void node_tell(struct world *w, const struct effect *fx);
void node_say(struct world *w, int rank, const struct event *ev);
void connections_drop(struct world *w);

/* sim_master.c: the master */
void master_start(struct world *w);
void master_event(struct world *w, const struct event *ev);
void master_dies(struct world *w);
void master_comes_up(struct world *w);
void master_tick(struct world *w);
void copy_rows(struct core_run *to, const struct core_run *from);
void master_cancel(struct world *w, bool hurry);
void master_resize(struct world *w, int role, int want);

/* check.c */
void check_start(struct world *w, int rank, int attempt);
void check_create(struct world *w, int index, int token);
void check_rate(struct world *w, int index);
void check_gang(struct world *w, int index, int choice);
void check_quiet(struct world *w, int index);
void check_throttled(struct world *w, const struct event *ev);
void check_always(struct world *w);
void check_end(struct world *w);
