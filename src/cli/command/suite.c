/* regatta suite - run a set of jobs with one report. */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/watch.h"
#include "cli/command/commands.h"
#include "cli/command/suite_input.h"
#include "cli/command/suite_on_exit.h"
#include "cli/command/suite_plan.h"
#include "cli/command/suite_submit.h"
#include "cli/show/suite_table.h"
#include "cli/show/terminal.h"
#include "driver/driver.h"
#include "fmt/doc.h"

#define CALL_MS 30000
#define REPORT_MS 300000
#define POLL_MIN_MS 10
#define POLL_MAX_MS 250
#define SAY_MS 10000 /* between two lines about progress, where there is no terminal */

static int check_name(const char *word, struct err *err)
{
	return word[0] ? 0 : err_set(err, ERR_INVALID, "the name of a suite is empty");
}

/* The word after the action, or the latest suite. */
static int pick_suite(struct api *api, const struct cli_call *c, struct arena *a, struct str *ret,
		      struct err *err)
{
	struct doc *list;

	if (call_arg(c, 1)) {
		*ret = str_from(call_arg(c, 1));
		return check_name(call_arg(c, 1), err);
	}
	if (api_get_doc(api, "/api/v1/suites?limit=1", a, &list, err) < 0)
		return -1;
	const struct doc *suites = doc_array(list, "suites");
	if (!suites || suites->array.n == 0)
		return err_set(err, ERR_NOT_FOUND,
			       "there are no suites: 'regatta suite run FILE' starts one");
	*ret = doc_str(suites->array.v[0], "id", STR(""));
	cli_say("the latest suite is %.*s", STR_ARG(*ret));
	return 0;
}

/* ---- waiting ---- */

struct waiting {
	struct api *api;
	struct str id;
	int signals, interrupts;
	bool live, left;
	bool closing, told; /* on_exit runs, which nothing cancels; the user knows it */
	const struct suite_closer_here *closer; /* runs on_exit here; NULL: the master does */
	bool asked;				/* for on_exit */
	int64_t said_ms;
	struct buf shown; /* the line about progress, as it was last shown */
};

static void show_progress(struct waiting *w, const struct doc *suite)
{
	CLEANUP(buf_release) struct buf line = {0};
	struct err ignored;

	buf_init(&line, 4096);
	buf_printf(&line, "%.*s: ", STR_ARG(w->id));
	suite_describe_counts(suite, &line);
	if (w->live)
		suite_describe_left(suite, &line);
	if (str_eq(buf_str(&line), buf_str(&w->shown)))
		return;
	if (!w->live && w->said_ms && clock_boot_ms() - w->said_ms < SAY_MS)
		return;
	w->said_ms = clock_boot_ms();
	buf_reset(&w->shown);
	buf_addstr(&w->shown, buf_str(&line));
	if (!w->live) {
		cli_say("%.*s", STR_ARG(buf_str(&line)));
		return;
	}
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_detect(STDERR_FILENO);
	buf_init(&out, 8192);
	buf_addz(&out, "\r\033[K");
	text_clip(&out, buf_str(&line), st.width > 1 ? st.width - 1 : 80, &st);
	(void)file_write_all(STDERR_FILENO, out.p, out.n, &ignored);
}

/* The next line about progress is a new one. */
static void clear_line(struct waiting *w)
{
	struct err ignored;

	if (w->live && w->shown.n)
		(void)file_write_all(STDERR_FILENO, "\r\033[K", 4, &ignored);
	buf_reset(&w->shown);
}

static void end_progress(struct waiting *w)
{
	clear_line(w);
	buf_release(&w->shown);
}

static bool is_closing(const struct doc *suite)
{
	return str_is(doc_str(suite, "state", STR("")), "closing");
}

static int on_signal(struct waiting *w, int sig, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	if (sig == SIGWINCH)
		return 0;
	clear_line(w);
	w->interrupts += sig != SIGHUP;
	if (sig == SIGHUP || w->interrupts > 2 || (w->closing && w->told)) {
		w->left = true;
		return 0;
	}
	if (w->closing) {
		w->told = true;
		cli_say("all runs have ended, and on_exit is not cancelled; Ctrl-C again leaves at once");
		return 0;
	}
	cli_say("%s", w->interrupts == 1
			      ? "cancelling the suite; Ctrl-C again kills its runs at once"
			      : "killing the active runs; Ctrl-C again leaves at once");
	return api_call(w->api, "POST", api_suite_path(a, w->id, "/cancel"),
			w->interrupts == 1 ? STR("{}") : STR("{\"now\":true}"), CALL_MS, NULL, err);
}

/* The master that has the suite offers the commands.  If that is the machine of the suite, and it cannot be asked, it
 * runs them itself. */
static int run_on_exit(struct waiting *w, const struct doc *suite, struct err *err)
{
	CLEANUP(api_release) struct api there = {0};
	CLEANUP(freep) char *id = xstrndup(w->id.p, w->id.n);

	if (!doc_bool(suite, "away", false))
		return api_remote(w->api) ? suite_on_exit(w->api, w->closer, suite, err) : 0;
	if (api_open_handed(&there, id, err) < 0 ||
	    suite_on_exit(&there, w->closer, suite, err) < 0)
		cli_say("on_exit is run by the master of the suite: %s", err->msg);
	return 0;
}

/* Until the suite has ended, or the user leaves. */
static int wait_for_end(struct waiting *w, struct err *err)
{
	int pause_ms = POLL_MIN_MS;

	while (!w->left) {
		CLEANUP(arena_freep) struct arena *a = arena_new();
		struct pollfd fd = {.fd = w->signals, .events = POLLIN};
		struct doc *suite;

		if (api_get_doc(w->api, api_suite_path(a, w->id, "?brief=1"), a, &suite, err) < 0)
			return -1;
		if (suite_ended(suite))
			return 0;
		show_progress(w, suite);
		w->closing = is_closing(suite);
		if (w->closer && !w->asked && w->closing) {
			w->asked = true;
			clear_line(w);
			if (run_on_exit(w, suite, err) < 0)
				return -1;
		}
		for (int sig; (sig = watch_signal_next(w->signals)) != 0;)
			if (on_signal(w, sig, err) < 0)
				return -1;
		(void)poll(&fd, 1, pause_ms);
		pause_ms = pause_ms * 3 / 2 < POLL_MAX_MS ? pause_ms * 3 / 2 : POLL_MAX_MS;
	}
	return 0;
}

static int print_report(const struct cli_call *c, struct api *api, struct str id)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf json = {0};
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_detect(STDOUT_FILENO);
	struct doc *suite;
	struct err err;

	buf_init(&json, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	if (api_call(api, "GET", api_suite_path(a, id, "/report"), STR(""), REPORT_MS, &json,
		     &err) < 0 ||
	    reply_parse(buf_str(&json), a, &suite, &err) < 0)
		return api_fail(api, &err);
	if (c->output == OUTPUT_JSON)
		buf_addstr(&out, buf_str(&json));
	else
		suite_render_report(suite, &st, &out);
	int code = cli_print(&out);
	int64_t result = suite_ended(suite) ? doc_int(suite, "exit_code", 1) : 0;

	return code ? code : (int)result;
}

static int stay(const struct cli_call *c, struct api *api, struct str id, int signals,
		const struct suite_closer_here *closer)
{
	struct waiting w = {.api = api,
			    .id = id,
			    .signals = signals,
			    .live = term_live(STDERR_FILENO),
			    .closer = closer};
	struct err err;

	buf_init(&w.shown, 4096);
	int rc = wait_for_end(&w, &err);

	end_progress(&w);
	if (rc < 0)
		return api_fail(api, &err);
	if (w.left) {
		cli_say("%.*s goes on: 'regatta suite status %.*s' shows it", STR_ARG(id),
			STR_ARG(id));
		return w.interrupts ? err_exit_code(ERR_CANCELLED) : 0;
	}
	return print_report(c, api, id);
}

/* ---- actions ---- */

static int print_id(const struct cli_call *c, const struct buf *json, struct str id)
{
	CLEANUP(buf_release) struct buf out = {0};

	buf_init(&out, CLI_MAX_TEXT);
	buf_addstr(&out, c->output == OUTPUT_JSON ? buf_str(json) : id);
	if (c->output != OUTPUT_JSON)
		buf_addc(&out, '\n');
	return cli_print(&out);
}

/* The suite was accepted, or resumed: stay with it, or not. */
static int stay_or_leave(const struct cli_call *c, struct api *api, const struct buf *json,
			 int signals, const struct suite_closer_here *closer)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *suite;
	struct err err;

	if (reply_parse(buf_str(json), a, &suite, &err) < 0)
		return cli_fail(&err);
	struct str id = doc_str(suite, "id", STR(""));
	if (call_flag(c, "detach"))
		return print_id(c, json, id);
	return stay(c, api, id, signals, closer);
}

static int action_run(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json = {0};
	CLEANUP(close_fdp) int signals = -1;
	struct suite_input in;
	struct err err;

	if (!call_arg(c, 1)) {
		cli_say("suite run: FILE is missing");
		return 2;
	}
	int code = suite_input_read(call_arg(c, 1), &in);
	if (code != 0)
		return code;
	buf_init(&json, API_MAX_ANSWER);
	if (api_open_named(&api, c, true, &err) < 0) {
		code = cli_fail(&err);
	} else {
		struct suite_closer_here closer = {.in = &in};
		bool here = in.suite.runs.on_exit.n && !call_flag(c, "detach");

		request_id_new(closer.client);
		code = suite_submit(&api, c, &in, here ? closer.client : NULL, &signals, &json);
		if (code == 0)
			code = stay_or_leave(c, &api, &json, signals, here ? &closer : NULL);
	}
	suite_input_release(&in);
	return code;
}

static int action_plan(const struct cli_call *c)
{
	if (call_arg(c, 1))
		return suite_plan(c, call_arg(c, 1));
	cli_say("suite plan: FILE is missing");
	return 2;
}

static int action_status(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json = {0};
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_detect(STDOUT_FILENO);
	struct doc *suite;
	struct err err;
	struct str id;

	buf_init(&json, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (pick_suite(&api, c, a, &id, &err) < 0 ||
	    api_get(&api, api_suite_path(a, id, ""), &json, &err) < 0 ||
	    reply_parse(buf_str(&json), a, &suite, &err) < 0)
		return api_fail(&api, &err);
	if (c->output == OUTPUT_JSON)
		buf_addstr(&out, buf_str(&json));
	else
		suite_render_status(suite, &st, &out);
	return cli_print(&out);
}

static int action_report(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	struct err err;
	struct str id;

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (pick_suite(&api, c, a, &id, &err) < 0)
		return api_fail(&api, &err);
	return print_report(c, &api, id);
}

static int action_cancel(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json = {0};
	CLEANUP(buf_release) struct buf out = {0};
	struct doc *suite;
	struct err err;

	buf_init(&json, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	if (!call_arg(c, 1)) {
		cli_say("suite cancel: SUITE is missing: 'regatta suite list' names them");
		return 2;
	}
	if (check_name(call_arg(c, 1), &err) < 0 || api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_call(&api, "POST", api_suite_path(a, str_from(call_arg(c, 1)), "/cancel"),
		     call_flag(c, "now") ? STR("{\"now\":true}") : STR("{}"), CALL_MS, &json,
		     &err) < 0 ||
	    reply_parse(buf_str(&json), a, &suite, &err) < 0)
		return api_fail(&api, &err);
	if (c->output == OUTPUT_JSON) {
		buf_addstr(&out, buf_str(&json));
		return cli_print(&out);
	}
	buf_addstr(&out, doc_str(suite, "id", STR("?")));
	if (suite_ended(suite)) {
		buf_addz(&out, " has ended: ");
		buf_addstr(&out, doc_str(suite, "state", STR("?")));
	} else {
		buf_addz(&out, is_closing(suite)
				       ? ": all runs have ended, and on_exit is not cancelled"
				       : " is being cancelled");
	}
	buf_addc(&out, '\n');
	return cli_print(&out);
}

/* Those of the submission may hold no more: the runs get what the caller has now. */
static struct doc *fresh_credentials(struct api *api, struct str id, struct arena *a)
{
	struct doc *answer, *all = doc_new(a, DOC_TABLE);
	struct err err;

	if (api_get_doc(api, api_suite_path(a, id, "/engines"), a, &answer, &err) < 0)
		return all;
	const struct doc *list = doc_array(answer, "engines");

	for (size_t i = 0; list && i < list->array.n; i++) {
		struct str name = doc_str(list->array.v[i], "name", STR(""));
		const struct resolver *r = resolver_for(arena_str(a, name).p);
		const struct resolve_input in = {.options = doc_table(list->array.v[i], "options")};
		struct doc *credentials = NULL;

		if (!r || !r->at_client || !r->credentials)
			continue;
		if (r->credentials(&in, a, &credentials, &err) < 0)
			cli_say("warning: the credentials that were submitted are used again: %s",
				err.msg);
		else if (credentials)
			doc_set(a, all, name, credentials);
	}
	return all;
}

static int action_resume(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json = {0};
	CLEANUP(close_fdp) int signals = -1;
	struct doc *body = doc_new(a, DOC_TABLE);
	struct err err;
	struct str id;

	buf_init(&json, API_MAX_ANSWER);
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (pick_suite(&api, c, a, &id, &err) < 0)
		return api_fail(&api, &err);
	doc_set(a, body, STR("failed"), doc_new_bool(a, call_flag(c, "failed")));
	doc_set(a, body, STR("credentials"), fresh_credentials(&api, id, a));
	if (suite_send(&api, api_suite_path(a, id, "/resume"), str_from(doc_json_text(a, body)),
		       &signals, &json, &err) < 0)
		return api_fail(&api, &err);
	return stay_or_leave(c, &api, &json, signals, NULL);
}

static int action_list(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json = {0};
	CLEANUP(buf_release) struct buf out = {0};
	struct style st = style_detect(STDOUT_FILENO);
	struct doc *d;
	struct err err;

	buf_init(&json, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_get(&api, "/api/v1/suites?limit=1000", &json, &err) < 0 ||
	    reply_parse(buf_str(&json), a, &d, &err) < 0)
		return api_fail(&api, &err);
	const struct doc *suites = doc_array(d, "suites");
	if (c->output == OUTPUT_JSON) {
		buf_addstr(&out, buf_str(&json));
	} else if (!suites || suites->array.n == 0) {
		cli_say("there are no suites: 'regatta suite run FILE' starts one");
	} else {
		suites_render(suites, &st, &out);
	}
	return cli_print(&out);
}

static const struct {
	const char *name;
	int (*run)(const struct cli_call *c);
	const char *options[3]; /* of this action; --prices goes with what reads job files */
} actions[] = {
	{"run", action_run, {"detach", "tag", "prices"}},
	{"plan", action_plan, {"prices"}},
	{"status", action_status, {NULL}},
	{"report", action_report, {NULL}},
	{"resume", action_resume, {"detach", "failed"}},
	{"cancel", action_cancel, {"now"}},
	{"list", action_list, {NULL}},
};

static bool has_option(size_t action, const char *name)
{
	for (size_t i = 0; i < 3 && actions[action].options[i]; i++)
		if (strcmp(actions[action].options[i], name) == 0)
			return true;
	return false;
}

int command_suite(const struct cli_call *c)
{
	static const char *const options[] = {"detach", "failed", "now", "prices", "tag"};

	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(actions[i].name, call_arg(c, 0)) != 0)
			continue;
		for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++)
			if (call_flag(c, options[k]) && !has_option(i, options[k])) {
				cli_say("suite %s: --%s does not go with it", actions[i].name,
					options[k]);
				return 2;
			}
		if (actions[i].run == action_list && call_arg(c, 1)) {
			cli_say("suite list: '%s' is an unexpected argument", call_arg(c, 1));
			return 2;
		}
		return actions[i].run(c);
	}
	return 2; /* the table of commands knows no other action */
}
