#include "cli/command/exit_code.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/watch.h"
#include "cli/show/render.h"
#include "fmt/doc.h"

int exit_code_now(const struct doc *run)
{
	if (!run_ended(run))
		cli_say("%.*s has not ended: it has no exit code yet",
			STR_ARG(doc_str(run, "id", STR("the run"))));
	return run_exit_code(run);
}

int exit_code_later(const struct cli_call *c, const char *run, bool wait)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(freep) char *id = NULL;
	struct doc *shown;
	struct str json;
	struct err err;

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run_to_end(&api, run, &id, &err) < 0)
		return api_fail(&api, &err);
	CLEANUP(freep) char *path = api_run_path(id, "");
	int rc = wait && !cli_reader_gone() ? api_await_run(&api, id, a, &json, &shown, &err)
					    : api_get_doc(&api, path, a, &shown, &err);

	return rc < 0 ? api_fail(&api, &err) : exit_code_now(shown);
}
