#pragma once
/*
 * wire - JSON objects of the link, read and written by one table of keys.
 *
 * One row per key gives its reading, its writing and its error.  Reading is strict about the keys
 * of the table and blind to all others: a missing required key, a value of another type or out of
 * its range is ERR_PROTOCOL with a text that names message and key.  null counts as missing.
 * Everything that was read lives in the arena; texts are NUL-terminated and hold no NUL.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct arena;
struct buf;
struct doc;
struct err;
struct jsonw;

enum wire_type {
	WIRE_TEXT,	/* const char * */
	WIRE_CHARS,	/* char[size]; a longer text is cut */
	WIRE_INT,	/* int, int64_t or uint64_t, within min..max */
	WIRE_BOOL,	/* bool */
	WIRE_KIND,	/* enum err_kind, by its name */
	WIRE_KIND_OPEN, /* the same; a name that is not known here is read as ERR_NONE */
	WIRE_CHOICE,	/* an enum, by its name in choices */
	WIRE_OFFSETS,	/* uint64_t[STREAMS] */
	WIRE_TEXTS,	/* const char **, NULL-terminated, and its count */
	WIRE_ENV,	/* struct env_pair * and its count: an object of texts */
	WIRE_TABLE,	/* pointer to a struct of sub; NULL: missing */
	WIRE_LIST,	/* pointer to structs of sub, and its count */
	WIRE_ARRAY, /* max structs of sub within the struct itself, and the count of those in use */
};

struct wire_key {
	const char *key;
	enum wire_type type;
	/* May be missing.  Then it is read as fallback or default_text, as NULL or as an empty list; what is
	 * equal to that, or NULL, is not written. */
	bool optional;
	size_t offset, size; /* of the member */
	size_t count_offset; /* of the size_t that counts a list */
	/* Of a number its range, of a list its number of items.  max 0: as much as the member holds. */
	int64_t min, max;
	int64_t fallback;
	const char *default_text;
	const char *const *choices; /* NULL-terminated */
	const struct wire_table *sub;
};

struct wire_table {
	const char *name;	     /* of the message, for errors */
	size_t size;		     /* of the struct */
	const struct wire_key *keys; /* ends with .key == NULL */
};

/* A payload as a tree: ERR_PROTOCOL unless it is one JSON object. */
int wire_parse(const struct wire_table *t, struct str json, struct arena *a, const struct doc **ret,
	       struct err *err);
/* Fill *ret, t->size bytes, from an object.  What it holds after an error is of no use. */
int wire_read(const struct wire_table *t, const struct doc *d, struct arena *a, void *ret,
	      struct err *err);
/* Both in one. */
int wire_get(const struct wire_table *t, struct str json, struct arena *a, void *ret,
	     struct err *err);
/* Key by key, in the order of the table; the caller opens and closes the object. */
void wire_write(const struct wire_table *t, const void *msg, struct jsonw *w);
void wire_put(const struct wire_table *t, const void *msg, struct buf *out);
