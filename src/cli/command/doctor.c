/* regatta doctor - could a run start here, and if not, what is to be done. */
#include <stdint.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/command/engine_input.h"
#include "cli/show/table.h"
#include "cli/show/terminal.h"
#include "driver/engine_tools.h"
#include "fmt/jsonw.h"

static const struct {
	const char *word;
	enum tint tint;
} states[] = {
	[CHECK_FINE] = {"fine", TINT_GOOD},
	[CHECK_WARNING] = {"warning", TINT_WARN},
	[CHECK_BAD] = {"bad", TINT_BAD},
};

static bool checks(const struct engine_tools *t)
{
	return t->check;
}

static bool is_well(const struct checkup *c)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->v[i].state == CHECK_BAD)
			return false;
	return true;
}

static void put_json(const struct engine_tools *t, const struct checkup *c, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "engine", t->engine);
	jsonw_kbool(&w, "ok", is_well(c));
	jsonw_key(&w, "checks");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < c->n; i++) {
		jsonw_open(&w, '{');
		jsonw_kz(&w, "name", c->v[i].name);
		jsonw_kz(&w, "state", states[c->v[i].state].word);
		jsonw_kz(&w, "what", c->v[i].what);
		jsonw_kz(&w, "todo", c->v[i].todo);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	jsonw_close(&w);
	buf_addc(out, '\n');
}

static void put_table(const struct checkup *c, struct buf *out)
{
	static const struct column columns[] = {{.title = "CHECK", .min = 11},
						{.title = "STATE", .min = 7},
						{.title = "WHAT", .min = 12},
						{.title = "WHAT TO DO", .min = 12}};
	struct style st = style_detect(STDOUT_FILENO);
	struct table t;

	table_init(&t, c->a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < c->n; i++) {
		table_cellz(&t, c->v[i].name);
		t.tint = states[c->v[i].state].tint;
		table_cellz(&t, states[c->v[i].state].word);
		t.tint = TINT_NONE;
		table_cellz(&t, c->v[i].what);
		table_cellz(&t, c->v[i].todo ? c->v[i].todo : "");
	}
	table_render(&t, &st, out);
}

/* Nothing is started: a master that does not run is an answer. */
static int ask_master(void *ctx, const char *path, struct arena *a, struct doc **ret,
		      struct err *err)
{
	CLEANUP(api_release) struct api api = {0};

	if (api_open_named(&api, ctx, false, err) < 0)
		return -1;
	return api_get_doc(&api, path, a, ret, err);
}

int command_doctor(const struct cli_call *c)
{
	const struct engine_tools *t = engine_input(c, checks);
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out = {0};
	CLEANUP(freep) char *home = NULL;
	struct checkup all = {.a = a, .ask = ask_master, .ctx = (void *)(uintptr_t)c};
	struct err err;
	int code;

	if (!t)
		return 2;
	if (home_find(&home, &err) < 0)
		return cli_fail(&err);
	all.home = home;
	all.context = call_text(c, "kube-context");
	all.region = call_text(c, "namespace");
	t->check(&all);
	buf_init(&out, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON)
		put_json(t, &all, &out);
	else
		put_table(&all, &out);
	code = cli_print(&out);
	return code == 0 && !is_well(&all) ? 1 : code;
}
