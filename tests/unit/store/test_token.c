/* Version 2: tokens, and one order of the events of all runs. */
#include "store_fixture.h"

#include <sqlite3.h>

#include "base/hex.h"
#include "store/internal.h"

static void alter(const char *db_path, const char *sql)
{
	sqlite3 *db;
	char *why = NULL;

	assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s", why);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static struct token_row token(const char *id, uint8_t first)
{
	struct token_row row = {
		.id = id, .name = "for a test", .scope = 2, .created_ms = 10, .expires_ms = 20};

	memset(row.hash, first, sizeof(row.hash));
	return row;
}

static bool put_token(void *ctx, const struct token_row *row)
{
	char hash[2 * STORE_TOKEN_HASH + 1];

	hex_encode(row->hash, sizeof(row->hash), hash);
	buf_printf(ctx, "%s %.4s %s %d %" PRId64 " %" PRId64 " %" PRId64 "\n", row->id, hash,
		   row->name, row->scope, row->created_ms, row->expires_ms, row->used_ms);
	return true;
}

static void expect_tokens(struct store *st, const char *want)
{
	struct err err;
	struct buf text;

	buf_init(&text, 4096);
	assert_ok(store_tokens_each(st, put_token, &text, &err), &err);
	assert_string_equal(text.p ? text.p : "", want);
	buf_release(&text);
}

/* Rule: a token is kept until it is removed. */

static void tokens_are_kept_marked_and_removed(void **state)
{
	struct store *st = fixture_open(*state);
	struct token_row a = token("aa", 0xab), b = token("bb", 0x12);
	struct err err;

	b.created_ms = 5;
	b.name = NULL;
	store_begin(st);
	assert_ok(store_token_add(st, &a, &err), &err);
	assert_ok(store_token_add(st, &b, &err), &err);
	assert_ok(store_token_used(st, "aa", 99, &err), &err);
	assert_ok(store_token_used(st, "none", 99, &err), &err);
	fixture_commit(st);
	store_close(st);
	st = fixture_open(*state);
	expect_tokens(st, "bb 1212  2 5 20 0\naa abab for a test 2 10 20 99\n");
	store_begin(st);
	assert_ok(store_token_remove(st, "bb", &err), &err);
	assert_ok(store_token_remove(st, "none", &err), &err);
	fixture_commit(st);
	expect_tokens(st, "aa abab for a test 2 10 20 99\n");
	store_close(st);
}

static bool stop_at_once(void *ctx, const struct token_row *row)
{
	(void)row;
	return !++*(int *)ctx;
}

static void a_listing_stops_when_it_is_told(void **state)
{
	struct store *st = fixture_open(*state);
	struct token_row a = token("aa", 1), b = token("bb", 2);
	struct err err;
	int calls = 0;

	store_begin(st);
	assert_ok(store_token_add(st, &a, &err), &err);
	assert_ok(store_token_add(st, &b, &err), &err);
	assert_ok(store_tokens_each(st, stop_at_once, &calls, &err), &err);
	assert_int_equal(calls, 1);
	store_close(st);
}

static void what_cannot_be_is_refused_and_harms_nothing(void **state)
{
	struct store *st = fixture_open(*state);
	struct token_row a = token("aa", 1), same_id = token("aa", 2), same_hash = token("bb", 1),
			 odd = token("cc", 3);
	struct err err;

	assert_fails(store_token_add(st, &a, &err), &err, ERR_INVALID, "outside a transaction");
	assert_fails(store_token_used(st, "aa", 1, &err), &err, ERR_INVALID,
		     "outside a transaction");
	assert_fails(store_token_remove(st, "aa", &err), &err, ERR_INVALID,
		     "outside a transaction");
	store_begin(st);
	assert_ok(store_token_add(st, &a, &err), &err);
	assert_fails(store_token_add(st, &same_id, &err), &err, ERR_CONFLICT, "add token");
	assert_fails(store_token_add(st, &same_hash, &err), &err, ERR_CONFLICT, "add token");
	odd.scope = 0;
	assert_fails(store_token_add(st, &odd, &err), &err, ERR_INVALID, "scope 0");
	odd.scope = 5;
	assert_fails(store_token_add(st, &odd, &err), &err, ERR_INVALID, "scope 5");
	fixture_commit(st);
	expect_tokens(st, "aa 0101 for a test 2 10 20 0\n");
	store_close(st);
}

static void a_token_that_was_changed_behind_our_back_is_damage(void **state)
{
	struct store *st = fixture_open(*state);
	struct token_row a = token("aa", 1);
	struct err err;
	struct buf text;

	store_begin(st);
	assert_ok(store_token_add(st, &a, &err), &err);
	fixture_commit(st);
	store_close(st);
	alter(unit_path(state, "regatta.db"), "UPDATE token SET hash = 'xy'");
	st = fixture_open(*state);
	buf_init(&text, 4096);
	assert_fails(store_tokens_each(st, put_token, &text, &err), &err, ERR_UNAVAILABLE,
		     "damaged");
	buf_release(&text);
	store_close(st);
}

/* Rule: the events of all runs have one order that only grows. */

static bool put_event(void *ctx, int64_t n, int64_t no, const struct event_row *row)
{
	struct buf *out = ctx;

	buf_printf(out, "%" PRId64 ":%" PRId64 ".%" PRId64 "%s ", n, no, row->seq, row->kind);
	return !strstr(out->p, "stop");
}

static void expect_events(struct store *st, int64_t after, int limit, const char *want)
{
	struct err err;
	struct buf text;

	buf_init(&text, 4096);
	assert_ok(store_all_events_each(st, after, limit, put_event, &text, &err), &err);
	assert_string_equal(text.p ? text.p : "", want);
	buf_release(&text);
}

static void add_event(struct store *st, int64_t no, const char *kind)
{
	struct err err;

	assert_ok(store_event_add(st, no, 100, kind, -1, NULL, NULL, &err), &err);
}

static void events_of_all_runs_are_read_in_the_order_they_came(void **state)
{
	struct store *st = fixture_open(*state);

	assert_int_equal(store_last_event(st), 0);
	store_begin(st);
	int64_t a = fixture_add(st, "a"), b = fixture_add(st, "b");
	add_event(st, b, "x");
	add_event(st, a, "y");
	add_event(st, b, "z");
	add_event(st, b, "stop");
	add_event(st, a, "w");
	fixture_commit(st);
	assert_int_equal(store_last_event(st), 5);
	expect_events(st, 0, 3, "1:2.1x 2:1.1y 3:2.2z ");
	expect_events(st, 1, 0, "2:1.1y 3:2.2z 4:2.3stop ");
	expect_events(st, 4, 0, "5:1.2w ");
	expect_events(st, 5, 0, "");
	store_close(st);
	st = fixture_open(*state);
	assert_int_equal(store_last_event(st), 5);
	store_close(st);
}

static void numbers_of_removed_events_are_not_given_again(void **state)
{
	struct store *st = fixture_open(*state);
	struct err err;

	store_begin(st);
	int64_t a = fixture_add(st, "a"), b = fixture_add(st, "b");
	add_event(st, a, "x");
	add_event(st, b, "y");
	assert_ok(store_run_ended(st, b, 9, &err), &err);
	assert_ok(store_run_remove(st, b, &err), &err);
	fixture_commit(st);
	store_close(st);
	st = fixture_open(*state);
	assert_int_equal(store_last_event(st), 2);
	store_begin(st);
	add_event(st, a, "z");
	fixture_commit(st);
	expect_events(st, 0, 0, "1:1.1x 3:1.2z ");
	store_close(st);
}

static void runs_are_counted_by_phase(void **state)
{
	struct store *st = fixture_open(*state);
	struct core_run *r = fixture_run();
	int64_t counts[RUN_PHASES], all;
	struct err err;

	assert_ok(store_run_count(st, &all, &err), &err);
	assert_int_equal(all, 0);
	store_begin(st);
	fixture_add(st, "a");
	int64_t b = fixture_add(st, "b"), c = fixture_add(st, "c");
	r->phase = RUN_FAILED;
	assert_ok(store_run_save(st, b, r, 1, &err), &err);
	assert_ok(store_run_save(st, c, r, 1, &err), &err);
	fixture_commit(st);
	assert_ok(store_run_phases(st, counts, &err), &err);
	assert_int_equal(counts[RUN_ACCEPTED], 1);
	assert_int_equal(counts[RUN_FAILED], 2);
	assert_int_equal(counts[RUN_RUNNING], 0);
	assert_ok(store_run_count(st, &all, &err), &err);
	assert_int_equal(all, 3);
	fixture_run_free(r);
	store_close(st);
}

/* Rule: a database of version 1 is brought to version 2 with all it has. */

static void version_1_gets_tokens_and_an_order_of_its_events(void **state)
{
	const char *path = unit_path(state, "regatta.db");
	struct token_row a = token("aa", 1);
	struct err err;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_ok(store_migrate(db, path, 0, store_migrations, 1, &err), &err);
	sqlite3_close(db);
	alter(path,
	      "INSERT INTO run (id, name, engine, strategy, nodes, local_base, seed, created_ms, "
	      "ended_ms, phase, verdict) VALUES ('a', 'a', 'local', 'single', 1, 1, 1, 1, 0, 0, 0), "
	      "('b', 'b', 'local', 'single', 1, 1, 1, 1, 0, 0, 0);INSERT INTO event VALUES (1, 1, 50, "
	      "'x', -1, ''), (1, 2, 70, 'y', -1, ''), (2, 1, 60, 'z', 0, 'text'), (2, 2, 70, 'w', -1, "
	      "'');");
	struct store *st = fixture_open(*state);
	expect_events(st, 0, 0, "1:1.1x 2:2.1z 3:1.2y 4:2.2w ");
	assert_int_equal(store_last_event(st), 4);
	store_begin(st);
	add_event(st, 1, "new");
	assert_ok(store_token_add(st, &a, &err), &err);
	fixture_commit(st);
	expect_events(st, 4, 0, "5:1.3new ");
	store_close(st);
	st = fixture_open(*state); /* and it opens again without a step */
	expect_tokens(st, "aa 0101 for a test 2 10 20 0\n");
	store_close(st);
}

int main(void)
{
#define on_dir(t) cmocka_unit_test_setup_teardown(t, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		on_dir(tokens_are_kept_marked_and_removed),
		on_dir(a_listing_stops_when_it_is_told),
		on_dir(what_cannot_be_is_refused_and_harms_nothing),
		on_dir(a_token_that_was_changed_behind_our_back_is_damage),
		on_dir(events_of_all_runs_are_read_in_the_order_they_came),
		on_dir(numbers_of_removed_events_are_not_given_again),
		on_dir(runs_are_counted_by_phase),
		on_dir(version_1_gets_tokens_and_an_order_of_its_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
