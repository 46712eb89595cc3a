#pragma once
/*
 * gc - what carries our tags in an account is found, judged and removed, without a ledger.
 *
 * A look asks each region for each kind.  What is in the scope (gc_judge) is deleted, machines first;
 * what is still in use is tried again after the next look.  What one look showed and the next does not
 * is gone; nothing is believed to be gone because its delete was accepted.
 */
#include "base/arena.h"
#include "base/deadline.h"
#include "base/vec.h"
#include "driver/aws/api/aws.h"
#include "driver/driver.h"
#include "driver/engine_tools.h"

struct aws_work;
struct gc_kind;
struct map;

struct gc_region {
	const char *name;
	struct aws *s;
	bool borrowed;
};

struct gc_item {
	const struct gc_kind *kind;
	struct leftover is;
	const char *status; /* as the provider calls it; "": it has none */
	bool seen;	    /* by the last look */
	bool ending;	    /* it goes by itself */
	bool denied;	    /* its delete was refused for want of a permission */
	bool accepted;	    /* its last delete was not refused */
};

/* A collection under way. */
struct gc {
	const struct collect_input *in;
	struct arena *a;
	struct deadline d;
	char account[AWS_ACCOUNT];
	VEC(struct gc_region) regions;
	VEC(struct gc_item *) items; /* in the order in which they can be removed */
	struct map *by_id;
	int64_t now_ms; /* the provider's clock */
	bool asked_elsewhere;
	const char *elsewhere; /* a region outside the scope that has something of the install */
};

/* A kind of EC2 resource: how it is listed, and how one is removed. */
struct gc_kind {
	const char *name;
	const char *list, *items;   /* action, and the path of the elements in its answer */
	const char *inner;	    /* path of elements below those; NULL: there are none */
	const char *id, *status;    /* paths in an element; status NULL: it has none */
	const char *gone;	    /* in this status it does not exist any more */
	const char *ending;	    /* in this status it goes by itself */
	const char *ready;	    /* only in this status it can be deleted; NULL: in any */
	const char *remove, *param; /* action and the name of its id; NULL: a driver does it */
};

extern const struct gc_kind
	gc_kinds[]; /* in the order in which they can be removed; ends with .name NULL */

/* Opens the regions of the input, and asks for the account. */
int gc_open(struct gc *g, struct err *err);
/* The same with one region, of a session that somebody else closes. */
int gc_use(struct gc *g, struct aws *s, struct err *err);
void gc_close(struct gc *g);
/* Sets seen, and adds what is new. */
int gc_find(struct gc *g, struct err *err);
bool gc_is_shared(const struct gc_item *item); /* a role or an instance profile */
/* Those: of the install, or of all. */
int gc_shared_find(struct gc *g, struct err *err);
/* A region outside the input that has something with the install's tag; NULL: there is none. */
int gc_find_elsewhere(struct gc *g, const char **ret_region, struct err *err);
/* The item, which is new or known; it counts as seen. */
struct gc_item *gc_add(struct gc *g, const struct gc_kind *kind, const char *region,
		       const char *id);

/* What is to become of something with these tags. */
enum leftover_state gc_judge(const struct collect_input *in, const struct leftover *l,
			     int64_t now_ms);

/* What the last look says about the items in the scope. */
struct gc_count {
	size_t found, ending, denied;
};
/* True: nothing has changed for so long, and through so many looks, that nothing will. */
bool gc_is_stuck(const struct gc_count *n, int64_t idle_ms, unsigned idle_looks);
/* Why it is still there, for a person; never NULL. */
const char *gc_reason(struct arena *a, const struct gc_item *item);

/* Deletes what is in the scope and can be deleted now; what cannot gets a reason. */
void gc_remove(struct gc *g);
/* The same for role and instance profile, if nothing else of the install is left. */
int gc_shared_remove(struct gc *g, struct err *err);
/* For those two: the row of an item, and what its driver said. */
struct driver_row gc_row(struct gc *g, const struct gc_item *item);
void gc_note(struct gc *g, struct gc_item *item, enum outcome outcome, const struct err *err);

/* Removes all that carries the tags of the row's run, which belongs to no ledger any more: driver.sweep. */
enum outcome gc_sweep_run(struct aws_work *w, struct driver_row *row);
int gc_collect(const struct collect_input *in, struct arena *a, struct collection *ret,
	       struct err *err);
