#include "report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "report/text.h"

#define WIDTH 760
#define HEIGHT 220
#define LEFT 70
#define RIGHT 28
#define TOP 10
#define BOTTOM 30
#define TICKS 5
#define MOST_TICKS (2 * TICKS + 1)

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

void chart_line_add(struct chart_line *l, const struct chart_point *p)
{
	uint64_t at = l->seen++;
	size_t i = at >= l->count ? l->nbuckets - 1
				  : (size_t)((double)at / (double)l->count * (double)l->nbuckets);
	struct chart_bucket *b = &l->buckets[i];

	if (!isfinite(p->value))
		return;
	l->stepped |= p->step >= 0;
	if (!b->used) {
		*b = (struct chart_bucket){.low = *p, .high = *p, .used = true, .low_first = true};
	} else if (p->value < b->low.value) {
		b->low = *p;
		b->low_first = false;
	} else if (p->value > b->high.value) {
		b->high = *p;
		b->low_first = true;
	}
}

/* A point on the axes: seconds or steps across, values up. */
struct spot {
	double x, v;
};

struct track {
	struct spot *spots;
	size_t n;
};

static struct spot spot_of(const struct chart_point *p, const struct chart_style *style)
{
	double x =
		style->over_steps ? (double)p->step : (double)(p->time_ms - style->start_ms) / 1000;

	return (struct spot){x, p->value};
}

/* Where steps went back, drop the earlier spots of repeated steps: the steps that are left rise. */
static void drop_overtaken(struct track *t)
{
	size_t to = t->n;

	for (size_t i = t->n; i-- > 0;)
		if (to == t->n || t->spots[i].x < t->spots[to].x)
			t->spots[--to] = t->spots[i];
	t->n -= to;
	memmove(t->spots, t->spots + to, t->n * sizeof(*t->spots));
}

static struct track track_of(const struct chart_line *l, const struct chart_style *style)
{
	struct track t = {.spots = xcalloc(2 * l->nbuckets, sizeof(*t.spots))};

	for (size_t k = 0; k < l->nbuckets; k++) {
		const struct chart_bucket *b = &l->buckets[k];
		const struct chart_point *both[] = {b->low_first ? &b->low : &b->high,
						    b->low_first ? &b->high : &b->low};
		for (size_t i = 0; b->used && i < (b->low.value < b->high.value ? 2 : 1); i++)
			if (!style->over_steps || both[i]->step >= 0)
				t.spots[t.n++] = spot_of(both[i], style);
	}
	if (style->over_steps)
		drop_overtaken(&t);
	return t;
}

struct chart_frame {
	double x0, x1, v0, v1; /* at the edges */
	bool empty;
};

static void stretch(struct chart_frame *f, struct spot s)
{
	if (f->empty)
		*f = (struct chart_frame){.x0 = s.x, .x1 = s.x, .v0 = s.v, .v1 = s.v};
	f->x0 = fmin(f->x0, s.x);
	f->x1 = fmax(f->x1, s.x);
	f->v0 = fmin(f->v0, s.v);
	f->v1 = fmax(f->v1, s.v);
}

static struct chart_frame frame_of(const struct track *tracks, size_t n)
{
	struct chart_frame f = {.empty = true};

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < tracks[i].n; k++)
			stretch(&f, tracks[i].spots[k]);
	if (f.v1 <= f.v0) { /* a flat line lies in the middle */
		double room = f.v0 != 0 ? fabs(f.v0) / 2 : 1;
		f.v0 -= room;
		f.v1 += room;
	}
	if (f.x1 <= f.x0)
		f.x1 = f.x0 + 1;
	return f;
}

static double x_of(const struct chart_frame *f, double x)
{
	return LEFT + (x - f->x0) / (f->x1 - f->x0) * (WIDTH - LEFT - RIGHT);
}

/* Halved first: the whole range of a double must not overflow. */
static double y_of(const struct chart_frame *f, double v)
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

/* The values of the ticks between low and high; returns their number, at most MOST_TICKS. */
static size_t choose_ticks(double low, double high, double least, double *ret)
{
	double step = fmax(round_step(high - low), least);
	size_t n = 0;

	if (step == 0) /* too wide or too narrow for round numbers: half of the range */
		step = high / 2 - low / 2;
	for (int i = 0; i < MOST_TICKS; i++) {
		double v = ceil(low / step) * step + i * step;
		if (!(v <= high))
			break;
		ret[n++] = fabs(v) < step / 1e6 ? 0 : v;
	}
	return n;
}

static void ticks_across(const struct chart_frame *f, bool steps, struct buf *out)
{
	double at[MOST_TICKS];
	size_t n = choose_ticks(f->x0, f->x1, steps ? 1 : 0, at);

	for (size_t i = 0; i < n; i++) {
		double x = x_of(f, at[i]);
		buf_printf(out, "<path class=\"g\" d=\"M%.1f %dV%d\"/>", x, TOP, HEIGHT - BOTTOM);
		buf_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x,
			   HEIGHT - BOTTOM + 16);
		buf_printf(out, steps ? "%.15g</text>" : "%.5g s</text>", at[i]);
	}
	if (steps)
		buf_printf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">step</text>",
			   WIDTH - RIGHT, HEIGHT - 2);
}

static void ticks_up(const struct chart_frame *f, enum unit unit, struct buf *out)
{
	double at[MOST_TICKS];
	size_t n = choose_ticks(f->v0, f->v1, 0, at);

	for (size_t i = 0; i < n; i++) {
		double y = y_of(f, at[i]);
		buf_printf(out, "<path class=\"g\" d=\"M%d %.1fH%d\"/>", LEFT, y, WIDTH - RIGHT);
		buf_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 6, y + 4);
		unit_add(out, unit, at[i]);
		buf_addz(out, "</text>");
	}
}

static void add_track(const struct chart_frame *f, const struct track *t, const char *label,
		      size_t number, struct buf *out)
{
	if (!t->n)
		return;
	buf_printf(out, "<path class=\"l%s s%zu\" d=\"", t->n == 1 ? " lone" : "",
		   number % CHART_COLOURS);
	for (size_t i = 0; i < t->n; i++)
		buf_printf(out, "%c%.1f %.1f", i ? 'L' : 'M', x_of(f, t->spots[i].x),
			   y_of(f, t->spots[i].v));
	/* A path of one point shows by its round end, which is as wide as the line. */
	buf_addz(out, t->n == 1 ? "h0\"><title>" : "\"><title>");
	html_z(out, label);
	buf_addz(out, "</title></path>");
}

void chart_svg(const struct chart_line *lines, size_t n, const struct chart_style *style,
	       struct buf *out)
{
	struct track *tracks = xcalloc(n, sizeof(*tracks));

	for (size_t i = 0; i < n; i++)
		tracks[i] = track_of(&lines[i], style);
	struct chart_frame f = frame_of(tracks, n);
	buf_printf(out, "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH, HEIGHT);
	html_z(out, style->title);
	buf_addz(out, style->over_steps ? " over steps\">" : " over time\">");
	if (f.empty) {
		buf_printf(out, "<text x=\"%d\" y=\"%d\">no finite values</text>", LEFT,
			   HEIGHT / 2);
	} else {
		ticks_across(&f, style->over_steps, out);
		ticks_up(&f, style->unit, out);
	}
	for (size_t i = 0; i < n; i++) {
		add_track(&f, &tracks[i], lines[i].label, i, out);
		free(tracks[i].spots);
	}
	buf_addz(out, "</svg>\n");
	free(tracks);
}
