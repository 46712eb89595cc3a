/* metrics_table - metrics of a run as tables, with their course over time. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

#define TREND_COLUMNS 24

static void number_cell(struct table *t, const struct doc *stats, const char *key)
{
	char text[32];
	const struct doc *d = doc_get(stats, key);

	if (!d || (d->type != DOC_INT && d->type != DOC_FLOAT)) {
		table_cellz(t, NULL);
		return;
	}
	number_format(d->type == DOC_INT ? (double)d->i : d->f, text);
	table_cellz(t, text);
}

static void summary_row(struct table *t, struct str metric, struct str node,
			const struct doc *stats)
{
	table_cell(t, metric);
	table_cell(t, node);
	number_cell(t, stats, "last");
	number_cell(t, stats, "best");
	number_cell(t, stats, "mean");
	number_cell(t, stats, "count");
}

static void metric_rows(struct table *t, const struct doc_entry *metric, size_t max_nodes)
{
	const struct doc *nodes = doc_table(metric->value, "nodes");
	size_t n = nodes ? nodes->table.n : 0;
	size_t shown = n > max_nodes ? max_nodes - 1 : n;
	struct str name = metric->key;

	for (size_t i = 0; i < shown; i++) {
		summary_row(t, name, nodes->table.v[i].key, nodes->table.v[i].value);
		name = STR("");
	}
	if (shown < n) {
		char more[48];
		snprintf(more, sizeof(more), "(%zu more)", n - shown);
		summary_row(t, name, str_from(more), NULL);
		name = STR("");
	}
	if (n != 1)
		summary_row(t, name, STR("all"), doc_table(metric->value, "all"));
}

static void add_bad_values(const struct doc *metrics, const struct style *st, struct buf *out)
{
	int64_t bad = doc_int(metrics, "bad_values", 0);
	char text[64];

	if (bad <= 0)
		return;
	snprintf(text, sizeof(text), "%" PRId64 " bad value%s left out\n", bad,
		 bad == 1 ? "" : "s");
	text_fit(out, str_from(text), st);
}

void metrics_table_render(const struct doc *run, const struct doc *metrics, size_t max_nodes,
			  const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "METRIC", .min = 6},
		{.title = "NODE", .min = 9},
		{.title = "LAST", .right = true, .min = 6},
		{.title = "BEST", .right = true, .min = 6},
		{.title = "MEAN", .right = true, .min = 6},
		{.title = "COUNT", .right = true, .min = 5},
	};
	const struct doc *detailed = doc_table(metrics, "metrics"),
			 *plain = doc_table(run, "metrics");
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct table t;

	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; detailed && i < detailed->table.n; i++)
		metric_rows(&t, &detailed->table.v[i], max_nodes);
	for (size_t i = 0; !detailed && plain && i < plain->table.n; i++)
		summary_row(&t, plain->table.v[i].key, STR("all"), plain->table.v[i].value);
	if (t.ncells)
		table_render(&t, st, out);
	add_bad_values(metrics, st, out);
}

/* The value of a point [time_ms, step, value]; false if it is none. */
static bool point_value(const struct doc *p, double *ret)
{
	const struct doc *v = p->type == DOC_ARRAY && p->array.n == 3 ? p->array.v[2] : NULL;

	if (!v || (v->type != DOC_INT && v->type != DOC_FLOAT))
		return false;
	*ret = v->type == DOC_INT ? (double)v->i : v->f;
	return true;
}

/* A series as a few block characters: the mean of each part, scaled from the lowest to the highest. */
static void trend(const struct doc *points, const struct style *st, struct buf *out)
{
	static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const plain[] = {"_", ".", "-", "~", "=", "+", "*", "#"};
	double mean[TREND_COLUMNS], low = INFINITY, high = -INFINITY;
	size_t n = points->array.n, columns = n < TREND_COLUMNS ? n : TREND_COLUMNS;

	for (size_t c = 0; c < columns; c++) {
		double sum = 0, v;
		size_t k = 0;
		for (size_t i = c * n / columns; i < (c + 1) * n / columns; i++) {
			if (!point_value(points->array.v[i], &v))
				continue;
			sum += v;
			k++;
		}
		mean[c] = k ? sum / (double)k : NAN;
		if (k && mean[c] < low)
			low = mean[c];
		if (k && mean[c] > high)
			high = mean[c];
	}
	for (size_t c = 0; c < columns; c++) {
		if (!isfinite(mean[c])) {
			buf_addc(out, ' ');
			continue;
		}
		size_t level = high > low ? (size_t)((mean[c] - low) / (high - low) * 7.999) : 0;
		buf_addz(out, st->unicode ? blocks[level] : plain[level]);
	}
}

static const struct doc *series_of(const struct doc *metrics, struct str name, struct str node)
{
	const struct doc *all = doc_array(metrics, "series");

	for (size_t i = 0; all && i < all->array.n; i++) {
		const struct doc *s = all->array.v[i];
		if (str_eq(doc_str(s, "name", STR("")), name) &&
		    str_eq(doc_str(s, "node", STR("")), node))
			return doc_array(s, "points");
	}
	return NULL;
}

static void full_row(struct table *t, struct str metric, struct str node, const struct doc *stats,
		     const struct doc *points, const struct style *st)
{
	CLEANUP(buf_release) struct buf course = {0};

	buf_init(&course, RENDER_MAX_LINE);
	table_cell(t, metric);
	table_cell(t, node);
	number_cell(t, stats, "first");
	number_cell(t, stats, "last");
	number_cell(t, stats, "best");
	number_cell(t, stats, "mean");
	number_cell(t, stats, "count");
	if (points)
		trend(points, st, &course);
	table_cell(t, buf_str(&course));
}

void metrics_render(const struct doc *metrics, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "METRIC", .min = 6},
		{.title = "NODE", .min = 9},
		{.title = "FIRST", .right = true, .min = 6},
		{.title = "LAST", .right = true, .min = 6},
		{.title = "BEST", .right = true, .min = 6},
		{.title = "MEAN", .right = true, .min = 6},
		{.title = "COUNT", .right = true, .min = 5},
		{.title = "", .min = 8},
	};
	const struct doc *table = doc_table(metrics, "metrics");
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct table t;

	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; table && i < table->table.n; i++) {
		const struct doc_entry *m = &table->table.v[i];
		const struct doc *nodes = doc_table(m->value, "nodes");
		for (size_t k = 0; nodes && k < nodes->table.n; k++)
			full_row(&t, m->key, nodes->table.v[k].key, nodes->table.v[k].value,
				 series_of(metrics, m->key, nodes->table.v[k].key), st);
		if (!nodes || nodes->table.n != 1)
			full_row(&t, m->key, STR("all"), doc_table(m->value, "all"), NULL, st);
	}
	table_render(&t, st, out);
	add_bad_values(metrics, st, out);
}
