/* regatta cleanup - end runs and remove their files. */
#include <poll.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/watch.h"
#include "cli/command/commands.h"
#include "cli/command/each_run.h"
#include "cli/show/render.h"
#include "fmt/doc.h"

#define CLEANUP_MS 60000
#define WATCHED_MS 10000 /* how long to wait for other clients that watch the run */
#define RETRY_MS 20

/* Cancel the run unless it has ended, and wait for its end.  *ret_id is its full id. */
static int end_run(struct each_run *e, const char *word, struct arena *a, const char **ret_id,
		   struct err *err)
{
	CLEANUP(freep) char *path = api_run_path(word, "");
	struct doc *run;
	struct str json;

	if (api_get_doc(e->api, path, a, &run, err) < 0)
		return -1;
	const char *id = arena_str(a, doc_str(run, "id", str_from(word))).p;
	if (!run_ended(run)) {
		cli_say("cancelling %s", id);
		if (api_cancel_run(e->api, id, false, NULL, err) < 0 ||
		    api_await_run(e->api, id, a, &json, &run, err) < 0)
			return -1;
	}
	*ret_id = id;
	return 0;
}

static int remove_run(struct each_run *e, const char *id, struct buf *ret_json, struct err *err)
{
	CLEANUP(freep) char *path = api_run_path(id, "/cleanup");
	int64_t deadline = clock_boot_ms() + WATCHED_MS;

	while (api_call(e->api, "POST", path, STR("{}"), CLEANUP_MS, ret_json, err) < 0) {
		if (err->kind != ERR_CONFLICT || clock_boot_ms() > deadline)
			return -1;
		poll(NULL, 0, RETRY_MS);
	}
	return 0;
}

static int cleanup_one(struct each_run *e, const char *run, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf json = {0};
	const char *id;
	struct doc *d;

	buf_init(&json, API_MAX_ANSWER);
	if (end_run(e, run, a, &id, err) < 0 || remove_run(e, id, &json, err) < 0 ||
	    reply_parse(buf_str(&json), a, &d, err) < 0)
		return -1;
	if (e->c->output == OUTPUT_JSON) {
		each_run_add(e, buf_str(&json));
		return 0;
	}
	buf_addz(&e->out, "removed ");
	text_add_escaped(&e->out, doc_str(d, "dir", str_from(run)));
	if (api_remote(e->api))
		buf_printf(&e->out, " on the machine of master '%s'", api_remote(e->api));
	buf_addc(&e->out, '\n');
	return 0;
}

int command_cleanup(const struct cli_call *c)
{
	return each_run_do(c, "all", "remove", cleanup_one);
}
