#pragma once
/* queue - what will happen, in the order of virtual time; ties in the order of asking. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/core.h"

enum happening_kind {
	AT_EFFECT,   /* an effect reaches the world */
	AT_ANSWER,   /* an event reaches the master that asked (epoch) */
	AT_WORD,     /* a node's message reaches the master over a connection */
	AT_DROPPED,  /* the master sees that a connection is gone */
	AT_TOLD,     /* a message of the master reaches a node over a connection */
	AT_AGENT_UP, /* a node's agent starts (again) */
	AT_DIAL,     /* an agent connects */
	AT_PREPARED, /* an agent has done what a prepare asked for */
	AT_JOB_SERVES,
	AT_JOB_EXITS,
	AT_COPIED, /* an agent has copied the files to keep */
	AT_AGENT_DIES,
	AT_MACHINE_DIES,
	AT_REBOOT,
	AT_EXPIRES, /* a machine is ended because nobody has done it in time */
	AT_CONN_CUT,
	AT_PARTITION, /* the same, and its machine cannot be reached for a while */
	AT_LOST,      /* a machine has heard nothing of its master for timeouts.lost */
	AT_GHOST,     /* a machine that was given up dials again */
	AT_RESIZE,
	AT_MASTER_DIES,
	AT_MASTER_UP,
	AT_TICK,
	AT_CANCEL,
};

struct happening {
	int64_t at;
	uint64_t seq;
	enum happening_kind kind;
	int index;	/* resource or rank */
	uint64_t epoch; /* of the master, machine, agent or connection it belongs to */
	struct effect fx;
	struct event ev;
};

struct queue {
	struct happening *v;
	size_t n, cap;
	uint64_t seq;
};

void queue_add(struct queue *q, const struct happening *h);
bool queue_next(struct queue *q, struct happening *ret);
void queue_release(struct queue *q);
