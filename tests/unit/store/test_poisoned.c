/*
 * Every call of the store in every kind of trouble: it fails with what is wrong,
 * and so does every call after it.
 */
#include "store_fixture.h"

#include <sqlite3.h>

#include "faulty_vfs.h"
#include "store/internal.h"

#define RUN 1 /* ended, with some of everything */
#define EVENTS 300

static struct core_run *state_of_run;

static bool any_run(void *ctx, const struct run_row *row)
{
	(void)ctx, (void)row;
	return true;
}

static bool any_event(void *ctx, const struct event_row *row)
{
	(void)ctx, (void)row;
	return true;
}

static bool any_series(void *ctx, const struct series_row *row)
{
	(void)ctx, (void)row;
	return true;
}

static bool any_sample(void *ctx, int64_t wall_ms, int64_t step, double value)
{
	(void)ctx, (void)wall_ms, (void)step, (void)value;
	return true;
}

static int call_add(struct store *st, struct err *err)
{
	struct run_row row = {
		.id = "new", .name = "n", .job_json = "{}", .engine = "e", .strategy = "s"};

	return store_run_add(st, &row, err);
}

static int call_save_run(struct store *st, struct err *err)
{
	return store_run_save(st, RUN, state_of_run, 1, err);
}

static int call_ended(struct store *st, struct err *err)
{
	return store_run_ended(st, RUN, 7, err);
}

static int call_save_node(struct store *st, struct err *err)
{
	return store_node_save(st, RUN, 0, &state_of_run->nodes[0], err);
}

static int call_save_resource(struct store *st, struct err *err)
{
	return store_resource_save(
		st, RUN, 0,
		&(struct plan_resource){.kind = "local.node", .name = "alpha", .node = -1},
		&state_of_run->resources[0], err);
}

static int call_restore(struct store *st, struct err *err)
{
	return store_run_restore(st, RUN, state_of_run, err);
}

static int call_get(struct store *st, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct run_row row;

	return store_run_get(st, RUN, a, &row, err);
}

static int call_find(struct store *st, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	const char **ids;
	int64_t no;
	size_t n;

	return store_run_find(st, STR("firs"), a, &no, &ids, &n, err);
}

static int call_by_request(struct store *st, struct err *err)
{
	int64_t no;

	return store_run_by_request(st, "x", &no, err);
}

static int call_source_used(struct store *st, struct err *err)
{
	bool used;

	return store_source_used(st, "x", RUN, &used, err);
}

static int call_runs(struct store *st, struct err *err)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();

	return store_runs_each(st, false, 0, 0, a, any_run, NULL, err);
}

static int call_count(struct store *st, struct err *err)
{
	int64_t n;

	return store_run_count(st, &n, err);
}

static int call_phases(struct store *st, struct err *err)
{
	int64_t n[RUN_PHASES];

	return store_run_phases(st, n, err);
}

static int call_remove(struct store *st, struct err *err)
{
	return store_run_remove(st, RUN, err);
}

static int call_add_event(struct store *st, struct err *err)
{
	return store_event_add(st, RUN, 1, "k", 0, "x", NULL, err);
}

static int call_events(struct store *st, struct err *err)
{
	return store_events_each(st, RUN, 0, 0, any_event, NULL, err);
}

static int call_open_series(struct store *st, struct err *err)
{
	struct series_row row;

	return store_series_open(st, RUN, 0, "new", &row, err);
}

static int call_save_series(struct store *st, struct err *err)
{
	return store_series_save(st, &(struct series_row){.series = 1}, err);
}

static int call_add_sample(struct store *st, struct err *err)
{
	return store_sample_add(st, 1, 1, 1, 1, err);
}

static int call_series(struct store *st, struct err *err)
{
	return store_series_each(st, RUN, any_series, NULL, err);
}

static int call_samples(struct store *st, struct err *err)
{
	return store_samples_each(st, 1, 0, any_sample, NULL, err);
}

static int call_samples_after(struct store *st, struct err *err)
{
	return store_samples_after(st, 1, 1, 10, any_sample, NULL, err);
}

static int call_save_scan(struct store *st, struct err *err)
{
	return store_scan_save(st, RUN, 0, 0, 1, 0, err);
}

static int call_get_scan(struct store *st, struct err *err)
{
	uint64_t offsets[3], bad;

	return store_scan_get(st, RUN, 0, offsets, 3, &bad, err);
}

static const struct {
	const char *name;
	int (*fn)(struct store *st, struct err *err);
	bool writes;
} calls[] = {
	{"add", call_add, true},
	{"save run", call_save_run, true},
	{"ended", call_ended, true},
	{"save node", call_save_node, true},
	{"save resource", call_save_resource, true},
	{"restore", call_restore, false},
	{"get", call_get, false},
	{"find", call_find, false},
	{"by request", call_by_request, false},
	{"source used", call_source_used, false},
	{"runs", call_runs, false},
	{"count", call_count, false},
	{"phases", call_phases, false},
	{"remove", call_remove, true},
	{"add event", call_add_event, true},
	{"events", call_events, false},
	{"open series", call_open_series, true},
	{"save series", call_save_series, true},
	{"add sample", call_add_sample, true},
	{"series", call_series, false},
	{"samples", call_samples, false},
	{"samples after", call_samples_after, false},
	{"save scan", call_save_scan, true},
	{"get scan", call_get_scan, false},
};

/* A home whose tables have pages of their own. */
static void fill_home(const char *home)
{
	struct store *st = fixture_open(home);
	struct series_row series;
	struct err err;
	char text[400];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	store_begin(st);
	assert_int_equal(fixture_add(st, "first"), RUN);
	for (int i = 0; i < EVENTS; i++)
		assert_ok(store_event_add(st, RUN, 1, "k", 0, text, NULL, &err), &err);
	assert_ok(call_save_node(st, &err), &err);
	assert_ok(call_save_resource(st, &err), &err);
	assert_ok(store_series_open(st, RUN, 0, "loss", &series, &err), &err);
	assert_int_equal(series.series, 1);
	for (int i = 0; i < EVENTS; i++)
		assert_ok(call_add_sample(st, &err), &err);
	assert_ok(call_save_scan(st, &err), &err);
	assert_ok(call_ended(st, &err), &err);
	fixture_commit(st);
	store_close(st);
}

static int set_up(void **state)
{
	static bool installed;

	if (!installed)
		faulty_install();
	installed = true;
	faulty_arm(FAULT_IO_ONCE, 0);
	if (unit_make_dir(state) < 0)
		return -1;
	state_of_run = fixture_run();
	fill_home(*state);
	return 0;
}

static int tear_down(void **state)
{
	fixture_run_free(state_of_run);
	return unit_remove_dir(state);
}

/* Every call tells the same from now on. */
static void assert_poisoned(struct store *st, const struct err *why)
{
	struct err err;

	for (size_t i = 0; i < COUNT(calls); i++) {
		store_begin(st);
		assert_fails(calls[i].fn(st, &err), &err, why->kind, why->msg);
		assert_int_equal(calls[i].fn(st, NULL), -1);
	}
	assert_fails(store_commit(st, &err), &err, why->kind, why->msg);
	assert_false(fixture_dirty(st));
}

/* Rule: whatever SQLite cannot do poisons the store. */

static void a_page_that_cannot_be_read_poisons(void **state)
{
	int hits = 0;

	for (size_t i = 0; i < COUNT(calls); i++) {
		bool hit = true, any = false;

		for (uint64_t n = 1; hit; n++) {
			struct store *st = fixture_open(*state);
			struct err err = {0};

			store_begin(st);
			faulty_arm(FAULT_IO_ONCE, n);
			int rc = calls[i].fn(st, &err);
			hit = faulty_disarm();
			if (rc != (hit ? -1 : 0))
				fail_msg("%s: %d, %s", calls[i].name, rc, err.msg);
			if (hit) {
				assert_int_equal(err.kind, ERR_IO);
				assert_poisoned(st, &err);
			}
			any = any || hit;
			store_close(st);
		}
		hits += any;
	}
	/* A freshly opened store has hardly a page in memory. */
	assert_true(hits > 15);
}

/* Allows all but one kind of action, seen for the nth time. */
struct guard {
	int action, left;
	const char *what;
};

static int guard(void *ctx, int action, const char *a, const char *b, const char *db,
		 const char *by)
{
	struct guard *g = ctx;

	(void)b, (void)db, (void)by;
	if (g->action && (action != g->action || !a || strcmp(a, g->what) != 0))
		return SQLITE_OK;
	return --g->left < 0 ? SQLITE_DENY : SQLITE_OK;
}

static void a_statement_that_cannot_be_prepared_poisons(void **state)
{
	for (size_t i = 0; i < COUNT(calls); i++)
		for (int allowed = 0;; allowed++) {
			struct store *st = fixture_open(*state);
			struct guard g = {.left = allowed};
			struct err err = {0};

			store_begin(st);
			sqlite3_set_authorizer(st->db, guard, &g);
			int rc = calls[i].fn(st, &err);
			bool denied = g.left < 0;
			if (rc != (denied ? -1 : 0))
				fail_msg("%s: %d, %s", calls[i].name, rc, err.msg);
			if (denied)
				assert_poisoned(st, &err);
			store_close(st);
			if (!denied)
				break;
		}
}

static void a_transaction_that_cannot_begin_poisons(void **state)
{
	for (size_t i = 0; i < COUNT(calls); i++) {
		struct store *st = fixture_open(*state);
		struct guard g = {.action = SQLITE_TRANSACTION, .what = "BEGIN"};
		struct err err = {0};

		store_begin(st);
		sqlite3_set_authorizer(st->db, guard, &g);
		assert_int_equal(calls[i].fn(st, &err), calls[i].writes ? -1 : 0);
		if (calls[i].writes)
			assert_poisoned(st, &err);
		store_close(st);
	}
}

static void a_transaction_that_cannot_end_poisons(void **state)
{
	static const struct guard guards[] = {{SQLITE_TRANSACTION, 0, "COMMIT"},
					      {SQLITE_UPDATE, 0, "install"}};

	for (size_t i = 0; i < COUNT(guards); i++) {
		struct store *st = fixture_open(*state);
		struct guard g = guards[i];
		struct err err = {0};

		store_begin(st);
		assert_ok(store_run_save(st, RUN, state_of_run, 1000, &err), &err);
		sqlite3_set_authorizer(st->db, guard, &g);
		assert_int_equal(store_commit(st, &err), -1);
		assert_poisoned(st, &err);
		store_close(st);
		st = fixture_open(*state);
		assert_int_equal(store_last_ms(st), 0);
		store_close(st);
	}
}

/* Rule: writes happen inside a transaction, and only there. */

static void every_write_needs_a_transaction_and_no_read_does(void **state)
{
	struct store *st = fixture_open(*state);
	struct err err;

	for (size_t i = 0; i < COUNT(calls); i++)
		if (calls[i].writes)
			assert_fails(calls[i].fn(st, &err), &err, ERR_INVALID,
				     "outside a transaction");
		else
			assert_ok(calls[i].fn(st, &err), &err);
	assert_false(fixture_dirty(st));
	store_close(st);
}

#define on_home(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_home(a_page_that_cannot_be_read_poisons),
		on_home(a_statement_that_cannot_be_prepared_poisons),
		on_home(a_transaction_that_cannot_begin_poisons),
		on_home(a_transaction_that_cannot_end_poisons),
		on_home(every_write_needs_a_transaction_and_no_read_does),
	};

	if (access("/dev/shm", W_OK) == 0)
		setenv("TMPDIR", "/dev/shm", 0);
	return cmocka_run_group_tests_name("store_calls", tests, NULL, NULL);
}
