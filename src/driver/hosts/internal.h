#pragma once
/* The structs of the host table, for the files of driver/hosts/.  Every access needs `lock`. */
#include <pthread.h>
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "driver/hosts/host_table.h"

struct arena;

/* A node that exists on a host, or for which the host is reserved. */
struct held_node {
	char *run, *node;
	int incarnation;
	bool stray;		 /* it exists on the host and is not reserved */
	struct host_share share; /* that it has of the host */
	int64_t asked_ms;	 /* when the host was last told to destroy the stray */
};

struct known_host {
	struct host_table *table;
	struct arena *arena; /* of the facts */
	struct host_facts facts;
	char *saved;		      /* the facts on disk, as JSON */
	void *conn;		      /* NULL: not connected */
	bool ready;		      /* it has sent its list of nodes on this connection */
	const _Atomic int64_t *heard; /* of the connection; NULL: not connected */
	int64_t heard_ms;	      /* before that, see host_heard_ms() */
	int64_t refused_ms;	      /* when it last refused to make a node; 0: never */
	VEC(struct held_node) held;
	struct list sent; /* struct pending_ask that wait for an answer on this connection */
};

enum ask_state { ASK_WAITS, ASK_SENT, ASK_OVER };

/* The questions of one call of host_table_ask, whose worker waits until `left` is 0. */
struct ask_call {
	size_t left;
};

struct pending_ask {
	struct host_ask *ask;
	struct known_host *host;
	struct ask_call *call;	 /* NULL: nobody waits */
	struct stray_ask *stray; /* NULL: it is not about a stray */
	enum ask_state state;
	struct list in_list; /* host_table.waiting, then known_host.sent */
};

struct host_table {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a question was answered, or ended without an answer */
	/* Held while the reservations are written; taken before `lock`. */
	pthread_mutex_t disk;
	char *dir;
	struct map *hosts;   /* name -> struct known_host */
	struct map *conns;   /* the address of a connection -> struct known_host */
	struct map *places;  /* a node that is reserved -> its struct known_host */
	struct list waiting; /* struct pending_ask that are not sent yet */
	struct list strays;  /* struct stray_ask */
	int64_t last_no;
	bool freed; /* a host became free; reset by host_table_freed() */
	void (*wake)(void *ctx);
	void *ctx;
};

/* host_table.c */
struct known_host *known_host_add(struct host_table *t, const char *name);
/* When it was last heard, on clock_boot_ms. */
int64_t host_heard_ms(const struct known_host *h);
/* Connected, and its list of nodes was received. */
bool host_is_here(const struct known_host *h);
/* Sets `freed` if the host has become free. */
void host_note_free(struct host_table *t, const struct known_host *h);

/* host_reservations.c */
struct held_node *held_add(struct known_host *h, const struct host_node *n, bool stray);
void held_remove(struct known_host *h, struct held_node *held);
struct held_node *held_find(const struct known_host *h, const struct host_node *n);
/* The host that is reserved for the node, or NULL.  ret_held may be NULL. */
struct known_host *held_holder(const struct host_table *t, const struct host_node *n,
			       struct held_node **ret_held);

/* host_store.c */
void host_store_facts(struct host_table *t, struct known_host *h);
/* After this no later master knows the host. */
int host_remove_facts(struct host_table *t, const char *name, struct err *err);
int host_store_held(struct host_table *t, bool durable,
		    struct err *err); /* `disk` held, `lock` not */
/* Stores a deep copy of f. */
void host_set_facts(struct known_host *h, const struct host_facts *f);
