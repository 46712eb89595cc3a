#pragma once
/*
 * doc - one document tree with positions for TOML, YAML and JSON.
 *
 * Everything lives in the arena given to the parser.  Keys keep the order of
 * the text; a duplicate key is an error in every format.  Values are read by
 * typed accessors only: a value of another type counts as absent and is never converted.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct arena;
struct err;

enum doc_type {
	DOC_NULL,
	DOC_BOOL,
	DOC_INT,
	DOC_FLOAT,
	DOC_STRING,
	DOC_TIME, /* TOML date or time, kept as its text */
	DOC_ARRAY,
	DOC_TABLE,
};

struct doc_pos {
	int line, col; /* from 1; col counts bytes; 0 = unknown */
};

struct doc;
struct doc_entry {
	struct str key;
	struct doc_pos key_pos;
	struct doc *value;
};

struct doc {
	enum doc_type type;
	struct doc_pos pos;
	union {
		bool b;
		int64_t i;
		struct {
			double f;
			/* The number as it was written, if that is valid JSON; p NULL otherwise. */
			struct str f_text;
		};
		struct str s; /* STRING, TIME; NUL-terminated too */
		struct {
			struct doc **v;
			size_t n, cap;
		} array;
		struct {
			struct doc_entry *v;
			size_t n, cap;
		} table;
	};
};

#define DOC_MAX_BYTES (1024 * 1024) /* of any text parsed to a tree */
#define DOC_MAX_DEPTH 64	    /* tables and arrays within each other */
#define DOC_MAX_NODES 100000

/* Parse; an error is ERR_INVALID with "line:col: what" (the caller puts the file in front). */
int toml_parse(struct str text, struct arena *a, struct doc **ret_doc, struct err *err);
int yaml_parse(struct str text, struct arena *a, struct doc **ret_doc, struct err *err);
/* A list of the documents of a YAML text: at least one; of several those that are not empty. */
int yaml_parse_documents(struct str text, struct arena *a, struct doc **ret_all, struct err *err);
int json_parse(struct str text, struct arena *a, struct doc **ret_doc, struct err *err);
/* With the caller's own limits, for large texts that this program wrote itself. */
int json_parse_limited(struct str text, size_t max_bytes, size_t max_nodes, struct arena *a,
		       struct doc **ret_doc, struct err *err);
/* By the file's name: .toml, .yaml/.yml, .json; anything else is an error that lists these.  A list of
 * the documents in it: only a YAML text may have several. */
int doc_parse_named(const char *filename, struct str text, struct arena *a, struct doc **ret_all,
		    struct err *err);

const char *doc_type_name(enum doc_type t); /* "string", "table", ... in the user's words */

/* Building trees (positions 0). */
struct doc *doc_new(struct arena *a, enum doc_type t);
struct doc *doc_new_str(struct arena *a, struct str s); /* copies */
struct doc *doc_new_int(struct arena *a, int64_t i);
struct doc *doc_new_bool(struct arena *a, bool b);
struct doc *doc_new_float(struct arena *a, double f);
struct doc *doc_copy(struct arena *a, const struct doc *d); /* positions too */
void doc_append(struct arena *a, struct doc *array, struct doc *item);
/* Replaces the value of an existing key. */
void doc_set(struct arena *a, struct doc *table, struct str key, struct doc *value);
/*
 * "roles.trainer.count" = value: makes tables on the way.  A part with other characters than
 * A-Z a-z 0-9 _ - is quoted as in TOML.  ERR_INVALID if a part on the way is not a table or the
 * path is malformed; the tree is then unchanged.
 */
int doc_set_path(struct arena *a, struct doc *root, struct str path, struct doc *value,
		 struct err *err);

/* NULL when d is NULL, not a table, or has no such key. */
const struct doc *doc_get(const struct doc *d, const char *key);
/* Typed reads with a fallback; d may be NULL. */
struct str doc_str(const struct doc *d, const char *key, struct str fallback);
int64_t doc_int(const struct doc *d, const char *key, int64_t fallback);
double doc_num(const struct doc *d, const char *key, double fallback); /* int or float */
bool doc_bool(const struct doc *d, const char *key, bool fallback);
const struct doc *doc_array(const struct doc *d, const char *key); /* NULL unless an array */
const struct doc *doc_table(const struct doc *d, const char *key);

struct buf;
struct jsonw;
/*
 * The tree as compact JSON / as TOML (tables in order, strings quoted).
 * A float is as it was written, 3.10 and not 3.1, if it was written as JSON would take it.
 * JSON has no dates, NaN or infinities: a date is a string, the others null.
 * TOML has no null: such entries and items are left out.  A root that is not
 * a table prints as the value one would write after "key = ".
 */
void doc_to_json(const struct doc *d, struct buf *out);
/* The same as a value among others. */
void doc_put_json(const struct doc *d, struct jsonw *w);
/* The same as a string of the arena; "{}" for NULL. */
const char *doc_json_text(struct arena *a, const struct doc *d);
void doc_to_toml(const struct doc *d, struct buf *out);
/* As TOML on one line, a table too: what one would write after "key = ". */
void doc_value_to_toml(const struct doc *d, struct buf *out);
/* The tree as a YAML document, with a line break at its end.  NaN and infinities are null. */
void doc_to_yaml(const struct doc *d, struct buf *out);
