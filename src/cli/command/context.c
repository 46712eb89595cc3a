/* regatta context - names of masters: added, listed, chosen, removed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/contexts.h"
#include "cli/client/target.h"
#include "cli/command/commands.h"
#include "cli/command/context_found.h"
#include "cli/command/token_input.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"

/* Input and result of one action. */
struct contexts {
	const struct cli_call *c;
	const char *home;
	struct arena *a;
	struct buf *out;
	const char **hint; /* printed below the error */
};

static bool is_local(const char *name)
{
	return strcmp(name, CONTEXT_LOCAL) == 0;
}

static int not_local(const char *name, struct err *err)
{
	if (!is_local(name))
		return 0;
	return err_set(err, ERR_INVALID,
		       "'" CONTEXT_LOCAL
		       "' is your own master on this machine and has no settings");
}

/* Asks the master who the token belongs to, which also checks address and pin.  *ret_me: the answer. */
static int ask_master(struct target *t, struct arena *a, struct doc **ret_me, struct err *err)
{
	CLEANUP(api_release) struct api api = {0};

	if (api_open_target(&api, t, err) < 0)
		return -1;
	return api_get_doc(&api, "/api/v1/me", a, ret_me, err);
}

static void put_added(const struct contexts *x, const char *name, const struct context *ctx,
		      const struct doc *me)
{
	struct jsonw w;

	if (x->c->output == OUTPUT_JSON) {
		jsonw_init(&w, x->out);
		jsonw_open(&w, '{');
		jsonw_kz(&w, "name", name);
		jsonw_kz(&w, "url", ctx->url);
		jsonw_kz(&w, "pin", ctx->pin);
		jsonw_kbool(&w, "checked", me != NULL);
		if (me) {
			jsonw_kstr(&w, "scope", doc_str(me, "scope", STR("")));
			jsonw_kstr(&w, "version", doc_str(me, "version", STR("")));
		}
		jsonw_close(&w);
		buf_addc(x->out, '\n');
	} else if (me) {
		cli_say("%s: regatta %s at %s, and the token has the scope %s; 'regatta context use %s' "
			"chooses it",
			name, arena_str(x->a, doc_str(me, "version", STR("?"))).p, ctx->url,
			arena_str(x->a, doc_str(me, "scope", STR("?"))).p, name);
	} else {
		cli_say("%s was added without asking %s", name, ctx->url);
	}
}

static int add(const struct contexts *x, struct err *err)
{
	const char *name = call_arg(x->c, 1), *url = call_arg(x->c, 2);
	struct context ctx = {.url = url, .pin = call_text(x->c, "pin")};
	struct target *t;
	struct doc *me = NULL;

	if (!url)
		return err_set(
			err, ERR_INVALID,
			"context add: NAME and URL are needed, e.g. lab https://10.0.0.5:5436");
	if (not_local(name, err) < 0 || context_check_name(name, err) < 0 ||
	    token_input(x->c, x->a, &ctx.token, err) < 0 ||
	    target_new(name, url, ctx.pin, ctx.token, &t, err) < 0)
		return -1;
	if (call_flag(x->c, "no-check")) {
		target_free(t);
	} else if (ask_master(t, x->a, &me, err) < 0) {
		*x->hint = "nothing was added; --no-check adds it without asking the master";
		return -1;
	}
	if (context_write(x->home, name, &ctx, err) < 0)
		return -1;
	put_added(x, name, &ctx, me);
	return 0;
}

static void put_json(struct jsonw *w, const char *name, const struct context *ctx, bool current)
{
	jsonw_open(w, '{');
	jsonw_kz(w, "name", name);
	jsonw_kz(w, "url", ctx ? ctx->url : NULL);
	jsonw_kz(w, "pin", ctx ? ctx->pin : NULL);
	jsonw_kbool(w, "current", current);
	jsonw_close(w);
}

static int list(const struct contexts *x, struct err *err)
{
	static const struct column columns[] = {{.title = ""},
						{.title = "NAME", .min = 5},
						{.title = "URL"},
						{.title = "TRUSTED BY"}};
	struct style st = style_detect(STDOUT_FILENO);
	const char **names, *current;
	size_t n;
	struct table t;
	struct jsonw w;

	if (context_list(x->home, x->a, &names, &n, err) < 0 ||
	    context_current(x->home, x->a, &current, err) < 0)
		return -1;
	bool json = x->c->output == OUTPUT_JSON;
	jsonw_init(&w, x->out);
	table_init(&t, x->a, columns, sizeof(columns) / sizeof(columns[0]));
	if (json) {
		jsonw_open(&w, '[');
		put_json(&w, CONTEXT_LOCAL, NULL, is_local(current));
	} else {
		table_cellz(&t, is_local(current) ? "*" : "");
		table_cellz(&t, CONTEXT_LOCAL);
		table_cellz(&t, "your own master, on this machine");
		table_cellz(&t, "");
	}
	for (size_t i = 0; i < n; i++) {
		struct context ctx = {0};
		struct err why;
		/* One broken file must not hide the others. */
		bool good = context_read(x->home, names[i], x->a, &ctx, &why) == 0;
		if (!good)
			cli_say("%s", why.msg);
		bool is_current = strcmp(names[i], current) == 0;
		if (json) {
			put_json(&w, names[i], &ctx, is_current);
			continue;
		}
		table_cellz(&t, is_current ? "*" : "");
		table_cellz(&t, names[i]);
		table_cellz(&t, good ? ctx.url : "?");
		table_cellz(&t, !good ? "?" : ctx.pin ? "its pin" : "CA");
	}
	if (json) {
		jsonw_close(&w);
		buf_addc(x->out, '\n');
	} else {
		table_render(&t, &st, x->out);
	}
	return 0;
}

static int show(const struct contexts *x, struct err *err)
{
	const char *current, *name = call_arg(x->c, 1);
	struct context ctx;
	struct jsonw w;

	if (context_current(x->home, x->a, &current, err) < 0)
		return -1;
	name = name ? name : current;
	bool local = is_local(name);
	if (!local && context_read(x->home, name, x->a, &ctx, err) < 0)
		return -1;
	if (x->c->output == OUTPUT_JSON) {
		jsonw_init(&w, x->out);
		put_json(&w, name, local ? NULL : &ctx, strcmp(name, current) == 0);
		buf_addc(x->out, '\n');
		return 0;
	}
	buf_printf(x->out, "name    %s%s\n", name,
		   strcmp(name, current) == 0 ? " (the current one)" : "");
	if (local) {
		buf_addz(x->out, "socket  ");
		text_add_escaped(x->out, str_from(x->home));
		buf_addz(x->out, "/api.sock\n");
		return 0;
	}
	buf_addz(x->out, "url     ");
	text_add_escaped(x->out, str_from(ctx.url));
	buf_addz(x->out, "\npin     ");
	text_add_escaped(
		x->out,
		str_from(ctx.pin ? ctx.pin
				 : "none: the certificate must be of a CA that is trusted here"));
	buf_addz(x->out, "\ntoken   kept, never shown\n");
	return 0;
}

static void put_done(const struct contexts *x, const char *what, const char *name)
{
	struct jsonw w;

	if (x->c->output != OUTPUT_JSON)
		return;
	jsonw_init(&w, x->out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, what, name);
	jsonw_close(&w);
	buf_addc(x->out, '\n');
}

static int use(const struct contexts *x, struct err *err)
{
	const char *name = call_arg(x->c, 1), *over = getenv("REGATTA_MASTER");

	if (!name)
		return err_set(
			err, ERR_INVALID,
			"context use: NAME is missing: 'regatta context list' names them, '" CONTEXT_LOCAL
			"' is your own master");
	if (context_use(x->home, name, err) < 0)
		return -1;
	if (over && *over)
		cli_say("REGATTA_MASTER is set to '%.80s' and overrides the context", over);
	put_done(x, "current", name);
	return 0;
}

static int drop(const struct contexts *x, struct err *err)
{
	const char *name = call_arg(x->c, 1), *current = NULL;

	if (!name)
		return err_set(
			err, ERR_INVALID,
			"context remove: NAME is missing: 'regatta context list' names them");
	if (not_local(name, err) < 0 || context_remove(x->home, name, err) < 0)
		return -1;
	if (context_current(x->home, x->a, &current, err) < 0)
		return -1;
	if (strcmp(current, name) == 0) {
		if (context_use(x->home, CONTEXT_LOCAL, err) < 0)
			return -1;
		cli_say("'%s' was the current one: commands go to your own master now", name);
	}
	put_done(x, "removed", name);
	return 0;
}

static int find(const struct contexts *x, struct err *err)
{
	return context_found(x->c, x->home, x->a, x->out, err);
}

static const struct {
	const char *name;
	size_t max_args;
	int (*run)(const struct contexts *x, struct err *err);
} actions[] = {{"add", 3, add}, {"list", 1, list},   {"ls", 1, list},  {"show", 2, show},
	       {"use", 2, use}, {"remove", 2, drop}, {"aws", 1, find}, {"kubernetes", 1, find}};

static int check_options(const struct cli_call *c, const char *action)
{
	static const struct {
		const char *option, *action;
	} pairs[] = {{"pin", "add"},
		     {"token", "add"},
		     {"token-file", "add"},
		     {"no-check", "add"},
		     {"region", "aws"},
		     {"kube-context", "kubernetes"},
		     {"namespace", "kubernetes"}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		if (strcmp(action, pairs[i].action) == 0 || !call_flag(c, pairs[i].option))
			continue;
		cli_say("context %s: --%s goes with %s", action, pairs[i].option, pairs[i].action);
		return 2;
	}
	return 0;
}

int command_context(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out = {0};
	CLEANUP(freep) char *home = NULL;
	const char *hint = NULL;
	struct err err;

	buf_init(&out, CLI_MAX_TEXT);
	if (home_find(&home, &err) < 0 || home_check_owner(home, &err) < 0)
		return cli_fail(&err);
	struct contexts x = {.c = c, .home = home, .a = a, .out = &out, .hint = &hint};
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(actions[i].name, call_arg(c, 0)) != 0)
			continue;
		if (c->nargs > actions[i].max_args) {
			cli_say("context %s: '%s' is an unexpected argument", actions[i].name,
				c->args[actions[i].max_args]);
			return 2;
		}
		if (check_options(c, actions[i].name) != 0)
			return 2;
		if (actions[i].run(&x, &err) == 0)
			return cli_print(&out);
		int code = cli_fail(&err);
		if (hint)
			cli_say("%s", hint);
		return code;
	}
	return 2; /* the table of commands knows no other action */
}
