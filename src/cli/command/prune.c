/*
 * regatta prune - remove ended runs that are old, or for which there is no room.
 *
 * The options, or where they are missing the user's config.toml, say what stays.  A run that has not
 * ended is never touched, nor one of a suite that has not: its report needs all of them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/config_file.h"
#include "cli/command/commands.h"
#include "cli/show/render.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "spec/config.h"

#define CLEANUP_MS 60000

struct prune {
	struct api *api;
	struct arena *a;
	struct retention keep;
	struct map *in_suites; /* ids of the runs of suites that go on; the values are not used */
	bool dry;
	int64_t now_ms;
	uint64_t bytes; /* of the runs that stay, so far */
	/* what was removed, or would be */
	struct buf out;
	struct jsonw w;
	size_t removed;
	uint64_t freed;
};

/* ---- what stays ---- */

/* "10G" is 10GiB here, as for du and docker. */
static bool read_size(const char *text, uint64_t *ret)
{
	CLEANUP(freep) char *long_unit = xasprintf("%siB", text);

	return str_to_size(str_from(text), ret) || str_to_size(str_from(long_unit), ret);
}

static int read_limits(const struct cli_call *c, struct arena *a, struct retention *ret,
		       struct err *err)
{
	const char *age = call_text(c, "older-than"), *size = call_text(c, "max-size");
	struct user_config config;

	if (config_read(a, &config, err) < 0)
		return -1;
	*ret = config.retention;
	if (age &&
	    (!str_to_duration_ms(str_from(age), &ret->older_than_ms) || ret->older_than_ms <= 0))
		return err_set(err, ERR_INVALID,
			       "--older-than is '%.40s': expected a duration such as 30d or 12h",
			       age);
	if (size && (!read_size(size, &ret->max_size) || ret->max_size == 0))
		return err_set(err, ERR_INVALID,
			       "--max-size is '%.40s': expected a size such as 10G or 500MiB",
			       size);
	ret->keep_tagged = ret->keep_tagged || call_flag(c, "keep-tagged");
	if (!ret->older_than_ms && !ret->max_size)
		return err_set(err, ERR_INVALID,
			       "prune: give --older-than or --max-size, or [retention] in "
			       "~/.config/regatta/config.toml ('regatta explain retention')");
	return 0;
}

static bool is_tagged(const struct doc *run)
{
	const struct doc *tags = doc_array(run, "tags");

	return tags && tags->array.n;
}

static void note_runs(struct prune *p, const struct doc *suite)
{
	const struct doc *variants = doc_array(suite, "variants");

	for (size_t v = 0; variants && v < variants->array.n; v++) {
		const struct doc *runs = doc_array(variants->array.v[v], "runs");

		for (size_t i = 0; runs && i < runs->array.n; i++)
			map_put(p->in_suites, doc_str(runs->array.v[i], "run", STR("")), p);
	}
}

/* A suite that ends meanwhile keeps its runs until the next time. */
static int find_suites(struct prune *p, struct err *err)
{
	struct doc *list, *suite;

	if (api_get_doc(p->api, "/api/v1/suites?state=active&limit=10000", p->a, &list, err) < 0)
		return -1;
	const struct doc *suites = doc_array(list, "suites");

	for (size_t i = 0; suites && i < suites->array.n; i++) {
		struct str id = doc_str(suites->array.v[i], "id", STR(""));

		if (api_get_doc(p->api, api_suite_path(p->a, id, ""), p->a, &suite, err) < 0)
			return -1;
		note_runs(p, suite);
	}
	return 0;
}

/* Asks for the size only where there is a limit: the master reads the whole directory for it. */
static int size_of(struct prune *p, const char *id, uint64_t *ret, struct err *err)
{
	CLEANUP(freep) char *path = api_run_path(id, "/size");
	struct doc *answer;

	*ret = 0;
	if (!p->keep.max_size)
		return 0;
	if (api_get_doc(p->api, path, p->a, &answer, err) < 0)
		return -1;
	*ret = (uint64_t)doc_int(answer, "bytes", 0);
	return 0;
}

/* The runs come newest first.  One that does not fit makes room for no older one: its bytes are gone. */
static bool goes(struct prune *p, const struct doc *run, uint64_t bytes)
{
	int64_t ended_ms = doc_int(run, "ended_ms", 0);

	if ((p->keep.keep_tagged && is_tagged(run)) ||
	    map_get(p->in_suites, doc_str(run, "id", STR(""))))
		return false;
	if (p->keep.older_than_ms && p->now_ms - ended_ms > p->keep.older_than_ms)
		return true;
	return p->keep.max_size && p->bytes + bytes > p->keep.max_size;
}

/* ---- removing ---- */

static void add_removed(struct prune *p, const char *id, uint64_t bytes)
{
	jsonw_open(&p->w, '{');
	jsonw_kz(&p->w, "id", id);
	jsonw_kint(&p->w, "bytes", (int64_t)bytes);
	jsonw_close(&p->w);
	p->removed++;
	p->freed += bytes;
}

static int prune_run(struct prune *p, const struct doc *run, struct err *err)
{
	const char *id = arena_str(p->a, doc_str(run, "id", STR(""))).p;
	CLEANUP(freep) char *path = api_run_path(id, "/cleanup");
	uint64_t bytes;

	if (!run_ended(run))
		return 0;
	if (size_of(p, id, &bytes, err) < 0)
		return -1;
	if (!goes(p, run, bytes)) {
		p->bytes += bytes;
		return 0;
	}
	if (!p->dry && api_call(p->api, "POST", path, STR("{}"), CLEANUP_MS, NULL, err) < 0)
		return -1;
	add_removed(p, id, bytes);
	return 0;
}

/* A run that somebody watches, or that is gone meanwhile, does not keep the others. */
static int prune_all(struct prune *p, const struct doc *runs)
{
	int code = 0;

	for (size_t i = 0; runs && i < runs->array.n; i++) {
		struct err err;

		if (prune_run(p, runs->array.v[i], &err) == 0 || err.kind == ERR_NOT_FOUND)
			continue;
		int failed = api_fail(p->api, &err);
		code = code ? code : failed;
	}
	return code;
}

static void say_removed(const struct prune *p)
{
	char size[32];

	bytes_format((int64_t)p->freed, size);
	cli_say("%zu run%s %s%s%s", p->removed, p->removed == 1 ? "" : "s",
		p->dry ? "would be removed" : (p->removed == 1 ? "is removed" : "are removed"),
		p->keep.max_size ? ", " : "", p->keep.max_size ? size : "");
}

/* ---- the command ---- */

static void print_names(const struct doc *removed, struct buf *out)
{
	for (size_t i = 0; i < removed->array.n; i++) {
		text_add_escaped(out, doc_str(removed->array.v[i], "id", STR("")));
		buf_addc(out, '\n');
	}
}

static int print_removed(const struct cli_call *c, struct prune *p)
{
	CLEANUP(buf_release) struct buf names = {0};
	struct doc *removed;
	struct err err;

	jsonw_close(&p->w);
	buf_addc(&p->out, '\n');
	if (c->output == OUTPUT_JSON)
		return cli_print(&p->out);
	buf_init(&names, CLI_MAX_TEXT);
	if (reply_parse(buf_str(&p->out), p->a, &removed, &err) < 0)
		return cli_fail(&err);
	print_names(removed, &names);
	say_removed(p);
	return cli_print(&names);
}

int command_prune(const struct cli_call *c)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	CLEANUP(api_release) struct api api = {0};
	CLEANUP(map_freep) struct map *in_suites = map_new();
	struct prune p = {.api = &api,
			  .a = a,
			  .in_suites = in_suites,
			  .dry = call_flag(c, "dry-run"),
			  .now_ms = clock_wall_ms()};
	struct doc *root;
	struct err err;

	if (read_limits(c, a, &p.keep, &err) < 0)
		return cli_fail(&err);
	if (api_open_named(&api, c, true, &err) < 0)
		return cli_fail(&err);
	/* The runs first: what a suite has started since is not among them. */
	if (api_get_doc(&api, "/api/v1/runs?state=all&limit=0", a, &root, &err) < 0 ||
	    find_suites(&p, &err) < 0)
		return api_fail(&api, &err);
	buf_init(&p.out, CLI_MAX_TEXT);
	jsonw_init(&p.w, &p.out);
	jsonw_open(&p.w, '[');
	int code = prune_all(&p, doc_array(root, "runs"));
	int printed = print_removed(c, &p);

	buf_release(&p.out);
	return code ? code : printed;
}
