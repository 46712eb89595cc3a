/* Takes the samples: writes each as a row of metrics.csv and puts it into a bucket of its chart. */
#include "report/report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/map.h"
#include "report/internal.h"

#define MIN_BUCKETS 16
#define EXACT_STEPS (INT64_C(1) << 50) /* a smaller step is exact as a double */

void out_init(struct out *o, int fd)
{
	*o = (struct out){.fd = fd};
	buf_init(&o->text, OUT_MAX);
}

void out_flush(struct out *o)
{
	if (o->text.overflow && o->err.kind == ERR_NONE)
		err_set(&o->err, ERR_CAPACITY, "a piece of the report is too large");
	if (o->fd >= 0 && o->err.kind == ERR_NONE && o->text.n)
		(void)file_write_all(o->fd, o->text.p, o->text.n, &o->err);
	buf_reset(&o->text);
}

/* Which series are drawn: the first nodes of the first metrics. */
static size_t choose_drawn(const struct report_run *run, bool *drawn)
{
	struct map *lines = map_new();
	size_t n = 0;

	for (size_t i = 0; i < run->nseries; i++) {
		struct str name = str_from(run->series[i].name);
		uintptr_t had = (uintptr_t)map_get(lines, name);
		if (had >= PAGE_MAX_LINES || (!had && map_count(lines) >= PAGE_MAX_CHARTS))
			continue;
		map_put(lines, name,
			(void *)(had + 1)); /* NOLINT(performance-no-int-to-ptr): a count */
		drawn[i] = true;
		n++;
	}
	map_free(lines);
	return n;
}

static void open_lines(struct report *r)
{
	const struct report_run *run = r->run;
	bool *drawn = xcalloc(run->nseries + 1, sizeof(*drawn));
	size_t n = choose_drawn(run, drawn), each = CHART_BUCKETS;

	if (n * each > CHART_POINTS)
		each = CHART_POINTS / n > MIN_BUCKETS ? CHART_POINTS / n : MIN_BUCKETS;
	r->lines = xcalloc(run->nseries + 1, sizeof(*r->lines));
	for (size_t i = 0; i < run->nseries; i++)
		if (drawn[i])
			chart_line_init(&r->lines[i], run->nodes[run->series[i].node].name,
					run->series[i].figures.count, each);
	free(drawn);
}

struct report *report_new(const struct report_run *run, int html_fd, int csv_fd)
{
	struct report *r = xcalloc(1, sizeof(*r));

	r->run = run;
	r->at = SIZE_MAX;
	out_init(&r->html, html_fd);
	out_init(&r->csv, csv_fd);
	buf_init(&r->before, OUT_MAX);
	if (html_fd >= 0)
		open_lines(r);
	buf_addz(&r->csv.text, "time,node,role,rank,name,step,value\r\n");
	return r;
}

static void add_row(struct report *r, const struct report_point *p)
{
	struct buf *b = &r->csv.text;

	time_add(b, &r->time, p->time_ms);
	buf_addstr(b, buf_str(&r->before));
	if (p->step >= EXACT_STEPS)
		buf_printf(b, "%" PRId64, p->step);
	else if (p->step >= 0)
		number_exact(b, (double)p->step);
	buf_addc(b, ',');
	number_exact(b, p->value);
	buf_add(b, "\r\n", 2);
	out_room(&r->csv);
}

static void code_columns(struct report *r, size_t series)
{
	const struct report_series *s = &r->run->series[series];
	const struct report_node *node = &r->run->nodes[s->node];

	r->at = series;
	buf_reset(&r->before);
	buf_addc(&r->before, ',');
	csv_text(&r->before, str_from(node->name));
	buf_addc(&r->before, ',');
	csv_text(&r->before, str_from(node->role));
	buf_printf(&r->before, ",%d,", node->rank);
	csv_text(&r->before, str_from(s->name));
	buf_addc(&r->before, ',');
}

void report_points(struct report *r, size_t series, const struct report_point *p, size_t n)
{
	struct chart_line *line = r->lines && r->lines[series].buckets ? &r->lines[series] : NULL;

	if (r->at != series)
		code_columns(r, series);
	for (size_t i = 0; i < n; i++) {
		if (r->csv.fd >= 0)
			add_row(r, &p[i]);
		if (line)
			chart_line_add(line, &(struct chart_point){.time_ms = p[i].time_ms,
								   .step = p[i].step,
								   .value = p[i].value});
	}
}

int report_end(struct report *r, struct err *err)
{
	if (r->html.fd >= 0)
		report_page(r);
	out_flush(&r->html);
	out_flush(&r->csv);
	const struct err *why = r->html.err.kind != ERR_NONE ? &r->html.err : &r->csv.err;
	if (why->kind == ERR_NONE)
		return 0;
	if (err)
		*err = *why;
	return -1;
}

struct report *report_free(struct report *r)
{
	if (!r)
		return NULL;
	for (size_t i = 0; r->lines && i < r->run->nseries; i++)
		chart_line_release(&r->lines[i]);
	free(r->lines);
	buf_release(&r->html.text);
	buf_release(&r->csv.text);
	buf_release(&r->before);
	free(r);
	return NULL;
}
