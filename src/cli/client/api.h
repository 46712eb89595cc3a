#pragma once
/*
 * api - calls to a master: the user's own, which is found on its socket or started, or another one
 * (target.h).
 *
 * Every call may be repeated (submitting is idempotent by request id), so a
 * connection that breaks is opened again, starting the own master if needed, and the
 * call is made once more.  One struct api is used by one thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct arena;
struct cli_call;
struct doc;
struct http_client;
struct target;

#define API_MAX_ANSWER (64u << 20)

/* Owned: $REGATTA_HOME, else ${XDG_STATE_HOME:-~/.local/state}/regatta; absolute.  It need not
 * exist. */
int home_find(char **ret_home, struct err *err);

/* ERR_DENIED when the directory belongs to another user; one that does not exist is accepted. */
int home_check_owner(const char *home, struct err *err);

/* Connect to the master of this home; with start, start one in the background when none listens.
 * ERR_UNAVAILABLE if there is none.  *stop (may be NULL) ends the waiting with ERR_CANCELLED. */
int master_connect(const char *home, bool start, const volatile int *stop, struct http_client **ret,
		   struct err *err);

struct api {
	struct target *target;
	bool borrowed;		  /* the target belongs to another api, which outlives this one */
	bool start;		  /* start the own master when there is none */
	bool by_default;	  /* nobody named this master, the own one */
	bool hushed;		  /* say nothing about a master that takes long to answer */
	bool looking;		  /* for a run that the master does not know */
	struct http_client *http; /* NULL: not connected now */
	struct buf details;	  /* of the last refused call: one problem per line */
	const volatile int *stop;
};

/* The user's own master, whatever master is named. */
int api_open(struct api *api, bool start, struct err *err);
/* The master that the command line, the environment or the current context names.  Only the own one
 * is ever started. */
int api_open_named(struct api *api, const struct cli_call *c, bool start, struct err *err);
/* The same, with the context that a job names (NULL: none) where --master names nothing. */
int api_open_for(struct api *api, const struct cli_call *c, const char *context, bool start,
		 struct err *err);
/* The master that the run was handed to by the own one (contexts/<run>.json).  ERR_UNAVAILABLE if it does
 * not answer soon. */
int api_open_handed(struct api *api, const char *run, struct err *err);
/* The master that has a run which this one, the own, does not know, if it was found (find_masters.h).  ERR_NOT_FOUND: it
 * was not, or somebody named this master. */
int api_open_found(const struct api *api, const char *run, struct api *ret, struct err *err);
/* Takes the target, also on failure. */
int api_open_target(struct api *api, struct target *target, struct err *err);
void api_release(struct api *api);
/* A further api for the same master, hushed and not connected yet. */
void api_init_like(struct api *ret, const struct api *api);
/* The same, connected. */
int api_open_another(const struct api *api, struct api *ret, struct err *err);
/* The name of a master that is not the user's own; else NULL. */
const char *api_remote(const struct api *api);

/* The body of a 2xx answer is appended to *ret_body.  Another status becomes an error of the
 * kind and message in it. */
int api_call(struct api *api, const char *method, const char *path, struct str body, int timeout_ms,
	     struct buf *ret_body, struct err *err);
int api_get(struct api *api, const char *path, struct buf *ret_body, struct err *err);
/* The same, read into a tree. */
int api_get_doc(struct api *api, const char *path, struct arena *a, struct doc **ret,
		struct err *err);
/* Body from a descriptor, offset 0. */
int api_upload(struct api *api, const char *path, int fd, uint64_t size, struct err *err);
/* Begin a streamed answer on this connection (tried once: streams know their own offset).  The
 * reader owns the connection until its end; api_drop() leaves it early. */
int api_stream(struct api *api, const char *path, struct err *err);
/* The same for a POST with a JSON body. */
int api_stream_post(struct api *api, const char *path, struct str body, struct err *err);
void api_drop(struct api *api);
/* True if the connection was lost, so that connecting again may help. */
bool api_lost(const struct err *err);

/* cli_fail(), and below it the details of the refused call. */
int api_fail(const struct api *api, const struct err *err);

/* "/api/v1/runs/<run><tail>", the run percent-encoded.  Owned. */
char *api_run_path(const char *run, const char *tail);
/* "/api/v1/suites/<suite><tail>", in the arena. */
const char *api_suite_path(struct arena *a, struct str suite, const char *tail);
/* "?key=value", or "&key=value" after another one, percent-encoded; nothing when the value is NULL. */
void api_add_query(struct buf *path, const char *key, const char *value);
/* The id of the run: the word itself, or the latest run (named on stderr) when it is NULL.  Owned.  If the
 * own master has handed the run over and nobody named a master, api is then the one that has the run. */
int api_pick_run(struct api *api, const char *word, char **ret_id, struct err *err);
/* The same for who stays until the end: the full id of a run that exists.  For a run that the own master has
 * handed over, api stays the own one, which outlives the other and knows the end. */
int api_pick_run_to_end(struct api *api, const char *word, char **ret_id, struct err *err);

/* Has this master handed the run over to another one, which has it now? */
bool run_is_handed_over(const struct doc *run);

/* An answer as a tree.  Unlike json_parse it takes large arrays and objects: they are split and
 * read piece by piece. */
int reply_parse(struct str text, struct arena *a, struct doc **ret, struct err *err);
