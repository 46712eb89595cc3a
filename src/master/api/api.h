#pragma once
/* api - the route table's types.  A handler answers the exchange, or fills err and returns -1. */
#include "base/err.h"
#include "master/api/auth.h"
#include "master/internal.h"
#include "net/http_server.h"

struct jsonw;

extern const struct http_handler api_handler;

#define API_MAX_PARAMS 3

struct api_call {
	struct master *m;
	struct http_exchange *x;
	const struct http_request *req;
	struct arena *arena; /* of the call */
	enum api_auth scope; /* of the caller */
	uint32_t holder;     /* of which token or session, see auth.h; in on_headers only */
	struct str params[API_MAX_PARAMS];
	const char *details; /* several problems, one a line; with an error only */
	const char **ids;    /* candidates of an ambiguous name */
	size_t nids;
};
typedef int (*api_fn)(struct api_call *c, struct err *err);

struct api_route {
	const char *method,
		*path; /* "/api/v1/runs/:run": a part that begins with ':' is a parameter */
	enum api_auth auth;
	api_fn fn;
	api_fn open; /* of an upload: the descriptor for its body */
	void (*abort)(
		struct api_call *c); /* ... and it did not come; NULL: nothing is to be done */
};
/* Behind the handler: .open and .abort of an upload. */
#define ROUTE(method_, path_, auth_, ...)                                                          \
	{                                                                                          \
		.method = (method_), .path = (path_), .fn = __VA_ARGS__,                           \
		.auth = (auth_) + 0 * sizeof(char[(auth_) ? 1 : -1])                               \
	}

/* The run of the first parameter; give it back with live_run_done(). */
struct live_run *api_run(struct api_call *c, struct err *err);
/* An empty body is NULL. */
int api_read_body(struct api_call *c, struct doc **ret, struct err *err);
/* An object as the answer: begin it, add members, end it. */
void api_answer_begin(struct jsonw *w, struct buf *text);
void api_answer_end(struct api_call *c, int status, struct jsonw *w);
void api_reply_json(struct api_call *c, int status, const struct buf *body);
/* A holder may have API_MAX_STREAMS open over TCP: ERR_THROTTLED, with Retry-After. */
#define API_MAX_STREAMS 256
int api_stream_allowed(struct api_call *c, struct err *err);
/* For an answer that comes after the handler's return. */
void api_reply_error(struct http_exchange *x, const struct err *err);

/* runs.c */
int api_runs_list(struct api_call *c, struct err *err);
int api_run_submit(struct api_call *c, struct err *err);
/* The run is committed, or cannot be: answers lr->answer. */
void api_run_stored(struct live_run *lr, const struct err *why_not);
int api_run_get(struct api_call *c, struct err *err);
int api_run_watch(struct api_call *c, struct err *err);
int api_run_events(struct api_call *c, struct err *err);
int api_run_log(struct api_call *c, struct err *err);
int api_run_metrics(struct api_call *c, struct err *err);
int api_run_job(struct api_call *c, struct err *err);
int api_run_plan(struct api_call *c, struct err *err);
int api_run_resize(struct api_call *c, struct err *err);
int api_run_cancel(struct api_call *c, struct err *err);
int api_run_cleanup(struct api_call *c, struct err *err);
/* hosts.c */
int api_hosts_list(struct api_call *c, struct err *err);
/* page.c, prometheus.c, old_paths.c */
int api_page(struct api_call *c, struct err *err);
int api_prometheus(struct api_call *c, struct err *err);
int old_status(struct api_call *c, struct err *err);
int old_list_logs(struct api_call *c, struct err *err);
int old_log(struct api_call *c, struct err *err);
int old_cleanup(struct api_call *c, struct err *err);
/* report.c */
/* The page of a report brings its own style and nothing else. */
#define REPORT_CSP                                                                                 \
	"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "     \
	"frame-ancestors 'none'; sandbox"
int api_run_report(struct api_call *c, struct err *err);
int api_run_metrics_csv(struct api_call *c, struct err *err);
int api_compare(struct api_call *c, struct err *err);
/* blobs.c */
int api_blob_head(struct api_call *c, struct err *err);
int api_blob_put(struct api_call *c, struct err *err);
int api_blob_open(struct api_call *c, struct err *err); /* descriptor or -1 */
void api_blob_abort(struct api_call *c);
/* For a node: those of its run, from an offset on if it asks so. */
int api_node_blob(struct api_call *c, struct err *err);
bool blob_name_ok(struct str sha256);
