/* compare_table - the table of `regatta compare` and the notes below it. */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/show/render.h"
#include "cli/show/table.h"
#include "cli/show/terminal.h"
#include "fmt/doc.h"

static void number_cell(struct table *t, const struct doc *d, const char *key)
{
	double v = doc_num(d, key, (double)NAN);
	char text[32];

	if (isnan(v)) {
		table_cellz(t, NULL);
		return;
	}
	number_format(v, text);
	table_cellz(t, text);
}

static void percent_cell(struct table *t, double v, bool sign)
{
	if (isnan(v))
		table_cellz(t, NULL);
	else
		table_cellf(t, "%s%.*f %%", sign && v > 0 ? "+" : "", fabs(v) < 10 ? 2 : 1, v);
}

static void interval_cell(struct table *t, const struct doc *row)
{
	const struct doc *ci = doc_array(row, "ci_pct");

	if (!ci || ci->array.n != 2 || ci->array.v[0]->type != DOC_FLOAT ||
	    ci->array.v[1]->type != DOC_FLOAT) {
		table_cellz(t, NULL);
		return;
	}
	table_cellf(t, "%+.2f..%+.2f", ci->array.v[0]->f, ci->array.v[1]->f);
}

static enum tint verdict_tint(struct str verdict)
{
	static const struct {
		const char *verdict;
		enum tint tint;
	} tints[] = {{"better", TINT_GOOD},
		     {"worse", TINT_BAD},
		     {"same", TINT_DIM},
		     {"unclear", TINT_WARN}};

	for (size_t i = 0; i < sizeof(tints) / sizeof(tints[0]); i++)
		if (str_is(verdict, tints[i].verdict))
			return tints[i].tint;
	return TINT_NONE;
}

static void p_cell(struct table *t, const struct doc *row)
{
	double p = doc_num(row, "p_holm", (double)NAN);

	if (isnan(p))
		table_cellz(t, NULL);
	else if (p < 0.0001)
		table_cellz(t, "< 0.0001");
	else
		table_cellf(t, "%.4f", p);
}

/* What the columns of the table depend on. */
struct compare_columns {
	bool many;     /* more than two sides: the row says which */
	bool variants; /* suites are compared */
};

static void compare_row(struct table *t, const struct doc *metric, const struct doc *row,
			bool first, struct compare_columns cols)
{
	const struct doc *rows = doc_array(metric, "rows");
	bool missing =
		doc_bool(row, "missing", false) || doc_bool(rows->array.v[0], "missing", false);
	struct str verdict = missing ? STR("missing") : doc_str(row, "verdict", STR("-"));

	if (cols.variants)
		table_cell(t, first ? doc_str(metric, "variant", STR("?")) : STR(""));
	table_cell(t, first ? doc_str(metric, "name", STR("?")) : STR(""));
	table_cell(t, first ? doc_str(metric, "better", STR("?")) : STR(""));
	if (cols.many)
		table_cell(t, doc_str(row, "run", STR("?")));
	number_cell(t, rows->array.v[0], "median");
	number_cell(t, row, "median");
	percent_cell(t, doc_num(row, "diff_pct", (double)NAN), true);
	interval_cell(t, row);
	p_cell(t, row);
	t->tint = verdict_tint(verdict);
	table_cell(t, verdict);
	t->tint = TINT_NONE;
	percent_cell(t, doc_num(row, "mde_pct", (double)NAN), false);
}

static void cost_render(const struct doc *cost, struct buf *out)
{
	double step = doc_num(cost, "usd_per_step", 0),
	       samples = doc_num(cost, "usd_per_1k_samples", 0);

	if (!cost)
		return;
	buf_printf(out, ": %.4f USD%s", doc_num(cost, "usd", 0),
		   doc_int(cost, "runs", 0) > 1 ? " a run" : "");
	if (step > 0)
		buf_printf(out, ", %.3g USD per step", step);
	if (samples > 0)
		buf_printf(out, ", %.3g USD per 1,000 samples", samples);
}

static void arms_render(const struct doc *cmp, struct buf *out)
{
	const struct doc *arms = doc_array(cmp, "arms");

	for (size_t i = 0; arms && i < arms->array.n; i++) {
		const struct doc *runs = doc_array(arms->array.v[i], "runs");
		size_t n = runs ? runs->array.n : 0;
		buf_addz(out, i ? "other     " : "baseline  ");
		text_add_escaped(out, doc_str(arms->array.v[i], "label", STR("?")));
		buf_printf(out, " (%zu run%s)", n, n == 1 ? "" : "s");
		cost_render(doc_table(arms->array.v[i], "cost"), out);
		buf_addc(out, '\n');
	}
}

/* "0.1", or "0.1 0.2" where the runs of one side differ, too. */
static void values_render(const struct doc *values, struct arena *a, struct buf *out)
{
	for (size_t i = 0; values->type == DOC_ARRAY && i < values->array.n; i++) {
		const struct doc *v = values->array.v[i];

		if (i)
			buf_addc(out, ' ');
		text_add_escaped(out, v->type == DOC_NULL     ? STR("-")
				      : v->type == DOC_STRING ? v->s
							      : str_from(doc_json_text(a, v)));
	}
}

/* "params    lr: 0.1 -> 0.2" for each that differs. */
static void params_render(const struct doc *cmp, struct arena *a, struct buf *out)
{
	const struct doc *params = doc_array(cmp, "params");

	for (size_t i = 0; params && i < params->array.n; i++) {
		const struct doc *sides = doc_array(params->array.v[i], "values");

		buf_addz(out, i ? "          " : "params    ");
		text_add_escaped(out, doc_str(params->array.v[i], "name", STR("?")));
		for (size_t k = 0; sides && k < sides->array.n; k++) {
			buf_addz(out, k ? " -> " : ": ");
			values_render(sides->array.v[k], a, out);
		}
		buf_addc(out, '\n');
	}
}

void compare_render(const struct doc *cmp, const struct style *st, struct buf *out)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const struct doc *metrics = doc_array(cmp, "metrics"), *notes = doc_array(cmp, "notes");
	const struct doc *runs = doc_array(cmp, "runs");
	const struct compare_columns cols = {.many = runs && runs->array.n > 2,
					     .variants = doc_array(cmp, "variants")};
	static const struct column all[] = {
		{"VARIANT", false, 8}, {"METRIC", false, 6},	 {"BETTER", false, 6},
		{"RUN", false, 6},     {"BASELINE", true, 6},	 {"OTHER", true, 6},
		{"DIFF", true, 8},     {"95% CI (%)", true, 14}, {"P (HOLM)", true, 8},
		{"VERDICT", false, 7}, {"DETECTABLE", true, 8}};
	struct column columns[sizeof(all) / sizeof(all[0])];
	size_t n = 0;
	struct table t;

	arms_render(cmp, out);
	params_render(cmp, a, out);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if ((cols.variants || strcmp(all[i].title, "VARIANT") != 0) &&
		    (cols.many || strcmp(all[i].title, "RUN") != 0))
			columns[n++] = all[i];
	table_init(&t, a, columns, n);
	for (size_t i = 0; metrics && i < metrics->array.n; i++) {
		const struct doc *m = metrics->array.v[i], *rows = doc_array(m, "rows");
		for (size_t k = 1; rows && k < rows->array.n; k++)
			compare_row(&t, m, rows->array.v[k], k == 1, cols);
	}
	if (metrics && metrics->array.n)
		table_render(&t, st, out);
	else
		buf_addz(out, "no metrics to compare\n");
	for (size_t i = 0; notes && i < notes->array.n; i++) {
		if (notes->array.v[i]->type != DOC_STRING)
			continue;
		buf_addz(out, "note: ");
		text_add_escaped(out, notes->array.v[i]->s);
		buf_addc(out, '\n');
	}
}
