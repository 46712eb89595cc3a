/* Which runs an argument means, what is tested, and the verdicts. */
#include "spec/golden.h"

#include <fcntl.h>
#include <math.h>

#include "../store/store_fixture.h"
#include "fmt/doc.h"
#include "report/comparison.h"
#include "report/suite_report.h"

static void near(double got, double want, double absolute)
{
	if (!(fabs(got - want) <= absolute))
		fail_msg("got %.17g, expected %.17g", got, want);
}

struct home {
	char *dir;
	struct store *st;
	struct arena *a;
	int number;
	const char *job; /* of the runs that are added; NULL: one that has an opinion about score */
	int64_t micro, running_ms; /* what the runs that are added cost, and how long they ran */
};

static int set_up(void **state)
{
	void *dir;
	struct home *h = xcalloc(1, sizeof(*h));

	if (unit_make_dir(&dir) < 0)
		return -1;
	h->st = fixture_open(dir);
	h->a = arena_new();
	store_begin(h->st);
	h->dir = dir;
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	struct home *h = *state;

	store_close(h->st);
	int rc = file_remove_tree(h->dir, NULL);
	free(h->dir);
	arena_free(h->a);
	free(h);
	return rc;
}

static void end_run(struct home *h, int64_t no, enum verdict verdict)
{
	struct core_run *r = fixture_run();
	struct err err = {0};

	r->phase = verdict == VERDICT_SUCCEEDED ? RUN_SUCCEEDED : RUN_FAILED;
	r->verdict = verdict;
	r->phase_at_ms[RUN_RUNNING] = 1000;
	r->phase_at_ms[RUN_CLEANING] = 1000 + h->running_ms;
	r->phase_at_ms[r->phase] = 90000;
	r->resources[0] = (struct core_resource){.state = RES_GONE, .paid_micro = h->micro};
	assert_ok(store_resource_save(h->st, no, 0, &r->plan->resources[0], &r->resources[0], &err),
		  &err);
	assert_ok(store_run_save(h->st, no, r, 5000, &err), &err);
	assert_ok(store_run_ended(h->st, no, 2000, &err), &err);
	fixture_run_free(r);
}

static int64_t add_run(struct home *h, const char *name, const char *id, enum verdict verdict)
{
	char request[32];
	snprintf(request, sizeof(request), "request-%d", h->number++);
	struct run_row row = {
		.id = id,
		.name = name,
		.request_id = request,
		.job_json = h->job ? h->job : "{\"metrics\":{\"score\":{\"better\":\"lower\"}}}",
		.engine = "local",
		.strategy = "single",
		.secret = "00",
		.nodes = FIXTURE_NODES,
		.created_ms = 1000};
	struct err err = {0};

	assert_ok(store_run_add(h->st, &row, &err), &err);
	if (verdict != VERDICT_NONE)
		end_run(h, row.no, verdict);
	return row.no;
}

static void add_samples(struct home *h, int64_t no, int rank, const char *metric, const double *v,
			size_t n)
{
	struct series_row row;
	struct stats st = {0};
	struct err err = {0};

	assert_ok(store_series_open(h->st, no, rank, metric, &row, &err), &err);
	for (size_t i = 0; i < n; i++) {
		assert_ok(store_sample_add(h->st, row.series, (int64_t)i, -1, v[i], &err), &err);
		if (isfinite(v[i]))
			stats_add(&st, v[i]);
	}
	row.count = n;
	row.first = st.first;
	row.last = st.last;
	row.min = st.min;
	row.max = st.max;
	row.mean = st.mean;
	assert_ok(store_series_save(h->st, &row, &err), &err);
}

/* A run that gives one value of one metric. */
static void add_simple(struct home *h, const char *name, const char *id, const char *metric,
		       double v)
{
	add_samples(h, add_run(h, name, id, VERDICT_SUCCEEDED), 0, metric, &v, 1);
}

static bool give(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	struct {
		struct comparison *c;
		size_t i;
	} *to = ctx;
	struct report_point p = {wall_ms, step, value};

	comparison_points(to->c, to->i, &p, 1);
	return true;
}

static int run_comparison(struct home *h, struct comparison_options *o, const char *arms,
			  struct buf *out, struct err *err)
{
	struct str words[COMPARISON_MAX_ARMS + 4], rest = str_from(arms);
	struct comparison *c = NULL;
	const int64_t *series;
	const char **ids = NULL;
	size_t nids = 0;

	o->arms = words;
	o->narms = 0;
	while (rest.p && rest.n)
		words[o->narms++] = str_cut(&rest, ' ');
	if (comparison_open(h->st, o, h->a, &c, &ids, &nids, err) < 0)
		return -1;
	size_t n = comparison_series(c, &series);
	for (size_t i = 0; i < n; i++) {
		struct {
			struct comparison *c;
			size_t i;
		} to = {c, i};
		assert_ok(store_samples_after(h->st, series[i], 0, 0, give, &to, err), err);
	}
	int rc = comparison_end(c, out, err);
	comparison_free(c);
	return rc;
}

static const struct doc *compare(struct home *h, struct comparison_options o, const char *arms)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct err err = {0};
	struct doc *d;

	buf_init(&out, 1u << 20);
	if (!(o.threshold_pct > 0))
		o.threshold_pct = 5;
	if (run_comparison(h, &o, arms, &out, &err) < 0)
		fail_msg("%s", err.msg);
	assert_ok(json_parse(arena_str(h->a, buf_str(&out)), h->a, &d, &err), &err);
	return d;
}

static const struct doc *metric_of(const struct doc *d, const char *name)
{
	const struct doc *all = doc_array(d, "metrics");

	for (size_t i = 0; i < all->array.n; i++)
		if (str_is(doc_str(all->array.v[i], "name", STR("")), name))
			return all->array.v[i];
	fail_msg("no metric %s", name);
	return NULL;
}

static void assert_verdict(const struct doc *d, const char *metric, const char *verdict,
			   const char *test, bool fails)
{
	const struct doc *m = metric_of(d, metric);

	if (!str_is(doc_str(m, "verdict", STR("")), verdict) ||
	    !str_is(doc_str(m, "test", STR("")), test) || doc_bool(d, "fails", !fails) != fails) {
		CLEANUP(buf_release) struct buf b = {0};
		buf_init(&b, 1u << 20);
		doc_to_json(d, &b);
		fail_msg("expected %s by %s: %.*s", verdict, test, STR_ARG(buf_str(&b)));
	}
}

static void assert_note(const struct doc *d, const char *part)
{
	const struct doc *notes = doc_array(d, "notes");

	for (size_t i = 0; i < notes->array.n; i++)
		if (strstr(notes->array.v[i]->s.p, part))
			return;
	fail_msg("no note says '%s'", part);
}

/* n runs name-0.. whose only value of the metric is around `middle`. */
static void add_group(struct home *h, const char *name, const char *metric, int n, double middle)
{
	for (int i = 0; i < n; i++)
		add_simple(h, name, arena_printf(h->a, "%s-%02d", name, i), metric,
			   middle * (1 + (double)(i * 7 % 5 - 2) / 1000));
}

/* Rule: the verdict follows this table. */
static void the_verdict_follows_the_table(void **state)
{
	static const struct {
		const char *what;
		struct compare_facts f;
		const char *verdict;
		bool fails;
	} rows[] = {
		{"worse and significant",
		 {.tested = true,
		  .significant = true,
		  .diff = -1,
		  .diff_pct = -10,
		  .low_pct = -12,
		  .high_pct = -8},
		 "worse",
		 true},
		{"better and significant",
		 {.tested = true,
		  .significant = true,
		  .diff = 1,
		  .diff_pct = 10,
		  .low_pct = 8,
		  .high_pct = 12},
		 "better",
		 false},
		{"lower is better",
		 {.tested = true,
		  .significant = true,
		  .lower_is_better = true,
		  .diff = 1,
		  .diff_pct = 10,
		  .low_pct = 8,
		  .high_pct = 12},
		 "worse",
		 true},
		{"significant, but it does not matter",
		 {.tested = true,
		  .significant = true,
		  .diff = -1,
		  .diff_pct = -1,
		  .low_pct = -2,
		  .high_pct = -.5},
		 "same",
		 false},
		{"significant, below the threshold, perhaps beyond",
		 {.tested = true,
		  .significant = true,
		  .diff = -4,
		  .diff_pct = -4,
		  .low_pct = -7,
		  .high_pct = -1},
		 "worse",
		 false},
		{"not significant and narrow",
		 {.tested = true, .diff = -1, .diff_pct = -1, .low_pct = -3, .high_pct = 2},
		 "same",
		 false},
		{"not significant and wide",
		 {.tested = true, .diff = -8, .diff_pct = -8, .low_pct = -30, .high_pct = 12},
		 "unclear",
		 false},
		{"samples of one run",
		 {.tested = true,
		  .alone = true,
		  .significant = true,
		  .diff = -9,
		  .diff_pct = -9,
		  .low_pct = -10,
		  .high_pct = -8},
		 "unclear",
		 false},
		{"too few",
		 {.diff = -50, .diff_pct = -50, .low_pct = -60, .high_pct = -40},
		 "unclear",
		 false},
		{"too few, the threshold decides",
		 {.no_test = true, .diff = -50, .diff_pct = -50},
		 "worse",
		 true},
		{"too few, the threshold decides for better",
		 {.no_test = true, .diff = 50, .diff_pct = 50},
		 "better",
		 false},
		{"too few, within the threshold",
		 {.no_test = true, .diff = -4, .diff_pct = -4},
		 "same",
		 false},
		{"from nothing",
		 {.tested = true,
		  .significant = true,
		  .lower_is_better = true,
		  .diff = 1,
		  .diff_pct = (double)NAN,
		  .low_pct = (double)NAN,
		  .high_pct = (double)NAN},
		 "worse",
		 true},
		{"from nothing to nothing",
		 {.tested = true,
		  .diff = 0,
		  .diff_pct = (double)NAN,
		  .low_pct = (double)NAN,
		  .high_pct = (double)NAN},
		 "unclear",
		 false},
		{"no difference at all, no test",
		 {.no_test = true, .diff = 0, .diff_pct = (double)NAN},
		 "same",
		 false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct compare_facts f = rows[i].f;
		f.threshold_pct = 5;
		if (strcmp(compare_verdict_name(compare_judge(&f)), rows[i].verdict) != 0 ||
		    compare_fails(&f) != rows[i].fails)
			fail_msg("%s: %s", rows[i].what, compare_verdict_name(compare_judge(&f)));
	}
}

static void a_slow_down_in_repeats_is_found(void **state)
{
	struct home *h = *state;

	add_group(h, "base", "speed", 5, 100);
	add_group(h, "slow", "speed", 5, 90);
	add_group(h, "fast", "speed", 5, 110);
	add_group(h, "again", "speed", 5, 100.01);
	assert_verdict(compare(h, (struct comparison_options){0}, "base slow"), "speed", "worse",
		       "runs", true);
	assert_verdict(compare(h, (struct comparison_options){0}, "base fast"), "speed", "better",
		       "runs", false);
	assert_verdict(compare(h, (struct comparison_options){0}, "base again"), "speed", "same",
		       "runs", false);
	const struct doc *d =
		compare(h, (struct comparison_options){.threshold_pct = 20}, "base slow");
	assert_verdict(d, "speed", "same", "runs", false);
	/* C(10,5) orders, both ends */
	near(doc_num(metric_of(d, "speed"), "p", 0), 2.0 / 252, 1e-12);
}

static void of_several_arms_the_worst_heads_the_metric(void **state)
{
	struct home *h = *state;

	add_group(h, "base", "speed", 6, 100);
	add_group(h, "slow", "speed", 6, 90);
	add_group(h, "fast", "speed", 6, 110);
	const struct doc *d = compare(h, (struct comparison_options){0}, "base fast slow");
	assert_verdict(d, "speed", "worse", "runs", true);
	const struct doc *rows = doc_array(metric_of(d, "speed"), "rows");
	assert_true(str_is(doc_str(rows->array.v[1], "verdict", STR("")), "better"));
	assert_true(str_is(doc_str(rows->array.v[2], "verdict", STR("")), "worse"));
	/* Both tests are corrected together. */
	near(doc_num(rows->array.v[1], "p_holm", 0), 2 * doc_num(rows->array.v[1], "p", 0), 1e-12);
}

static void too_few_runs_are_said_and_never_alarm(void **state)
{
	struct home *h = *state;

	add_group(h, "base", "speed", 3, 100);
	add_group(h, "slow", "speed", 3, 50);
	const struct doc *d = compare(h, (struct comparison_options){0}, "base slow");
	assert_verdict(d, "speed", "unclear", "runs", false);
	assert_note(d, "too few runs to test: 4 in each group");
	/* No p-value stands beside that: with ties it could even be a small one. */
	assert_true(doc_get(metric_of(d, "speed"), "p")->type == DOC_NULL);
	assert_true(doc_get(metric_of(d, "speed"), "p_holm")->type == DOC_NULL);
	assert_true(doc_get(metric_of(d, "speed"), "mde_pct")->type == DOC_NULL);
	d = compare(h, (struct comparison_options){.no_test = true}, "base slow");
	assert_verdict(d, "speed", "worse", "runs", true);
	assert_note(d, "the threshold alone decides");
	d = compare(h, (struct comparison_options){0}, "base slow-00");
	assert_verdict(d, "speed", "unclear", "none", false);
}

static void single_runs_are_compared_by_samples_without_a_verdict(void **state)
{
	struct home *h = *state;
	double a[40], b[40];

	for (int i = 0; i < 40; i++) {
		a[i] = 100 + (i * 7 % 11);
		b[i] = 80 + (i * 5 % 11);
	}
	add_samples(h, add_run(h, "x", "x-aaaa", VERDICT_SUCCEEDED), 0, "speed", a, 40);
	add_samples(h, add_run(h, "x", "x-bbbb", VERDICT_SUCCEEDED), 0, "speed", b, 40);
	const struct doc *d = compare(h, (struct comparison_options){0}, "x-aaaa x-bbbb");
	assert_verdict(d, "speed", "unclear", "samples", false);
	assert_true(doc_num(metric_of(d, "speed"), "p", 1) < 1e-6);
	assert_note(d, "not independent");
	assert_verdict(compare(h, (struct comparison_options){.samples = true}, "x-aaaa x-bbbb"),
		       "speed", "worse", "samples", true);
	assert_verdict(compare(h, (struct comparison_options){.no_test = true}, "x-aaaa x-bbbb"),
		       "speed", "worse", "samples", true);
	/* The last value is one number: there is nothing to test. */
	assert_verdict(compare(h, (struct comparison_options){.use = USE_LAST}, "x-aaaa x-bbbb"),
		       "speed", "unclear", "none", false);
	assert_verdict(compare(h, (struct comparison_options){.use = USE_LAST, .no_test = true},
			       "x-aaaa x-bbbb"),
		       "speed", "worse", "none", true);
}

static double figure(struct home *h, enum compare_use use)
{
	const struct doc *d = compare(h, (struct comparison_options){.use = use}, "x-aaaa x-aaaa");
	return doc_num(doc_array(metric_of(d, "score"), "rows")->array.v[0], "median", (double)NAN);
}

static void the_figure_of_a_run_is_what_was_asked_for(void **state)
{
	struct home *h = *state;
	double a[] = {1, 2, 9, 4}, b[] = {10, 20, (double)NAN, 6};
	int64_t no = add_run(h, "x", "x-aaaa", VERDICT_SUCCEEDED);

	add_samples(h, no, 0, "score", a, 4);
	add_samples(h, no, 1, "score", b, 4);
	near(figure(h, USE_MEDIAN), 6, 1e-12);
	near(figure(h, USE_MEAN), 52.0 / 7, 1e-9);
	near(figure(h, USE_LAST), 5, 1e-12);
	near(figure(h, USE_BEST), 1, 1e-12); /* lower, as the job file says */
}

static void the_best_is_the_same_end_for_all_runs(void **state)
{
	struct home *h = *state;
	double v[] = {3, 1, 2};

	h->job = "{}"; /* would guess that higher is better */
	add_samples(h, add_run(h, "x", "x-aaaa", VERDICT_SUCCEEDED), 0, "score", v, 3);
	h->job = NULL;
	add_samples(h, add_run(h, "x", "x-bbbb", VERDICT_SUCCEEDED), 0, "score", v, 3);
	const struct doc *m = metric_of(
		compare(h, (struct comparison_options){.use = USE_BEST}, "x-aaaa x-bbbb"), "score");
	near(doc_num(m, "diff", (double)NAN), 0, 0);
	assert_true(str_is(doc_str(m, "better", STR("")), "lower"));
}

static void the_warm_up_does_not_count(void **state)
{
	struct home *h = *state;
	double v[100];

	for (int i = 0; i < 100; i++)
		v[i] = i < 20 ? 1000 : 10 + (i % 2);
	add_samples(h, add_run(h, "x", "x-aaaa", VERDICT_SUCCEEDED), 0, "score", v, 100);
	assert_true(figure(h, USE_MEAN) < 11);
}

static void a_long_series_is_thinned(void **state)
{
	enum { MANY = 3 * COMPARISON_MAX_VALUES };
	struct home *h = *state;
	double *v = xcalloc(MANY, sizeof(*v));

	for (int i = 0; i < MANY; i++)
		v[i] = i % 100;
	add_samples(h, add_run(h, "x", "x-aaaa", VERDICT_SUCCEEDED), 0, "score", v, MANY);
	free(v);
	const struct doc *d =
		compare(h, (struct comparison_options){.samples = true}, "x-aaaa x-aaaa,x-aaaa");
	const struct doc *row = doc_array(metric_of(d, "score"), "rows")->array.v[0];
	assert_true(doc_int(row, "samples", 0) <= COMPARISON_MAX_VALUES);
	assert_true(fabs(doc_num(row, "median", 0) - 49.5) < 2);
}

static void a_metric_that_one_arm_lacks_is_said(void **state)
{
	struct home *h = *state;
	double v = 1;
	int64_t no;

	add_simple(h, "a", "a-aaaa", "speed", 1);
	no = add_run(h, "b", "b-bbbb", VERDICT_SUCCEEDED);
	add_samples(h, no, 0, "other", &v, 1);
	add_samples(h, no, 0, "host.cpu", &v, 1);
	const struct doc *d = compare(h, (struct comparison_options){0}, "a-aaaa b-bbbb");
	assert_int_equal(doc_array(d, "metrics")->array.n,
			 2); /* the machine's own are not asked for */
	assert_note(d, "metric 'speed' is missing in b-bbbb");
	assert_note(d, "metric 'other' is missing in a-aaaa");
	assert_verdict(d, "speed", "unclear", "none", false);
	struct str names[] = {STR("host.cpu"), STR("nothing")};
	d = compare(h, (struct comparison_options){.metrics = names, .nmetrics = 2},
		    "a-aaaa b-bbbb");
	assert_int_equal(doc_array(d, "metrics")->array.n, 1);
	assert_note(d, "no run has a metric 'nothing'");
}

static void assert_arm(const struct doc *d, size_t arm, const char *ids)
{
	CLEANUP(buf_release) struct buf b = {0};
	const struct doc *runs = doc_array(doc_array(d, "arms")->array.v[arm], "runs");

	buf_init(&b, 4096);
	for (size_t i = 0; i < runs->array.n; i++)
		buf_printf(&b, "%s%s", i ? " " : "", runs->array.v[i]->s.p);
	buf_addz(&b, "");
	assert_string_equal(buf_str(&b).p, ids);
}

static void a_word_means_a_run_or_a_group(void **state)
{
	struct home *h = *state;

	for (int i = 1; i <= 4; i++)
		add_simple(h, "ctr", arena_printf(h->a, "ctr-%d", i), "speed", i);
	add_run(h, "ctr", "ctr-bad", VERDICT_FAILED);
	add_run(h, "ctr", "ctr-now", VERDICT_NONE);
	add_simple(h, "other", "other-1", "speed", 1);
	add_simple(h, "ctr-3", "ctr-3-zzzz", "speed", 1); /* a name that is also an id */
	const struct doc *d = compare(h, (struct comparison_options){0}, "ctr other");
	assert_arm(d, 0, "ctr-4 ctr-3 ctr-2 ctr-1");
	assert_arm(d, 1, "other-1");
	assert_note(d, "ctr: 1 run that did not succeed is left out");
	assert_true(str_is(doc_array(d, "runs")->array.v[1]->s, "other-1"));
	d = compare(h, (struct comparison_options){0}, "ctr@last2 ctr-1,ctr-3,ctr-1");
	assert_arm(d, 0, "ctr-4 ctr-3");
	assert_arm(d, 1, "ctr-1 ctr-3");
	d = compare(h, (struct comparison_options){0}, "oth ctr-bad");
	assert_arm(d, 0, "other-1");
	assert_arm(d, 1, "ctr-bad");
	assert_note(d, "ctr-bad: 1 of its runs did not succeed");
	assert_arm(compare(h, (struct comparison_options){0}, "ctr-3 ctr-now"), 1, "ctr-now");
}

static void words_that_mean_nothing_are_refused(void **state)
{
	static const struct {
		const char *arms;
		enum err_kind kind;
		const char *text;
	} rows[] = {
		{"ctr", ERR_INVALID, "two runs or more"},
		{"a b c d e f g h i j k l m n o p q", ERR_INVALID, "at most 16"},
		{"ctr nobody", ERR_NOT_FOUND, "no run 'nobody'"},
		{"ctr ct", ERR_CONFLICT, "ct"},
		{"ctr ctr@5", ERR_INVALID, "lastN"},
		{"ctr ctr@last0", ERR_INVALID, "lastN"},
		{"ctr ctr,,ctr", ERR_INVALID, "beside a comma"},
		{"ctr broken", ERR_NOT_FOUND, "no run of 'broken' has succeeded"},
		{"ctr nobody@last2", ERR_NOT_FOUND, "no run 'nobody'"},
	};
	struct home *h = *state;

	add_simple(h, "ctr", "ctr-1", "speed", 1);
	add_simple(h, "ctr", "ctr-2", "speed", 1);
	add_run(h, "broken", "broken-1", VERDICT_FAILED);
	add_run(h, "broken", "broken-2", VERDICT_FAILED);
	for (size_t i = 0; i < COUNT(rows); i++) {
		CLEANUP(buf_release) struct buf out = {0};
		struct comparison_options o = {.threshold_pct = 5};
		struct err err = {0};
		buf_init(&out, 1u << 20);
		assert_fails(run_comparison(h, &o, rows[i].arms, &out, &err), &err, rows[i].kind,
			     rows[i].text);
	}
	struct comparison_options o = {.threshold_pct = -1};
	CLEANUP(buf_release) struct buf out = {0};
	struct err err = {0};
	assert_fails(run_comparison(h, &o, "ctr ctr", &out, &err), &err, ERR_INVALID, "negative");
	o = (struct comparison_options){.use = USE_MEAN, .samples = true};
	assert_fails(run_comparison(h, &o, "ctr ctr", &out, &err), &err, ERR_INVALID,
		     "by their median, not by their mean");
}

static void more_metrics_than_can_be_compared_are_refused(void **state)
{
	struct home *h = *state;
	int64_t no = add_run(h, "x", "x-aaaa", VERDICT_SUCCEEDED);
	struct comparison_options o = {.threshold_pct = 5};
	CLEANUP(buf_release) struct buf out = {0};
	struct err err = {0};
	double v = 1;

	for (int i = 0; i <= COMPARISON_MAX_METRICS; i++)
		add_samples(h, no, 0, arena_printf(h->a, "m%d", i), &v, 1);
	buf_init(&out, 1u << 20);
	assert_fails(run_comparison(h, &o, "x-aaaa x-aaaa", &out, &err), &err, ERR_INVALID,
		     "more than 500 metrics");
}

static void the_names_of_figures_are_known(void **state)
{
	enum compare_use u = USE_BEST;

	(void)state;
	for (int i = 0; i < COMPARE_USES; i++) {
		assert_true(compare_use_from(str_from(compare_use_name((enum compare_use)i)), &u));
		assert_int_equal(u, i);
	}
	assert_false(compare_use_from(STR("mode"), &u));
}

/* A run of two nodes that print samples_per_s, at the given step of 100. */
static void add_priced(struct home *h, const char *name, const char *id, int64_t micro,
		       int64_t step, double samples_per_s)
{
	int64_t no = add_run(h, name, id, VERDICT_NONE);
	struct series_row row;
	struct err err = {0};

	for (int rank = 0; rank < 2 && samples_per_s > 0; rank++)
		add_samples(h, no, rank, SAMPLES_METRIC, &samples_per_s, 1);
	assert_ok(store_series_open(h->st, no, 0, "loss", &row, &err), &err);
	row.count = 1;
	row.step = step;
	row.total = step ? 100 : 0;
	assert_ok(store_series_save(h->st, &row, &err), &err);
	h->micro = micro;
	h->running_ms = 10000;
	end_run(h, no, VERDICT_SUCCEEDED);
}

static const struct doc *cost_of(const struct doc *d, size_t arm)
{
	return doc_get(doc_array(d, "arms")->array.v[arm], "cost");
}

/* Rule: each side says what a run, a step and 1,000 samples cost, from the runs that have them. */
static void the_sides_say_what_they_cost(void **state)
{
	struct home *h = *state;

	add_priced(h, "small", "small-0", 400000, 50, 100);
	add_priced(h, "small", "small-1", 600000, 50, 0);
	add_priced(h, "large", "large-0", 1200000, 0, 0);
	add_priced(h, "free", "free-0", 0, 50, 100);
	add_run(h, "live", "live-0", VERDICT_NONE);
	const struct doc *d = compare(h, (struct comparison_options){0}, "small large free live-0");

	assert_int_equal(doc_int(cost_of(d, 0), "runs", 0), 2);
	near(doc_num(cost_of(d, 0), "usd", 0), 0.5, 1e-12);
	near(doc_num(cost_of(d, 0), "usd_per_step", 0), 0.01, 1e-12);
	/* 2 nodes x 100 per s x 10 s, for 0.4 USD */
	near(doc_num(cost_of(d, 0), "usd_per_1k_samples", 0), 0.2, 1e-12);
	near(doc_num(cost_of(d, 1), "usd", 0), 1.2, 1e-12);
	assert_int_equal(doc_get(cost_of(d, 1), "usd_per_step")->type, DOC_NULL);
	assert_int_equal(doc_get(cost_of(d, 1), "usd_per_1k_samples")->type, DOC_NULL);
	assert_int_equal(cost_of(d, 2)->type, DOC_NULL);
	assert_int_equal(cost_of(d, 3)->type, DOC_NULL);
}

/* ---- suites ---- */

#define KEYS 3
#define VARIANTS 4
#define REPEATS 5

/* A suite of a test: its keys, and the values of each variant; NULL: it does not set the key. */
struct small_suite {
	const char *id;
	const char *keys[KEYS];
	struct {
		const char *name;
		const char *values[KEYS];
		bool experiment;
		double speed; /* of its runs; 0: they have no metric */
	} variants[VARIANTS];
};

static void add_suite(struct home *h, const struct small_suite *from,
		      struct suite_report_facts *ret)
{
	int n = 0;

	*ret = (struct suite_report_facts){.id = from->id};
	ret->keys = arena_array(h->a, const char *, KEYS);
	for (; ret->nkeys < KEYS && from->keys[ret->nkeys]; ret->nkeys++)
		ret->keys[ret->nkeys] = from->keys[ret->nkeys];
	while (n < VARIANTS && from->variants[n].name)
		n++;
	ret->nvariants = n;
	ret->variants = arena_array(h->a, struct suite_report_variant, (size_t)n);
	ret->runs = arena_array(h->a, struct suite_report_run, (size_t)n * REPEATS);
	/* The runs of all variants take turns. */
	for (; ret->nruns < n * REPEATS; ret->nruns++) {
		int v = ret->nruns % n, r = ret->nruns / n;
		const char *id =
			arena_printf(h->a, "%s.%s.%d", from->id, from->variants[v].name, r);
		if (from->keys[0] && strcmp(from->keys[0], "params.lr") == 0)
			h->job = arena_printf(h->a, "{\"params\":{\"lr\":%s}}",
					      from->variants[v].values[0]);
		int64_t no = add_run(h, "train", id, VERDICT_SUCCEEDED);
		double speed = from->variants[v].speed + (double)(r * 7 % 5) / 10;

		ret->variants[v] = (struct suite_report_variant){
			.name = from->variants[v].name,
			.params = (const char **)from->variants[v].values,
			.baseline = -1,
			.experiment = from->variants[v].experiment};
		ret->runs[ret->nruns] = (struct suite_report_run){
			.variant = v, .run = id, .state = "succeeded", .succeeded = true};
		if (from->variants[v].speed != 0)
			add_samples(h, no, 0, "speed", &speed, 1);
	}
}

static const struct doc *compare_suites(struct home *h, const struct small_suite *a,
					const struct small_suite *b)
{
	struct suite_report_facts facts[2];

	add_suite(h, a, &facts[0]);
	add_suite(h, b, &facts[1]);
	return compare(h, (struct comparison_options){.suites = facts}, "a b");
}

struct series_of_suite {
	struct suite_report *r;
	size_t i;
};

static bool give_suite(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	struct series_of_suite *to = ctx;
	struct report_point p = {wall_ms, step, value};

	suite_report_points(to->r, to->i, &p, 1);
	return true;
}

static void a_difference_from_a_negative_baseline_has_its_own_sign(void **state)
{
	struct home *h = *state;
	static const struct small_suite suite = {
		"s", {"env.A"}, {{"a", {"1"}, .speed = -10}, {"b", {"2"}, .speed = -5}}};
	struct suite_report_facts facts;
	struct suite_report *r;
	CLEANUP(buf_release) struct buf json = {0};
	CLEANUP(close_fdp) int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const int64_t *series;
	struct doc *doc;
	struct err err;

	add_suite(h, &suite, &facts);
	facts.state = "succeeded";
	facts.file = "";
	facts.naxes = 1;
	facts.variants[1].baseline = 0;
	assert_int_equal(suite_report_open(h->st, &facts, h->a, &r, &err), 0);
	size_t n = suite_report_series(r, &series);

	for (size_t i = 0; i < n; i++) {
		struct series_of_suite to = {r, i};

		assert_ok(store_samples_after(h->st, series[i], 0, 0, give_suite, &to, &err), &err);
	}
	buf_init(&json, 1 << 20);
	buf_addc(&json, '{');
	assert_int_equal(suite_report_end(r, null, null, &json, &err), 0);
	buf_addc(&json, '}');
	suite_report_free(r);
	assert_int_equal(json_parse(buf_str(&json), h->a, &doc, &err), 0);
	const struct doc *metric = doc_array(doc, "metrics")->array.v[0];
	const struct doc *row = doc_array(metric, "rows")->array.v[1];

	assert_true(doc_num(row, "diff_pct", 0) > 40 && doc_num(row, "diff_pct", 0) < 60);
	assert_true(doc_num(row, "low_pct", 0) > 40 && doc_num(row, "high_pct", 0) < 60);
}

static void parameters_that_a_suite_varies_are_no_difference_between_suites(void **state)
{
	const struct small_suite a = {
		"a-aaaa", {"params.lr"}, {{"1", {"1"}, false, 100}, {"2", {"2"}, false, 200}}};
	const struct small_suite b = {
		"b-bbbb", {"params.lr"}, {{"2", {"2"}, false, 200}, {"1", {"1"}, false, 100}}};
	const struct small_suite c = {"c-cccc", {"params.lr"}, {{"1", {"1"}, false, 100}}};
	const struct small_suite d = {"d-dddd", {"params.lr"}, {{"3", {"3"}, false, 100}}};

	assert_int_equal(doc_array(compare_suites(*state, &a, &b), "params")->array.n, 0);
	const struct doc *list = doc_array(compare_suites(*state, &c, &d), "params");

	assert_int_equal(list->array.n, 1);
	assert_true(str_is(doc_str(list->array.v[0], "name", STR("")), "lr"));
}

static void a_run_that_was_removed_is_not_called_one_that_failed(void **state)
{
	const struct small_suite a = {"a-aaaa", {"env.B"}, {{"x", {"x"}, false, 100}}};
	const struct small_suite b = {"b-bbbb", {"env.B"}, {{"x", {"x"}, false, 100}}};
	struct suite_report_facts facts[2];

	add_suite(*state, &a, &facts[0]);
	add_suite(*state, &b, &facts[1]);
	facts[0].runs[0].run = "gone-aaaa";
	facts[1].runs[0].run = "gone-bbbb";
	facts[1].runs[1].run = "gone-cccc";
	facts[1].runs[2].succeeded = false;
	const struct doc *d = compare(*state, (struct comparison_options){.suites = facts}, "a b");

	assert_note(d, "a-aaaa: 1 run that was removed is left out");
	assert_note(d, "b-bbbb: 2 runs that were removed are left out");
	assert_note(d, "b-bbbb: 1 run that did not succeed is left out");
}

/* The keys stand in another order, and the values too: what counts is which value a key has. */
static void variants_of_suites_are_paired_by_their_parameters(void **state)
{
	const struct small_suite a = {"a-aaaa",
				      {"count", "env.B"},
				      {{"1,x", {"1", "x"}, false, 100},
				       {"2,x", {"2", "x"}, false, 200},
				       {"8,x", {"8", "x"}, false, 800}}};
	const struct small_suite b = {"b-bbbb",
				      {"env.B", "count"},
				      {{"x,2", {"x", "2"}, false, 150},
				       {"x,1", {"x", "1"}, false, 100},
				       {"x,4", {"x", "4"}, false, 400}}};
	const struct doc *d = compare_suites(*state, &a, &b);
	const struct doc *metrics = doc_array(d, "metrics");

	assert_int_equal(metrics->array.n, 2);
	assert_true(str_is(doc_str(metrics->array.v[0], "variant", STR("")), "1,x"));
	assert_true(str_is(doc_str(metrics->array.v[0], "verdict", STR("")), "same"));
	assert_true(str_is(doc_str(metrics->array.v[1], "variant", STR("")), "2,x"));
	assert_true(str_is(doc_str(metrics->array.v[1], "verdict", STR("")), "worse"));
	near(doc_num(metrics->array.v[1], "diff", 0), -50, 0.5);
	/* Holm's correction is over the tests of all pairs. */
	assert_int_equal(doc_int(d, "tests", 0), 2);
	near(doc_num(metrics->array.v[1], "p_holm", 0), 2 * doc_num(metrics->array.v[1], "p", 0),
	     1e-12);
	assert_note(d, "only in a-aaaa: 8,x");
	assert_note(d, "only in b-bbbb: x,4");
	assert_true(doc_bool(d, "fails", false));
}

static void what_is_the_same_in_all_variants_of_a_suite_is_what_suites_differ_in(void **state)
{
	const struct small_suite a = {
		"a-aaaa",
		{"count", "env.OPT"},
		{{"1,sgd", {"1", "sgd"}, false, 100}, {"2,sgd", {"2", "sgd"}, false, 200}}};
	const struct small_suite b = {"b-bbbb",
				      {"count", "env.OPT", "env.NEW"},
				      {{"1,adam", {"1", "adam", "on"}, false, 100},
				       {"2,adam", {"2", "adam", "on"}, false, 200}}};
	const struct doc *d = compare_suites(*state, &a, &b);

	assert_int_equal(doc_array(d, "metrics")->array.n, 2);
	assert_note(d, "parameter 'env.OPT' is sgd in a-aaaa, is adam in b-bbbb");
	assert_note(d, "parameter 'env.NEW' is not set in a-aaaa, is on in b-bbbb");
}

static void experiments_are_paired_by_name(void **state)
{
	const struct small_suite a = {
		"a-aaaa", {"env.B"}, {{"base", {"64"}, true, 100}, {"1", {"1"}, false, 100}}};
	const struct small_suite b = {
		"b-bbbb", {"env.B"}, {{"base", {"32"}, true, 100}, {"64", {"64"}, false, 100}}};
	const struct doc *d = compare_suites(*state, &a, &b);

	assert_int_equal(doc_array(d, "variants")->array.n, 2);
	assert_true(
		str_is(doc_str(doc_array(d, "metrics")->array.v[0], "variant", STR("")), "base"));
	assert_note(d, "experiment 'base': parameter 'env.B' is 64 in a-aaaa, 32 in b-bbbb");
	assert_note(d, "parameter 'env.B' is 1 in a-aaaa, is 64 in b-bbbb");
}

static void suites_without_a_common_variant_are_refused_with_what_differs(void **state)
{
	const struct small_suite a = {
		"a-aaaa", {"count"}, {{"1", {"1"}, false, 100}, {"2", {"2"}, false, 100}}};
	const struct small_suite b = {
		"b-bbbb", {"env.B"}, {{"1", {"1"}, false, 100}, {"2", {"2"}, false, 100}}};
	struct home *h = *state;
	struct suite_report_facts facts[2];
	struct comparison_options o = {.suites = facts, .threshold_pct = 5};
	CLEANUP(buf_release) struct buf out = {0};
	struct err err = {0};

	add_suite(h, &a, &facts[0]);
	add_suite(h, &b, &facts[1]);
	buf_init(&out, 1u << 20);
	assert_fails(
		run_comparison(h, &o, "a b", &out, &err), &err, ERR_INVALID,
		"suite a-aaaa has no variant in common with b-bbbb: parameter 'count' varies in "
		"a-aaaa, is not set in b-bbbb");
}

static void suites_without_metrics_are_compared_by_the_time_that_jobs_ran(void **state)
{
	const struct small_suite a = {"a-aaaa", {NULL}, {{"suite", {NULL}, false, 0}}};
	const struct small_suite b = {"b-bbbb", {NULL}, {{"suite", {NULL}, false, 0}}};
	struct suite_report_facts facts[2];
	struct home *h = *state;

	h->running_ms = 1000;
	add_suite(h, &a, &facts[0]);
	h->running_ms = 3000;
	add_suite(h, &b, &facts[1]);
	const struct doc *d = compare(h, (struct comparison_options){.suites = facts}, "a b");
	const struct doc *m = metric_of(d, SUITE_REPORT_RUNTIME);

	near(doc_num(m, "diff", 0), 2, 1e-9);
	assert_true(str_is(doc_str(m, "better", STR("")), "lower"));
	/* A suite that names its metrics wants no other. */
	facts[0].metrics = (const char *const[]){"speed"};
	facts[0].nmetrics = 1;
	d = compare(h, (struct comparison_options){.suites = facts}, "a b");
	assert_int_equal(doc_array(d, "metrics")->array.n, 0);
}

static void the_answer_is_that_of_the_golden_file(void **state)
{
	struct home *h = *state;
	CLEANUP(buf_release) struct buf out = {0};
	struct comparison_options o = {.threshold_pct = 5};
	struct err err = {0};

	for (int i = 0; i < 6; i++) {
		double wobble = (double)(i * 7 % 5) / 10;
		for (int arm = 0; arm < 3; arm++) {
			static const char *const names[] = {"base", "<new>", "third"};
			int64_t no =
				add_run(h, names[arm], arena_printf(h->a, "%s-%d", names[arm], i),
					VERDICT_SUCCEEDED);
			double speed = (arm == 1 ? 90 : 100) + wobble,
			       score = 1 + (arm == 2 ? 0.001 : 0) + wobble / 1000;
			add_samples(h, no, 0, "speed", &speed, 1);
			if (arm != 2)
				add_samples(h, no, 0, "score", &score, 1);
		}
	}
	buf_init(&out, 1u << 20);
	assert_ok(run_comparison(h, &o, "base <new> third", &out, &err), &err);
	golden_check(golden_path(h->a, "golden/report/compare3.json"), buf_str(&out));
	buf_reset(&out);
	assert_ok(run_comparison(h, &o, "base <new>", &out, &err), &err);
	golden_check(golden_path(h->a, "golden/report/compare2.json"), buf_str(&out));
}

#define WITH_HOME(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_verdict_follows_the_table),
		cmocka_unit_test(the_names_of_figures_are_known),
		WITH_HOME(a_slow_down_in_repeats_is_found),
		WITH_HOME(of_several_arms_the_worst_heads_the_metric),
		WITH_HOME(too_few_runs_are_said_and_never_alarm),
		WITH_HOME(single_runs_are_compared_by_samples_without_a_verdict),
		WITH_HOME(the_figure_of_a_run_is_what_was_asked_for),
		WITH_HOME(the_best_is_the_same_end_for_all_runs),
		WITH_HOME(the_warm_up_does_not_count),
		WITH_HOME(a_long_series_is_thinned),
		WITH_HOME(a_metric_that_one_arm_lacks_is_said),
		WITH_HOME(a_word_means_a_run_or_a_group),
		WITH_HOME(words_that_mean_nothing_are_refused),
		WITH_HOME(more_metrics_than_can_be_compared_are_refused),
		WITH_HOME(the_sides_say_what_they_cost),
		WITH_HOME(a_difference_from_a_negative_baseline_has_its_own_sign),
		WITH_HOME(parameters_that_a_suite_varies_are_no_difference_between_suites),
		WITH_HOME(a_run_that_was_removed_is_not_called_one_that_failed),
		WITH_HOME(variants_of_suites_are_paired_by_their_parameters),
		WITH_HOME(what_is_the_same_in_all_variants_of_a_suite_is_what_suites_differ_in),
		WITH_HOME(experiments_are_paired_by_name),
		WITH_HOME(suites_without_a_common_variant_are_refused_with_what_differs),
		WITH_HOME(suites_without_metrics_are_compared_by_the_time_that_jobs_ran),
		WITH_HOME(the_answer_is_that_of_the_golden_file),
	};

	golden_args(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
