#pragma once
/*
 * table - aligned columns for people.
 *
 * Cells hold text from outside, which is always escaped here.  On a terminal a table that is
 * too wide loses from its widest columns first, then whole columns from the
 * right; a line is never wider than the terminal.
 */
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"
#include "cli/show/terminal.h"

struct arena;
struct buf;

#define TABLE_MAX_COLUMNS 16

struct column {
	const char *title;
	bool right;
	int min; /* least width on a narrow terminal; 0 = 4 */
};

struct cell {
	struct str text; /* escaped */
	int width;
	enum tint tint;
};

struct table {
	struct arena *a;
	const struct column *columns;
	size_t ncolumns;
	struct cell *cells; /* row after row */
	size_t ncells, cap;
	enum tint tint; /* of the cells added next */
};

void table_init(struct table *t, struct arena *a, const struct column *columns, size_t n);
void table_cell(struct table *t, struct str text);
void table_cellz(struct table *t, const char *text); /* NULL: "-" */
void table_cellf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void table_render(const struct table *t, const struct style *st, struct buf *out);
