#pragma once
/*
 * execs - commands that run on a node beside its job, over the link of its agent.
 *
 * Somebody waits for each: a client of the API (exec_client.c) or a process of another node of the
 * same run (exec_ask.c).  When nobody waits any more the command is killed.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/list.h"
#include "base/str.h"

struct arena;
struct err;
struct exec;
struct frame;
struct http_exchange;
struct live_run;
struct master;
struct message_exec;
struct message_exec_close;
struct message_exec_control;

struct execs {
	struct master *m;
	struct list all;     /* struct exec */
	struct list clients; /* of exec_client.c */
	struct list asks;    /* of exec_ask.c */
	int n;
	uint16_t last_channel;
};

struct execs *execs_new(struct master *m);
/* The master leaves: commands of other nodes are forgotten, those of clients have ended before.  NULL is
 * allowed.  Returns NULL. */
struct execs *execs_free(struct execs *es);

/* ---- for those who wait ---- */

struct exec_waiter {
	/* `stream` is 'o' or 'e'; exec_send_taken() follows, now or later. */
	void (*output)(void *ctx, char stream, struct str bytes);
	void (*input_taken)(void *ctx, uint64_t taken);
	/* It has ended, and is freed when this returns. */
	void (*ended)(void *ctx, const struct message_exec_close *m);
};
struct exec_asker {
	const struct exec_waiter *waiter;
	void *ctx;
	const char *name; /* for the event; NULL: a client */
};
/* Have a command run.  ERR_UNAVAILABLE: the node's agent takes none now.  The run stays loaded until the end. */
struct exec *exec_new(struct live_run *lr, int rank, const struct message_exec *m,
		      const struct exec_asker *asker, struct err *err);
/* Bytes of output since the beginning that were passed on. */
void exec_send_taken(struct exec *e, uint64_t taken);
/* ERR_THROTTLED: its input is not read as fast.  No bytes: the end of its input. */
int exec_send_input(struct exec *e, struct str bytes, struct err *err);
void exec_send_control(struct exec *e, const struct message_exec_control *m);
/* The master leaves: only the memory is freed. */
void exec_forget(struct exec *e);
/* Nobody waits any more: it is killed and forgotten, without a call of `ended`. */
void exec_abandon(struct exec *e);

/* ---- exec_client.c ---- */

/* Runs a command and answers x with its output; gives lr back at its end. */
int exec_begin(struct live_run *lr, int rank, const struct message_exec *m, struct http_exchange *x,
	       struct err *err);
/* By the id in the answer.  ERR_NOT_FOUND: it has ended.  ERR_THROTTLED: its input is not read as fast. */
int exec_write(struct execs *es, struct str id, struct str bytes, struct err *err);
int exec_steer(struct execs *es, struct str id, const struct message_exec_control *m,
	       struct err *err);

/* ---- from the agents ---- */

/* A frame of the agent of the node that runs the command. */
void exec_frame(struct live_run *lr, int rank, const struct frame *f, struct arena *mem,
		struct err *err);
/* A frame of the agent of a node that asks for a command on another: exec_ask.c. */
void exec_ask_frame(struct live_run *lr, int rank, const struct frame *f, struct arena *mem,
		    struct err *err);
/* The agent's connection is gone. */
void exec_agent_gone(struct live_run *lr, int rank);
void exec_asker_gone(struct live_run *lr, int rank);
void exec_asks_forget(struct execs *es);
