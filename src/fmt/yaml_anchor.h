#pragma once
/*
 * yaml_anchor - values that a YAML text names (&name) and uses again (*name, <<).  Internal to fmt/.
 *
 * An alias becomes a copy with the positions of the text it stands for.  Copies count as values of
 * the tree, and the bytes of their texts are limited too, so that a short text cannot stand for a huge tree.
 */
#include "fmt/reader.h"

struct map;

struct yaml_anchors {
	struct map *named; /* struct doc by name */
	size_t copied;	   /* bytes of keys and strings in copies */
};

/* Forgets all names: each document has its own. */
void yaml_anchors_clear(struct yaml_anchors *an);
void yaml_anchors_release(struct yaml_anchors *an);
/* The value is complete, so that none contains itself.  A later one of that name takes its place. */
void yaml_anchors_add(struct yaml_anchors *an, struct str name, struct doc *value);
/* The value that the alias at pos stands for; NULL and the error. */
struct doc *yaml_anchors_copy(struct yaml_anchors *an, struct reader *r, struct str name,
			      struct doc_pos pos);
/* Adds what the value of "<<" has, a table or a list of tables, to a table that lacks it. */
int yaml_merge(struct reader *r, struct doc *table, const struct doc *from);
