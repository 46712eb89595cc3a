/* regatta ps - the runs as they are now. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

#define DEFAULT_LIMIT 50
#define AT_ONCE 10000	 /* runs that the master gives in one answer */
#define FULL_AT_ONCE 200 /* whole run objects in one answer */
#define MAX_PATH_BYTES 4096

static int print_runs(const struct cli_call *c, const struct doc *runs)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_detect(STDOUT_FILENO);

	buf_init(&out, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON) {
		doc_to_json(runs, &out);
		buf_addc(&out, '\n');
	} else if (runs->array.n) {
		runs_render(runs, clock_wall_ms(), call_flag(c, "params"), &st, &out);
	} else {
		cli_say("%s", call_flag(c, "all")
				      ? "there are no runs yet: 'regatta run' starts one"
				      : "no active runs; 'regatta ps --all' lists the ended ones");
	}
	return cli_print(&out);
}

/* The newest runs as one array; the master answers in pages. */
static int get_runs(struct api *api, const struct cli_call *c, struct arena *a, struct doc *ret,
		    struct err *err)
{
	/* JSON has whole run objects, as `regatta status` prints them; the table needs less. */
	bool full = c->output == OUTPUT_JSON;
	int64_t limit = call_number(c, "limit", DEFAULT_LIMIT),
		at_once = full ? FULL_AT_ONCE : AT_ONCE;
	int64_t left = limit ? limit : INT64_MAX; /* 0: all of them */
	const char *before = NULL;

	for (;;) {
		CLEANUP(buf_release) struct buf path = {0};
		int64_t page = left < at_once ? left : at_once;
		struct doc *root;

		buf_init(&path, MAX_PATH_BYTES);
		buf_printf(&path, "/api/v1/runs?state=%s&limit=%" PRId64 "&full=%d",
			   call_flag(c, "all") ? "all" : "active", page, full);
		api_add_query(&path, "before", before);
		if (api_get_doc(api, path.p, a, &root, err) < 0)
			return -1;
		const struct doc *runs = doc_array(root, "runs");
		int64_t n = runs ? (int64_t)runs->array.n : 0;
		for (int64_t i = 0; i < n; i++)
			doc_append(a, ret, runs->array.v[i]);
		left -= n;
		if (n < page || left <= 0)
			return 0;
		before = arena_str(a, doc_str(runs->array.v[n - 1], "id", STR(""))).p;
	}
}

int command_ps(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	struct doc *runs = doc_new(a, DOC_ARRAY);
	struct err err;

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (get_runs(&api, c, a, runs, &err) < 0)
		return api_fail(&api, &err);
	return print_runs(c, runs);
}
