#pragma once
/*
 * suite_history - what earlier runs tell about a suite that is planned: how long its variants take, and how
 * far runs of the same variant scatter.
 *
 * Earlier runs are like a variant if they were runs of a variant of that name, in one of the newest suites;
 * those of no suite, if they had as many nodes and the same parameters.
 */
#include <stddef.h>

struct arena;
struct cli_call;
struct doc;
struct suite_history;

struct history_variant {
	const char *name, *job_name;
	int nodes;
	const struct doc *params; /* of the job; NULL: none */
};

/* Without a master nothing is known.  In the arena; it keeps v, with one of each variant. */
struct suite_history *suite_history_read(const struct cli_call *c, const struct history_variant *v,
					 size_t n, struct arena *a);
/* How long runs like a variant took, or all of its job; 0: not known. */
double suite_history_usual_ms(const struct suite_history *h, size_t variant);
/* How many metrics a run of these jobs has, and the first of them; 0 and NULL: not known. */
size_t suite_history_metrics(const struct suite_history *h, const char **ret_first);
/* The coefficient of variation of a metric between runs of the same variant; 0: not known. */
double suite_history_scatter(const struct suite_history *h, const char *metric);
