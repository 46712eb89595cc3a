#pragma once
/*
 * suite_report - report.html, table.csv and the figures of summary.json of a suite.
 *
 * Each run that succeeded gives one figure per metric, as in a comparison: the median of its samples
 * without those of its warm-up.  A variant has the figures of its repeats; it is held against its
 * baseline by the test of a comparison, with Holm's correction over the whole suite.
 *
 * Made in three steps, as a comparison is: suite_report_open() finds the series of the runs,
 * suite_report_points() takes their samples (any thread, one at a time), suite_report_end() does the
 * mathematics and writes.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "report/report.h"

struct arena;
struct buf;
struct err;
struct store;
struct suite_report;

#define SUITE_REPORT_MAX_METRICS 50
#define SUITE_REPORT_RUNTIME "runtime_s" /* how long the job ran: the metric of jobs without any */

struct suite_report_variant {
	const char *name;
	const char **params; /* per key, as text; NULL: as the job file says */
	int baseline;	     /* the variant that it is compared with; -1: none */
	bool experiment;     /* it is not one of the matrix */
};
struct suite_report_run {
	int variant, repeat;
	const char *run, *state, *cause; /* run NULL: none */
	bool succeeded;
};
/* Strings and arrays are the caller's and outlive the report. */
struct suite_report_facts {
	const char *id, *state, *cause, *on_exit, *file; /* file: the suite file */
	int64_t created_ms, elapsed_ms;
	double cost_usd;
	bool ended;
	const char **keys;
	int nkeys, naxes; /* the first naxes keys are those of the matrix */
	struct suite_report_variant *variants;
	int nvariants;
	struct suite_report_run *runs;
	int nruns;
	const char *const *metrics; /* none: all of the job */
	size_t nmetrics;
};

int suite_report_open(struct store *st, const struct suite_report_facts *facts, struct arena *a,
		      struct suite_report **ret, struct err *err);
/* Was every run that could have given a figure removed? */
bool suite_report_lost_all(const struct suite_report *r);
size_t suite_report_series(const struct suite_report *r, const int64_t **ret);
void suite_report_points(struct suite_report *r, size_t series, const struct report_point *p,
			 size_t n);
/* Writes page and table; appends the figures to *json: "metrics":[...],"tests":N. */
int suite_report_end(struct suite_report *r, int html_fd, int csv_fd, struct buf *json,
		     struct err *err);
struct suite_report *suite_report_free(struct suite_report *r);
