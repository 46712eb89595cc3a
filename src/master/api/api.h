#pragma once
/* api - what the handlers of routes share.  A handler answers the exchange, or fills in err and
 * returns -1. */
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
	struct arena *arena; /* lives as long as the call */
	enum api_auth scope; /* of the caller */
	/* token or session of the caller, see auth.h; valid in on_headers() only */
	uint32_t holder;
	struct str params[API_MAX_PARAMS];
	const char *details; /* all problems, one per line; with an error only */
	const char **ids;    /* candidates of an ambiguous name */
	size_t nids;
};
typedef int (*api_fn)(struct api_call *c, struct err *err);

struct api_route {
	const char *method;
	const char *path; /* a part that begins with ':' is a parameter: "/api/v1/runs/:run" */
	enum api_auth auth;
	api_fn fn;
	api_fn open; /* for an upload: returns the descriptor for its body */
	/* Called when the body of an upload did not arrive completely; may be NULL. */
	void (*abort)(struct api_call *c);
};
/* After the handler follow .open and .abort, for an upload. */
#define ROUTE(method_, path_, auth_, ...)                                                          \
	{                                                                                          \
		.method = (method_), .path = (path_), .fn = __VA_ARGS__,                           \
		.auth = (auth_) + 0 * sizeof(char[(auth_) ? 1 : -1])                               \
	}

/* Finds the run that the first parameter names; give it back with live_run_done(). */
struct live_run *api_run(struct api_call *c, struct err *err);
/* *ret is NULL if the body is empty. */
int api_read_body(struct api_call *c, struct doc **ret, struct err *err);
/* An answer that is one JSON object: begin it, add members, end it. */
void api_answer_begin(struct jsonw *w, struct buf *text);
void api_answer_end(struct api_call *c, int status, struct jsonw *w);
void api_reply_json(struct api_call *c, int status, const struct buf *body);
/* Limit of open streams per holder over TCP.  Above it: ERR_THROTTLED, with Retry-After. */
#define API_MAX_STREAMS 256
int api_stream_allowed(struct api_call *c, struct err *err);
/* A number of the query from 0 to max. */
int api_query_int(const struct api_call *c, const char *name, int64_t fallback, int64_t max,
		  int64_t *ret, struct err *err);
/* For an answer that is sent after the handler has returned. */
void api_reply_error(struct http_exchange *x, const struct err *err);

/* runs.c */
/* Answers with the run object, and is done with the run. */
int api_reply_run(struct api_call *c, int status, struct live_run *lr);
int api_runs_list(struct api_call *c, struct err *err);
int api_run_submit(struct api_call *c, struct err *err);
/* Answers lr->answer when the run is committed, or with why_not when it cannot be. */
void api_run_stored(struct live_run *lr, const struct err *why_not);
int api_run_get(struct api_call *c, struct err *err);
int api_run_watch(struct api_call *c, struct err *err);
int api_run_events(struct api_call *c, struct err *err);
int api_run_cost(struct api_call *c, struct err *err);
int api_run_metrics(struct api_call *c, struct err *err);
int api_run_job(struct api_call *c, struct err *err);
int api_run_plan(struct api_call *c, struct err *err);
int api_run_record(struct api_call *c, struct err *err);
int api_run_resize(struct api_call *c, struct err *err);
int api_run_cancel(struct api_call *c, struct err *err);
int api_run_cleanup(struct api_call *c, struct err *err);
/* labels.c */
int api_run_tags(struct api_call *c, struct err *err);
int api_run_note(struct api_call *c, struct err *err);
/* logs.c */
int api_run_log(struct api_call *c, struct err *err);
/* suites.c */
int api_suites_list(struct api_call *c, struct err *err);
int api_suite_submit(struct api_call *c, struct err *err);
int api_suite_get(struct api_call *c, struct err *err);
int api_suite_report(struct api_call *c, struct err *err);
int api_suite_file(struct api_call *c, struct err *err);
int api_suite_on_exit(struct api_call *c, struct err *err);
int api_suite_cancel(struct api_call *c, struct err *err);
int api_suite_resume(struct api_call *c, struct err *err);
int api_suite_engines(struct api_call *c, struct err *err);
/* exec.c */
int api_run_exec(struct api_call *c, struct err *err);
int api_exec_input(struct api_call *c, struct err *err);
int api_exec_control(struct api_call *c, struct err *err);
/* imports.c */
int api_import(struct api_call *c, struct err *err);
/* hosts.c */
int api_hosts_list(struct api_call *c, struct err *err);
int api_host_forget(struct api_call *c, struct err *err);
/* page.c, program.c, prometheus.c, old_paths.c */
int api_page(struct api_call *c, struct err *err);
int api_program(struct api_call *c, struct err *err);
int api_prometheus(struct api_call *c, struct err *err);
int old_status(struct api_call *c, struct err *err);
int old_list_logs(struct api_call *c, struct err *err);
int old_log(struct api_call *c, struct err *err);
int old_cleanup(struct api_call *c, struct err *err);
/* report.c */
/* Allows the style inside the page of a report and nothing else. */
#define REPORT_CSP                                                                                 \
	"default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; "     \
	"frame-ancestors 'none'; sandbox"
int api_run_report(struct api_call *c, struct err *err);
int api_run_metrics_csv(struct api_call *c, struct err *err);
int api_compare(struct api_call *c, struct err *err);
/* run_outputs.c */
int api_run_outputs(struct api_call *c, struct err *err);
int api_run_size(struct api_call *c, struct err *err);
int api_run_output(struct api_call *c, struct err *err);
int api_run_result(struct api_call *c, struct err *err);
/* blobs.c */
int api_blob_head(struct api_call *c, struct err *err);
int api_blob_put(struct api_call *c, struct err *err);
/* Answers with a file, which this closes, or with a part of it if the request has a Range. */
int api_reply_part(struct api_call *c, int file, struct err *err);
/* Returns a descriptor, or -1. */
int api_blob_open(struct api_call *c, struct err *err);
void api_blob_abort(struct api_call *c);
/* For a node: serves an archive of its run, from an offset on if the request has a Range. */
int api_node_blob(struct api_call *c, struct err *err);
bool blob_name_ok(struct str sha256);
/* input_urls.c: for a node: where it fetches objects of an input from. */
int api_node_urls(struct api_call *c, struct err *err);
/* registry.c: for a node: user and password of the registry of its image. */
int api_node_registry(struct api_call *c, struct err *err);
