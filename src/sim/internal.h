#pragma once
/*
 * world - one simulated history: the real state of machines and jobs, the master's memory and
 * disk, and the messages between them.
 */
#include "base/rand.h"
#include "core/core.h"
#include "sim/check.h"
#include "sim/queue.h"
#include "sim/remote.h"
#include "sim/sim.h"
#include "sim/sim_master.h"

struct arena;

/* Chances in 1/1000, drawn for each seed; all zero after the faults have ceased. */
struct faults {
	int refuse_capacity, refuse_hard, answer_lost, answer_twice, slow;
	int never_boots, agent_dies, machine_dies, conn_cut, job_fails, job_hangs, unfit;
	int destroy_held, destroy_unsure, master_dies, reboots, long_copy;
	int wrong_account, stale_answer;
	int lose_files, lose_log;
	int partition;
	int surplus;
	int preempt_notice, taken, apart, dumb;
};

/* The real state of a machine. */
struct machine {
	bool exists;
	int res;   /* the resource that it belongs to */
	int rank;  /* of the node that it carries; -1: none, or it does not know yet */
	int place; /* in its batch, as it says itself */
	char identity[32];
	int token;  /* batch of the create that made it */
	int choice; /* its index in the choices */
	/* eventually consistent kinds: it is not found before this time */
	int64_t visible_at;
	uint64_t epoch;	 /* identifies the machine: a new one has no memory of the old */
	int incarnation; /* of its node, in the machine's configuration */
	bool agent_up;
	bool prepared;			    /* it has its inputs, as asked over this connection */
	uint64_t agent;			    /* number of the agent's process */
	uint64_t heard;			    /* the connection whose hello the master has taken */
	uint64_t conn;			    /* number of its connection, 0 = none */
	int64_t last_word_at, last_told_at; /* messages within a connection keep their order */
	int64_t alone_since;
	/* The job's marker on the machine's disk. */
	int attempt;
	bool started, running, serving, ended, copied, other_boot, lost;
	int64_t silent_since;  /* the master has answered nothing since then */
	int64_t cut_off_until; /* end of a partition */
	int64_t taken_at;      /* the provider has announced that it takes it then; 0: not */
	int64_t expires_at, tag_until; /* it ends by itself; its tag lets anybody remove it */
	struct exit_info exit;
	bool stop_asked;
};

#define SIM_MAX_EXECS 64
#define SIM_CHOICES 4

/* Bookkeeping of the calls about one resource. */
struct account {
	int64_t stale_until; /* until then a stale replica answers */
	int64_t fresh_until; /* until then no stale replica answers */
	int made;	     /* the last token that created one */
	int ended;	     /* incarnation of the last machine that is shown as ended */
	enum err_kind ended_kind;
	int64_t window_at; /* I13: start of the window in which `calls` are counted */
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
	int64_t turn_at; /* of all machines, in the provider's queue */
	struct faults f;
	struct arena *arena;
	struct job *job;
	struct plan plan;

	/* First one per resource, which is the machine or whatever else it is; then those of groups. */
	struct machine *machines;
	int nslots;
	int *slot_of;		      /* per rank: the machine whose connection is the node's */
	uint64_t *conn_of, *followed; /* per rank: that connection; the master that reads its log */
	bool enrols;		      /* machines ask which node they are */
	VEC(struct binding) bindings; /* all that machines were ever told */
	struct ghost *ghosts;	      /* per rank */
	bool admitted;		      /* it has left the queue */
	bool hosts;		      /* a machine that cannot be reached counts as gone */
	uint64_t released_conn;	      /* the last connection that was released alone */
	struct core_run *recount;     /* the rows again, with the counters computed anew */
	struct account *accounts;     /* per resource; outlives its machine */
	int64_t gone_at;	      /* then the master stops for ever; 0: never */
	int64_t long_ms;	      /* how long its jobs run, if for days; 0: for seconds */
	int64_t denied_from, denied_until, throttled_from, throttled_until; /* all calls */
	int64_t throttle_free_ms; /* calls are refused until then, because too many came */
	int64_t quiet_until;	  /* the master knows until then that the provider throttles */
	int rooms[SIM_CHOICES];	  /* number of machines of each choice; -1: no limit */
	/* A token that has created a machine creates no other, even when that is gone; a name does. */
	bool tokens_last;
	int (*execs)[SIM_MAX_EXECS]; /* per rank and attempt: how often it was executed */
	struct sim_preflight *preflight;
	VEC(int64_t) requests; /* per batch: whose request it was; 0: none yet */

	/* The master: memory, disk, and the number of its current process. */
	struct core_run *memory, *disk;
	bool master_up;
	uint64_t master;
	int64_t tick_at;
	bool ended, slow_calls, hung; /* hung: a job never ends by itself */
	/* Time of a cancel that was taken while collecting, and whether the run had succeeded. */
	int64_t gave_up_at;
	bool gave_up_success, lost_output; /* files or the log of a node that the run waited for */
	struct sim_remote remote;
	struct sim_result *res;
	uint64_t hash, epochs;
};

bool sim_chance(struct world *w, int per_mille);
int64_t sim_delay(struct world *w, int64_t usual_ms);
void sim_trace(struct world *w, const char *what, int index, int64_t a, int64_t b);
void sim_broken(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* True if the master has died and will not come back. */
bool sim_master_is_gone(const struct world *w);

/* cloud_calls.c: the provider */
/* `master`: number of the master's process that asked; only that one gets the answer. */
void cloud_effect(struct world *w, const struct effect *fx, uint64_t master);

/* cloud.c: machines */
void machine_new(struct world *w, const struct effect *fx);
void machine_new_member(struct world *w, int slot, int index);
void machine_dies(struct world *w, int slot);
void machine_dial(struct world *w, int slot, int64_t usual_ms);
void machine_tell(struct world *w, int slot, const struct effect *fx);
void machine_cut(struct world *w, int slot, bool master_sees);
void machine_happens(struct world *w, const struct happening *h);
void node_say(struct world *w, int slot, const struct event *ev);
void connections_drop(struct world *w);
