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
struct queue_machines;

/* Objects of the master that drivers use; a driver uses only those of its own engine. */
struct driver_services {
	struct host_table *hosts; /* driver/hosts/host_table.h */
	/* The master's URL for other machines and the pin of its key; NULL: none can reach it.  It serves
	 * its own program at /bin/<sha256>. */
	const char *url, *pin;
};

/* One of the machines of a resource that carries many nodes. */
struct driver_member {
	const char *identity; /* with which the machine enrolled */
	bool gone;	      /* out, from observe: the machine does not exist any more */
	struct err
		why; /* out, with gone: as the provider says it; kind ERR_NONE: it says nothing */
};

/* The machine of a node without an agent, as an observation sees it: its job has begun. */
struct driver_sight {
	char role[64]; /* which node it carries: the role, */
	int index;     /* and its number in the role */
	char identity[65], address[48];
	char log[256]; /* what log_open() takes */
	bool ended;
	int code; /* of the job's end */
	bool oom;
	char reason[160]; /* "": the code says it */
};

/* The log of such a machine, being read; of one thread at a time. */
struct driver_log;
#define DRIVER_LOG_AT 160 /* a position in it, as text */

/* A resource that had to be live before the row's own. */
struct driver_need {
	const char *kind, *name, *id;
};

/* A master that lives on a resource of a run: where it is, and how it is known and spoken to. */
struct driver_master {
	char url[512];	/* "https://192.0.2.7:5436", or another that master_way.h knows */
	char pin[64];	/* of its key */
	char token[80]; /* of its user */
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
	/* out, from observe of a resource whose nodes have no agents: malloc'ed, the caller's */
	struct driver_sight *sights;
	size_t nsights;
	/* What the row's resource needs (plan_resource.needs), in that order. */
	const struct driver_need *needs;
	size_t nneeds;
	/* JSON: the credentials that came with the submission; NULL: there are none. */
	const char *credentials;
	const char *token; /* per node and incarnation */
	/* Of a create: the token with which machines of this batch, all booted with one configuration, ask
	 * which node they are; "": the resource carries no node. */
	const char *enrol;
	/* Of a resource without a node: hex digits that nobody else knows, the same in every call.  What a
	 * master on it has as key and token is made from them. */
	const char *secret;
	/* Counts the machines made for the node; 0: the resource has no node.  Written to the agent's
	 * configuration with the token. */
	int incarnation;
	/* Of an observe: the node's agent should have been heard by now.  If the machine is there, the
	 * answer is OUTCOME_HELD, and err the last lines of its console, as far as they can be had. */
	bool overdue;
	/* When the node's agent was last heard by this master, on clock_boot_ms(); 0: never. */
	int64_t heard_ms;
	const struct driver_services *services;
	/* out: the right account, region or cluster was asked, so that "absent" can be believed */
	bool identity_checked;
	/* out, with OUTCOME_ABSENT: the provider shows the resource as ended, which proves more than that
	 * it shows nothing; err says why, ERR_PREEMPTED if the provider took it back */
	bool ended;
	/* out, of observe, with OUTCOME_HELD: the machines wait for their turn in a queue of the provider's */
	bool queued;
	enum outcome outcome; /* out, only of the *_many functions */
	struct err err;
};

struct driver {
	const char *kind;
	const char *pool; /* name of its worker threads; drivers may share a pool */
	/* Each question has one of two forms: for one row here, or for many rows below. */
	enum outcome (*create)(struct driver_row *row);
	enum outcome (*find)(struct driver_row *row);
	enum outcome (*observe)(struct driver_row *row);
	/* Only of kinds whose resources expire (plan_resource.expires): tells the provider the new
	 * expires_ms.  The machines of nodes are told by their agents. */
	enum outcome (*extend)(struct driver_row *row);
	enum outcome (*destroy)(struct driver_row *row);
	/*
	 * May be NULL.  Writes the request (without NUL) that creates a whole batch, from its rows alone
	 * and without waiting.  It is stored before it is sent; create, and its replay by any version,
	 * gets the stored bytes in row->request.
	 */
	void (*render)(const struct driver_row *rows, size_t n, struct buf *out);
	/*
	 * For providers that take many resources in one call; NULL: the form for one row is called for
	 * each.  The rows are of one run and, for a create, of one batch: all of it in the first call,
	 * perhaps fewer in a replay.  Each row gets its own outcome, err, id and identity_checked.
	 */
	void (*create_many)(struct driver_row *rows, size_t n);
	void (*find_many)(struct driver_row *rows, size_t n);
	void (*observe_many)(struct driver_row *rows, size_t n);
	void (*extend_many)(struct driver_row *rows, size_t n);
	void (*destroy_many)(struct driver_row *rows, size_t n);
	/* Of a kind on which a master lives, else NULL: finds the master of a live row.  -1: row->err says
	 * why; ERR_UNAVAILABLE and ERR_TIMEOUT may pass.  That it can be reached does not mean that it
	 * answers already. */
	int (*reach)(struct driver_row *row, struct driver_master *ret);
	/* Of such a kind, else NULL: leaves what reach found with the provider, where other machines of the
	 * same people find it (engine_tools.masters), until the row is destroyed.  -1: row->err says why. */
	int (*publish)(struct driver_row *row, const struct driver_master *at);
	/* Of such a kind, else NULL: asked by the master on the machine of the row, before it destroys what
	 * was made for the machine and, last, the machine (core/machine_end.h).  Afterwards nothing else is in
	 * use by the machine.  -1: row->err says why. */
	int (*detach)(struct driver_row *row);
	/* Of such a kind, else NULL: asked when the row is destroyed, by a master that the other one was handed the run
	 * by.  Removes everything that carries the tags of the row's run, and looks until it is gone.  Done; held:
	 * row->err names what stays. */
	enum outcome (*sweep)(struct driver_row *row);
	/*
	 * Of a kind whose nodes may have no agents, else NULL.  stop: the jobs of all its machines are to end, as
	 * by SIGTERM.
	 */
	enum outcome (*stop)(struct driver_row *row);
	/* The log of a machine (driver_sight.log), from a position on; "": from its first byte. */
	struct driver_log *(*log_open)(const struct driver_row *row, const char *log,
				       const char *at);
	/* Appends the next bytes to out, and waits up to wait_ms for the first.  1: there may be more.  0: that
	 * was the end, or the connection was cut: who wants to be certain reads again.  -1: err says why. */
	int (*log_read)(struct driver_log *l, int wait_ms, const struct deadline *d,
			struct buf *out, struct err *err);
	/* The position after what was read. */
	void (*log_at)(const struct driver_log *l, char at[static DRIVER_LOG_AT]);
	/* True, once, if a part of the log was taken away by the provider before it was read. */
	bool (*log_gap)(struct driver_log *l);
	struct driver_log *(*log_free)(struct driver_log *l);
};

extern const struct driver local_bridge_driver, local_node_driver, hosts_node_driver;
extern const struct driver ec2_security_group_driver, ec2_subnet_driver, ec2_placement_group_driver,
	ec2_instance_driver, ec2_master_driver, iam_role_driver, iam_profile_driver,
	s3_bucket_driver, s3_object_driver;
extern const struct driver kube_root_driver, kube_service_driver, kube_job_driver,
	kube_account_driver, kube_role_driver, kube_binding_driver, kube_claim_driver,
	kube_program_driver, kube_master_driver, kube_operator_driver;
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
	bool by_gpus, by_cpus;	/* nodes have as many processes as their machine has of these */
	bool netns;		/* the nodes get network namespaces */
	uint64_t fetched_bytes; /* of the inputs that a node fetches from other servers, at most */
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
	/* Its nodes are on other machines, which must reach the master. */
	bool nodes_dial;
	/* Its credentials are also those for the stores of objects. */
	bool has_stores;
	/* Of such a resolver: what the master needs to act for the caller.  *ret may stay NULL. */
	int (*credentials)(const struct resolve_input *in, struct arena *a, struct doc **ret,
			   struct err *err);
	int (*resolve)(const struct resolve_input *in, struct arena *a, struct doc **ret_facts,
		       struct err *err);
	/* The machines that a run with these options may have, for the queue: all of them, or those that are
	 * free where a machine has nodes of one run only.  NULL: its runs do not wait. */
	void (*machines)(const struct doc *options, const struct driver_services *services,
			 bool all, struct arena *a, struct queue_machines *ret);
	/* Removes resources of runs that are in no ledger; NULL: there cannot be any.  Returns the number
	 * removed; err is the last failure. */
	size_t (*sweep)(const struct sweep_input *in, struct err *err);
};

extern const struct resolver local_resolver, hosts_resolver, aws_ec2_resolver, kube_resolver;
const struct resolver *resolver_for(const char *engine); /* NULL if there is none */
/* ERR_NOT_FOUND if this version has no resolver for the engine. */
int driver_resolve(const char *engine, const struct resolve_input *in, struct arena *a,
		   struct doc **ret_facts, struct err *err);
/* The sweep of all engines, once when a master starts. */
size_t driver_sweep(const struct sweep_input *in, struct err *err);
