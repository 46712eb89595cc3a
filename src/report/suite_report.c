#include "report/suite_report.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "report/internal.h"
#include "report/suite_internal.h"
#include "store/store.h"

#define MAX_VALUES 2000 /* of one run, metric and node; longer series are thinned evenly */

struct run_series {
	struct suite_report *r;
	const struct doc *job;
	size_t run;
};

static bool is_wanted(const struct suite_report *r, const char *name)
{
	for (size_t i = 0; i < r->f->nmetrics; i++)
		if (strcmp(r->f->metrics[i], name) == 0)
			return true;
	return r->f->nmetrics == 0 && !compare_is_host(name);
}

static struct suite_metric *add_metric(struct suite_report *r, const char *name)
{
	struct suite_metric *m = vec_push(&r->metrics);

	m->name = arena_strdup(r->a, name);
	m->better = better_guess(str_from(name));
	m->of_run = arena_array(r->a, double, (size_t)r->f->nruns + 1);
	for (int i = 0; i < r->f->nruns; i++)
		m->of_run[i] = (double)NAN;
	m->cells = arena_array(r->a, struct suite_cell, (size_t)r->f->nvariants + 1);
	return m;
}

static bool add_series(void *ctx, const struct series_row *row)
{
	struct run_series *l = ctx;
	struct suite_report *r = l->r;
	size_t at = 0;

	if (!row->count || !is_wanted(r, row->name))
		return true;
	while (at < r->metrics.n && strcmp(r->metrics.v[at].name, row->name) != 0)
		at++;
	if (at == SUITE_REPORT_MAX_METRICS)
		return true;
	struct suite_metric *m = at == r->metrics.n ? add_metric(r, row->name) : &r->metrics.v[at];
	if (!m->better_known)
		m->better_known = compare_better_in_job(l->job, row->name, &m->better);
	struct compare_item *it = vec_push(&r->items);
	it->run = l->run;
	it->metric = at;
	it->stride = (row->count + MAX_VALUES - 1) / MAX_VALUES;
	it->last = row->last;
	it->min = row->min;
	it->max = row->max;
	*vec_push(&r->series) = row->series;
	return true;
}

/* A run that was removed gives nothing. */
static int list_run(struct suite_report *r, struct store *st, size_t run, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct run_series l = {.r = r, .run = run};
	const char **ids;
	struct err why = {0};
	struct run_row row;
	struct doc *job;
	int64_t no;
	size_t n;

	if (store_run_find(st, str_from(r->f->runs[run].run), a, &no, &ids, &n, &why) < 0) {
		r->removed++;
		if (why.kind == ERR_NOT_FOUND || why.kind == ERR_CONFLICT)
			return 0;
		*err = why;
		return -1;
	}
	r->found++;
	if (store_run_get(st, no, a, &row, err) < 0)
		return -1;
	if (row.job_json && json_parse(str_from(row.job_json), a, &job, NULL) == 0)
		l.job = job;
	if (row.running_ms > 0)
		r->running_s[run] = (double)row.running_ms / 1000;
	return store_series_each(st, no, add_series, &l, err);
}

/* The metrics that were asked for come in their order. */
static void add_named(struct suite_report *r)
{
	for (size_t i = 0; i < r->f->nmetrics && i < SUITE_REPORT_MAX_METRICS; i++)
		add_metric(r, r->f->metrics[i]);
}

/* How long jobs ran is a metric if it was asked for, or if there is no other. */
static void add_runtime(struct suite_report *r)
{
	struct suite_metric *m = NULL;

	for (size_t i = 0; i < r->metrics.n; i++)
		if (strcmp(r->metrics.v[i].name, SUITE_REPORT_RUNTIME) == 0)
			m = &r->metrics.v[i];
	if (!m && r->metrics.n == 0)
		m = add_metric(r, SUITE_REPORT_RUNTIME);
	if (!m)
		return;
	m->better = BETTER_LOWER;
	for (int i = 0; i < r->f->nruns; i++)
		if (!isfinite(m->of_run[i]))
			m->of_run[i] = r->running_s[i];
}

int suite_report_open(struct store *st, const struct suite_report_facts *facts, struct arena *a,
		      struct suite_report **ret, struct err *err)
{
	struct suite_report *r = xcalloc(1, sizeof(*r));

	r->f = facts;
	r->a = a;
	r->running_s = arena_array(a, double, (size_t)facts->nruns + 1);
	add_named(r);
	for (int i = 0; i < facts->nruns; i++) {
		r->running_s[i] = (double)NAN;
		if (facts->runs[i].succeeded && facts->runs[i].run &&
		    list_run(r, st, (size_t)i, err) < 0) {
			suite_report_free(r);
			return -1;
		}
	}
	add_runtime(r);
	*ret = r;
	return 0;
}

bool suite_report_lost_all(const struct suite_report *r)
{
	return r->removed && !r->found;
}

size_t suite_report_series(const struct suite_report *r, const int64_t **ret)
{
	*ret = r->series.v;
	return r->series.n;
}

void suite_report_points(struct suite_report *r, size_t series, const struct report_point *p,
			 size_t n)
{
	compare_item_add(&r->items.v[series], p, n);
}

static void put_table(const struct suite_report *r, struct out *o)
{
	const struct suite_report_facts *f = r->f;
	struct buf *b = &o->text;

	buf_addz(b, "suite,variant,run,repeat,metric,value");
	for (int k = 0; k < f->nkeys; k++) {
		buf_addc(b, ',');
		csv_text(b, str_from(f->keys[k]));
	}
	buf_addz(b, "\r\n");
	for (int i = 0; i < f->nruns; i++)
		for (size_t m = 0; m < r->metrics.n; m++) {
			const struct suite_report_variant *v = &f->variants[f->runs[i].variant];

			if (!isfinite(r->metrics.v[m].of_run[i]))
				continue;
			csv_text(b, str_from(f->id));
			buf_addc(b, ',');
			csv_text(b, str_from(v->name));
			buf_addc(b, ',');
			csv_text(b, str_from(f->runs[i].run));
			buf_printf(b, ",%d,", f->runs[i].repeat + 1);
			csv_text(b, str_from(r->metrics.v[m].name));
			buf_addc(b, ',');
			number_exact(b, r->metrics.v[m].of_run[i]);
			for (int k = 0; k < f->nkeys; k++) {
				buf_addc(b, ',');
				if (v->params[k])
					csv_text(b, str_from(v->params[k]));
			}
			buf_addz(b, "\r\n");
			out_room(o);
		}
}

static void put_cell(struct jsonw *w, const struct suite_report *r, int v,
		     const struct suite_cell *c)
{
	int base = r->f->variants[v].baseline;

	jsonw_open(w, '{');
	jsonw_kz(w, "variant", r->f->variants[v].name);
	jsonw_kint(w, "n", (int64_t)c->figures.n);
	jsonw_kdouble(w, "median", c->median);
	jsonw_kdouble(w, "mean", c->mean);
	jsonw_kdouble(w, "min", c->min);
	jsonw_kdouble(w, "max", c->max);
	jsonw_kdouble(w, "cv", c->cv);
	jsonw_kz(w, "baseline", base >= 0 ? r->f->variants[base].name : NULL);
	jsonw_kdouble(w, "diff_pct", c->diff_pct);
	jsonw_kdouble(w, "low_pct", c->low_pct);
	jsonw_kdouble(w, "high_pct", c->high_pct);
	jsonw_kdouble(w, "p_holm", c->p_holm);
	jsonw_kz(w, "verdict", base >= 0 ? compare_verdict_name(c->verdict) : NULL);
	jsonw_kdouble(w, "speedup", c->speedup);
	jsonw_kdouble(w, "efficiency", c->efficiency);
	jsonw_close(w);
}

static void put_json(const struct suite_report *r, struct buf *json)
{
	CLEANUP(buf_release) struct buf list = {0};
	struct jsonw w;

	buf_init(&list, OUT_MAX);
	jsonw_init(&w, &list);
	jsonw_open(&w, '[');
	for (size_t m = 0; m < r->metrics.n; m++) {
		const struct suite_metric *x = &r->metrics.v[m];

		jsonw_open(&w, '{');
		jsonw_kz(&w, "name", x->name);
		jsonw_kz(&w, "better", x->better == BETTER_LOWER ? "lower" : "higher");
		jsonw_key(&w, "rows");
		jsonw_open(&w, '[');
		for (int v = 0; v < r->f->nvariants; v++)
			put_cell(&w, r, v, &x->cells[v]);
		jsonw_close(&w);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	buf_printf(json, "\"tests\":%zu,\"metrics\":", r->tests);
	buf_addstr(json, list.overflow ? STR("[]") : buf_str(&list));
}

int suite_report_end(struct suite_report *r, int html_fd, int csv_fd, struct buf *json,
		     struct err *err)
{
	struct out csv;

	if (suite_figures(r, err) < 0)
		return -1;
	out_init(&csv, csv_fd);
	put_table(r, &csv);
	out_flush(&csv);
	buf_release(&csv.text);
	if (csv.err.kind != ERR_NONE) {
		*err = csv.err;
		return -1;
	}
	put_json(r, json);
	return suite_page(r, html_fd, err);
}

struct suite_report *suite_report_free(struct suite_report *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; i < r->items.n; i++)
		vec_release(&r->items.v[i].values);
	for (size_t m = 0; m < r->metrics.n; m++)
		for (int v = 0; v < r->f->nvariants; v++)
			vec_release(&r->metrics.v[m].cells[v].figures);
	vec_release(&r->items);
	vec_release(&r->series);
	vec_release(&r->metrics);
	free(r);
	return NULL;
}
