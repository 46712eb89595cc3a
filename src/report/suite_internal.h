#pragma once
/* Shared by the suite_*.c files. */
#include "report/comparison_internal.h"
#include "report/suite_report.h"

/* What a variant has for a metric. */
struct suite_cell {
	VEC(double) figures; /* one of each run that has the metric */
	double median, mean, min, max, cv;
	/* Against the baseline; NaN without one: */
	double p, p_holm, diff_pct, low_pct, high_pct;
	bool tested; /* the test could have reached alpha */
	enum compare_verdict verdict;
	/* Against the variant with the fewest nodes, and otherwise the same values; NaN without an axis of
	 * counts. */
	double speedup, efficiency;
};
struct suite_metric {
	const char *name;
	enum better better;
	bool better_known;
	double *of_run;		  /* per run: its figure; NaN: none */
	struct suite_cell *cells; /* per variant */
};

struct suite_report {
	const struct suite_report_facts *f;
	struct arena *a;
	VEC(struct suite_metric) metrics;
	VEC(struct compare_item) items; /* `run` is the index in f->runs */
	VEC(int64_t) series;		/* key in the store of each item */
	double *running_s;		/* per run: how long its job ran; NaN: not known */
	size_t found, removed; /* runs that succeeded: those that are there, and the others */
	size_t tests;
};

/* suite_stats.c */
int suite_figures(struct suite_report *r, struct err *err);
/* suite_page.c */
int suite_page(const struct suite_report *r, int fd, struct err *err);
