/* regatta hosts - the machines that have joined the master. */
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

int command_hosts(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_detect(STDOUT_FILENO);
	struct doc *root;
	struct err err;

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_get_doc(&api, "/api/v1/hosts", a, &root, &err) < 0)
		return api_fail(&api, &err);
	const struct doc *hosts = doc_array(root, "hosts");

	buf_init(&out, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON) {
		doc_to_json(hosts ? hosts : doc_new(a, DOC_ARRAY), &out);
		buf_addc(&out, '\n');
	} else if (hosts && hosts->array.n) {
		hosts_render(hosts, &st, &out);
	} else {
		cli_say("no host has joined: 'regatta master --listen 0.0.0.0:5436' prints the line to "
			"run on each");
	}
	return cli_print(&out);
}
