/*
 * One use of a prepared statement, and the effect of a failure on the store.
 *
 * A failure of SQLite leaves the transaction in doubt, so it poisons the store: the transaction
 * is rolled back and every later call fails with the same error.  Only two errors are returned
 * to the caller without this, because they undo just the one statement: a key that exists and a
 * run that does not.
 */
#include "store/internal.h"

#include <inttypes.h>
#include <math.h>

#include "base/arena.h"

int store_poison(struct store *st, int rc, const char *what, struct err *err)
{
	struct err why = {0};

	store_sqlite_error(st->db, st->db_path, rc, what, &why);
	st->broken = why;
	st->wanted = st->dirty = false;
	if (!sqlite3_get_autocommit(st->db))
		sqlite3_exec(st->db, "ROLLBACK", NULL, NULL, NULL);
	return store_check(st, err);
}

int store_check(const struct store *st, struct err *err)
{
	if (st->broken.kind == ERR_NONE)
		return 0;
	if (err)
		*err = st->broken;
	return -1;
}

int query_read(struct sql_query *q, struct store *st, enum stmt_group group, int slot,
	       const struct stmt_def *defs, struct err *err)
{
	sqlite3_stmt **stmt = &st->stmts[group][slot];

	*q = (struct sql_query){.st = st, .what = defs[slot].what};
	if (store_check(st, err) < 0)
		return -1;
	if (!*stmt) {
		int rc = sqlite3_prepare_v3(st->db, defs[slot].sql, -1, SQLITE_PREPARE_PERSISTENT,
					    stmt, NULL);
		if (rc != SQLITE_OK)
			return store_poison(st, rc, q->what, err);
	}
	if (sqlite3_stmt_busy(*stmt))
		return err_set(err, ERR_INVALID, "%s: called from within itself", q->what);
	q->stmt = *stmt;
	return 0;
}

int query_write(struct sql_query *q, struct store *st, enum stmt_group group, int slot,
		const struct stmt_def *defs, struct err *err)
{
	if (query_read(q, st, group, slot, defs, err) < 0)
		return -1;
	if (!st->wanted) {
		q->stmt = NULL;
		return err_set(err, ERR_INVALID, "%s: outside a transaction", q->what);
	}
	if (store_enter(st, err) == 0)
		return 0;
	q->stmt = NULL;
	return -1;
}

void query_end(struct sql_query *q)
{
	if (q->stmt)
		sqlite3_reset(q->stmt);
	q->stmt = NULL;
}

static void bound(struct sql_query *q, int rc)
{
	if (q->rc == SQLITE_OK)
		q->rc = rc;
}

void query_int(struct sql_query *q, int64_t v)
{
	bound(q, sqlite3_bind_int64(q->stmt, ++q->at, v));
}

void query_real(struct sql_query *q, double v)
{
	bound(q, sqlite3_bind_double(q->stmt, ++q->at, v));
}

void query_text(struct sql_query *q, const char *z)
{
	bound(q, sqlite3_bind_text(q->stmt, ++q->at, z, -1, SQLITE_STATIC));
}

void query_str(struct sql_query *q, struct str s)
{
	bound(q, sqlite3_bind_text64(q->stmt, ++q->at, s.p ? s.p : "", s.n, SQLITE_STATIC,
				     SQLITE_UTF8));
}

static int step_failed(struct sql_query *q, int rc, struct err *err)
{
	switch (rc) {
	case SQLITE_CONSTRAINT_UNIQUE:
	case SQLITE_CONSTRAINT_PRIMARYKEY:
		return err_set(err, ERR_CONFLICT, "%s: %s", q->what, sqlite3_errmsg(q->st->db));
	case SQLITE_CONSTRAINT_FOREIGNKEY:
		return err_set(err, ERR_NOT_FOUND, "%s: no such run", q->what);
	default:
		return store_poison(q->st, rc, q->what, err);
	}
}

int query_run(struct sql_query *q, struct err *err)
{
	int rc = q->rc;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q->stmt);
	if (rc == SQLITE_DONE) {
		q->st->dirty = true;
		sqlite3_reset(q->stmt);
		q->at = 0;
		return 0;
	}
	step_failed(q, rc, err);
	query_end(q);
	return -1;
}

int query_next(struct sql_query *q, struct err *err)
{
	int rc = q->rc;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(q->stmt);
	q->at = -1;
	if (rc == SQLITE_ROW)
		return 1;
	if (rc == SQLITE_DONE)
		return 0;
	return store_poison(q->st, rc, q->what, err);
}

int query_row(struct sql_query *q, const char *missing, int64_t no, struct err *err)
{
	int got = query_next(q, err);

	if (got == 0)
		return err_set(err, ERR_NOT_FOUND, "%s %" PRId64, missing, no);
	return got < 0 ? -1 : 0;
}

int query_number(struct sql_query *q, int64_t none, int64_t *ret, struct err *err)
{
	int got = query_next(q, err);

	if (got < 0)
		return -1;
	*ret = got ? row_int(q) : none;
	return 0;
}

int64_t row_int(struct sql_query *q)
{
	return sqlite3_column_int64(q->stmt, ++q->at);
}

int64_t row_below(struct sql_query *q, int64_t n)
{
	int64_t v = row_int(q);

	if (v >= 0 && v < n)
		return v;
	q->unsound = true;
	return 0;
}

int query_sound(struct sql_query *q, struct err *err)
{
	return q->unsound ? store_poison(q->st, SQLITE_CORRUPT, q->what, err) : 0;
}

double row_real(struct sql_query *q)
{
	q->at++;
	if (sqlite3_column_type(q->stmt, q->at) == SQLITE_NULL)
		return (double)NAN;
	return sqlite3_column_double(q->stmt, q->at);
}

const char *row_text(struct sql_query *q)
{
	return (const char *)sqlite3_column_text(q->stmt, ++q->at);
}

const char *row_text_in(struct sql_query *q, struct arena *a)
{
	const char *z = row_text(q);

	return z ? arena_strdup(a, z) : NULL;
}

void row_chars(struct sql_query *q, char *out, size_t size)
{
	const char *z = row_text(q);

	snprintf(out, size, "%s", z ? z : "");
}
