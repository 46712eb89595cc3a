/* regatta kill - cancel runs. */
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/watch.h"
#include "cli/command/commands.h"
#include "cli/command/each_run.h"
#include "cli/show/render.h"
#include "fmt/doc.h"

static int kill_one(struct each_run *e, const char *run, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf json = {0};
	bool now = call_flag(e->c, "now");
	struct doc *d;

	buf_init(&json, API_MAX_ANSWER);
	if (api_cancel_run(e->api, run, now, &json, err) < 0 ||
	    reply_parse(buf_str(&json), a, &d, err) < 0)
		return -1;
	if (e->c->output == OUTPUT_JSON) {
		each_run_add(e, buf_str(&json));
		return 0;
	}
	text_add_escaped(&e->out, doc_str(d, "id", str_from(run)));
	if (run_ended(d)) {
		buf_addz(&e->out, " had ended: ");
		text_add_escaped(&e->out, doc_str(d, "state", STR("?")));
	} else {
		buf_addz(&e->out, now ? " is being killed" : " is being cancelled");
	}
	buf_addc(&e->out, '\n');
	return 0;
}

int command_kill(const struct cli_call *c)
{
	return each_run_do(c, kill_one);
}
