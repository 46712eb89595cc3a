#pragma once
/*
 * host_table - the hosts that have joined this master, what they are, and which node holds which.
 *
 * The loop tells who joins, leaves and answers; the driver's workers reserve hosts and ask them.
 * All functions are for any thread.  A worker that asks waits here; the loop takes the
 * questions, sends them and brings the answers back.
 *
 * A reservation is on disk before its host is asked for anything, so that a master that was killed
 * in between asks the same host again.  A node that a host has and that is not reserved is a stray:
 * whoever made it has given it up, and the host is told to destroy it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "core/outcome.h"

struct arena;
struct deadline;
struct doc;
struct host_table;

/* A node of a run, as hosts know it. */
struct host_node {
	const char *run, *node;
	int incarnation;
};

/* What a host says of itself when it joins. */
struct host_facts {
	const char *name, *id, *address, *version;
	int64_t cpus, gpus;
	uint64_t memory;
	const struct doc *labels; /* a table of texts; NULL: none */
};

enum host_question { HOST_ASK_CREATE, HOST_ASK_FIND, HOST_ASK_OBSERVE, HOST_ASK_DESTROY };

/* One question to a host, and its answer. */
struct host_ask {
	enum host_question question;
	struct host_node node;
	const char *token, *id;
	int64_t limit_ms;
	int64_t no; /* given when it is asked */
	/* The answer. */
	enum outcome outcome;
	struct err err;
	char ret_id[64];
};

/* wake is called, from any thread, when there is something to send. */
struct host_table *host_table_new(const char *dir, void (*wake)(void *ctx), void *ctx);
/* NULL is allowed.  Returns NULL. */
struct host_table *host_table_free(struct host_table *t);
/* The hosts that joined an earlier master of this directory, all gone until they join again, and the
 * reservations of runs for which is_active says so. */
int host_table_load(struct host_table *t, bool (*is_active)(void *ctx, const char *run), void *ctx,
		    struct err *err);

/* ---- the loop ---- */

/*
 * A host joins on a connection.  ERR_CONFLICT: another one of this name is here, or left nodes.
 * *ret_old is the connection that this one replaces, NULL if there is none.
 */
int host_table_join(struct host_table *t, const struct host_facts *f, void *conn, void **ret_old,
		    struct err *err);
/* What is on it; from now on it can be reserved.  Strays are asked to be destroyed. */
void host_table_has(struct host_table *t, const void *conn, const struct host_node *nodes,
		    size_t n);
/* Ask again for strays that are still there; from time to time. */
void host_table_sweep(struct host_table *t);
void host_table_heard(struct host_table *t, const void *conn);
/* The connection is over: questions that were sent on it stay without an answer.  False: another one
 * has replaced it already. */
bool host_table_left(struct host_table *t, const void *conn);
/* Hand out each question that waits: send() must not block nor call back into the table. */
void host_table_send(struct host_table *t, void (*send)(void *conn, const struct host_ask *ask));
/* Can a host be had that could not be had before the last call? */
bool host_table_freed(struct host_table *t);
void host_table_answer(struct host_table *t, const void *conn, int64_t no, enum outcome outcome,
		       const struct err *err, const char *id);
/* All hosts, by name: an array of tables as GET /api/v1/hosts gives them. */
struct doc *host_table_list(struct host_table *t, struct arena *a);

/* ---- the driver ---- */

/* Which hosts a node may have: those of names (an array of texts), if there are any, that have all
 * the labels (a table of texts), and how many nodes of one run share a host. */
struct host_want {
	const struct doc *names, *labels;
	int64_t slots;
};
/* Hosts that fit: those that are known, and of these the ones that are free and the ones that are
 * gone. */
struct host_count {
	size_t known, free, gone;
};
struct host_count host_table_count(struct host_table *t, const struct host_want *want);

/* One place for each node, or none at all (ERR_CAPACITY, with a text that counts).  A node that
 * has a place keeps it. */
int host_table_reserve(struct host_table *t, const struct host_node *nodes, size_t n,
		       const struct host_want *want, struct err *err);
/* The place of a node is free again. */
void host_table_release(struct host_table *t, const struct host_node *nodes, size_t n);

enum host_place { HOST_NONE, HOST_CONNECTED, HOST_SILENT };
/* Has the node a place, what is the host's name, and when was its last word (clock_boot_ms)? */
#define HOST_NAME_MAX_LEN 64
enum host_place host_table_place(struct host_table *t, const struct host_node *node,
				 char name[static HOST_NAME_MAX_LEN], int64_t *ret_heard_ms);
/* Ask the hosts of these nodes, all at once, and wait for the answers.  OUTCOME_UNSURE: none came,
 * and err says why. */
void host_table_ask(struct host_table *t, struct host_ask *asks, size_t n,
		    const struct deadline *d);
