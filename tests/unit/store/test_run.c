#include "store_fixture.h"

#include <sqlite3.h>

#include "store/internal.h"

struct home {
	char *dir;
	struct store *st;
	struct arena *a;
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
	h->a = arena_new();
	store_begin(h->st);
	*state = h;
	return 0;
}

static int tear_down(void **state)
{
	struct home *h = *state;
	void *dir = h->dir;

	store_close(h->st);
	arena_free(h->a);
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

static struct run_row full_row(void)
{
	return (struct run_row){.id = "ctr-abcd",
				.name = "ctr",
				.request_id = "r-1",
				.job_json = "{\"name\":\"ctr\"}",
				.base_dir = "/home/u",
				.source_sha256 = "ab12",
				.data = "[{\"tar\":true,\"sha256\":[\"cd34\"]}]",
				.client_env = "{\"A\":\"é\"}",
				.secret = "5ec7e7",
				.engine = "local",
				.strategy = "pserver",
				.facts = "{\"first_address\":\"127.1.0.1\"}",
				.plan = "{\"version\":1}",
				.nodes = 5,
				.seed = 0xfedcba9876543210,
				.created_ms = 1700000000123,
				.phase = RUN_ACCEPTED};
}

static void same_text(const char *a, const char *b)
{
	if (!a || !b)
		assert_ptr_equal(a, b);
	else
		assert_string_equal(a, b);
}

static void assert_same_row(const struct run_row *a, const struct run_row *b)
{
	assert_int_equal(a->no, b->no);
	same_text(a->id, b->id);
	same_text(a->name, b->name);
	same_text(a->request_id, b->request_id);
	same_text(a->job_json, b->job_json);
	same_text(a->base_dir, b->base_dir);
	same_text(a->source_sha256, b->source_sha256);
	same_text(a->data, b->data);
	same_text(a->client_env, b->client_env);
	same_text(a->secret, b->secret);
	same_text(a->engine, b->engine);
	same_text(a->strategy, b->strategy);
	same_text(a->facts, b->facts);
	same_text(a->plan, b->plan);
	assert_int_equal(a->nodes, b->nodes);
	assert_true(a->seed == b->seed);
	assert_int_equal(a->created_ms, b->created_ms);
	assert_int_equal(a->phase, b->phase);
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->ended_ms, b->ended_ms);
}

/* Rule: a run is kept as it was submitted. */

static void a_run_is_read_back_whole_after_a_restart(void **state)
{
	struct home *h = *state;
	struct run_row row = full_row(), got;

	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	assert_true(row.no > 0);
	reopen(h);
	assert_ok(store_run_get(h->st, row.no, h->a, &got, &h->err), &h->err);
	assert_same_row(&row, &got);
}

static void what_was_not_given_stays_not_given(void **state)
{
	struct home *h = *state;
	struct run_row row = full_row(), got;

	row.request_id = row.base_dir = row.source_sha256 = row.data = row.client_env = row.secret =
		NULL;
	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	assert_ok(store_run_get(h->st, row.no, h->a, &got, &h->err), &h->err);
	assert_same_row(&row, &got);
}

static void add_series(struct home *h, int64_t no, int rank, const char *name, int64_t step,
		       int64_t total)
{
	struct series_row row;

	assert_ok(store_series_open(h->st, no, rank, name, &row, &h->err), &h->err);
	row.step = step;
	row.total = total;
	assert_ok(store_series_save(h->st, &row, &h->err), &h->err);
}

static void an_ended_run_keeps_its_cause_and_how_far_it_was(void **state)
{
	struct home *h = *state;
	struct core_run *r = fixture_run();
	int64_t no = fixture_add(h->st, "a"), other = fixture_add(h->st, "b");
	struct run_row got;

	snprintf(r->cause.text, sizeof(r->cause.text), "alpha exited with code 3");
	assert_ok(store_run_save(h->st, no, r, 1, &h->err), &h->err);
	/* Of each node the series furthest on; one that does not say how far it goes does not count. */
	add_series(h, no, 0, "loss", 40, 100);
	add_series(h, no, 0, "speed", 60, 90);
	add_series(h, no, 0, "cpu", 0, 0);
	add_series(h, no, 1, "loss", 5, 100);
	add_series(h, other, 0, "loss", 7, 8);
	assert_ok(store_run_get(h->st, no, h->a, &got, &h->err), &h->err);
	assert_int_equal(got.total, 0);
	assert_ok(store_run_ended(h->st, no, 99, &h->err), &h->err);
	reopen(h);
	assert_ok(store_run_get(h->st, no, h->a, &got, &h->err), &h->err);
	assert_string_equal(got.cause, "alpha exited with code 3");
	assert_int_equal(got.ended_ms, 99);
	assert_int_equal(got.step, 5); /* the rank that is least far */
	assert_int_equal(got.total, 100);
	/* The other has not ended, and one without series has no progress when it does. */
	assert_ok(store_run_get(h->st, other, h->a, &got, &h->err), &h->err);
	assert_string_equal(got.cause, "");
	assert_int_equal(got.total, 0);
	no = fixture_add(h->st, "c");
	assert_ok(store_run_ended(h->st, no, 99, &h->err), &h->err);
	assert_ok(store_run_get(h->st, no, h->a, &got, &h->err), &h->err);
	assert_int_equal(got.step, 0);
	assert_int_equal(got.total, 0);
	fixture_run_free(r);
}

static void it_is_known_whether_others_use_a_source(void **state)
{
	struct home *h = *state;
	struct run_row row = full_row();
	bool used = true;

	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	fixture_add(h->st, "without");
	assert_ok(store_source_used(h->st, "ab12", row.no, &used, &h->err), &h->err);
	assert_false(used);
	assert_ok(store_source_used(h->st, "ab12", row.no + 1, &used, &h->err), &h->err);
	assert_true(used);
	assert_ok(store_source_used(h->st, "ab1", row.no + 1, &used, &h->err), &h->err);
	assert_false(used);
}

static void a_job_of_many_pages_is_kept(void **state)
{
	struct home *h = *state;
	struct run_row row = full_row(), got;
	char *json = xmalloc(300001);

	memset(json, 'j', 300000);
	json[300000] = '\0';
	row.job_json = json;
	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	reopen(h);
	assert_ok(store_run_get(h->st, row.no, h->a, &got, &h->err), &h->err);
	assert_string_equal(got.job_json, json);
	free(json);
}

static void an_id_exists_once(void **state)
{
	struct home *h = *state;
	struct run_row row = full_row();

	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	row.no = 77;
	row.request_id = "r-2";
	assert_fails(store_run_add(h->st, &row, &h->err), &h->err, ERR_CONFLICT,
		     "run 'ctr-abcd' exists already");
	assert_int_equal(row.no, 77);
	/* The answer harmed nothing. */
	row.id = "ctr-efgh";
	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	reopen(h);
	assert_int_equal(fixture_count(h->st, false), 2);
}

static void a_request_is_served_once(void **state)
{
	struct home *h = *state;
	struct run_row row = full_row();
	int64_t first, no = 5;

	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	first = row.no;
	row.id = "ctr-efgh";
	assert_fails(store_run_add(h->st, &row, &h->err), &h->err, ERR_CONFLICT,
		     "request 'r-1' was made already");
	assert_ok(store_run_by_request(h->st, "r-1", &no, &h->err), &h->err);
	assert_int_equal(no, first);
	assert_ok(store_run_by_request(h->st, "r-9", &no, &h->err), &h->err);
	assert_int_equal(no, 0);
}

static void runs_without_a_request_do_not_clash(void **state)
{
	struct home *h = *state;
	struct run_row row = full_row();

	row.request_id = "";
	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	row.id = "b";
	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	row.id = "c";
	row.request_id = NULL;
	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
}

static void a_missing_run_is_not_found(void **state)
{
	struct home *h = *state;
	struct run_row got;

	assert_fails(store_run_get(h->st, 4, h->a, &got, &h->err), &h->err, ERR_NOT_FOUND,
		     "no run 4");
	assert_fails(store_run_ended(h->st, 4, 1, &h->err), &h->err, ERR_NOT_FOUND, "no run 4");
	assert_false(fixture_dirty(h->st));
}

/* Rule: a run is found by its id, or by any prefix that fits one alone. */

static int find(struct home *h, const char *prefix, int64_t *no, const char ***ids, size_t *n)
{
	return store_run_find(h->st, str_from(prefix), h->a, no, ids, n, &h->err);
}

static void a_unique_prefix_finds_its_run(void **state)
{
	struct home *h = *state;
	int64_t ab = fixture_add(h->st, "job-ab"), no = 0;
	const char **ids = NULL;
	size_t n = 0;

	fixture_add(h->st, "job-b");
	fixture_add(h->st, "zeta-a");
	assert_ok(find(h, "job-a", &no, &ids, &n), &h->err);
	assert_int_equal(no, ab);
	assert_ok(find(h, "job-ab", &no, &ids, &n), &h->err);
	assert_int_equal(no, ab);
	assert_ok(find(h, "z", &no, &ids, &n), &h->err);
	assert_int_not_equal(no, ab);
	assert_null(ids);
}

static void an_exact_id_wins_over_longer_ones(void **state)
{
	struct home *h = *state;
	int64_t shorter = fixture_add(h->st, "job"), no = 0;
	const char **ids;
	size_t n;

	fixture_add(h->st, "job-b");
	assert_ok(find(h, "job", &no, &ids, &n), &h->err);
	assert_int_equal(no, shorter);
}

static void a_prefix_of_several_names_them(void **state)
{
	struct home *h = *state;
	int64_t no = 3;
	const char **ids = NULL;
	size_t n = 0;

	fixture_add(h->st, "job-b");
	fixture_add(h->st, "job-a");
	assert_fails(find(h, "job", &no, &ids, &n), &h->err, ERR_CONFLICT,
		     "'job' matches several runs: job-a, job-b");
	assert_int_equal(n, 2);
	assert_string_equal(ids[0], "job-a");
	assert_string_equal(ids[1], "job-b");
	assert_int_equal(no, 3);
	for (int i = 0; i < 20; i++) {
		char id[16];
		snprintf(id, sizeof(id), "job-x%d", i);
		fixture_add(h->st, id);
	}
	assert_fails(find(h, "job-", &no, &ids, &n), &h->err, ERR_CONFLICT, "job-a, job-b, ...");
	assert_int_equal(n, 10);
	assert_string_equal(ids[9], "job-x15");
}

static void no_prefix_finds_what_is_not_there(void **state)
{
	static const char *const prefixes[] = {
		"jpb",	  "job-ab-", "%",	  "_",	  "*",
		"job-a?", "J",	     "job-a\xff", "\xff", "'; DROP TABLE run; --"};
	struct home *h = *state;
	const char **ids;
	int64_t no;
	size_t n;

	fixture_add(h->st, "job-ab");
	for (size_t i = 0; i < COUNT(prefixes); i++)
		assert_fails(find(h, prefixes[i], &no, &ids, &n), &h->err, ERR_NOT_FOUND,
			     "no run '");
	assert_fails(store_run_find(h->st, STR("job-a\0b"), h->a, &no, &ids, &n, &h->err), &h->err,
		     ERR_NOT_FOUND, "no run");
	assert_fails(find(h, "", &no, &ids, &n), &h->err, ERR_INVALID, "no name");
	assert_fails(find(h, NULL, &no, &ids, &n), &h->err, ERR_INVALID, "no name");
}

/* Rule: runs are listed newest first, a page at a time. */

struct listing {
	char text[256];
	int stop_after;
	struct store *st;
};

static bool list_id(void *ctx, const struct run_row *row)
{
	struct listing *l = ctx;
	size_t n = strlen(l->text);

	assert_null(row->job_json);
	snprintf(l->text + n, sizeof(l->text) - n, "%s ", row->id);
	return l->stop_after == 0 || --l->stop_after > 0;
}

static void assert_listed(struct home *h, bool active, int64_t before, int limit, const char *ids)
{
	struct listing l = {.text = ""};

	assert_ok(store_runs_each(h->st, active, before, limit, h->a, list_id, &l, &h->err),
		  &h->err);
	assert_string_equal(l.text, ids);
}

static void runs_are_listed_newest_first(void **state)
{
	struct home *h = *state;
	struct listing l = {.stop_after = 2};
	int64_t no[4];
	const char *const ids[] = {"a", "b", "c", "d"};

	assert_listed(h, false, 0, 0, "");
	for (int i = 0; i < 4; i++)
		no[i] = fixture_add(h->st, ids[i]);
	assert_ok(store_run_ended(h->st, no[1], 5, &h->err), &h->err);
	assert_ok(store_run_ended(h->st, no[3], 5, &h->err), &h->err);
	assert_listed(h, false, 0, 0, "d c b a ");
	assert_listed(h, true, 0, 0, "c a ");
	assert_listed(h, false, 0, 2, "d c ");
	assert_listed(h, false, no[2], 2, "b a ");
	assert_listed(h, true, no[2], 5, "a ");
	assert_ok(store_runs_each(h->st, false, 0, 0, h->a, list_id, &l, &h->err), &h->err);
	assert_string_equal(l.text, "d c ");
	assert_int_equal(fixture_count(h->st, false), 4);
	assert_int_equal(fixture_count(h->st, true), 2);
}

static bool keep_row(void *ctx, const struct run_row *row)
{
	*(struct run_row *)ctx = *row;
	return true;
}

static void a_listed_run_is_whole_but_for_its_job(void **state)
{
	struct home *h = *state;
	struct run_row row = full_row(), got = {0};

	assert_ok(store_run_add(h->st, &row, &h->err), &h->err);
	assert_ok(store_runs_each(h->st, true, 0, 0, h->a, keep_row, &got, &h->err), &h->err);
	row.job_json = row.facts = row.plan = row.data = NULL;
	assert_same_row(&row, &got);
}

static bool end_it(void *ctx, const struct run_row *row)
{
	struct home *h = ctx;

	assert_ok(store_run_ended(h->st, row->no, 9, &h->err), &h->err);
	assert_listed(h, true, 0, 1, row->no > 1 ? "a " : "");
	return true;
}

static void a_listing_may_use_the_store_and_list_again(void **state)
{
	struct home *h = *state;

	fixture_add(h->st, "a");
	fixture_add(h->st, "b");
	assert_ok(store_runs_each(h->st, true, 0, 0, h->a, end_it, h, &h->err), &h->err);
	assert_listed(h, true, 0, 0, "");
}

/* Rule: a run that has ended can be removed, and leaves nothing. */

static int64_t rows_in_all_tables(struct store *st)
{
	sqlite3_stmt *stmt;

	assert_int_equal(
		sqlite3_prepare_v2(
			st->db,
			"SELECT (SELECT count(*) FROM run) + (SELECT count(*) FROM job) + (SELECT "
			"count(*) FROM node) + (SELECT count(*) FROM resource) + (SELECT count(*) "
			"FROM event) + (SELECT count(*) FROM series) + (SELECT count(*) FROM "
			"sample) + (SELECT count(*) FROM scan)",
			-1, &stmt, NULL),
		SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	int64_t n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

/* One row in each of the eight tables. */
static int64_t add_everything(struct home *h, const char *id)
{
	struct core_run *r = fixture_run();
	int64_t no = fixture_add(h->st, id);
	struct series_row series;

	assert_ok(store_node_save(h->st, no, 0, &r->nodes[0], &h->err), &h->err);
	assert_ok(store_resource_save(h->st, no, 0,
				      &(struct plan_resource){.kind = "k", .name = "n", .node = -1},
				      &r->resources[0], &h->err),
		  &h->err);
	assert_ok(store_event_add(h->st, no, 1, "here", 0, "x", NULL, &h->err), &h->err);
	assert_ok(store_series_open(h->st, no, 0, "loss", &series, &h->err), &h->err);
	assert_ok(store_sample_add(h->st, series.series, 1, 1, 1.0, &h->err), &h->err);
	assert_ok(store_scan_save(h->st, no, 0, 0, 1, 1, &h->err), &h->err);
	fixture_run_free(r);
	return no;
}

static void a_removed_run_leaves_nothing_and_takes_nothing_else(void **state)
{
	struct home *h = *state;
	int64_t gone = add_everything(h, "gone"), other = add_everything(h, "other");
	struct run_row got;

	assert_int_equal(rows_in_all_tables(h->st), 16);
	assert_ok(store_run_ended(h->st, gone, 5, &h->err), &h->err);
	assert_ok(store_run_remove(h->st, gone, &h->err), &h->err);
	assert_int_equal(rows_in_all_tables(h->st), 8);
	reopen(h);
	assert_fails(store_run_get(h->st, gone, h->a, &got, &h->err), &h->err, ERR_NOT_FOUND,
		     "no run");
	assert_ok(store_run_get(h->st, other, h->a, &got, &h->err), &h->err);
	/* Its id is free again, its number is not. */
	assert_true(fixture_add(h->st, "gone") > other);
}

static void a_run_that_goes_on_is_not_removed(void **state)
{
	struct home *h = *state;
	int64_t no = add_everything(h, "a");

	assert_fails(store_run_remove(h->st, no, &h->err), &h->err, ERR_CONFLICT, "has not ended");
	assert_fails(store_run_remove(h->st, no + 1, &h->err), &h->err, ERR_NOT_FOUND, "no run");
	assert_int_equal(rows_in_all_tables(h->st), 8);
}

#define on_home(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_home(a_run_is_read_back_whole_after_a_restart),
		on_home(what_was_not_given_stays_not_given),
		on_home(it_is_known_whether_others_use_a_source),
		on_home(a_job_of_many_pages_is_kept),
		on_home(an_ended_run_keeps_its_cause_and_how_far_it_was),
		on_home(an_id_exists_once),
		on_home(a_request_is_served_once),
		on_home(runs_without_a_request_do_not_clash),
		on_home(a_missing_run_is_not_found),
		on_home(a_unique_prefix_finds_its_run),
		on_home(an_exact_id_wins_over_longer_ones),
		on_home(a_prefix_of_several_names_them),
		on_home(no_prefix_finds_what_is_not_there),
		on_home(runs_are_listed_newest_first),
		on_home(a_listed_run_is_whole_but_for_its_job),
		on_home(a_listing_may_use_the_store_and_list_again),
		on_home(a_removed_run_leaves_nothing_and_takes_nothing_else),
		on_home(a_run_that_goes_on_is_not_removed),
	};

	return cmocka_run_group_tests_name("store_run", tests, NULL, NULL);
}
