#include "cli/command/context_found.h"

#include <unistd.h>

#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/find_masters.h"
#include "cli/client/interrupt.h"
#include "cli/show/table.h"
#include "cli/show/terminal.h"
#include "driver/engine_tools.h"
#include "fmt/jsonw.h"

static void put_json(const struct running_masters *all, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '[');
	for (size_t i = 0; i < all->n; i++) {
		const struct running_master *m = &all->v[i];

		jsonw_open(&w, '{');
		jsonw_kz(&w, "run", m->run);
		jsonw_kz(&w, "url", m->url);
		jsonw_kz(&w, "state", m->state);
		jsonw_kz(&w, "install", m->install);
		jsonw_kz(&w, "region", m->region);
		jsonw_kz(&w, "why", m->why);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	buf_addc(out, '\n');
}

static void put_table(const struct running_masters *all, struct arena *a, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "RUN"}, {.title = "URL"}, {.title = "STATE"}, {.title = "WHY"}};
	struct style st = style_detect(STDOUT_FILENO);
	struct table t;

	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < all->n; i++) {
		const struct running_master *m = &all->v[i];

		table_cellz(&t, m->run);
		table_cellz(&t, m->url);
		table_cellz(&t, m->state);
		table_cellz(&t, m->why ? m->why : "");
	}
	if (t.ncells)
		table_render(&t, &st, out);
}

int context_found(const struct cli_call *c, const char *home, struct arena *a, struct buf *out,
		  struct err *err)
{
	const char *namespace = call_text(c, "namespace");
	const struct masters_input in = {
		.context = call_text(c, "kube-context"),
		.region = namespace ? namespace : call_text(c, "region"),
	};
	struct running_masters all = {0};
	int rc = interrupt_begin(err);

	if (rc == 0) {
		rc = masters_find(home, call_arg(c, 0), &in, a, &all, err);
		interrupt_end();
	}
	if (rc < 0)
		return -1;
	if (c->output == OUTPUT_JSON)
		put_json(&all, out);
	else
		put_table(&all, a, out);
	if (all.n)
		cli_say("'regatta status RUN' and other commands reach them from here now");
	else
		cli_say("no master runs on a machine there");
	return 0;
}
