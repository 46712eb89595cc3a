/* runs_table - the table of `regatta ps`. */
#include <inttypes.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "fmt/doc.h"

static void span_cell(struct table *t, int64_t ms)
{
	char text[32];

	clock_format_span(ms, text);
	table_cellz(t, text);
}

void runs_render(const struct doc *runs, int64_t now_ms, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "RUN", .min = 12},
		{.title = "STATE", .min = 9},
		{.title = "NODES", .right = true},
		{.title = "TIME", .right = true, .min = 6},
		{.title = "STARTED", .right = true, .min = 8},
		{.title = "STRATEGY", .min = 6},
		{.title = "ENGINE", .min = 5},
		{.title = "CAUSE", .min = 10},
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct table t;

	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < runs->array.n; i++) {
		const struct doc *r = runs->array.v[i];
		struct str state = doc_str(r, "state", STR("?"));
		char ago[32], text[40];
		clock_format_span(now_ms - doc_int(r, "created_ms", now_ms), ago);
		snprintf(text, sizeof(text), "%s ago", ago);
		table_cell(&t, doc_str(r, "id", STR("?")));
		t.tint = str_is(state, "failed")      ? TINT_BAD
			 : str_is(state, "succeeded") ? TINT_GOOD
						      : TINT_NONE;
		table_cell(&t, state);
		t.tint = TINT_NONE;
		table_cellf(&t, "%" PRId64, doc_int(doc_table(r, "counts"), "nodes", 0));
		span_cell(&t, doc_int(r, "elapsed_ms", 0));
		table_cellz(&t, text);
		table_cell(&t, doc_str(r, "strategy", STR("-")));
		table_cell(&t, doc_str(r, "engine", STR("-")));
		table_cell(&t, doc_str(r, "cause", STR("-")));
	}
	table_render(&t, st, out);
}
