#include "report/chart.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "report/text.h"

#define WIDTH 760
#define HEIGHT 220
#define LEFT 70
#define RIGHT 12
#define TOP 10
#define BOTTOM 30
#define TICKS 5

void chart_line_init(struct chart_line *l, const char *label, uint64_t count, size_t nbuckets)
{
	if (count < nbuckets)
		nbuckets = count ? (size_t)count : 1;
	*l = (struct chart_line){.label = label,
				 .buckets = xcalloc(nbuckets, sizeof(*l->buckets)),
				 .nbuckets = nbuckets,
				 .count = count};
}

void chart_line_release(struct chart_line *l)
{
	free(l->buckets);
	*l = (struct chart_line){0};
}

void chart_line_add(struct chart_line *l, int64_t time_ms, double value)
{
	uint64_t at = l->seen++;
	size_t i = at >= l->count ? l->nbuckets - 1
				  : (size_t)((double)at / (double)l->count * (double)l->nbuckets);
	struct chart_bucket *b = &l->buckets[i];
	struct chart_point p = {time_ms, value};

	if (!isfinite(value))
		return;
	if (!b->used) {
		*b = (struct chart_bucket){.low = p, .high = p, .used = true, .low_first = true};
	} else if (value < b->low.value) {
		b->low = p;
		b->low_first = false;
	} else if (value > b->high.value) {
		b->high = p;
		b->low_first = true;
	}
}

struct frame {
	double t0, t1, v0, v1; /* seconds and values at the edges */
	int64_t start_ms;
	bool empty;
};

static void stretch(struct frame *f, const struct chart_point *p)
{
	double t = (double)(p->time_ms - f->start_ms) / 1000;

	if (f->empty) {
		f->t0 = f->t1 = t;
		f->v0 = f->v1 = p->value;
		f->empty = false;
	}
	f->t0 = fmin(f->t0, t);
	f->t1 = fmax(f->t1, t);
	f->v0 = fmin(f->v0, p->value);
	f->v1 = fmax(f->v1, p->value);
}

static struct frame frame_of(const struct chart_line *lines, size_t n, int64_t start_ms)
{
	struct frame f = {.start_ms = start_ms, .empty = true};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < lines[i].nbuckets; k++)
			if (lines[i].buckets[k].used) {
				stretch(&f, &lines[i].buckets[k].low);
				stretch(&f, &lines[i].buckets[k].high);
			}
	if (f.v1 <= f.v0) { /* a flat line lies in the middle */
		double room = f.v0 != 0 ? fabs(f.v0) / 2 : 1;
		f.v0 -= room;
		f.v1 += room;
	}
	if (f.t1 <= f.t0)
		f.t1 = f.t0 + 1;
	return f;
}

static double x_of(const struct frame *f, double t)
{
	return LEFT + (t - f->t0) / (f->t1 - f->t0) * (WIDTH - LEFT - RIGHT);
}

/* Halved first: the whole range of a double must not overflow. */
static double y_of(const struct frame *f, double v)
{
	double part = (v / 2 - f->v0 / 2) / (f->v1 / 2 - f->v0 / 2);

	return HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

/* The next of 1, 2, 5 times a power of ten. */
static double round_step(double range)
{
	double raw = range / TICKS, power = pow(10, floor(log10(raw)));

	if (!(raw > 0) || !isfinite(raw) || !(power > 0))
		return 0;
	double part = raw / power;
	return (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10) * power;
}

static void add_ticks(const struct frame *f, bool across, struct buf *out)
{
	double low = across ? f->t0 : f->v0, high = across ? f->t1 : f->v1;
	double step = round_step(high - low);

	if (step == 0) /* too wide or too narrow for round numbers: the edges must do */
		step = high / 2 - low / 2;
	for (int i = 0; i <= 2 * TICKS; i++) {
		double v = ceil(low / step) * step + i * step;
		if (!(v <= high))
			break;
		if (fabs(v) < step / 1e6)
			v = 0;
		if (across) {
			double x = x_of(f, v);
			buf_printf(out, "<path class=\"g\" d=\"M%.1f %dV%d\"/>", x, TOP,
				   HEIGHT - BOTTOM);
			buf_printf(out,
				   "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.5g s</text>",
				   x, HEIGHT - BOTTOM + 16, v);
		} else {
			double y = y_of(f, v);
			buf_printf(out, "<path class=\"g\" d=\"M%d %.1fH%d\"/>", LEFT, y,
				   WIDTH - RIGHT);
			buf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.5g</text>",
				   LEFT - 6, y + 4, v);
		}
	}
}

static void add_point(const struct frame *f, const struct chart_point *p, bool *first,
		      struct buf *out)
{
	double t = (double)(p->time_ms - f->start_ms) / 1000;

	buf_printf(out, "%c%.1f %.1f", *first ? 'M' : 'L', x_of(f, t), y_of(f, p->value));
	*first = false;
}

static void add_line(const struct frame *f, const struct chart_line *l, size_t number,
		     struct buf *out)
{
	bool first = true;
	size_t used = 0;

	buf_printf(out, "<path class=\"l s%zu\" d=\"", number % CHART_COLOURS);
	for (size_t k = 0; k < l->nbuckets; k++) {
		const struct chart_bucket *b = &l->buckets[k];
		if (!b->used)
			continue;
		used++;
		add_point(f, b->low_first ? &b->low : &b->high, &first, out);
		if (b->low.value < b->high.value)
			add_point(f, b->low_first ? &b->high : &b->low, &first, out);
	}
	/* A path of one point shows by its round end. */
	buf_addz(out, used == 1 ? "h0\"><title>" : "\"><title>");
	html_z(out, l->label);
	buf_addz(out, "</title></path>");
}

void chart_svg(const struct chart_line *lines, size_t n, const char *title, int64_t start_ms,
	       struct buf *out)
{
	struct frame f = frame_of(lines, n, start_ms);

	buf_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
	html_z(out, title);
	buf_addz(out, " over time\">");
	if (f.empty) {
		buf_printf(out, "<text x=\"%d\" y=\"%d\">no finite values</text></svg>\n", LEFT,
			   HEIGHT / 2);
		return;
	}
	add_ticks(&f, true, out);
	add_ticks(&f, false, out);
	for (size_t i = 0; i < n; i++)
		add_line(&f, &lines[i], i, out);
	buf_addz(out, "</svg>\n");
}
