#pragma once
/* store_suite - the rows of suites: the document that each was made from, and its entries. */
#include "core/suite.h"
#include "store/store.h"

/* A suite as submitted.  Strings are copied when written, and live in the arena when read. */
struct suite_row {
	int64_t no; /* key in all functions below */
	const char *id, *name, *request_id;
	const char *doc; /* JSON: the suite file */
	const char *base_dir;
	const char *sources; /* SHA-256 of the archives that its runs will need, each once */
	int parallel;
	int64_t created_ms, ended_ms; /* wall clock; 0: not ended */
	/* These change: */
	int phase;
	const char *cause; /* never NULL when read */
	int entries
		[ENTRY_STATES]; /* how many are in each state; filled in by store_suites_each() */
};

/* Adds the suite and all its entries; sets row->no.  ERR_CONFLICT if id or request_id exists. */
int store_suite_add(struct store *st, struct suite_row *row, const struct core_suite *s,
		    struct err *err);
int store_suite_save(struct store *st, int64_t no, const struct core_suite *s, int64_t now_ms,
		     struct err *err);
/* run: the id of its run; NULL: it has none. */
int store_suite_entry_save(struct store *st, int64_t no, int index, const struct suite_entry *e,
			   const char *run, struct err *err);
/* wall_ms 0: it goes on. */
int store_suite_ended(struct store *st, int64_t no, int64_t wall_ms, struct err *err);
/* Fills a core_suite made by core_suite_new() and calls fn for each entry that has a run.
 * ERR_CONFLICT: there are other entries than in the plan.  core_suite_restored() is the caller's. */
typedef void (*suite_run_fn)(void *ctx, int index, const char *run);
int store_suite_restore(struct store *st, int64_t no, struct core_suite *s, suite_run_fn fn,
			void *ctx, struct err *err);
/* The suite of this id, else of this unique prefix; ERR_NOT_FOUND, ERR_CONFLICT. */
int store_suite_find(struct store *st, struct str prefix, struct arena *a, struct suite_row *ret,
		     struct err *err);
/* *ret_no is 0 if there is no such suite. */
int store_suite_by_request(struct store *st, const char *request_id, int64_t *ret_no,
			   struct err *err);
int store_suite_get(struct store *st, int64_t no, struct arena *a, struct suite_row *ret,
		    struct err *err);
/* Newest first; doc is NULL here.  active: only those that have not ended.  limit 0: all.  Returning false stops; fn
 * may use the store. */
typedef bool (*suite_row_fn)(void *ctx, const struct suite_row *row);
int store_suites_each(struct store *st, bool active, int limit, struct arena *a, suite_row_fn fn,
		      void *ctx, struct err *err);
