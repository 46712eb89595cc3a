#include "store_fixture.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "store/internal.h"

static mode_t mode_of(const char *path)
{
	struct stat sb;

	assert_int_equal(lstat(path, &sb), 0);
	return sb.st_mode & 07777;
}

static void close_home(struct store *st)
{
	assert_null(store_close(st));
}

/* SQL on the database of a home that nobody has open. */
static void alter(const char *db_path, const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(db_path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void spoil(const char *path, struct str content)
{
	assert_int_equal(file_write_atomic(path, content, 0600, false, NULL), 0);
}

static struct buf content_of(const char *path)
{
	struct buf b;

	buf_init(&b, 1 << 24);
	assert_int_equal(file_read(path, &b, NULL), 0);
	return b;
}

/* Rule: a home is made private and complete. */

static void a_fresh_home_has_its_parts_and_is_private(void **state)
{
	const char *home = unit_path(state, "a/b");
	struct store *st = fixture_open(home);

	assert_string_equal(fixture_home(st), home);
	assert_int_equal(mode_of(home), 0700);
	assert_int_equal(mode_of(unit_path(state, "a/b/runs")), 0700);
	assert_int_equal(mode_of(unit_path(state, "a/b/blobs")), 0700);
	assert_int_equal(mode_of(unit_path(state, "a/b/regatta.db")), 0600);
	assert_int_equal(mode_of(unit_path(state, "a/b/regatta.db-wal")), 0600);
	assert_int_equal(mode_of(unit_path(state, "a/b/lock")), 0600);
	close_home(st);
}

static void a_closed_home_is_one_file_without_a_log(void **state)
{
	struct store *st = fixture_open(*state);

	close_home(st);
	assert_false(file_exists(unit_path(state, "regatta.db-wal")));
	assert_null(store_close(NULL));
}

static void a_relative_home_is_made_absolute(void **state)
{
	char was[4096];

	assert_non_null(getcwd(was, sizeof(was)));
	assert_int_equal(chdir(*state), 0);
	struct store *st = fixture_open("./h");
	assert_string_equal(fixture_home(st), unit_path(state, "h"));
	assert_int_equal(chdir(was), 0);
	close_home(st);
}

static void the_install_is_16_hex_digits_and_stays(void **state)
{
	struct store *st = fixture_open(*state);
	char first[17];

	assert_int_equal(strspn(store_install(st), "0123456789abcdef"), 16);
	memcpy(first, store_install(st), sizeof(first));
	close_home(st);
	st = fixture_open(*state);
	assert_string_equal(store_install(st), first);
	close_home(st);
	st = fixture_open(unit_path(state, "other"));
	assert_string_not_equal(store_install(st), first);
	close_home(st);
}

/* Rule: a home may take on the install of another one only before it has a run. */
static void a_home_without_runs_may_act_for_another_install(void **state)
{
	struct store *st = fixture_open(*state);
	struct err err = {0};

	assert_int_equal(store_set_install(st, "00112233445566aa", &err), 0);
	close_home(st);
	st = fixture_open(*state);
	assert_string_equal(store_install(st), "00112233445566aa");
	store_begin(st);
	fixture_add(st, "a-run");
	fixture_commit(st);
	assert_int_equal(store_set_install(st, "00112233445566aa", &err), 0);
	assert_int_equal(store_set_install(st, "ff112233445566aa", &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_string_equal(store_install(st), "00112233445566aa");
	close_home(st);
}

static void the_clock_survives_and_never_goes_back(void **state)
{
	struct store *st = fixture_open(*state);
	struct core_run *r = fixture_run();
	struct err err;

	assert_int_equal(store_last_ms(st), 0);
	store_begin(st);
	int64_t no = fixture_add(st, "a");
	assert_ok(store_run_save(st, no, r, 5000, &err), &err);
	r->nodes[0].since_ms = 7000;
	assert_ok(store_node_save(st, no, 0, &r->nodes[0], &err), &err);
	r->resources[0].since_ms = 6000;
	assert_ok(store_resource_save(st, no, 0,
				      &(struct plan_resource){.kind = "k", .name = "n", .node = -1},
				      &r->resources[0], &err),
		  &err);
	assert_int_equal(store_last_ms(st), 7000);
	fixture_commit(st);
	store_begin(st);
	assert_ok(store_run_ended(st, no, 99, &err), &err);
	assert_ok(store_run_remove(st, no, &err), &err);
	fixture_commit(st);
	close_home(st);
	st = fixture_open(*state);
	assert_int_equal(store_last_ms(st), 7000);
	close_home(st);
	fixture_run_free(r);
}

static void a_home_that_cannot_be_made_is_refused(void **state)
{
	struct store *st;
	struct err err;

	assert_fails(store_open("", &st, &err), &err, ERR_INVALID, "REGATTA_HOME");
	spoil(unit_path(state, "file"), STR("x"));
	assert_fails(store_open(unit_path(state, "file"), &st, &err), &err, ERR_INVALID, "file");
	assert_fails(store_open(unit_path(state, "file/x"), &st, &err), &err, ERR_INVALID, "file");
	spoil(unit_path(state, "runs"), STR("x"));
	assert_fails(store_open(*state, &st, &err), &err, ERR_INVALID, "runs");
}

static void a_home_that_everybody_may_write_is_refused(void **state)
{
	const char *home = unit_path(state, "open");
	struct store *st;
	struct err err;

	assert_int_equal(mkdir(home, 0700), 0);
	assert_int_equal(chmod(home, 0777), 0);
	assert_fails(store_open(home, &st, &err), &err, ERR_DENIED, "chmod 700");
}

/* Rule: one master a home. */

static void a_second_opener_is_told_who_has_it(void **state)
{
	struct store *st = fixture_open(*state), *second = (void *)1;
	struct err err;
	char text[64];

	snprintf(text, sizeof(text), "a master (pid %d) is already running on", (int)getpid());
	assert_fails(store_open(*state, &second, &err), &err, ERR_CONFLICT, text);
	assert_ptr_equal(second, (void *)1);
	assert_non_null(strstr(err.msg, *state));
	assert_non_null(strstr(err.msg, "'regatta master --stop' stops it"));
	close_home(st);
	close_home(fixture_open(*state));
}

static void a_holder_that_has_not_said_its_pid_yet_is_still_a_holder(void **state)
{
	struct store *st;
	struct err err;
	int fd = open(unit_path(state, "lock"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_fails(store_open(*state, &st, &err), &err, ERR_CONFLICT,
		     "a master is already running");
	close(fd);
}

static void the_pid_in_the_lock_is_that_of_the_last_holder(void **state)
{
	char text[32];

	spoil(unit_path(state, "lock"), STR("12345678901234\nleft behind"));
	struct store *st = fixture_open(*state);
	struct buf b = content_of(unit_path(state, "lock"));
	snprintf(text, sizeof(text), "%d\n", (int)getpid());
	assert_string_equal(b.p, text);
	buf_release(&b);
	close_home(st);
}

static void a_lock_that_is_not_a_file_is_refused(void **state)
{
	struct store *st;
	struct err err;

	assert_int_equal(mkdir(unit_path(state, "lock"), 0700), 0);
	assert_fails(store_open(*state, &st, &err), &err, ERR_INVALID, "lock");
	assert_int_equal(rmdir(unit_path(state, "lock")), 0);
	assert_int_equal(symlink("elsewhere", unit_path(state, "lock")), 0);
	assert_fails(store_open(*state, &st, &err), &err, ERR_INVALID, "lock");
	assert_false(file_exists(unit_path(state, "elsewhere")));
}

/* Rule: a database that is not ours, or that we do not understand, is left as it is. */

static void refused_and_unchanged(void **state, enum err_kind kind, const char *text)
{
	const char *path = unit_path(state, "regatta.db");
	struct buf before = content_of(path);
	struct store *st = (void *)1;
	struct err err;

	assert_fails(store_open(*state, &st, &err), &err, kind, text);
	assert_non_null(strstr(err.msg, "regatta.db"));
	assert_ptr_equal(st, (void *)1);
	struct buf after = content_of(path);
	assert_true(str_eq(buf_str(&before), buf_str(&after)));
	buf_release(&before);
	buf_release(&after);
}

static void a_newer_version_is_refused(void **state)
{
	char sql[64], text[160];

	close_home(fixture_open(*state));
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", STORE_VERSION + 1);
	alter(unit_path(state, "regatta.db"), sql);
	snprintf(text, sizeof(text),
		 "is of version %d, this regatta knows up to %d: use a newer regatta or another "
		 "REGATTA_HOME",
		 STORE_VERSION + 1, STORE_VERSION);
	refused_and_unchanged(state, ERR_UNAVAILABLE, text);
	/* Nothing was lost: with its version back it opens. */
	snprintf(sql, sizeof(sql), "PRAGMA user_version = %d", STORE_VERSION);
	alter(unit_path(state, "regatta.db"), sql);
	close_home(fixture_open(*state));
}

static void a_version_below_zero_is_damage(void **state)
{
	close_home(fixture_open(*state));
	alter(unit_path(state, "regatta.db"), "PRAGMA user_version = -1");
	refused_and_unchanged(state, ERR_UNAVAILABLE, "damaged");
}

static void a_database_of_another_program_is_refused(void **state)
{
	alter(unit_path(state, "regatta.db"), "PRAGMA application_id = 7; CREATE TABLE t (x)");
	refused_and_unchanged(state, ERR_UNAVAILABLE, "belongs to another program");
}

static void a_database_that_says_nothing_but_has_tables_is_refused(void **state)
{
	alter(unit_path(state, "regatta.db"), "CREATE TABLE run (x)");
	refused_and_unchanged(state, ERR_UNAVAILABLE, "belongs to another program");
}

static void a_file_that_is_no_database_is_refused(void **state)
{
	char junk[5000];

	memset(junk, 'x', sizeof(junk));
	spoil(unit_path(state, "regatta.db"), (struct str){junk, sizeof(junk)});
	refused_and_unchanged(state, ERR_UNAVAILABLE, "not a database: move it away");
}

static void a_damaged_database_is_refused(void **state)
{
	close_home(fixture_open(*state));
	/* The first page stays, so that it looks like ours; the schema's pages are noise. */
	struct buf b = content_of(unit_path(state, "regatta.db"));
	assert_true(b.n > 8192);
	memset(b.p + 100, 0xa5, b.n - 100);
	spoil(unit_path(state, "regatta.db"), buf_str(&b));
	buf_release(&b);
	refused_and_unchanged(state, ERR_UNAVAILABLE, "damaged: restore a copy");
}

static void an_empty_file_is_a_fresh_database(void **state)
{
	spoil(unit_path(state, "regatta.db"), STR(""));
	close_home(fixture_open(*state));
}

static void the_log_of_a_database_that_was_taken_away_is_not_played_into_a_new_one(void **state)
{
	struct store *st = fixture_open(*state);

	store_begin(st);
	fixture_add(st, "a");
	fixture_commit(st);
	struct buf log = content_of(unit_path(state, "regatta.db-wal"));
	assert_true(log.n > 4096);
	close_home(st);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			assert_int_equal(unlink(unit_path(state, "regatta.db")), 0);
		else
			spoil(unit_path(state, "regatta.db"), STR(""));
		spoil(unit_path(state, "regatta.db-wal"), buf_str(&log));
		st = fixture_open(*state);
		assert_int_equal(fixture_count(st, false), 0);
		close_home(st);
	}
	buf_release(&log);
}

static void what_a_crash_left_beside_the_database_is_no_hindrance(void **state)
{
	spoil(unit_path(state, "regatta.db.new"), STR("half a database"));
	spoil(unit_path(state, "regatta.db.new-wal"), STR("half a log"));
	close_home(fixture_open(*state));
	assert_false(file_exists(unit_path(state, "regatta.db.new")));
	assert_false(file_exists(unit_path(state, "regatta.db.new-wal")));
}

static void a_place_that_cannot_be_cleared_is_told(void **state)
{
	struct store *st;
	struct err err;

	assert_int_equal(mkdir(unit_path(state, "regatta.db.new"), 0700), 0);
	assert_fails(store_open(*state, &st, &err), &err, ERR_INVALID, "regatta.db.new");
	assert_int_equal(rmdir(unit_path(state, "regatta.db.new")), 0);
	assert_int_equal(mkdir(unit_path(state, "regatta.db-wal"), 0700), 0);
	assert_fails(store_open(*state, &st, &err), &err, ERR_INVALID, "regatta.db-wal");
	assert_false(file_exists(unit_path(state, "regatta.db")));
}

static void a_database_without_its_first_row_is_refused(void **state)
{
	close_home(fixture_open(*state));
	alter(unit_path(state, "regatta.db"), "DELETE FROM install");
	refused_and_unchanged(state, ERR_UNAVAILABLE, "damaged");
}

static void a_database_without_a_table_is_refused_when_it_is_needed(void **state)
{
	struct err err, again;
	uint64_t offsets[3], bad;

	close_home(fixture_open(*state));
	alter(unit_path(state, "regatta.db"), "DROP TABLE scan");
	struct store *st = fixture_open(*state);
	assert_fails(store_scan_get(st, 1, 0, offsets, 3, &bad, &err), &err, ERR_IO,
		     "no such table: scan");
	assert_fails(store_commit(st, &again), &again, ERR_IO, err.msg);
	close_home(st);
	alter(unit_path(state, "regatta.db"), "DROP TABLE install");
	assert_fails(store_open(*state, &st, &err), &err, ERR_IO, "no such table: install");
}

static void a_thing_in_the_place_of_the_database_is_refused(void **state)
{
	const char *path = unit_path(state, "regatta.db");
	struct store *st;
	struct err err;

	assert_int_equal(mkdir(path, 0700), 0);
	assert_fails(store_open(*state, &st, &err), &err, ERR_UNAVAILABLE, "not a regular file");
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_fails(store_open(*state, &st, &err), &err, ERR_UNAVAILABLE, "not a regular file");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("elsewhere.db", path), 0);
	assert_fails(store_open(*state, &st, &err), &err, ERR_UNAVAILABLE, "not a regular file");
	assert_false(file_exists(unit_path(state, "elsewhere.db")));
}

static void a_database_that_another_program_holds_is_refused(void **state)
{
	struct store *st;
	struct err err;
	sqlite3 *db;

	close_home(fixture_open(*state));
	assert_int_equal(sqlite3_open(unit_path(state, "regatta.db"), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
	assert_fails(store_open(*state, &st, &err), &err, ERR_CONFLICT,
		     "another program has it open");
	sqlite3_close(db);
	close_home(fixture_open(*state));
}

static void nobody_else_can_write_while_it_is_open(void **state)
{
	struct store *st = fixture_open(*state);
	sqlite3 *db;

	assert_int_equal(sqlite3_open(unit_path(state, "regatta.db"), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "DELETE FROM run", NULL, NULL, NULL), SQLITE_BUSY);
	sqlite3_close(db);
	close_home(st);
}

static void every_result_code_says_what_to_do(void **state)
{
	static const struct {
		int rc;
		enum err_kind kind;
		const char *text;
	} cases[] = {
		{SQLITE_FULL, ERR_CAPACITY, "disk is full"},
		{SQLITE_NOMEM, ERR_CAPACITY, "out of memory"},
		{SQLITE_IOERR_NOMEM, ERR_IO, "what"},
		{SQLITE_CORRUPT_INDEX, ERR_UNAVAILABLE, "damaged"},
		{SQLITE_NOTADB, ERR_UNAVAILABLE, "not a database"},
		{SQLITE_BUSY_RECOVERY, ERR_CONFLICT, "another program"},
		{SQLITE_READONLY_DBMOVED, ERR_DENIED, "owner and mode"},
		{SQLITE_PERM, ERR_DENIED, "owner and mode"},
		{SQLITE_CONSTRAINT_CHECK, ERR_INVALID, "(275)"},
		{SQLITE_MISUSE, ERR_IO, "(21)"},
	};
	struct err err;
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	for (size_t i = 0; i < COUNT(cases); i++)
		assert_fails(store_sqlite_error(db, "p.db", cases[i].rc, "what", &err), &err,
			     cases[i].kind, cases[i].text);
	sqlite3_close(db);
}

/* Rule: an older version is brought up to date, whole or not at all. */

static const struct migration three_steps[] = {
	{"CREATE TABLE a (x)"},
	{"CREATE TABLE b (x); INSERT INTO b SELECT count(*) FROM a"},
	{"CREATE TABLE c (x)"},
};

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	int64_t n = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return n;
}

static void only_the_missing_steps_run(void **state)
{
	struct err err;
	sqlite3 *db;
	int version;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_ok(store_identify(db, "p", 3, &version, &err), &err);
	assert_int_equal(version, 0);
	assert_ok(store_migrate(db, "p", 0, three_steps, 1, &err), &err);
	assert_ok(store_identify(db, "p", 3, &version, &err), &err);
	assert_int_equal(version, 1);
	assert_int_equal(sqlite3_exec(db, "INSERT INTO a VALUES (1), (2)", NULL, NULL, NULL),
			 SQLITE_OK);
	assert_ok(store_migrate(db, "p", 1, three_steps, 3, &err), &err);
	assert_int_equal(number(db, "PRAGMA user_version"), 3);
	assert_int_equal(number(db, "SELECT x FROM b"), 2);
	assert_int_equal(number(db, "SELECT count(*) FROM c"), 0);
	assert_ok(store_migrate(db, "p", 3, three_steps, 3, &err), &err);
	sqlite3_close(db);
}

static void a_step_that_fails_undoes_those_before_it(void **state)
{
	const struct migration steps[] = {three_steps[0], three_steps[1], {"CREATE TABLE a (y)"}};
	struct err err;
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_ok(store_migrate(db, "p", 0, steps, 1, &err), &err);
	assert_fails(store_migrate(db, "p", 1, steps, 3, &err), &err, ERR_IO, "step 3");
	assert_int_equal(number(db, "PRAGMA user_version"), 1);
	assert_int_equal(number(db, "SELECT count(*) FROM sqlite_schema"), 1);
	assert_int_not_equal(sqlite3_get_autocommit(db), 0);
	sqlite3_close(db);
}

static void what_cannot_be_begun_or_read_is_told(void **state)
{
	struct err err;
	sqlite3 *db;
	int version = 7;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL), SQLITE_OK);
	assert_fails(store_migrate(db, "p", 0, three_steps, 1, &err), &err, ERR_IO,
		     "bring it up to date");
	sqlite3_close(db);
	spoil(unit_path(state, "junk"),
	      STR("this is some text and not the header of a database ......"));
	assert_int_equal(sqlite3_open(unit_path(state, "junk"), &db), SQLITE_OK);
	assert_fails(store_identify(db, "p", 1, &version, &err), &err, ERR_UNAVAILABLE,
		     "read its version");
	assert_int_equal(version, 7);
	sqlite3_close(db);
}

static void an_old_database_of_ours_is_migrated_by_opening_it(void **state)
{
	/* Version 0 with our mark: what a crash before the first step could leave. */
	alter(unit_path(state, "regatta.db"), "PRAGMA application_id = 1382377313");
	struct store *st = fixture_open(*state);
	assert_int_equal(fixture_count(st, false), 0);
	close_home(st);
}

static bool note_row(void *ctx, const struct run_row *row)
{
	buf_printf(ctx, "%s '%s' %" PRId64 "/%" PRId64 "\n", row->id, row->cause, row->step,
		   row->total);
	return true;
}

/* Columns that a run of version 3 must have; the others have defaults. */
#define ADD_RUN                                                                                    \
	"INSERT INTO run (no, id, name, engine, strategy, nodes, local_base, seed, created_ms,"    \
	" ended_ms, phase, verdict, cause_text) VALUES "
#define RUN_REST "'n', 'local', 'roles', 2, 0, 0, 1, "

static void the_ended_runs_of_version_3_get_their_progress(void **state)
{
	const char *path = unit_path(state, "regatta.db");
	struct err err;
	struct buf got;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_ok(store_migrate(db, path, 0, store_migrations, 3, &err), &err);
	sqlite3_close(db);
	alter(path, ADD_RUN
	      "(1, 'failed', " RUN_REST "9, 7, 2, 'w-0 exited with code 3'), (2, 'plain', " RUN_REST
	      "9, 6, 1, ''),"
	      " (3, 'active', " RUN_REST "0, 3, 0, ''), (4, 'huge', " RUN_REST "9, 6, 1, '');"
	      "INSERT INTO job (run, json) VALUES (1, ''), (2, ''), (3, ''), (4, '');INSERT INTO "
	      "series (run, rank, name, count, step, total) VALUES (1, 0, 'a', 1, 40, 100), (1, 0, "
	      "'b', 1, 60, 90), (1, 0, 'c', 1, 99, 0), (1, 1, 'a', 1, 5, 100), (2, 0, 'a', 1, 0, 0), "
	      "(3, 0, 'a', 1, 1, 2), (4, 0, 'a', 1, 9223372036854775807, 9223372036854775807), (4, "
	      "1, 'a', 1, 9223372036854775807, 9223372036854775807)");
	struct store *st = fixture_open(*state);
	CLEANUP(arena_freep) struct arena *a = arena_new();
	buf_init(&got, 4096);
	assert_ok(store_runs_each(st, false, 0, 0, a, note_row, &got, &err), &err);
	assert_string_equal(got.p, "huge '' 9223372036854775807/9223372036854775807\n"
				   "active '' 0/0\n"
				   "plain '' 0/0\n"
				   "failed 'w-0 exited with code 3' 5/100\n");
	buf_release(&got);
	close_home(st);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(number(db, "PRAGMA user_version"), STORE_VERSION);
	sqlite3_close(db);
}

/* Rule: the runs of a version without tags have none, and take them. */
static void the_runs_of_version_20_have_no_tags_yet(void **state)
{
	const char *path = unit_path(state, "regatta.db"), *tags, *notes;
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct run_row row;
	struct err err;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_ok(store_migrate(db, path, 0, store_migrations, 20, &err), &err);
	sqlite3_close(db);
	alter(path,
	      "INSERT INTO run (no, id, name, engine, strategy, nodes, seed, created_ms, ended_ms,"
	      " phase, verdict) VALUES (1, 'old', 'n', 'local', 'roles', 2, 0, 0, 9, 6, 1);"
	      "INSERT INTO job (run, json) VALUES (1, '{\"params\":{\"lr\":0.10}}')");
	struct store *st = fixture_open(*state);

	assert_ok(store_run_get(st, 1, a, &row, &err), &err);
	assert_string_equal(row.tags, "[]");
	assert_string_equal(row.params, "{\"lr\":0.10}");
	store_begin(st);
	assert_ok(store_tag_set(st, 1, STR("kept"), true, &err), &err);
	fixture_commit(st);
	assert_ok(store_labels_get(st, 1, a, &tags, &notes, &err), &err);
	assert_string_equal(tags, "[\"kept\"]");
	assert_string_equal(notes, "[]");
	close_home(st);
}

static void note_facts(void *ctx, int index, const struct plan_resource *pr)
{
	buf_printf(ctx, "%d %s '%s' node %d %s\n", index, pr->kind, pr->name, pr->node, pr->spec);
}

/* Rule: a run of version 4 can be taken down from its rows alone, and keeps its addresses. */
static void the_runs_of_version_4_get_facts_and_specs(void **state)
{
	const char *path = unit_path(state, "regatta.db");
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct run_row row;
	struct err err;
	struct buf got;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_ok(store_migrate(db, path, 0, store_migrations, 4, &err), &err);
	sqlite3_close(db);
	alter(path,
	      "INSERT INTO run (no, id, name, engine, strategy, nodes, local_base, seed, created_ms,"
	      " ended_ms, phase, verdict) VALUES (1, 'x-abcd', 'x', 'local', 'single', 2, 2130837505, 0, 1, 0, 3, 0);"
	      "INSERT INTO job (run, json) VALUES (1, '{}');"
	      "INSERT INTO resource (run, place, kind, name, state, attempt, tries, unsure, since_ms, retry_at_ms,"
	      " why_kind, why, id) VALUES (1, 0, 'local.node', 'w-0', 2, 1, 0, 0, 5, 0, 0, '', '77'),"
	      " (1, 1, 'local.node', 'w-1', 2, 1, 0, 0, 5, 0, 0, '', '78')");
	struct store *st = fixture_open(*state);
	assert_ok(store_run_get(st, 1, a, &row, &err), &err);
	assert_string_equal(row.facts, "{\"first_address\":\"127.2.0.1\"}");
	assert_null(row.plan);
	buf_init(&got, 4096);
	assert_ok(store_ledger_each(st, 1, a, note_facts, &got, &err), &err);
	const char *home = fixture_home(st);
	assert_string_equal(
		got.p,
		arena_printf(
			a,
			"0 local.node 'w-0' node 0 {\"home\":\"%s\",\"run_dir\":\"%s/runs/x-abcd\"}\n"
			"1 local.node 'w-1' node 1 {\"home\":\"%s\",\"run_dir\":\"%s/runs/x-abcd\"}\n",
			home, home, home, home));
	buf_release(&got);
	store_begin(st);
	row.plan = "{\"version\":1}";
	assert_ok(store_run_planned(st, &row, &err), &err);
	assert_ok(store_commit(st, &err), &err);
	assert_ok(store_run_get(st, 1, a, &row, &err), &err);
	assert_string_equal(row.plan, "{\"version\":1}");
	close_home(st);
}

/* Rule: what is left of a node that is wanted again is of the machine before. */
static void the_resources_of_version_12_know_their_incarnation(void **state)
{
	const char *path = unit_path(state, "regatta.db");
	struct err err;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_ok(store_migrate(db, path, 0, store_migrations, 12, &err), &err);
	sqlite3_close(db);
	alter(path,
	      "INSERT INTO run (no, id, name, engine, strategy, nodes, seed, created_ms, ended_ms, phase, verdict)"
	      " VALUES (1, 'x', 'x', 'hosts', 'single', 4, 0, 1, 0, 3, 0);"
	      "INSERT INTO node (run, rank, state, incarnation, attempt, start_sent, stop_sent, serving, settled, there,"
	      " exit_code, exit_signal, exit_oom, exit_kind, exit_reason, since_ms, serve_by_ms, lost_at_ms, look_at_ms,"
	      " address) SELECT 1, column1, column2, column3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, '', 0, 0, 0, 0, ''"
	      " FROM (VALUES (0, 0, 3), (1, 0, 3), (2, 4, 2), (3, 1, 0));"
	      "INSERT INTO resource (run, place, name, state, node, kind, attempt, tries, unsure, since_ms, retry_at_ms,"
	      " why_kind, why, id) SELECT 1, column1, column2, column3, column4, 'k', 1, 0, 0, 0, 0, 0, '', ''"
	      " FROM (VALUES (0, 'a', 3, 0), (1, 'b', 0, 1), (2, 'c', 2, 2), (3, 'd', 2, 3), (4, 'e', 2, -1))");
	close_home(fixture_open(*state));
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(number(db, "SELECT incarnation FROM resource WHERE name = 'a'"), 2);
	assert_int_equal(number(db, "SELECT incarnation FROM resource WHERE name = 'b'"), 3);
	assert_int_equal(number(db, "SELECT incarnation FROM resource WHERE name = 'c'"), 2);
	assert_int_equal(number(db, "SELECT sum(incarnation) FROM resource WHERE name > 'c'"), 0);
	sqlite3_close(db);
}

#define on_dir(t) cmocka_unit_test_setup_teardown(t, unit_make_dir, unit_remove_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_dir(a_fresh_home_has_its_parts_and_is_private),
		on_dir(a_closed_home_is_one_file_without_a_log),
		on_dir(a_relative_home_is_made_absolute),
		on_dir(the_install_is_16_hex_digits_and_stays),
		on_dir(a_home_without_runs_may_act_for_another_install),
		on_dir(the_clock_survives_and_never_goes_back),
		on_dir(a_home_that_cannot_be_made_is_refused),
		on_dir(a_home_that_everybody_may_write_is_refused),
		on_dir(a_second_opener_is_told_who_has_it),
		on_dir(a_holder_that_has_not_said_its_pid_yet_is_still_a_holder),
		on_dir(the_pid_in_the_lock_is_that_of_the_last_holder),
		on_dir(a_lock_that_is_not_a_file_is_refused),
		on_dir(a_newer_version_is_refused),
		on_dir(a_version_below_zero_is_damage),
		on_dir(a_database_of_another_program_is_refused),
		on_dir(a_database_that_says_nothing_but_has_tables_is_refused),
		on_dir(a_file_that_is_no_database_is_refused),
		on_dir(a_damaged_database_is_refused),
		on_dir(an_empty_file_is_a_fresh_database),
		on_dir(the_log_of_a_database_that_was_taken_away_is_not_played_into_a_new_one),
		on_dir(what_a_crash_left_beside_the_database_is_no_hindrance),
		on_dir(a_place_that_cannot_be_cleared_is_told),
		on_dir(a_database_without_its_first_row_is_refused),
		on_dir(a_database_without_a_table_is_refused_when_it_is_needed),
		on_dir(a_thing_in_the_place_of_the_database_is_refused),
		on_dir(a_database_that_another_program_holds_is_refused),
		on_dir(nobody_else_can_write_while_it_is_open),
		cmocka_unit_test(every_result_code_says_what_to_do),
		cmocka_unit_test(only_the_missing_steps_run),
		cmocka_unit_test(a_step_that_fails_undoes_those_before_it),
		on_dir(what_cannot_be_begun_or_read_is_told),
		on_dir(an_old_database_of_ours_is_migrated_by_opening_it),
		on_dir(the_runs_of_version_20_have_no_tags_yet),
		on_dir(the_ended_runs_of_version_3_get_their_progress),
		on_dir(the_runs_of_version_4_get_facts_and_specs),
		on_dir(the_resources_of_version_12_know_their_incarnation),
	};

	return cmocka_run_group_tests_name("store_open", tests, NULL, NULL);
}
