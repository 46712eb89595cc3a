/* regatta token - tokens for callers over HTTP: made, listed, revoked. */
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
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "fmt/url.h"

#define CALL_MS 10000
#define PATH "/api/v1/tokens"

static int new_token(const struct cli_call *c, struct api *api, struct buf *out, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf body = {0};
	CLEANUP(buf_release) struct buf answer = {0};
	const char *scope = call_text(c, "scope"), *name = call_text(c, "name"),
		   *expires = call_text(c, "expires");
	int64_t valid_ms = 0;
	struct jsonw w;
	struct doc *d;

	if (!scope)
		return err_set(err, ERR_INVALID,
			       "token new: --scope read, submit, admin or join is needed");
	if (expires && (!str_to_duration_ms(str_from(expires), &valid_ms) || valid_ms <= 0))
		return err_set(err, ERR_INVALID,
			       "--expires '%s': expected a duration, e.g. 7d or 12h", expires);
	buf_init(&body, 8192);
	buf_init(&answer, API_MAX_ANSWER);
	jsonw_init(&w, &body);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "scope", scope);
	jsonw_kz(&w, "name", name ? name : "");
	jsonw_kint(&w, "valid_ms", valid_ms);
	jsonw_close(&w);
	if (api_call(api, "POST", PATH, buf_str(&body), CALL_MS, &answer, err) < 0 ||
	    reply_parse(buf_str(&answer), a, &d, err) < 0)
		return -1;
	if (c->output == OUTPUT_JSON) {
		buf_addstr(out, buf_str(&answer));
		return 0;
	}
	text_add_escaped(out, doc_str(d, "token", STR("")));
	buf_addc(out, '\n');
	cli_say("token %s, scope %s: it is shown only this once",
		arena_str(a, doc_str(d, "id", STR("?"))).p, scope);
	return 0;
}

static void put_time(struct table *t, const struct doc *d, const char *key)
{
	int64_t ms = doc_int(d, key, 0);
	char text[32];

	if (ms)
		clock_format(ms, text);
	table_cell(t, ms ? (struct str){text, 16} : STR("never")); /* to the minute */
}

static int list_tokens(const struct cli_call *c, struct api *api, struct buf *out, struct err *err)
{
	static const struct column columns[] = {
		{.title = "ID", .min = 8}, {.title = "SCOPE", .min = 6}, {.title = "NAME"},
		{.title = "MADE"},	   {.title = "EXPIRES"},	 {.title = "LAST USED"}};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf answer = {0};
	struct style st = style_detect(STDOUT_FILENO);
	struct table t;
	struct doc *d;

	buf_init(&answer, API_MAX_ANSWER);
	if (api_get(api, PATH, &answer, err) < 0 || reply_parse(buf_str(&answer), a, &d, err) < 0)
		return -1;
	if (c->output == OUTPUT_JSON) {
		buf_addstr(out, buf_str(&answer));
		return 0;
	}
	const struct doc *tokens = doc_array(d, "tokens");
	if (!tokens || !tokens->array.n) {
		cli_say("%s",
			api_remote(api)
				? "there are no tokens besides that of the master's own user"
				: "there are no tokens besides your own, in $REGATTA_HOME/token");
		return 0;
	}
	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < tokens->array.n; i++) {
		const struct doc *one = tokens->array.v[i];
		table_cell(&t, doc_str(one, "id", STR("?")));
		table_cell(&t, doc_str(one, "scope", STR("?")));
		table_cell(&t, doc_str(one, "name", STR("")));
		put_time(&t, one, "created_ms");
		put_time(&t, one, "expires_ms");
		put_time(&t, one, "used_ms");
	}
	table_render(&t, &st, out);
	return 0;
}

static int revoke_token(const struct cli_call *c, struct api *api, struct buf *out, struct err *err)
{
	CLEANUP(buf_release) struct buf path = {0};
	CLEANUP(buf_release) struct buf answer = {0};
	const char *id = call_arg(c, 1);

	if (!id || !*id)
		return err_set(err, ERR_INVALID,
			       "token revoke: ID is missing: 'regatta token list' names them");
	buf_init(&path, 8192);
	buf_init(&answer, API_MAX_ANSWER);
	buf_addz(&path, PATH "/");
	url_encode(&path, str_from(id));
	if (api_call(api, "DELETE", path.p, STR(""), CALL_MS, &answer, err) < 0)
		return -1;
	if (c->output == OUTPUT_JSON)
		buf_addstr(out, buf_str(&answer));
	else
		cli_say("token %s is revoked", id);
	return 0;
}

static int check_options(const struct cli_call *c, const char *action)
{
	static const char *const of_new[] = {"scope", "expires", "name"};

	for (size_t i = 0; i < sizeof(of_new) / sizeof(of_new[0]); i++) {
		if (strcmp(action, "new") == 0 || !call_flag(c, of_new[i]))
			continue;
		cli_say("token %s: --%s goes with new", action, of_new[i]);
		return 2;
	}
	return 0;
}

static const struct {
	const char *name;
	size_t max_args;
	int (*run)(const struct cli_call *c, struct api *api, struct buf *out, struct err *err);
} actions[] = {{"new", 1, new_token}, {"list", 1, list_tokens}, {"revoke", 2, revoke_token}};

int command_token(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf out = {0};
	struct err err;

	buf_init(&out, CLI_MAX_TEXT);
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (strcmp(actions[i].name, call_arg(c, 0)) != 0)
			continue;
		if (c->nargs > actions[i].max_args) {
			cli_say("token %s: '%s' is an unexpected argument", actions[i].name,
				c->args[actions[i].max_args]);
			return 2;
		}
		if (check_options(c, actions[i].name) != 0)
			return 2;
		if (api_open_named(&api, c, true, &err) < 0)
			return cli_fail(&err);
		if (actions[i].run(c, &api, &out, &err) < 0)
			return api_fail(&api, &err);
		return cli_print(&out);
	}
	return 2; /* the table of commands knows no other action */
}
