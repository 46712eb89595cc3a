#pragma once
/*
 * engine_tools - what commands about an engine itself, not about a run, ask of it: the permissions that
 * it needs, what runs have left behind at its provider, and whether a run could start.
 *
 * One table per engine; a function that is NULL: the engine has nothing to say to that.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "link/layout.h"

struct arena;
struct buf;
struct deadline;
struct doc;
struct err;

enum leftover_state {
	LEFTOVER_OTHER,	  /* of an install that is not in the scope: not touched */
	LEFTOVER_LIVE,	  /* a live run has it, or may have it: not touched */
	LEFTOVER_FOUND,	  /* in the scope, and still there */
	LEFTOVER_REMOVED, /* in the scope, and proven gone */
};

/* Something at the provider that carries the tags of an install. */
struct leftover {
	const char *kind, *id, *region; /* region "": it is of no region */
	const char *install;
	const char *run; /* "": of the install as a whole */
	int64_t expires_ms;
	enum leftover_state state;
	const char *why; /* it was not removed; NULL: nothing kept it */
};

/* Does it belong to the run, or to one of the suite that the run carries? */
static inline bool leftover_is_of(const struct leftover *l, const char *run)
{
	return strcmp(l->run, run) == 0 || str_is(layout_carrier_of(str_from(l->run)), run);
}

struct collect_input {
	const char *
		context; /* of those that this machine has for the provider; NULL: the current one */
	const char *region; /* NULL: the caller's own */
	bool all_regions;
	const char *install;	 /* NULL: everything is found, and nothing is in the scope */
	const char *run;	 /* only what carries its tag is in the scope; NULL: all runs */
	const char *credentials; /* JSON, as in driver_row; NULL: those that this process finds */
	/* The runs of this install are known here: what belongs to a live one is not in the scope, unless
	 * its time is over.  Otherwise all of the install is. */
	bool has_ledger;
	bool dry_run; /* only finds */
	/* Called after each look at the provider and before is_live: learns which runs are live. */
	int (*refresh)(void *ctx, struct err *err);
	bool (*is_live)(void *ctx, const char *run); /* run "": is any? */
	void *ctx;
	const volatile int *stop;
};

struct collection {
	struct leftover *v;
	size_t n;
};

struct masters_input {
	const char *context; /* as of a collection */
	const char *region;  /* NULL: the caller's own */
	const volatile int *stop;
};

/* A master on a machine of the provider. */
struct running_master {
	const char *run, *install, *region;
	const char *state;	       /* of the machine, as the provider calls it */
	const char *url, *pin, *token; /* url NULL: it cannot be spoken to ... */
	const char *why;	       /* ... for this reason */
};

struct running_masters {
	struct running_master *v;
	size_t n;
	const char *region; /* where they were looked for, as in `region` of each */
};

enum check_state {
	CHECK_FINE,
	CHECK_WARNING, /* a run could start all the same, or it is not known */
	CHECK_BAD,     /* no run can start */
};

/* One thing that a run needs. */
struct engine_check {
	const char *name; /* "credentials" */
	enum check_state state;
	const char *what; /* as it is */
	const char *todo; /* NULL: nothing */
};

#define MOST_CHECKS 16
struct checkup {
	struct arena *a;
	const char *home;	      /* of the caller; it need not exist */
	const char *context, *region; /* as of a collection */
	const volatile int *stop;
	/* Asks the caller's master, if one runs. */
	int (*ask)(void *ctx, const char *path, struct arena *a, struct doc **ret, struct err *err);
	void *ctx;
	struct engine_check v[MOST_CHECKS];
	size_t n;
};
/* Texts are copied. */
void checkup_add(struct checkup *c, const char *name, enum check_state state, const char *what,
		 const char *todo);

struct engine_tools {
	const char *engine;
	/* There may be several contexts on this machine, with namespaces as regions: the options --kube-context and
	 * --namespace choose. */
	bool has_contexts;
	/* Writes, as one JSON document, the permissions that the provider must give to whoever runs
	 * jobs.  bucket, metrics: the bucket, and the place for metrics, that the jobs name; NULL: they name
	 * none. */
	void (*policy)(const char *bucket, const char *metrics, struct buf *out);
	/* Finds everything that carries our tags, removes what is in the scope and looks until it is gone.
	 * *ret is also set on failure: what is known by then.  Texts of the arena. */
	int (*collect)(const struct collect_input *in, struct arena *a, struct collection *ret,
		       struct err *err);
	/* Looks at everything that a run needs, and changes nothing. */
	void (*check)(struct checkup *c);
	/* Where the results of the caller's runs are by default: the URL of a store of objects, with a '/' at
	 * its end, behind which the runs are.  *ret_url stays NULL if nothing of the provider is set up on this
	 * machine: then nobody is asked. */
	int (*results_place)(const struct deadline *d, struct arena *a, const char **ret_url,
			     struct err *err);
	/* The name of the provider in commands; NULL: it has none of the following. */
	const char *provider;
	/* Finds the masters that run on its machines, and, where there are ports to open, lets the caller's
	 * address, and no other, reach theirs.  Texts of the arena. */
	int (*masters)(const struct masters_input *in, struct arena *a, struct running_masters *ret,
		       struct err *err);
};

extern const struct engine_tools local_tools, hosts_tools, aws_ec2_tools, kube_tools;
/* The i-th engine that has tools; NULL: there are no more. */
const struct engine_tools *engine_tools_at(unsigned i);
