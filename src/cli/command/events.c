/* regatta events - what happened in a run, in order. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/command/exit_code.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"
#include "net/http_client.h"

#define READ_MS 1000
#define CHUNK (64 * 1024)
#define NO_CONTACT_MS 60000
#define RETRY_MS 50

struct events {
	struct api *api;
	const char *id;
	bool follow, json;
	struct style style;
	int64_t after; /* the last event printed */
	struct buf text, out;
	int print_code; /* the exit code after an event that could not be printed, else 0 */
};

static int print_event(struct events *e, struct str line, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *event;

	if (reply_parse(line, a, &event, err) < 0)
		return -1;
	e->after = doc_int(event, "seq", e->after);
	if (e->json) {
		buf_addstr(&e->out, line);
		buf_addc(&e->out, '\n');
	} else {
		event_render(event, &e->style, &e->out);
	}
	return 0;
}

static int print_lines(struct events *e, struct err *err)
{
	const char *end = e->text.n ? memrchr(e->text.p, '\n', e->text.n) : NULL;

	if (!end)
		return 0;
	struct str rest = {e->text.p, (size_t)(end - e->text.p)};
	size_t used = rest.n + 1;
	while (rest.p) {
		struct str line = str_cut(&rest, '\n');
		if (line.n && print_event(e, line, err) < 0)
			return -1;
	}
	buf_drop_front(&e->text, used);
	e->print_code = cli_print(&e->out);
	buf_reset(&e->out);
	return 0;
}

static int read_stream(struct events *e, struct err *err)
{
	char tail[64];

	snprintf(tail, sizeof(tail), "/events?after=%" PRId64 "%s", e->after,
		 e->follow ? "&follow=1" : "");
	CLEANUP(freep) char *path = api_run_path(e->id, tail);
	buf_reset(&e->text);
	if (api_stream(e->api, path, err) < 0)
		return -1;
	while (!cli_reader_gone()) {
		char *p = buf_reserve(&e->text, CHUNK);
		size_t n;
		if (!p)
			return err_set(err, ERR_CAPACITY, "an event is too large");
		if (http_stream_read(e->api->http, p, CHUNK, READ_MS, NULL, &n, err) < 0) {
			if (err->kind == ERR_TIMEOUT)
				continue;
			api_drop(e->api);
			return -1;
		}
		if (n == 0)
			return 0;
		buf_commit(&e->text, n);
		if (print_lines(e, err) < 0)
			return -1;
		if (e->print_code)
			break;
	}
	api_drop(e->api);
	return 0;
}

static int has_ended(struct events *e, bool *ret, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *path = api_run_path(e->id, "");
	struct doc *run;

	if (api_get_doc(e->api, path, a, &run, err) < 0)
		return -1;
	*ret = run_ended(run);
	return 0;
}

/* A master that exits ends the stream: it is opened again after the last event until the run itself
 * has ended. */
static int print_events(struct events *e, struct err *err)
{
	int64_t lost_at = 0;

	for (;;) {
		int64_t before = e->after;
		bool ended = !e->follow;
		int rc = e->follow ? has_ended(e, &ended, err) : 0;
		rc = rc < 0 ? rc : read_stream(e, err);
		if (rc < 0 && !api_lost(err))
			return -1;
		if ((rc == 0 && ended) || e->print_code || cli_reader_gone())
			return 0;
		if (rc == 0 || e->after > before)
			lost_at = 0;
		else if (!lost_at)
			lost_at = clock_boot_ms();
		if (lost_at && clock_boot_ms() - lost_at > NO_CONTACT_MS)
			return -1;
		poll(NULL, 0, RETRY_MS);
	}
}

int command_events(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(freep) char *id = NULL;
	struct err err;

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, call_arg(c, 0), &id, &err) < 0)
		return api_fail(&api, &err);
	struct events e = {
		.api = &api,
		.id = id,
		.follow = call_flag(c, "follow"),
		.json = c->output == OUTPUT_JSON,
		.style = style_detect(STDOUT_FILENO),
	};
	buf_init(&e.text, API_MAX_ANSWER);
	buf_init(&e.out, CLI_MAX_TEXT);
	int code = print_events(&e, &err) < 0 ? api_fail(&api, &err) : e.print_code;
	buf_release(&e.text);
	buf_release(&e.out);
	return code || !call_flag(c, "exit-code") ? code : exit_code_later(c, id, e.follow);
}
