/*
 * The rows of one ended run as a database of its own, and back into another home.
 *
 * The file has the whole schema, so that a later version brings it up to date with the same steps as
 * the database of a home.  Keys are counted per home: on the way in the run, its series and its events
 * get new ones.
 */
#include "store/internal.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/path.h"

/* Tables with rows of a run, in the order of their references, and what selects those of one run.  The calls
 * that made resources (request) stay behind: they are of no use to a reader. */
static const struct {
	const char *table, *key, *end;
} parts[] = {
	{"run", "no", ""},
	{"job", "run", ""},
	{"node", "run", ""},
	{"resource", "run", ""},
	{"event", "run", ""},
	{"series", "run", ""},
	{"sample", "series IN (SELECT series FROM main.series WHERE run", ")"},
	{"scan", "run", ""},
	{"process", "run", ""},
	{"tag", "run", ""},
	{"note", "run", ""},
};
#define PARTS (sizeof(parts) / sizeof(parts[0]))

/* Frees the statement. */
static int run_sql(sqlite3 *db, const char *path, const char *what, char *sql, struct err *err)
{
	int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc == SQLITE_OK ? 0 : store_sqlite_error(db, path, rc, what, err);
}

static int ask_number(sqlite3 *db, const char *path, const char *sql, int64_t *ret, struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	else
		store_sqlite_error(db, path, rc, "read the record of a run", err);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : -1;
}

/* Outside a transaction, where a database can be attached. */
static int attach(struct store *st, const char *path, struct err *err)
{
	if (store_check(st, err) < 0)
		return -1;
	if (!sqlite3_get_autocommit(st->db))
		return err_set(err, ERR_CONFLICT, "the record of a run: a transaction is open");
	return run_sql(st->db, path, "open the record of a run",
		       sqlite3_mprintf("ATTACH %Q AS record", path), err);
}

static int end_copy(struct store *st, const char *path, int rc, struct err *err)
{
	if (rc == 0)
		rc = run_sql(st->db, path, "write", sqlite3_mprintf("COMMIT"), err);
	if (!sqlite3_get_autocommit(st->db))
		sqlite3_exec(st->db, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_exec(st->db, "DETACH record", NULL, NULL, NULL);
	return rc;
}

/* ---- out ---- */

static int copy_out(struct store *st, int64_t no, const char *path, struct err *err)
{
	int rc = run_sql(st->db, path, "write the record of a run",
			 sqlite3_mprintf("PRAGMA record.journal_mode = MEMORY;"
					 "PRAGMA record.synchronous = OFF; BEGIN IMMEDIATE"),
			 err);

	for (size_t i = 0; i < PARTS && rc == 0; i++)
		rc = run_sql(st->db, path, "write the record of a run",
			     sqlite3_mprintf("INSERT INTO record.%s SELECT * FROM main.%s "
					     "WHERE %s = %lld%s",
					     parts[i].table, parts[i].table, parts[i].key,
					     (long long)no, parts[i].end),
			     err);
	if (rc == 0) /* the tokens of its nodes are made of the secret */
		rc = run_sql(st->db, path, "write the record of a run",
			     sqlite3_mprintf("UPDATE record.job SET secret = '';"
					     "UPDATE record.install SET install = %Q",
					     st->install),
			     err);
	return rc;
}

int store_record_write(struct store *st, int64_t no, const char *path, struct err *err)
{
	CLEANUP(freep) char *dir = xstrndup(path, (size_t)(path_base(path) - path));

	if (store_create(dir, path, err) < 0 || attach(st, path, err) < 0)
		return -1;
	return end_copy(st, path, copy_out(st, no, path, err), err);
}

/* ---- in ---- */

struct record_keys {
	int64_t no, series, event; /* of the home: the new run's, and the last that are taken */
};

/* A number that is given already is kept. */
static int read_keys(struct store *st, struct record_keys *k, struct err *err)
{
	if (!k->no &&
	    ask_number(
		    st->db, st->db_path,
		    "SELECT 1 + max(coalesce((SELECT max(no) FROM run), 0), coalesce((SELECT seq FROM "
		    "sqlite_sequence WHERE name = 'run'), 0))",
		    &k->no, err) < 0)
		return -1;
	if (ask_number(st->db, st->db_path, "SELECT coalesce(max(series), 0) FROM series",
		       &k->series, err) < 0)
		return -1;
	k->event = st->last_event;
	return 0;
}

/* One run, which has ended and has this id. */
static int check_run(sqlite3 *db, const char *path, const char *id, struct err *err)
{
	int64_t all, fits;
	char *sql = sqlite3_mprintf("SELECT count(*) FROM run WHERE id = %Q AND ended_ms > 0", id);
	int rc = ask_number(db, path, "SELECT count(*) FROM run", &all, err);

	if (rc == 0)
		rc = ask_number(db, path, sql ? sql : "", &fits, err);
	sqlite3_free(sql);
	if (rc == 0 && (all != 1 || fits != 1))
		rc = err_set(err, ERR_INVALID, "'%s' is not the record of the ended run '%s'", path,
			     id);
	return rc;
}

/* In two steps, because keys must be unique at every row: first below zero, then above what is taken. */
static int give_keys(sqlite3 *db, const char *path, const struct record_keys *k, struct err *err)
{
	return run_sql(
		db, path, "read the record of a run",
		sqlite3_mprintf(
			"BEGIN; UPDATE run SET no = %lld; UPDATE job SET run = %lld;"
			"UPDATE node SET run = %lld; UPDATE resource SET run = %lld;"
			"UPDATE event SET run = %lld, n = -n; UPDATE event SET n = %lld - n;"
			"UPDATE series SET run = %lld, series = -series;"
			"UPDATE series SET series = %lld - series;"
			"UPDATE sample SET series = -series; UPDATE sample SET series = %lld - series;"
			"UPDATE scan SET run = %lld; UPDATE process SET run = %lld;"
			"UPDATE tag SET run = %lld; UPDATE note SET run = %lld;"
			"UPDATE run SET request_id = NULL; COMMIT",
			k->no, k->no, k->no, k->no, k->no, k->event, k->no, k->series, k->series,
			k->no, k->no, k->no, k->no),
		err);
}

/* Brings the file up to date and gives its rows keys that are free in this home. */
static int prepare(struct store *st, const char *path, const char *id, struct record_keys *k,
		   struct err *err)
{
	sqlite3 *db = NULL;
	int version, rc = sqlite3_open_v2(path, &db,
					  SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
						  SQLITE_OPEN_EXRESCODE,
					  NULL);

	if (rc != SQLITE_OK)
		rc = store_sqlite_error(db, path, rc, "open", err);
	else if (store_identify(db, path, STORE_VERSION, &version, err) < 0 ||
		 store_migrate(db, path, version, store_migrations, STORE_VERSION, err) < 0 ||
		 check_run(db, path, id, err) < 0 || read_keys(st, k, err) < 0 ||
		 give_keys(db, path, k, err) < 0)
		rc = -1;
	sqlite3_close(db);
	return rc;
}

/* The rows of a run that was handed over make place for the record's.  What was asked for here stays: the
 * request and its time, the directory of the job file; what became of the resources that were made here;
 * and the events, which are merged by their time.  Tags and notes of both are kept. */
static int clear_place(struct store *st, const char *path, int64_t no, struct err *err)
{
	long long n = no;
	int rc = run_sql(
		st->db, path, "replace a run by its record",
		sqlite3_mprintf(
			"UPDATE record.run SET (request_id, created_ms) ="
			" (SELECT request_id, created_ms FROM main.run WHERE no = %lld);"
			"UPDATE record.job SET base_dir = (SELECT base_dir FROM main.job WHERE run = %lld);"
			"INSERT INTO record.event (run, seq, time_ms, kind, node, text, n)"
			" SELECT run, seq + (SELECT coalesce(max(seq), 0) FROM record.event), time_ms, kind,"
			" node, text, n FROM main.event WHERE run = %lld;"
			"UPDATE record.resource SET (state, since_ms, retry_at_ms, why_kind, why, paid_from_ms,"
			" paid_ms, paid_micro) = (SELECT state, since_ms, retry_at_ms, why_kind, why,"
			" paid_from_ms, paid_ms, paid_micro FROM main.resource AS own WHERE own.run = %lld"
			" AND own.name = record.resource.name)"
			" WHERE name IN (SELECT name FROM main.resource WHERE run = %lld);"
			"UPDATE record.run SET cost_micro = (SELECT coalesce(sum(paid_micro), 0) FROM"
			" record.resource);"
			"INSERT OR IGNORE INTO record.tag (run, tag)"
			" SELECT run, tag FROM main.tag WHERE run = %lld;"
			"INSERT INTO record.note (run, n, time_ms, text)"
			" SELECT run, n + (SELECT coalesce(max(n), 0) FROM record.note), time_ms, text"
			" FROM main.note WHERE run = %lld;"
			"DELETE FROM main.request WHERE run = %lld",
			n, n, n, n, n, n, n, n),
		err);

	for (size_t i = PARTS; i > 0 && rc == 0; i--)
		rc = run_sql(st->db, path, "replace a run by its record",
			     sqlite3_mprintf("DELETE FROM main.%s WHERE %s = %lld%s",
					     parts[i - 1].table, parts[i - 1].key, n,
					     parts[i - 1].end),
			     err);
	if (rc == 0)
		rc = run_sql(
			st->db, path, "replace a run by its record",
			sqlite3_mprintf(
				"CREATE TEMP TABLE merged AS SELECT run, row_number() OVER (ORDER BY "
				"time_ms, n) AS seq, time_ms, kind, node, text, n FROM record.event;"
				"DELETE FROM record.event;"
				"INSERT INTO record.event (run, seq, time_ms, kind, node, text, n)"
				" SELECT * FROM temp.merged;"
				"DROP TABLE temp.merged"),
			err);
	return rc;
}

static int copy_in(struct store *st, const char *path, int64_t replaced, int64_t *ret_last_event,
		   struct err *err)
{
	int rc = run_sql(st->db, path, "read the record of a run",
			 sqlite3_mprintf("BEGIN IMMEDIATE"), err);

	if (rc == 0 && replaced)
		rc = clear_place(st, path, replaced, err);
	for (size_t i = 0; i < PARTS && rc == 0; i++)
		rc = run_sql(st->db, path, "read the record of a run",
			     sqlite3_mprintf("INSERT INTO main.%s SELECT * FROM record.%s",
					     parts[i].table, parts[i].table),
			     err);
	if (rc == 0)
		rc = ask_number(st->db, path, "SELECT coalesce(max(n), 0) FROM record.event",
				ret_last_event, err);
	return rc;
}

/* replaced: the run whose number and place the record gets; 0: none. */
static int take_in(struct store *st, const char *path, const char *id, int64_t replaced,
		   int64_t *ret_no, struct err *err)
{
	struct record_keys k = {.no = replaced};
	int64_t last_event = 0;

	if (prepare(st, path, id, &k, err) < 0 || attach(st, path, err) < 0)
		return -1;
	if (end_copy(st, path, copy_in(st, path, replaced, &last_event, err), err) < 0)
		return -1;
	if (last_event > st->last_event)
		st->last_event = last_event;
	*ret_no = k.no;
	return 0;
}

static int count_runs(struct store *st, char *sql, int64_t *ret, struct err *err)
{
	int rc = ask_number(st->db, st->db_path, sql ? sql : "", ret, err);

	sqlite3_free(sql);
	return rc;
}

int store_record_read(struct store *st, const char *path, const char *id, int64_t *ret_no,
		      struct err *err)
{
	int64_t there;

	if (count_runs(st, sqlite3_mprintf("SELECT count(*) FROM run WHERE id = %Q", id), &there,
		       err) < 0)
		return -1;
	if (there)
		return err_set(err, ERR_CONFLICT, "the run '%s' is in this home already", id);
	return take_in(st, path, id, 0, ret_no, err);
}

int store_record_replace(struct store *st, const char *path, const char *id, int64_t no,
			 struct err *err)
{
	int64_t there;

	if (count_runs(st,
		       sqlite3_mprintf("SELECT count(*) FROM run WHERE id = %Q AND no = %lld AND "
				       "ended_ms > 0",
				       id, (long long)no),
		       &there, err) < 0)
		return -1;
	if (!there)
		return err_set(err, ERR_CONFLICT, "the run '%s' has not ended in this home", id);
	return take_in(st, path, id, no, &no, err);
}
