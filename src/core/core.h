#pragma once
/*
 * core - the life of a run: event in, new state and effects out.
 *
 * Pure: no I/O, no clock, no randomness of its own.  Time comes in with every
 * event, the seed with the first.  The same core runs in the master and in the
 * simulator.
 *
 * The state is its own outbox: every effect that still waits for an answer
 * follows from the rows (a resource in `sent` waits for its create, a node in
 * `here` for its preparation, ...), so after a crash EV_RESUME hands all of them
 * out again.  Every effect is idempotent.
 *
 * A step looks at the node or resource it is about and at counters, never at
 * all nodes; only a change of phase walks them.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/rand.h"
#include "base/vec.h"
#include "core/holds.h"
#include "core/outcome.h"
#include "plan/plan.h"

enum run_phase {
	RUN_ACCEPTED,
	RUN_PROVISIONING,
	RUN_GATHERING,
	RUN_RUNNING,
	RUN_COLLECTING,
	RUN_CLEANING,
	RUN_SUCCEEDED,
	RUN_FAILED,
	RUN_CANCELLED,
};
#define RUN_PHASES (RUN_CANCELLED + 1)

enum node_state {
	NODE_WANTED,
	NODE_LAUNCHING,
	NODE_HERE,  /* its agent said hello */
	NODE_READY, /* inputs pulled, command and port checked */
	NODE_RUNNING,
	NODE_EXITED,
	NODE_RELEASED,
	NODE_LOST,
};
#define NODE_STATES (NODE_LOST + 1)

enum res_state { RES_INTENT, RES_SENT, RES_LIVE, RES_DELETING, RES_GONE };
#define RES_STATES (RES_GONE + 1)

enum verdict { VERDICT_NONE, VERDICT_SUCCEEDED, VERDICT_FAILED, VERDICT_CANCELLED };

/* How a process ended; `reason` says it when code and signal cannot. */
struct exit_info {
	int code;   /* -1 if it did not exit by itself */
	int signal; /* 0 if none */
	bool oom;
	enum err_kind kind; /* ERR_NONE: the job's own doing */
	char reason[160];
};

/* What becomes of a node when its attempt is over and its output stored; one that is asleep is given
 * back whatever this says. */
enum node_after {
	AFTER_END,   /* nothing more: its end counts */
	AFTER_AGAIN, /* the next attempt, where it is */
};

struct core_node {
	enum node_state state;
	int attempt; /* from 1 once a start was asked for */
	/* Which machine carries the node, or will: from 1, and one more whenever it is given up for another.  It is in
	 * the node's token and in its hello.  0: of a version that had none. */
	int incarnation;
	char identity[65];     /* of that machine, if it enrolled */
	int retried;	       /* attempts after its own failure */
	enum node_after after; /* of the attempt */
	bool asleep;	       /* not wanted: beyond the number of nodes that its role has now */
	/* a node on its way to its next attempt, or to sleep, must be there by then; 0 = none */
	int64_t by_ms;
	bool start_sent, stop_sent, connected, serving;
	bool settled;	/* its output is stored, or it has none to give */
	bool gate_met;	/* satisfies its role's ready_when */
	bool preparing; /* asked to prepare, and not ready since; lives as long as its connection */
	/* the master's disk is full, so its output waits; lives as long as the master */
	bool no_room;
	struct exit_info exit;
	int64_t since_ms;      /* of the state */
	int64_t serve_by_ms;   /* its port must answer by then; 0 = none */
	int64_t lost_at_ms;    /* it is given up then; 0 = not silent */
	int64_t observe_at_ms; /* when to observe the resource of a silent node; 0 = not */
	/* what it has not handed over is given up then; 0 = never; lives as long as the master */
	int64_t give_up_ms;
	char address[48]; /* from the plan, or from the node's hello */
	bool dirty;
};

/* What was asked of a resource's driver and is not answered yet. */
enum res_question { ASKED_NOTHING, ASKED_CREATE, ASKED_FIND, ASKED_OBSERVE, ASKED_DESTROY };
#define RES_QUESTIONS (ASKED_DESTROY + 1)

struct core_resource {
	enum res_state state;
	int attempt; /* goes into tags; a new one after a refused create */
	/* Rows that one call creates share it.  With the run it is the token of the call, so it is
	 * never used for another; 0 before the first create. */
	int batch;
	int batch_place; /* in that call: 0, 1, ...; a replay gives each the same */
	/* Of its node, that the last create was for.  The node counts its next one as soon as it is taken back, while
	 * this one still has to go. */
	int incarnation;
	/* Its step on the ladder of plan_resource.choices: that of the last create, or of the next if none
	 * is out.  Grows; after the last choice comes the first again. */
	int choice;
	int tries; /* since the last success, for the back-off */
	enum res_question asked;
	/* number of that question: an answer to an older one is stale; lives as long as the master */
	int ask_no;
	bool unsure; /* the outcome of a create is unknown */
	/* a create was refused after one that got no answer: the resource is looked for; lives as long as the master */
	enum err_kind refused_kind;
	/* until then a create sent earlier may still be acted on; lives as long as the master */
	int64_t sure_at_ms;
	int64_t asked_at_ms; /* when the open question was asked; lives as long as the master */
	/* when the resource was last known to exist, or may have been made; lives as long as the master */
	int64_t known_at_ms;
	/* looks since then that did not find it, and when the last that counts was asked; lives as long as the master */
	int absent_looks;
	int64_t absent_at_ms;
	int64_t since_ms;
	int64_t retry_at_ms; /* 0 = not waiting */
	enum err_kind why_kind;
	char why[160];
	char id[256]; /* the provider's own */
	bool dirty;
};

struct cause {
	enum err_kind kind; /* ERR_NONE with verdict failed: the job itself failed */
	int node;	    /* rank, -1 if none */
	char text[200];
};

/* Resources that are asked for together: what is decided for one of them holds for all. */
struct core_group {
	int batch; /* of the step ... */
	uint64_t batch_step;
	int batch_size;
	int64_t retry_at_ms; /* when its waiting resources try again */
	/* If they have choices, all of them are of one: ... */
	int choice;	  /* ... the highest step of the ladder, ... */
	int older;	  /* ... and until none of an earlier step is left ... */
	int64_t go_at_ms; /* ... and it is this late nothing is asked for. */
};

/* One look at all resources of a kind that are waited for; only for those that have a group. */
struct core_looks {
	int64_t at_ms;	 /* the next; in the past: none is planned */
	int64_t last_ms; /* and the last */
	/* between them: grows from look to look, until none was needed for a while */
	int64_t period_ms;
	/* the same of those that were early, because somebody fell silent */
	int64_t early_at_ms, early_ms;
};

/* A step that started ten thousand nodes would hold up the loop: they start in slices, one a tick. */
#define CORE_START_SLICE 200

struct core_run {
	const struct plan *plan; /* not owned */
	enum run_phase phase;
	enum verdict verdict;
	struct cause cause;
	bool cancel_asked, hurry;
	int64_t phase_at_ms[RUN_PHASES]; /* when entered; 0 = never */
	int64_t deadline_ms;		 /* of the phase; 0 = none */
	int64_t next_ms;		 /* earliest moment a tick is wanted; 0 = none */
	struct rng rng;
	struct core_node *nodes; /* per rank */
	struct core_resource *resources;
	/* Counters, kept by the one function that changes a state. */
	int node_count[NODE_STATES];
	int res_count[RES_STATES];
	int settled;		   /* nodes whose output is stored, or that have none to give */
	int counted;		   /* counted nodes that are awake ... */
	int counted_ok;		   /* ... and those of them that exited with success */
	int awake;		   /* nodes that are wanted */
	int *role_awake;	   /* per role: the same */
	int res_idle;		   /* resources of nodes that are asleep */
	int members_no;		   /* grows with each change of who is awake and where */
	int *role_gates_met;	   /* per role: nodes that satisfy its ready_when */
	bool *role_open;	   /* per role: its nodes are told to start when they are ready */
	int *role_next;		   /* per role: from this rank on they have not been told yet */
	bool starting;		   /* some role has such nodes */
	int start_slice;	   /* how many are told in one step: CORE_START_SLICE */
	int *needs_left;	   /* per resource: those it needs that are not live */
	int *users_left;	   /* per resource: those that need it and may exist */
	int kept;		   /* shared resources that are live: they stay */
	int batches;		   /* the highest batch number in use */
	struct core_group *groups; /* by plan_resource.group */
	int *kind_of;		   /* per resource: a number for its kind */
	struct core_looks *looks;  /* per kind */
	/* The provider wants fewer calls: none before next_call_ms; lives as long as the master */
	int64_t slow_ms, slowed_at_ms, next_call_ms;
	uint64_t steps;	       /* since the master began */
	int *users, *users_at; /* who needs resource i: users[users_at[i] .. users_at[i+1]) */
	bool dirty;
};

enum event_kind {
	EV_ACCEPTED, /* seed */
	EV_RESUME,   /* after a restart of the master: every node is unconnected */
	EV_TICK,
	EV_CANCEL,     /* hurry; text: who asked */
	EV_RESIZE,     /* index: role; want; text: who asked */
	EV_RES_ANSWER, /* index, asked, outcome, attempt, identity_checked, err_kind, text: id or why */
	EV_RES_MEMBER, /* index, text: identity; a machine of those that it carries is gone */
	EV_CAPACITY,   /* something was given back: what waits for capacity is asked for at once */
	EV_NODE_HELLO, /* index, incarnation, holds, attempt, conn, text: address */
	EV_NODE_READY, /* index */
	EV_NODE_UNFIT, /* index, err_kind, text: cannot be made ready */
	EV_NODE_STARTED, /* index, attempt */
	EV_NODE_SERVING, /* index, attempt */
	EV_NODE_EXITED,	 /* index, attempt, exit */
	EV_NODE_DRAINED, /* index: its output is stored, its files collected; err_kind, text: but not all */
	EV_NODE_DROPPED, /* index, heard_ms: connection lost */
	EV_NODE_NO_ROOM, /* index: its output was refused, the master's disk is full */
	EV_NODE_ROOM,	 /* index: its output is taken again */
	EV_NODE_NO_LOG,	 /* index, text: there is no place for its output, and never will be */
};
#define EVENT_KINDS (EV_NODE_NO_LOG + 1)

struct event {
	enum event_kind kind;
	int index;   /* node rank or resource */
	int attempt; /* of a node; for a resource the `attempt` of the effect that is answered */
	bool hurry;
	enum holds holds;
	int incarnation;
	int want;	  /* so many nodes of the role */
	uint64_t conn;	  /* the shell's number of the connection that spoke */
	int64_t heard_ms; /* when the last word of the node came; 0 = now */
	enum res_question asked;
	enum outcome outcome;
	/* The account, region or cluster that answered is the resource's own: otherwise "not there" proves nothing. */
	bool identity_checked;
	enum err_kind err_kind;
	uint64_t seed;
	struct exit_info exit;
	char text[256];
};

enum effect_kind {
	FX_CREATE,  /* resource */
	FX_FIND,    /* resource: does it exist? */
	FX_OBSERVE, /* resource */
	FX_DESTROY, /* resource */
	FX_PREPARE, /* node: pull inputs, check command and port */
	FX_START,   /* node, attempt */
	FX_STOP, /* node: end the job (hurry: kill at once), or if it has ended the copying of its files */
	FX_RELEASE, /* node: nothing more to do, leave; conn: only that one, which is of an earlier incarnation */
	FX_ENDED, /* run */
};
#define EFFECT_KINDS (FX_ENDED + 1)

struct effect {
	enum effect_kind kind;
	int index;
	int attempt; /* FX_START: the node's; for a resource: to be echoed in the answer, and ... */
	enum res_question asked; /* ... so is this */
	int batch;		 /* FX_CREATE: those of one batch are one call */
	int choice;		 /* of a resource: its step on the ladder ... */
	int incarnation;	 /* ... and which machine of its node it is */
	int64_t lifetime_ms;	 /* FX_CREATE: what costs must end by itself after this */
	bool hurry;
	uint64_t conn; /* FX_RELEASE: 0 = the node's own connection */
};
struct effects {
	struct effect *v;
	size_t n, cap;
	VEC(int) nodes;	    /* ranks whose row changed */
	VEC(int) resources; /* resources whose row changed */
	/* grows with every change, so that the steps of a round can be told apart */
	uint64_t changes;
};
void effects_reset(struct effects *fx); /* empty, memory kept */
void effects_release(struct effects *fx);

/* A run in RUN_ACCEPTED, everything `wanted` and `intent`.  The plan must outlive it. */
struct core_run *core_run_new(const struct plan *plan);
struct core_run *core_run_free(struct core_run *r);
/* After the rows were filled in from the store: recompute the counters. */
void core_run_restored(struct core_run *r);

/* Effects are appended to *out, and the changed rows listed there once each (their `dirty` is set; the
 * shell saves them and clears it; the run's own row: r->dirty).  An
 * event that does not fit the state (late, repeated, of another attempt) changes nothing. */
void core_step(struct core_run *r, const struct event *ev, int64_t now_ms, struct effects *out);

/* Can the role have so many nodes, now?  If not, the error says why in one line. */
int core_resize_check(const struct core_run *r, int role, int want, struct err *err);
/* After how long without an answer of its master a node stops its job, so that its rank can go on elsewhere; 0: it has
 * the lease. */
int64_t core_lost_ms(const struct core_run *r, int rank);
/* Does this incarnation of the node count for nothing any more?  Its connection is not the node's. */
bool core_incarnation_is_past(const struct core_run *r, int rank, int incarnation);

bool run_phase_is_final(enum run_phase p);
const char *run_phase_name(enum run_phase p);
const char *node_state_name(enum node_state s);
const char *res_state_name(enum res_state s);
const char *verdict_name(enum verdict v);
const char *event_name(const struct event *ev); /* of an answer: what it says, "created" */
const char *effect_kind_name(enum effect_kind k);
/* Is the text of the answer the provider's id?  Otherwise it says why. */
bool core_answer_has_id(const struct event *ev);
/* Legal edges, used by core_step itself and by the checker of the simulator. */
bool run_edge_ok(enum run_phase from, enum run_phase to);
bool node_edge_ok(enum node_state from, enum node_state to);
bool res_edge_ok(enum res_state from, enum res_state to);
/* The exit code of `regatta run` for a finished run. */
int core_exit_code(enum verdict v, const struct cause *c);
