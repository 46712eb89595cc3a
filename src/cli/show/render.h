#pragma once
/*
 * render - objects of the API as text for people.  Pure: tree in, text out.
 *
 * Every string in the tree comes from outside and is escaped here.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"

struct arena;
struct buf;
struct doc;
struct style;
struct table;

#define RENDER_MAX_LINE (64 * 1024)

bool run_ended(const struct doc *run);
/* Has it ended, and are its logs, figures and files here?  Those of a run that was handed over come after its end. */
bool run_is_whole(const struct doc *run);
/* Why the first resource that the run waits for does not exist yet, or is not gone yet; "" if it waits for none. */
struct str run_waits_for(const struct doc *run);
/* Exit code of `regatta run` for this run: that of the run object, or else by its final state. */
int run_exit_code(const struct doc *run);
/* The job's own: of the node that failed its exit code, or 128 + N if signal N has killed it; else run_exit_code(). */
int run_job_code(const struct doc *run);
/* NULL: the run has no such node. */
const struct doc *run_find_node(const struct doc *run, struct str name);
/* The end of a run in one line: "job-abcd failed after 12 ms: CAUSE". */
void run_line_render(const struct doc *run, const struct style *st, struct buf *out);
/* The end of a run: verdict, cause, last lines, time per phase, metrics, places.
 * metrics is the answer of /metrics, or NULL: then the numbers over all nodes come from the run. */
void summary_render(const struct doc *run, const struct doc *metrics, const struct style *st,
		    struct buf *out);
/* Notes in the object that the run's files are on the machine of this master; NULL: on this machine. */
void run_set_master(struct doc *run, const char *master, struct arena *a);
/* One run at any time, with a row for each node. */
void status_render(const struct doc *run, const struct style *st, struct buf *out);
/* Array of hosts. */
void hosts_render(const struct doc *hosts, const struct style *st, struct buf *out);
/* Array of the files of /outputs. */
void outputs_render(const struct doc *files, const struct style *st, struct buf *out);
/* Array of runs; now_ms is the wall clock; params: with a column of parameters. */
void runs_render(const struct doc *runs, int64_t now_ms, bool params, const struct style *st,
		 struct buf *out);
/* The answer of /metrics; with the course over time where the answer has series. */
void metrics_render(const struct doc *metrics, const struct style *st, struct buf *out);
/* The answer of /compare: a table, and the notes below it. */
void compare_render(const struct doc *cmp, const struct style *st, struct buf *out);
/* One event as a line. */
void event_render(const struct doc *event, const struct style *st, struct buf *out);

/* Shared by the above: each appends to *out. */
void text_add_escaped(struct buf *out, struct str text);
void text_add_span(struct buf *out, int64_t ms);
/* "baseline,draft" of a run */
void tags_add(const struct doc *run, struct buf *out);
/* "lr=0.1, model=resnet50" of a run */
void params_add(const struct doc *run, const char *between, struct buf *out);
/* "exit code 3", "killed by SIGKILL, out of memory", "lost: reason"; nothing for a node that
 * has not ended. */
void node_describe_end(const struct doc *node, struct buf *out);
/* "3 running, 2 exited" */
void run_describe_nodes(const struct doc *run, struct buf *out);
/* A row for each node. */
void nodes_table_render(const struct doc *run, const struct style *st, struct buf *out);
/* Rows per metric and node: last, best, mean, count; at most max_nodes per metric. */
void metrics_table_render(const struct doc *run, const struct doc *metrics, size_t max_nodes,
			  const struct style *st, struct buf *out);
