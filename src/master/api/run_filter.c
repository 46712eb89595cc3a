#include "master/api/run_filter.h"

#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"
#include "core/core.h"
#include "fmt/doc.h"
#include "fmt/url.h"
#include "store/store.h"

#define MAX_TAGS 16

static int add_state(struct str word, unsigned *states, struct err *err)
{
	for (int p = 0; p < RUN_PHASES; p++) {
		bool final = run_phase_is_final((enum run_phase)p);

		if (str_is(word, "all") || (str_is(word, "active") && !final) ||
		    (str_is(word, "ended") && final) ||
		    str_is(word, run_phase_name((enum run_phase)p)))
			*states |= 1u << p;
	}
	if (*states)
		return 0;
	return err_set(err, ERR_INVALID,
		       "there is no state '%.*s': all, active, ended, accepted, provisioning, "
		       "gathering, running, collecting, cleaning, succeeded, failed or cancelled",
		       (int)(word.n < 40 ? word.n : 40), word.p);
}

static int read_states(struct str text, struct run_filter *f, struct err *err)
{
	while (text.p) {
		unsigned states = 0;

		if (add_state(str_trim(str_cut(&text, ',')), &states, err) < 0)
			return -1;
		f->states |= states;
	}
	f->active = true;
	for (int p = 0; p < RUN_PHASES; p++)
		if (run_phase_is_final((enum run_phase)p) && (f->states & 1u << p))
			f->active = false;
	return 0;
}

int run_filter_read(const struct url_query *q, struct arena *a, struct run_filter *ret,
		    struct err *err)
{
	struct str since = query_get(q, "since", STR("")), name = query_get(q, "name", STR(""));
	struct str engine = query_get(q, "engine", STR(""));
	const unsigned all = (1u << RUN_PHASES) - 1, live = (1u << RUN_SUCCEEDED) - 1;

	*ret = (struct run_filter){.tags = {arena_array(a, const char *, MAX_TAGS), 0}};
	if (read_states(query_get(q, "state", STR("all")), ret, err) < 0)
		return -1;
	if (since.n && (!str_to_i64(since, &ret->since_ms) || ret->since_ms < 0))
		return err_set(err, ERR_INVALID, "'since' must be a Unix time in milliseconds");
	for (size_t i = 0; i < q->n; i++) {
		if (!str_is(q->v[i].name, "tag"))
			continue;
		if (ret->tags.n == MAX_TAGS)
			return err_set(err, ERR_INVALID, "more than %d tags are asked for",
				       MAX_TAGS);
		ret->tags.v[ret->tags.n++] = arena_str(a, q->v[i].value).p;
	}
	ret->name = name.n ? arena_str(a, name).p : NULL;
	ret->engine = engine.n ? arena_str(a, engine).p : NULL;
	ret->any = (ret->states != all && ret->states != live) || ret->name || ret->engine ||
		   ret->tags.n || ret->since_ms;
	return 0;
}

static bool has_tags(const struct strs *tags, const char *json)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct doc *list;
	size_t found = 0;

	if (!tags->n)
		return true;
	if (!json || json_parse(str_from(json), a, &list, NULL) < 0 || list->type != DOC_ARRAY)
		return false;
	for (size_t i = 0; i < tags->n; i++)
		for (size_t k = 0; k < list->array.n; k++)
			if (str_is(list->array.v[k]->s, tags->v[i])) {
				found++;
				break;
			}
	return found == tags->n;
}

bool run_filter_fits(const struct run_filter *f, const struct run_row *row)
{
	return f->states & 1u << row->phase && row->created_ms >= f->since_ms &&
	       (!f->name || path_match(f->name, row->name) || path_match(f->name, row->id)) &&
	       (!f->engine || path_match(f->engine, row->engine)) && has_tags(&f->tags, row->tags);
}
