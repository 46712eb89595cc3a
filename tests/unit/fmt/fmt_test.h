#pragma once
/* fmt_test - shared by the tests of fmt/: seeds that are printed, trees that are compared. */
#include "unit.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/rand.h"
#include "fmt/doc.h"

typedef int parse_fn(struct str text, struct arena *a, struct doc **ret_doc, struct err *err);

/* From REGATTA_SEED or new; printed, so that a failure can be run again. */
void seed_rng(struct rng *r);

/* The same tree, positions aside?  Tables are compared without order. */
bool doc_same(const struct doc *x, const struct doc *y);

/* What a generated tree may hold. */
struct doc_kinds {
	bool nulls;
	bool times;
	bool special_floats;
};
struct doc *doc_generate(struct rng *r, struct arena *a, struct doc_kinds kinds, int depth);
/* A table. */
struct doc *doc_generate_table(struct rng *r, struct arena *a, struct doc_kinds kinds, int depth);

/* Change a text at random places. */
void text_mutate(struct rng *r, struct buf *text);

/* The text parses; the tree. */
struct doc *parse_ok(parse_fn *parse, struct arena *a, struct str text);
/* The text is refused with ERR_INVALID and exactly this message. */
void assert_refused(parse_fn *parse, struct str text, const char *message);
/* The text parses to a tree that is this as compact JSON. */
void assert_parses_to(parse_fn *parse, struct str text, const char *json);
void assert_pos(struct doc_pos pos, int line, int col);
/* open n times, middle, close n times. */
void add_nested(struct buf *out, int n, const char *open, const char *middle, const char *close);
