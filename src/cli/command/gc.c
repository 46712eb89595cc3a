/*
 * regatta gc - finds what runs have left behind in a cloud, and removes it.
 *
 * In its scope is what carries the tag of this home's install and belongs to no live run, or all of an
 * install that is named.  A home without runs lists what other installs have, and touches none of it.
 */
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/interrupt.h"
#include "cli/client/live_runs.h"
#include "cli/command/commands.h"
#include "cli/command/engine_input.h"
#include "cli/show/table.h"
#include "cli/show/terminal.h"
#include "driver/engine_tools.h"
#include "fmt/jsonw.h"

static const char *const state_words[] = {
	[LEFTOVER_OTHER] = "other install",
	[LEFTOVER_LIVE] = "in use",
	[LEFTOVER_FOUND] = "left",
	[LEFTOVER_REMOVED] = "removed",
};

static bool collects(const struct engine_tools *t)
{
	return t->collect;
}

static int refresh(void *ctx, struct err *err)
{
	return live_runs_refresh(ctx, err);
}

static bool is_live(void *ctx, const char *run)
{
	return live_runs_has(ctx, run);
}

/* How many there are in a state. */
static size_t count_of(const struct collection *all, enum leftover_state state)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += all->v[i].state == state;
	return n;
}

static void put_json(const struct collection *all, struct buf *out)
{
	char text[32];
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_key(&w, "resources");
	jsonw_open(&w, '[');
	for (size_t i = 0; i < all->n; i++) {
		const struct leftover *l = &all->v[i];

		jsonw_open(&w, '{');
		jsonw_kz(&w, "kind", l->kind);
		jsonw_kz(&w, "id", l->id);
		jsonw_kz(&w, "region", *l->region ? l->region : NULL);
		jsonw_kz(&w, "install", l->install);
		jsonw_kz(&w, "run", *l->run ? l->run : NULL);
		if (l->expires_ms)
			clock_format(l->expires_ms, text);
		jsonw_kz(&w, "expires", l->expires_ms ? text : NULL);
		jsonw_kz(&w, "state", state_words[l->state]);
		jsonw_kz(&w, "why", l->why);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	jsonw_kint(&w, "left", (int64_t)count_of(all, LEFTOVER_FOUND));
	jsonw_kint(&w, "removed", (int64_t)count_of(all, LEFTOVER_REMOVED));
	jsonw_close(&w);
	buf_addc(out, '\n');
}

/* Of other installs only where they are what was asked for. */
static void put_table(const struct collection *all, bool others, struct arena *a, struct buf *out)
{
	static const struct column columns[] = {{.title = "INSTALL"}, {.title = "RUN"},
						{.title = "KIND"},    {.title = "ID", .min = 12},
						{.title = "REGION"},  {.title = "STATE"},
						{.title = "WHY"}};
	struct style st = style_detect(STDOUT_FILENO);
	struct table t;

	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < all->n; i++) {
		const struct leftover *l = &all->v[i];

		if (l->state == LEFTOVER_OTHER && !others)
			continue;
		table_cellz(&t, l->install);
		table_cellz(&t, *l->run ? l->run : NULL);
		table_cellz(&t, l->kind);
		table_cellz(&t, l->id);
		table_cellz(&t, *l->region ? l->region : NULL);
		table_cellz(&t, state_words[l->state]);
		table_cellz(&t, l->why ? l->why : "");
	}
	if (t.ncells)
		table_render(&t, &st, out);
}

static void say_sum(const struct collection *all, const struct collect_input *in, bool lists)
{
	size_t found = count_of(all, LEFTOVER_FOUND), others = count_of(all, LEFTOVER_OTHER);

	if (lists && others == all->n) {
		cli_say(others ? "this home has no runs, so nothing was touched: 'regatta gc --install "
				 "ID' removes all of an install"
			       : "nothing carries the tags of Regatta");
		return;
	}
	if (found && in->dry_run)
		cli_say("%zu would be removed", found);
	else if (found)
		cli_say("%zu could not be removed: see WHY, and run it again", found);
	else
		cli_say("nothing of install %s is left%s", in->install,
			count_of(all, LEFTOVER_LIVE) ? " but what is in use" : "");
	if (others)
		cli_say("%zu of other installs were not touched: 'regatta gc --install ID' removes "
			"them",
			others);
}

/* The exit code: 0 if nothing in the scope is left. */
static int show(const struct cli_call *c, bool lists, const struct collection *all, struct arena *a)
{
	CLEANUP(buf_release) struct buf out = {0};
	int code;

	buf_init(&out, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON)
		put_json(all, &out);
	else
		put_table(all, lists, a, &out);
	code = cli_print(&out);
	if (code != 0)
		return code;
	return count_of(all, LEFTOVER_FOUND) || (lists && count_of(all, LEFTOVER_OTHER)) ? 1 : 0;
}

/* lists: what other installs have is in the answer, too. */
static int collect(const struct cli_call *c, const struct engine_tools *t, struct collect_input *in,
		   bool lists, struct arena *a)
{
	struct collection all = {0};
	struct err err;
	int code, rc;

	if (interrupt_begin(&err) < 0)
		return cli_fail(&err);
	in->stop = interrupt_flag;
	rc = t->collect(in, a, &all, &err);
	code = show(c, lists, &all, a);
	if (rc == 0)
		say_sum(&all, in, lists);
	else
		code = cli_fail(&err);
	if (rc < 0 && err.kind == ERR_CANCELLED)
		cli_say("what is left now is found by the next 'regatta gc'");
	interrupt_end();
	return code;
}

int command_gc(const struct cli_call *c)
{
	const struct engine_tools *t = engine_input(c, collects);
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *home = NULL;
	struct live_runs *live = NULL;
	struct err err;
	int code;

	if (!t)
		return 2;
	const char *region = call_text(c, "region"), *namespace = call_text(c, "namespace");

	if ((region || namespace) && call_flag(c, "all-regions")) {
		cli_say("gc: --%s and --all-regions exclude each other",
			region ? "region" : "namespace");
		return 2;
	}
	if (region && namespace) {
		cli_say("gc: --region and --namespace are the same here: give one");
		return 2;
	}
	if (home_find(&home, &err) < 0 || home_check_owner(home, &err) < 0 ||
	    live_runs_open(home, a, &live, &err) < 0)
		return cli_fail(&err);

	const char *own = live ? live_runs_install(live) : NULL, *named = call_text(c, "install");
	struct collect_input in = {
		.context = call_text(c, "kube-context"),
		.region = namespace ? namespace : region,
		.all_regions = call_flag(c, "all-regions"),
		.install = named ? named : own,
		.has_ledger = own && (!named || strcmp(named, own) == 0),
		.dry_run = call_flag(c, "dry-run"),
		.refresh = refresh,
		.is_live = is_live,
		.ctx = live,
	};

	code = collect(c, t, &in, !named && !(live && live_runs_had_any(live)), a);
	live_runs_free(live);
	return code;
}
