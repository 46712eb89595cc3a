/* regatta paddle - the client of Paddle's AWS benchmark tool, by its flags (docs/paddle.md). */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/find_masters.h"
#include "cli/client/target.h"
#include "cli/command/commands.h"
#include "cli/command/job_input.h"
#include "cli/command/run.h"
#include "dialect/paddle.h"
#include "driver/engine_tools.h"
#include "fmt/doc.h"

#define PORT "5436"
#define ANSWER_MS 60000

/* The flags as a table of strings. */
static struct doc *flags_of(const struct cli_call *c, struct arena *a)
{
	struct doc *flags = doc_new(a, DOC_TABLE);

	for (size_t i = 0; i < c->nvalues; i++)
		if (c->values[i].text)
			doc_set(a, flags, str_from(c->values[i].option->name),
				doc_new_str(a, str_from(c->values[i].text)));
	return flags;
}

static int read_job(const struct cli_call *c, struct job_input *ret)
{
	struct arena *a = arena_new();

	return job_input_convert(a, flags_of(c, a), paddle_job, ret);
}

/* The words of the old tool, which scripts wait for. */
static const char *handed_line(struct str url, struct arena *a)
{
	return arena_printf(
		a, "master server finished init process, visit %.*s/status to check master log",
		STR_ARG(url));
}

static int create(const struct cli_call *c)
{
	struct job_input in;
	int code = read_job(c, &in);

	if (code != 0)
		return code;
	code = call_flag(c, "print") ? job_input_print(c, &in) : run_job(c, &in, handed_line);
	job_input_release(&in);
	return code;
}

/* Brings the contexts of masters on instances up to date. */
static int look_for_masters(const char *url, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(freep) char *home = NULL;
	const struct masters_input in = {0};
	struct running_masters ignored;

	if (home_find(&home, err) < 0 || masters_find(home, "aws", &in, a, &ignored, err) < 0)
		return err_wrap(err, "look for the master %s", url);
	return 0;
}

static int no_master(const char *url, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
		       "no master runs at %s; one ends with its run, and 'regatta logs RUN' has "
		       "the logs",
		       url);
}

/* The master of a URL.  One that no context has may run on an instance. */
static int find_target(const char *url, struct target **ret, struct err *err)
{
	if (target_find(url, ret, err) == 0)
		return 0;
	if (look_for_masters(url, err) < 0)
		return -1;
	return target_find(url, ret, err) == 0 ? 0 : no_master(url, err);
}

/* A master that does not answer may have ended with its machine since its context was written. */
static void explain_silence(const char *url, struct err *err)
{
	struct target *target;
	struct err ignored;

	if (err->kind != ERR_UNAVAILABLE && err->kind != ERR_TIMEOUT)
		return;
	if (look_for_masters(url, &ignored) < 0)
		return;
	if (target_find(url, &target, &ignored) == 0)
		target_free(target);
	else
		(void)no_master(url, err);
}

static int master_url(const char *host, const char *port, char *url, size_t size, struct err *err)
{
	int64_t number;

	if (!str_to_i64(str_from(port), &number) || number < 1 || number > 65535)
		return err_set(err, ERR_INVALID,
			       "--master_server_port '%.40s': expected a port from 1 to 65535",
			       port);
	if (!*host || strpbrk(host, "/ "))
		return err_set(
			err, ERR_INVALID,
			"--master_server_public_ip '%.100s': expected an address or a name, as "
			"in https://ADDRESS:PORT",
			host);
	snprintf(url, size, "https://%.255s:%d", host, (int)number);
	return 0;
}

/* Asks the master that the flags name, and prints its answer. */
static int ask_master(const struct cli_call *c, const char *method, const char *path)
{
	const char *host = call_text(c, "master_server_public_ip");
	const char *port = call_text(c, "master_server_port");
	CLEANUP(buf_release) struct buf answer = {0};
	struct target *target;
	struct api api;
	struct err err;
	char url[300];

	if (!host) {
		err_set(&err, ERR_INVALID,
			"--action %s needs --master_server_public_ip: 'regatta ps' shows the masters' "
			"addresses",
			call_text(c, "action"));
		return cli_fail(&err);
	}
	if (master_url(host, port ? port : PORT, url, sizeof(url), &err) < 0 ||
	    find_target(url, &target, &err) < 0)
		return cli_fail(&err);
	if (api_open_target(&api, target, &err) < 0) {
		explain_silence(url, &err);
		return cli_fail(&err);
	}
	buf_init(&answer, CLI_MAX_TEXT);
	int code = api_call(&api, method, path, STR(""), ANSWER_MS, &answer, &err) < 0
			   ? api_fail(&api, &err)
			   : cli_print(&answer);
	api_release(&api);
	return code;
}

int command_paddle(const struct cli_call *c)
{
	const char *action = call_text(c, "action");

	if (action && strcmp(action, "status") == 0)
		return ask_master(c, "GET", "/status");
	if (action && strcmp(action, "cleanup") == 0)
		return ask_master(c, "POST", "/cleanup");
	return create(c);
}
