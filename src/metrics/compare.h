#pragma once
/*
 * compare - is the difference between two sets of measurements real, and how big is it?
 *
 * Pure statistics: no I/O, no clock, no randomness of its own.  Arm `a` is the
 * baseline, arm `b` the candidate; every difference is b minus a.  Inputs need
 * not be sorted and are never changed.  Values that are not finite, and arms
 * that are empty or above COMPARE_MAX_VALUES, are refused with ERR_INVALID.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define COMPARE_MAX_VALUES 100000 /* of one arm */
#define COMPARE_EXACT_MAX 400	  /* exact p-value up to this n_a * n_b */
#define COMPARE_RESAMPLES 2000	  /* of the bootstrap, usually */
#define COMPARE_MAX_RESAMPLES 100000

struct values {
	const double *v;
	size_t n;
};

/* Quantile q in [0,1] of sorted values, straight lines between them (R's type 7, NumPy's default).
 * NaN when there are none. */
double values_quantile_sorted(struct values sorted, double q);
/* The same of values in any order; 0.5 is the median.  NaN when there are none. */
double values_quantile(struct values v, double q);

struct mann_whitney {
	double u;   /* of arm b: pairs where b is larger, ties count one half */
	double p;   /* two-sided */
	bool exact; /* by counting, else by the normal approximation */
};
/*
 * The rank test: do both arms come from the same distribution?  Exact when there are no ties and
 * n_a * n_b <= COMPARE_EXACT_MAX, else the normal approximation with corrections for ties and continuity,
 * each as scipy.stats.mannwhitneyu gives it.
 */
int mann_whitney(struct values a, struct values b, struct mann_whitney *ret, struct err *err);

struct interval {
	double estimate; /* median(b) - median(a) */
	double low, high;
};
/*
 * Bootstrap interval of the difference of medians at `confidence` (0.95), bias-corrected and accelerated
 * (BCa); the plain percentile interval where BCa is undefined.  The same seed gives the same interval.
 */
int median_difference(struct values a, struct values b, double confidence, size_t resamples,
		      uint64_t seed, struct interval *ret, struct err *err);

/* Holm's correction over n p-values: adjusted[i] <= alpha means that test i stands. May be the same array. */
void holm_adjust(const double *p, size_t n, double *adjusted);

/*
 * The smallest relative difference (0.02 is 2 %) that n runs per arm show with the given power when the
 * runs scatter by the coefficient of variation cv: the t-test's figure, at the level that the rank test
 * really attains, divided by its efficiency.  Infinite where not even complete separation of the arms reaches alpha.
 */
double detectable_effect(size_t n, double cv, double alpha, double power);
#define COMPARE_ALPHA 0.05
#define COMPARE_POWER 0.8

/*
 * How many leading values are warm-up, by the MSER rule: drop as many as make the standard error of the
 * mean of the rest smallest, at most half.  Values are taken in fives (MSER-5) from 50 values on, one by one below;
 * under 8 values nothing is dropped.
 */
size_t values_warm_up(struct values series);
