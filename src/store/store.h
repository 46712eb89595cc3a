#pragma once
/*
 * store - the durable state: runs, nodes, the ledger of resources, events, samples.
 *
 * SQLite in WAL mode with synchronous=FULL, one connection, on the loop thread.  Writes are made
 * between store_begin() and store_commit(); the master uses one transaction for all events of a
 * round and carries out effects only after the commit.  A failed write or commit poisons the
 * store: every later call fails with the same error, the master leaves, and the next one reads
 * the committed state.  Of a commit that failed it finds all or nothing.  Some errors are
 * returned and do not poison the store: a key that exists, a run that does not, a quota, a write
 * outside a transaction.
 *
 * Files of the home (0700): link/layout.h.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/str.h"
#include "core/core.h"

struct arena;
struct err;
struct store;

#define STORE_VERSION 25 /* of the schema; older ones are migrated, newer ones refused */

/*
 * Makes the home if needed and takes its lock.
 *
 * ERR_CONFLICT: another master has it (its pid is named).
 *
 * ERR_UNAVAILABLE: written by a newer regatta, or not a database; the text says what to do.
 */
int store_open(const char *home, struct store **ret, struct err *err);
struct store *store_close(struct store *st);
/* STORE_INSTALL_DIGITS hex digits, made when the database is created. */
const char *store_install(const struct store *st);
/* Acts for another install from now on, in a transaction of its own.  ERR_CONFLICT if there are runs
 * of this one. */
int store_set_install(struct store *st, const char *install, struct err *err);
#define STORE_INSTALL_DIGITS 16
/* The latest time of the core's clock in any row written (now_ms, since_ms), also of removed
 * runs: the master's clock never goes behind it.  Wall times do not count. */
int64_t store_last_ms(const struct store *st);

/* Does nothing inside a transaction. */
void store_begin(struct store *st);
int store_commit(struct store *st, struct err *err);
/* Fails with the reason if a call has failed so that all later ones do: close it, and open it anew. */
int store_check(const struct store *st, struct err *err);

/*
 * The disk reserve: space kept back in the home, if there is room for it.  A write of the
 * database that finds the disk full takes from the reserve without an error.  While the reserve
 * is smaller than DISK_RESERVE_BYTES it is "out": no new run may begin, but active runs can be
 * taken down.
 */
#define DISK_RESERVE_BYTES (16 << 20)
#define DISK_RESERVE_MARGIN (4 << 20) /* free space needed beside it before it is made again */
/* Makes the reserve, once in the life of a home, before its first run; tries again if there was
 * no room before.  It takes microseconds on a disk and milliseconds on tmpfs. */
void store_disk_reserve_make(struct store *st);
/* True while the reserve is out; makes it again if there is room now.  Always false for a home
 * without a reserve. */
bool store_disk_reserve_is_out(struct store *st);
/* True if the reserve is out, or would be with the next page.  Always false without a reserve. */
bool store_disk_full(struct store *st);
/* True if the free space was given up by the reserve for teardown: logs must wait. */
bool store_disk_tight(struct store *st);
/* If the disk is full, gives a part of the reserve, never all of it, to other files of the home. */
void store_disk_reserve_ease(struct store *st);

/* A run as submitted.  Strings are copied when written, and live in the arena when read. */
struct run_row {
	int64_t no; /* key of the run in all functions below */
	const char *id, *name, *request_id;
	const char *job_json; /* the job with all settings applied */
	const char *base_dir, *source_sha256;
	const char *data;	/* JSON: archives of its data (master/data_blobs.h); NULL: none */
	const char *client_env; /* JSON object: variables of the client's environment */
	const char *secret;	/* hex; the tokens of nodes are derived from it */
	const char *engine, *strategy;
	/* JSON, as decided at the submit: facts of the engine, and the plan.  NULL for a run
	 * that an older regatta stored, until store_run_planned(). */
	const char *facts, *plan;
	int nodes;
	uint64_t seed;
	int64_t created_ms; /* wall clock */
	/* These change during the run: */
	int phase, verdict;
	int64_t ended_ms;    /* wall clock, 0 = not ended */
	const char *cause;   /* never NULL when read */
	int64_t step, total; /* progress when it ended; total 0 = unknown */
	int64_t cost_micro;  /* when it ended, in millionths of a US dollar */
	int64_t running_ms;  /* how long its job ran; 0 = not yet ended, or never began */
	const char *params;  /* JSON, of its job; NULL = none */
	const char *tags;    /* JSON array, never NULL when read */
};

/* Sets row->no.  ERR_CONFLICT if id or request_id exists. */
int store_run_add(struct store *st, struct run_row *row, struct err *err);
/* What people put on a run.  Tags that it has already, or that are to be removed and are not there, are no error. */
int store_tag_set(struct store *st, int64_t no, struct str tag, bool on, struct err *err);
int store_tags_add(struct store *st, int64_t no, const char *json, struct err *err);
int store_note_add(struct store *st, int64_t no, int64_t time_ms, struct str text, struct err *err);
/* As JSON: ["a", ...], and [{"time_ms", "text"}, ...] in the order of time.  Owned by the arena. */
int store_labels_get(struct store *st, int64_t no, struct arena *a, const char **ret_tags,
		     const char **ret_notes, struct err *err);
/* Stores plan, facts, job_json and client_env of a run that was stored without a plan. */
int store_run_planned(struct store *st, const struct run_row *row, struct err *err);
int store_run_save(struct store *st, int64_t no, const struct core_run *r, int64_t now_ms,
		   struct err *err);
/* Also stores its progress, computed from its saved series. */
int store_run_ended(struct store *st, int64_t no, int64_t wall_ms, struct err *err);
int store_node_save(struct store *st, int64_t no, int rank, const struct core_node *n,
		    struct err *err);
int store_resource_save(struct store *st, int64_t no, int index, const struct plan_resource *pr,
			const struct core_resource *res, struct err *err);
/* The resources of a run according to the ledger: kind, name, node and spec, in the order of
 * their index.  For a run whose plan cannot be read.  Strings live in the arena. */
typedef void (*ledger_fn)(void *ctx, int index, const struct plan_resource *pr);
int store_ledger_each(struct store *st, int64_t no, struct arena *a, ledger_fn fn, void *ctx,
		      struct err *err);
/* Fills a core_run made by core_run_new() from the rows (core_run_restored() computes the
 * counters).  ERR_CONFLICT: the plan has other nodes or resources than the ledger. */
int store_run_restore(struct store *st, int64_t no, struct core_run *r, struct err *err);

int store_run_get(struct store *st, int64_t no, struct arena *a, struct run_row *ret,
		  struct err *err);
/* Finds a run by exact id, else by unique prefix.  ERR_NOT_FOUND; ERR_CONFLICT with up to 10 ids
 * in *ret_ids (arena). */
int store_run_find(struct store *st, struct str prefix, struct arena *a, int64_t *ret_no,
		   const char ***ret_ids, size_t *ret_nids, struct err *err);
/* True if a run other than `not_this`, or a suite that goes on, uses this archive as source or data. */
int store_source_used(struct store *st, const char *sha256, int64_t not_this, bool *ret,
		      struct err *err);
/* *ret_no is 0 if there is no such run. */
int store_run_by_request(struct store *st, const char *request_id, int64_t *ret_no,
			 struct err *err);
/* Returning false stops; job_json, facts and plan are NULL here. */
typedef bool (*run_row_fn)(void *ctx, const struct run_row *row);
/* Newest first.  before_no 0 = from the newest; limit 0 = all; active: only runs that have not
 * ended.  fn may use the store. */
int store_runs_each(struct store *st, bool active, int64_t before_no, int limit, struct arena *a,
		    run_row_fn fn, void *ctx, struct err *err);
/* Number of all runs. */
int store_run_count(struct store *st, int64_t *ret, struct err *err);
/* Number of runs per phase. */
int store_run_phases(struct store *st, int64_t ret[static RUN_PHASES], struct err *err);
/* Removes the rows of a run in all tables.  ERR_CONFLICT if it has not ended. */
int store_run_remove(struct store *st, int64_t no, struct err *err);

/*
 * The rows of an ended run as a file of its own, which another home can take in.  Both outside a
 * transaction; errors do not poison the store.  The secret of the run is not in it.
 */
int store_record_write(struct store *st, int64_t no, const char *path, struct err *err);
/* Changes the file.  ERR_CONFLICT: this home has a run of that id.  ERR_INVALID: it is not its record.
 * ERR_UNAVAILABLE: a newer regatta wrote it. */
int store_record_read(struct store *st, const char *path, const char *id, int64_t *ret_no,
		      struct err *err);
/* The same in the place of the ended run `no` of this id, whose rows go, except for its events, the request
 * that made it and the directory of its job file.  ERR_CONFLICT: there is no such run, or it has not ended. */
int store_record_replace(struct store *st, const char *path, const char *id, int64_t no,
			 struct err *err);

/* Events are numbered from 1 in each run, without gaps. */
struct event_row {
	int64_t seq, time_ms; /* wall clock */
	const char *kind;
	int node; /* -1 = none */
	const char *text;
};
int store_event_add(struct store *st, int64_t no, int64_t wall_ms, const char *kind, int node,
		    const char *text, int64_t *ret_seq, struct err *err);
/* Here and below: returning false stops; texts are valid during the call; fn must not start the
 * same listing. */
typedef bool (*event_row_fn)(void *ctx, const struct event_row *row);
int store_events_each(struct store *st, int64_t no, int64_t after_seq, int limit, event_row_fn fn,
		      void *ctx, struct err *err);
/* Number of the newest event of all runs, including those not committed yet.  These numbers only
 * grow, also over restarts (with gaps where runs were removed). */
int64_t store_last_event(const struct store *st);
typedef bool (*any_event_fn)(void *ctx, int64_t n, int64_t no, const struct event_row *row);
int store_all_events_each(struct store *st, int64_t after_n, int limit, any_event_fn fn, void *ctx,
			  struct err *err);

/* Samples.  A series is (run, node, name); its statistics are stored beside the points. */
struct series_row {
	int64_t series; /* key, set by store_series_open() */
	int rank;
	const char *name;
	uint64_t count;
	double first, last, min, max, mean, m2;
	int64_t step, total; /* of its last sample that had both; total 0 = none had */
};
/* Finds or makes the series; at most STORE_MAX_SERIES per run (ERR_QUOTA).  ret->name is `name`. */
#define STORE_MAX_SERIES 20000
int store_series_open(struct store *st, int64_t no, int rank, const char *name,
		      struct series_row *ret, struct err *err);
int store_series_save(struct store *st, const struct series_row *row, struct err *err);
int store_sample_add(struct store *st, int64_t series, int64_t wall_ms, int64_t step, double value,
		     struct err *err);
typedef bool (*series_row_fn)(void *ctx, const struct series_row *row);
int store_series_each(struct store *st, int64_t no, series_row_fn fn, void *ctx, struct err *err);
typedef bool (*sample_row_fn)(void *ctx, int64_t wall_ms, int64_t step, double value);
/* In the order of arrival; limit 0 = all. */
int store_samples_each(struct store *st, int64_t series, int64_t limit, sample_row_fn fn, void *ctx,
		       struct err *err);
/* The same without the first `after` samples, so that a long series can be read in pieces. */
int store_samples_after(struct store *st, int64_t series, int64_t after, int64_t limit,
			sample_row_fn fn, void *ctx, struct err *err);
/* Offset up to which a stream (0 to 512) was scanned for metrics, and the number of bad values in
 * it; store_scan_get() returns the offsets of the first n streams, and the sum of bad values over all of
 * the node's. */
int store_scan_save(struct store *st, int64_t no, int rank, int stream, uint64_t offset,
		    uint64_t bad, struct err *err);
int store_scan_get(struct store *st, int64_t no, int rank, uint64_t *ret_offsets, int n,
		   uint64_t *ret_bad, struct err *err);

/* How the processes of a node ended, in the caller's words, in its newest attempt that has. */
int store_ends_save(struct store *st, int64_t no, int rank, int attempt, const char *ends,
		    struct err *err);
typedef void (*ends_row_fn)(void *ctx, int rank, int attempt, const char *ends);
int store_ends_each(struct store *st, int64_t no, ends_row_fn fn, void *ctx, struct err *err);

/*
 * The exact bytes (without NUL) of the call that creates the resources of a batch, and their
 * SHA-256 in hex.  A stored request is never replaced.  Loading a missing one is ERR_NOT_FOUND.
 */
int store_request_save(struct store *st, int64_t no, int batch, struct str bytes,
		       const char *sha256, struct err *err);
int store_request_load(struct store *st, int64_t no, int batch, struct arena *a,
		       const char **ret_bytes, const char **ret_sha256, struct err *err);

/* Tokens of the HTTP service.  Only the SHA-256 of a token is stored. */
#define STORE_TOKEN_HASH 32
#define STORE_TOKEN_SCOPES 4 /* 1 .. 4; the caller defines their meaning */
struct token_row {
	const char *id, *name;
	uint8_t hash[STORE_TOKEN_HASH];
	int scope;
	int64_t created_ms, expires_ms, used_ms; /* wall clock; 0 = never */
};
/* ERR_CONFLICT if the id or the token exists. */
int store_token_add(struct store *st, const struct token_row *row, struct err *err);
int store_token_used(struct store *st, const char *id, int64_t wall_ms, struct err *err);
/* Does nothing if the token does not exist. */
int store_token_remove(struct store *st, const char *id, struct err *err);
typedef bool (*token_row_fn)(void *ctx, const struct token_row *row);
int store_tokens_each(struct store *st, token_row_fn fn, void *ctx, struct err *err);
