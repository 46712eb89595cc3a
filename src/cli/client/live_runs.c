#include "cli/client/live_runs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/path.h"
#include "cli/cli.h"
#include "cli/client/api.h"
#include "cli/client/contexts.h"
#include "cli/client/target.h"
#include "fmt/doc.h"
#include "link/layout.h"

#define ANY "/api/v1/runs?limit=1"
#define ACTIVE "/api/v1/runs?state=active&limit=10000"

struct live_runs {
	const char *home, *install;
	struct arena *a; /* of the caller */
	struct api own;
	struct map *runs;   /* id -> anything */
	struct map *silent; /* names of contexts that did not answer, said already */
	bool unsure;	    /* one of them did not answer the last time */
	bool had_runs;	    /* the own master has a run, active or not */
};

static bool has_store(const char *home)
{
	CLEANUP(freep) char *path = path_join(home, "regatta.db");

	return access(path, F_OK) == 0;
}

static int ask_own(struct live_runs *l, struct err *err)
{
	struct doc *me, *root;

	if (api_open(&l->own, true, err) < 0 ||
	    api_get_doc(&l->own, "/api/v1/me", l->a, &me, err) < 0 ||
	    api_get_doc(&l->own, ANY, l->a, &root, err) < 0)
		return -1;
	const struct doc *runs = doc_array(root, "runs");
	l->install = arena_str(l->a, doc_str(me, "install", STR(""))).p;
	l->had_runs = runs && runs->array.n > 0;
	return 0;
}

int live_runs_open(const char *home, struct arena *a, struct live_runs **ret, struct err *err)
{
	struct live_runs *l;

	*ret = NULL;
	if (!has_store(home))
		return 0;
	l = xcalloc(1, sizeof(*l));
	l->home = home;
	l->a = a;
	l->runs = map_new();
	l->silent = map_new();
	if (ask_own(l, err) < 0) {
		live_runs_free(l);
		return -1;
	}
	*ret = l;
	return 0;
}

struct live_runs *live_runs_free(struct live_runs *l)
{
	if (l) {
		api_release(&l->own);
		map_free(l->runs);
		map_free(l->silent);
		free(l);
	}
	return NULL;
}

const char *live_runs_install(const struct live_runs *l)
{
	return l->install;
}

bool live_runs_had_any(const struct live_runs *l)
{
	return l->had_runs;
}

static int add_runs(struct live_runs *l, struct api *api, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct doc *runs;
	struct doc *root;

	if (api_get_doc(api, ACTIVE, a, &root, err) < 0)
		return -1;
	runs = doc_array(root, "runs");
	for (size_t i = 0; runs && i < runs->array.n; i++)
		map_put(l->runs, doc_str(runs->array.v[i], "id", STR("")), l);
	return 0;
}

/* *ret_run: the only run that its master has; NULL: it may have any. */
static int add_context(struct live_runs *l, const char *name, const char **ret_run, struct err *err)
{
	CLEANUP(api_release) struct api api = {0};
	struct target *t;
	struct context ctx;

	*ret_run = NULL;
	if (context_read(l->home, name, l->a, &ctx, err) < 0)
		return -1;
	*ret_run = ctx.run;
	if (target_new(name, ctx.url, ctx.pin, ctx.token, &t, err) < 0 ||
	    api_open_target(&api, t, err) < 0)
		return -1;
	return add_runs(l, &api, err);
}

/* The master of one run is not there: the run may have ended with it, or not. */
static void say_silent(const char *name, const char *run, const struct err *why)
{
	if (run)
		cli_say("the master of run '%s' does not answer, so it may be active there: %s "
			"('regatta context aws' forgets it if it is gone)",
			run, why->msg);
	else
		cli_say("context '%s' does not answer, so every run may be active there: %s "
			"('regatta context remove %s' if it is gone)",
			name, why->msg, name);
}

int live_runs_refresh(struct live_runs *l, struct err *err)
{
	const char **names;
	struct err why;
	size_t n;

	l->runs = map_free(l->runs);
	l->runs = map_new();
	l->unsure = false;
	if (add_runs(l, &l->own, err) < 0 || context_list(l->home, l->a, &names, &n, err) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		const char *run;

		if (add_context(l, names[i], &run, &why) == 0)
			continue;
		if (run)
			map_put(l->runs, str_from(run), l);
		else
			l->unsure = true;
		if (!map_put(l->silent, str_from(names[i]), l))
			say_silent(names[i], run, &why);
	}
	return 0;
}

bool live_runs_has(const struct live_runs *l, const char *run)
{
	struct str carrier = layout_carrier_of(str_from(run));

	if (l->unsure || (carrier.n && map_get(l->runs, carrier)))
		return true;
	return *run ? map_get(l->runs, str_from(run)) != NULL : map_count(l->runs) > 0;
}
