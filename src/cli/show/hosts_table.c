/* hosts_table - the table of `regatta hosts`. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "fmt/doc.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

static void labels_cell(struct table *t, const struct doc *labels, struct arena *a)
{
	const char *text = "";

	for (size_t i = 0; labels && i < labels->table.n; i++) {
		const struct doc_entry *e = &labels->table.v[i];

		text = arena_printf(a, "%s%s%.*s=%.*s", text, i ? "," : "", STR_ARG(e->key),
				    STR_ARG(e->value->s));
	}
	table_cellz(t, *text ? text : "-");
}

void hosts_render(const struct doc *hosts, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "HOST", .min = 10},
		{.title = "STATE", .min = 5},
		{.title = "RUN", .min = 10},
		{.title = "CPUS", .right = true},
		{.title = "MEMORY", .right = true, .min = 8},
		{.title = "GPUS", .right = true},
		{.title = "ADDRESS", .min = 9},
		{.title = "LABELS", .min = 8},
		{.title = "VERSION", .min = 7},
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct table t;

	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < hosts->array.n; i++) {
		const struct doc *h = hosts->array.v[i];
		struct str state = doc_str(h, "state", STR("?"));

		table_cell(&t, doc_str(h, "name", STR("?")));
		t.tint = str_is(state, "gone")	 ? TINT_BAD
			 : str_is(state, "free") ? TINT_GOOD
						 : TINT_NONE;
		table_cell(&t, state);
		t.tint = TINT_NONE;
		table_cell(&t, doc_str(h, "run", STR("-")));
		table_cellf(&t, "%" PRId64, doc_int(h, "cpus", 0));
		table_cellf(&t, "%.1f GiB", (double)doc_int(h, "memory", 0) / GIB);
		table_cellf(&t, "%" PRId64, doc_int(h, "gpus", 0));
		table_cell(&t, doc_str(h, "address", STR("-")));
		labels_cell(&t, doc_table(h, "labels"), a);
		table_cell(&t, doc_str(h, "version", STR("-")));
	}
	table_render(&t, st, out);
}
