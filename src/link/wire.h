#pragma once
/*
 * wire - JSON objects of the link, read and written by one table of keys.
 *
 * One row per key gives reading, writing and error message.  Keys that are not in the table are
 * ignored.  A missing required key, a value of the wrong type or out of range is ERR_PROTOCOL with a
 * text that names message and key.  null counts as missing.  Everything read lives in the arena;
 * texts are NUL-terminated and contain no NUL.
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
	WIRE_KIND_OPEN, /* the same; an unknown name is read as ERR_NONE */
	WIRE_CHOICE,	/* an enum, by its name in choices */
	WIRE_OFFSETS, /* uint64_t[STREAMS_MAX]; those after the last that is not 0 are not written */
	WIRE_TEXTS,   /* const char **, NULL-terminated, and its count */
	WIRE_ENV,     /* struct env_pair * and its count: an object of texts */
	WIRE_TABLE,   /* pointer to a struct of sub; NULL: missing */
	WIRE_LIST,    /* pointer to structs of sub, and its count */
	WIRE_ARRAY,   /* array of max structs of sub, embedded in the struct, and its count */
};

struct wire_key {
	const char *key;
	enum wire_type type;
	/* May be missing: then it is read as fallback, default_text, NULL or an empty list.  Such a
	 * value is not written. */
	bool optional;
	size_t offset, size; /* of the member */
	size_t count_offset; /* of the size_t that counts a list */
	/* Range of a number, or of the number of items of a list.  max 0: as much as the member holds. */
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
/* Fill *ret, t->size bytes, from an object.  After an error its content is undefined. */
int wire_read(const struct wire_table *t, const struct doc *d, struct arena *a, void *ret,
	      struct err *err);
/* wire_parse, then wire_read. */
int wire_get(const struct wire_table *t, struct str json, struct arena *a, void *ret,
	     struct err *err);
/* Write the keys in the order of the table; the caller opens and closes the object. */
void wire_write(const struct wire_table *t, const void *msg, struct jsonw *w);
void wire_put(const struct wire_table *t, const void *msg, struct buf *out);
