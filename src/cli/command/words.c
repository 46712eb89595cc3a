/* regatta words - the candidates of shell completion: never starts a master and never reports an error. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/contexts.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "fmt/doc.h"
#include "fmt/schema.h"
#include "plan/plan.h"
#include "strategy/strategy.h"

#define MAX_DEPTH 4

static void add_keys(const struct schema *sc, const char *prefix, int depth, struct arena *a,
		     struct buf *out)
{
	for (const struct field *f = sc->fields; f->name; f++) {
		const char *key = arena_printf(a, "%s%s", prefix, f->name);
		buf_printf(out, "%s\n", key);
		if (f->sub && f->type == FIELD_TABLE && depth < MAX_DEPTH)
			add_keys(f->sub, arena_printf(a, "%s.", key), depth + 1, a, out);
	}
}

static void add_names(const struct doc *list, const char *key, struct buf *out)
{
	for (size_t i = 0; list && i < list->array.n; i++) {
		struct str name = doc_str(list->array.v[i], key, STR(""));
		if (name.n == 0)
			continue;
		text_add_escaped(out, name);
		buf_addc(out, '\n');
	}
}

static void add_from_master(const struct cli_call *c, bool nodes, struct arena *a, struct buf *out)
{
	CLEANUP(api_release) struct api api = {0};
	struct doc *d;
	struct err err;

	if (nodes && !call_arg(c, 1))
		return;
	CLEANUP(freep)
	char *path = nodes ? api_run_path(call_arg(c, 1), "")
			   : xstrdup("/api/v1/runs?state=all&limit=200");
	CLEANUP(freep) char *run = NULL;

	if (api_open_named(&api, c, false, &err) < 0 ||
	    (nodes && api_pick_run(&api, call_arg(c, 1), &run, &err) < 0) ||
	    api_get_doc(&api, path, a, &d, &err) < 0)
		return;
	add_names(doc_array(d, nodes ? "nodes" : "runs"), nodes ? "name" : "id", out);
}

static void add_contexts(struct arena *a, struct buf *out)
{
	CLEANUP(freep) char *home = NULL;
	const char **names;
	struct err err;
	size_t n;

	buf_addz(out, CONTEXT_LOCAL "\n");
	if (home_find(&home, &err) < 0 || context_list(home, a, &names, &n, &err) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s\n", names[i]);
}

int command_words(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out = {0};
	const char *list = call_arg(c, 0);

	buf_init(&out, CLI_MAX_TEXT);
	if (strcmp(list, "keys") == 0)
		add_keys(plan_job_schema(a), "", 0, a, &out);
	else if (strcmp(list, "strategies") == 0)
		for (const char *const *s = strategy_names(); *s; s++)
			buf_printf(&out, "%s\n", *s);
	else if (strcmp(list, "contexts") == 0)
		add_contexts(a, &out);
	else
		add_from_master(c, strcmp(list, "nodes") == 0, a, &out);
	return cli_print(&out);
}
