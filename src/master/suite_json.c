/* A suite as JSON: the API's object, and summary.json. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "master/clock.h"
#include "master/internal.h"
#include "master/suites.h"

static void put_counts(struct jsonw *w, const int *count)
{
	int n = 0;

	for (int i = 0; i < ENTRY_STATES; i++)
		n += count[i];
	jsonw_key(w, "counts");
	jsonw_open(w, '{');
	jsonw_kint(w, "runs", n);
	for (int i = 0; i < ENTRY_STATES; i++)
		jsonw_kint(w, entry_state_name((enum entry_state)i), count[i]);
	jsonw_close(w);
}

static void put_times(struct jsonw *w, const struct suite_row *row)
{
	int64_t end = row->ended_ms ? row->ended_ms : clock_wall_ms();

	jsonw_kint(w, "created_ms", row->created_ms);
	jsonw_key(w, "ended_ms");
	if (row->ended_ms)
		jsonw_int(w, row->ended_ms);
	else
		jsonw_null(w);
	jsonw_kint(w, "elapsed_ms", end > row->created_ms ? end - row->created_ms : 0);
}

static void put_left(struct jsonw *w, int64_t ms)
{
	jsonw_key(w, "left_ms");
	if (ms >= 0)
		jsonw_int(w, ms);
	else
		jsonw_null(w);
}

static void put_params(struct jsonw *w, const struct suite *s, const struct suite_variant *v)
{
	struct buf text;

	jsonw_key(w, "params");
	jsonw_open(w, '{');
	for (int k = 0; k < s->nkeys; k++) {
		if (!v->values[k])
			continue;
		buf_init(&text, DOC_MAX_BYTES);
		doc_to_json(v->values[k], &text);
		jsonw_key(w, s->keys[k]);
		jsonw_raw(w, buf_str(&text));
		buf_release(&text);
	}
	jsonw_close(w);
}

static void put_entry(struct jsonw *w, const struct live_suite *ls, int i)
{
	const struct suite_entry *e = &ls->core->entries[i];

	jsonw_open(w, '{');
	jsonw_kint(w, "repeat", e->repeat + 1);
	jsonw_kz(w, "state", entry_state_name(e->state));
	jsonw_kint(w, "attempt", e->attempt);
	jsonw_kz(w, "run", ls->runs[i]);
	jsonw_kz(w, "cause", *e->cause ? e->cause : NULL);
	jsonw_kdouble(w, "cost_usd", (double)e->cost_micro / 1e6);
	jsonw_close(w);
}

int suite_entry_of(const struct live_suite *ls, int v, int r)
{
	bool mixed = ls->plan.runs.order == ORDER_INTERLEAVED;

	return mixed ? r * ls->plan.n + v : v * (int)ls->plan.runs.repeats + r;
}

static void put_keys(struct jsonw *w, const char *name, const struct suite *s, int n)
{
	jsonw_key(w, name);
	jsonw_open(w, '[');
	for (int k = 0; k < n; k++)
		jsonw_z(w, s->keys[k]);
	jsonw_close(w);
}

static void put_variants(struct jsonw *w, const struct live_suite *ls)
{
	const struct suite *s = &ls->plan;

	put_keys(w, "keys", s, s->nkeys);
	put_keys(w, "axes", s, s->naxes);
	jsonw_key(w, "variants");
	jsonw_open(w, '[');
	for (int v = 0; v < s->n; v++) {
		jsonw_open(w, '{');
		jsonw_kz(w, "name", s->variants[v].name);
		jsonw_kz(w, "job", s->variants[v].job);
		jsonw_kbool(w, "experiment", s->variants[v].experiment >= 0);
		put_params(w, s, &s->variants[v]);
		jsonw_key(w, "runs");
		jsonw_open(w, '[');
		for (int r = 0; r < (int)s->runs.repeats; r++)
			put_entry(w, ls, suite_entry_of(ls, v, r));
		jsonw_close(w);
		jsonw_close(w);
	}
	jsonw_close(w);
}

/* Why the first entry that could start does not. */
static const char *waits_for(const struct core_suite *c)
{
	for (int i = c->first; c->phase == SUITE_RUNNING && c->next_ms && i < c->n; i++)
		if (c->entries[i].state == ENTRY_WAITING && *c->entries[i].cause)
			return c->entries[i].cause;
	return NULL;
}

void suite_to_json(const struct live_suite *ls, bool brief, struct buf *out)
{
	const struct core_suite *c = ls->core;
	bool closing = c->phase == SUITE_CLOSING ||
		       (c->away && strcmp(ls->there, suite_phase_name(SUITE_CLOSING)) == 0);
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "id", ls->row.id);
	jsonw_kz(&w, "name", ls->row.name);
	jsonw_kz(&w, "state", suite_phase_name(closing ? SUITE_CLOSING : c->phase));
	jsonw_kz(&w, "outcome",
		 closing || suite_phase_is_final(c->phase) ? suite_phase_name(suite_outcome(c))
							   : NULL);
	jsonw_kbool(&w, "away", c->away);
	jsonw_kz(&w, "cause", *c->cause ? c->cause : NULL);
	jsonw_kz(&w, "on_exit", *c->closed ? c->closed : NULL);
	jsonw_kz(&w, "waits_for", waits_for(c));
	jsonw_key(&w, "exit_code");
	if (suite_phase_is_final(c->phase))
		jsonw_int(&w, suite_exit_code(c));
	else
		jsonw_null(&w);
	jsonw_kz(&w, "dir", ls->dir);
	put_times(&w, &ls->row);
	put_left(&w, suite_left_ms(c, master_now(ls->m)));
	jsonw_kint(&w, "repeats", ls->plan.runs.repeats);
	jsonw_kint(&w, "parallel", c->parallel);
	jsonw_kdouble(&w, "cost_usd", (double)(c->spent_micro + c->active_micro) / 1e6);
	put_counts(&w, c->count);
	if (!brief)
		put_variants(&w, ls);
	jsonw_close(&w);
}

void suite_row_to_json(const struct suite_row *row, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "id", row->id);
	jsonw_kz(&w, "name", row->name);
	jsonw_kz(&w, "state", suite_phase_name((enum suite_phase)row->phase));
	jsonw_kz(&w, "cause", *row->cause ? row->cause : NULL);
	put_times(&w, row);
	put_counts(&w, row->entries);
	jsonw_close(&w);
}
