#pragma once
/*
 * What the files of store/ share: the connection, prepared statements, and how a failure of
 * SQLite becomes an error.
 *
 * A statement is prepared at its first use and kept.  Each file names its own statements at its
 * top (an enum and a table of SQL) and has one group of slots here.
 */
#include <sqlite3.h>
#include <stddef.h>
#include "base/err.h"
#include "store/store.h"

enum stmt_group {
	STMT_STORE,
	STMT_RUN,
	STMT_REMOVE,
	STMT_STATE,
	STMT_EVENT,
	STMT_SERIES,
	STMT_TOKEN,
	STMT_REQUEST,
	STMT_PROCESS,
	STMT_SUITE,
	STMT_LABEL
};
#define STMT_GROUPS (STMT_LABEL + 1)
#define STMT_SLOTS 16

/* The number of a series' last sample, so that adding a sample needs no search for it. */
struct last_sample {
	int64_t series, n;
};
#define LAST_SAMPLES 1024

struct store {
	char *home, *db_path;
	int lock_fd;
	int reserve_fd;	       /* -1: no reserve */
	int64_t reserve_bytes; /* length of the file */
	sqlite3 *db;
	char install[17];
	int64_t last_ms;       /* greatest time in any row */
	int64_t last_saved_ms; /* the same, as stored in the database */
	int64_t last_event;    /* number of the newest event of all runs */
	bool wanted;	       /* between store_begin() and store_commit() */
	bool dirty;	       /* something was written since store_begin() */
	int wal_pages;	       /* length of the write-ahead log after the last commit */
	int wal_limit;	       /* length at which the log is moved into the database */
	struct err broken;     /* kind != ERR_NONE: the store is poisoned, for this reason */
	sqlite3_stmt *stmts[STMT_GROUPS][STMT_SLOTS];
	/* by series, modulo; series 0 = empty slot */
	struct last_sample last_samples[LAST_SAMPLES];
};

/* Rolls back, and makes every later call fail with the error that this result code means. */
int store_poison(struct store *st, int rc, const char *what, struct err *err);
/* Begins the transaction that store_begin() announced, at its first write. */
int store_enter(struct store *st, struct err *err);
/* To be called by every function that writes a row with a time of the core's clock. */
static inline void store_saw_ms(struct store *st, int64_t ms)
{
	if (ms > st->last_ms)
		st->last_ms = ms;
}

/* store_schema.c: one step per version; the first one makes version 1. */
struct migration {
	const char *sql;
};
/* Checks, without changing the file, that it is a database of regatta (or empty) and not of a
 * newer version. */
int store_identify(sqlite3 *db, const char *path, int known, int *ret_version, struct err *err);
/* Migrates from `version` to `n` in one transaction. */
int store_migrate(sqlite3 *db, const char *path, int version, const struct migration *steps, int n,
		  struct err *err);
extern const struct migration store_migrations[STORE_VERSION];
/* store_create.c: makes an empty database of STORE_VERSION at `path` in `home`, complete and
 * synced. */
int store_create(const char *home, const char *path, struct err *err);
/* store_disk_reserve.c.  _open() is called with the home locked, _hook() before SQLite's first
 * write. */
void store_disk_reserve_open(struct store *st);
void store_disk_reserve_hook(struct store *st);
void store_disk_reserve_close(struct store *st);
/* Translates a result code of SQLite into an error for people. */
int store_sqlite_error(sqlite3 *db, const char *path, int rc, const char *what, struct err *err);

/*
 * store_query.c: one use of a statement.  Bind its parameters in order; then call query_run()
 * for a write, or query_next() and the row_*() readers in order.  query_end() is its cleanup.
 */
struct sql_query {
	struct store *st;
	sqlite3_stmt *stmt;
	const char *what; /* for messages: "save node" */
	int at;		  /* last parameter bound, or last column read */
	int rc;		  /* first failure of a bind */
	bool unsound;	  /* a number was read that no valid row has */
};
struct stmt_def {
	const char *what, *sql;
};
int query_read(struct sql_query *q, struct store *st, enum stmt_group group, int slot,
	       const struct stmt_def *defs, struct err *err);
/* As query_read(), inside the transaction, which begins with its first write. */
int query_write(struct sql_query *q, struct store *st, enum stmt_group group, int slot,
		const struct stmt_def *defs, struct err *err);
void query_end(struct sql_query *q);
void query_int(struct sql_query *q, int64_t v);
/* Not a number is stored as NULL. */
void query_real(struct sql_query *q, double v);
/* NULL is stored as NULL.  The text must stay valid until query_run() returns. */
void query_text(struct sql_query *q, const char *z);
void query_str(struct sql_query *q, struct str s);
/* -1: the store is poisoned, except for a key that exists (ERR_CONFLICT) or a run that does not
 * (ERR_NOT_FOUND). */
int query_run(struct sql_query *q, struct err *err);
/* 1: a row, 0: no more rows, -1: the store is poisoned. */
int query_next(struct sql_query *q, struct err *err);
/* Reads the one row that must exist.  If it is missing: ERR_NOT_FOUND, "MISSING NO", and the
 * store is not poisoned. */
int query_row(struct sql_query *q, const char *missing, int64_t no, struct err *err);
/* The first number of the first row, or `none` if there is no row. */
int query_number(struct sql_query *q, int64_t none, int64_t *ret, struct err *err);
int64_t row_int(struct sql_query *q);
/* A number from 0 to n-1; any other is read as 0 and makes query_sound() fail. */
int64_t row_below(struct sql_query *q, int64_t n);
/* Poisons the store if a number was out of its range: another program has changed the file. */
int query_sound(struct sql_query *q, struct err *err);
double row_real(struct sql_query *q);
/* NULL if the column is NULL.  Valid until the next row. */
const char *row_text(struct sql_query *q);
const char *row_text_in(struct sql_query *q, struct arena *a);
/* Cut to the size, always terminated. */
void row_chars(struct sql_query *q, char *out, size_t size);
