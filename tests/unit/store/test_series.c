#include "store_fixture.h"

#include <math.h>

struct home {
	char *dir;
	struct store *st;
	int64_t no;
	struct err err;
};

static int set_up(void **state)
{
	struct home *h = xcalloc(1, sizeof(*h));
	void *dir;

	if (unit_make_dir(&dir) < 0)
		return -1;
	h->dir = dir;
	h->st = fixture_open(h->dir);
	store_begin(h->st);
	h->no = fixture_add(h->st, "a");
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	struct home *h = *state;
	void *dir = h->dir;

	store_close(h->st);
	free(h);
	return unit_remove_dir(&dir);
}

static void reopen(struct home *h)
{
	fixture_commit(h->st);
	store_close(h->st);
	h->st = fixture_open(h->dir);
	store_begin(h->st);
}

struct seen {
	char text[512];
	int stop_after;
	struct home *h;
};

static void note(struct seen *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct seen *s, const char *fmt, ...)
{
	size_t n = strlen(s->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(s->text + n, sizeof(s->text) - n, fmt, ap);
	va_end(ap);
}

static bool go_on(struct seen *s)
{
	return s->stop_after == 0 || --s->stop_after > 0;
}

/* Rule: events are numbered from 1 in each run, without gaps. */

static bool see_event(void *ctx, const struct event_row *row)
{
	struct seen *s = ctx;

	note(s, "%" PRId64 " %" PRId64 " %s %d '%s'; ", row->seq, row->time_ms, row->kind,
	     row->node, row->text);
	return go_on(s);
}

static void assert_events(struct home *h, int64_t after, int limit, int stop_after,
			  const char *text)
{
	struct seen s = {.stop_after = stop_after};

	assert_ok(store_events_each(h->st, h->no, after, limit, see_event, &s, &h->err), &h->err);
	assert_string_equal(s.text, text);
}

static int64_t add_event(struct home *h, int64_t no, const char *kind, const char *text)
{
	int64_t seq;

	assert_ok(store_event_add(h->st, no, 1000, kind, -1, text, &seq, &h->err), &h->err);
	return seq;
}

static void events_are_numbered_in_each_run_alone(void **state)
{
	struct home *h = *state;
	int64_t other = fixture_add(h->st, "b");

	assert_events(h, 0, 0, 0, "");
	assert_int_equal(add_event(h, h->no, "accepted", "x"), 1);
	assert_int_equal(add_event(h, other, "accepted", ""), 1);
	assert_int_equal(add_event(h, h->no, "here", NULL), 2);
	reopen(h);
	assert_int_equal(add_event(h, h->no, "left", "é\n'"), 3);
	assert_int_equal(add_event(h, other, "here", ""), 2);
	assert_events(h, 0, 0, 0,
		      "1 1000 accepted -1 'x'; 2 1000 here -1 ''; 3 1000 left -1 'é\n''; ");
	assert_events(h, 1, 0, 0, "2 1000 here -1 ''; 3 1000 left -1 'é\n''; ");
	assert_events(h, 1, 1, 0, "2 1000 here -1 ''; ");
	assert_events(h, 0, 0, 2, "1 1000 accepted -1 'x'; 2 1000 here -1 ''; ");
	assert_events(h, 3, 0, 0, "");
}

static void a_number_that_was_not_committed_is_given_again(void **state)
{
	struct home *h = *state;

	add_event(h, h->no, "one", "");
	fixture_commit(h->st);
	store_begin(h->st);
	assert_int_equal(add_event(h, h->no, "lost", ""), 2);
	store_close(h->st);
	h->st = fixture_open(h->dir);
	store_begin(h->st);
	assert_int_equal(add_event(h, h->no, "two", ""), 2);
	assert_events(h, 0, 0, 0, "1 1000 one -1 ''; 2 1000 two -1 ''; ");
}

static void an_event_needs_its_run_and_a_kind(void **state)
{
	struct home *h = *state;
	int64_t seq = 55;

	assert_fails(store_event_add(h->st, 99, 1, "k", 0, "", &seq, &h->err), &h->err,
		     ERR_NOT_FOUND, "no such run");
	assert_ok(store_event_add(h->st, h->no, 1, "k", 0, "", NULL, &h->err), &h->err);
	assert_fails(store_event_add(h->st, h->no, 1, NULL, 0, "", &seq, &h->err), &h->err,
		     ERR_INVALID, "add event");
	assert_int_equal(seq, 55);
}

static bool list_within(void *ctx, const struct event_row *row)
{
	struct seen *s = ctx;
	struct err err;

	assert_fails(store_events_each(s->h->st, row->node, 0, 0, see_event, s, &err), &err,
		     ERR_INVALID, "called from within itself");
	/* Anything else may be done, even a commit. */
	assert_int_equal(add_event(s->h, s->h->no, "within", ""), row->seq + 2);
	fixture_commit(s->h->st);
	store_begin(s->h->st);
	return row->seq < 2;
}

static void a_listing_is_not_begun_within_itself(void **state)
{
	struct home *h = *state;
	struct seen s = {.h = h};

	add_event(h, h->no, "a", "");
	add_event(h, h->no, "b", "");
	assert_ok(store_events_each(h->st, h->no, 0, 0, list_within, &s, &h->err), &h->err);
	assert_events(h, 2, 0, 0, "3 1000 within -1 ''; 4 1000 within -1 ''; ");
}

/* Rule: a series is one per run, node and name. */

static bool see_series(void *ctx, const struct series_row *row)
{
	struct seen *s = ctx;

	note(s, "%d %s %" PRIu64 "; ", row->rank, row->name, row->count);
	return go_on(s);
}

static void assert_series(struct home *h, int64_t no, int stop_after, const char *text)
{
	struct seen s = {.stop_after = stop_after};

	assert_ok(store_series_each(h->st, no, see_series, &s, &h->err), &h->err);
	assert_string_equal(s.text, text);
}

static void a_series_is_made_once_and_found_again(void **state)
{
	struct home *h = *state;
	int64_t other = fixture_add(h->st, "b");
	struct series_row a, b, again;

	assert_ok(store_series_open(h->st, h->no, 1, "loss", &a, &h->err), &h->err);
	assert_int_equal(a.count, 0);
	assert_int_equal(a.rank, 1);
	assert_string_equal(a.name, "loss");
	assert_ok(store_series_open(h->st, h->no, 0, "loss", &b, &h->err), &h->err);
	assert_ok(store_series_open(h->st, h->no, 0, "acc", &b, &h->err), &h->err);
	assert_ok(store_series_open(h->st, other, 1, "loss", &b, &h->err), &h->err);
	assert_int_not_equal(a.series, b.series);
	a.count = 3;
	a.first = 1;
	a.last = 0.25;
	a.min = -1e300;
	a.max = 1e300;
	a.mean = 0.1 + 0.2;
	a.m2 = 5e-324;
	a.step = 4000;
	a.total = INT64_MAX;
	assert_ok(store_series_save(h->st, &a, &h->err), &h->err);
	reopen(h);
	const char name[] = "loss";
	assert_ok(store_series_open(h->st, h->no, 1, name, &again, &h->err), &h->err);
	assert_ptr_equal(again.name, name); /* the caller's, not SQLite's */
	assert_int_equal(again.series, a.series);
	assert_int_equal(again.rank, a.rank);
	assert_int_equal(again.count, a.count);
	assert_memory_equal(&again.first, &a.first, 6 * sizeof(double)); /* to the last bit */
	assert_int_equal(again.step, 4000);
	assert_int_equal(again.total, INT64_MAX);
	assert_series(h, h->no, 0, "0 acc 0; 0 loss 0; 1 loss 3; ");
	assert_series(h, h->no, 1, "0 acc 0; ");
	assert_series(h, other, 0, "1 loss 0; ");
}

static void finding_a_series_needs_no_transaction(void **state)
{
	struct home *h = *state;
	struct series_row row;

	assert_ok(store_series_open(h->st, h->no, 0, "loss", &row, &h->err), &h->err);
	fixture_commit(h->st);
	assert_ok(store_series_open(h->st, h->no, 0, "loss", &row, &h->err), &h->err);
	assert_false(fixture_dirty(h->st));
	assert_fails(store_series_open(h->st, h->no, 0, "new", &row, &h->err), &h->err, ERR_INVALID,
		     "outside a transaction");
}

static void a_run_has_a_bounded_number_of_series(void **state)
{
	struct home *h = *state;
	int64_t other = fixture_add(h->st, "b");
	struct series_row row;
	char name[32];

	for (int i = 0; i < STORE_MAX_SERIES; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		assert_ok(store_series_open(h->st, h->no, 0, name, &row, &h->err), &h->err);
	}
	reopen(h);
	row.series = 77;
	assert_fails(store_series_open(h->st, h->no, 0, "more", &row, &h->err), &h->err, ERR_QUOTA,
		     "at most 20000 series: 'more' is not kept");
	assert_int_equal(row.series, 77);
	assert_ok(store_series_open(h->st, h->no, 0, "m9999", &row, &h->err), &h->err);
	assert_ok(store_series_open(h->st, other, 0, "more", &row, &h->err), &h->err);
	assert_fails(store_series_open(h->st, 99, 0, "more", &row, &h->err), &h->err, ERR_NOT_FOUND,
		     "no run 99");
}

/* Rule: samples are kept in the order of arrival, whatever their value. */

static bool see_sample(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	struct seen *s = ctx;

	note(s, "%" PRId64 " %" PRId64 " %.17g; ", wall_ms, step, value);
	return go_on(s);
}

static void assert_samples(struct home *h, int64_t series, int64_t limit, int stop_after,
			   const char *text)
{
	struct seen s = {.stop_after = stop_after};

	assert_ok(store_samples_each(h->st, series, limit, see_sample, &s, &h->err), &h->err);
	assert_string_equal(s.text, text);
}

static void samples_come_back_in_the_order_of_arrival(void **state)
{
	struct home *h = *state;
	struct series_row a, b;

	assert_ok(store_series_open(h->st, h->no, 0, "a", &a, &h->err), &h->err);
	assert_ok(store_series_open(h->st, h->no, 0, "b", &b, &h->err), &h->err);
	assert_ok(store_sample_add(h->st, a.series, 30, 3, 0.1, &h->err), &h->err);
	assert_ok(store_sample_add(h->st, b.series, 20, -1, -5, &h->err), &h->err);
	assert_ok(store_sample_add(h->st, a.series, 10, 1, 1e308, &h->err), &h->err);
	reopen(h);
	assert_ok(store_sample_add(h->st, a.series, 10, INT64_MIN, 5e-324, &h->err), &h->err);
	const char *all =
		"30 3 0.10000000000000001; 10 1 1e+308; 10 -9223372036854775808 4.9406564584124654e-324; ";
	assert_samples(h, a.series, 0, 0, all);
	assert_samples(h, a.series, 10, 0, all);
	assert_samples(h, a.series, 2, 0, "30 3 0.10000000000000001; 10 1 1e+308; ");
	assert_samples(h, a.series, 0, 1, "30 3 0.10000000000000001; ");
	assert_samples(h, b.series, 0, 0, "20 -1 -5; ");
	assert_samples(h, 99, 0, 0, "");
}

static void assert_samples_after(struct home *h, int64_t series, int64_t after, int64_t limit,
				 int stop_after, const char *text)
{
	struct seen s = {.stop_after = stop_after};

	assert_ok(store_samples_after(h->st, series, after, limit, see_sample, &s, &h->err),
		  &h->err);
	assert_string_equal(s.text, text);
}

static void a_series_can_be_read_in_pieces(void **state)
{
	struct home *h = *state;
	struct series_row a;

	assert_ok(store_series_open(h->st, h->no, 0, "a", &a, &h->err), &h->err);
	for (int i = 1; i <= 4; i++)
		assert_ok(store_sample_add(h->st, a.series, i, -1, i, &h->err), &h->err);
	assert_samples_after(h, a.series, 0, 0, 0, "1 -1 1; 2 -1 2; 3 -1 3; 4 -1 4; ");
	assert_samples_after(h, a.series, 0, 2, 0, "1 -1 1; 2 -1 2; ");
	assert_samples_after(h, a.series, 2, 1, 0, "3 -1 3; ");
	assert_samples_after(h, a.series, 2, 0, 1, "3 -1 3; ");
	assert_samples_after(h, a.series, 4, 0, 0, "");
	assert_samples_after(h, 99, 0, 0, 0, "");
}

static void a_sample_that_comes_after_its_run_was_removed_is_refused(void **state)
{
	struct home *h = *state;
	struct series_row a, b;

	assert_ok(store_series_open(h->st, h->no, 0, "a", &a, &h->err), &h->err);
	assert_ok(store_sample_add(h->st, a.series, 1, 1, 1, &h->err), &h->err);
	assert_ok(store_run_ended(h->st, h->no, 5, &h->err), &h->err);
	assert_ok(store_run_remove(h->st, h->no, &h->err), &h->err);
	assert_fails(store_sample_add(h->st, a.series, 1, 1, 1, &h->err), &h->err, ERR_NOT_FOUND,
		     "no series");
	assert_fails(store_sample_add(h->st, 0, 1, 1, 1, &h->err), &h->err, ERR_NOT_FOUND,
		     "no series 0");
	assert_fails(store_sample_add(h->st, -5, 1, 1, 1, &h->err), &h->err, ERR_NOT_FOUND,
		     "no series");
	/* Whoever gets the number next begins with nothing. */
	assert_ok(store_series_open(h->st, fixture_add(h->st, "b"), 0, "b", &b, &h->err), &h->err);
	assert_samples(h, b.series, 0, 0, "");
}

/* More series than are remembered: each goes on with its own numbers. */
static void many_series_at_once_keep_their_order(void **state)
{
	enum { SERIES = 2100 };
	struct home *h = *state;
	struct series_row *rows = xcalloc(SERIES, sizeof(*rows));
	char name[32];

	for (int i = 0; i < SERIES; i++) {
		snprintf(name, sizeof(name), "m%d", i);
		assert_ok(store_series_open(h->st, h->no, 0, name, &rows[i], &h->err), &h->err);
	}
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < SERIES; i++)
			assert_ok(store_sample_add(h->st, rows[i].series, k, i, k, &h->err),
				  &h->err);
	assert_samples(h, rows[5].series, 0, 0, "0 5 0; 1 5 1; 2 5 2; ");
	assert_samples(h, rows[2099].series, 0, 0, "0 2099 0; 1 2099 1; 2 2099 2; ");
	free(rows);
}

static bool see_value(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	double **at = ctx;

	(void)wall_ms, (void)step;
	*(*at)++ = value;
	return true;
}

static void a_value_that_is_no_number_harms_nothing(void **state)
{
	struct home *h = *state;
	struct series_row a, again;
	double values[3], *at = values;

	assert_ok(store_series_open(h->st, h->no, 0, "a", &a, &h->err), &h->err);
	assert_ok(store_sample_add(h->st, a.series, 1, 1, (double)NAN, &h->err), &h->err);
	assert_ok(store_sample_add(h->st, a.series, 1, 1, (double)INFINITY, &h->err), &h->err);
	assert_ok(store_sample_add(h->st, a.series, 1, 1, -0.0, &h->err), &h->err);
	a.mean = (double)NAN;
	a.m2 = (double)-INFINITY;
	assert_ok(store_series_save(h->st, &a, &h->err), &h->err);
	reopen(h);
	assert_ok(store_samples_each(h->st, a.series, 0, see_value, &at, &h->err), &h->err);
	assert_true(isnan(values[0]));
	assert_true(isinf(values[1]) && values[1] > 0);
	assert_true(values[2] == 0);
	assert_ok(store_series_open(h->st, h->no, 0, "a", &again, &h->err), &h->err);
	assert_true(isnan(again.mean));
	assert_true(isinf(again.m2) && again.m2 < 0);
}

struct ends_seen {
	char text[200];
};

static void see_ends(void *ctx, int rank, int attempt, const char *ends)
{
	struct ends_seen *s = ctx;
	size_t n = strlen(s->text);

	snprintf(s->text + n, sizeof(s->text) - n, "%d/%d %s;", rank, attempt, ends);
}

/* Rule: how far a stream was searched is kept for each stream of each node. */

static void scans_are_kept_by_stream(void **state)
{
	struct home *h = *state;
	uint64_t offsets[3] = {9, 9, 9}, bad = 9;

	assert_ok(store_scan_get(h->st, h->no, 0, offsets, 3, &bad, &h->err), &h->err);
	assert_true(offsets[0] == 0 && offsets[1] == 0 && offsets[2] == 0 && bad == 0);
	assert_ok(store_scan_save(h->st, h->no, 0, 0, 100, 1, &h->err), &h->err);
	assert_ok(store_scan_save(h->st, h->no, 0, 2, 300, 2, &h->err), &h->err);
	assert_ok(store_scan_save(h->st, h->no, 0, 512, 4, 0, &h->err), &h->err);
	assert_ok(store_scan_save(h->st, h->no, 1, 1, 7, 0, &h->err), &h->err);
	assert_ok(store_scan_save(h->st, h->no, 0, 0, 5000000000, 3, &h->err), &h->err);
	reopen(h);
	assert_ok(store_scan_get(h->st, h->no, 0, offsets, 3, &bad, &h->err), &h->err);
	assert_true(offsets[0] == 5000000000 && offsets[1] == 0 && offsets[2] == 300);
	assert_int_equal(bad, 5);
	assert_ok(store_scan_get(h->st, h->no, 1, offsets, 3, &bad, &h->err), &h->err);
	assert_true(offsets[0] == 0 && offsets[1] == 7 && offsets[2] == 0 && bad == 0);
}

static void the_ends_of_processes_are_kept_by_node(void **state)
{
	struct home *h = *state;
	struct ends_seen seen = {0};

	assert_ok(store_ends_save(h->st, h->no, 1, 1, "[[0,0]]", &h->err), &h->err);
	assert_ok(store_ends_save(h->st, h->no, 0, 1, "[[7,0]]", &h->err), &h->err);
	assert_ok(store_ends_save(h->st, h->no, 1, 2, "[[-1,9]]", &h->err), &h->err);
	reopen(h);
	assert_ok(store_ends_each(h->st, h->no, see_ends, &seen, &h->err), &h->err);
	assert_string_equal(seen.text, "0/1 [[7,0]];1/2 [[-1,9]];");
	assert_fails(store_ends_save(h->st, 99, 0, 1, "[]", &h->err), &h->err, ERR_NOT_FOUND,
		     "no such run");
}

static void a_scan_needs_its_run_and_a_stream_that_exists(void **state)
{
	struct home *h = *state;

	assert_fails(store_scan_save(h->st, 99, 0, 0, 1, 0, &h->err), &h->err, ERR_NOT_FOUND,
		     "no such run");
	assert_fails(store_scan_save(h->st, h->no, 0, 513, 1, 0, &h->err), &h->err, ERR_INVALID,
		     "save scan");
}

#define on_home(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_home(events_are_numbered_in_each_run_alone),
		on_home(a_number_that_was_not_committed_is_given_again),
		on_home(an_event_needs_its_run_and_a_kind),
		on_home(a_listing_is_not_begun_within_itself),
		on_home(a_series_is_made_once_and_found_again),
		on_home(finding_a_series_needs_no_transaction),
		on_home(a_run_has_a_bounded_number_of_series),
		on_home(samples_come_back_in_the_order_of_arrival),
		on_home(a_series_can_be_read_in_pieces),
		on_home(a_sample_that_comes_after_its_run_was_removed_is_refused),
		on_home(many_series_at_once_keep_their_order),
		on_home(a_value_that_is_no_number_harms_nothing),
		on_home(scans_are_kept_by_stream),
		on_home(a_scan_needs_its_run_and_a_stream_that_exists),
		on_home(the_ends_of_processes_are_kept_by_node),
	};

	return cmocka_run_group_tests_name("store_series", tests, NULL, NULL);
}
