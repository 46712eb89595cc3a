#pragma once
/*
 * members - the table of a run's nodes, assembled from MEMBERS frames for the START that follows.
 */
#include <stdbool.h>
#include "base/expand.h"
#include "base/str.h"

struct arena;
struct err;

struct members {
	struct arena *arena; /* NULL: no part was received */
	struct expand_members table;
	const char **addresses, **names; /* names: NULL if the table has none */
	int next;			 /* the rank that the next part begins with */
};

/* Add one part.  A part with first = 0 begins a new table; any other must continue the last one. */
int members_take(struct members *m, struct str json, struct err *err);
/* Is the table complete, and is the rank in it? */
bool members_have(const struct members *m, int rank);
void members_release(struct members *m);
