#pragma once
/*
 * rig - a whole master in the test's own process, between drivers and agents that the test plays.
 *
 * The home is real and so is everything in it; the rig takes the place of what is beside the
 * master, by linking:
 *
 *   driver_for()   one driver for all kinds: a list of what exists, and of every call
 *   workers_*()    no threads: the work is done before workers_submit() returns, as by the fastest
 *                  of threads, and done() comes later from the loop; or none of it, until the test
 *                  lets it go
 *   store_commit() fails when told to (--wrap)
 *   store_disk_*() the disk is full when told to be (--wrap)
 *   socket_peer_uid()  another user's, when told so (--wrap)
 *   fsync(), fdatasync()   which bytes of which file are on disk
 *
 * What goes out is checked as it goes, in every test: no driver is called whose row is not
 * committed; an agent hears START, and a machine which node it is, only when that is committed, and an ACK only for bytes that are
 * synced and metrics that are committed.  "Committed" is what another program finds in the
 * database's files at this moment.
 *
 * There is no clock to wait for: the loop turns until something has happened or the deadline of
 * the test (RIG_WAIT_MS) has passed.
 */
#include "unit.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/vec.h"
#include "driver/driver.h"
#include "link/frame.h"
#include "link/message.h"
#include "master/internal.h"
#include "master/live_run.h"

#define RIG_WAIT_MS 10000
#define RIG_TEXT 200

enum rig_commit {
	COMMIT_FAILS, /* and nothing of it is stored */
	COMMIT_LOST,  /* it is stored, but its answer is a failure */
};

struct rig_call {
	char verb[8]; /* "create", "find", "observe", "extend", "destroy" */
	char name[64];
	int incarnation;
	char token[65];
	char enrol[128];
};

struct rig {
	char *home;
	struct master m;
	bool up;
	/* drivers */
	VEC(struct rig_call) calls;
	VEC(char *) exist;	 /* names of resources */
	bool hidden;		 /* a look does not find them */
	enum outcome creating;	 /* what create answers */
	bool many;		 /* the driver takes many in one call ... */
	VEC(size_t) sizes;	 /* ... and these were the calls */
	char choice[64];	 /* of the last create */
	char active[64];	 /* a run that a sweep of leftovers must spare ... */
	bool sweep_spares;	 /* ... and the last sweep did so, and spared no other */
	const char *gone_member; /* what observe says of the machines that a resource carries */
	const char *renders;	 /* the driver renders this, and the names; NULL: it does not */
	char request[128];	 /* of the last create; "none" */
	char needs[256];	 /* of the last create: "name=id " for each */
	char credentials[64];	 /* the same; "none" */
	/* Masters on resources: where reach says that one is, or why it does not know; why one cannot detach
	 * itself, or its group cannot be destroyed (ERR_NONE: it can); names that it destroys with its own machine */
	struct driver_master reach_at;
	struct err reach_fails, end_fails;
	const char *adopted;
	enum outcome sweeping; /* what a sweep answers */
	/* store */
	int commits; /* since the first start */
	int fail_at; /* this one fails; 0: none */
	enum rig_commit how;
	bool disk_full, disk_tight;
	int64_t peer_uid; /* of whoever dials a socket; 0: who it really is */
	bool sync_fails;  /* of a log */
	bool work_waits;  /* what workers get is not begun until rig_let_work_go() */
	VEC(struct rig_agent *) agents;
};

/* cmocka setup and teardown: *state is the struct rig, its master has been started. */
int rig_make(void **state);
int rig_drop(void **state);

/* A master on the same home; false if it cannot be opened. */
bool rig_start(struct rig *r);
void rig_stop(struct rig *r);  /* in order */
void rig_crash(struct rig *r); /* nothing that is not committed by now ever will be */
/* One turn of the loop; true while the master goes on. */
bool rig_turn(struct rig *r);
/* Turns until the condition holds. */
#define rig_until(r, condition)                                                                    \
	do {                                                                                       \
		for (int64_t until_ = rig_deadline(); !(condition);)                               \
			if (!rig_turn(r) || rig_late(until_))                                      \
				fail_msg("never: %s (%s:%d)", #condition, __FILE__, __LINE__);     \
	} while (0)
int64_t rig_deadline(void);
bool rig_late(int64_t deadline);
/* Turns until the master cannot go on. */
void rig_until_it_gives_up(struct rig *r);
/* Some turns in which nothing is to happen. */
void rig_idle(struct rig *r);
void rig_let_work_go(struct rig *r);
/* All bytes of this file, or the names in this directory, have been synced, under whatever name. */
bool rig_is_synced(const char *path);

/* A run of one or two nodes called "node-0" ...: its job is never run.  NULL and *err if refused. */
struct live_run *rig_try_submit(struct rig *r, const char *request_id, const char *job,
				struct err *err);
struct live_run *rig_submit(struct rig *r, const char *job);
#define RIG_JOB "{\"name\":\"t\",\"command\":[\"true\"]}"
#define RIG_JOB_OF_TWO "{\"name\":\"t\",\"command\":[\"true\"],\"count\":2}"
/* The one run that is in memory; NULL if there is none. */
struct live_run *rig_run(struct rig *r);
void rig_cancel(struct rig *r, bool hurry);
int rig_count(const struct rig *r, const char *verb);			/* calls of the driver */
const struct rig_call *rig_last(const struct rig *r, const char *verb); /* NULL: none yet */
bool rig_exists(const struct rig *r, const char *name);

/* Runs SQL on the stored rows while no master runs. */
void rig_damage(struct rig *r, const char *sql);
/* One number of the committed rows; -1 if there is no row. */
int64_t rig_stored(struct rig *r, const char *sql);
/* The same of events: how many of this kind are stored. */
int64_t rig_events(struct rig *r, const char *kind);
/* Status of the answer to a request over api.sock. */
int rig_http(struct rig *r, const char *method, const char *path, const char *body);

/* An agent: what it holds lives as long as the test, its connection as long as both want. */
struct rig_agent {
	struct rig *r;
	int rank;
	const char *name;
	char log[512]; /* where the master stores its standard output */
	int fd;	       /* -1: not connected */
	bool closed;   /* by the master */
	struct buf rx;
	int seen[FRAME_TYPE_MAX + 1]; /* frames on this connection */
	uint16_t channel;	      /* of the last one */
	char last[FRAME_TYPE_MAX + 1]
		 [RIG_TEXT]; /* the beginning of the last payload of each type */
	struct message_ack acks[STREAMS];
	size_t start_bytes;		 /* of the last START ... */
	struct buf start;		 /* ... and all of it */
	const char *address, *interface; /* that it says in its hello; NULL: none */
	int incarnation;		 /* the same; 0: that of its node */
	bool templates;			 /* ... and that it expands them */
	bool inspect;			 /* ... and that it takes INSPECT */
	const char *identity;		 /* of its machine, if it enrols */
	/* what it has done */
	int attempt, starts, said;
	bool ended, released;
	const char *output;
};

struct rig_agent *rig_agent(struct rig *r, int rank);
/* Dials; says hello as the agent of its node would, with its right token if token is NULL. */
void agent_dial(struct rig_agent *a);
void agent_hello(struct rig_agent *a, const char *token);
void agent_hang_up(struct rig_agent *a);
void agent_say(struct rig_agent *a, enum frame_type type, const char *json);
/* The same on the channel of a command. */
void agent_say_on(struct rig_agent *a, enum frame_type type, uint16_t channel, const char *payload);
void agent_data(struct rig_agent *a, enum stream s, uint64_t offset, struct str bytes);
void agent_exit(struct rig_agent *a, int code);
/* Reads what has come. */
void agent_read(struct rig_agent *a);
/* Turns until a frame of this type has come on this connection. */
void agent_wait(struct rig_agent *a, enum frame_type type);
void agent_wait_closed(struct rig_agent *a);
/* Hello, INPUTS, READY, START, STARTED: the job runs. */
void agent_run(struct rig_agent *a);
/* The rest: output, EXIT, COLLECTED ... */
void agent_hand_over(struct rig_agent *a);
/* ... until it is released. */
void agent_finish(struct rig_agent *a);
/* One step of an agent that does all this by itself and dials again after a lost connection. */
void agent_play(struct rig_agent *a);
