/* regatta logs - the output of nodes, as bytes or as lines. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/follow.h"
#include "cli/command/commands.h"
#include "cli/command/exit_code.h"
#include "cli/show/render.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "metrics/grep.h"

#define MAX_STREAMS 10000
#define WAIT_MS 1000
#define FLUSH_BYTES (256 * 1024) /* of lines before they are written */
#define OUT_MAX (2u << 20)	 /* FLUSH_BYTES and one line, fully escaped */

struct logs {
	struct api *api;
	const char *id; /* the full id of the run */
	enum follow_logs which;
	bool go_on, prefix, escape, json, times;
	const char *since; /* NULL: everything */
	int64_t tail;	   /* -1 = everything */
	int64_t attempt;   /* 0 = all */
	struct grep *grep; /* only lines that have it; NULL = all */
	struct buf out;
	struct err write_err; /* also of a line that cannot be searched */
};

static void flush(struct logs *l)
{
	if (l->out.n && l->write_err.kind == ERR_NONE &&
	    file_write_all(STDOUT_FILENO, l->out.p, l->out.n, &l->write_err) < 0)
		err_wrap(&l->write_err, "write the log");
	buf_reset(&l->out);
}

static void on_bytes(void *ctx, struct str bytes)
{
	struct logs *l = ctx;

	if (l->write_err.kind == ERR_NONE &&
	    file_write_all(STDOUT_FILENO, bytes.p, bytes.n, &l->write_err) < 0)
		err_wrap(&l->write_err, "write the log");
}

/* The time of a line; "-" if it is not known. */
static void put_time(struct logs *l, int64_t ms)
{
	char text[32] = "-";

	if (ms >= 0)
		clock_format(ms, text);
	buf_printf(&l->out, "%s ", text);
}

static void put_json(struct logs *l, const struct follow_line *line)
{
	struct jsonw w;
	char text[32];

	jsonw_init(&w, &l->out);
	jsonw_open(&w, '{');
	jsonw_kstr(&w, "node", line->node);
	jsonw_kz(&w, "stream", line->is_err ? "err" : "out");
	if (line->ms >= 0) {
		clock_format(line->ms, text);
		jsonw_kz(&w, "time", text);
	}
	jsonw_kstr(&w, "line", line->text);
	jsonw_close(&w);
}

static void on_line(void *ctx, const struct follow_line *line)
{
	struct logs *l = ctx;

	if (l->write_err.kind != ERR_NONE ||
	    (l->grep && grep_line(l->grep, line->text, &l->write_err) <= 0))
		return;
	if (l->json) {
		put_json(l, line);
	} else {
		if (l->times)
			put_time(l, line->ms);
		if (l->prefix) {
			buf_addstr(&l->out, line->node);
			buf_addz(&l->out, " | ");
		}
		if (l->escape)
			escape_terminal(&l->out, line->text);
		else
			buf_addstr(&l->out, line->text);
	}
	buf_addc(&l->out, '\n');
	if (l->out.n >= FLUSH_BYTES)
		flush(l);
}

static int pump(struct logs *l, struct follow *f, struct err *err)
{
	CLEANUP(freep) struct pollfd *fds = xcalloc(MAX_STREAMS, sizeof(*fds));

	while (follow_open(f) > 0 && l->write_err.kind == ERR_NONE && !cli_reader_gone()) {
		int timeout = WAIT_MS;
		if (follow_step(f, err) < 0)
			return -1;
		flush(l);
		size_t n = follow_fds(f, fds, MAX_STREAMS, &timeout);
		if (follow_open(f) > 0 && poll(fds, n, timeout) < 0 && errno != EINTR)
			return err_errno(err, errno, "wait for the log");
	}
	return 0;
}

/* With -f all logs at once.  Otherwise one after the other, so that the lines of a node stay
 * together. */
static int print_all(struct logs *l, const struct str *names, size_t n, struct err *err)
{
	bool lines = l->prefix || l->escape || l->json || l->grep || l->times;
	const struct follow_sink sink = {.line = lines ? on_line : NULL,
					 .bytes = lines ? NULL : on_bytes};
	struct follow *f = NULL;
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i++) {
		if (!f)
			f = follow_new(l->api, l->id, &sink, l);
		follow_attempt(f, l->attempt);
		follow_since(f, l->since);
		follow_times(f, l->times);
		follow_add(f, names[i], l->which, 0, l->tail, l->go_on);
		if (!l->go_on || i + 1 == n) {
			rc = pump(l, f, err);
			f = follow_free(f);
		}
	}
	follow_free(f);
	return rc;
}

struct log_names {
	struct str *v;
	size_t n;
};

static void add_names(struct log_names *all, struct str *names, size_t n, struct arena *a)
{
	struct str *v = arena_array(a, struct str, all->n + n + 1);

	if (all->n > 0)
		memcpy(v, all->v, all->n * sizeof(*v));
	memcpy(v + all->n, names, n * sizeof(*v));
	*all = (struct log_names){v, all->n + n};
}

/* The name of the argument, or the glob of --node; everything if there is neither. */
static bool is_chosen(const char *name, const char *glob, struct str node, struct arena *a)
{
	return name ? str_is(node, name) : !glob || path_match(glob, arena_str(a, node).p);
}

/* Once the job has started, all that a launcher's ranks print is in its own log: the other nodes have copies. */
static bool is_copy(const struct doc *node)
{
	return doc_bool(node, "copies", false) && doc_int(node, "attempt", 0) > 0;
}

/* Why a run has no nodes here: they belong to the master that it is handed to, and what they have printed is
 * taken in with the results. */
static const char *why_no_nodes(const struct doc *run, struct str id, struct arena *a,
				enum err_kind *ret_kind)
{
	*ret_kind = ERR_UNAVAILABLE;
	if (run_ended(run) && !run_is_whole(run))
		return arena_printf(
			a,
			"the logs of run '%.*s' are on their way here with its results: "
			"try again in a moment",
			STR_ARG(id));
	if (!run_ended(run))
		return arena_printf(
			a,
			"run '%.*s' has no logs here yet: they come with its results after its "
			"end, for which 'regatta wait %.*s' waits",
			STR_ARG(id), STR_ARG(id));
	*ret_kind = ERR_NOT_FOUND;
	if (doc_int(doc_table(run, "phases"), "running", -1) < 0)
		return arena_printf(a,
				    "run '%.*s' has no logs: none of its nodes was started; "
				    "'regatta status %.*s' says why",
				    STR_ARG(id), STR_ARG(id));
	return arena_printf(a,
			    "the logs of run '%.*s' are not here: they come with its results, and "
			    "'regatta events %.*s' says when these are taken in",
			    STR_ARG(id), STR_ARG(id));
}

/* The logs of the nodes or processes named on the command line, or of all. */
static int choose(const struct cli_call *c, const struct doc *run, struct arena *a,
		  struct log_names *ret, struct err *err)
{
	const struct doc *nodes = doc_array(run, "nodes");
	struct str id = doc_str(run, "id", STR(""));
	const char *name = call_arg(c, 1), *glob = call_text(c, "node");
	bool once = !name && !glob && !call_flag(c, "merge");

	if (nodes->array.n == 0) {
		enum err_kind kind;
		const char *why = why_no_nodes(run, id, a, &kind);

		if (name || glob)
			return err_set(err, kind, "%s", why);
		cli_say("%s", why);
		return 0;
	}
	for (size_t i = 0; i < nodes->array.n; i++) {
		struct str *names, node = doc_str(nodes->array.v[i], "name", STR(""));
		size_t n = follow_names(nodes->array.v[i], a, &names);

		if (once && is_copy(nodes->array.v[i]))
			continue;
		if (is_chosen(name, glob, node, a)) {
			add_names(ret, names, n, a);
			continue;
		}
		for (size_t p = 0; p < n; p++)
			if (is_chosen(name, glob, names[p], a))
				add_names(ret, &names[p], 1, a);
	}
	if ((name || glob) && ret->n == 0)
		return err_set(err, ERR_NOT_FOUND,
			       "run '%.*s' has no node '%.80s': 'regatta status %.*s' lists them",
			       STR_ARG(id), name ? name : glob, STR_ARG(id));
	return 0;
}

/* Both logs, unless --stdout or --stderr chooses one. */
static enum follow_logs chosen_logs(const struct cli_call *c)
{
	bool out = call_flag(c, "stdout"), err = call_flag(c, "stderr") || call_flag(c, "err");

	return out == err ? FOLLOW_BOTH : err ? FOLLOW_ERR : FOLLOW_OUT;
}

/* It is on its way to another master, or to its nodes: neither has begun. */
static bool is_on_its_way(const struct doc *run)
{
	const struct doc *nodes = doc_array(run, "nodes");

	return nodes && nodes->array.n == 0 && !run_ended(run) &&
	       doc_int(doc_table(run, "phases"), "running", -1) < 0;
}

/* The run as the master shows it that has its logs; to follow one that is on its way there takes patience. */
static int find_run(struct api *api, const char *word, bool patient, struct arena *a,
		    struct doc **ret, struct err *err)
{
	CLEANUP(freep) char *path = api_run_path(word, "");
	bool said = false;

	for (;;) {
		CLEANUP(freep) char *ignored = NULL;

		if (api_get_doc(api, path, a, ret, err) < 0)
			return -1;
		if (!patient || !is_on_its_way(*ret) || cli_reader_gone())
			break;
		if (!said)
			cli_say("run '%s' has no nodes yet: its logs follow when it has", word);
		said = true;
		poll(NULL, 0, WAIT_MS);
		if (api_pick_run(api, word, &ignored, err) < 0)
			return -1;
	}
	if (!doc_array(*ret, "nodes"))
		return err_set(err, ERR_PROTOCOL, "the master's answer has no nodes");
	return 0;
}

/* *ret_id: the full id of the run. */
static int print_logs(const struct cli_call *c, struct api *api, struct grep *grep, char **ret_id,
		      struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *word = NULL;
	struct log_names names = {0};
	struct doc *run;

	if (api_pick_run(api, call_arg(c, 0), &word, err) < 0)
		return -1;
	if (find_run(api, word, call_flag(c, "follow"), a, &run, err) < 0 ||
	    choose(c, run, a, &names, err) < 0)
		return -1;
	struct str id = doc_str(run, "id", str_from(word));

	*ret_id = xstrndup(id.p, id.n);
	struct logs l = {
		.api = api,
		.id = *ret_id,
		.which = chosen_logs(c),
		.go_on = call_flag(c, "follow"),
		.prefix = call_flag(c, "merge") || names.n > 1,
		.escape = isatty(STDOUT_FILENO) && !call_flag(c, "raw"),
		.json = c->output == OUTPUT_JSON,
		.times = call_flag(c, "timestamps"),
		.since = call_text(c, "since"),
		.tail = call_number(c, "tail", -1),
		.attempt = call_number(c, "attempt", 0),
		.grep = grep,
	};
	buf_init(&l.out, OUT_MAX);
	int rc = print_all(&l, names.v, names.n, err);
	flush(&l);
	buf_release(&l.out);
	if (rc == 0 && l.write_err.kind != ERR_NONE && l.write_err.code != EPIPE) {
		*err = l.write_err;
		return -1;
	}
	return rc;
}

static void grep_freep(struct grep **g)
{
	grep_free(*g);
}

/* The master reads it by its own clock. */
static bool since_ok(const char *since)
{
	int64_t ms;

	if (!since || (str_to_duration_ms(str_from(since), &ms) && ms >= 0) ||
	    (clock_parse(str_from(since), &ms) && ms >= 0))
		return true;
	cli_say("logs: --since is '%.40s': expected a duration such as 5m or a time such as "
		"2026-01-31T12:00:00Z",
		since);
	return false;
}

int command_logs(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(grep_freep) struct grep *grep = NULL;
	CLEANUP(freep) char *id = NULL;
	const char *re = call_text(c, "grep");
	struct err err;

	if (call_text(c, "node") && call_arg(c, 1)) {
		cli_say("logs: both NODE and --node: give one of them");
		return 2;
	}
	if (call_flag(c, "merge") && call_arg(c, 1)) {
		cli_say("logs: --merge is for all nodes, '%.80s' is one", call_arg(c, 1));
		return 2;
	}
	if (!since_ok(call_text(c, "since")))
		return 2;
	if (re && !(grep = grep_new(re, &err)))
		return cli_fail(&err);
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (print_logs(c, &api, grep, &id, &err) < 0)
		return api_fail(&api, &err);
	return call_flag(c, "exit-code") ? exit_code_later(c, id, call_flag(c, "follow")) : 0;
}
