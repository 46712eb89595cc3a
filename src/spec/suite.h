#pragma once
/*
 * suite - the suite file, checked and expanded into its variants.
 *
 * A suite is a set of runs with one report: a job with the cross product of some values of its keys
 * ([matrix], without what [[exclude]] names), single experiments beside it, each of them `repeats`
 * times.  suite_load() is pure: the client and the master expand one document to the same variants.
 */
#include <stdbool.h>
#include <stdint.h>
#include "fmt/schema.h"

struct arena;
struct err;
struct job;

#define SUITE_MAX_VARIANTS 10000
#define SUITE_MAX_RUNS 50000
#define SUITE_MAX_REPEATS 10000
#define SUITE_MAX_KEYS 32
#define SUITE_MAX_PARALLEL 256
#define SUITE_ON_EXIT_MS (10 * 60 * 1000) /* how long a command of on_exit may take */

/* In which order the runs start. */
enum suite_order {
	ORDER_INTERLEAVED, /* the first repeat of all variants, then the second, ... */
	ORDER_AS_WRITTEN,  /* all repeats of a variant, then the next variant */
};

struct suite_experiment {
	const char *name, *job;
	struct strs after;
	const struct doc *set; /* table of keys of the job and their values */
	struct doc_pos pos;
};

struct suite_variant {
	const char *name;	   /* "count=4,BATCH=128": also that of its directory */
	const char *job;	   /* the job file, relative to the suite file */
	int experiment;		   /* its index in experiments; -1: it is one of the matrix */
	const struct doc **values; /* per key of suite.keys; NULL: as the job file says */
	int *after;		   /* variants of which all runs must have succeeded before */
	int nafter;
	int baseline; /* the variant that it is compared with; -1: none */
};

struct suite_report_spec {
	struct strs metric;	    /* metrics of the report; none: all */
	const struct doc *baseline; /* values of keys, or the name of an experiment; NULL: none */
};

struct suite {
	const char *name;
	struct {
		const char *job;
		int64_t repeats;
		const struct doc *parallel;
		int order; /* enum suite_order */
		struct strs on_exit;
		struct doc_pos job_pos;
		double max_cost; /* USD; 0: no limit */
	} runs;
	const struct doc *matrix;
	const struct doc *exclude;
	struct table_list experiments; /* struct suite_experiment */
	struct suite_report_spec report;

	/* Filled in by suite_load(). */
	int64_t parallel;  /* 0: "auto" */
	const char **keys; /* all keys that variants set; those of the matrix first */
	int nkeys, naxes;
	struct suite_variant *variants;
	int n;
};

extern const struct schema suite_schema;

/* job: the schema of job files, which has the keys of the matrix.  On problems: false, and ps has
 * them all. */
bool suite_load(const struct doc *doc, const struct schema *job, struct arena *a, struct suite *ret,
		struct problems *ps);
/* How many variants the matrix has, without exclude; INT64_MAX if they cannot be counted. */
int64_t suite_product(const struct doc *matrix);
/* The job of a variant: a copy of the document with the values of the variant. */
int suite_apply(const struct suite *s, const struct suite_variant *v, const struct doc *job,
		struct arena *a, struct doc **ret, struct err *err);
/* "is a secret" of the job, or "has a secret" in a table of variables: no variant may have such a value, because those
 * are shown.  NULL: neither. */
const char *suite_secret_word(const struct job *job, struct str key, const struct doc *value);
/* A value as text, as people write it: 128, c5.large, [1, 2]. */
const char *suite_value_text(const struct doc *value, struct arena *a);
/* Its runs are numbered in the order in which they start. */
int suite_runs(const struct suite *s);
void suite_run_at(const struct suite *s, int index, int *ret_variant, int *ret_repeat);
