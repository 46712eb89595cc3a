/* regatta outputs - list the files that a run has kept. */
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

int command_outputs(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json = {0}, out = {0};
	CLEANUP(freep) char *id = NULL;
	struct style st = style_detect(STDOUT_FILENO);
	struct doc *root;
	struct err err;

	buf_init(&json, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, call_arg(c, 0), &id, &err) < 0)
		return api_fail(&api, &err);
	CLEANUP(freep) char *path = api_run_path(id, "/outputs");
	if (api_get(&api, path, &json, &err) < 0 || reply_parse(buf_str(&json), a, &root, &err) < 0)
		return api_fail(&api, &err);
	const struct doc *files = doc_array(root, "files");

	if (c->output == OUTPUT_JSON) {
		buf_addstr(&out, str_trim(buf_str(&json)));
		buf_addc(&out, '\n');
	} else if (files && files->array.n) {
		outputs_render(files, &st, &out);
	} else {
		cli_say("run '%.60s' has no outputs: no file that it wrote is one that [output] keep of its job names",
			id);
	}
	return cli_print(&out);
}
