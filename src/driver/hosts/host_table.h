#pragma once
/*
 * host_table - the hosts that have joined this master, their facts, and the nodes placed on them.
 *
 * The master's loop reports joins, leaves and answers of hosts; workers of the driver reserve hosts
 * and ask them.  All functions may be called from any thread.  A worker that asks blocks in
 * host_table_ask; the loop sends the questions and stores the answers.
 *
 * A reservation is on disk before its host is asked, so that after a crash the master asks the same
 * host again.  A node that a host has without a reservation is a stray: it was given up, and the host
 * is told to destroy it.
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
struct queue_machines;

/* What a node takes of its host. */
struct host_share {
	double cpus;
	int64_t gpus;
	uint64_t memory;
};

/* Identifies a node of a run. */
struct host_node {
	const char *run, *node;
	int incarnation;
	struct host_share share; /* only for host_table_reserve() */
};

/* Facts that a host sends when it joins. */
struct host_facts {
	const char *name, *id, *address, *version;
	/* Which machine it is, and since when: another one that has the same id has a copy of its
	 * directory.  "": not known. */
	const char *machine, *boot_id;
	int64_t cpus, gpus;
	uint64_t memory;
	const struct doc *labels; /* a table of texts; NULL: none */
};

/* One question to a host, and its answer. */
struct host_ask {
	enum host_op op;
	struct host_node node;
	const char *token, *id;
	int64_t limit_ms;
	int64_t no; /* set by host_table_ask */
	/* The answer. */
	enum outcome outcome;
	struct err err;
	char ret_id[64];
};

/* wake is called, from any thread, when a question waits for host_table_send. */
struct host_table *host_table_new(const char *dir, void (*wake)(void *ctx), void *ctx);
/* NULL is allowed.  Returns NULL. */
struct host_table *host_table_free(struct host_table *t);
/* Load the hosts that joined an earlier master of this directory, as gone until they join again, and
 * the reservations of active runs. */
int host_table_load(struct host_table *t, bool (*is_active)(void *ctx, const char *run), void *ctx,
		    struct err *err);

/* ---- for the loop ---- */

/*
 * A host joins on a connection.  ERR_CONFLICT: another host of this name is connected, or has nodes,
 * or this one is a copy of it.
 * *heard_ms says when the connection was last heard (clock_boot_ms); the caller keeps it up to date
 * without a call, because that is for every frame of every host.  It is read until host_table_left.
 * *ret_old is the host's earlier connection, which this one replaces, or NULL.
 */
int host_table_join(struct host_table *t, const struct host_facts *f, void *conn,
		    const _Atomic int64_t *heard_ms, void **ret_old, struct err *err);
/* The host has sent its list of nodes: from now on it can be reserved.  Strays are destroyed. */
void host_table_has(struct host_table *t, const void *conn, const struct host_node *nodes,
		    size_t n);
/* Repeat the destroy of strays that still exist; called periodically. */
void host_table_sweep(struct host_table *t);
/* The connection is lost: questions sent on it end without an answer.  False: another connection has
 * replaced it already. */
bool host_table_left(struct host_table *t, const void *conn);
/* Call send() for the first `most` waiting questions.  send() must not block, nor call the table.  True: others wait. */
bool host_table_send(struct host_table *t, int most,
		     void (*send)(void *conn, const struct host_ask *ask));
/* Has a host become free since the last call? */
bool host_table_freed(struct host_table *t);
void host_table_answer(struct host_table *t, const void *conn, int64_t no, enum outcome outcome,
		       const struct err *err, const char *id);
/* Removes a host that is gone.  ERR_NOT_FOUND: no host has this name.  ERR_CONFLICT: it is connected, or a run
 * that is not over still has a node there. */
int host_table_forget(struct host_table *t, const char *name, struct err *err);
/* All hosts, sorted by name, as GET /api/v1/hosts returns them. */
struct doc *host_table_list(struct host_table *t, struct arena *a);

/* ---- for the driver ---- */

/* Hosts on which a node may be placed: in `names` (an array of texts; empty: any), with all `labels`
 * (a table of texts).  Up to `slots` nodes of one run share a host, and so many as
 * it has room for. */
struct host_want {
	const struct doc *names, *labels;
	int64_t slots;
};
/* The number of hosts that match a host_want, and how many of them are free and gone. */
struct host_count {
	size_t known, free, gone;
};
/* The hosts that match, by name: all that are connected, or those that no run has. */
void host_table_machines(struct host_table *t, const struct host_want *want, bool all,
			 struct arena *a, struct queue_machines *ret);
struct host_count host_table_count(struct host_table *t, const struct host_want *want);

/* Reserve a host for every node, or for none (ERR_CAPACITY).  A node that has a host keeps it. */
int host_table_reserve(struct host_table *t, const struct host_node *nodes, size_t n,
		       const struct host_want *want, struct err *err);
/* The host of the node refused to make it: hosts that did not refuse lately are taken before it. */
void host_table_refused(struct host_table *t, const struct host_node *node);
/* Remove the reservations of the nodes. */
void host_table_release(struct host_table *t, const struct host_node *nodes, size_t n);

/* Remove the reservation of a node that may still exist on its host: it is a stray there. */
void host_table_give_up(struct host_table *t, const struct host_node *node);

enum host_place { HOST_NONE, HOST_CONNECTED, HOST_SILENT };
/* Is a host reserved for the node, what is its name, and when was it last heard (clock_boot_ms)? */
#define HOST_NAME_MAX_LEN 64
enum host_place host_table_place(struct host_table *t, const struct host_node *node,
				 char name[static HOST_NAME_MAX_LEN], int64_t *ret_heard_ms);
/* Ask the hosts of these nodes, in parallel, and wait for the answers.  OUTCOME_UNSURE: no answer,
 * and err is the reason. */
void host_table_ask(struct host_table *t, struct host_ask *asks, size_t n,
		    const struct deadline *d);
