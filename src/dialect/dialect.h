#pragma once
/*
 * dialect - job files of other systems, turned into the document tree of a native one.
 *
 * What a dialect makes keeps the positions of what the user wrote, so that the one schema that checks
 * it names the lines of the user's own file.  Pure: the tree in, a tree out.
 */
#include <stdbool.h>

struct arena;
struct doc;
struct problems;

struct dialect {
	const char *name;
	/* Is the file written in it?  No native job file looks like that.  A file of several documents is a
	 * list of them. */
	bool (*is)(const struct doc *doc);
	/* What cannot be said natively is a problem or, if the run is the same without it, a warning.
	 * NULL: there is no job in the file, which is a problem too. */
	struct doc *(*convert)(const struct doc *doc, struct arena *a, struct problems *ps);
};

/* NULL: it is a native job file, or nothing that is known. */
const struct dialect *dialect_of(const struct doc *doc);
/* The native tree: the same one if it is native.  NULL after a problem: there is no job in it. */
struct doc *dialect_convert(struct doc *doc, struct arena *a, struct problems *ps);
