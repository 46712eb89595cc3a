/*
 * The home, its lock, the connection and its transactions.
 *
 * One master owns a home: it holds flock() on `lock` while the store is open.  The connection is
 * exclusive, so that no transaction of another program can block ours (and the index of the
 * write-ahead log needs no shared memory).
 *
 * A commit is one fdatasync of the write-ahead log.  Pages are moved from the log to the
 * database after the commit that made it WAL_PAGES long, so its length is bounded by that and
 * the largest transaction.  If the move fails, the commit is still on disk, but the store is
 * poisoned.
 */
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "link/layout.h"

#define WAL_PAGES 1000		 /* of 4 KiB */
#define WAL_KEPT_BYTES "8388608" /* a longer log is truncated when it starts again */
#define BUSY_MS 500		 /* another program may read the database while it is opened */

static const char settings[] = "PRAGMA locking_mode = EXCLUSIVE;"
			       "PRAGMA synchronous = FULL;"
			       "PRAGMA foreign_keys = ON;"
			       "PRAGMA temp_store = MEMORY;"
			       "PRAGMA cache_size = -2048;"
			       "PRAGMA mmap_size = 0;"
			       "PRAGMA secure_delete = FAST;"
			       "PRAGMA journal_size_limit = " WAL_KEPT_BYTES;

enum { BEGIN, COMMIT, SAVE_CLOCK, LOAD, SET_INSTALL };
static const struct stmt_def defs[STMT_SLOTS] = {
	[BEGIN] = {"begin", "BEGIN IMMEDIATE"},
	[COMMIT] = {"commit", "COMMIT"},
	[SAVE_CLOCK] = {"save the clock", "UPDATE install SET last_ms = ?1"},
	[LOAD] =
		{"read the identity of this home",
		 "SELECT install, last_ms, max(last_event, coalesce((SELECT max(n) FROM event), 0)) FROM install"},
	[SET_INSTALL] = {"set the identity of this home",
			 "UPDATE install SET install = ?1 WHERE NOT EXISTS (SELECT 1 FROM run)"},
};

/* Names the master that holds the lock, if it has written its pid. */
static int lock_taken(int fd, const char *home, struct err *err)
{
	char text[24] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	int64_t pid;

	if (n > 0 && str_to_i64(str_trim((struct str){text, (size_t)n}), &pid))
		return err_set(
			err, ERR_CONFLICT,
			"a master (pid %d) is already running on '%s': 'regatta master --stop' stops "
			"it, and its runs go on",
			(int)pid, home);
	return err_set(
		err, ERR_CONFLICT,
		"a master is already running on '%s': 'regatta master --stop' stops it, and its runs go on",
		home);
}

static int take_lock(struct store *st, struct err *err)
{
	CLEANUP(freep) char *path = path_join(st->home, LAYOUT_LOCK);
	CLEANUP(close_fdp)
	int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	char text[24];

	if (fd < 0)
		return err_errno(err, errno, "open '%s'", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EWOULDBLOCK)
			return lock_taken(fd, st->home, err);
		return err_errno(err, errno, "lock '%s'", path);
	}
	/* the home is locked, and the next write may need the reserve */
	store_disk_reserve_open(st);
	int n = snprintf(text, sizeof(text), "%d\n", (int)getpid());
	if (file_write_all(fd, text, (size_t)n, err) < 0)
		return err_wrap(err, "'%s'", path);
	/* Truncated after the write: if the file were emptied first, its block could go to
	 * another file on a full disk. */
	if (ftruncate(fd, n) < 0)
		return err_errno(err, errno, "shorten '%s'", path);
	st->lock_fd = TAKE_FD(fd);
	return 0;
}

static int make_home(struct store *st, struct err *err)
{
	static const char *const below[] = {LAYOUT_RUNS, LAYOUT_BLOBS};
	bool is_new = !file_exists(st->home);
	struct stat sb;

	if (file_mkdir_p(st->home, 0700, err) < 0)
		return -1;
	if (stat(st->home, &sb) < 0)
		return err_errno(err, errno, "stat '%s'", st->home);
	if (sb.st_mode & S_IWOTH)
		return err_set(
			err, ERR_DENIED,
			"home '%s' may be written by everybody: chmod 700 it, or use another REGATTA_HOME",
			st->home);
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++) {
		CLEANUP(freep) char *dir = path_join(st->home, below[i]);
		if (file_mkdir_p(dir, 0700, err) < 0)
			return -1;
	}
	if (!is_new)
		return 0;
	CLEANUP(freep) char *up = path_join(st->home, "..");
	return file_sync_dir(up, err);
}

static int after_commit(void *ctx, sqlite3 *db, const char *name, int pages)
{
	struct store *st = ctx;

	(void)db, (void)name;
	st->wal_pages = pages;
	return SQLITE_OK;
}

/* Finds or makes the database; never follows a link. */
static int find_file(struct store *st, struct err *err)
{
	struct stat sb;

	if (lstat(st->db_path, &sb) < 0) {
		if (errno == ENOENT)
			return store_create(st->home, st->db_path, err);
		return err_errno(err, errno, "stat database '%s'", st->db_path);
	}
	if (!S_ISREG(sb.st_mode))
		return err_set(
			err, ERR_UNAVAILABLE,
			"database '%s' is not a regular file: move it away, or use another REGATTA_HOME",
			st->db_path);
	return sb.st_size ? 0 : store_create(st->home, st->db_path, err);
}

static int set_up(struct store *st, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(st->db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : store_sqlite_error(st->db, st->db_path, rc, "open", err);
}

static int open_db(struct store *st, struct err *err)
{
	int version;

	/* Memory statistics take a lock at every allocation.  The call fails, harmlessly, if
	 * SQLite is in use already. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	store_disk_reserve_hook(st);
	if (find_file(st, err) < 0)
		return -1;
	int rc = sqlite3_open_v2(
		st->db_path, &st->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);
	if (rc != SQLITE_OK)
		return store_sqlite_error(st->db, st->db_path, rc, "open", err);
	sqlite3_busy_timeout(st->db, BUSY_MS);
	if (set_up(st, settings, err) < 0 ||
	    store_identify(st->db, st->db_path, STORE_VERSION, &version, err) < 0 ||
	    set_up(st, "PRAGMA journal_mode = WAL", err) < 0)
		return -1;
	sqlite3_wal_hook(st->db, after_commit, st);
	/*
	 * What an earlier master left in the log may be in the page cache only (its sync may
	 * have failed): it is moved into the database and synced before anything is built on it.
	 */
	rc = sqlite3_wal_checkpoint_v2(st->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
	if (rc != SQLITE_OK)
		return store_sqlite_error(st->db, st->db_path, rc, "recover", err);
	return store_migrate(st->db, st->db_path, version, store_migrations, STORE_VERSION, err);
}

static int load(struct store *st, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_read(&q, st, STMT_STORE, LOAD, defs, err) < 0)
		return -1;
	int got = query_next(&q, err);
	if (got < 0)
		return -1;
	if (got == 0)
		return store_sqlite_error(st->db, st->db_path, SQLITE_CORRUPT, q.what, err);
	row_chars(&q, st->install, sizeof(st->install));
	st->last_ms = st->last_saved_ms = row_int(&q);
	st->last_event = row_int(&q);
	return 0;
}

static char *absolute(const char *home)
{
	char cwd[PATH_MAX];

	if (*home == '/' || !getcwd(cwd, sizeof(cwd)))
		return path_clean(home);
	CLEANUP(freep) char *joined = path_join(cwd, home);
	return path_clean(joined);
}

int store_open(const char *home, struct store **ret, struct err *err)
{
	if (!*home)
		return err_set(err, ERR_INVALID, "the home has no name: set REGATTA_HOME");
	struct store *st = xcalloc(1, sizeof(*st));

	st->lock_fd = st->reserve_fd = -1;
	st->wal_limit = WAL_PAGES;
	st->home = absolute(home);
	st->db_path = path_join(st->home, "regatta.db");
	if (make_home(st, err) < 0 || take_lock(st, err) < 0 || open_db(st, err) < 0 ||
	    load(st, err) < 0) {
		store_close(st);
		return -1;
	}
	*ret = st;
	return 0;
}

/* Rolls back what was not committed; moves the log into the database and removes it. */
struct store *store_close(struct store *st)
{
	if (!st)
		return NULL;
	for (int g = 0; g < STMT_GROUPS; g++)
		for (int i = 0; i < STMT_SLOTS; i++)
			sqlite3_finalize(st->stmts[g][i]);
	sqlite3_close(st->db);
	store_disk_reserve_close(st);
	if (st->lock_fd >= 0)
		close(st->lock_fd);
	free(st->home);
	free(st->db_path);
	free(st);
	return NULL;
}

const char *store_install(const struct store *st)
{
	return st->install;
}

static int save_install(struct store *st, const char *install, struct err *err)
{
	CLEANUP(query_end) struct sql_query q;

	if (query_write(&q, st, STMT_STORE, SET_INSTALL, defs, err) < 0)
		return -1;
	query_text(&q, install);
	return query_run(&q, err);
}

int store_set_install(struct store *st, const char *install, struct err *err)
{
	if (strcmp(st->install, install) == 0)
		return 0;
	store_begin(st);
	if (save_install(st, install, err) < 0 || store_commit(st, err) < 0 || load(st, err) < 0)
		return -1;
	return strcmp(st->install, install) == 0
		       ? 0
		       : err_set(err, ERR_CONFLICT, "'%s' has runs of install %s, not of %.40s",
				 st->home, st->install, install);
}

int64_t store_last_ms(const struct store *st)
{
	return st->last_ms;
}

void store_begin(struct store *st)
{
	st->wanted = st->broken.kind == ERR_NONE;
}

static int simple(struct store *st, int slot, struct err *err)
{
	struct sql_query q;
	bool dirty = st->dirty;

	if (query_read(&q, st, STMT_STORE, slot, defs, err) < 0 || query_run(&q, err) < 0)
		return -1;
	st->dirty = dirty;
	return 0;
}

int store_enter(struct store *st, struct err *err)
{
	return sqlite3_get_autocommit(st->db) ? simple(st, BEGIN, err) : 0;
}

static int save_clock(struct store *st, struct err *err)
{
	struct sql_query q;

	if (!st->dirty || st->last_ms == st->last_saved_ms)
		return 0;
	if (query_write(&q, st, STMT_STORE, SAVE_CLOCK, defs, err) < 0)
		return -1;
	query_int(&q, st->last_ms);
	if (query_run(&q, err) < 0)
		return -1;
	st->last_saved_ms = st->last_ms;
	return 0;
}

static void shorten_log(struct store *st)
{
	if (st->wal_pages < st->wal_limit)
		return;
	st->wal_pages = 0;
	int rc = sqlite3_wal_checkpoint_v2(st->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
	/* SQLITE_LOCKED: a statement is still reading; the next commit tries again. */
	if (rc != SQLITE_OK && rc != SQLITE_LOCKED)
		store_poison(st, rc, "move the log into the database", NULL);
}

int store_commit(struct store *st, struct err *err)
{
	if (store_check(st, err) < 0)
		return -1;
	if (save_clock(st, err) < 0)
		return -1;
	if (!sqlite3_get_autocommit(st->db) && simple(st, COMMIT, err) < 0)
		return -1;
	st->wanted = st->dirty = false;
	shorten_log(st);
	return 0;
}
