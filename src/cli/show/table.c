#include "cli/show/table.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/escape.h"

#define GAP 2 /* columns between columns */
#define DEFAULT_MIN 4
#define MAX_CELL (64 * 1024)

void table_init(struct table *t, struct arena *a, const struct column *columns, size_t n)
{
	*t = (struct table){.a = a, .columns = columns, .ncolumns = n};
}

void table_cell(struct table *t, struct str text)
{
	CLEANUP(buf_release) struct buf b = {0};

	buf_init(&b, MAX_CELL);
	escape_terminal(&b, text);
	if (t->ncells == t->cap) {
		size_t cap = t->cap ? 2 * t->cap : 64;
		struct cell *v = arena_array(t->a, struct cell, cap);
		if (t->ncells)
			memcpy(v, t->cells, t->ncells * sizeof(*v));
		t->cells = v;
		t->cap = cap;
	}
	for (size_t i = 0; i < b.n; i++)
		if (b.p[i] == '\t')
			b.p[i] = ' ';
	struct str s = arena_str(t->a, buf_str(&b));
	t->cells[t->ncells++] = (struct cell){s, text_width(s), t->tint};
}

void table_cellz(struct table *t, const char *text)
{
	table_cell(t, str_from(text ? text : "-"));
}

void table_cellf(struct table *t, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_cell(t, str_from(text));
}

static int total_width(const int *w, size_t n)
{
	int total = 0;

	for (size_t i = 0; i < n; i++)
		total += w[i] + (i ? GAP : 0);
	return total;
}

/* Cut widths until the columns fit; returns how many columns are left. */
static size_t squeeze(const struct table *t, int *w, int room)
{
	size_t n = t->ncolumns;

	while (n > 1 && total_width(w, n) > room) {
		size_t widest = n;
		for (size_t i = 0; i < n; i++) {
			int min = t->columns[i].min ? t->columns[i].min : DEFAULT_MIN;
			if (w[i] > min && (widest == n || w[i] > w[widest]))
				widest = i;
		}
		if (widest == n)
			n--;
		else
			w[widest]--;
	}
	return n;
}

static void spaces(struct buf *out, int n)
{
	if (n > 0)
		buf_printf(out, "%*s", n, "");
}

static void render_row(const struct table *t, const struct cell *row, const int *w, size_t n,
		       const struct style *st, struct buf *out)
{
	for (size_t i = 0; i < n; i++) {
		const struct cell *c = &row[i];
		int pad = w[i] - (c->width < w[i] ? c->width : w[i]);
		spaces(out, i ? GAP : 0);
		if (t->columns[i].right)
			spaces(out, pad);
		enum tint tint = c->width ? c->tint : TINT_NONE;
		tint_on(out, st, tint);
		int used = text_clip(out, c->text, w[i], st);
		tint_off(out, st, tint);
		/* A wide character that did not fit leaves a column free. */
		int slack = c->width > w[i] ? w[i] - used : 0;
		if (i + 1 < n)
			spaces(out, slack + (t->columns[i].right ? 0 : pad));
	}
	while (out->n && out->p[out->n - 1] == ' ')
		out->n--;
	buf_addc(out, '\n');
}

void table_render(const struct table *t, const struct style *st, struct buf *out)
{
	int w[TABLE_MAX_COLUMNS] = {0};
	struct cell titles[TABLE_MAX_COLUMNS];
	size_t n = t->ncolumns;

	if (n == 0 || n > TABLE_MAX_COLUMNS)
		return;
	for (size_t i = 0; i < n; i++) {
		struct str title = str_from(t->columns[i].title);
		titles[i] = (struct cell){title, text_width(title), TINT_DIM};
		w[i] = titles[i].width;
	}
	for (size_t row = 0; row + n <= t->ncells; row += n)
		for (size_t i = 0; i < n; i++)
			if (t->cells[row + i].width > w[i])
				w[i] = t->cells[row + i].width;
	size_t shown = n;
	if (st->width) {
		shown = squeeze(t, w, st->width);
		if (shown == 1 && w[0] > st->width)
			w[0] = st->width;
	}
	render_row(t, titles, w, shown, st, out);
	for (size_t row = 0; row + n <= t->ncells; row += n)
		render_row(t, &t->cells[row], w, shown, st, out);
}
