/* regatta run - submit a job and stay with it until the end. */
#include "cli/command/run.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/escape.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/interrupt.h"
#include "cli/client/submit.h"
#include "cli/client/watch.h"
#include "cli/command/commands.h"
#include "cli/command/job_input.h"
#include "cli/command/run_repeat.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

/* A master that has ended its run ends its machine. */
#define HANDED_MS 10000
#define RESULTS_MS 50 /* between two looks whether they are here */

static int check_options(const struct cli_call *c)
{
	static const char *const exclusive[][2] = {
		{"detach", "follow"},
		{"detach", "repeat"},
		{"follow", "repeat"},
	};
	struct err err;

	for (size_t i = 0; i < sizeof(exclusive) / sizeof(exclusive[0]); i++) {
		if (!call_flag(c, exclusive[i][0]) || !call_flag(c, exclusive[i][1]))
			continue;
		err_set(&err, ERR_INVALID, "run: --%s and --%s exclude each other", exclusive[i][0],
			exclusive[i][1]);
		return cli_fail(&err);
	}
	if (call_flag(c, "parallel") && !call_flag(c, "repeat")) {
		err_set(&err, ERR_INVALID, "run: --parallel goes with --repeat N");
		return cli_fail(&err);
	}
	return 0;
}

/* Metrics by node for the summary; NULL: the summary has only those over all nodes. */
static struct doc *ask_metrics(struct api *api, const struct doc *run, struct arena *a)
{
	const struct doc *m = doc_table(run, "metrics");
	struct doc *metrics = NULL;
	struct err ignored;

	if (!m || m->table.n == 0)
		return NULL;
	struct str id = doc_str(run, "id", STR(""));
	CLEANUP(freep) char *name = xstrndup(id.p, id.n);
	CLEANUP(freep) char *path = api_run_path(name, "/metrics");
	if (api_get_doc(api, path, a, &metrics, &ignored) < 0)
		return NULL;
	/* The results of a run that was handed over may not be here yet. */
	m = doc_table(metrics, "metrics");
	return m && m->table.n ? metrics : NULL;
}

static int print_end(const struct cli_call *c, struct api *api, const struct buf *json)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf text = {0};
	struct doc *run;
	struct err err;

	buf_init(&text, CLI_MAX_TEXT);
	if (reply_parse(buf_str(json), a, &run, &err) < 0)
		return cli_fail(&err);
	run_set_master(run, api_remote(api), a);
	int code = run_exit_code(run);
	if (c->output == OUTPUT_JSON) {
		buf_addstr(&text, buf_str(json));
		buf_addc(&text, '\n');
	} else {
		/* With -f, stdout is the job's: the summary goes to stderr. */
		int fd = call_flag(c, "follow") ? STDERR_FILENO : STDOUT_FILENO;
		struct style st = style_detect(fd);
		summary_render(run, ask_metrics(api, run, a), &st, &text);
		if (fd == STDERR_FILENO) {
			(void)file_write_all(fd, text.p, text.n, &err);
			return code;
		}
	}
	int printed = cli_print(&text);
	return code ? code : printed;
}

/* The run object, or for people one line. */
static int print_run(const struct cli_call *c, const char *line, const struct buf *json)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON)
		buf_addstr(&text, str_trim(buf_str(json)));
	else
		buf_addz(&text, line);
	buf_addc(&text, '\n');
	return cli_print(&text);
}

/* The id in a run object.  Owned by the arena. */
static const char *id_of(const struct buf *json, struct arena *a, struct err *err)
{
	struct doc *run;

	if (reply_parse(buf_str(json), a, &run, err) < 0)
		return NULL;
	struct str id = doc_str(run, "id", STR(""));
	if (id.n == 0) {
		err_set(err, ERR_PROTOCOL, "the master's answer has no run id");
		return NULL;
	}
	return arena_str(a, id).p;
}

/* The run as the other master has shown it, with nodes and metrics, but with the directory that it has
 * here.  NULL: it has not shown the end, or this one knows better how it ended. */
static const struct buf *shown_there(struct watch_result *there, const struct watch_result *end,
				     struct arena *a)
{
	struct doc *run, *own;

	if (!there->json.n || reply_parse(buf_str(&there->json), a, &run, NULL) < 0 ||
	    reply_parse(buf_str(&end->json), a, &own, NULL) < 0 ||
	    !str_eq(doc_str(run, "verdict", STR("")), doc_str(own, "verdict", STR(""))))
		return NULL;
	doc_set(a, run, STR("dir"), doc_new_str(a, doc_str(own, "dir", STR(""))));
	buf_reset(&there->json);
	doc_to_json(run, &there->json);
	return &there->json;
}

/* The master that has the run is watched until its end, or until it cannot be reached: the own one knows
 * what has become of it. */
static int watch_handed(const char *id, const struct watch_options *o, struct watch_result *ret,
			struct err *err)
{
	struct watch_options there = *o;
	struct api api;

	there.until_handed = false;
	there.patience_ms = HANDED_MS;
	if (api_open_handed(&api, id, err) < 0)
		return 0;
	int rc = watch_run(&api, id, &there, ret, err);

	api_release(&api);
	return rc < 0 && err->kind != ERR_CANCELLED ? 0 : rc;
}

/* Here, then where it was handed to, then here again until everything is gone.  *ret_there: the run as the
 * other master has shown it last. */
static int watch_to_end(struct api *api, const char *id, struct watch_options *o,
			struct watch_result *ret, struct watch_result *ret_there, struct err *err)
{
	if (watch_run(api, id, o, ret, err) < 0)
		return -1;
	if (!ret->handed || ret->left)
		return 0;
	watch_result_release(ret);
	*ret = (struct watch_result){0};
	if (watch_handed(id, o, ret_there, err) < 0)
		return -1;
	if (ret_there->left) {
		ret->left = true;
		return 0;
	}
	o->follow = o->until_handed = false;
	o->shown = ret_there->state[0] ? ret_there->state : NULL;
	return watch_run(api, id, o, ret, err);
}

/* The next command finds the logs and figures of the run here.  A signal ends the wait: the master goes on. */
static void await_results(struct api *api, const char *id, const struct buf *end, int signals)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *path = api_run_path(id, "");
	struct err ignored;
	struct doc *run;

	if (reply_parse(buf_str(end), a, &run, &ignored) < 0)
		return;
	while (!run_is_whole(run) && !watch_signal_next(signals)) {
		poll(NULL, 0, RESULTS_MS);
		arena_free(a);
		a = arena_new();
		if (api_get_doc(api, path, a, &run, &ignored) < 0)
			return;
	}
	if (str_is(doc_str(run, "results", STR("")), "missing"))
		cli_say("%s: its logs and files are not here: 'regatta events %s' says why", id,
			id);
}

static void say_goes_on(const char *id)
{
	cli_say("%s goes on without this terminal: 'regatta status %s' shows it", id, id);
}

int run_watch(const struct cli_call *c, struct api *api, const char *id, int signals, bool detach)
{
	struct watch_options o = {
		.follow = call_flag(c, "follow"),
		.output_to_err = c->output == OUTPUT_JSON,
		.detach = detach,
		.signals = signals,
		.until_handed = api->by_default,
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(watch_result_release) struct watch_result end = {0}, there = {0};
	struct err err;

	if (watch_to_end(api, id, &o, &end, &there, &err) < 0)
		return api_fail(api, &err);
	if (end.left) {
		say_goes_on(id);
		return detach ? err_exit_code(ERR_CANCELLED) : 0;
	}
	await_results(api, id, &end.json, signals);
	const struct buf *shown = shown_there(&there, &end, a);

	return print_end(c, api, shown ? shown : &end.json);
}

/* Until a master elsewhere has the run, or until its end, which is then printed as that of any run. */
static int watch_until_handed(const struct cli_call *c, struct api *api, const char *id,
			      int signals, handed_line_fn line)
{
	const struct watch_options o = {.signals = signals, .until_handed = true};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(watch_result_release) struct watch_result end = {0};
	struct doc *run;
	struct err err;

	if (watch_run(api, id, &o, &end, &err) < 0)
		return api_fail(api, &err);
	if (end.left || end.handed)
		say_goes_on(id);
	if (end.left)
		return 0;
	if (!end.handed)
		return print_end(c, api, &end.json);
	if (reply_parse(buf_str(&end.json), a, &run, &err) < 0)
		return cli_fail(&err);
	return print_run(c, line(doc_str(run, "master_url", STR("")), a), &end.json);
}

/* An interrupt ends the wait for a master that does not answer. */
static int send_interruptible(struct api *api, const struct submission *s, const char *request,
			      struct buf *ret_json, struct err *err)
{
	if (interrupt_begin(err) < 0)
		return -1;
	api->stop = interrupt_flag;
	int rc = submission_send(api, s, request, ret_json, err);
	interrupt_end();
	api->stop = NULL;
	return rc < 0 ? submission_interrupted(err) : 0;
}

static bool was_interrupted(int signals)
{
	for (int sig; (sig = watch_signal_next(signals)) != 0;)
		if (sig == SIGINT || sig == SIGTERM)
			return true;
	return false;
}

/* The user interrupted a detached run while it was being submitted. */
static int cancel_submitted(struct api *api, const char *id)
{
	struct err err;

	if (api_cancel_run(api, id, false, NULL, &err) < 0)
		return api_fail(api, &err);
	cli_say("interrupted: %s is being cancelled", id);
	return err_exit_code(ERR_CANCELLED);
}

static int run_once(const struct cli_call *c, struct api *api, struct submission *s,
		    handed_line_fn line)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf json = {0};
	char request[REQUEST_ID_SIZE];
	CLEANUP(close_fdp) int signals = -1;
	struct err err;

	buf_init(&json, API_MAX_ANSWER);
	request_id_new(request);
	if ((signals = watch_signals(&err)) < 0)
		return cli_fail(&err);
	if (send_interruptible(api, s, request, &json, &err) < 0)
		return api_fail(api, &err);
	submission_drop_source(s);
	const char *id = id_of(&json, a, &err);
	if (!id)
		return cli_fail(&err);
	if (line)
		return watch_until_handed(c, api, id, signals, line);
	if (!call_flag(c, "detach"))
		return run_watch(c, api, id, signals, false);
	return was_interrupted(signals) ? cancel_submitted(api, id) : print_run(c, id, &json);
}

/* Without source a job runs in the directory of its file, which on another machine may have other content. */
static void say_where(const struct api *api, const struct job *job)
{
	if (!api_remote(api) || !plan_runs_in_place(job))
		return;
	cli_say("no source: the job runs in '%.200s' on the machine of master '%s'; 'source = \".\"' "
		"sends yours along",
		job->base_dir, api_remote(api));
}

int run_job(const struct cli_call *c, const struct job_input *in, handed_line_fn line)
{
	struct submission s;
	struct api api;
	struct err err;
	int code;

	if (api_open_for(&api, c, plan_context(in->job), true, &err) < 0)
		return cli_fail(&err);
	say_where(&api, in->job);
	if (submission_prepare(&api, in, &s, &err) < 0) {
		code = api_fail(&api, &err);
	} else {
		s.no_wait = call_flag(c, "no-wait");
		code = call_flag(c, "repeat") ? run_repeat(c, &api, &s)
					      : run_once(c, &api, &s, line);
		submission_release(&s);
	}
	api_release(&api);
	return code;
}

int command_run(const struct cli_call *c)
{
	struct job_input in;
	int code = check_options(c);

	if (code == 0 && call_flag(c, "dry-run"))
		return command_plan(c);
	if (code == 0)
		code = job_input_read(c, &in);
	if (code != 0)
		return code;
	code = run_job(c, &in, NULL);
	job_input_release(&in);
	return code;
}
