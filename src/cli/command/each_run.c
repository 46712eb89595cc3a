#include "cli/command/each_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "fmt/doc.h"

void each_run_add(struct each_run *e, struct str json)
{
	buf_addz(&e->out, e->printed++ ? ",\n " : "[");
	buf_addstr(&e->out, str_trim(json));
}

static bool has_node(const struct doc *run, const char *name)
{
	const struct doc *nodes = doc_array(run, "nodes");

	for (size_t i = 0; nodes && i < nodes->array.n; i++)
		if (str_is(doc_str(nodes->array.v[i], "name", STR("")), name))
			return true;
	return false;
}

/* "RUN NODE" looks as if it were about one node, but the argument before is a run as a whole. */
static int refuse_node(struct api *api, const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct err err;

	for (size_t i = 0; i + 1 < c->nargs; i++) {
		CLEANUP(freep) char *path = api_run_path(c->args[i], "");
		struct doc *run;

		if (c->args[i][0] == 0 || api_get_doc(api, path, a, &run, &err) < 0)
			continue; /* said later */
		if (!has_node(run, c->args[i + 1]))
			continue;
		err_set(&err, ERR_INVALID,
			"'%s' is a node of %s, and a run is ended as a whole: nothing was done",
			c->args[i + 1], c->args[i]);
		return api_fail(api, &err);
	}
	return 0;
}

/* ---- --all ---- */

/* The ids of all runs of this state; words of the arena. */
static int list_runs(struct api *api, const char *state, struct arena *a, const char ***ret,
		     size_t *ret_n, struct err *err)
{
	const char *path = arena_printf(a, "/api/v1/runs?state=%s&limit=0", state);
	struct doc *root;

	if (api_get_doc(api, path, a, &root, err) < 0)
		return -1;
	const struct doc *runs = doc_array(root, "runs");
	size_t n = runs ? runs->array.n : 0;

	*ret = arena_array(a, const char *, n + 1);
	for (size_t i = 0; i < n; i++)
		(*ret)[i] = arena_str(a, doc_str(runs->array.v[i], "id", STR(""))).p;
	*ret_n = n;
	return 0;
}

/* Asks on the terminal. */
static int confirm(const struct cli_call *c, const char *verb, size_t n, struct err *err)
{
	char answer[16] = "";

	if (call_flag(c, "yes"))
		return 0;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return err_set(
			err, ERR_INVALID,
			"%s --all is about %zu run%s: --yes confirms it where there is no terminal",
			c->command->name, n, n == 1 ? "" : "s");
	fprintf(stderr, "%s %zu run%s? [y/N] ", verb, n, n == 1 ? "" : "s");
	if (fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
		return 0;
	return err_set(err, ERR_CANCELLED, "nothing was done");
}

/* The runs that the command is about, on the way to *ret_c, a copy of the call. */
static int choose_runs(const struct cli_call *c, struct api *api, const char *state,
		       const char *verb, struct arena *a, struct cli_call *ret_c, struct err *err)
{
	*ret_c = *c;
	if (!call_flag(c, "all"))
		return c->nargs ? 0
				: err_set(err, ERR_INVALID, "%s: give a RUN, or --all",
					  c->command->name);
	if (c->nargs)
		return err_set(err, ERR_INVALID, "%s: both a RUN and --all: give one of them",
			       c->command->name);
	if (list_runs(api, state, a, &ret_c->args, &ret_c->nargs, err) < 0)
		return -1;
	if (ret_c->nargs == 0) {
		cli_say(strcmp(state, "all") == 0 ? "there are no runs" : "no active runs");
		return 0;
	}
	return confirm(c, verb, ret_c->nargs, err);
}

/* A suite starts the next of its runs when one has ended, whatever ended it. */
static void say_suites(struct api *api, struct arena *a)
{
	struct doc *root;
	struct err ignored;

	if (api_get_doc(api, "/api/v1/suites?state=active&limit=100", a, &root, &ignored) < 0)
		return;
	const struct doc *suites = doc_array(root, "suites");

	for (size_t i = 0; suites && i < suites->array.n; i++) {
		struct str id = doc_str(suites->array.v[i], "id", STR(""));

		cli_say("suite %.*s goes on and starts others: 'regatta suite cancel %.*s' ends it",
			STR_ARG(id), STR_ARG(id));
	}
}

static int do_each(struct each_run *e, int (*one)(struct each_run *, const char *, struct err *))
{
	const struct cli_call *c = e->c;
	struct err err;
	int code = 0;

	for (size_t i = 0; i < c->nargs; i++) {
		if (c->args[i][0] == 0)
			err_set(&err, ERR_INVALID, "the name of a run is empty");
		else if (one(e, c->args[i], &err) == 0)
			continue;
		int failed = api_fail(e->api, &err);
		code = code ? code : failed;
	}
	return code;
}

int each_run_do(const struct cli_call *c, const char *state, const char *verb,
		int (*one)(struct each_run *e, const char *run, struct err *err))
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	struct cli_call chosen;
	struct each_run e = {.c = &chosen, .api = &api};
	struct err err;

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (choose_runs(c, &api, state, verb, a, &chosen, &err) < 0)
		return api_fail(&api, &err);
	int code = call_flag(c, "all") ? 0 : refuse_node(&api, c);
	if (code)
		return code;
	buf_init(&e.out, CLI_MAX_TEXT);
	code = do_each(&e, one);
	if (call_flag(c, "all"))
		say_suites(&api, a);
	if (c->output == OUTPUT_JSON)
		buf_addz(&e.out, e.printed ? "]\n" : "[]\n");
	int printed = cli_print(&e.out);
	buf_release(&e.out);
	return code ? code : printed;
}
