#pragma once
/*
 * members - the table of a run's members as it arrives in parts (MEMBERS), for the START that follows.
 */
#include <stdbool.h>
#include "base/expand.h"
#include "base/str.h"

struct arena;
struct err;

struct members {
	struct arena *arena; /* NULL: nothing has come */
	struct expand_members table;
	const char **addresses;
	int next; /* the rank that the next part begins with */
};

/* One part.  The first begins a new table; any other must follow the one before. */
int members_take(struct members *m, struct str json, struct err *err);
/* Has everything come, and is the rank in it? */
bool members_have(const struct members *m, int rank);
void members_release(struct members *m);
