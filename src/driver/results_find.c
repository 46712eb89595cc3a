#include "driver/results.h"

#include <stddef.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "driver/engine_tools.h"
#include "driver/object_store.h"
#include "fmt/doc.h"

/* The runs whose ids begin with the word and whose copy is complete. */
struct candidates {
	struct arena *a;
	const char *first; /* NULL: none */
	int n;
};

static int note_candidate(void *ctx, const struct object *o, struct err *err)
{
	struct candidates *c = ctx;
	struct str rest = str_from(o->name), run = str_cut(&rest, '/');

	(void)err;
	if (rest.p && str_is(rest, RESULTS_INDEX) && c->n++ == 0)
		c->first = arena_str(c->a, run).p;
	return 0;
}

/* *ret_run: NULL if there is none. */
static int find_run(const char *url, const char *word, const struct deadline *d, struct arena *a,
		    const char **ret_run, struct err *err)
{
	CLEANUP(object_store_freep) struct object_store *st = NULL;
	const struct object_access who = {.own = true};
	struct candidates c = {.a = a};
	struct err why = {0};
	struct object o;

	if (object_store_open(url, &who, d, &st, err) < 0)
		return -1;
	if (object_head(st, arena_printf(a, "%s/" RESULTS_INDEX, word), d, &o, &why) == 0) {
		*ret_run = arena_strdup(a, word);
		return 0;
	}
	if (why.kind == ERR_NOT_FOUND)
		(void)object_list(st, word, d, note_candidate, &c, &why);
	if (why.kind != ERR_NONE && why.kind != ERR_NOT_FOUND) {
		*err = why;
		return -1;
	}
	if (c.n > 1)
		return err_set(err, ERR_CONFLICT, "%d runs in %.100s begin with '%.60s'", c.n, url,
			       word);
	*ret_run = c.first;
	return 0;
}

static int look_at(const char *url, const char *word, const struct deadline *d, struct arena *a,
		   struct results_found *ret, struct err *err)
{
	struct doc *credentials = NULL;

	if (find_run(url, word, d, a, &ret->run, err) < 0)
		return -1;
	if (!ret->run)
		return 0;
	if (object_credentials(url, NULL, a, &credentials, err) < 0)
		return -1;
	ret->credentials = doc_json_text(a, credentials);
	return 0;
}

int results_find(const char *word, const struct deadline *d, struct arena *a,
		 struct results_found *ret, struct err *err)
{
	const struct engine_tools *tools;

	*ret = (struct results_found){0};
	for (unsigned i = 0; !ret->run && (tools = engine_tools_at(i)); i++) {
		const char *url = NULL;

		if (tools->results_place && tools->results_place(d, a, &url, err) < 0)
			return err_wrap(err, "%s", tools->engine);
		if (!url)
			continue;
		ret->url = url;
		if (look_at(url, word, d, a, ret, err) < 0)
			return -1;
	}
	return 0;
}
