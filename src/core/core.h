#pragma once
/*
 * core - the life of a run: events in, new state and effects out.
 *
 * Pure: no I/O, no clock, no randomness of its own.  The time comes in with every event, the
 * seed with the first.  The same core runs in the master and in the simulator.
 *
 * No effect is lost in a crash: each one that still waits for an answer follows from the rows (a
 * resource in `sent` waits for its create, a node in `here` for its preparation), so after a
 * restart EV_RESUME asks for all of them again.  Every effect is idempotent.
 *
 * A step reads its node or resource and counters, never all nodes; only a change of phase walks
 * them.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/err.h"
#include "base/rand.h"
#include "base/vec.h"
#include "core/holds.h"
#include "core/outcome.h"
#include "plan/plan.h"

struct map;

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
	NODE_HERE,  /* its agent has sent its hello */
	NODE_READY, /* inputs fetched, command and port checked */
	NODE_RUNNING,
	NODE_EXITED,
	NODE_RELEASED,
	NODE_LOST,
};
#define NODE_STATES (NODE_LOST + 1)

enum res_state { RES_INTENT, RES_SENT, RES_LIVE, RES_DELETING, RES_GONE };
#define RES_STATES (RES_GONE + 1)

enum verdict { VERDICT_NONE, VERDICT_SUCCEEDED, VERDICT_FAILED, VERDICT_CANCELLED };

/* How a process ended; `reason` is for an end that code and signal do not describe. */
struct exit_info {
	int code;   /* -1 if it did not exit by itself */
	int signal; /* 0 if none */
	bool oom;
	enum err_kind kind; /* ERR_NONE: the end is the job's own */
	char reason[160];
};

/* What the agent of a node that is to be tried out (preflight.h) tells of its machine. */
struct preflight_facts {
	int port;	  /* on which it listens; 0: the agent tells nothing */
	int64_t mtu;	  /* of the interface that has the node's address; 0: not known */
	int64_t shm;	  /* free bytes of /dev/shm; -1: there is none */
	int64_t files;	  /* that a process may open */
	int64_t clock_ms; /* by how much its clock is ahead of the master's */
};

/* What happens to a node when its attempt has ended and its output is stored.  The machine of a
 * node that is asleep is given back in either case. */
enum node_after {
	AFTER_END,   /* nothing more: its exit counts for the verdict */
	AFTER_AGAIN, /* it starts its next attempt on the same machine */
};

struct core_node {
	enum node_state state;
	int attempt; /* counts from 1, when a start is asked for */
	/* Number of the machine that carries the node, or will: from 1, and one more for each
	 * replacement.  It is part of the node's token and of its hello.  0: the node was made
	 * by a version without incarnations. */
	int incarnation;
	/* The rank that the job sees, which a strategy may order by address (ranks.c); -1: its own rank, or
	 * not given yet. */
	int job_rank;
	char identity[65];     /* of that machine, if it enrolled */
	int retried;	       /* attempts made after failures of the job itself */
	enum node_after after; /* what follows the current attempt */
	bool asleep;	       /* not wanted: the role has fewer nodes now */
	bool shrunk; /* asleep because its machine was lost; another that enrols wakes it */
	/* when the provider will take its machine, as it has announced; 0: it has not */
	int64_t preempt_at_ms;
	/* time limit of a node that is ending its attempt, or coming up for the next; 0 = none */
	int64_t by_ms;
	bool start_sent, stop_sent, connected, serving;
	bool settled;  /* its output is stored, or it has none */
	bool gate_met; /* satisfies its role's ready_when */
	/* asked to prepare and not ready since; not stored */
	bool preparing;
	/* the master's disk is full, so its output waits; not stored */
	bool no_room;
	struct exit_info exit;
	int64_t since_ms;      /* time of the last change of state */
	int64_t serve_by_ms;   /* its port must answer by then; 0 = no limit */
	int64_t lost_at_ms;    /* a silent node is given up then; 0 = it is not silent */
	int64_t observe_at_ms; /* when to observe the resource of a silent node; 0 = never */
	/* after a cancel, output not handed over by then is given up; 0 = no limit; not stored */
	int64_t give_up_ms;
	char address[48]; /* from the plan, or from the node's hello */
	/* The hang watchdog has asked what its job does, and the answer, "" without one; not stored. */
	bool inspect_asked;
	char inspect[96];
	/* Of its last "ready", and whether it was asked to reach its peers and has not answered; not stored. */
	struct preflight_facts facts;
	bool preflight_asked;
	bool dirty;
};

/* The question to a resource's driver that is not answered yet. */
enum res_question {
	ASKED_NOTHING,
	ASKED_CREATE,
	ASKED_FIND,
	ASKED_OBSERVE,
	ASKED_EXTEND,
	ASKED_DESTROY,
};
#define RES_QUESTIONS (ASKED_DESTROY + 1)

struct core_resource {
	enum res_state state;
	int attempt; /* part of the tags; a new one after a refused create */
	/* Number of the call that creates the resource; resources created by one call share it.
	 * With the run it is the token of the call, so it is never used for another call; 0
	 * before the first create. */
	int batch;
	int batch_place; /* place in that call: 0, 1, ...; the same when the call is repeated */
	/* Incarnation of its node that the last create was for.  It lags behind node.incarnation
	 * while this machine is still being destroyed. */
	int incarnation;
	int enrolled; /* machines of this batch that were bound to a node by enrolment */
	/* Index into plan_resource.choices, modulo their number: of the last create, or of the
	 * next one if no create was sent.  It only grows. */
	int choice;
	int tries; /* since the last success, for the back-off */
	enum res_question asked;
	/* number of the question: an answer to an older one is ignored; not stored */
	int ask_no;
	bool unsure; /* it is unknown whether a create was acted on */
	/* set when a create was refused after an earlier one without an answer, while the
	 * resource is searched for; not stored */
	enum err_kind refused_kind;
	/* until then a create that was sent earlier may still be acted on; not stored */
	int64_t sure_at_ms;
	int64_t asked_at_ms; /* when the open question was asked; not stored */
	/* when the resource was last known to exist, or may have been created; not stored */
	int64_t known_at_ms;
	/* observations since then that did not find it, and when the last one that counts was
	 * asked; not stored */
	int absent_looks;
	int64_t absent_at_ms;
	int64_t since_ms;
	/* When its machine began to cost; 0: it costs nothing.  Before that machine: how long others
	 * were paid for, and what they cost, in millionths of a US dollar. */
	int64_t paid_from_ms, paid_ms, paid_micro;
	int64_t retry_at_ms; /* 0 = not waiting */
	enum err_kind why_kind;
	char why[160];
	char id[256]; /* given by the provider */
	bool dirty;
};

struct cause {
	enum err_kind kind; /* ERR_NONE with the verdict failed: the job itself failed */
	int node;	    /* rank, -1 if none */
	char text[200];
};

/* A group: resources that are created together, by one call, and retried together. */
struct core_group {
	int batch; /* batch number of the creates of step batch_step */
	uint64_t batch_step;
	int batch_size;
	int64_t retry_at_ms; /* when the waiting resources of the group are tried again */
	/* For a group with choices, all resources of which have the same choice. */
	int choice; /* the highest choice of the group */
	/* number of its resources that may exist with an earlier choice: nothing is created
	 * before it is 0 */
	int older;
	int64_t go_at_ms; /* nothing is created before this time */
};

/* Observation of all resources of a kind that is observed with one call (kinds with a group, or
 * that carry many nodes). */
struct core_looks {
	int64_t at_ms;	 /* the next observation; in the past: none is planned */
	int64_t last_ms; /* the last observation */
	/* pause between them: grows with each one, and is reset after a while without any */
	int64_t period_ms;
	/* the same for early observations, made because a node fell silent */
	int64_t early_at_ms, early_ms;
};

/* Creating, starting, stopping or releasing ten thousand nodes in one step would block the loop: it is done
 * in slices, one per tick. */
#define CORE_SLICE 200

/* Of a run that is handed to another master (handover.c).  Nothing of it is stored. */
struct core_remote {
	int resource;		 /* on which that master lives; -1: the run is not handed over */
	bool asked;		 /* a question to it is open */
	int ask_no;		 /* its number: an answer to an older one is ignored */
	int64_t at_ms, pause_ms; /* when the next question is asked, and after which pause */
	bool doubt;		 /* it may have taken the run */
	int64_t heard_ms;	 /* when the doubt arose */
	bool gone;		 /* its machine is, or it does not have the run any more */
	bool unborn;		 /* ... and was gone before any offer reached it; not stored */
	bool stored;		 /* its results are in the store, or nobody waits for them */
	/* It has removed what it made for the run, or that was done from here. */
	bool whole;
	bool sweeping, asked_sweep;   /* that is being done; the open question is about that */
	bool told_cancel, told_hurry; /* the open question passes on a cancel */
	bool asked_gone;	      /* the machine was gone when the open question was asked */
	char why[160];		      /* why its machine is gone */
	enum err_kind why_kind;
	/* What the last answer says that the run waits for; "": nothing */
	char waits[200];
	enum err_kind waits_kind;
};

/* The hang watchdog (stall.c).  Nothing of it is stored. */
struct core_stall {
	int64_t heard_ms; /* the last output, or the start */
	bool stalled;	  /* there was none for job.stall_ms */
	int asked;	  /* nodes that are asked what their job does, and have not answered */
	int64_t by_ms;	  /* their answers are awaited until then; 0: they are not */
	int node;	  /* that differs from the others; -1: none */
	char text[320];	  /* what was found */
};

/* How long a node tries to reach its peers. */
#define CORE_PREFLIGHT_MS 5000
/* The preflight (preflight.c).  Nothing of it is stored. */
struct core_preflight {
	int round;	/* number of the questions: answers to earlier ones are ignored */
	int members_no; /* core_run.members_no at its begin */
	int next;	/* nodes from this rank on were not asked */
	int asked;	/* nodes that have not answered */
	int64_t by_ms;	/* answers are awaited until then; 0: no round is under way */
	char text[320]; /* what was found */
};

struct core_run {
	const struct plan *plan; /* not owned */
	enum run_phase phase;
	enum verdict verdict;
	struct cause cause;
	bool cancel_asked, hurry;
	int64_t phase_at_ms[RUN_PHASES]; /* when entered; 0 = never */
	int64_t deadline_ms;		 /* of the phase; 0 = none */
	/* timeouts.boot is over and a machine has not spoken: what its console shows is being asked for
	 * since then; 0: it is not over; not stored */
	int64_t silent_ms;
	/* Last look at machines none of which had had its turn: they have all their time from then on; not stored. */
	int64_t queued_ms;
	int64_t next_ms; /* the earliest time at which a tick is wanted; 0 = none */
	struct rng rng;
	struct core_node *nodes; /* per rank */
	struct core_resource *resources;
	/* Counters, updated by the one function that changes the state in question. */
	int node_count[NODE_STATES];
	int res_count[RES_STATES];
	int settled;	 /* nodes with `settled` */
	int counted;	 /* counted nodes that are awake */
	int counted_ok;	 /* of those, the ones that exited with success */
	int awake;	 /* nodes that are not asleep */
	int *role_awake; /* per role: nodes that are not asleep */
	int *role_first; /* per role: its first rank */
	/* per role: no node of a lower rank waits for a machine to enrol */
	int *role_free;
	int enrolments; /* sum of `enrolled` of all resources */
	/* Provider's id of a machine -> struct core_node.  Made by the first enrolment, NULL before.
	 * Entries may be out of date. */
	struct map *machines;
	int res_idle; /* resources of nodes that are asleep */
	/* grows when a node falls asleep, wakes, gets another machine or the rank that the job sees */
	int members_no;
	int *role_gates_met; /* per role: nodes with `gate_met` */
	bool *role_open;     /* per role: its nodes are told to start when they are ready */
	/* per role: nodes from this rank on have not been told to start */
	int *role_next;
	bool starting; /* a role has such nodes */
	int slice;     /* nodes or resources per step: CORE_SLICE */
	/* resources from this one on were not created by this master; those of a group are in one slice */
	int create_next;
	int stop_next; /* collecting: nodes from this rank on were not told to stop */
	/* ranks are given: nodes from this rank on were not asked to prepare since; not stored */
	int prepare_next;
	/* cleaning: nodes from this rank on are not released, then, counted from the number of
	 * nodes on, resources from this one on were not told to go */
	int clean_next;
	/* when the resources are extended again, and the first of them that were not; 0: never; not
	 * stored */
	int64_t extend_at_ms;
	int extend_next;
	int *needs_left;	   /* per resource: its needs that are not live */
	int *users_left;	   /* per resource: its users that may exist */
	int kept;		   /* shared resources that are live and stay so */
	int batches;		   /* the highest batch number in use */
	struct core_group *groups; /* by plan_resource.group */
	int *kind_of;		   /* per resource: number of its kind */
	struct core_looks *looks;  /* per kind */
	/* The provider throttles: no call before next_call_ms.  slowed_at_ms is not stored. */
	int64_t slow_ms, slowed_at_ms, next_call_ms;
	uint64_t steps;	       /* since the master started */
	int *users, *users_at; /* users of resource i: users[users_at[i] .. users_at[i+1]) */
	struct core_remote remote;
	struct core_stall stall;
	struct core_preflight preflight;
	bool dirty;
};

enum event_kind {
	EV_ACCEPTED, /* seed */
	EV_RESUME,   /* the master was restarted: no node is connected */
	EV_TICK,
	EV_CANCEL, /* hurry, renews; text: the cause of the run's end */
	EV_RESIZE, /* index: role; want; text: the cause */
	/* index, asked, outcome, attempt, identity_checked, ended, queued, err_kind, text: id or error */
	EV_RES_ANSWER,
	/* index, text: identity and, after a space, why, err_kind; one of the machines of the resource is gone */
	EV_RES_MEMBER,
	/* index: role; batch, want, place, conn, text: identity of the machine */
	EV_ENROL,
	/* The answer to FX_HAND_OVER, FX_FOLLOW, FX_AWAIT_RESULTS or FX_SWEEP: attempt, outcome, err_kind, text, which
	 * say what the run waits for there; of a followed run that has ended also verdict, and err_kind and text
	 * are its cause */
	EV_REMOTE,
	EV_CARRIED,	 /* the suite that the run stands for has ended: verdict, err_kind, text */
	EV_PROGRESS,	 /* the job has printed something */
	EV_ADMIT,	 /* the run leaves the queue */
	EV_CAPACITY,	 /* capacity was freed: creates that wait for it are sent at once */
	EV_NODE_HELLO,	 /* index, incarnation, holds, attempt, conn, text: address */
	EV_NODE_READY,	 /* index, facts */
	EV_NODE_UNFIT,	 /* index, err_kind, text: why it cannot be made ready */
	EV_NODE_STARTED, /* index, attempt */
	EV_NODE_SERVING, /* index, attempt */
	EV_NODE_EXITED,	 /* index, attempt, exit */
	/* index, attempt, err_kind, text: the launcher cannot start its daemon there, and may wait for it for ever */
	EV_NODE_NO_DAEMON,
	/* index: its output is stored and its files are collected; err_kind, text: but not all
	 * of them */
	EV_NODE_DRAINED,
	EV_NODE_DROPPED, /* index, heard_ms: connection lost */
	EV_NODE_NO_ROOM, /* index: the master's disk is full, its output was refused */
	EV_NODE_ROOM,	 /* index: its output is accepted again */
	/* index, text: its log directory is missing, so its output cannot be stored */
	EV_NODE_NO_LOG,
	EV_NODE_PREEMPT,   /* index, at_ms: the provider will take its machine then */
	EV_NODE_INSPECTED, /* index, text: the answer to FX_INSPECT, in a few words */
	/* The answer to FX_PREFLIGHT: index, attempt: the round; want: peers that it does not reach; of the
	 * first of them place: its rank, text: why, reached: but large messages are lost */
	EV_NODE_PREFLIGHT,
	/* index, text: identity and, after a space, address; ended, exit: an observation has seen the machine
	 * of a node without an agent, and its job has begun, or ended */
	EV_NODE_SEEN,
};
#define EVENT_KINDS (EV_NODE_SEEN + 1)

struct event {
	enum event_kind kind;
	int index;   /* rank of a node, or index of a resource or role */
	int attempt; /* of a node; of a resource: effect.attempt of the question that is answered */
	bool hurry;
	bool renews; /* EV_CANCEL: it brought new credentials, with which what is left is tried again */
	enum holds holds;
	int incarnation;
	int want;	  /* EV_RESIZE: number of nodes; EV_ENROL: uses of the token */
	int batch;	  /* EV_ENROL: the batch that the token is of */
	int place;	  /* EV_ENROL: the machine's place in its batch; -1: not known */
	uint64_t conn;	  /* the shell's number of the connection */
	int64_t heard_ms; /* when the agent was last heard; 0 = now */
	int64_t at_ms;	  /* EV_NODE_PREEMPT */
	enum res_question asked;
	enum outcome outcome;
	enum verdict verdict; /* EV_REMOTE, EV_CARRIED */
	/* The account, region or cluster that answered is that of the resource; otherwise
	 * "absent" proves nothing. */
	bool identity_checked;
	/* "absent": the provider shows the resource as ended; text and err_kind say why.  EV_NODE_SEEN: the job
	 * has ended. */
	bool ended;
	bool queued; /* an answer "held": its machines have not had their turn, which is nobody's delay */
	enum err_kind err_kind;
	uint64_t seed;
	struct exit_info exit;
	struct preflight_facts facts;
	bool reached; /* EV_NODE_PREFLIGHT */
	char text[256];
};

enum effect_kind {
	FX_CREATE,  /* resource */
	FX_FIND,    /* resource: search for it */
	FX_OBSERVE, /* resource */
	/* resource: it must end by itself only lifetime_ms from now; its machines are told too */
	FX_EXTEND,
	FX_DESTROY, /* resource */
	FX_PREPARE, /* node: pull inputs, check command and port */
	FX_START,   /* node, attempt; without an agent: its output is to be stored */
	/* node: end the job (hurry: kill it), or, if it has ended, stop copying its files */
	FX_STOP,
	/* node: its agent leaves; with conn, only the agent of that connection, which is of an
	 * earlier incarnation */
	FX_RELEASE,
	FX_INSPECT, /* node: what do the processes of its job do? */
	/* index: the node that differs, -1 if none.  The run is stalled, as stall.text says. */
	FX_STALLED,
	/* node, attempt: the round; does it reach its core_preflight_peers()? */
	FX_PREFLIGHT,
	FX_PREFLIGHT_PASSED, /* the gang starts, as preflight.text says */
	/* the answer to EV_ENROL: conn, enrolled; index: the node, -1 if none; incarnation */
	FX_ENROLLED,
	FX_CANCEL_CARRIED, /* hurry: the suite that the run stands for is to be cancelled */
	/* The run is handed to the master on resource index (handover.c).  Done: it has the run.  Refused: it
	 * has not, and was not reached if the error may pass. */
	FX_HAND_OVER,
	/* How does the run stand there?  cancel, hurry: it is to be ended first; gone: only the results in
	 * the store can tell.  Absent: nobody has the run. */
	FX_FOLLOW,
	/* Are the results of the ended run in the store?  Held: the other master copies them.  Refused: it has
	 * given up.  Absent: they are not there, and it does not answer, or is gone. */
	FX_AWAIT_RESULTS,
	/* Everything that still carries the tags of the run is removed: what the other master has made, which is in
	 * no ledger here.  Done: nothing is left. */
	FX_SWEEP,
	FX_ENDED, /* run */
};
#define EFFECT_KINDS (FX_ENDED + 1)

/* What becomes of a machine that enrols. */
enum enrolled {
	ENROLLED_BOUND,	  /* it carries the node from now on */
	ENROLLED_AGAIN,	  /* it carries the node already: the answer was lost */
	ENROLLED_LATER,	  /* all nodes have a machine, but one of those may be gone: ask again */
	ENROLLED_SURPLUS, /* all nodes have a machine */
	ENROLLED_USED_UP, /* as many machines as the token is for have enrolled */
	ENROLLED_PAST,	  /* the machine, or its batch, was given up */
	ENROLLED_OVER,	  /* the run needs no machines any more */
};
#define ENROLLED_ANSWERS (ENROLLED_OVER + 1)

struct effect {
	enum effect_kind kind;
	int index;
	/* FX_START: the node's attempt; of a resource or a hand-over: event.attempt of the answer */
	int attempt;
	enum res_question asked; /* event.asked of the answer */
	int batch;		 /* FX_CREATE: effects with the same batch are one call */
	int choice;		 /* of a resource: its choice */
	int incarnation;	 /* of a resource, or FX_ENROLLED: incarnation of the node */
	enum enrolled enrolled;	 /* FX_ENROLLED */
	/* FX_CREATE, FX_EXTEND: a machine that costs money must end by itself after this time */
	int64_t lifetime_ms;
	bool hurry, cancel, gone;
	/* FX_OBSERVE: the agent should have been heard by now.  The answer "held" says what the console
	 * of the machine shows. */
	bool overdue;
	/* FX_RELEASE: 0 = the node's own connection; FX_ENROLLED: the connection that asked */
	uint64_t conn;
};
struct effects {
	struct effect *v;
	size_t n, cap;
	VEC(int) nodes;	    /* ranks whose row changed */
	VEC(int) resources; /* resources whose row changed */
	/* grows with every change, so that a caller can tell whether a step changed something */
	uint64_t changes;
};
/* Frees the memory; fx is empty and can be used again. */
void effects_release(struct effects *fx);

/* Makes a run in RUN_ACCEPTED, with nodes `wanted` and resources `intent`.  The plan must
 * outlive it. */
struct core_run *core_run_new(const struct plan *plan);
struct core_run *core_run_free(struct core_run *r);
/* To be called after the rows were filled in from the store: computes the counters. */
void core_run_restored(struct core_run *r);

/* What the run, or one of its resources, has cost until now, in millionths of a US dollar. */
int64_t core_cost(const struct core_run *r, int64_t now_ms);
int64_t core_cost_of(const struct core_run *r, int index, int64_t now_ms);
/* For how long its machines are paid. */
int64_t core_paid_ms(const struct core_run *r, int index, int64_t now_ms);

/* Appends effects to *out and lists the changed rows there, once each.  Their `dirty` is set
 * (r->dirty for the run's own row); the shell saves them and clears it.  An event that does not
 * fit the state (late, repeated, of another attempt) changes nothing. */
void core_step(struct core_run *r, const struct event *ev, int64_t now_ms, struct effects *out);

/* True if the run waits for something at the master that it is handed to: remote.waits. */
bool handover_waits(const struct core_run *r);
/* 0 if the role can have `want` nodes now; else err says why in one line. */
int core_resize_check(const struct core_run *r, int role, int want, struct err *err);
/* After how long without its master a node's agent ends its job, so that the rank can start
 * elsewhere; 0: after the lease. */
int64_t core_lost_ms(const struct core_run *r, int rank);
/* The rank of a node as the job sees it, while no node is asleep. */
int core_job_rank(const struct core_run *r, int rank);
/* The nodes that this one has to reach before the gang starts: *ret has room for all; returns their number. */
int core_preflight_peers(const struct core_run *r, int rank, int *ret);
/* True if the machine of this incarnation was given up: its connection is not the node's. */
bool core_incarnation_is_past(const struct core_run *r, int rank, int incarnation);

/* How often the enrol token of the resource's batch may be used. */
int core_enrol_uses(const struct core_run *r, int index);
/* The answer in one line, and its kind of error; ERR_NONE: the machine carries a node. */
const char *enrolled_text(enum enrolled e);
enum err_kind enrolled_kind(enum enrolled e);

bool run_phase_is_final(enum run_phase p);
const char *run_phase_name(enum run_phase p);
const char *node_state_name(enum node_state s);
const char *res_state_name(enum res_state s);
const char *verdict_name(enum verdict v);
/* Name of the event; for an answer, of what it says: "created". */
const char *event_name(const struct event *ev);
const char *effect_kind_name(enum effect_kind k);
/* True if the text of the answer is the provider's id; else it is the error. */
bool core_answer_has_id(const struct event *ev);
/* Legal edges, used by core_step() and by the checks of the simulator. */
bool run_edge_ok(enum run_phase from, enum run_phase to);
bool node_edge_ok(enum node_state from, enum node_state to);
bool res_edge_ok(enum res_state from, enum res_state to);
/* The exit code of `regatta run` for an ended run. */
int core_exit_code(enum verdict v, const struct cause *c);
