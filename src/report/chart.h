#pragma once
/*
 * chart - a course over time as an inline drawing, whatever its length.
 *
 * A line is thinned while it is read: its samples are put in buckets by their number, and each
 * bucket keeps its lowest and its highest, so that no peak is lost and the memory is bounded.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

struct chart_point {
	int64_t time_ms;
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
	uint64_t count, seen; /* samples expected and met */
};

/* count samples are expected; more go to the last bucket. */
void chart_line_init(struct chart_line *l, const char *label, uint64_t count, size_t nbuckets);
void chart_line_release(struct chart_line *l);
void chart_line_add(struct chart_line *l, int64_t time_ms, double value); /* not finite: left out */

/* The drawing: an <svg> with both axes; `start_ms` is second 0.  Labels are escaped. */
void chart_svg(const struct chart_line *lines, size_t n, const char *title, int64_t start_ms,
	       struct buf *out);
#define CHART_COLOURS 8 /* classes s0 .. s7 of the style sheet */
