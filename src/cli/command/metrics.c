/* regatta metrics - figures of a run. */
#include <stdlib.h>
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

static char *metrics_path(const struct cli_call *c, const char *id)
{
	CLEANUP(buf_release) struct buf b = {0};
	CLEANUP(freep) char *path = api_run_path(id, "/metrics");
	const char *name = call_arg(c, 1);

	buf_init(&b, 64 * 1024);
	buf_addz(&b, path);
	api_add_query(&b, "name", name);
	api_add_query(&b, "node", call_text(c, "node"));
	/* A metric given by name may be one of the machine's. */
	api_add_query(&b, "host", name || call_flag(c, "host") ? "1" : NULL);
	return buf_take(&b);
}

static int check_known(const struct cli_call *c, const char *id, const struct doc *metrics,
		       struct err *err)
{
	const struct doc *m = doc_table(metrics, "metrics");

	if (m && m->table.n)
		return 0;
	if (call_arg(c, 1))
		return err_set(
			err, ERR_NOT_FOUND,
			"run '%.60s' has no metric '%.80s': 'regatta metrics %.60s --host' lists them",
			id, call_arg(c, 1), id);
	if (call_flag(c, "host"))
		cli_say("run '%.60s' has no metrics", id);
	else
		cli_say("run '%.60s' has no metrics of its own: 'regatta metrics %.60s --host' shows those of "
			"its nodes",
			id, id);
	return 0;
}

int command_metrics(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json, out;
	CLEANUP(freep) char *id = NULL;
	struct style st = style_detect(STDOUT_FILENO);
	struct doc *metrics;
	struct err err;

	buf_init(&json, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, call_arg(c, 0), &id, &err) < 0)
		return api_fail(&api, &err);
	CLEANUP(freep) char *path = metrics_path(c, id);
	if (api_get(&api, path, &json, &err) < 0 ||
	    reply_parse(buf_str(&json), a, &metrics, &err) < 0 ||
	    check_known(c, id, metrics, &err) < 0)
		return api_fail(&api, &err);
	const struct doc *m = doc_table(metrics, "metrics");
	if (c->output == OUTPUT_JSON) {
		buf_addstr(&out, str_trim(buf_str(&json)));
		buf_addc(&out, '\n');
	} else if (m && m->table.n) {
		metrics_render(metrics, &st, &out);
	}
	return cli_print(&out);
}
