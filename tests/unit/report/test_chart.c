/* Thinning and drawing. */
#include "unit.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/rand.h"
#include "report/chart.h"

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
			chart_line_add(&l, (int64_t)i,
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
		chart_line_add(&l, i, sin(i));
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
		chart_line_add(&l, i, i);
	assert_true(l.buckets[0].high.value == 9 && l.buckets[0].low.value == 0);
	chart_line_release(&l);
}

static void draw(const double *v, size_t n, struct buf *out)
{
	struct chart_line l;

	chart_line_init(&l, "<node>", n, 100);
	for (size_t i = 0; i < n; i++)
		chart_line_add(&l, (int64_t)i * 1000, v[i]);
	buf_init(out, 1u << 20);
	chart_svg(&l, 1, "\"<loss>\"", 0, out);
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
		draw(cases[i], 4, &out);
		assert_non_null(strstr(out.p, "class=\"l s0\""));
	}
}

static void one_sample_is_a_dot_and_none_is_said(void **state)
{
	CLEANUP(buf_release) struct buf one = {0}, none = {0};
	double v[] = {5}, bad[] = {(double)NAN};

	(void)state;
	draw(v, 1, &one);
	assert_non_null(strstr(one.p, "h0\">"));
	draw(bad, 1, &none);
	assert_non_null(strstr(none.p, "no finite values"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thinning_keeps_the_extremes),
		cmocka_unit_test(thinning_keeps_the_order_of_time),
		cmocka_unit_test(more_samples_than_expected_go_to_the_last_bucket),
		cmocka_unit_test(any_values_can_be_drawn),
		cmocka_unit_test(one_sample_is_a_dot_and_none_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
