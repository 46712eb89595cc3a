/* regatta kill, cleanup - runs ended and removed; each RUN is tried, the first failure gives the
 * exit code. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/client/api.h"
#include "cli/cli.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "cli/client/watch.h"
#include "fmt/doc.h"

#define CLEANUP_MS 60000
#define WATCHED_MS 10000 /* another watcher of the run has so long to see its end */
#define RETRY_MS 20

struct each {
	const struct call *c;
	struct api *api;
	struct buf out;
	size_t printed;
};

static void add_json(struct each *e, struct str json)
{
	buf_addz(&e->out, e->printed++ ? ",\n " : "[");
	buf_addstr(&e->out, str_trim(json));
}

static int kill_one(struct each *e, const char *run, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf json = {0};
	bool now = call_flag(e->c, "now");
	struct doc *d;

	buf_init(&json, API_MAX_ANSWER);
	if (cancel_run(e->api, run, now, &json, err) < 0 ||
	    reply_parse(buf_str(&json), a, &d, err) < 0)
		return -1;
	if (e->c->output == OUTPUT_JSON) {
		add_json(e, buf_str(&json));
		return 0;
	}
	add_outside(&e->out, doc_str(d, "id", str_from(run)));
	if (run_ended(d)) {
		buf_addz(&e->out, " had ended: ");
		add_outside(&e->out, doc_str(d, "state", STR("?")));
	} else {
		buf_addz(&e->out, now ? " is being killed" : " is being cancelled");
	}
	buf_addc(&e->out, '\n');
	return 0;
}

/* The whole id of a run that has ended, cancelled if it had not. */
static int end_run(struct each *e, const char *word, struct arena *a, const char **ret_id,
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
		if (cancel_run(e->api, id, false, NULL, err) < 0 ||
		    await_run(e->api, id, a, &json, &run, err) < 0)
			return -1;
	}
	*ret_id = id;
	return 0;
}

static int remove_run(struct each *e, const char *id, struct buf *ret_json, struct err *err)
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

static int cleanup_one(struct each *e, const char *run, struct err *err)
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
		add_json(e, buf_str(&json));
		return 0;
	}
	buf_addz(&e->out, "removed ");
	add_outside(&e->out, doc_str(d, "dir", str_from(run)));
	buf_addc(&e->out, '\n');
	return 0;
}

static int for_each_run(const struct call *c,
			int (*one)(struct each *e, const char *run, struct err *err))
{
	CLEANUP(api_release) struct api api = {0};
	struct each e = {.c = c, .api = &api};
	struct err err;
	int code = 0;

	if (api_open(&api, true, &err) < 0)
		return cli_fail(&err);
	buf_init(&e.out, CLI_MAX_TEXT);
	for (size_t i = 0; i < c->nargs; i++) {
		if (c->args[i][0] == 0)
			err_set(&err, ERR_INVALID, "the name of a run is empty");
		else if (one(&e, c->args[i], &err) == 0)
			continue;
		int failed = api_fail(&api, &err);
		code = code ? code : failed;
	}
	if (c->output == OUTPUT_JSON)
		buf_addz(&e.out, e.printed ? "]\n" : "[]\n");
	int printed = cli_print(&e.out);
	buf_release(&e.out);
	return code ? code : printed;
}

int command_kill(const struct call *c)
{
	return for_each_run(c, kill_one);
}

int command_cleanup(const struct call *c)
{
	return for_each_run(c, cleanup_one);
}
