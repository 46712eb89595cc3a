/* Which parameters differ between the arms of a comparison, or within one that is no suite. */
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "report/comparison_internal.h"

#define MOST_VALUES 20 /* of one side that are listed */

/* The value as JSON; "null": the run has no such parameter. */
static const char *value_of(const struct comparison *c, const struct compare_run *r,
			    const char *name)
{
	const struct doc *value = doc_get(r->params, name);

	return value ? doc_json_text(c->a, value) : "null";
}

/* Variants of a suite differ by design: only those that are held against each other are looked at. */
static bool differs(const struct comparison *c, const char *name)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const char **first = arena_array(a, const char *, c->pairs.n + 1);

	for (size_t i = 0; i < c->o.narms; i++)
		for (size_t k = 0; k < c->arms[i].runs.n; k++) {
			const struct compare_run *run = &c->arms[i].runs.v[k];
			const char *value = value_of(c, run, name);

			if (first[run->pair] && strcmp(first[run->pair], value) != 0)
				return true;
			first[run->pair] = value;
		}
	return false;
}

/* Each value of the arm's runs once, in the order of the runs; no more than MOST_VALUES. */
static void values_to_json(const struct comparison *c, const struct compare_arm *arm,
			   const char *name, struct jsonw *w)
{
	const char *seen[MOST_VALUES];
	size_t n = 0;

	jsonw_open(w, '[');
	for (size_t k = 0; k < arm->runs.n && n < MOST_VALUES; k++) {
		const char *value = value_of(c, &arm->runs.v[k], name);
		bool known = false;

		for (size_t i = 0; i < n && !known; i++)
			known = strcmp(seen[i], value) == 0;
		if (known)
			continue;
		seen[n++] = value;
		jsonw_raw(w, str_from(value));
	}
	jsonw_close(w);
}

static void param_to_json(const struct comparison *c, const char *name, struct jsonw *w)
{
	if (!differs(c, name))
		return;
	jsonw_open(w, '{');
	jsonw_kz(w, "name", name);
	jsonw_key(w, "values");
	jsonw_open(w, '[');
	for (size_t i = 0; i < c->o.narms; i++)
		values_to_json(c, &c->arms[i], name, w);
	jsonw_close(w);
	jsonw_close(w);
}

void compare_params_to_json(const struct comparison *c, struct jsonw *w)
{
	CLEANUP(map_freep) struct map *seen = map_new();

	jsonw_key(w, "params");
	jsonw_open(w, '[');
	for (size_t i = 0; i < c->o.narms; i++)
		for (size_t k = 0; k < c->arms[i].runs.n; k++) {
			const struct doc *p = c->arms[i].runs.v[k].params;

			for (size_t j = 0; p && j < p->table.n; j++)
				if (!map_put(seen, p->table.v[j].key, (void *)p))
					param_to_json(c, arena_str(c->a, p->table.v[j].key).p, w);
		}
	jsonw_close(w);
}
