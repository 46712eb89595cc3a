#pragma once
/* stats - running figures of one series, and which direction of a metric is better. */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

/* The metric by which samples are counted: its mean over the time in which the job ran, of each node. */
#define SAMPLES_METRIC "samples_per_s"

enum better { BETTER_UNKNOWN, BETTER_LOWER, BETTER_HIGHER };

struct stats {
	uint64_t count;
	double first, last, min, max, mean, m2; /* m2: Welford's sum of squares */
};
void stats_add(struct stats *s, double v);
/* first/last: into's first, from's last */
void stats_merge(struct stats *into, const struct stats *from);
/* BETTER_UNKNOWN gives the last; NaN when there are no values. */
double stats_best(const struct stats *s, enum better b);
double stats_stddev(const struct stats *s); /* of the sample (n - 1); 0 below two values */
/* For a metric whose direction is not in the job file: names with loss, err, time, latency, or ending in _ms, _s are better
 * lower, others (and rates: per_s) higher. */
enum better better_guess(struct str name);
