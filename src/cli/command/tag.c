/* regatta tag, regatta note - words that people put on a run. */
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "spec/tag.h"

#define ANSWER_MS 30000
#define MAX_BODY (64u << 10)

/* The words with this sign, as a list of the request. */
static int add_words(const struct cli_call *c, char sign, const char *key, struct jsonw *w,
		     struct err *err)
{
	size_t n = 0;

	jsonw_key(w, key);
	jsonw_open(w, '[');
	for (size_t i = 1; call_arg(c, i); i++) {
		const char *word = call_arg(c, i);

		if (word[0] != '+' && word[0] != '-')
			return err_set(err, ERR_INVALID,
				       "'%.80s': write +TAG to add a tag, -TAG to remove one",
				       word);
		if (word[0] != sign)
			continue;
		if (tag_check(str_from(word + 1), err) < 0)
			return -1;
		n++;
		jsonw_z(w, word + 1);
	}
	jsonw_close(w);
	if (n > TAGS_MAX)
		return err_set(err, ERR_INVALID, "%zu tags: a run has at most %d", n, TAGS_MAX);
	return 0;
}

static int tag_body(const struct cli_call *c, struct buf *body, struct err *err)
{
	struct jsonw w;

	jsonw_init(&w, body);
	jsonw_open(&w, '{');
	if (add_words(c, '+', "add", &w, err) < 0 || add_words(c, '-', "remove", &w, err) < 0)
		return -1;
	jsonw_close(&w);
	return 0;
}

/* Sends the request; the run object is appended to *answer. */
static int send_label(const struct cli_call *c, const char *what, struct str body,
		      struct buf *answer)
{
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(freep) char *id = NULL;
	struct err err = {0};

	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (api_pick_run(&api, call_arg(c, 0), &id, &err) < 0)
		return api_fail(&api, &err);
	CLEANUP(freep) char *path = api_run_path(id, what);

	return api_call(&api, "POST", path, body, ANSWER_MS, answer, &err) < 0
		       ? api_fail(&api, &err)
		       : 0;
}

/* The tags of the run, a line each. */
static int print_tags(const struct cli_call *c, const struct buf *answer)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(buf_release) struct buf out = {0};
	struct doc *run;
	struct err err;

	buf_init(&out, API_MAX_ANSWER);
	if (c->output == OUTPUT_JSON)
		return cli_print(answer);
	if (reply_parse(buf_str(answer), a, &run, &err) < 0)
		return cli_fail(&err);
	const struct doc *tags = doc_array(run, "tags");

	for (size_t i = 0; tags && i < tags->array.n; i++) {
		text_add_escaped(&out, tags->array.v[i]->s);
		buf_addc(&out, '\n');
	}
	return cli_print(&out);
}

int command_tag(const struct cli_call *c)
{
	CLEANUP(buf_release) struct buf body = {0}, answer = {0};
	struct err err = {0};

	buf_init(&body, MAX_BODY);
	buf_init(&answer, API_MAX_ANSWER);
	if (tag_body(c, &body, &err) < 0)
		return cli_fail(&err);
	int code = send_label(c, "/tags", buf_str(&body), &answer);

	return code ? code : print_tags(c, &answer);
}

int command_note(const struct cli_call *c)
{
	CLEANUP(buf_release) struct buf body = {0}, answer = {0};
	struct err err = {0};
	struct jsonw w;

	buf_init(&body, MAX_BODY);
	buf_init(&answer, API_MAX_ANSWER);
	if (note_check(str_from(call_arg(c, 1)), &err) < 0)
		return cli_fail(&err);
	jsonw_init(&w, &body);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "text", call_arg(c, 1));
	jsonw_close(&w);
	int code = send_label(c, "/notes", buf_str(&body), &answer);

	return code || c->output != OUTPUT_JSON ? code : cli_print(&answer);
}
