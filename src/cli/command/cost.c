/* regatta cost - what a run has cost, by role. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

static void add_row(struct table *t, struct str name, const struct doc *line)
{
	const struct doc *idle = doc_get(line, "idle");

	table_cell(t, name);
	table_cellf(t, "%" PRId64, doc_int(line, "machines", 0));
	table_cellf(t, "%.3f", doc_num(line, "hours", 0));
	table_cellf(t, "%.4f", doc_num(line, "usd", 0));
	if (idle && idle->type != DOC_NULL)
		table_cellf(t, "%.0f %%", 100 * doc_num(line, "idle", 0));
	else
		table_cellz(t, "-");
}

static void render(const struct doc *cost, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "ROLE", .min = 8},	   {.title = "MACHINES", .right = true},
		{.title = "HOURS", .right = true}, {.title = "USD", .right = true},
		{.title = "IDLE", .right = true},
	};
	const struct doc *roles = doc_array(cost, "roles");
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct table t;

	if (!roles || roles->array.n == 0) {
		buf_addz(out, "nothing: its machines have no price\n");
		return;
	}
	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < roles->array.n; i++)
		add_row(&t, doc_str(roles->array.v[i], "name", STR("?")), roles->array.v[i]);
	add_row(&t, STR("total"), cost);
	table_render(&t, st, out);
	if (doc_int(cost, "steps", 0) > 0)
		buf_printf(out, "%.3g USD per step (%" PRId64 " steps)\n",
			   doc_num(cost, "usd_per_step", 0), doc_int(cost, "steps", 0));
	if (doc_num(cost, "samples", 0) > 0)
		buf_printf(out, "%.3g USD per 1,000 samples (about %.0f samples)\n",
			   doc_num(cost, "usd_per_1k_samples", 0), doc_num(cost, "samples", 0));
	if (doc_num(cost, "max_cost", 0) > 0)
		buf_printf(out, "max_cost is %.2f USD\n", doc_num(cost, "max_cost", 0));
	buf_addz(out, "prices of ");
	text_add_escaped(out, doc_str(cost, "as_of", STR("?")));
	buf_addz(out, ", on demand\n");
}

int command_cost(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json, out;
	CLEANUP(freep) char *id = NULL;
	struct style st = style_detect(STDOUT_FILENO);
	struct doc *cost;
	struct err err;

	buf_init(&json, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, call_arg(c, 0), &id, &err) < 0)
		return api_fail(&api, &err);
	CLEANUP(freep) char *path = api_run_path(id, "/cost");
	if (api_get(&api, path, &json, &err) < 0 || reply_parse(buf_str(&json), a, &cost, &err) < 0)
		return api_fail(&api, &err);
	if (c->output == OUTPUT_JSON)
		return cli_print(&json);
	render(cost, &st, &out);
	return cli_print(&out);
}
