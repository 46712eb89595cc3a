/* regatta ps - the runs as they are now, and with --watch as they change. */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/watch.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "cli/show/screen.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"
#include "fmt/url.h"

#define DEFAULT_LIMIT 50
#define AT_ONCE 10000	 /* runs that the master gives in one answer */
#define FULL_AT_ONCE 200 /* whole run objects in one answer */
#define MAX_PATH_BYTES 16384
#define WATCH_MS 1000

/* ---- asking ---- */

static bool has_filter(const struct cli_call *c)
{
	static const char *const filters[] = {"name", "tag", "since", "engine"};
	bool any = false;

	for (size_t i = 0; i < sizeof(filters) / sizeof(filters[0]); i++)
		any = any || call_flag(c, filters[i]);
	return any;
}

/* Every question has the same time, also while the list is watched. */
static int add_since(const struct cli_call *c, struct buf *path, struct err *err)
{
	const char *age = call_text(c, "since");
	int64_t ms = 0;
	char text[32];

	if (!age)
		return 0;
	if (!str_to_duration_ms(str_from(age), &ms) || ms <= 0)
		return err_set(err, ERR_INVALID,
			       "--since is '%.40s': expected a duration such as 2d or 90m", age);
	snprintf(text, sizeof(text), "%" PRId64, clock_wall_ms() - ms);
	api_add_query(path, "since", text);
	return 0;
}

/* The question without the page that is asked for. */
static int make_query(const struct cli_call *c, struct arena *a, struct buf *path, struct err *err)
{
	const char **words = arena_array(a, const char *, c->nvalues + 1);
	size_t n = call_texts(c, "state", words, c->nvalues);

	buf_printf(path, "/api/v1/runs?state=");
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_addc(path, ',');
		url_encode(path, str_from(words[i]));
	}
	if (!n)
		buf_addz(path, call_flag(c, "all") || has_filter(c) ? "all" : "active");
	n = call_texts(c, "tag", words, c->nvalues);
	for (size_t i = 0; i < n; i++)
		api_add_query(path, "tag", words[i]);
	api_add_query(path, "name", call_text(c, "name"));
	api_add_query(path, "engine", call_text(c, "engine"));
	return add_since(c, path, err);
}

/* The newest runs as one array; the master answers in pages. */
static int get_runs(struct api *api, const struct cli_call *c, const char *query, struct arena *a,
		    struct doc *ret, struct err *err)
{
	/* JSON has whole run objects, as `regatta status` prints them; the table needs less. */
	bool full = c->output == OUTPUT_JSON;
	/* One more than is listed tells whether that is all; a list that is watched does not say it. */
	int64_t most = call_flag(c, "watch") ? DEFAULT_LIMIT : DEFAULT_LIMIT + 1,
		limit = call_number(c, "limit", most), at_once = full ? FULL_AT_ONCE : AT_ONCE;
	int64_t left = limit ? limit : INT64_MAX; /* 0: all of them */
	const char *before = NULL;

	for (;;) {
		CLEANUP(buf_release) struct buf path = {0};
		int64_t page = left < at_once ? left : at_once;
		struct doc *root;

		buf_init(&path, MAX_PATH_BYTES);
		buf_printf(&path, "%s&limit=%" PRId64 "&full=%d", query, page, full);
		api_add_query(&path, "before", before);
		if (path.overflow)
			return err_set(err, ERR_INVALID, "too many filters for one request");
		if (api_get_doc(api, path.p, a, &root, err) < 0)
			return -1;
		const struct doc *runs = doc_array(root, "runs");
		int64_t n = runs ? (int64_t)runs->array.n : 0;
		for (int64_t i = 0; i < n; i++)
			doc_append(a, ret, runs->array.v[i]);
		left -= n;
		if (n < page || left <= 0)
			return 0;
		before = arena_str(a, doc_str(runs->array.v[n - 1], "id", STR(""))).p;
	}
}

/* ---- once ---- */

static void say_none(const struct cli_call *c)
{
	if (has_filter(c) || call_flag(c, "state"))
		cli_say("no run is like that");
	else
		cli_say("%s", call_flag(c, "all")
				      ? "there are no runs yet: 'regatta run' starts one"
				      : "no active runs; 'regatta ps --all' lists the ended ones");
}

static int print_runs(const struct cli_call *c, const struct doc *runs)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_detect(STDOUT_FILENO);

	buf_init(&out, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON) {
		doc_to_json(runs, &out);
		buf_addc(&out, '\n');
	} else if (runs->array.n) {
		runs_render(runs, clock_wall_ms(), call_flag(c, "params"), &st, &out);
	} else {
		say_none(c);
	}
	return cli_print(&out);
}

/* ---- again and again ---- */

struct watching {
	const struct cli_call *c;
	struct api *api;
	const char *query;
	int signals;
	bool live;
	struct screen screen;
	struct buf last; /* ids and states that were printed last */
};

static void put_states(const struct doc *runs, struct buf *out)
{
	for (size_t i = 0; i < runs->array.n; i++)
		buf_printf(out, "%.*s %.*s\n", STR_ARG(doc_str(runs->array.v[i], "id", STR(""))),
			   STR_ARG(doc_str(runs->array.v[i], "state", STR(""))));
}

/* As many lines as the terminal has. */
static struct str first_lines(struct str text, int height)
{
	struct str rest = text;

	for (int i = 1; i < height && rest.p && rest.n; i++)
		str_cut(&rest, '\n');
	return rest.p ? (struct str){text.p, text.n - rest.n} : text;
}

static void draw(struct watching *w, const struct doc *runs)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_detect(STDOUT_FILENO);
	int height = 0;

	buf_init(&out, CLI_MAX_TEXT);
	term_size(STDOUT_FILENO, &st.width, &height);
	if (runs->array.n)
		runs_render(runs, clock_wall_ms(), call_flag(w->c, "params"), &st, &out);
	else
		buf_addz(&out, "no runs\n");
	screen_draw(&w->screen, first_lines(buf_str(&out), height > 2 ? height : 24), st.width);
}

/* Where nothing can be redrawn, the list is printed when it is another one. */
static int show(struct watching *w, const struct doc *runs)
{
	CLEANUP(buf_release) struct buf now = {0};

	if (w->live) {
		draw(w, runs);
		return 0;
	}
	buf_init(&now, CLI_MAX_TEXT);
	buf_addz(&now, "=");
	put_states(runs, &now);
	if (str_eq(buf_str(&now), buf_str(&w->last)))
		return 0;
	bool first = w->last.n == 0;

	buf_reset(&w->last);
	buf_addstr(&w->last, buf_str(&now));
	if (!first && w->c->output != OUTPUT_JSON) {
		CLEANUP(buf_release) struct buf line = {0};

		buf_init(&line, 8);
		buf_addc(&line, '\n');
		(void)cli_print(&line);
	}
	return print_runs(w->c, runs);
}

static bool is_ended(struct watching *w)
{
	struct pollfd fd = {.fd = w->signals, .events = POLLIN};

	(void)poll(&fd, 1, WATCH_MS);
	for (int sig; (sig = watch_signal_next(w->signals)) != 0;)
		if (sig != SIGWINCH)
			return true;
	return cli_reader_gone();
}

static int watch_runs(struct watching *w)
{
	struct err err;
	int code = 0;

	if ((w->signals = watch_signals(&err)) < 0)
		return cli_fail(&err);
	do {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		struct doc *runs = doc_new(a, DOC_ARRAY);

		if (get_runs(w->api, w->c, w->query, a, runs, &err) < 0)
			code = api_fail(w->api, &err);
		else
			code = show(w, runs);
	} while (code == 0 && !is_ended(w));
	close(w->signals);
	return code;
}

int command_ps(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf query = {0};
	struct doc *runs = doc_new(a, DOC_ARRAY);
	struct err err;

	buf_init(&query, MAX_PATH_BYTES);
	if (make_query(c, a, &query, &err) < 0 || api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (call_flag(c, "watch")) {
		struct watching w = {.c = c, .api = &api, .query = query.p};

		w.live = term_live(STDOUT_FILENO) && c->output != OUTPUT_JSON;
		screen_init(&w.screen, STDOUT_FILENO);
		buf_init(&w.last, CLI_MAX_TEXT);
		int code = watch_runs(&w);
		screen_release(&w.screen);
		buf_release(&w.last);
		return code;
	}
	if (get_runs(&api, c, query.p, a, runs, &err) < 0)
		return api_fail(&api, &err);
	bool more = runs->array.n > DEFAULT_LIMIT && !call_flag(c, "limit");

	runs->array.n = more ? DEFAULT_LIMIT : runs->array.n;
	int code = print_runs(c, runs);

	if (code == 0 && more)
		cli_say("these are the newest %d; add '--limit 0' for all", DEFAULT_LIMIT);
	return code;
}
