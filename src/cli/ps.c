/* regatta ps, status - runs as they are now. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/render.h"
#include "cli/term.h"
#include "fmt/doc.h"

#define DEFAULT_LIMIT 50

static int print_runs(const struct call *c, const struct doc *runs)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_of(STDOUT_FILENO);

	buf_init(&out, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON) {
		doc_to_json(runs, &out);
		buf_addc(&out, '\n');
	} else if (runs->array.n) {
		runs_render(runs, clock_wall_ms(), &st, &out);
	} else {
		cli_say("%s", call_flag(c, "all")
				      ? "there are no runs yet: 'regatta run' starts one"
				      : "no active runs; 'regatta ps --all' lists the ended ones");
	}
	return cli_print(&out);
}

int command_ps(const struct call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	struct doc *root;
	struct err err;
	char path[96];

	/* Scripts get whole run objects, as status prints them; the table needs less. */
	snprintf(path, sizeof(path), "/api/v1/runs?state=%s&limit=%" PRId64 "&full=%d",
		 call_flag(c, "all") ? "all" : "active", call_number(c, "limit", DEFAULT_LIMIT),
		 c->output == OUTPUT_JSON);
	if (api_open(&api, true, &err) < 0)
		return cli_fail(&err);
	if (api_get_doc(&api, path, a, &root, &err) < 0)
		return api_fail(&api, &err);
	const struct doc *runs = doc_array(root, "runs");
	return print_runs(c, runs ? runs : doc_new(a, DOC_ARRAY));
}

int command_status(const struct call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json, out;
	CLEANUP(freep) char *id = NULL;
	struct style st = style_of(STDOUT_FILENO);
	struct doc *run;
	struct err err;

	buf_init(&json, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	if (api_open(&api, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, call_arg(c, 0), &id, &err) < 0)
		return api_fail(&api, &err);
	CLEANUP(freep) char *path = api_run_path(id, "");
	if (api_get(&api, path, &json, &err) < 0 || reply_parse(buf_str(&json), a, &run, &err) < 0)
		return api_fail(&api, &err);
	if (c->output == OUTPUT_JSON) {
		buf_addstr(&out, str_trim(buf_str(&json)));
		buf_addc(&out, '\n');
	} else {
		status_render(run, &st, &out);
	}
	return cli_print(&out);
}
