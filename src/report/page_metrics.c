/* Charts and tables of the metrics, each metric once, over all nodes that have it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/map.h"
#include "base/vec.h"
#include "report/internal.h"

struct metric {
	const char *name;
	VEC(size_t) series;
};

/* Groups the series by metric, in the order of first appearance; returns the number of metrics. */
static size_t group(const struct report_run *run, bool host, struct metric **ret)
{
	struct map *seen = map_new();
	VEC(struct metric) all = {0};

	for (size_t i = 0; i < run->nseries; i++) {
		const struct report_series *s = &run->series[i];
		if (s->host != host || !s->figures.count)
			continue;
		uintptr_t at = (uintptr_t)map_get(seen, str_from(s->name));
		if (!at) {
			vec_push(&all)->name = s->name;
			at = all.n;
			map_put(seen, str_from(s->name),
				(void *)at); /* NOLINT(performance-no-int-to-ptr): an index */
		}
		*vec_push(&all.v[at - 1].series) = i;
	}
	map_free(seen);
	*ret = all.v;
	return all.n;
}

static enum unit unit_of(const struct report_series *s)
{
	return s->host ? unit_of_machine(s->name) : UNIT_NONE;
}

static void row(struct buf *b, const struct stats *st, const struct report_series *s)
{
	double cells[] = {st->first, st->last, stats_best(st, s->better), st->mean,
			  st->min,   st->max,  stats_stddev(st)};

	for (size_t i = 0; i < sizeof(cells) / sizeof(cells[0]); i++) {
		buf_addz(b, "<td class=\"n\">");
		unit_add(b, unit_of(s), cells[i]);
		buf_addz(b, "</td>");
	}
	buf_printf(b, "<td class=\"n\">%" PRIu64 "</td></tr>\n", st->count);
}

static void table(struct report *r, const struct metric *m, size_t drawn)
{
	struct buf *b = &r->html.text;
	struct stats all = {0};
	double first = 0, last = 0;

	buf_addz(b, "<div class=\"scroll\"><table><tr><th>node</th><th class=\"n\">first</th><th "
		    "class=\"n\">last</th><th class=\"n\">best</th><th class=\"n\">mean</th><th "
		    "class=\"n\">min</th><th class=\"n\">max</th><th class=\"n\">deviation</th><th "
		    "class=\"n\">samples</th></tr>\n");
	for (size_t i = 0; i < m->series.n; i++) {
		const struct report_series *s = &r->run->series[m->series.v[i]];
		stats_merge(&all, &s->figures);
		first += s->figures.first;
		last += s->figures.last;
		if (i >= PAGE_MAX_ROWS)
			continue;
		buf_addz(b, "<tr><td>");
		if (i < drawn)
			buf_printf(b, "<span class=\"key s%zu\"></span>", i % CHART_COLOURS);
		html_z(b, r->run->nodes[s->node].name);
		buf_addz(b, "</td>");
		row(b, &s->figures, s);
		out_room(&r->html);
	}
	if (m->series.n > 1) {
		/* The first and last value of "all" are the means over the nodes, as in the API. */
		all.first = first / (double)m->series.n;
		all.last = last / (double)m->series.n;
		buf_addz(b, "<tr><td>all</td>");
		row(b, &all, &r->run->series[m->series.v[0]]);
	}
	buf_addz(b, "</table></div>\n");
	if (m->series.n > PAGE_MAX_ROWS)
		buf_printf(b, "<p class=\"dim\">%zu of %zu nodes are listed</p>\n",
			   (size_t)PAGE_MAX_ROWS, m->series.n);
}

static void add_chart(struct buf *b, const struct chart_line *lines, size_t n,
		      const struct chart_style *style)
{
	buf_addz(b, "<div class=\"scroll\">");
	chart_svg(lines, n, style, b);
	buf_addz(b, "</div>\n");
}

/* Over steps where there are any, with the chart over time folded away; else over time. */
static void charts(struct report *r, const struct report_series *s, const struct chart_line *lines,
		   size_t n)
{
	struct buf *b = &r->html.text;
	struct chart_style style = {
		.title = s->name, .start_ms = r->run->created_ms, .unit = unit_of(s)};
	bool stepped = false;

	for (size_t i = 0; i < n; i++)
		stepped |= lines[i].stepped;
	if (stepped) {
		style.over_steps = true;
		add_chart(b, lines, n, &style);
		style.over_steps = false;
		buf_addz(b, "<details class=\"time\"><summary>over time</summary>\n");
	}
	add_chart(b, lines, n, &style);
	if (stepped)
		buf_addz(b, "</details>\n");
}

static void one_metric(struct report *r, const struct metric *m)
{
	struct buf *b = &r->html.text;
	struct chart_line lines[PAGE_MAX_LINES];
	size_t drawn = 0;

	for (size_t i = 0; i < m->series.n && drawn < PAGE_MAX_LINES; i++)
		if (r->lines[m->series.v[i]].buckets)
			lines[drawn++] = r->lines[m->series.v[i]];
	buf_addz(b, "<h3>");
	html_z(b, m->name);
	const struct report_series *first = &r->run->series[m->series.v[0]];
	if (!first->host)
		buf_printf(b, " <span class=\"dim\">%s is better</span>",
			   first->better == BETTER_LOWER ? "lower" : "higher");
	buf_addz(b, "</h3>\n");
	if (drawn)
		charts(r, first, lines, drawn);
	if (drawn < m->series.n)
		buf_printf(b, "<p class=\"dim\">%zu of %zu nodes are drawn</p>\n", drawn,
			   m->series.n);
	table(r, m, drawn);
}

void page_metrics(struct report *r, bool host)
{
	struct buf *b = &r->html.text;
	struct metric *all = NULL;
	size_t n = group(r->run, host, &all);

	if (host && n)
		buf_addz(b, "<details><summary>Machines: cpu, memory, network, disk</summary>\n");
	else if (!host)
		buf_addz(b, "<h2>Metrics</h2>\n");
	if (!host && !n)
		buf_addz(b, "<p class=\"dim\">The run gave no metrics.</p>\n");
	if (!host && r->run->bad_values)
		buf_printf(b,
			   "<p class=\"off\">%" PRIu64
			   " values could not be read as numbers.</p>\n",
			   r->run->bad_values);
	for (size_t i = 0; i < n; i++) {
		one_metric(r, &all[i]);
		vec_release(&all[i].series);
	}
	if (host && n)
		buf_addz(b, "</details>\n");
	free(all);
}
