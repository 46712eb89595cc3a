/* regatta hosts - list the machines that have joined the master, or forget one. */
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
#include "fmt/url.h"

#define PATH "/api/v1/hosts"
#define CALL_MS 10000

static int forget_host(const struct cli_call *c, struct api *api, const char *name, struct err *err)
{
	CLEANUP(buf_release) struct buf path = {0};
	CLEANUP(buf_release) struct buf answer = {0};

	buf_init(&path, 8192);
	buf_init(&answer, API_MAX_ANSWER);
	buf_addz(&path, PATH "/");
	url_encode(&path, str_from(name));
	if (!*name || path.overflow)
		return err_set(
			err, ERR_INVALID,
			"hosts --forget: NAME is missing or too long: 'regatta hosts' lists them");
	if (api_call(api, "DELETE", path.p, STR(""), CALL_MS, &answer, err) < 0)
		return -1;
	if (c->output == OUTPUT_JSON)
		return cli_print(&answer);
	cli_say("host '%s' is forgotten", name);
	return 0;
}

int command_hosts(const struct cli_call *c)
{
	const char *forget = call_text(c, "forget");
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_detect(STDOUT_FILENO);
	struct doc *root;
	struct err err;

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (forget) {
		int code = forget_host(c, &api, forget, &err);

		return code < 0 ? api_fail(&api, &err) : code;
	}
	if (api_get_doc(&api, PATH, a, &root, &err) < 0)
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
