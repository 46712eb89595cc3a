#pragma once
/*
 * api - calls to the user's master, which is found on its socket or started.
 *
 * Every call may be repeated (submitting is idempotent by request id), so a
 * connection that breaks is opened again, starting a master if needed, and the
 * call is made once more.  One struct api is used by one thread.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct arena;
struct doc;
struct http_client;

#define API_MAX_ANSWER (64u << 20)

/* Owned: $REGATTA_HOME, else ${XDG_STATE_HOME:-~/.local/state}/regatta; absolute.  It need not
 * exist. */
int home_find(char **ret_home, struct err *err);

/* ERR_DENIED when the directory belongs to another user; one that does not exist is accepted. */
int home_check_owner(const char *home, struct err *err);

/* Connect to the master of this home; with start, start one in the background when nobody listens.
 * ERR_UNAVAILABLE otherwise.  *stop (may be NULL) ends the waiting with ERR_CANCELLED. */
int master_connect(const char *home, bool start, const volatile int *stop, struct http_client **ret,
		   struct err *err);

struct api {
	char *home;
	bool start;		  /* start a master when there is none */
	struct http_client *http; /* NULL: not connected now */
	struct buf details;	  /* of the last refused call: one problem per line */
	const volatile int *stop;
};

int api_open(struct api *api, bool start, struct err *err);
void api_release(struct api *api);
/* A second connection to the same master. */
int api_open_another(const struct api *api, struct api *ret, struct err *err);

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
void api_drop(struct api *api);
/* True if the connection was lost, so that connecting again may help. */
bool api_lost(const struct err *err);

/* cli_fail(), and below it the details of the refused call. */
int api_fail(const struct api *api, const struct err *err);

/* "/api/v1/runs/<run><tail>", the run percent-encoded.  Owned. */
char *api_run_path(const char *run, const char *tail);
/* "?key=value", or "&key=value" after another one, percent-encoded; nothing when the value is NULL. */
void api_add_query(struct buf *path, const char *key, const char *value);
/* The run a user means: the word, or the latest run (said on stderr) when it is NULL.  Owned. */
int api_pick_run(struct api *api, const char *word, char **ret_id, struct err *err);

/* An answer as a tree.  Unlike json_parse it takes large arrays and objects: they are split and
 * read piece by piece. */
int reply_parse(struct str text, struct arena *a, struct doc **ret, struct err *err);
