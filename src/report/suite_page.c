/* report.html of a suite: its state, a table and charts for each metric, failed variants, the file. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "report/internal.h"
#include "report/suite_internal.h"

#define MAX_FAILED 1000
#define MAX_ROWS 2000
#define MAX_CHART_VARIANTS 2000 /* of a suite with more, no charts are drawn */

static void add_number(struct buf *b, double v, const char *after)
{
	buf_addz(b, "<td class=\"n\">");
	if (isfinite(v)) {
		number_short(b, v);
		buf_addz(b, after);
	}
	buf_addz(b, "</td>");
}

static void page_head(const struct suite_report_facts *f, struct buf *b)
{
	char text[32];

	page_open(b, f->id, f->state);
	buf_printf(b, "%d variants, %d runs, began ", f->nvariants, f->nruns);
	clock_format(f->created_ms, text);
	html_z(b, text);
	buf_addz(b, f->ended ? ", ended after " : ", so far ");
	clock_format_span(f->elapsed_ms, text);
	html_z(b, text);
	if (f->cost_usd > 0)
		buf_printf(b, ", cost %.2f USD", f->cost_usd);
	buf_addz(b, "</p></header>\n");
	if (f->cause) {
		buf_addz(b, "<p class=\"cause\"><strong>Cause:</strong> ");
		html_z(b, f->cause);
		buf_addz(b, "</p>\n");
	}
	if (f->on_exit) {
		buf_addz(b, "<p class=\"cause\"><strong>on_exit:</strong> ");
		html_z(b, f->on_exit);
		buf_addz(b, "</p>\n");
	}
}

static bool any_finite(const struct suite_report *r, const struct suite_metric *m, bool speedup)
{
	for (int v = 0; v < r->f->nvariants; v++)
		if (isfinite(speedup ? m->cells[v].speedup : m->cells[v].diff_pct))
			return true;
	return false;
}

static void metric_row(const struct suite_report *r, const struct suite_metric *m, int v,
		       bool compared, bool scaled, struct buf *b)
{
	const struct suite_report_variant *x = &r->f->variants[v];
	const struct suite_cell *c = &m->cells[v];

	buf_addz(b, "<tr><td>");
	html_z(b, x->name);
	buf_printf(b, "</td><td class=\"n\">%zu</td>", c->figures.n);
	add_number(b, c->median, "");
	add_number(b, c->mean, "");
	add_number(b, c->min, "");
	add_number(b, c->max, "");
	add_number(b, c->cv * 100, " %");
	if (compared) {
		add_number(b, c->diff_pct, " %");
		buf_addz(b, "<td class=\"n\">");
		if (isfinite(c->low_pct))
			buf_printf(b, "%.3g to %.3g %%", c->low_pct, c->high_pct);
		buf_addz(b, "</td>");
		add_number(b, c->p_holm, "");
		buf_addz(b, "<td>");
		if (x->baseline >= 0)
			html_z(b, compare_verdict_name(c->verdict));
		buf_addz(b, "</td>");
	}
	if (scaled) {
		add_number(b, c->speedup, "");
		add_number(b, c->efficiency * 100, " %");
	}
	buf_addz(b, "</tr>\n");
}

static void metric_table(const struct suite_report *r, const struct suite_metric *m, struct out *o)
{
	bool compared = any_finite(r, m, false), scaled = any_finite(r, m, true);
	struct buf *b = &o->text;

	buf_addz(b, "<div class=\"scroll\"><table><tr><th>variant</th><th class=\"n\">runs</th><th "
		    "class=\"n\">median</th><th class=\"n\">mean</th><th class=\"n\">min</th><th "
		    "class=\"n\">max</th><th class=\"n\">scatter</th>");
	if (compared)
		buf_addz(
			b,
			"<th class=\"n\">against baseline</th><th class=\"n\">95 % interval</th><th "
			"class=\"n\">p (Holm)</th><th>verdict</th>");
	if (scaled)
		buf_addz(b, "<th class=\"n\">speed-up</th><th class=\"n\">efficiency</th>");
	buf_addz(b, "</tr>\n");
	for (int v = 0; v < r->f->nvariants && v < MAX_ROWS; v++) {
		metric_row(r, m, v, compared, scaled, b);
		out_room(o);
	}
	buf_addz(b, "</table></div>\n");
	if (r->f->nvariants > MAX_ROWS)
		buf_printf(b, "<p class=\"dim\">and %d more: see table.csv</p>\n",
			   r->f->nvariants - MAX_ROWS);
}

/* ---- charts ---- */

struct suite_spot {
	int64_t x;
	double y;
};

static int by_x(const void *p, const void *q)
{
	const struct suite_spot *a = p, *b = q;

	return (a->x > b->x) - (a->x < b->x);
}

/* Where a variant stands on an axis: its value if all values are whole numbers, else its place. */
static int64_t place_of(const struct suite_report_facts *f, int v, int axis, bool whole)
{
	int64_t x = 0, n = 0;

	if (whole && str_to_i64(str_from(f->variants[v].params[axis]), &x))
		return x;
	for (int i = 0; i < v; i++) {
		bool first = f->variants[i].params[axis] != NULL;

		if (first && strcmp(f->variants[i].params[axis], f->variants[v].params[axis]) == 0)
			return place_of(f, i, axis, whole);
		for (int k = 0; first && k < i; k++)
			first = !f->variants[k].params[axis] ||
				strcmp(f->variants[k].params[axis], f->variants[i].params[axis]) !=
					0;
		n += first;
	}
	return n;
}

static bool is_whole(const struct suite_report_facts *f, int axis)
{
	for (int v = 0; v < f->nvariants; v++) {
		int64_t x;

		if (f->variants[v].params[axis] &&
		    (!str_to_i64(str_from(f->variants[v].params[axis]), &x) || x < 0))
			return false;
	}
	return true;
}

/* Do two variants have the same values of the other keys? */
static bool same_line(const struct suite_report_facts *f, int x, int y, int axis)
{
	for (int k = 0; k < f->nkeys; k++) {
		const char *a = f->variants[x].params[k], *b = f->variants[y].params[k];

		if (k != axis && (!a != !b || (a && strcmp(a, b) != 0)))
			return false;
	}
	return true;
}

static char *line_label(const struct suite_report_facts *f, int v, int axis)
{
	struct buf b;

	buf_init(&b, 4096);
	for (int k = 0; k < f->nkeys; k++) {
		const char *dot = strrchr(f->keys[k], '.');

		if (k == axis || !f->variants[v].params[k])
			continue;
		buf_printf(&b, "%s%s=%.40s", b.n ? ", " : "", dot ? dot + 1 : f->keys[k],
			   f->variants[v].params[k]);
	}
	if (!b.n)
		buf_addz(&b, "median");
	return buf_take(&b);
}

static void draw_line(const struct suite_report *r, const struct suite_metric *m, int first,
		      int axis, bool whole, struct chart_line *line)
{
	const struct suite_report_facts *f = r->f;
	VEC(struct suite_spot) spots = {0};

	for (int v = first; v < f->nvariants; v++)
		if (f->variants[v].params[axis] && isfinite(m->cells[v].median) &&
		    same_line(f, first, v, axis))
			*vec_push(&spots) = (struct suite_spot){place_of(f, v, axis, whole),
								m->cells[v].median};
	if (spots.n)
		qsort(spots.v, spots.n, sizeof(spots.v[0]), by_x);
	chart_line_init(line, line_label(f, first, axis), spots.n, spots.n + 1);
	for (size_t i = 0; i < spots.n; i++)
		chart_line_add(line, &(struct chart_point){.time_ms = spots.v[i].x,
							   .step = spots.v[i].x,
							   .value = spots.v[i].y});
	vec_release(&spots);
}

static void metric_chart(const struct suite_report *r, const struct suite_metric *m, int axis,
			 struct buf *b)
{
	struct chart_line lines[PAGE_MAX_LINES];
	const struct suite_report_facts *f = r->f;
	bool whole = is_whole(f, axis);
	char title[160];
	size_t n = 0;

	for (int v = 0; v < f->nvariants && n < PAGE_MAX_LINES; v++) {
		bool first = f->variants[v].params[axis] != NULL;

		for (int k = 0; first && k < v; k++)
			first = !f->variants[k].params[axis] || !same_line(f, k, v, axis);
		if (first)
			draw_line(r, m, v, axis, whole, &lines[n++]);
	}
	snprintf(title, sizeof(title), "%.60s over %.60s%s", m->name, f->keys[axis],
		 whole ? "" : " (in the order of the file)");
	chart_svg(lines, n, &(struct chart_style){.title = title, .over_steps = true}, b);
	for (size_t i = 0; i < n; i++) {
		char *label = (char *)(uintptr_t)lines[i].label;

		chart_line_release(&lines[i]);
		free(label);
	}
}

/* ---- the rest ---- */

static void page_failed(const struct suite_report_facts *f, struct buf *b)
{
	int n = 0;

	for (int i = 0; i < f->nruns; i++) {
		const struct suite_report_run *x = &f->runs[i];

		if (strcmp(x->state, "failed") != 0 && strcmp(x->state, "skipped") != 0 &&
		    strcmp(x->state, "cancelled") != 0)
			continue;
		if (n++ == 0)
			buf_addz(
				b,
				"<h2>Variants that failed</h2>\n<div class=\"scroll\"><table><tr><th>"
				"variant</th><th class=\"n\">repeat</th><th>run</th><th>state</th><th>"
				"cause</th></tr>\n");
		if (n > MAX_FAILED)
			continue;
		buf_addz(b, "<tr><td>");
		html_z(b, f->variants[x->variant].name);
		buf_printf(b, "</td><td class=\"n\">%d</td><td>", x->repeat + 1);
		html_z(b, x->run);
		buf_addz(b, "</td><td>");
		html_z(b, x->state);
		buf_addz(b, "</td><td class=\"t\">");
		html_z(b, x->cause);
		buf_addz(b, "</td></tr>\n");
	}
	if (n)
		buf_addz(b, "</table></div>\n");
	if (n > MAX_FAILED)
		buf_printf(b, "<p class=\"dim\">and %d more: see summary.json</p>\n",
			   n - MAX_FAILED);
}

int suite_page(const struct suite_report *r, int fd, struct err *err)
{
	const struct suite_report_facts *f = r->f;
	struct out o;

	out_init(&o, fd);
	page_head(f, &o.text);
	for (size_t i = 0; i < r->metrics.n; i++) {
		const struct suite_metric *m = &r->metrics.v[i];

		buf_addz(&o.text, "<h2>");
		html_z(&o.text, m->name);
		buf_addz(&o.text, m->better == BETTER_LOWER
					  ? " <span class=\"dim\">lower is better"
					  : " <span class=\"dim\">higher is better");
		buf_addz(&o.text, "</span></h2>\n");
		metric_table(r, m, &o);
		for (int k = 0; k < f->naxes && f->nvariants <= MAX_CHART_VARIANTS; k++)
			metric_chart(r, m, k, &o.text);
		out_flush(&o);
	}
	page_failed(f, &o.text);
	if (f->file) {
		buf_addz(&o.text, "<h2>Suite file</h2>\n<pre>");
		html_lines(&o.text, str_from(f->file));
		buf_addz(&o.text, "</pre>\n");
	}
	buf_addz(&o.text, "</body></html>\n");
	out_flush(&o);
	buf_release(&o.text);
	if (o.err.kind == ERR_NONE)
		return 0;
	*err = o.err;
	return -1;
}
