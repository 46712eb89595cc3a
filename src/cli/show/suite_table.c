/* Suites as text: the list, the state of one, the table of its report. */
#include "cli/show/suite_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "fmt/doc.h"

#define MAX_FAILED 20 /* failed variants that are named */

static enum tint tint_of(struct str state)
{
	if (str_is(state, "succeeded"))
		return TINT_GOOD;
	if (str_is(state, "failed"))
		return TINT_BAD;
	return str_is(state, "cancelled") || str_is(state, "skipped") ? TINT_WARN : TINT_NONE;
}

bool suite_ended(const struct doc *suite)
{
	struct str state = doc_str(suite, "state", STR(""));

	return str_is(state, "succeeded") || str_is(state, "failed") || str_is(state, "cancelled");
}

void suite_describe_counts(const struct doc *suite, struct buf *out)
{
	static const char *const states[] = {"succeeded", "failed",   "cancelled", "skipped",
					     "running",	  "starting", "waiting"};
	const struct doc *counts = doc_table(suite, "counts");
	bool first = true;

	int64_t runs = doc_int(counts, "runs", 0);

	buf_printf(out, "%" PRId64 " run%s: ", runs, runs == 1 ? "" : "s");
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		int64_t n = doc_int(counts, states[i], 0);

		if (!n)
			continue;
		buf_printf(out, "%s%" PRId64 " %s", first ? "" : ", ", n, states[i]);
		first = false;
	}
}

void suite_describe_left(const struct doc *suite, struct buf *out)
{
	int64_t left = doc_int(suite, "left_ms", -1);

	if (left < 0)
		return;
	buf_addz(out, "; about ");
	text_add_span(out, left);
	buf_addz(out, " left");
}

static void add_line(struct buf *out, const char *title, struct str text)
{
	if (!text.n)
		return;
	buf_addz(out, title);
	text_add_escaped(out, text);
	buf_addc(out, '\n');
}

void suite_render_head(const struct doc *suite, const struct style *st, struct buf *out)
{
	struct str state = doc_str(suite, "state", STR("?"));

	text_add_escaped(out, doc_str(suite, "id", STR("?")));
	buf_addc(out, ' ');
	text_add_tinted(out, st, tint_of(state), state);
	buf_addz(out, suite_ended(suite) ? " after " : " for ");
	text_add_span(out, doc_int(suite, "elapsed_ms", 0));
	buf_addz(out, ", ");
	suite_describe_counts(suite, out);
	suite_describe_left(suite, out);
	buf_addc(out, '\n');
	add_line(out, "cause    ", doc_str(suite, "cause", STR("")));
	add_line(out, "waits    ", doc_str(suite, "waits_for", STR("")));
	add_line(out, "on_exit  ", doc_str(suite, "on_exit", STR("")));
}

static void count_runs(const struct doc *variant, const char *state, struct table *t)
{
	const struct doc *runs = doc_array(variant, "runs");
	int n = 0;

	for (size_t i = 0; runs && i < runs->array.n; i++)
		n += str_is(doc_str(runs->array.v[i], "state", STR("")), state);
	t->tint = n ? tint_of(str_from(state)) : TINT_DIM;
	table_cellf(t, "%d", n);
	t->tint = TINT_NONE;
}

void suite_render_status(const struct doc *suite, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "VARIANT", .min = 12},     {.title = "SUCCEEDED", .right = true},
		{.title = "FAILED", .right = true},  {.title = "CANCELLED", .right = true},
		{.title = "SKIPPED", .right = true}, {.title = "RUNNING", .right = true},
		{.title = "WAITING", .right = true},
	};
	static const char *const states[] = {"succeeded", "failed",  "cancelled",
					     "skipped",	  "running", "waiting"};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct doc *variants = doc_array(suite, "variants");
	struct table t;

	suite_render_head(suite, st, out);
	add_line(out, "dir      ", doc_str(suite, "dir", STR("")));
	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; variants && i < variants->array.n; i++) {
		table_cell(&t, doc_str(variants->array.v[i], "name", STR("?")));
		for (size_t k = 0; k < sizeof(states) / sizeof(states[0]); k++)
			count_runs(variants->array.v[i], states[k], &t);
	}
	table_render(&t, st, out);
	suite_render_failed(suite, out);
}

/* Each failed run with its cause. */
void suite_render_failed(const struct doc *suite, struct buf *out)
{
	const struct doc *variants = doc_array(suite, "variants");
	int n = 0;

	for (size_t i = 0; variants && i < variants->array.n; i++) {
		const struct doc *runs = doc_array(variants->array.v[i], "runs");

		for (size_t k = 0; runs && k < runs->array.n; k++) {
			const struct doc *r = runs->array.v[k];
			struct str state = doc_str(r, "state", STR(""));

			if (!str_is(state, "failed") && !str_is(state, "skipped"))
				continue;
			if (n++ >= MAX_FAILED)
				continue;
			text_add_escaped(out, doc_str(variants->array.v[i], "name", STR("?")));
			buf_printf(out, " #%" PRId64 " ", doc_int(r, "repeat", 0));
			text_add_escaped(out, doc_str(r, "run", state));
			buf_addz(out, ": ");
			text_add_escaped(out, doc_str(r, "cause", state));
			buf_addc(out, '\n');
		}
	}
	if (n > MAX_FAILED)
		buf_printf(out, "and %d more\n", n - MAX_FAILED);
}

void suites_render(const struct doc *suites, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "SUITE", .min = 12},
		{.title = "STATE"},
		{.title = "RUNS", .right = true},
		{.title = "SUCCEEDED", .right = true},
		{.title = "FAILED", .right = true},
		{.title = "TOOK", .right = true},
		{.title = "BEGAN"},
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct table t;

	table_init(&t, a, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < suites->array.n; i++) {
		const struct doc *s = suites->array.v[i], *counts = doc_table(s, "counts");
		char text[32];

		table_cell(&t, doc_str(s, "id", STR("?")));
		t.tint = tint_of(doc_str(s, "state", STR("")));
		table_cell(&t, doc_str(s, "state", STR("?")));
		t.tint = TINT_NONE;
		table_cellf(&t, "%" PRId64, doc_int(counts, "runs", 0));
		table_cellf(&t, "%" PRId64, doc_int(counts, "succeeded", 0));
		table_cellf(&t, "%" PRId64, doc_int(counts, "failed", 0));
		clock_format_span(doc_int(s, "elapsed_ms", 0), text);
		table_cellz(&t, text);
		clock_format(doc_int(s, "created_ms", 0), text);
		table_cell(&t, (struct str){text, 16}); /* to the minute */
	}
	table_render(&t, st, out);
}

static void number_cell(struct table *t, const struct doc *row, const char *key, double scale,
			const char *after)
{
	double v = doc_num(row, key, (double)NAN);
	char text[32];

	if (!isfinite(v)) {
		table_cellz(t, NULL);
		return;
	}
	number_format(v * scale, text);
	table_cellf(t, "%s%s", text, after);
}

static bool has_number(const struct doc *rows, const char *key)
{
	for (size_t i = 0; i < rows->array.n; i++)
		if (isfinite(doc_num(rows->array.v[i], key, (double)NAN)))
			return true;
	return false;
}

static void metric_render(const struct doc *metric, const struct style *st, struct buf *out)
{
	static const struct column columns[] = {
		{.title = "VARIANT", .min = 12},
		{.title = "RUNS", .right = true},
		{.title = "MEDIAN", .right = true},
		{.title = "SCATTER", .right = true},
		{.title = "AGAINST", .right = true},
		{.title = "P", .right = true},
		{.title = "VERDICT"},
		{.title = "SPEED-UP", .right = true},
		{.title = "EFFICIENCY", .right = true},
	};
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct doc *rows = doc_array(metric, "rows");
	struct table t;

	if (!rows)
		return;
	size_t n = has_number(rows, "speedup") ? 9 : has_number(rows, "diff_pct") ? 7 : 4;
	buf_addc(out, '\n');
	text_add_tinted(out, st, TINT_BOLD, doc_str(metric, "name", STR("?")));
	buf_printf(out, " (%.*s is better)\n", STR_ARG(doc_str(metric, "better", STR("higher"))));
	table_init(&t, a, columns, n);
	for (size_t i = 0; i < rows->array.n; i++) {
		const struct doc *row = rows->array.v[i];

		table_cell(&t, doc_str(row, "variant", STR("?")));
		table_cellf(&t, "%" PRId64, doc_int(row, "n", 0));
		number_cell(&t, row, "median", 1, "");
		number_cell(&t, row, "cv", 100, " %");
		if (n >= 7) {
			number_cell(&t, row, "diff_pct", 1, " %");
			number_cell(&t, row, "p_holm", 1, "");
			table_cell(&t, doc_str(row, "verdict", STR("-")));
		}
		if (n >= 9) {
			number_cell(&t, row, "speedup", 1, "");
			number_cell(&t, row, "efficiency", 100, " %");
		}
	}
	table_render(&t, st, out);
}

void suite_render_report(const struct doc *suite, const struct style *st, struct buf *out)
{
	const struct doc *metrics = doc_array(suite, "metrics");

	suite_render_head(suite, st, out);
	for (size_t i = 0; metrics && i < metrics->array.n; i++)
		metric_render(metrics->array.v[i], st, out);
	suite_render_failed(suite, out);
	if (doc_str(suite, "dir", STR("")).n) {
		buf_addz(out, "report   ");
		text_add_escaped(out, doc_str(suite, "dir", STR("")));
		buf_addz(out, "/report.html\n");
	}
}
