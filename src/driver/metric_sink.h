#pragma once
/*
 * metric_sink - where the metrics of runs are sent while they go on, for people who watch them there.
 *
 * Sinks are a table by the scheme of their URL (metric_sink.c).  A point that is sent twice must do no more harm than
 * to be counted twice.
 */
#include <stddef.h>
#include <stdint.h>

struct deadline;
struct err;

/* The samples of one series in one span of time. */
struct metric_point {
	const char *name, *node;
	int64_t at_ms; /* wall clock: the beginning of the span */
	uint64_t count;
	double sum, min, max;
};

#define METRIC_BATCH 500 /* points, at most, of one put */

struct metric_batch {
	const char *url;
	const char *credentials; /* JSON, as in driver_row; NULL: those that this process finds */
	const char *job, *run;
	const struct metric_point *v;
	size_t n;
};

/* One call.  ERR_DENIED and ERR_INVALID will not pass. */
int metric_sink_put(const struct metric_batch *b, const struct deadline *d, struct err *err);

/* ---- for the files that know one ---- */

struct metric_scheme {
	const char *name;
	/* place: what is behind "://" */
	int (*put)(const char *place, const struct metric_batch *b, const struct deadline *d,
		   struct err *err);
};

extern const struct metric_scheme cloudwatch_metrics;
