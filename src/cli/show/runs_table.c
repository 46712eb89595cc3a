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

static bool any_costs(const struct doc *runs)
{
	for (size_t i = 0; i < runs->array.n; i++)
		if (doc_num(runs->array.v[i], "cost_usd", 0) > 0)
			return true;
	return false;
}

/* Why it ended, its place in the queue, or which other master has it. */
static void cause_cell(struct table *t, const struct doc *run, struct arena *a)
{
	struct str cause = doc_str(run, "cause", STR("")),
		   url = doc_str(run, "master_url", STR(""));

	const struct doc *queue = doc_table(run, "queue");

	if (!cause.n && queue)
		table_cellz(t, arena_printf(a, "place %" PRId64 " in the queue: %.*s",
					    doc_int(queue, "place", 0),
					    STR_ARG(doc_str(queue, "why", STR("")))));
	else if (!cause.n && url.n)
		table_cellz(t,
			    arena_printf(a, "%.*s at %.*s",
					 STR_ARG(doc_str(run, "master_state", STR("handed over"))),
					 STR_ARG(url)));
	else
		table_cell(t, cause.n ? cause : STR("-"));
}

static bool any_tags(const struct doc *runs)
{
	for (size_t i = 0; i < runs->array.n; i++) {
		const struct doc *tags = doc_array(runs->array.v[i], "tags");

		if (tags && tags->array.n)
			return true;
	}
	return false;
}

static void tags_cell(struct table *t, const struct doc *run)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, RENDER_MAX_LINE);
	tags_add(run, &text);
	table_cell(t, text.n ? buf_str(&text) : STR("-"));
}

static void params_cell(struct table *t, const struct doc *run)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, RENDER_MAX_LINE);
	params_add(run, " ", &text);
	table_cell(t, text.n ? buf_str(&text) : STR("-"));
}

void runs_render(const struct doc *runs, int64_t now_ms, bool params, const struct style *st,
		 struct buf *out)
{
	/* The last three only where they are wanted, or where a run has any. */
	const struct column tags_column = {.title = "TAGS", .min = 6},
			    params_column = {.title = "PARAMS", .min = 6},
			    cost_column = {.title = "USD", .right = true};
	struct column columns[] = {
		{.title = "RUN", .min = 12},
		{.title = "STATE", .min = 9},
		{.title = "NODES", .right = true},
		{.title = "TIME", .right = true, .min = 6},
		{.title = "STARTED", .right = true, .min = 8},
		{.title = "STRATEGY", .min = 6},
		{.title = "ENGINE", .min = 5},
		{.title = "CAUSE", .min = 10},
		{0},
		{0},
		{0},
	};
	size_t n = sizeof(columns) / sizeof(columns[0]) - 3;
	bool costs = any_costs(runs), tags = any_tags(runs);
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct table t;

	if (tags)
		columns[n++] = tags_column;
	if (params)
		columns[n++] = params_column;
	if (costs)
		columns[n++] = cost_column;
	table_init(&t, a, columns, n);
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
		cause_cell(&t, r, a);
		if (tags)
			tags_cell(&t, r);
		if (params)
			params_cell(&t, r);
		if (costs)
			table_cellf(&t, "%.2f", doc_num(r, "cost_usd", 0));
	}
	table_render(&t, st, out);
}
