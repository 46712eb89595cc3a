#pragma once
/* suite_table - suites as text for people.  Pure: tree in, text out; every string is escaped here. */
#include <stdbool.h>

struct buf;
struct doc;
struct style;

bool suite_ended(const struct doc *suite);
/* "12 runs: 10 succeeded, 2 failed" */
void suite_describe_counts(const struct doc *suite, struct buf *out);
/* "; about 3m left", where that is known. */
void suite_describe_left(const struct doc *suite, struct buf *out);
/* Its state, in a few lines. */
void suite_render_head(const struct doc *suite, const struct style *st, struct buf *out);
/* Its state, with a row for each variant and the causes of failed runs. */
void suite_render_status(const struct doc *suite, const struct style *st, struct buf *out);
void suite_render_failed(const struct doc *suite, struct buf *out);
/* The table of its report. */
void suite_render_report(const struct doc *suite, const struct style *st, struct buf *out);
/* Array of suites. */
void suites_render(const struct doc *suites, const struct style *st, struct buf *out);
