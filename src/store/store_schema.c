/*
 * The schema and its versions.
 *
 * Version n is reached from n-1 by one step, which is never edited after its release.  All
 * missing steps run in one transaction, so that a crash leaves the old version or the new one.
 * `application_id` says that the file is a database of regatta, `user_version` which schema it
 * has.
 *
 * States are the numbers of the enums in core.h, checked by the tables; a new state is appended
 * to its enum and needs a step that widens the check.
 */
#include "store/internal.h"

#include <inttypes.h>

#define APPLICATION_ID 0x52656761 /* "Rega" */

/* The numbers are in databases of users: an enum only grows at its end. */
_Static_assert(RUN_CANCELLED == 8 && RUN_PHASES == 9, "run.phase and the columns of its times");
_Static_assert(VERDICT_CANCELLED == 3, "run.verdict");
_Static_assert(NODE_LOST == 7 && NODE_STATES == 8, "node.state");
_Static_assert(AFTER_AGAIN == 1, "node.after");
_Static_assert(RES_GONE == 4 && RES_STATES == 5, "resource.state");
_Static_assert(ERR_PREEMPTED == 13 && ERR_KINDS == 14, "columns that hold a kind of error");

/*
 * run is narrow, because each event rewrites its row; data that is large and never changes is in
 * job, the largest column last.  Numbers of runs are not used twice (AUTOINCREMENT).
 *
 * Tables that are read by run or by series are stored in that order (WITHOUT ROWID), so that
 * reading and removing one touches only its own pages.
 *
 * sample has no foreign key: the series is checked when its last sample is not known, and
 * removing millions of rows would look up each of them.
 *
 * Statistics of a series may overflow to "not a number", which SQLite stores as NULL.
 */
static const char version_1[] =
	"CREATE TABLE install ("
	"  one INTEGER PRIMARY KEY CHECK (one = 1),"
	"  install TEXT NOT NULL,"
	"  last_ms INTEGER NOT NULL"
	") STRICT;"
	"INSERT INTO install VALUES (1, lower(hex(randomblob(8))), 0);"
	"CREATE TABLE run ("
	"  no INTEGER PRIMARY KEY AUTOINCREMENT,"
	"  id TEXT NOT NULL UNIQUE,"
	"  request_id TEXT UNIQUE,"
	"  name TEXT NOT NULL,"
	"  engine TEXT NOT NULL,"
	"  strategy TEXT NOT NULL,"
	"  nodes INTEGER NOT NULL CHECK (nodes >= 0),"
	"  local_base INTEGER NOT NULL,"
	"  seed INTEGER NOT NULL,"
	"  created_ms INTEGER NOT NULL,"
	"  ended_ms INTEGER NOT NULL,"
	"  series INTEGER NOT NULL DEFAULT 0,"
	"  phase INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 8),"
	"  verdict INTEGER NOT NULL CHECK (verdict BETWEEN 0 AND 3),"
	"  cause_kind INTEGER NOT NULL DEFAULT 0 CHECK (cause_kind BETWEEN 0 AND 12),"
	"  cause_node INTEGER NOT NULL DEFAULT -1,"
	"  cause_text TEXT NOT NULL DEFAULT '',"
	"  cancel_asked INTEGER NOT NULL DEFAULT 0 CHECK (cancel_asked IN (0, 1)),"
	"  hurry INTEGER NOT NULL DEFAULT 0 CHECK (hurry IN (0, 1)),"
	"  deadline_ms INTEGER NOT NULL DEFAULT 0,"
	"  accepted_at_ms INTEGER NOT NULL DEFAULT 0,"
	"  provisioning_at_ms INTEGER NOT NULL DEFAULT 0,"
	"  gathering_at_ms INTEGER NOT NULL DEFAULT 0,"
	"  running_at_ms INTEGER NOT NULL DEFAULT 0,"
	"  collecting_at_ms INTEGER NOT NULL DEFAULT 0,"
	"  cleaning_at_ms INTEGER NOT NULL DEFAULT 0,"
	"  succeeded_at_ms INTEGER NOT NULL DEFAULT 0,"
	"  failed_at_ms INTEGER NOT NULL DEFAULT 0,"
	"  cancelled_at_ms INTEGER NOT NULL DEFAULT 0,"
	"  rng_0 INTEGER NOT NULL DEFAULT 0,"
	"  rng_1 INTEGER NOT NULL DEFAULT 0,"
	"  rng_2 INTEGER NOT NULL DEFAULT 0,"
	"  rng_3 INTEGER NOT NULL DEFAULT 0"
	") STRICT;"
	"CREATE INDEX run_active ON run (no) WHERE ended_ms = 0;"
	"CREATE TABLE job ("
	"  run INTEGER PRIMARY KEY REFERENCES run (no),"
	"  base_dir TEXT,"
	"  source_sha256 TEXT,"
	"  client_env TEXT,"
	"  secret TEXT,"
	"  json TEXT NOT NULL"
	") STRICT;"
	"CREATE TABLE node ("
	"  run INTEGER NOT NULL REFERENCES run (no),"
	"  rank INTEGER NOT NULL CHECK (rank >= 0),"
	"  state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 7),"
	"  attempt INTEGER NOT NULL,"
	"  start_sent INTEGER NOT NULL CHECK (start_sent IN (0, 1)),"
	"  stop_sent INTEGER NOT NULL CHECK (stop_sent IN (0, 1)),"
	"  serving INTEGER NOT NULL CHECK (serving IN (0, 1)),"
	"  settled INTEGER NOT NULL CHECK (settled IN (0, 1)),"
	"  there INTEGER NOT NULL CHECK (there IN (0, 1)),"
	"  exit_code INTEGER NOT NULL,"
	"  exit_signal INTEGER NOT NULL,"
	"  exit_oom INTEGER NOT NULL CHECK (exit_oom IN (0, 1)),"
	"  exit_kind INTEGER NOT NULL CHECK (exit_kind BETWEEN 0 AND 12),"
	"  exit_reason TEXT NOT NULL,"
	"  since_ms INTEGER NOT NULL,"
	"  serve_by_ms INTEGER NOT NULL,"
	"  lost_at_ms INTEGER NOT NULL,"
	"  look_at_ms INTEGER NOT NULL,"
	"  address TEXT NOT NULL,"
	"  PRIMARY KEY (run, rank)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE resource ("
	"  run INTEGER NOT NULL REFERENCES run (no),"
	"  place INTEGER NOT NULL CHECK (place >= 0),"
	"  kind TEXT NOT NULL,"
	"  name TEXT NOT NULL,"
	"  state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4),"
	"  attempt INTEGER NOT NULL,"
	"  tries INTEGER NOT NULL,"
	"  unsure INTEGER NOT NULL CHECK (unsure IN (0, 1)),"
	"  since_ms INTEGER NOT NULL,"
	"  retry_at_ms INTEGER NOT NULL,"
	"  why_kind INTEGER NOT NULL CHECK (why_kind BETWEEN 0 AND 12),"
	"  why TEXT NOT NULL,"
	"  id TEXT NOT NULL,"
	"  PRIMARY KEY (run, place)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE event ("
	"  run INTEGER NOT NULL REFERENCES run (no),"
	"  seq INTEGER NOT NULL CHECK (seq > 0),"
	"  time_ms INTEGER NOT NULL,"
	"  kind TEXT NOT NULL,"
	"  node INTEGER NOT NULL,"
	"  text TEXT NOT NULL,"
	"  PRIMARY KEY (run, seq)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE series ("
	"  series INTEGER PRIMARY KEY,"
	"  run INTEGER NOT NULL REFERENCES run (no),"
	"  rank INTEGER NOT NULL,"
	"  name TEXT NOT NULL,"
	"  count INTEGER NOT NULL,"
	"  first REAL, last REAL, min REAL, max REAL, mean REAL, m2 REAL,"
	"  UNIQUE (run, rank, name)"
	") STRICT;"
	"CREATE TABLE sample ("
	"  series INTEGER NOT NULL,"
	"  n INTEGER NOT NULL,"
	"  time_ms INTEGER NOT NULL,"
	"  step INTEGER NOT NULL,"
	"  value REAL,"
	"  PRIMARY KEY (series, n)"
	") STRICT, WITHOUT ROWID;"
	"CREATE TABLE scan ("
	"  run INTEGER NOT NULL REFERENCES run (no),"
	"  rank INTEGER NOT NULL,"
	"  stream INTEGER NOT NULL CHECK (stream BETWEEN 0 AND 2),"
	"  offset INTEGER NOT NULL,"
	"  bad INTEGER NOT NULL,"
	"  PRIMARY KEY (run, rank, stream)"
	") STRICT, WITHOUT ROWID;";

/*
 * event.n orders the events of all runs: it only grows, so that a reader can continue where it
 * stopped; install.last_event keeps it growing when the newest events are removed.
 *
 * A token is stored as the SHA-256 of its text.
 */
static const char version_2[] =
	"ALTER TABLE event ADD COLUMN n INTEGER NOT NULL DEFAULT 0;"
	"WITH ordered AS (SELECT run, seq, row_number() OVER (ORDER BY time_ms, run, seq) AS n"
	"  FROM event)"
	" UPDATE event SET n = ordered.n FROM ordered"
	" WHERE event.run = ordered.run AND event.seq = ordered.seq;"
	"CREATE UNIQUE INDEX event_order ON event (n);"
	"ALTER TABLE install ADD COLUMN last_event INTEGER NOT NULL DEFAULT 0;"
	"CREATE TABLE token ("
	"  id TEXT PRIMARY KEY,"
	"  hash TEXT NOT NULL UNIQUE,"
	"  name TEXT NOT NULL,"
	"  scope INTEGER NOT NULL CHECK (scope BETWEEN 1 AND 3),"
	"  created_ms INTEGER NOT NULL,"
	"  expires_ms INTEGER NOT NULL,"
	"  used_ms INTEGER NOT NULL"
	") STRICT, WITHOUT ROWID;";

/* Progress of a series: step and total of its last sample that had both. */
static const char version_3[] = "ALTER TABLE series ADD COLUMN step INTEGER NOT NULL DEFAULT 0;"
				"ALTER TABLE series ADD COLUMN total INTEGER NOT NULL DEFAULT 0;";

/* Progress of an ended run, for lists: that of its slowest rank, where a rank counts with its
 * series of the highest step. */
static const char version_4[] =
	"ALTER TABLE run ADD COLUMN step INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE run ADD COLUMN total INTEGER NOT NULL DEFAULT 0;"
	"UPDATE run SET (step, total) ="
	" (SELECT s, t FROM"
	" (SELECT step AS s, total AS t, rank AS r,"
	" row_number() OVER (PARTITION BY rank ORDER BY step DESC, series) AS place"
	" FROM series WHERE series.run = run.no AND total > 0"
	" UNION ALL SELECT 0, 0, 0, 1)"
	" WHERE place = 1 ORDER BY t = 0, s * 1.0 / t, r LIMIT 1)"
	" WHERE ended_ms > 0;";

/*
 * Facts and plan are stored with the run, and each resource has the document that its driver
 * needs, so that a run can be taken down from its rows alone.  Runs of older versions were all
 * of the engine local: their facts follow from their first address, the directories of their
 * nodes from the home.  Their plan is made when they are first loaded.
 */
static const char version_5[] =
	"ALTER TABLE job ADD COLUMN facts TEXT;"
	"ALTER TABLE job ADD COLUMN plan TEXT;"
	"UPDATE job SET facts ="
	" (SELECT json_object('first_address', format('%d.%d.%d.%d',"
	" local_base >> 24 & 255, local_base >> 16 & 255, local_base >> 8 & 255, local_base & 255))"
	" FROM run WHERE no = job.run);"
	"ALTER TABLE run DROP COLUMN local_base;"
	"ALTER TABLE resource ADD COLUMN node INTEGER NOT NULL DEFAULT -1 CHECK (node >= -1);"
	"ALTER TABLE resource ADD COLUMN spec TEXT NOT NULL DEFAULT '{}';"
	"UPDATE resource SET node = place, spec ="
	" (SELECT json_object('home', home, 'run_dir', home || '/runs/' || id) FROM run,"
	" (SELECT substr(file, 1, length(file) - length('/regatta.db')) AS home"
	" FROM pragma_database_list WHERE name = 'main')"
	" WHERE no = resource.run)"
	" WHERE kind = 'local.node';";

/* Number of the call that creates a resource. */
static const char version_6[] =
	"ALTER TABLE resource ADD COLUMN batch INTEGER NOT NULL DEFAULT 0 CHECK (batch >= 0);";

/* A fourth scope; a CHECK cannot be changed in place. */
static const char version_7[] =
	"CREATE TABLE token_7 (  id TEXT PRIMARY KEY,  hash TEXT NOT NULL UNIQUE,  name TEXT NOT NULL,  "
	"scope INTEGER NOT NULL CHECK (scope BETWEEN 1 AND 4),  created_ms INTEGER NOT NULL,  expires_ms "
	"INTEGER NOT NULL,  used_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
	"INSERT INTO token_7 SELECT id, hash, name, scope, created_ms, expires_ms, used_ms FROM token;"
	"DROP TABLE token;ALTER TABLE token_7 RENAME TO token;";

/* Which machine carries a node, and what follows its current attempt. */
static const char version_8[] =
	"ALTER TABLE node ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 0 CHECK (incarnation >= 0);"
	"ALTER TABLE node ADD COLUMN identity TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE node ADD COLUMN retried INTEGER NOT NULL DEFAULT 0 CHECK (retried >= 0);"
	"ALTER TABLE node ADD COLUMN after INTEGER NOT NULL DEFAULT 0 CHECK (after BETWEEN 0 AND 2);"
	"ALTER TABLE node ADD COLUMN asleep INTEGER NOT NULL DEFAULT 0 CHECK (asleep IN (0, 1));"
	"ALTER TABLE node ADD COLUMN by_ms INTEGER NOT NULL DEFAULT 0;";

/* The choice of a resource that is in use, and its document: a clean-up may have only the row. */
static const char version_9[] =
	"ALTER TABLE resource ADD COLUMN choice INTEGER NOT NULL DEFAULT 0 CHECK (choice >= 0);"
	"ALTER TABLE resource ADD COLUMN choice_spec TEXT NOT NULL DEFAULT '';";

/* The exact bytes of a call that creates resources, so that a repeated call sends the same. */
static const char version_10[] =
	"ALTER TABLE resource ADD COLUMN batch_place INTEGER NOT NULL DEFAULT 0 CHECK (batch_place >= 0);"
	"CREATE TABLE request ("
	"  run INTEGER NOT NULL REFERENCES run (no),"
	"  batch INTEGER NOT NULL CHECK (batch > 0),"
	"  bytes TEXT NOT NULL,"
	"  sha256 TEXT NOT NULL,"
	"  PRIMARY KEY (run, batch)"
	") STRICT, WITHOUT ROWID;";

/* The archives of a run's data, for nodes that do not share the master's files. */
static const char version_11[] = "ALTER TABLE job ADD COLUMN data TEXT;";

/* A shared resource must not be deleted by a run, even by one whose plan cannot be read. */
static const char version_12[] =
	"ALTER TABLE resource ADD COLUMN shared INTEGER NOT NULL DEFAULT 0 CHECK (shared IN (0, 1));";

/*
 * The incarnation of its node that a resource belongs to.  A node that is wanted again (state 0)
 * has counted its next one, so a resource that may still exist (sent, live, deleting: 1 to 3)
 * belongs to the one before.
 */
static const char version_13[] =
	"ALTER TABLE resource ADD COLUMN incarnation INTEGER NOT NULL DEFAULT 0 CHECK (incarnation >= 0);"
	"UPDATE resource SET incarnation = coalesce((SELECT node.incarnation -"
	" (node.state = 0 AND node.incarnation > 1 AND resource.state BETWEEN 1 AND 3)"
	" FROM node WHERE node.run = resource.run AND node.rank = resource.node), 0);";

/* Machines that enrolled with the token of a resource's batch; nodes that sleep because theirs was lost. */
static const char version_14[] =
	"ALTER TABLE resource ADD COLUMN enrolled INTEGER NOT NULL DEFAULT 0 CHECK (enrolled >= 0);"
	"ALTER TABLE node ADD COLUMN shrunk INTEGER NOT NULL DEFAULT 0 CHECK (shrunk IN (0, 1));";

/* How long the calls of a run pause because its provider throttles them. */
static const char version_15[] =
	"ALTER TABLE run ADD COLUMN slow_ms INTEGER NOT NULL DEFAULT 0 CHECK (slow_ms >= 0);"
	"ALTER TABLE run ADD COLUMN next_call_ms INTEGER NOT NULL DEFAULT 0;";

/*
 * When the machine of a node will be taken, and a kind of error more.  A check that is widened
 * changes no row, so the text of the tables is replaced (sqlite.org/lang_altertable.html, "Making
 * Other Kinds Of Table Schema Changes").
 */
static const char version_16[] =
	"ALTER TABLE node ADD COLUMN preempt_at_ms INTEGER NOT NULL DEFAULT 0;"
	"PRAGMA writable_schema = ON;"
	"UPDATE sqlite_schema SET sql = replace(sql, 'kind BETWEEN 0 AND 12)', 'kind BETWEEN 0 AND 13)')"
	" WHERE type = 'table' AND name IN ('run', 'node', 'resource');"
	"PRAGMA writable_schema = RESET;";

/* What machines have cost. */
static const char version_17[] =
	"ALTER TABLE resource ADD COLUMN paid_from_ms INTEGER NOT NULL DEFAULT 0 CHECK (paid_from_ms >= 0);"
	"ALTER TABLE resource ADD COLUMN paid_ms INTEGER NOT NULL DEFAULT 0 CHECK (paid_ms >= 0);"
	"ALTER TABLE resource ADD COLUMN paid_micro INTEGER NOT NULL DEFAULT 0 CHECK (paid_micro >= 0);"
	"ALTER TABLE run ADD COLUMN cost_micro INTEGER NOT NULL DEFAULT 0 CHECK (cost_micro >= 0);";

/* How each of several processes of a node ended; more streams of a node. */
static const char version_18[] =
	"CREATE TABLE process ("
	"  run INTEGER NOT NULL REFERENCES run (no),"
	"  rank INTEGER NOT NULL CHECK (rank >= 0),"
	"  attempt INTEGER NOT NULL CHECK (attempt > 0),"
	"  ends TEXT NOT NULL,"
	"  PRIMARY KEY (run, rank)"
	") STRICT, WITHOUT ROWID;"
	"PRAGMA writable_schema = ON;"
	"UPDATE sqlite_schema SET sql = replace(sql, 'stream BETWEEN 0 AND 2)', 'stream BETWEEN 0 AND 512)')"
	" WHERE type = 'table' AND name = 'scan';"
	"PRAGMA writable_schema = RESET;";

/* Ranks that the job sees, where they follow the addresses of the nodes. */
static const char version_19[] =
	"ALTER TABLE node ADD COLUMN job_rank INTEGER NOT NULL DEFAULT -1 CHECK (job_rank >= -1);";

/* Suites, and an entry for each of their runs. */
static const char version_20[] =
	"CREATE TABLE suite ("
	"  no INTEGER PRIMARY KEY,"
	"  id TEXT NOT NULL UNIQUE,"
	"  name TEXT NOT NULL,"
	"  request_id TEXT NOT NULL UNIQUE,"
	"  doc TEXT NOT NULL,"
	"  base_dir TEXT NOT NULL,"
	"  sources TEXT NOT NULL,"
	"  parallel INTEGER NOT NULL CHECK (parallel > 0),"
	"  created_ms INTEGER NOT NULL,"
	"  ended_ms INTEGER NOT NULL DEFAULT 0,"
	"  phase INTEGER NOT NULL DEFAULT 0 CHECK (phase BETWEEN 0 AND 5),"
	"  cancel_asked INTEGER NOT NULL DEFAULT 0 CHECK (cancel_asked IN (0, 1)),"
	"  hurry INTEGER NOT NULL DEFAULT 0 CHECK (hurry IN (0, 1)),"
	"  too_dear INTEGER NOT NULL DEFAULT 0 CHECK (too_dear IN (0, 1)),"
	"  kind INTEGER NOT NULL DEFAULT 0 CHECK (kind BETWEEN 0 AND 13),"
	"  cause TEXT NOT NULL DEFAULT '',"
	"  closed TEXT NOT NULL DEFAULT '',"
	"  since_ms INTEGER NOT NULL DEFAULT 0"
	") STRICT;"
	"CREATE TABLE suite_entry ("
	"  suite INTEGER NOT NULL REFERENCES suite (no),"
	"  place INTEGER NOT NULL CHECK (place >= 0),"
	"  variant INTEGER NOT NULL CHECK (variant >= 0),"
	"  repeat INTEGER NOT NULL CHECK (repeat >= 0),"
	"  state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 6),"
	"  attempt INTEGER NOT NULL CHECK (attempt > 0),"
	"  cost_micro INTEGER NOT NULL CHECK (cost_micro >= 0),"
	"  kind INTEGER NOT NULL CHECK (kind BETWEEN 0 AND 13),"
	"  cause TEXT NOT NULL,"
	"  run TEXT,"
	"  PRIMARY KEY (suite, place)"
	") STRICT, WITHOUT ROWID;";

/* What people put on runs. */
static const char version_21[] = "CREATE TABLE tag ("
				 "  run INTEGER NOT NULL REFERENCES run (no),"
				 "  tag TEXT NOT NULL,"
				 "  PRIMARY KEY (run, tag)"
				 ") STRICT, WITHOUT ROWID;"
				 "CREATE TABLE note ("
				 "  run INTEGER NOT NULL REFERENCES run (no),"
				 "  n INTEGER NOT NULL CHECK (n > 0),"
				 "  time_ms INTEGER NOT NULL,"
				 "  text TEXT NOT NULL,"
				 "  PRIMARY KEY (run, n)"
				 ") STRICT, WITHOUT ROWID;";

/* Who runs on_exit of a suite. */
static const char version_22[] =
	"ALTER TABLE suite ADD COLUMN client TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE suite ADD COLUMN closer INTEGER NOT NULL DEFAULT 0 CHECK (closer BETWEEN 0 AND 3);"
	"ALTER TABLE suite ADD COLUMN closer_until_ms INTEGER NOT NULL DEFAULT 0;";

/* Another master has the suite. */
static const char version_23[] =
	"ALTER TABLE suite ADD COLUMN away INTEGER NOT NULL DEFAULT 0 CHECK (away IN (0, 1));";

/* ... and has ended it. */
static const char version_24[] =
	"ALTER TABLE suite ADD COLUMN closed_there INTEGER NOT NULL DEFAULT 0 CHECK (closed_there IN (0, 1));";

/* ... which another run carries when it is resumed. */
static const char version_25[] =
	"ALTER TABLE suite ADD COLUMN carrier INTEGER NOT NULL DEFAULT 1 CHECK (carrier > 0);";

const struct migration store_migrations[STORE_VERSION] = {
	{version_1},  {version_2},  {version_3},  {version_4},	{version_5},
	{version_6},  {version_7},  {version_8},  {version_9},	{version_10},
	{version_11}, {version_12}, {version_13}, {version_14}, {version_15},
	{version_16}, {version_17}, {version_18}, {version_19}, {version_20},
	{version_21}, {version_22}, {version_23}, {version_24}, {version_25}};

/* By primary result code.  `next` says what a user can do. */
static const struct {
	int rc;
	enum err_kind kind;
	const char *next;
} meanings[] = {
	{SQLITE_FULL, ERR_CAPACITY, "the disk is full: free some space and start again"},
	{SQLITE_NOMEM, ERR_CAPACITY, "out of memory"},
	{SQLITE_CORRUPT, ERR_UNAVAILABLE,
	 "it is damaged: restore a copy, or move it away to begin with an empty one"},
	{SQLITE_NOTADB, ERR_UNAVAILABLE,
	 "it is not a database: move it away, or use another REGATTA_HOME"},
	{SQLITE_BUSY, ERR_CONFLICT, "another program has it open: close that and try again"},
	{SQLITE_READONLY, ERR_DENIED, "it cannot be written: check its owner and mode"},
	{SQLITE_PERM, ERR_DENIED, "it may not be used: check its owner and mode"},
};

/* The errno behind a result code.  SQLite records it; for a failed COMMIT only in the file of
 * the log. */
static int errno_of(sqlite3 *db)
{
	int errnum = sqlite3_system_errno(db);
	sqlite3_file *log = NULL;

	if (errnum)
		return errnum;
	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
	    log && log->pMethods && log->pMethods->xFileControl)
		log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &errnum);
	return errnum;
}

int store_sqlite_error(sqlite3 *db, const char *path, int rc, const char *what, struct err *err)
{
	int primary = rc & 0xff, errnum = errno_of(db);
	struct err os = {0};

	for (size_t i = 0; i < sizeof(meanings) / sizeof(meanings[0]); i++)
		if (meanings[i].rc == primary)
			return err_set(err, meanings[i].kind, "database '%s': %s: %s", path, what,
				       meanings[i].next);
	err_errno(&os, errnum, "database '%s': %s", path, what);
	/* The errno of an I/O error may be that of an older failure: only some values are used. */
	bool told = os.kind == ERR_CAPACITY || os.kind == ERR_QUOTA || os.kind == ERR_DENIED;
	if (errnum && (primary == SQLITE_CANTOPEN || (primary == SQLITE_IOERR && told))) {
		if (err)
			*err = os;
		return -1;
	}
	return err_set(err, primary == SQLITE_CONSTRAINT ? ERR_INVALID : ERR_IO,
		       "database '%s': %s: %s (%d)", path, what,
		       rc == sqlite3_extended_errcode(db) ? sqlite3_errmsg(db) : sqlite3_errstr(rc),
		       rc);
}

static int read_number(sqlite3 *db, const char *path, const char *sql, int64_t *ret,
		       struct err *err)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*ret = sqlite3_column_int64(stmt, 0);
	else
		store_sqlite_error(db, path, rc, "read its version", err);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : -1;
}

int store_identify(sqlite3 *db, const char *path, int known, int *ret_version, struct err *err)
{
	int64_t application, version, things;

	if (read_number(db, path, "PRAGMA application_id", &application, err) < 0 ||
	    read_number(db, path, "PRAGMA user_version", &version, err) < 0 ||
	    read_number(db, path, "SELECT count(*) FROM sqlite_schema", &things, err) < 0)
		return -1;
	bool empty = application == 0 && version == 0 && things == 0;
	if (application != APPLICATION_ID && !empty)
		return err_set(
			err, ERR_UNAVAILABLE,
			"database '%s' belongs to another program: move it away, or use another REGATTA_HOME",
			path);
	if (version > known)
		return err_set(
			err, ERR_UNAVAILABLE,
			"database '%s' is of version %" PRId64
			", this regatta knows up to %d: use a newer regatta or another REGATTA_HOME",
			path, version, known);
	if (version < 0)
		return store_sqlite_error(db, path, SQLITE_CORRUPT, "read its version", err);
	*ret_version = (int)version;
	return 0;
}

static int exec(sqlite3 *db, const char *path, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : store_sqlite_error(db, path, rc, "bring it up to date", err);
}

static int run_steps(sqlite3 *db, const char *path, int version, const struct migration *steps,
		     int n, struct err *err)
{
	char stamp[96];

	if (exec(db, path, "BEGIN IMMEDIATE", err) < 0)
		return -1;
	for (int i = version; i < n; i++)
		if (exec(db, path, steps[i].sql, err) < 0)
			return err_wrap(err, "step %d", i + 1);
	snprintf(stamp, sizeof(stamp), "PRAGMA application_id = %d; PRAGMA user_version = %d",
		 APPLICATION_ID, n);
	if (exec(db, path, stamp, err) < 0)
		return -1;
	return exec(db, path, "COMMIT", err);
}

int store_migrate(sqlite3 *db, const char *path, int version, const struct migration *steps, int n,
		  struct err *err)
{
	if (version >= n)
		return 0;
	if (run_steps(db, path, version, steps, n, err) == 0)
		return 0;
	/* The transaction is undone; closing the database would do it too. */
	if (!sqlite3_get_autocommit(db))
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return -1;
}
