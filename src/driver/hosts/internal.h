#pragma once
/* What the files of driver/hosts/ share: the table's inside.  All of it is read and written with
 * `lock` held. */
#include <pthread.h>
#include "base/list.h"
#include "base/map.h"
#include "base/vec.h"
#include "driver/hosts/host_table.h"

struct arena;

/* A node that is on a host, or for which it is reserved. */
struct held_node {
	char *run, *node;
	int incarnation;
	bool stray;	  /* found on the host, and not reserved */
	int64_t asked_ms; /* of a stray: when the host was last told to destroy it */
};

struct known_host {
	struct arena *arena; /* of the facts */
	struct host_facts facts;
	char *saved; /* the facts as they are on disk */
	void *conn;  /* NULL: gone */
	bool ready;  /* it has said what is on it */
	int64_t heard_ms;
	VEC(struct held_node) held;
};

enum ask_state { ASK_WAITS, ASK_SENT, ASK_OVER };

struct pending_ask {
	struct host_ask *ask;
	struct known_host *host;
	enum ask_state state;
	struct list in_list;
};

struct host_table {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a question got its answer */
	/* Held while the reservations are written; taken before `lock`. */
	pthread_mutex_t disk;
	char *dir;
	struct map *hosts;  /* name -> struct known_host */
	struct list asks;   /* struct pending_ask of all who wait */
	struct list strays; /* struct stray_ask */
	int64_t last_no;
	bool freed; /* a host can be had that could not; until host_table_freed() */
	void (*wake)(void *ctx);
	void *ctx;
};

struct held_node *held_add(struct known_host *h, const struct host_node *n);
void held_remove(struct known_host *h, struct held_node *held);
struct held_node *held_find(const struct known_host *h, const struct host_node *n);
struct known_host *known_host_add(struct host_table *t, const char *name);

/* host_store.c */
void host_store_facts(struct host_table *t, struct known_host *h);
int host_store_held(struct host_table *t, bool durable,
		    struct err *err); /* `disk` held, `lock` not */
/* Copies what f points to. */
void host_set_facts(struct known_host *h, const struct host_facts *f);
