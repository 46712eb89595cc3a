#pragma once
/*
 * driver - one kind of resource: create, find, observe, destroy.
 *
 * Plain blocking functions that run on a worker, with a deadline.  All are idempotent: create for
 * the same row gives the same resource, destroy of an absent resource succeeds.  Order, retries,
 * back-off and the proof that a resource is gone belong to the core.
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

/* Objects of the master that drivers use; a driver uses only those of its own engine. */
struct driver_services {
	struct host_table *hosts; /* driver/hosts/host_table.h */
};

/* One of the machines of a resource that carries many nodes. */
struct driver_member {
	const char *identity; /* with which the machine enrolled */
	bool gone;	      /* out, from observe: the machine does not exist any more */
};

/* A resource that had to be live before the row's own. */
struct driver_need {
	const char *kind, *name, *id;
};

/* Input and output of a driver call.  The caller owns the strings during the call. */
struct driver_row {
	/* Of this call; every wait in it must observe it.  A call that is cut off answers unsure or held. */
	const struct deadline *deadline; /* NULL: none */
	const char *kind, *name;	 /* "local.node", "trainer-0" */
	const char *install, *run, *role;
	int attempt;
	int64_t expires_ms; /* wall clock: a resource that costs money must end by itself then */
	/* Number of the create call, the same for all its rows.  With the run it is the idempotency token:
	 * a replay has the same one, another request never has. */
	int batch;
	/* index of this row in its batch (0, 1, ...), also if a replay has only some of the rows */
	int batch_place;
	/* For a create, if the driver has render(): exactly the bytes to send. */
	const char *request;
	char id[256];	  /* the provider's id.  in: if known; out: set by create and find */
	const char *spec; /* JSON that the engine's plan wrote for this kind */
	/* JSON: the current entry of plan_resource.choices; NULL: it has none */
	const char *choice;
	/* Of a resource that carries many nodes: the machines that are bound to a node. */
	struct driver_member *members;
	size_t nmembers;
	/* What the row's resource needs (plan_resource.needs), in that order. */
	const struct driver_need *needs;
	size_t nneeds;
	/* JSON: the credentials that came with the submission; NULL: there are none. */
	const char *credentials;
	const char *token; /* per node and incarnation */
	/* Of a create: the token with which machines of this batch, all booted with one configuration, ask
	 * which node they are; "": the resource carries no node. */
	const char *enrol;
	/* Counts the machines made for the node; 0: the resource has no node.  Written to the agent's
	 * configuration with the token. */
	int incarnation;
	/* When the node's agent was last heard by this master, on clock_boot_ms(); 0: never. */
	int64_t heard_ms;
	const struct driver_services *services;
	/* out: the right account, region or cluster was asked, so that "absent" can be believed */
	bool identity_checked;
	enum outcome outcome; /* out, only of the *_many functions */
	struct err err;
};

struct driver {
	const char *kind;
	const char *pool; /* name of its worker threads; drivers may share a pool */
	enum outcome (*create)(struct driver_row *row);
	enum outcome (*find)(struct driver_row *row);
	enum outcome (*observe)(struct driver_row *row);
	enum outcome (*destroy)(struct driver_row *row);
	/*
	 * May be NULL.  Writes the request (without NUL) that creates a whole batch, from its rows alone
	 * and without waiting.  It is stored before it is sent; create, and its replay by any version,
	 * gets the stored bytes in row->request.
	 */
	void (*render)(const struct driver_row *rows, size_t n, struct buf *out);
	/*
	 * For providers that take many resources in one call; NULL: the function above is called for each
	 * row.  The rows are of one run and, for a create, of one batch: all of it in the first call,
	 * perhaps fewer in a replay.  Each row gets its own outcome, err, id and identity_checked.
	 */
	void (*create_many)(struct driver_row *rows, size_t n);
	void (*find_many)(struct driver_row *rows, size_t n);
	void (*observe_many)(struct driver_row *rows, size_t n);
	void (*destroy_many)(struct driver_row *rows, size_t n);
};

extern const struct driver local_bridge_driver, local_node_driver, hosts_node_driver;
extern const struct driver ec2_security_group_driver, ec2_subnet_driver, ec2_placement_group_driver,
	ec2_instance_driver, ec2_master_driver, iam_role_driver, iam_profile_driver,
	s3_bucket_driver, s3_object_driver;
/* NULL if no driver has this kind. */
const struct driver *driver_for(const char *kind);

/* Input of resolve: the run before it is planned. */
struct resolve_input {
	const char *home;    /* of the master */
	const char *run_dir; /* of the run, on the master */
	const char
		*base_dir; /* of the job file, on the client's machine, which may be the master's */
	int nodes,
		least; /* number of nodes, and the smallest number with which the run can start */
	bool netns;    /* the nodes get network namespaces */
	const struct doc *options; /* plan_engine_options(); NULL: the engine has none */
	/* Facts stored by an older version, to be kept and completed; NULL: none. */
	const struct doc *known;
	const struct doc *const *taken; /* the facts of this engine's other active runs */
	size_t ntaken;
	const struct driver_services *services;
};

/* Input of sweep, which removes resources of this install that belong to no active run. */
struct sweep_input {
	const char *home, *install;
	bool (*is_active)(void *ctx, const char *run);
	void *ctx;
};

/*
 * The part of an engine that may do I/O; plan/engine.h has the pure part of the same name.  resolve
 * finds the facts that the plan needs and the job file does not have.  They are stored with the run
 * and not resolved again.
 */
struct resolver {
	const char *engine;
	/* It asks with the credentials of the caller: the client resolves, and submits facts and
	 * credentials with the job. */
	bool at_client;
	/* Of such a resolver: what the master needs to act for the caller.  *ret may stay NULL. */
	int (*credentials)(const struct resolve_input *in, struct arena *a, struct doc **ret,
			   struct err *err);
	int (*resolve)(const struct resolve_input *in, struct arena *a, struct doc **ret_facts,
		       struct err *err);
	/* Removes resources of runs that are in no ledger; NULL: there cannot be any.  Returns the number
	 * removed; err is the last failure. */
	size_t (*sweep)(const struct sweep_input *in, struct err *err);
};

extern const struct resolver local_resolver, hosts_resolver, aws_ec2_resolver;
const struct resolver *resolver_for(const char *engine); /* NULL if there is none */
/* ERR_NOT_FOUND if this version has no resolver for the engine. */
int driver_resolve(const char *engine, const struct resolve_input *in, struct arena *a,
		   struct doc **ret_facts, struct err *err);
/* The sweep of all engines, once when a master starts. */
size_t driver_sweep(const struct sweep_input *in, struct err *err);
