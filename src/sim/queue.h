#pragma once
/* queue - future happenings in the order of virtual time; at the same time, in the order of
 * adding. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/vec.h"
#include "core/core.h"

enum happening_kind {
	AT_EFFECT,   /* an effect reaches the world */
	AT_ANSWER,   /* an event reaches the master that asked (epoch) */
	AT_WORD,     /* a node's message reaches the master over a connection */
	AT_DROPPED,  /* the master sees that a connection has ended */
	AT_TOLD,     /* a message of the master reaches a node over a connection */
	AT_AGENT_UP, /* a node's agent starts (again) */
	AT_DIAL,     /* an agent connects */
	AT_PREPARED, /* an agent has finished a prepare */
	AT_JOB_SERVES,
	AT_JOB_EXITS,
	AT_COPIED, /* an agent has copied the files to keep */
	AT_AGENT_DIES,
	AT_MACHINE_DIES,
	AT_NOTICE, /* the provider announces that it takes a machine */
	AT_TAKEN,  /* the provider takes a machine */
	AT_REBOOT,
	AT_EXPIRES, /* a machine ends itself because nobody ended it in time */
	AT_CONN_CUT,
	AT_PARTITION,  /* as AT_CONN_CUT, and its machine cannot be reached for a while */
	AT_LOST,       /* a machine has not heard from its master for timeouts.lost */
	AT_GHOST,      /* a machine that was given up dials again */
	AT_UNANSWERED, /* a machine has waited long enough for the answer to its enrolment */
	AT_ENROLLED,   /* the answer to an enrolment reaches its machine */
	AT_UNHEALTHY,  /* a group looks whether the agent of a machine has come */
	AT_GROUP,      /* a group looks whether it has as many machines as it should */
	AT_ADMIT,      /* the run leaves the queue */
	AT_CAPACITY,   /* another run gives back what this one may wait for */
	AT_RESIZE,
	AT_REMOTE, /* the master that a run was handed to goes on */
	AT_MASTER_DIES,
	AT_MASTER_UP,
	AT_TICK,
	AT_CANCEL,
};

struct happening {
	int64_t at;
	enum happening_kind kind;
	int index;	/* machine, resource, rank or role */
	uint64_t epoch; /* number of the master, machine, agent or connection it belongs to */
	struct effect fx;
	struct event ev;
};

/* A heap of small keys; what happens is large and stays where it is. */
struct queue_key {
	int64_t at;
	uint64_t seq;
	size_t place; /* in `all` */
};

struct queue {
	struct queue_key *v;
	size_t n, cap;
	uint64_t seq;
	VEC(struct happening) all;
	VEC(size_t) unused; /* places of `all` */
};

void queue_add(struct queue *q, const struct happening *h);
bool queue_next(struct queue *q, struct happening *ret);
void queue_release(struct queue *q);
