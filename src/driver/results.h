#pragma once
/*
 * results - the directory of an ended run as objects of a store, <url><run>/<file>, and back.
 *
 * All files but those of nodes and secrets go there, each checked by its sum; what is there with the
 * same bytes is not sent again, so that a copy that was cut off goes on.  index.json names all files
 * with size and SHA-256 and is written last: where it is, the copy is complete.
 */
#include <stdbool.h>
#include <stdint.h>

struct arena;
struct deadline;
struct err;
struct http_client;

#define RESULTS_INDEX "index.json"
#define RESULTS_RECORD "record.db" /* the rows of the run, see store_record_write() */
#define RESULTS_MAX_FILES 1000000

struct results_place {
	const char *url;	 /* "s3://bucket/runs/"; NULL: in a directory of this machine */
	const char *run;	 /* its id */
	const char *install;	 /* whose run it is */
	const char *credentials; /* JSON; NULL: what this process finds */
	int keep_days;
};

struct results_sum {
	uint64_t files, bytes; /* of the run */
	uint64_t sent;	       /* files that were not there yet */
};

/* ERR_CONFLICT: a run of this name of another install is there. */
int results_put(const char *dir, const struct results_place *at, const struct deadline *d,
		struct results_sum *ret, struct err *err);
/* Writes index.json into the directory itself, for whoever fetches its files from there. */
int results_index(const char *dir, const struct results_place *at, struct results_sum *ret,
		  struct err *err);
/* May a file of that name, below the directory of a run, leave it? */
bool results_file_ok(const char *name);
/* Into a directory that may have a part of it already.  ERR_NOT_FOUND if no complete copy is there;
 * ERR_INVALID if its files are not what the index says. */
int results_get(const char *dir, const struct results_place *at, const struct deadline *d,
		struct results_sum *ret, struct err *err);

/* The same from the master that has the run; index.json comes last into the directory.  What an earlier try has
 * fetched is not fetched again. */
int results_fetch(struct http_client *from, const char *run, const char *dir,
		  const struct deadline *d, struct results_sum *ret, struct err *err);
/* Moves a complete copy, but its index.json, from one directory of this file system to another.  May be repeated.  ERR_NOT_FOUND if no complete copy is there. */
int results_move(const char *from, const char *dir, const char *run, struct results_sum *ret,
		 struct err *err);

/* A copy that was looked for where the engines leave them (engine_tools.h); texts of the arena. */
struct results_found {
	const char *url; /* where; NULL: nothing is set up on this machine, and nobody was asked */
	const char *run; /* its whole id; NULL: it is not there */
	const char *credentials; /* JSON: with which it can be read */
};
/* word: an id, or the beginning of one.  ERR_CONFLICT: it is the beginning of several. */
int results_find(const char *word, const struct deadline *d, struct arena *a,
		 struct results_found *ret, struct err *err);
