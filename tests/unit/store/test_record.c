/* The rows of one run, taken to another home. */
#include "store_fixture.h"

struct homes {
	char *dir, *there_dir;
	struct store *st, *there;
	struct arena *a;
	struct err err;
	char path[512];
};

static int set_up(void **state)
{
	struct homes *h = xcalloc(1, sizeof(*h));
	void *dir;

	if (unit_make_dir(&dir) < 0)
		return -1;
	h->dir = dir;
	h->there_dir = xasprintf("%s/there", h->dir);
	h->st = fixture_open(h->dir);
	h->there = fixture_open(h->there_dir);
	h->a = arena_new();
	snprintf(h->path, sizeof(h->path), "%s/record.db", h->dir);
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	struct homes *h = *state;
	void *dir = h->dir;

	store_close(h->st);
	store_close(h->there);
	arena_free(h->a);
	free(h->there_dir);
	free(h);
	return unit_remove_dir(&dir);
}

/* A run with an event and a series; its number. */
static int64_t add_run(struct homes *h, struct store *st, const char *id, const char *event,
		       double sample)
{
	struct core_run *r = fixture_run();
	struct series_row series;

	store_begin(st);
	int64_t no = fixture_add(st, id);

	for (int i = 0; i < FIXTURE_NODES; i++)
		assert_ok(store_node_save(st, no, i, &r->nodes[i], &h->err), &h->err);
	assert_ok(store_event_add(st, no, 1, event, -1, "text", NULL, &h->err), &h->err);
	assert_ok(store_series_open(st, no, 0, "loss", &series, &h->err), &h->err);
	assert_ok(store_sample_add(st, series.series, 5, 1, sample, &h->err), &h->err);
	assert_ok(store_sample_add(st, series.series, 6, 2, sample / 2, &h->err), &h->err);
	assert_ok(store_run_ended(st, no, 99, &h->err), &h->err);
	fixture_commit(st);
	fixture_run_free(r);
	return no;
}

static bool take_kind(void *ctx, const struct event_row *row)
{
	buf_printf(ctx, "%s;", row->kind);
	return true;
}

static bool take_value(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	buf_printf(ctx, "%lld %lld %g;", (long long)wall_ms, (long long)step, value);
	return true;
}

static bool take_series(void *ctx, const struct series_row *row)
{
	*(int64_t *)ctx = row->series;
	return true;
}

/* Events and samples of a run. */
static const char *told(struct homes *h, struct store *st, int64_t no)
{
	struct buf out;
	int64_t series = 0;

	buf_init(&out, 4096);
	assert_ok(store_events_each(st, no, 0, 0, take_kind, &out, &h->err), &h->err);
	assert_ok(store_series_each(st, no, take_series, &series, &h->err), &h->err);
	assert_ok(store_samples_each(st, series, 0, take_value, &out, &h->err), &h->err);
	const char *text = arena_strdup(h->a, out.p);

	buf_release(&out);
	return text;
}

static void a_run_is_the_same_in_another_home(void **state)
{
	struct homes *h = *state;
	int64_t no = add_run(h, h->st, "mine", "begun", 4), got;
	struct run_row was, is;

	/* The other home has runs whose keys are the same. */
	int64_t old = add_run(h, h->there, "theirs", "other", 9);

	assert_ok(store_record_write(h->st, no, h->path, &h->err), &h->err);
	assert_ok(store_record_read(h->there, h->path, "mine", &got, &h->err), &h->err);
	assert_true(got != old);
	assert_string_equal(told(h, h->there, got), "begun;5 1 4;6 2 2;");
	assert_string_equal(told(h, h->there, old), "other;5 1 9;6 2 4.5;");
	assert_ok(store_run_get(h->st, no, h->a, &was, &h->err), &h->err);
	assert_ok(store_run_get(h->there, got, h->a, &is, &h->err), &h->err);
	assert_string_equal(is.job_json, was.job_json);
	assert_int_equal(is.ended_ms, was.ended_ms);
	/* What comes later has keys of its own. */
	int64_t next = add_run(h, h->there, "next", "later", 1);

	assert_true(next > got);
	assert_string_equal(told(h, h->there, next), "later;5 1 1;6 2 0.5;");
	assert_string_equal(told(h, h->there, got), "begun;5 1 4;6 2 2;");
}

static void only_its_own_rows_and_no_secret_are_in_the_record(void **state)
{
	struct homes *h = *state;
	int64_t no, got;
	struct run_row row;

	add_run(h, h->st, "other", "other", 1);
	no = add_run(h, h->st, "mine", "begun", 4);
	assert_ok(store_record_write(h->st, no, h->path, &h->err), &h->err);
	assert_ok(store_record_read(h->there, h->path, "mine", &got, &h->err), &h->err);
	assert_int_equal(fixture_count(h->there, false), 1);
	assert_ok(store_run_get(h->there, got, h->a, &row, &h->err), &h->err);
	assert_string_equal(row.secret, "");
}

static void a_run_is_taken_in_once(void **state)
{
	struct homes *h = *state;
	int64_t no = add_run(h, h->st, "mine", "begun", 4), got;

	assert_ok(store_record_write(h->st, no, h->path, &h->err), &h->err);
	assert_ok(store_record_read(h->there, h->path, "mine", &got, &h->err), &h->err);
	assert_ok(store_record_write(h->st, no, h->path, &h->err), &h->err);
	assert_fails(store_record_read(h->there, h->path, "mine", &got, &h->err), &h->err,
		     ERR_CONFLICT, "is in this home already");
	assert_int_equal(fixture_count(h->there, false), 1);
	/* The store is not poisoned. */
	add_run(h, h->there, "next", "later", 1);
}

static void the_record_takes_the_place_of_a_run_that_has_ended(void **state)
{
	struct homes *h = *state;
	int64_t no = add_run(h, h->st, "mine", "there", 4);
	int64_t first = add_run(h, h->there, "first", "other", 9);
	int64_t here = add_run(h, h->there, "mine", "here", 7);
	int64_t later = add_run(h, h->there, "later", "other", 9);

	assert_ok(store_record_write(h->st, no, h->path, &h->err), &h->err);
	assert_ok(store_record_replace(h->there, h->path, "mine", here, &h->err), &h->err);
	assert_string_equal(told(h, h->there, here), "here;there;5 1 4;6 2 2;");
	assert_string_equal(told(h, h->there, first), "other;5 1 9;6 2 4.5;");
	assert_string_equal(told(h, h->there, later), "other;5 1 9;6 2 4.5;");
	assert_int_equal(fixture_count(h->there, false), 3);
	/* Later events have later numbers. */
	store_begin(h->there);
	assert_ok(store_event_add(h->there, here, 9, "end", -1, "", NULL, &h->err), &h->err);
	fixture_commit(h->there);
	assert_string_equal(told(h, h->there, here), "here;there;end;5 1 4;6 2 2;");
}

static const char *labels(struct homes *h, struct store *st, int64_t no)
{
	const char *tags = NULL, *notes = NULL;

	assert_ok(store_labels_get(st, no, h->a, &tags, &notes, &h->err), &h->err);
	return arena_printf(h->a, "%s %s", tags, notes);
}

static void put_labels(struct homes *h, struct store *st, int64_t no, const char *tag,
		       int64_t time_ms, const char *note)
{
	store_begin(st);
	assert_ok(store_tag_set(st, no, str_from(tag), true, &h->err), &h->err);
	assert_ok(store_tag_set(st, no, STR("both"), true, &h->err), &h->err);
	assert_ok(store_note_add(st, no, time_ms, str_from(note), &h->err), &h->err);
	fixture_commit(st);
}

static void tags_and_notes_go_with_the_record(void **state)
{
	struct homes *h = *state;
	int64_t no = add_run(h, h->st, "mine", "there", 4), got;

	add_run(h, h->there, "first", "other", 9);
	put_labels(h, h->st, no, "there", 5, "n1");
	assert_ok(store_record_write(h->st, no, h->path, &h->err), &h->err);
	assert_ok(store_record_read(h->there, h->path, "mine", &got, &h->err), &h->err);
	assert_true(got != no);
	assert_string_equal(labels(h, h->there, got),
			    "[\"both\",\"there\"] [{\"time_ms\":5,\"text\":\"n1\"}]");
	/* They end with their run. */
	store_begin(h->there);
	assert_ok(store_run_remove(h->there, got, &h->err), &h->err);
	fixture_commit(h->there);
	assert_string_equal(labels(h, h->there, got), "[] []");
}

static void tags_and_notes_of_both_homes_are_kept_when_the_record_takes_a_place(void **state)
{
	struct homes *h = *state;
	int64_t no = add_run(h, h->st, "mine", "there", 4);
	int64_t here = add_run(h, h->there, "mine", "here", 7);

	put_labels(h, h->st, no, "there", 5, "n2");
	put_labels(h, h->there, here, "here", 3, "n1");
	assert_ok(store_record_write(h->st, no, h->path, &h->err), &h->err);
	assert_ok(store_record_replace(h->there, h->path, "mine", here, &h->err), &h->err);
	assert_string_equal(labels(h, h->there, here),
			    "[\"both\",\"here\",\"there\"] [{\"time_ms\":3,\"text\":\"n1\"},"
			    "{\"time_ms\":5,\"text\":\"n2\"}]");
}

static void the_record_does_not_take_the_place_of_another_run(void **state)
{
	struct homes *h = *state;
	int64_t no = add_run(h, h->st, "mine", "there", 4);
	int64_t other = add_run(h, h->there, "other", "here", 7);

	store_begin(h->there);
	int64_t active = fixture_add(h->there, "mine");

	fixture_commit(h->there);
	assert_ok(store_record_write(h->st, no, h->path, &h->err), &h->err);
	assert_fails(store_record_replace(h->there, h->path, "mine", other, &h->err), &h->err,
		     ERR_CONFLICT, "has not ended in this home");
	assert_fails(store_record_replace(h->there, h->path, "mine", active, &h->err), &h->err,
		     ERR_CONFLICT, "has not ended in this home");
	assert_string_equal(told(h, h->there, other), "here;5 1 7;6 2 3.5;");
}

static void another_file_is_refused(void **state)
{
	struct homes *h = *state;
	int64_t no = add_run(h, h->st, "mine", "begun", 4), got;

	assert_ok(store_record_write(h->st, no, h->path, &h->err), &h->err);
	assert_fails(store_record_read(h->there, h->path, "yours", &got, &h->err), &h->err,
		     ERR_INVALID, "is not the record of the ended run 'yours'");
	assert_ok(file_write(h->path, STR("no database"), 0600, &h->err), &h->err);
	assert_fails(store_record_read(h->there, h->path, "mine", &got, &h->err), &h->err,
		     ERR_UNAVAILABLE, "it is not a database");
	assert_int_equal(fixture_count(h->there, false), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_run_is_the_same_in_another_home, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(only_its_own_rows_and_no_secret_are_in_the_record,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_run_is_taken_in_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_record_takes_the_place_of_a_run_that_has_ended,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_record_does_not_take_the_place_of_another_run,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(tags_and_notes_go_with_the_record, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			tags_and_notes_of_both_homes_are_kept_when_the_record_takes_a_place, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(another_file_is_refused, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
