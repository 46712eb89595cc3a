#pragma once
/*
 * driver - one kind of resource: create, find, observe, destroy.
 *
 * Plain blocking functions that run on a worker: values in, values out, with a
 * deadline.  All are idempotent: create for the same row gives the same resource,
 * destroy of something gone says gone.  Order, retries, back-off and proof are
 * the core's.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"
#include "core/outcome.h"

struct arena;
struct buf;
struct deadline;
struct doc;
struct host_table;

/* What the master keeps for the drivers of some engine; each looks at its own only. */
struct driver_services {
	struct host_table *hosts; /* driver/hosts/host_table.h */
};

/* One of the machines of a resource that carries many nodes. */
struct driver_member {
	const char *identity; /* as it enrolled */
	bool gone;	      /* out, of an observe: surely so */
};

/* All a driver may know; strings are owned by the caller for the length of the call. */
struct driver_row {
	/* Of this call; whatever waits looks at it.  A call that was stopped says unsure or held. */
	const struct deadline *deadline; /* NULL: none */
	const char *kind, *name;	 /* "local.node", "trainer-0" */
	const char *install, *run, *role;
	int attempt;
	int64_t expires_ms; /* wall clock: what costs must end by itself then */
	/* Rows of one create call share it, and with the run it is the call's token: a replay has
	 * the same one, and another request never has. */
	int batch;
	/* of this row in its batch, whoever of the others is in the call: 0, 1, ... */
	int batch_place;
	/* Of a create, if the driver renders: the bytes to send, and no others. */
	const char *request;
	char id[256];	  /* in: if known; out: the provider's own */
	const char *spec; /* JSON: what the engine's plan wrote for this kind */
	/* JSON: the choice that is asked for, or was made (plan_resource.choices); NULL: there are none */
	const char *choice;
	/* Of a resource that carries many nodes: the machines that are bound to one. */
	struct driver_member *members;
	size_t nmembers;
	const char *token; /* per node and incarnation */
	/* Which machine of its node it is: grows with each; 0: not of a node.  Goes with the token to
	 * the agent's configuration. */
	int incarnation;
	/* When the node's agent was last heard by this master, on clock_boot_ms(); 0: never. */
	int64_t heard_ms;
	const struct driver_services *services;
	/* out: asked of the one who has it (account, region, cluster), so that "absent" counts */
	bool identity_checked;
	enum outcome outcome; /* out, of the functions for many */
	struct err err;
};

struct driver {
	const char *kind;
	const char *pool; /* drivers that may wait for each other share the threads of this name */
	enum outcome (*create)(struct driver_row *row);
	enum outcome (*find)(struct driver_row *row);
	enum outcome (*observe)(struct driver_row *row);
	enum outcome (*destroy)(struct driver_row *row);
	/*
	 * NULL, or: the exact bytes (without NUL) of the call that creates a whole batch, made from
	 * its rows and nothing else, without waiting.  They are stored before anything is sent; a
	 * create gets them back, and so does its replay, whatever this would render by then.
	 */
	void (*render)(const struct driver_row *rows, size_t n, struct buf *out);
	/*
	 * For providers that take many in one call; NULL: the one above, for each by itself.  The
	 * rows are of one run and, for a create, of one batch: all of it the first time, perhaps
	 * fewer in a replay.  Each row gets its own outcome, err, id and identity_checked.
	 */
	void (*create_many)(struct driver_row *rows, size_t n);
	void (*find_many)(struct driver_row *rows, size_t n);
	void (*observe_many)(struct driver_row *rows, size_t n);
	void (*destroy_many)(struct driver_row *rows, size_t n);
};

extern const struct driver local_bridge_driver, local_node_driver, hosts_node_driver;
/* NULL if there is none. */
const struct driver *driver_for(const char *kind);

/* What is known of a run before it is planned. */
struct resolve_input {
	const char *home;    /* of the master */
	const char *run_dir; /* of the run, on the master */
	const char
		*base_dir; /* of the job file, on the client's machine, which may be the master's */
	int nodes, least;  /* how many it has, and how many of them it cannot do without */
	bool netns;	   /* the nodes get network namespaces */
	const struct doc *options; /* the engine's own table of the job file; NULL: it has none */
	/* Facts of an older version, to be kept and completed; NULL if there are none. */
	const struct doc *known;
	const struct doc *const *taken; /* the facts of this engine's other active runs */
	size_t ntaken;
	const struct driver_services *services;
};

/* Whose leftovers a sweep removes: those of this install that belong to no active run. */
struct sweep_input {
	const char *home, *install;
	bool (*is_active)(void *ctx, const char *run);
	void *ctx;
};

/*
 * The part of an engine that may ask the outside: everything that its plan needs and the job does
 * not say, as one document.  plan/engine.h has the pure part of the same name.  The facts are
 * stored with the run and never asked for again.
 */
struct resolver {
	const char *engine;
	int (*resolve)(const struct resolve_input *in, struct arena *a, struct doc **ret_facts,
		       struct err *err);
	/* What was left of runs that no ledger knows any more; NULL: nothing can be left.  Returns how
	 * many it removed; err is the last failure. */
	size_t (*sweep)(const struct sweep_input *in, struct err *err);
};

extern const struct resolver local_resolver, hosts_resolver;
/* ERR_NOT_FOUND if no driver belongs to the engine. */
int driver_resolve(const char *engine, const struct resolve_input *in, struct arena *a,
		   struct doc **ret_facts, struct err *err);
/* Of all engines, once when a master starts. */
size_t driver_sweep(const struct sweep_input *in, struct err *err);
