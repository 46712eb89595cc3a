#pragma once
/*
 * comparison - did a metric get better or worse between runs?
 *
 * The first arm is the baseline, every other arm is held against it.  An arm is a run or a group
 * of repeats of it.  Each run gives one figure per metric; with two runs or more in both arms the
 * figures are tested (Mann-Whitney, bootstrap interval of the difference of medians, Holm over
 * everything tested).  With one run in each arm only its samples can be looked at, and samples of
 * one run are not independent: the verdict is then "unclear" unless the caller asks for it
 * (`samples`).  docs/compare.md has the rules.
 *
 * Suites are compared variant by variant: those with the same parameters are a pair, each with its
 * metrics and its test, and Holm's correction is over the tests of all pairs.
 *
 * Made in three steps, so that the store is read in small pieces: comparison_open() finds the runs
 * and their series, comparison_points() takes the samples (any thread, one at a time),
 * comparison_end() does the mathematics.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"
#include "report/report.h"

struct arena;
struct buf;
struct err;
struct store;
struct comparison;
struct suite_report_facts;

#define COMPARISON_MAX_ARMS 16
#define COMPARISON_MAX_RUNS 1000    /* of one arm */
#define COMPARISON_MAX_METRICS 500  /* with more, metrics must be chosen by name */
#define COMPARISON_MAX_PAIRED 2000  /* the same for suites: metrics of all pairs of variants */
#define COMPARISON_MAX_VALUES 20000 /* of one run and metric; longer series are thinned evenly */
#define COMPARISON_THRESHOLD_PCT 5.0

enum compare_use { USE_MEDIAN, USE_MEAN, USE_LAST, USE_BEST, COMPARE_USES };
const char *compare_use_name(enum compare_use u);
bool compare_use_from(struct str name, enum compare_use *ret);

enum compare_verdict { COMPARE_UNCLEAR, COMPARE_SAME, COMPARE_BETTER, COMPARE_WORSE };
const char *compare_verdict_name(enum compare_verdict v);

struct comparison_options {
	const struct str *arms; /* "run", "name", "name@last5", and several of them joined by ',' */
	size_t narms;
	/* narms suites, which outlive the comparison: these are compared, and arms has their names.  NULL: runs are. */
	const struct suite_report_facts *suites;
	const struct str *metrics; /* empty: all metrics of the job */
	size_t nmetrics;
	enum compare_use use;
	double threshold_pct;
	bool samples; /* test the samples of single runs as if they were independent */
	bool no_test; /* where there are too few runs to test, the threshold alone decides */
};

/* ERR_INVALID, ERR_NOT_FOUND, ERR_CONFLICT (a prefix of several run ids: *ret_ids, in the arena). */
int comparison_open(struct store *st, const struct comparison_options *o, struct arena *a,
		    struct comparison **ret, const char ***ret_ids, size_t *ret_nids,
		    struct err *err);
/* The series to read: their keys in the store. */
size_t comparison_series(const struct comparison *c, const int64_t **ret);
void comparison_points(struct comparison *c, size_t series, const struct report_point *p, size_t n);
/* The id of run i of an arm; NULL: it has no more. */
const char *comparison_run(const struct comparison *c, size_t arm, size_t i);
/* The name of an arm; NULL: there are no more. */
const char *comparison_label(const struct comparison *c, size_t arm);
/* A note for the answer; it must live as long as the comparison. */
void comparison_note(struct comparison *c, const char *note);
/* The answer as JSON. */
int comparison_end(struct comparison *c, struct buf *out, struct err *err);
struct comparison *comparison_free(struct comparison *c);

/* The facts from which compare_verdict() decides; a pure function. */
struct compare_facts {
	bool tested;	  /* there is a p-value that could have reached alpha ... */
	bool alone;	  /* ... but it is of samples that are not independent */
	bool significant; /* after Holm */
	bool no_test;
	bool lower_is_better;
	double diff_pct, low_pct, high_pct, threshold_pct; /* NaN where the baseline is 0 */
	double diff;
};
enum compare_verdict compare_judge(const struct compare_facts *f);
/* Do these facts fail the comparison (exit code 1)? */
bool compare_fails(const struct compare_facts *f);
