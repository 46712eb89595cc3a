#pragma once
/*
 * The agent's state, shared by agent.c (life), agent_link.c (the connection), agent_inputs.c (inputs, setup),
 * agent_job.c (attempt) and agent_update.c (what follows from the state: samples, collecting, sending).
 * Events only change the state and call agent_wake().  job_update() compares the state with `told`,
 * which lists the messages sent on this connection, and sends the missing ones.
 */
#include <stdbool.h>
#include <stdint.h>
#include "agent/attempt/attempt.h"
#include "agent/config.h"
#include "agent/gpu_claims.h"
#include "agent/host.h"
#include "agent/members.h"
#include "agent/ports.h"
#include "agent/relay.h"
#include "agent/rsh.h"
#include "agent/scan.h"
#include "agent/setup.h"
#include "agent/tail.h"
#include "base/backoff.h"
#include "base/buf.h"
#include "base/list.h"

struct conn;
struct dialer;
struct forked_task;
struct loop;
struct probe;

/* The limit of a buffer into which a message to the master is written. */
#define AGENT_PAYLOAD_MAX (256 * 1024)

enum leave {
	LEAVE_NOT,
	LEAVE_KEEP,  /* the lease ran out: stop the job, keep its result */
	LEAVE_CLEAN, /* released or refused: stop the job, remove everything */
	LEAVE_NOW,   /* asked by a signal: leave shim and job alone */
};

struct agent {
	struct loop *loop;
	char *dir;
	struct arena *arena;
	struct agent_config cfg;
	char boot_id[PROC_BOOT_ID];
	int lock;
	enum leave leave;
	bool awake;			/* an update is due */
	struct loop_timer *bye, *quiet; /* quiet runs while small pieces of output are gathered */
	bool is_quiet;

	/* The connection. */
	struct conn *conn;
	struct dialer *dialer; /* connecting to a master on another machine; else NULL */
	char dial_why[240];    /* the last error of the dialer, logged only when it changes */
	bool welcomed, said_bye, pinged;
	struct loop_timer *dial, *silence, *lease;
	struct backoff backoff;
	int64_t heard_ms, nobody_since_ms, revived_ms, lease_ms;
	int64_t lost_ms; /* of the last WELCOME: see docs/protocol.md; 0: none */
	/* when the unanswered HELLO or PING was sent; 0: all are answered */
	int64_t asked_at_ms;
	struct {
		bool started, serving, exit, collected, preempt;
	} told;

	/* The notice that the machine will be taken. */
	struct {
		int64_t at_ms; /* wall clock; 0: there is none */
		struct loop_timer *timer;
		struct forked_task *task;
	} preempt;

	/* Inputs. */
	struct arena *inputs_arena; /* NULL: none yet */
	struct message_inputs inputs;
	bool ready_wanted, ready_known;
	struct buf ready;
	struct forked_task *prepare;
	/* Processes of either task that somebody has killed: another one is started. */
	int prepare_killed, collect_killed;
	struct port_claims ports;
	struct preflight *preflight; /* from READY to START, if INPUTS asks for it */
	struct gpu_claims gpus;
	bool files_ready; /* the work directory is complete: setup may run */
	struct setup setup;
	/* The directory of the attempt that will be started, whose streams have the output of setup, and
	 * its number.  -1: nothing was set up, or the attempt has the directory itself. */
	int ahead_fd, ahead_no;
	struct forked_task *inspect; /* looks at the job's processes, if the master asked */
	/* Commands beside the job. */
	struct list execs; /* of struct exec_call */
	int nexecs;
	struct rsh rsh;

	/* The job. */
	struct members members; /* for the next START */
	struct attempt at;
	bool relaying;
	bool grown; /* the shim woke us: check the spools */
	struct relay relay;
	struct scan scan;
	struct loop_timer *scan_timer, *sample_timer;
	bool scan_waits, sampling, has_host;
	struct host host;
	char *address;
	int port;
	struct probe *probe;
	bool serving, collected_known;
	struct forked_task *collect;
	struct buf collected;
	struct tail tail;
};

/* agent.c */
void agent_wake(struct agent *a);
void agent_leave(struct agent *a, enum leave how);

/* agent_link.c */
void link_init(struct agent *a);
void link_release(struct agent *a);
void link_bye(struct agent *a, const char *reason);
void link_send(struct agent *a, int type, const struct buf *payload);

/* agent_inputs.c */
void job_inputs(struct agent *a, struct str json, struct err *err); /* err set: the frame is bad */
/* Go on with setup, and set `ready` when it has ended. */
void inputs_update(struct agent *a);
/* Do the open streams belong to this attempt, which is about to start? */
bool inputs_streams_are(const struct agent *a, int attempt);
/* The attempt has started: it goes on with the streams of setup. */
void inputs_hand_streams(struct agent *a);

/* agent_job.c */
int job_init(struct agent *a, struct err *err);
void job_release(struct agent *a);
void job_start(struct agent *a, struct str json, struct err *err);
void job_hello(struct agent *a, struct buf *out);
void job_welcomed(struct agent *a, const struct message_welcome *m);

/* agent_update.c */
/* Start what the state requires (tasks, probe, samples) and send the master what is new. */
void job_update(struct agent *a);
/* Stop the job, or, if it has ended, stop collecting its files. */
void job_stop(struct agent *a, bool hurry);
/* Stop collecting and remove the partial copy. */
void job_drop_collect(struct agent *a);
void job_timers_init(struct agent *a);
void job_timers_release(struct agent *a);
