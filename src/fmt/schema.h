#pragma once
/*
 * schema - one table per struct: loading, defaults, errors, `regatta explain`
 * and the reference page all read the same rows.
 *
 * Every problem of a document is reported, each with its position and, for an
 * unknown key or choice, the nearest known word.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include "fmt/doc.h"

struct arena;
struct buf;
struct err;

enum field_type {
	FIELD_STR,	/* const char * */
	FIELD_NAME,	/* const char *, [a-z0-9]([a-z0-9-]*[a-z0-9])?, at most 40 */
	FIELD_BOOL,	/* bool */
	FIELD_INT,	/* int64_t, within min..max */
	FIELD_FLOAT,	/* double, within min..max */
	FIELD_DURATION, /* int64_t milliseconds; "90s", "2h"; a bare 0 too; min..max apply */
	FIELD_SIZE,	/* uint64_t bytes; "2GiB"; a bare whole number is bytes */
	FIELD_CHOICE,	/* int: index into choices */
	FIELD_STRS,	/* struct strs: list of strings; a single string is a list of one */
	FIELD_INTS, /* struct ints: list of whole numbers, each within min..max; a single one is a list of one */
	FIELD_ARGV, /* struct strs: list of strings; a string is split like a shell would, no expansion */
	FIELD_ENV,   /* struct env_list: table of strings (numbers and booleans become text) */
	FIELD_TABLE, /* embedded struct of `sub` */
	FIELD_MAP,   /* struct table_list: named sub-tables; the key goes to sub->name_offset */
	FIELD_LIST,  /* struct table_list: array of tables */
	FIELD_BOX,   /* void *: a struct of `sub` in the arena; NULL if the table is absent */
	FIELD_DOC,   /* const struct doc *: any table, kept as it is; NULL if it is absent */
	FIELD_ANY, /* the same for a value of any type, which the caller of schema_load() checks */
};

struct strs {
	const char **v;
	size_t n;
};
struct ints {
	int64_t *v;
	size_t n;
};
struct env_pair {
	const char *name, *value;
};
struct env_list {
	struct env_pair *v;
	size_t n;
};
struct table_list {
	void *v; /* array of n structs of sub->size */
	size_t n;
};

/* What the keys of a FIELD_MAP may look like. */
enum field_keys {
	KEYS_NAME,   /* as FIELD_NAME */
	KEYS_METRIC, /* [A-Za-z0-9_.-], at most 64 */
	KEYS_ANY,    /* any text without a NUL; the caller of schema_load() checks them */
};

#define SCHEMA_MAX_ITEMS 4096 /* of a FIELD_MAP or FIELD_LIST that has no max of its own */

struct field {
	const char *name;
	enum field_type type;
	size_t offset; /* of the member */
	/* Of a bool member that is set when the key is in the document; 0 = none, so it cannot be the first member. */
	size_t set_offset;
	size_t pos_offset; /* of a struct doc_pos member for the value's position; 0 = none, so it cannot be the first */
	bool required;
	/* Default as TOML text (a single string without its quotes); NULL = zero. */
	const char *fallback;
	/* Both 0 = no limit.  For numbers (each of FIELD_INTS) the value, for durations ms, for sizes bytes, for strings the
	 * length in bytes, for everything else the number of items. */
	int64_t min, max;
	/* FIELD_CHOICE, NULL-terminated.  FIELD_INT: words that may stand for a number: -1, -2, ... */
	const char *const *choices;
	const struct schema *sub; /* FIELD_TABLE, FIELD_MAP, FIELD_LIST, FIELD_BOX */
	const char *help;	  /* one or two sentences for people */
	const char *example;	  /* as TOML */
	enum field_keys keys;	  /* FIELD_MAP */
	const char *
		word; /* FIELD_TABLE: a string stands for a table with this key; NULL: it does not */
};

struct schema {
	const char *name; /* in messages and the reference: "job", "role" */
	const char *help;
	size_t size;
	/* Of the const char * member that receives the key of a FIELD_MAP; 0 = the first, or unused. */
	size_t name_offset;
	/* Of a struct doc_pos member for the start of the table; 0 = none, so it cannot be the first member. */
	size_t pos_offset;
	const struct field *fields; /* ends with .name == NULL */
};

struct problem {
	struct doc_pos pos;
	const char *text; /* "unknown key 'cuont' in roles.trainer: did you mean 'count'?" */
};
#define PROBLEMS_MAX 50
#define WARNINGS_MAX 8
struct problems {
	struct problem v[PROBLEMS_MAX];
	size_t n;
	size_t more; /* found beyond the array */
	size_t unknown; /* how many of all problems are unknown keys, which leave the rest of the document usable */
	/* Accepted, but probably not what the user meant. */
	struct problem warnings[WARNINGS_MAX];
	size_t nwarnings;
};
void problems_add(struct problems *ps, struct arena *a, struct doc_pos pos, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void problems_warn(struct problems *ps, struct arena *a, struct doc_pos pos, const char *text);
/* A line "file:line:col: warning: text" each. */
void problems_print_warnings(const struct problems *ps, const char *filename, struct buf *out);
/* Sorted by position, a line "file:line:col: text" each; "file: text" without a position. */
void problems_print(struct problems *ps, const char *filename, struct buf *out);

/*
 * Fill *out (zeroed by the callee, sc->size bytes) from a table.  Problems are added; returns false
 * if any were.  A table that is absent (NULL) gets its defaults, and no key of it is reported as missing.  A
 * value with a problem counts as absent; an entry of FIELD_MAP or FIELD_LIST that is no table is
 * left out.  Positions (pos_offset) are those of the value, or of its key if the value has none.
 */
bool schema_load(const struct schema *sc, const struct doc *table, void *out, struct arena *a,
		 struct problems *ps);
/* The struct as a table: schema_load() of it gives the same members, even if the defaults have
 * changed since.  Positions are not kept.  Strings are copied. */
struct doc *schema_to_doc(const struct schema *sc, const void *from, struct arena *a);
/* The same as JSON.  Lists are written item by item: a tree of them takes eight times the room of their
 * text. */
void schema_to_json(const struct schema *sc, const void *from, struct buf *out);
/*
 * The field behind "roles.trainer.spot", or NULL.  Any key of a map is skipped: "roles.trainer" is
 * the field roles.  Lists are named with or without an index: "data.src", "data[0].src".  path ""
 * gives NULL.
 */
const struct field *schema_find(const struct schema *root, struct str path);
/* Text for `regatta explain [KEY]`: the field, and of a table the list of its fields.  ""
 * is the whole file.  ERR_NOT_FOUND with the nearest key. */
int schema_explain(const struct schema *root, struct str path, struct buf *out, struct err *err);
/* The whole reference as Markdown. */
void schema_reference(const struct schema *root, struct buf *out);
