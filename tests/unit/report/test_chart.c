/* Thinning and drawing. */
#include "unit.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/rand.h"
#include "report/chart.h"

static void add(struct chart_line *l, int64_t time_ms, int64_t step, double value)
{
	chart_line_add(l, &(struct chart_point){time_ms, step, value});
}

/* Rule: however long a line is, its highest and its lowest are in the drawing, at their time. */
static void thinning_keeps_the_extremes(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 3);
	for (int round = 0; round < 50; round++) {
		uint64_t count = 1 + rng_next(&rng) % 100000;
		size_t peak = (size_t)(rng_next(&rng) % count),
		       dip = (size_t)(rng_next(&rng) % count);
		struct chart_line l;
		bool high = false, low = false;

		chart_line_init(&l, "x", count, 1 + (size_t)(rng_next(&rng) % 400));
		for (size_t i = 0; i < count; i++)
			add(&l, (int64_t)i, -1,
			    i == peak  ? 1e6
			    : i == dip ? -1e6
				       : (double)(i % 7));
		for (size_t k = 0; k < l.nbuckets; k++) {
			high |= l.buckets[k].high.value == 1e6 &&
				l.buckets[k].high.time_ms == (int64_t)peak;
			low |= l.buckets[k].low.value == -1e6 &&
			       l.buckets[k].low.time_ms == (int64_t)dip;
		}
		assert_true(high);
		assert_true(low || dip == peak);
		chart_line_release(&l);
	}
}

static void thinning_keeps_the_order_of_time(void **state)
{
	struct chart_line l;
	int64_t before = -1;

	(void)state;
	chart_line_init(&l, "x", 1000, 10);
	for (int i = 0; i < 1000; i++)
		add(&l, i, -1, sin(i));
	for (size_t k = 0; k < l.nbuckets; k++) {
		const struct chart_bucket *b = &l.buckets[k];
		const struct chart_point *a = b->low_first ? &b->low : &b->high,
					 *z = b->low_first ? &b->high : &b->low;
		assert_true(b->used);
		assert_true(a->time_ms > before && z->time_ms > a->time_ms);
		before = z->time_ms;
	}
	chart_line_release(&l);
}

static void more_samples_than_expected_go_to_the_last_bucket(void **state)
{
	struct chart_line l;

	(void)state;
	chart_line_init(&l, "x", 0, 5);
	assert_int_equal(l.nbuckets, 1);
	for (int i = 0; i < 10; i++)
		add(&l, i, -1, i);
	assert_true(l.buckets[0].high.value == 9 && l.buckets[0].low.value == 0);
	chart_line_release(&l);
}

/* The steps may be NULL: none. */
static void draw(const double *v, const int *steps, size_t n, struct buf *out)
{
	struct chart_style look = {.title = "\"<loss>\"", .over_steps = steps != NULL};
	struct chart_line l;

	chart_line_init(&l, "<node>", n, 100);
	for (size_t i = 0; i < n; i++)
		add(&l, (int64_t)i * 1000, steps ? steps[i] : -1, v[i]);
	assert_int_equal(l.stepped, steps != NULL);
	buf_init(out, 1u << 20);
	chart_svg(&l, 1, &look, out);
	chart_line_release(&l);
	assert_null(strstr(out->p, "<node>"));
	assert_null(strstr(out->p, "<loss>"));
	/* A coordinate that is no number, or outside of the picture, would break the drawing. */
	assert_null(strstr(out->p, "nan"));
	assert_null(strstr(out->p, "inf"));
	for (const char *p = strstr(out->p, " d=\"M"); p; p = strstr(p + 1, " d=\"M")) {
		double x = strtod(p + 5, NULL);
		assert_true(x >= 0 && x <= 760);
	}
}

static void any_values_can_be_drawn(void **state)
{
	static const double cases[][4] = {
		{1, 1, 1, 1},
		{0, 0, 0, 0},
		{-DBL_MAX, DBL_MAX, 0, 1},
		{DBL_MAX, DBL_MAX, DBL_MAX, DBL_MAX},
		{5e-324, 0, 5e-324, 1e-320},
		{1e15, 1e15 + 1, 1e15 + 2, 1e15},
		{(double)NAN, 1, (double)INFINITY, 2},
		{-3, -2.5, -100, 7},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(buf_release) struct buf out = {0};
		draw(cases[i], NULL, 4, &out);
		assert_non_null(strstr(out.p, "class=\"l s0\""));
	}
}

static void one_sample_is_a_dot_and_none_is_said(void **state)
{
	CLEANUP(buf_release) struct buf one = {0}, none = {0};
	double v[] = {5}, bad[] = {(double)NAN};

	(void)state;
	draw(v, NULL, 1, &one);
	assert_non_null(strstr(one.p, "<path class=\"l lone s0\""));
	assert_non_null(strstr(one.p, "h0\">"));
	draw(bad, NULL, 1, &none);
	assert_non_null(strstr(none.p, "no finite values"));
}

static void assert_has(const struct buf *b, const char *part)
{
	if (!strstr(b->p, part))
		fail_msg("no %s in %s", part, b->p);
}

/* Rule: over steps, the axis counts steps, whole ones only, and a sample without one is left out. */
static void over_steps_the_axis_counts_steps(void **state)
{
	CLEANUP(buf_release) struct buf out = {0}, few = {0};
	double v[] = {4, 3, 9, 2};
	int steps[] = {1000000, 2000000, -1, 3000000}, two[] = {7, 8};

	(void)state;
	draw(v, steps, 4, &out);
	assert_has(&out, "over steps\">");
	assert_has(&out, ">1000000</text>");
	assert_has(&out, ">3000000</text>");
	assert_has(&out, ">step</text>");
	assert_null(strstr(out.p, " s</text>"));
	assert_null(strstr(out.p, ">9</text>"));
	draw(v, two, 2, &few);
	assert_has(&few, ">7</text>");
	assert_null(strstr(few.p, ">7.5</text>"));
}

/* Rule: after a restart from a checkpoint the steps come again; what was drawn for them before is
 * overwritten, so that the line never runs back. */
static void steps_that_come_again_overwrite_the_old_ones(void **state)
{
	CLEANUP(buf_release) struct buf out = {0};
	double v[] = {5, 4, 3, 3.5, 2}, x = 0;
	int steps[] = {0, 10, 20, 10, 30}, points = 0;

	(void)state;
	draw(v, steps, 5, &out);
	for (const char *p = strstr(out.p, "class=\"l s0\" d=\"") + 16; *p != '"'; points++) {
		char *end;
		double next = strtod(p + 1, &end);
		assert_true(next > x);
		x = next;
		strtod(end, &end);
		p = end;
	}
	assert_int_equal(points, 3);
}

static void figures_of_machines_have_units(void **state)
{
	static const struct {
		const char *name;
		double v;
		const char *want;
	} cases[] = {
		{"host.cpu", 42.5, "42.5 %"},
		{"job.cpu", 150, "150 %"},
		{"gpu0.util", 7, "7 %"},
		{"host.memory", 1.5e9, "1.5 GB"},
		{"gpu12.memory", 999, "999 B"},
		{"host.net_rx", 20e6, "20 MB/s"},
		{"host.disk_write", 1000, "1 KB/s"},
		{"host.memory", (double)NAN, "–"},
		{"host.something_new", 3.25, "3.25"},
		{"loss", 0.125, "0.125"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		CLEANUP(buf_release) struct buf out = {0};
		buf_init(&out, 100);
		unit_add(&out, unit_of_machine(cases[i].name), cases[i].v);
		assert_true(str_is(buf_str(&out), cases[i].want));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thinning_keeps_the_extremes),
		cmocka_unit_test(thinning_keeps_the_order_of_time),
		cmocka_unit_test(more_samples_than_expected_go_to_the_last_bucket),
		cmocka_unit_test(any_values_can_be_drawn),
		cmocka_unit_test(one_sample_is_a_dot_and_none_is_said),
		cmocka_unit_test(over_steps_the_axis_counts_steps),
		cmocka_unit_test(steps_that_come_again_overwrite_the_old_ones),
		cmocka_unit_test(figures_of_machines_have_units),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
