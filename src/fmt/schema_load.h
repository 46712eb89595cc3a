#pragma once
/* schema_load - shared by schema.c (tables) and schema_value.c (values).  Internal to fmt/. */
#include "fmt/schema.h"

#define PROBLEM_MAX (64 * 1024) /* bytes of one part of a message */

/* The path of a value: a chain on the stack, made into text only when there is a problem. */
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
/* Fills the struct at out.  table NULL gives the defaults, and no key is reported as missing. */
void schema_load_table(struct load *l, const struct schema *sc, const struct place *at,
		       const struct doc *table, void *out);
