#pragma once
/* stats - running figures of one series, and "better" by rule. */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

enum better { BETTER_UNKNOWN, BETTER_LOWER, BETTER_HIGHER };

struct stats {
	uint64_t count;
	double first, last, min, max, mean, m2; /* m2: Welford's sum of squares */
};
void stats_add(struct stats *s, double v);
void stats_merge(struct stats *into, const struct stats *from); /* first/last: into's first, from's last */
double stats_best(const struct stats *s, enum better b);
double stats_stddev(const struct stats *s);
/* When the job file does not say: names with loss, err, time, latency, _ms, _s are better lower, others higher. */
enum better better_guess(struct str name);
