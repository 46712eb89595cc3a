/*
 * A new database is built under a temporary name and renamed when it is complete and synced.  So
 * nobody ever finds an incomplete one, and three syncs are enough, while SQLite, which must be
 * able to recover at every step, needs eight.
 */
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"

static int forget(const char *path, const char *suffix, struct err *err)
{
	CLEANUP(freep) char *name = xasprintf("%s%s", path, suffix);

	if (unlink(name) < 0 && errno != ENOENT)
		return err_errno(err, errno, "remove '%s'", name);
	return 0;
}

/* Makes an empty file that only the user can read; removes what a crashed master left. */
static int make_empty(const char *path, struct err *err)
{
	if (forget(path, "", err) < 0 || forget(path, "-wal", err) < 0 ||
	    forget(path, "-journal", err) < 0)
		return -1;
	CLEANUP(close_fdp) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_errno(err, errno, "create database '%s'", path);
	return 0;
}

static int build(sqlite3 *db, const char *path, struct err *err)
{
	sqlite3_file *file = NULL;
	int rc = sqlite3_exec(
		db,
		"PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF;PRAGMA journal_mode "
		"= MEMORY; PRAGMA auto_vacuum = NONE",
		NULL, NULL, NULL);

	if (rc != SQLITE_OK)
		return store_sqlite_error(db, path, rc, "create", err);
	if (store_migrate(db, path, 0, store_migrations, STORE_VERSION, err) < 0)
		return -1;
	rc = sqlite3_exec(db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
	if (rc == SQLITE_OK)
		rc = file->pMethods->xSync(file, SQLITE_SYNC_NORMAL);
	return rc == SQLITE_OK ? 0 : store_sqlite_error(db, path, rc, "create", err);
}

static int build_at(const char *path, struct err *err)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(
		path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE,
		NULL);

	rc = rc == SQLITE_OK ? build(db, path, err)
			     : store_sqlite_error(db, path, rc, "create", err);
	sqlite3_close(db);
	return rc;
}

int store_create(const char *home, const char *path, struct err *err)
{
	CLEANUP(freep) char *beside = xasprintf("%s.new", path);

	if (make_empty(beside, err) < 0 || build_at(beside, err) < 0)
		return -1;
	/* The log of a database that was moved away must not be replayed into the new one. */
	if (forget(path, "-wal", err) < 0 || forget(path, "-journal", err) < 0)
		return -1;
	if (rename(beside, path) < 0)
		return err_errno(err, errno, "create database '%s'", path);
	return file_sync_dir(home, err);
}
