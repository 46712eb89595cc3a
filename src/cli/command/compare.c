/* regatta compare - the metrics of runs, of groups of repeats, or of suites, against those of the first. */
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

#define MAX_NAMES 40 /* of metrics; a query has 64 pairs */
#define MAX_PATH_BYTES (15u << 10)
#define WORSE_EXIT_CODE 1   /* as for a job that failed */
#define NOTHING_EXIT_CODE 3 /* as for a run that is not found */

/* Owned; NULL if it is too long for a request. */
static char *compare_path(const struct cli_call *c)
{
	CLEANUP(buf_release) struct buf b = {0};
	const char *names[MAX_NAMES];
	size_t n = call_texts(c, "metric", names, MAX_NAMES);

	buf_init(&b, MAX_PATH_BYTES);
	buf_addz(&b, "/api/v1/compare");
	for (size_t i = 0; i < c->nargs; i++)
		api_add_query(&b, "run", c->args[i]);
	for (size_t i = 0; i < n; i++)
		api_add_query(&b, "metric", names[i]);
	api_add_query(&b, "use", call_text(c, "use"));
	api_add_query(&b, "threshold", call_text(c, "threshold"));
	api_add_query(&b, "samples", call_flag(c, "samples") ? "1" : NULL);
	api_add_query(&b, "no_test", call_flag(c, "no-test") ? "1" : NULL);
	return b.overflow ? NULL : buf_take(&b);
}

/* Of the first arm, the id of its first run. */
static struct str first_run(const struct doc *cmp)
{
	const struct doc *arms = doc_array(cmp, "arms");
	const struct doc *runs = arms && arms->array.n ? doc_array(arms->array.v[0], "runs") : NULL;
	const struct doc *id = runs && runs->array.n ? runs->array.v[0] : NULL;

	return id && id->type == DOC_STRING ? id->s : STR("RUN");
}

/* A name that the master does not know may be that of a run that is elsewhere: asking for each takes it in. */
static int get_comparison(struct api *api, const struct cli_call *c, const char *path,
			  struct buf *json, struct err *err)
{
	bool found = false;

	if (api_get(api, path, json, err) == 0)
		return 0;
	for (size_t i = 0; i < c->nargs && err->kind == ERR_NOT_FOUND; i++) {
		CLEANUP(freep) char *run = api_run_path(c->args[i], "");
		struct err ignored;

		found |= api_get(api, run, NULL, &ignored) == 0;
	}
	return found ? api_get(api, path, json, err) : -1;
}

int command_compare(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(buf_release) struct buf json, out;
	struct style st = style_detect(STDOUT_FILENO);
	const char *names[MAX_NAMES + 1];
	struct doc *cmp;
	struct err err;

	buf_init(&json, API_MAX_ANSWER);
	buf_init(&out, CLI_MAX_TEXT);
	if (c->nargs < 2) {
		cli_say("compare: a comparison needs two runs or more");
		return 2;
	}
	if (call_texts(c, "metric", names, MAX_NAMES + 1) > MAX_NAMES) {
		cli_say("compare: at most %d metrics can be named", MAX_NAMES);
		return 2;
	}
	CLEANUP(freep) char *path = compare_path(c);
	if (!path) {
		cli_say("compare: too many names for one request: take groups by the name of a job, or name@lastN");
		return 2;
	}
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	if (get_comparison(&api, c, path, &json, &err) < 0 ||
	    reply_parse(buf_str(&json), a, &cmp, &err) < 0)
		return api_fail(&api, &err);
	if (c->output == OUTPUT_JSON)
		buf_addstr(&out, buf_str(&json));
	else
		compare_render(cmp, &st, &out);
	int code = cli_print(&out);
	const struct doc *metrics = doc_array(cmp, "metrics");
	if (code == 0 && (!metrics || metrics->array.n == 0)) {
		struct str first = first_run(cmp);
		cli_say("compare: there was no metric to compare: 'regatta metrics %.*s' lists those of a run",
			STR_ARG(first));
		return NOTHING_EXIT_CODE;
	}
	return code ? code : doc_bool(cmp, "fails", false) ? WORSE_EXIT_CODE : 0;
}
