/* nodes_table - the nodes of a run, a row for each. */
#include <inttypes.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

static void node_metrics(const struct doc *node, struct buf *out)
{
	const struct doc *m = doc_table(node, "metrics");
	char number[32];

	for (size_t i = 0; m && i < m->table.n; i++) {
		const struct doc *v = m->table.v[i].value;
		if (v->type != DOC_INT && v->type != DOC_FLOAT)
			continue;
		number_format(v->type == DOC_INT ? (double)v->i : v->f, number);
		buf_printf(out, "%s%.*s %s", out->n ? ", " : "", STR_ARG(m->table.v[i].key),
			   number);
	}
}

static enum tint node_tint(const struct doc *node)
{
	struct str state = doc_str(node, "state", STR(""));

	if (str_is(state, "lost") || doc_int(node, "exit_code", 0) != 0)
		return TINT_BAD;
	return doc_int(node, "signal", 0) != 0 ? TINT_WARN : TINT_NONE;
}

/* "running", "running, attempt 2", "dormant". */
static void add_state_cell(struct table *t, const struct doc *node)
{
	struct str state = doc_bool(node, "dormant", false) ? STR("dormant")
							    : doc_str(node, "state", STR("?"));
	int64_t attempt = doc_int(node, "attempt", 1);

	if (attempt > 1)
		table_cellf(t, "%.*s, attempt %" PRId64, STR_ARG(state), attempt);
	else
		table_cell(t, state);
}

static void add_node_row(struct table *t, const struct doc *node)
{
	CLEANUP(buf_release) struct buf story, values;
	char size[32];

	buf_init(&story, RENDER_MAX_LINE);
	buf_init(&values, RENDER_MAX_LINE);
	node_describe_end(node, &story);
	node_metrics(node, &values);
	bytes_format(doc_int(node, "log_bytes", 0) + doc_int(node, "err_bytes", 0), size);
	t->tint = node_tint(node);
	table_cell(t, doc_str(node, "name", STR("?")));
	add_state_cell(t, node);
	t->tint = TINT_NONE;
	table_cellf(t, "%" PRId64, doc_int(node, "job_rank", doc_int(node, "rank", 0)));
	table_cell(t, doc_str(node, "address", STR("-")));
	table_cellz(t, size);
	table_cell(t, story.n ? buf_str(&story) : STR("-"));
	table_cell(t, values.n ? buf_str(&values) : STR("-"));
}

void nodes_table_render(const struct doc *run, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "NODE", .min = 9},
		{.title = "STATE", .min = 7},
		{.title = "RANK", .right = true},
		{.title = "ADDRESS", .min = 9},
		{.title = "OUTPUT", .right = true, .min = 8},
		{.title = "END", .min = 6},
		{.title = "METRICS", .min = 8},
	};
	const struct doc *nodes = doc_array(run, "nodes");
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct table t;

	if (!nodes || nodes->array.n == 0)
		return;
	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < nodes->array.n; i++)
		add_node_row(&t, nodes->array.v[i]);
	table_render(&t, st, out);
}
