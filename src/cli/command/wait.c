/* regatta wait - until runs have ended. */
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/watch.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

struct waited {
	struct api api; /* of the master that knows the run's end */
	char *id;
};

struct wait_runs {
	const struct cli_call *c;
	struct waited *v;
	size_t n;
	struct buf out;
	size_t printed; /* objects in the array of --output json */
};

/* All runs are looked for before the first is waited for.  0, or the exit code after a message. */
static int find_runs(struct wait_runs *w)
{
	size_t n = w->c->nargs ? w->c->nargs : 1;
	struct err err;

	w->v = xcalloc(n, sizeof(*w->v));
	for (size_t i = 0; i < n; i++) {
		struct waited *x = &w->v[i];

		if (api_open_named(&x->api, w->c, true, &err) < 0)
			return cli_fail(&err);
		w->n++;
		if (api_pick_run_to_end(&x->api, call_arg(w->c, i), &x->id, &err) < 0)
			return api_fail(&x->api, &err);
		api_drop(&x->api); /* many runs need one connection at a time */
	}
	return 0;
}

static int wait_for(struct wait_runs *w, struct waited *x)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct style st = style_detect(STDOUT_FILENO);
	struct str json;
	struct doc *run;
	struct err err;

	if (api_await_run(&x->api, x->id, a, &json, &run, &err) < 0)
		return api_fail(&x->api, &err);
	api_drop(&x->api);
	int code = call_flag(w->c, "job-code") ? run_job_code(run) : run_exit_code(run);

	if (w->c->output == OUTPUT_JSON) {
		buf_addz(&w->out, w->printed++ ? ",\n " : "[");
		buf_addstr(&w->out, json);
		return code;
	}
	run_line_render(run, &st, &w->out);
	int printed = cli_print(&w->out);

	buf_reset(&w->out);
	return code ? code : printed;
}

static int wait_for_all(struct wait_runs *w)
{
	int code = find_runs(w);

	if (code)
		return code;
	for (size_t i = 0; i < w->n; i++) {
		int one = wait_for(w, &w->v[i]);

		code = code ? code : one;
	}
	if (w->c->output == OUTPUT_JSON)
		buf_addz(&w->out, w->printed ? "]\n" : "[]\n");
	int printed = cli_print(&w->out);

	return code ? code : printed;
}

int command_wait(const struct cli_call *c)
{
	struct wait_runs w = {.c = c};

	buf_init(&w.out, CLI_MAX_TEXT);
	int code = wait_for_all(&w);

	for (size_t i = 0; i < w.n; i++) {
		api_release(&w.v[i].api);
		free(w.v[i].id);
	}
	free(w.v);
	buf_release(&w.out);
	return code;
}
