/* outputs_table - the table of `regatta outputs`. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "fmt/doc.h"

void outputs_render(const struct doc *files, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "PATH", .min = 16},
		{.title = "BYTES", .right = true, .min = 8},
		{.title = "SHA256", .min = 8},
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct table t;

	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < files->array.n; i++) {
		const struct doc *f = files->array.v[i];
		struct str link = doc_str(f, "link", STR(""));

		if (link.n)
			table_cellf(&t, "%.*s -> %.*s", STR_ARG(doc_str(f, "path", STR("?"))),
				    STR_ARG(link));
		else
			table_cell(&t, doc_str(f, "path", STR("?")));
		table_cellf(&t, "%" PRId64, doc_int(f, "size", 0));
		table_cell(&t, doc_str(f, "sha256", STR("-")));
	}
	table_render(&t, st, out);
}
