/* regatta resize - how many nodes of a role a run has, while it runs. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "fmt/jsonw.h"
#include "spec/job.h"

#define ANSWER_MS 30000

static bool is_given_before(const struct cli_call *c, size_t index, struct str role)
{
	for (size_t i = 1; i < index; i++) {
		struct str word = str_from(call_arg(c, i));

		if (str_eq(str_cut(&word, '='), role))
			return true;
	}
	return false;
}

/* {"sizes":{ROLE:N,...}}: the master takes all of them or none. */
static int put_sizes(const struct cli_call *c, struct buf *body, struct err *err)
{
	struct jsonw w;
	const char *word;

	jsonw_init(&w, body);
	jsonw_open(&w, '{');
	jsonw_key(&w, "sizes");
	jsonw_open(&w, '{');
	for (size_t i = 1; (word = call_arg(c, i)); i++) {
		struct str rest = str_from(word), role = str_cut(&rest, '=');
		int64_t want;

		if (!rest.p || role.n == 0 || !str_to_i64(rest, &want) || want < 0 ||
		    want > JOB_MAX_NODES)
			return err_set(err, ERR_INVALID,
				       "'%.80s' is no size: write ROLE=N, as in trainer=6", word);
		if (is_given_before(c, i, role))
			return err_set(err, ERR_INVALID, "role '%.*s' is given twice",
				       STR_ARG(role));
		jsonw_key_str(&w, role);
		jsonw_int(&w, want);
	}
	jsonw_close(&w);
	jsonw_close(&w);
	return 0;
}

/* Nodes come and go after the answer. */
static void say_sizes(const struct cli_call *c, const char *id)
{
	for (size_t i = 1; call_arg(c, i); i++)
		printf("%s: %s is asked for; 'regatta status %s' shows the nodes\n", id,
		       call_arg(c, i), id);
}

int command_resize(const struct cli_call *c)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(freep) char *id = NULL;
	CLEANUP(buf_release) struct buf body = {0}, answer = {0};
	struct err err = {0};

	buf_init(&body, API_MAX_ANSWER);
	buf_init(&answer, API_MAX_ANSWER);
	if (put_sizes(c, &body, &err) < 0)
		return cli_fail(&err);
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, call_arg(c, 0), &id, &err) < 0)
		return api_fail(&api, &err);
	CLEANUP(freep) char *path = api_run_path(id, "/resize");

	if (api_call(&api, "POST", path, buf_str(&body), ANSWER_MS, &answer, &err) < 0)
		return api_fail(&api, &err);
	if (c->output == OUTPUT_JSON)
		printf("%s", answer.p);
	else
		say_sizes(c, id);
	return 0;
}
