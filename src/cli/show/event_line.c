/* event_line - an event of a run as one line. */
#include <inttypes.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

void event_render(const struct doc *event, const struct style *st, struct buf *out)
{
	static const char *const known[] = {"seq", "time_ms", "kind", "node", "text", NULL};
	CLEANUP(buf_release) struct buf line = {0};
	char when[32];

	buf_init(&line, RENDER_MAX_LINE);
	clock_format(doc_int(event, "time_ms", 0), when);
	/* The time of day with milliseconds; `regatta status` has the date. */
	buf_printf(&line, "%6" PRId64 "  %.12s  ", doc_int(event, "seq", 0), when + 11);
	text_add_escaped(&line, doc_str(event, "kind", STR("?")));
	struct str node = doc_str(event, "node", STR("")), text = doc_str(event, "text", STR(""));
	if (node.n) {
		buf_addz(&line, "  ");
		text_add_escaped(&line, node);
	}
	if (text.n) {
		buf_addz(&line, "  ");
		text_add_escaped(&line, text);
	}
	for (size_t i = 0; event->type == DOC_TABLE && i < event->table.n; i++) {
		const struct doc_entry *e = &event->table.v[i];
		bool shown = e->value->type == DOC_NULL;
		for (size_t k = 0; known[k]; k++)
			shown = shown || str_is(e->key, known[k]);
		if (shown)
			continue;
		CLEANUP(buf_release) struct buf value = {0};
		buf_init(&value, RENDER_MAX_LINE);
		doc_to_json(e->value, &value);
		buf_addz(&line, "  ");
		text_add_escaped(&line, e->key);
		buf_addc(&line, '=');
		text_add_escaped(&line, buf_str(&value));
	}
	text_fit(out, buf_str(&line), st);
}
