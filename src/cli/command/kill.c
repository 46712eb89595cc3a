/* regatta kill - cancel runs. */
#include <stdlib.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/watch.h"
#include "cli/command/commands.h"
#include "cli/command/each_run.h"
#include "cli/show/render.h"
#include "driver/driver.h"
#include "fmt/doc.h"

#define RENEW_MS 30000

/* Something cannot be removed: perhaps the credentials of the submission hold no more.  The caller's own are
 * given to the run; where they are missing, nothing is said. */
static void renew_credentials(struct api *api, const char *run, const struct doc *shown,
			      struct arena *a)
{
	const struct doc *waiting = doc_array(shown, "waiting");
	const struct resolver *r = resolver_for(doc_str(shown, "engine", STR("")).p);
	struct resolve_input in = {0};
	struct doc *credentials = NULL;
	struct err ignored;

	if (!waiting || !waiting->array.n || !r || !r->at_client || !r->credentials ||
	    r->credentials(&in, a, &credentials, &ignored) < 0 || !credentials)
		return;
	CLEANUP(freep) char *path = api_run_path(run, "/cancel");
	const char *body = arena_printf(a, "{\"credentials\":%s}", doc_json_text(a, credentials));

	if (api_call(api, "POST", path, str_from(body), RENEW_MS, NULL, &ignored) == 0)
		cli_say("%s: what could not be removed is tried again with your credentials", run);
}

/* Of a run that was started on another machine, if its master was found. */
static int cancel_there(const struct each_run *e, const char *run, bool now, struct buf *json,
			struct err *err)
{
	CLEANUP(api_release) struct api there = {0};
	struct err why = {0};

	if (err->kind != ERR_NOT_FOUND)
		return -1;
	if (api_open_found(e->api, run, &there, &why) < 0) {
		if (why.kind != ERR_NOT_FOUND)
			*err = why;
		return -1;
	}
	return api_cancel_run(&there, run, now, json, err);
}

static int kill_one(struct each_run *e, const char *run, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf json = {0};
	bool now = call_flag(e->c, "now"), here;
	struct doc *d;

	buf_init(&json, API_MAX_ANSWER);
	here = api_cancel_run(e->api, run, now, &json, err) == 0;
	if ((!here && cancel_there(e, run, now, &json, err) < 0) ||
	    reply_parse(buf_str(&json), a, &d, err) < 0)
		return -1;
	if (here)
		renew_credentials(e->api, run, d, a);
	if (e->c->output == OUTPUT_JSON) {
		each_run_add(e, buf_str(&json));
		return 0;
	}
	text_add_escaped(&e->out, doc_str(d, "id", str_from(run)));
	if (run_ended(d)) {
		buf_addz(&e->out, " has ended: ");
		text_add_escaped(&e->out, doc_str(d, "state", STR("?")));
	} else {
		buf_addz(&e->out, now ? " is being killed" : " is being cancelled");
	}
	buf_addc(&e->out, '\n');
	return 0;
}

int command_kill(const struct cli_call *c)
{
	return each_run_do(c, "active", "cancel", kill_one);
}
