#pragma once
/* Shared by the comparison*.c files. */
#include "base/vec.h"
#include "metrics/compare.h"
#include "report/comparison.h"

struct compare_run {
	int64_t no;
	const char *id;
	bool succeeded;
	int pair; /* of variants, if suites are compared; else 0 */
	/* When it has ended; 0: not known.  Without a price it costs nothing. */
	double usd, steps, samples, running_s;
	const struct doc *params; /* of its job; NULL: none */
};
struct compare_arm {
	const char *label;
	bool suite;
	VEC(struct compare_run) runs;
	size_t left_out; /* runs of that name that did not succeed */
	size_t removed;	 /* runs of a suite that succeeded and are not there any more */
};
/* The same variant in several suites. */
struct compare_pair {
	const char *name;
	int variant[COMPARISON_MAX_ARMS]; /* per suite; -1: it has none such */
};
/* One series of a run, thinned as it is read. */
struct compare_item {
	size_t arm, run, metric;
	uint64_t stride, seen;
	double last, min, max;
	VEC(double) values;
};
/* The values of one metric in one arm. */
struct compare_side {
	VEC(double) figures; /* one of each run that has the metric */
	VEC(double) samples; /* of all its runs, warm-up dropped */
	size_t dropped;	     /* samples dropped as warm-up */
};
struct compare_row {
	size_t n;
	double median, mean;
	/* Against the baseline; not for the baseline itself: */
	const char *test; /* "runs", "samples" or "none" */
	bool exact, missing, too_few, fails;
	double p, p_holm;
	double diff, low, high, mde;
	enum compare_verdict verdict;
};
struct compare_metric {
	const char *name;
	int pair;
	enum better better;
	bool better_known; /* better comes from a job file, not from the name */
	struct compare_side sides[COMPARISON_MAX_ARMS];
	struct compare_row rows[COMPARISON_MAX_ARMS];
};

struct comparison {
	struct comparison_options o;
	struct arena *a;
	struct compare_arm arms[COMPARISON_MAX_ARMS];
	VEC(struct compare_pair) pairs; /* none: runs are compared */
	VEC(const char *) notes;	/* about the pairs, and those of the caller */
	VEC(struct compare_metric) metrics;
	VEC(struct compare_item) items;
	VEC(int64_t) series; /* key in the store of each item */
	size_t tests;	     /* p-values under Holm's correction */
};

static inline struct values values_of(const double *v, size_t n)
{
	return (struct values){v, n};
}

/* comparison_arms.c */
int compare_find_arm(struct store *st, struct str word, struct arena *a, struct compare_arm *arm,
		     const char ***ret_ids, size_t *ret_nids, struct err *err);
/* comparison_suites.c: the pairs of variants, and the runs of each suite in their order. */
int compare_pair_suites(struct comparison *c, struct store *st, struct err *err);
/* comparison.c */
/* Is it a metric of the machine, not of the job? */
bool compare_is_host(const char *name);
/* The direction that a job file gives for a metric; false if none. */
struct doc;
bool compare_better_in_job(const struct doc *job, const char *name, enum better *ret);
/* Takes every stride'th sample. */
void compare_item_add(struct compare_item *it, const struct report_point *p, size_t n);
/* The figure that a run gives for a metric, from its n items (one per node); NaN if it has none.  Its samples are
 * added to s. */
double compare_figure(const struct compare_item *v, size_t n, enum compare_use use,
		      enum better better, struct compare_side *s);
/* The figures and samples of each arm, from the items. */
void compare_figures(struct comparison *c);
/* comparison_stats.c: the smallest p-value that na and nb values without ties can give. */
double compare_least_p(size_t na, size_t nb);
/* comparison_params.c */
struct jsonw;
void compare_params_to_json(const struct comparison *c, struct jsonw *w);
/* comparison_json.c */
void comparison_to_json(const struct comparison *c, struct buf *out);
