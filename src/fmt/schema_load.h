#pragma once
/* schema_load - what loading a table and loading a value need of each other.  Internal to fmt/. */
#include "fmt/schema.h"

#define PROBLEM_MAX (64 * 1024) /* bytes of one message's parts */

/* Where a value stands: made on the stack, written out only when there is a problem. */
struct place {
	const struct place *up; /* NULL at the root */
	struct str key;		/* p NULL: an item of a list */
	size_t index;
};
/* "roles.trainer.after[1]"; nothing at the root. */
void place_text(const struct place *at, struct buf *out);

struct load {
	struct arena *a;
	struct problems *ps;
};

/* Sets the member at out and returns true, or adds the problems and leaves it. */
bool schema_load_value(struct load *l, const struct field *f, const struct place *at,
		       const struct doc *d, void *out);
/* Fills the struct at out.  table NULL gives the defaults, and nothing is missing then. */
void schema_load_table(struct load *l, const struct schema *sc, const struct place *at,
		       const struct doc *table, void *out);
