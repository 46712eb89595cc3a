#pragma once
/*
 * chart - a metric over time or steps as an inline SVG, for series of any length.
 *
 * A line is thinned while it is read: its samples are put in buckets by their number, and each
 * bucket keeps its lowest and its highest, so that no peak is lost and the memory is bounded.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "report/unit.h"

struct buf;

struct chart_point {
	int64_t time_ms;
	int64_t step; /* negative: none */
	double value;
};
struct chart_bucket {
	struct chart_point low, high; /* in the order of `low_first` */
	bool used, low_first;
};
struct chart_line {
	const char *label;
	struct chart_bucket *buckets;
	size_t nbuckets;
	uint64_t count, seen; /* samples expected, and samples seen so far */
	bool stepped;	      /* a sample has a step */
};

/* count samples are expected; more go to the last bucket. */
void chart_line_init(struct chart_line *l, const char *label, uint64_t count, size_t nbuckets);
void chart_line_release(struct chart_line *l);
/* A value that is not finite is left out. */
void chart_line_add(struct chart_line *l, const struct chart_point *p);

struct chart_style {
	const char *title;
	/*
	 * Over steps instead of time.  Samples without a step are left out then, and where the
	 * steps went back (a restart from a checkpoint) only the last course is drawn.
	 */
	bool over_steps;
	int64_t start_ms; /* second 0 of the time */
	enum unit unit;	  /* of the values */
};
/* The drawing: an <svg> with both axes.  Title and labels are escaped. */
void chart_svg(const struct chart_line *lines, size_t n, const struct chart_style *style,
	       struct buf *out);
#define CHART_COLOURS 8 /* classes s0 .. s7 of the style sheet */
