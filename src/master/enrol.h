#pragma once
/*
 * enrol - machines that come without a name: the tokens that they come with, and the answers.
 *
 * A token is of one (run, role, batch), says itself how often and until when it may be used, and is
 * signed with the run's secret: nothing of it is stored.  Which node a machine gets is decided by the
 * core (core/enrol.c); an answer goes out when it is stored.
 */
#include <stdint.h>
#include "base/str.h"

struct arena;
struct effect;
struct err;
struct event;
struct live_run;
struct master;

#define ENROL_TOKEN_MAX 128

/* The token for the machines of the resource's batch; "" if it carries no node. */
void enrol_token(const struct live_run *lr, int index, char out[static ENROL_TOKEN_MAX]);
/* An ENROL frame of this connection.  -1: it is refused, and the error says why. */
int enrol_ask(struct master *m, uint64_t conn, struct str payload, struct arena *mem,
	      struct err *err);
/* What the core has decided, to the connection that asked. */
void enrol_answer(struct live_run *lr, const struct effect *fx);
/* An event of the run, unless the machine was told only what it had been told before. */
void enrol_record(struct live_run *lr, const struct event *ev, const struct effect *fx);
