/* regatta run - submit a job and stay with it until the end. */
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
	return metrics;
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

static int print_submitted(const struct cli_call *c, const char *id, const struct buf *json)
{
	CLEANUP(buf_release) struct buf text = {0};

	buf_init(&text, CLI_MAX_TEXT);
	if (c->output == OUTPUT_JSON)
		buf_addstr(&text, str_trim(buf_str(json)));
	else
		buf_addz(&text, id);
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

static int watch_and_print(const struct cli_call *c, struct api *api, const char *id, int signals)
{
	struct watch_options o = {
		.follow = call_flag(c, "follow"),
		.output_to_err = c->output == OUTPUT_JSON,
		.signals = signals,
	};
	CLEANUP(watch_result_release) struct watch_result end = {0};
	struct err err;

	if (watch_run(api, id, &o, &end, &err) < 0)
		return api_fail(api, &err);
	if (end.left) {
		cli_say("%s goes on without this terminal: 'regatta status %s' shows it", id, id);
		return 0;
	}
	return print_end(c, api, &end.json);
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

static int run_once(const struct cli_call *c, struct api *api, struct submission *s)
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
	if (!call_flag(c, "detach"))
		return watch_and_print(c, api, id, signals);
	return was_interrupted(signals) ? cancel_submitted(api, id) : print_submitted(c, id, &json);
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

int command_run(const struct cli_call *c)
{
	struct job_input in;
	struct submission s;
	struct api api;
	struct err err;

	int code = check_options(c);
	if (code == 0)
		code = job_input_read(c, &in);
	if (code != 0)
		return code;
	if (api_open_named(&api, c, true, &err) < 0) {
		code = cli_fail(&err);
	} else {
		say_where(&api, in.job);
		if (submission_prepare(&api, &in, &s, &err) < 0) {
			code = api_fail(&api, &err);
		} else {
			code = call_flag(c, "repeat") ? run_repeat(c, &api, &s)
						      : run_once(c, &api, &s);
			submission_release(&s);
		}
		api_release(&api);
	}
	job_input_release(&in);
	return code;
}
