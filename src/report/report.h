#pragma once
/*
 * report - report.html and metrics.csv of a run.
 *
 * Made from values: the caller reads the facts of the run from the store into a struct report_run and
 * then hands over the samples in pieces, series by series in order, perhaps on another thread.
 * The samples kept for the charts are bounded (see chart.h), and so is every list on the page; what is left
 * out is counted on the page.  Text from outside is escaped; the page runs no script and fetches nothing.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "metrics/stats.h"

struct err;
struct report;

struct report_point {
	int64_t time_ms; /* wall clock */
	int64_t step;	 /* negative: none */
	double value;
};
struct report_phase {
	const char *name;
	int64_t ms; /* negative: not entered */
};
struct report_node {
	const char *name, *role, *address, *state;
	const char *story; /* how it ended, "" if there is nothing to say */
	int rank, attempt;
	int64_t log_bytes, err_bytes;
};
struct report_series {
	const char *name;
	int64_t series; /* key in the store */
	int node;	/* index in nodes */
	bool host;	/* of the machine, not of the job */
	enum better better;
	struct stats figures;
};
struct report_event {
	int64_t seq, time_ms;
	const char *kind, *node, *text; /* node may be NULL */
};
struct report_fact {
	const char *name, *value;
};

/* Strings and arrays are the caller's and outlive the report.  NULL strings are "not known". */
struct report_run {
	const char *id, *name, *engine, *strategy, *state;
	const char *verdict, *cause, *cause_node;
	const char *tail_node, *tail; /* last lines of the failed node */
	int64_t created_ms, ended_ms, elapsed_ms;
	const struct report_phase *phases;
	size_t nphases;
	const struct report_node *nodes;
	size_t nnodes;
	const struct report_series *series;
	size_t nseries;
	const struct report_event *events;
	size_t nevents;
	uint64_t more_events; /* that are not in the list */
	uint64_t bad_values;
	int64_t not_stored; /* bytes of output beyond the limit of the logs */
	const char *job;    /* the job file */
	const struct report_fact *environment;
	size_t nenvironment;
};

#define REPORT_MAX_EVENTS 2000 /* more events need not be collected */

/* Descriptors are the caller's; -1: that file is not wanted. */
struct report *report_new(const struct report_run *run, int html_fd, int csv_fd);
/* A failed write is remembered and reported by report_end(). */
void report_points(struct report *r, size_t series, const struct report_point *p, size_t n);
/* Writes what is left: the page, and the end of the table. */
int report_end(struct report *r, struct err *err);
struct report *report_free(struct report *r);
