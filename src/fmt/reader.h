#pragma once
/*
 * reader - what the three parsers share.  Internal to fmt/.
 *
 * A cursor with its position, the limits of doc.h, duplicate keys found in
 * linear time, and errors of the form "line:col: found this, expected that".
 * After a failure the reader is only good for reader_release().
 */
#include "base/buf.h"
#include "base/str.h"
#include "fmt/doc.h"

struct arena;
struct err;
struct map;

struct reader {
	const char *p, *end; /* what is still to be read */
	const char *line_start;
	int line;
	int depth;	    /* containers that are open */
	size_t nodes;	    /* nodes made so far ... */
	size_t max_nodes;   /* ... and at most */
	struct arena *a;    /* of the tree */
	struct buf scratch; /* text being decoded; as large as any text may be */
	struct map *keys;   /* (table, key) -> value of reader_remember() */
	struct buf key_buf;
	struct err *err;
};

/* Refuses a text that is too long or not UTF-8; skips a byte order mark. */
int reader_open(struct reader *r, struct str text, struct arena *a, struct err *err);
/* The same with other limits than those of doc.h. */
int reader_open_limited(struct reader *r, struct str text, size_t max_bytes, size_t max_nodes,
			struct arena *a, struct err *err);
/* Allowed on a zeroed reader. */
void reader_release(struct reader *r);

struct doc_pos reader_pos(const struct reader *r);
/* Call after the cursor has passed a line feed. */
void reader_newline(struct reader *r);
/* The text at the cursor, in words: "'x'", "the end of the line".  Returns out. */
#define FOUND_MAX 48
const char *reader_found(const struct reader *r, char out[static FOUND_MAX]);
/* ERR_INVALID with the position in front; -1. */
int reader_fail(struct reader *r, struct doc_pos pos, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "found X, expected <what>" at the cursor. */
int reader_expected(struct reader *r, const char *what);

/* A node of the tree; NULL (and the error) past max_nodes. */
struct doc *reader_node(struct reader *r, enum doc_type t, struct doc_pos pos);
/* A container opens at pos: -1 past DOC_MAX_DEPTH. */
int reader_enter(struct reader *r, struct doc_pos pos);
/* A number in the grammar of number.h: the node, or NULL and the error. */
struct doc *reader_number(struct reader *r, struct str text, struct doc_pos pos);

/* n hexadecimal digits; false if there are fewer, the cursor then at the first other byte. */
bool reader_hex(struct reader *r, int n, uint32_t *ret_value);
/* A Unicode scalar value, as UTF-8, to the end of scratch; false if it is none. */
bool reader_add_char(struct reader *r, uint32_t c);

/* The value that reader_remember() stored for this key of this table, or NULL. */
void *reader_recall(struct reader *r, const struct doc *table, struct str key);
void reader_remember(struct reader *r, const struct doc *table, struct str key, void *what);
/* Has the table an entry of this key? */
bool reader_has(struct reader *r, const struct doc *table, struct str key);
/* Put an entry into a table (the key is kept, not copied); a second one of that key is refused. */
int reader_put(struct reader *r, struct doc *table, struct str key, struct doc_pos key_pos,
	       struct doc *value);
/* The error for a second entry of one key. */
int reader_duplicate(struct reader *r, struct str key, struct doc_pos key_pos,
		     struct doc_pos first);

/* From doc.c: a new last entry, without the search for the key. */
struct doc_entry *doc_entry_push(struct arena *a, struct doc *table);
