/* Which series are compared, and the figure that each run gives for a metric. */
#include "report/comparison.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/doc.h"
#include "report/comparison_internal.h"
#include "report/suite_report.h"
#include "store/store.h"

static const char *const use_names[COMPARE_USES] = {
	[USE_MEDIAN] = "median", [USE_MEAN] = "mean", [USE_LAST] = "last", [USE_BEST] = "best"};

const char *compare_use_name(enum compare_use u)
{
	return use_names[u];
}

bool compare_use_from(struct str name, enum compare_use *ret)
{
	for (int u = 0; u < COMPARE_USES; u++)
		if (str_is(name, use_names[u])) {
			*ret = (enum compare_use)u;
			return true;
		}
	return false;
}

/* The machine's own samples are compared only when they are asked for. */
bool compare_is_host(const char *name)
{
	return str_starts(str_from(name), STR("host.")) ||
	       str_starts(str_from(name), STR("job.")) ||
	       (str_starts(str_from(name), STR("gpu")) && name[3] >= '0' && name[3] <= '9');
}

static bool wanted(const struct comparison *c, const char *name)
{
	const struct suite_report_facts *s = c->o.suites;

	for (size_t i = 0; i < c->o.nmetrics; i++)
		if (str_is(c->o.metrics[i], name))
			return true;
	/* The suite file of the baseline says what its report is about. */
	for (size_t i = 0; s && c->o.nmetrics == 0 && i < s->nmetrics; i++)
		if (strcmp(s->metrics[i], name) == 0)
			return true;
	return c->o.nmetrics == 0 && !(s && s->nmetrics) && !compare_is_host(name);
}

/* The direction that the job file of a run gives for a metric; false if none. */
bool compare_better_in_job(const struct doc *job, const char *name, enum better *ret)
{
	struct str word = doc_str(doc_table(doc_table(job, "metrics"), name), "better", STR(""));
	if (!str_is(word, "lower") && !str_is(word, "higher"))
		return false;
	*ret = str_is(word, "lower") ? BETTER_LOWER : BETTER_HIGHER;
	return true;
}

struct series_list {
	struct comparison *c;
	const struct doc *job;
	size_t arm, run;
	int pair;
	double samples_per_s; /* of all its nodes */
	bool full;
};

static size_t most_metrics(const struct comparison *c)
{
	return c->o.suites ? COMPARISON_MAX_PAIRED : COMPARISON_MAX_METRICS;
}

static size_t find_metric(struct series_list *l, const char *name)
{
	struct comparison *c = l->c;
	size_t at = 0;

	while (at < c->metrics.n &&
	       (c->metrics.v[at].pair != l->pair || strcmp(c->metrics.v[at].name, name) != 0))
		at++;
	if (at == c->metrics.n) {
		if (at == most_metrics(c)) {
			l->full = true;
			return SIZE_MAX;
		}
		struct compare_metric *m = vec_push(&c->metrics);
		m->name = arena_strdup(c->a, name);
		m->pair = l->pair;
		m->better = better_guess(str_from(name));
	}
	if (!c->metrics.v[at].better_known)
		c->metrics.v[at].better_known =
			compare_better_in_job(l->job, name, &c->metrics.v[at].better);
	return at;
}

static bool add_series(void *ctx, const struct series_row *row)
{
	struct series_list *l = ctx;

	if (row->count && row->mean > 0 && strcmp(row->name, SAMPLES_METRIC) == 0)
		l->samples_per_s += row->mean;
	if (!row->count || !wanted(l->c, row->name))
		return true;
	size_t metric = find_metric(l, row->name);
	if (metric == SIZE_MAX)
		return false;
	struct compare_item *it = vec_push(&l->c->items);
	it->arm = l->arm;
	it->run = l->run;
	it->metric = metric;
	it->stride = row->count;
	it->last = row->last;
	it->min = row->min;
	it->max = row->max;
	*vec_push(&l->c->series) = row->series;
	return true;
}

/* The nodes of a run share the room for its samples. */
static void set_strides(struct comparison *c, size_t from)
{
	uint64_t nodes[COMPARISON_MAX_PAIRED] = {0};

	for (size_t i = from; i < c->items.n; i++)
		nodes[c->items.v[i].metric]++;
	for (size_t i = from; i < c->items.n; i++) {
		struct compare_item *it = &c->items.v[i];
		uint64_t room = COMPARISON_MAX_VALUES / nodes[it->metric];
		if (!room)
			room = 1;
		it->stride = (it->stride + room - 1) / room;
	}
}

static int list_run(struct comparison *c, struct store *st, size_t arm, size_t run, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct series_list l = {
		.c = c, .arm = arm, .run = run, .pair = c->arms[arm].runs.v[run].pair};
	size_t from = c->items.n;
	struct run_row row;
	struct doc *job;

	if (store_run_get(st, c->arms[arm].runs.v[run].no, a, &row, err) < 0)
		return -1;
	/* A job that cannot be read says nothing: better is then guessed from the name. */
	if (row.job_json && json_parse(str_from(row.job_json), a, &job, NULL) == 0)
		l.job = job;
	const struct doc *params = doc_table(l.job, "params");

	c->arms[arm].runs.v[run].params = params ? doc_copy(c->a, params) : NULL;
	if (store_series_each(st, row.no, add_series, &l, err) < 0)
		return -1;
	if (l.full)
		return err_set(err, ERR_INVALID, "more than %zu metrics%s: choose some by name",
			       most_metrics(c), c->o.suites ? " of all variants" : "");
	set_strides(c, from);
	if (row.ended_ms) {
		struct compare_run *of = &c->arms[arm].runs.v[run];
		of->usd = (double)row.cost_micro / 1e6;
		of->steps = (double)row.step;
		of->samples = l.samples_per_s * (double)row.running_ms / 1000;
		of->running_s = (double)row.running_ms / 1000;
	}
	return 0;
}

static int list_series(struct comparison *c, struct store *st, struct err *err)
{
	for (size_t i = 0; i < c->o.narms; i++)
		for (size_t k = 0; k < c->arms[i].runs.n; k++)
			if (list_run(c, st, i, k, err) < 0)
				return -1;
	return 0;
}

/* How long jobs ran is the metric of suites without any, as in their reports.  Its items have no series: they come
 * after all that have. */
static int add_runtimes(struct comparison *c, struct err *err)
{
	for (size_t i = 0; i < c->o.narms; i++)
		for (size_t k = 0; k < c->arms[i].runs.n; k++) {
			const struct compare_run *r = &c->arms[i].runs.v[k];
			struct series_list l = {.c = c, .arm = i, .run = k, .pair = r->pair};
			size_t metric =
				r->running_s > 0 ? find_metric(&l, SUITE_REPORT_RUNTIME) : SIZE_MAX;

			if (l.full)
				return err_set(err, ERR_INVALID, "more than %zu variants",
					       most_metrics(c));
			if (metric == SIZE_MAX)
				continue;
			c->metrics.v[metric].better = BETTER_LOWER;
			struct compare_item *it = vec_push(&c->items);
			*it = (struct compare_item){.arm = i,
						    .run = k,
						    .metric = metric,
						    .stride = 1,
						    .last = r->running_s,
						    .min = r->running_s,
						    .max = r->running_s};
			*vec_push(&it->values) = r->running_s;
		}
	return 0;
}

static bool wants_runtimes(const struct comparison *c)
{
	return c->o.suites &&
	       (c->o.nmetrics || c->o.suites->nmetrics ? wanted(c, SUITE_REPORT_RUNTIME)
						       : c->metrics.n == 0);
}

static int find_arms(struct comparison *c, struct store *st, const char ***ret_ids,
		     size_t *ret_nids, struct err *err)
{
	if (c->o.suites)
		return compare_pair_suites(c, st, err);
	for (size_t i = 0; i < c->o.narms; i++)
		if (compare_find_arm(st, c->o.arms[i], c->a, &c->arms[i], ret_ids, ret_nids, err) <
		    0)
			return -1;
	return 0;
}

int comparison_open(struct store *st, const struct comparison_options *o, struct arena *a,
		    struct comparison **ret, const char ***ret_ids, size_t *ret_nids,
		    struct err *err)
{
	if (o->narms < 2)
		return err_set(err, ERR_INVALID, "a comparison needs two runs or more");
	if (o->narms > COMPARISON_MAX_ARMS)
		return err_set(err, ERR_INVALID, "at most %d runs or groups are compared at a time",
			       COMPARISON_MAX_ARMS);
	if (o->samples && o->use != USE_MEDIAN)
		return err_set(err, ERR_INVALID,
			       "samples are compared by their median, not by their %s",
			       compare_use_name(o->use));
	if (!(o->threshold_pct >= 0))
		return err_set(err, ERR_INVALID, "the threshold must not be negative");
	struct comparison *c = xcalloc(1, sizeof(*c));
	c->o = *o;
	c->a = a;
	if (find_arms(c, st, ret_ids, ret_nids, err) < 0 || list_series(c, st, err) < 0 ||
	    (wants_runtimes(c) && add_runtimes(c, err) < 0)) {
		comparison_free(c);
		return -1;
	}
	*ret = c;
	return 0;
}

size_t comparison_series(const struct comparison *c, const int64_t **ret)
{
	*ret = c->series.v;
	/* The last and the best value are stored with the series: no samples are needed. */
	return c->o.use == USE_LAST || c->o.use == USE_BEST ? 0 : c->series.n;
}

void compare_item_add(struct compare_item *it, const struct report_point *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (it->seen++ % it->stride == 0 && isfinite(p[i].value) &&
		    it->values.n < COMPARISON_MAX_VALUES)
			*vec_push(&it->values) = p[i].value;
}

void comparison_points(struct comparison *c, size_t series, const struct report_point *p, size_t n)
{
	compare_item_add(&c->items.v[series], p, n);
}

double compare_figure(const struct compare_item *v, size_t n, enum compare_use use,
		      enum better better, struct compare_side *s)
{
	double last = 0, min = (double)INFINITY, max = -min, figure = (double)NAN;
	size_t from = s->samples.n;

	for (size_t i = 0; i < n; i++) {
		size_t warm = values_warm_up(values_of(v[i].values.v, v[i].values.n));

		s->dropped += warm;
		for (size_t k = warm; k < v[i].values.n; k++)
			*vec_push(&s->samples) = v[i].values.v[k];
		last += v[i].last / (double)n;
		min = fmin(min, v[i].min);
		max = fmax(max, v[i].max);
	}
	struct values mine = {0};
	if (s->samples.n > from)
		mine = values_of(s->samples.v + from, s->samples.n - from);
	switch (use) {
	case USE_MEDIAN:
		figure = values_quantile(mine, 0.5);
		break;
	case USE_MEAN:
		figure = 0;
		for (size_t k = 0; k < mine.n; k++)
			figure += mine.v[k] / (double)mine.n;
		figure = mine.n ? figure : (double)NAN;
		break;
	case USE_LAST:
		figure = last;
		break;
	case USE_BEST:
		figure = better == BETTER_LOWER ? min : max;
		break;
	case COMPARE_USES:
		break;
	}
	return figure;
}

/* Adds the figure of one run for one metric, and its samples, from its items (one per node). */
static void add_figure(struct comparison *c, struct compare_side *s, const struct compare_metric *m,
		       size_t first, size_t end)
{
	double figure = compare_figure(&c->items.v[first], end - first, c->o.use, m->better, s);

	if (isfinite(figure))
		*vec_push(&s->figures) = figure;
}

static int by_place(const void *x, const void *y)
{
	const struct compare_item *a = x, *b = y;

	if (a->metric != b->metric)
		return a->metric < b->metric ? -1 : 1;
	if (a->arm != b->arm)
		return a->arm < b->arm ? -1 : 1;
	return a->run < b->run ? -1 : a->run > b->run;
}

/* Thins the samples of all runs of an arm evenly to the maximum of one test. */
static void thin(struct compare_side *s)
{
	size_t stride = (s->samples.n + COMPARISON_MAX_VALUES - 1) / COMPARISON_MAX_VALUES, n = 0;

	if (stride < 2)
		return;
	for (size_t i = 0; i < s->samples.n; i += stride)
		s->samples.v[n++] = s->samples.v[i];
	s->samples.n = n;
}

void compare_figures(struct comparison *c)
{
	if (c->items.n)
		qsort(c->items.v, c->items.n, sizeof(c->items.v[0]), by_place);
	for (size_t i = 0, end; i < c->items.n; i = end) {
		for (end = i + 1;
		     end < c->items.n && by_place(&c->items.v[i], &c->items.v[end]) == 0;)
			end++;
		struct compare_metric *m = &c->metrics.v[c->items.v[i].metric];
		add_figure(c, &m->sides[c->items.v[i].arm], m, i, end);
	}
	for (size_t i = 0; i < c->metrics.n; i++)
		for (size_t k = 0; k < c->o.narms; k++)
			thin(&c->metrics.v[i].sides[k]);
}

struct comparison *comparison_free(struct comparison *c)
{
	if (!c)
		return NULL;
	for (size_t i = 0; i < COMPARISON_MAX_ARMS; i++)
		vec_release(&c->arms[i].runs);
	for (size_t i = 0; i < c->items.n; i++)
		vec_release(&c->items.v[i].values);
	for (size_t i = 0; i < c->metrics.n; i++)
		for (size_t k = 0; k < COMPARISON_MAX_ARMS; k++) {
			vec_release(&c->metrics.v[i].sides[k].figures);
			vec_release(&c->metrics.v[i].sides[k].samples);
		}
	vec_release(&c->pairs);
	vec_release(&c->notes);
	vec_release(&c->metrics);
	vec_release(&c->items);
	vec_release(&c->series);
	free(c);
	return NULL;
}
