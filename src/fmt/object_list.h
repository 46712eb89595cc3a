#pragma once
/*
 * object_list - what an input of a job consists of that nodes fetch by themselves: a text of JSON
 * lines, one per object, in the order of their names.
 *
 *	{"name":"day/1.csv","size":123,"etag":"\"9b2c\""}
 *
 * The client makes it when the job is submitted, so that all nodes get the same bytes: an object that
 * has another ETag or size by then is refused, unless its entry has a `version`, which is fetched.  Nodes read it line by line.
 */
#include <stdint.h>
#include "base/str.h"

struct arena;
struct buf;
struct err;

#define OBJECT_LIST_LINE (64 * 1024) /* longest line */
#define OBJECT_LIST_MAX 10000000     /* objects */

struct object_entry {
	/* Below the place of the input, as in path_is_below(); "": the object is the input itself. */
	const char *name;
	int64_t size;	  /* -1: not known */
	const char *etag; /* with its quotes; NULL: not known */
	const char *
		version; /* where the store keeps these bytes, too, when the object changes; NULL: it does not */
};

/* Appends one line. */
void object_entry_put(const struct object_entry *e, struct buf *out);
/* Reads a line, with or without its end; ERR_INVALID if it is none, or if its name leaves the place. */
int object_entry_get(struct str line, struct arena *a, struct object_entry *ret, struct err *err);
