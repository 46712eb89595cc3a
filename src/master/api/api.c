/*
 * The route table and the checks that every request goes through: the caller, the scope that the
 * route needs, the shape of errors.  Callers without the scope `read` are refused before they
 * can learn whether a path exists.
 */
#include "master/api/api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "link/layout.h"
#include "master/api/login.h"
#include "master/api/outputs.h"
#include "master/api/previous.h"
#include "master/api/sse.h"
#include "master/api/tokens.h"
#include "master/clock.h"
#include "master/runs.h"
#include "master/suites.h"
#include "sys/loop.h"
#include "web/page.h"

#define ANSWER_MAX (1u << 20)
#define ERROR_MAX_BYTES (256 * 1024)
#define PATH_MAX_PARTS 8

static int healthz(struct api_call *c, struct err *err);
static int version(struct api_call *c, struct err *err);
static int shutdown_master(struct api_call *c, struct err *err);

static const struct api_route routes[] = {
	ROUTE("GET", "/healthz", API_OPEN, healthz),
	ROUTE("GET", "/", API_OPEN, api_page),
	ROUTE("GET", "/run/:run", API_OPEN, api_page),
	ROUTE("GET", "/compare", API_OPEN, api_page),
	ROUTE("GET", "/suites", API_OPEN, api_page),
	ROUTE("GET", "/suite/:suite", API_OPEN, api_page),
	ROUTE("GET", "/assets/:name", API_OPEN, api_page),
	ROUTE("GET", "/bin/:sha256", API_OPEN, api_program),
	ROUTE("GET", "/login", API_OPEN, api_login),
	ROUTE("GET", "/api/v1/version", API_READ, version),
	ROUTE("GET", "/api/v1/me", API_READ, api_me),
	ROUTE("GET", "/api/v1/events", API_READ, api_events),
	ROUTE("GET", "/api/v1/hosts", API_READ, api_hosts_list),
	ROUTE("DELETE", "/api/v1/hosts/:host", API_ADMIN, api_host_forget),
	ROUTE("GET", "/api/v1/runs", API_READ, api_runs_list),
	ROUTE("POST", "/api/v1/runs", API_SUBMIT, api_run_submit),
	ROUTE("POST", "/api/v1/imports", API_SUBMIT, api_import),
	ROUTE("GET", "/api/v1/runs/:run", API_READ, api_run_get),
	ROUTE("GET", "/api/v1/runs/:run/watch", API_READ, api_run_watch),
	ROUTE("GET", "/api/v1/runs/:run/events", API_READ, api_run_events),
	ROUTE("GET", "/api/v1/runs/:run/logs/:node", API_READ, api_run_log),
	ROUTE("GET", "/api/v1/runs/:run/metrics", API_READ, api_run_metrics),
	ROUTE("GET", "/api/v1/runs/:run/metrics.csv", API_READ, api_run_metrics_csv),
	ROUTE("GET", "/api/v1/runs/:run/report", API_READ, api_run_report),
	ROUTE("GET", "/api/v1/runs/:run/cost", API_READ, api_run_cost),
	ROUTE("GET", "/api/v1/runs/:run/size", API_READ, api_run_size),
	ROUTE("GET", "/api/v1/runs/:run/outputs", API_READ, api_run_outputs),
	ROUTE("GET", "/api/v1/runs/:run/outputs/file", API_READ, api_run_output),
	ROUTE("GET", "/api/v1/runs/:run/results", API_ADMIN, api_run_result),
	ROUTE("GET", "/api/v1/compare", API_READ, api_compare),
	ROUTE("GET", "/api/v1/suites", API_READ, api_suites_list),
	ROUTE("POST", "/api/v1/suites", API_SUBMIT, api_suite_submit),
	ROUTE("GET", "/api/v1/suites/:suite", API_READ, api_suite_get),
	ROUTE("GET", "/api/v1/suites/:suite/report", API_READ, api_suite_report),
	ROUTE("GET", "/api/v1/suites/:suite/files/:name", API_READ, api_suite_file),
	ROUTE("POST", "/api/v1/suites/:suite/on_exit", API_SUBMIT, api_suite_on_exit),
	ROUTE("POST", "/api/v1/suites/:suite/cancel", API_SUBMIT, api_suite_cancel),
	ROUTE("POST", "/api/v1/suites/:suite/resume", API_SUBMIT, api_suite_resume),
	ROUTE("GET", "/api/v1/suites/:suite/engines", API_SUBMIT, api_suite_engines),
	ROUTE("GET", "/api/v1/runs/:run/job", API_READ, api_run_job),
	ROUTE("GET", "/api/v1/runs/:run/plan", API_READ, api_run_plan),
	ROUTE("GET", "/api/v1/runs/:run/record", API_READ, api_run_record),
	ROUTE("POST", "/api/v1/runs/:run/cancel", API_SUBMIT, api_run_cancel),
	ROUTE("POST", "/api/v1/runs/:run/resize", API_SUBMIT, api_run_resize),
	ROUTE("POST", "/api/v1/runs/:run/tags", API_SUBMIT, api_run_tags),
	ROUTE("POST", "/api/v1/runs/:run/notes", API_SUBMIT, api_run_note),
	ROUTE("POST", "/api/v1/runs/:run/cleanup", API_ADMIN, api_run_cleanup),
	ROUTE("POST", "/api/v1/runs/:run/exec/:node", API_ADMIN, api_run_exec),
	ROUTE("POST", "/api/v1/exec/:id/input", API_ADMIN, api_exec_input),
	ROUTE("POST", "/api/v1/exec/:id/control", API_ADMIN, api_exec_control),
	ROUTE("HEAD", "/api/v1/blobs/:sha256", API_SUBMIT, api_blob_head),
	ROUTE("PUT", "/api/v1/blobs/:sha256", API_SUBMIT, api_blob_put, .open = api_blob_open,
	      .abort = api_blob_abort),
	ROUTE("GET", "/api/v1/runs/:run/nodes/:node/blobs/:sha256", API_NODE, api_node_blob),
	ROUTE("POST", "/api/v1/runs/:run/nodes/:node/urls", API_NODE, api_node_urls),
	ROUTE("POST", "/api/v1/runs/:run/nodes/:node/registry", API_NODE, api_node_registry),
	ROUTE("GET", "/api/v1/runs/:run/nodes/:node/previous", API_NODE, api_node_previous),
	ROUTE("GET", "/api/v1/runs/:run/nodes/:node/outputs", API_NODE, api_output_state),
	ROUTE("PUT", "/api/v1/runs/:run/nodes/:node/outputs", API_NODE, api_output_put,
	      .open = api_output_open),
	ROUTE("POST", "/api/v1/shutdown", API_ADMIN, shutdown_master),
	ROUTE("POST", "/api/v1/login", API_ADMIN, api_login_code),
	ROUTE("POST", "/api/v1/logout", API_READ, api_logout),
	ROUTE("GET", "/api/v1/tokens", API_ADMIN, api_tokens_list),
	ROUTE("POST", "/api/v1/tokens", API_ADMIN, api_token_new),
	ROUTE("DELETE", "/api/v1/tokens/:id", API_ADMIN, api_token_revoke),
	ROUTE("GET", "/metrics", API_READ, api_prometheus),
	ROUTE("GET", "/status", API_READ, old_status),
	ROUTE("GET", "/list_logs", API_READ, old_list_logs),
	ROUTE("GET", "/log/:name", API_READ, old_log),
	ROUTE("GET", "/log/:run/:file", API_READ, old_log),
	ROUTE("POST", "/cleanup", API_ADMIN, old_cleanup),
};
#define ROUTES (sizeof(routes) / sizeof(routes[0]))

static int status_of(enum err_kind kind)
{
	switch (kind) {
	case ERR_INVALID:
		return 400;
	case ERR_DENIED:
		return 403;
	case ERR_NOT_FOUND:
		return 404;
	case ERR_CONFLICT:
		return 409;
	case ERR_THROTTLED:
		return 429;
	case ERR_CAPACITY:
	case ERR_QUOTA:
		return 507;
	case ERR_TIMEOUT:
		return 504;
	case ERR_UNAVAILABLE:
	case ERR_PREEMPTED:
		return 503;
	case ERR_NONE:
	case ERR_PROTOCOL:
	case ERR_IO:
	case ERR_CANCELLED:
		return 500;
	}
	return 500;
}

void api_reply_json(struct api_call *c, int status, const struct buf *body)
{
	http_reply(c->x, status, "application/json", buf_str(body));
}

void api_answer_begin(struct jsonw *w, struct buf *text)
{
	buf_init(text, ANSWER_MAX);
	jsonw_init(w, text);
	jsonw_open(w, '{');
}

void api_answer_end(struct api_call *c, int status, struct jsonw *w)
{
	jsonw_close(w);
	buf_addc(w->out, '\n');
	api_reply_json(c, status, w->out);
	buf_release(w->out);
}

int api_read_body(struct api_call *c, struct doc **ret, struct err *err)
{
	*ret = NULL;
	if (c->req->body.n && json_parse(c->req->body, c->arena, ret, err) < 0)
		return err_wrap(err, "request body");
	if (*ret && (*ret)->type != DOC_TABLE)
		return err_set(err, ERR_INVALID, "request body: a JSON object is expected");
	return 0;
}

static void reply_error(struct api_call *c, int status, const struct err *err)
{
	struct buf text;
	struct jsonw w;

	buf_init(&text, ERROR_MAX_BYTES);
	jsonw_init(&w, &text);
	jsonw_open_error(&w, err);
	if (c->details || c->nids) {
		struct str rest = str_from(c->details);
		jsonw_key(&w, "details");
		jsonw_open(&w, '[');
		while (rest.p && rest.n)
			jsonw_str(&w, str_cut(&rest, '\n'));
		for (size_t i = 0; i < c->nids; i++)
			jsonw_z(&w, c->ids[i]);
		jsonw_close(&w);
	}
	jsonw_close(&w);
	jsonw_close(&w);
	buf_addc(&text, '\n');
	api_reply_json(c, status, &text);
	buf_release(&text);
}

void api_reply_error(struct http_exchange *x, const struct err *err)
{
	struct api_call c = {.x = x};

	reply_error(&c, status_of(err->kind), err);
}

int api_stream_allowed(struct api_call *c, struct err *err)
{
	uint32_t holder = auth_client(c->x);

	if (holder == AUTH_LOCAL || auth_count_streams(c->m, holder) < API_MAX_STREAMS)
		return 0;
	http_add_header(c->x, "Retry-After", "5");
	return err_set(err, ERR_THROTTLED,
		       "this token or session has %d streams open: close some first",
		       API_MAX_STREAMS);
}

struct live_run *api_run(struct api_call *c, struct err *err)
{
	return live_run_find(c->m, c->params[0], c->arena, &c->ids, &c->nids, err);
}

static int healthz(struct api_call *c, struct err *err)
{
	(void)err;
	http_reply(c->x, 200, "text/plain; charset=utf-8", STR("ok\n"));
	return 0;
}

static int version(struct api_call *c, struct err *err)
{
	struct buf text;
	struct jsonw w;

	(void)err;
	buf_init(&text, 8192);
	jsonw_init(&w, &text);
	jsonw_open(&w, '{');
	jsonw_kz(&w, "version", REGATTA_VERSION);
	jsonw_kint(&w, "proto", LINK_PROTO);
	jsonw_kz(&w, "home", c->m->home);
	jsonw_kint(&w, "pid", getpid());
	jsonw_kint(&w, "runs_active", (int64_t)runs_active(c->m));
	jsonw_kz(&w, "http", c->m->http_url[0] ? c->m->http_url : NULL);
	jsonw_close(&w);
	api_reply_json(c, 200, &text);
	buf_release(&text);
	return 0;
}

static void stop_now(void *ctx)
{
	struct master *m = ctx;
	loop_stop(m->loop);
}

/* With {"cancel":true} every run is cancelled, and the master stops when the last one has ended
 * (on_idle_check() in master.c). */
static int shutdown_master(struct api_call *c, struct err *err)
{
	struct doc *body = NULL;
	char text[64];

	if (c->req->body.n && json_parse(c->req->body, c->arena, &body, err) < 0)
		return -1;
	snprintf(text, sizeof(text), "{\"runs_active\":%zu}\n", runs_active(c->m));
	http_reply(c->x, 200, "application/json", str_from(text));
	c->m->stopping = true;
	if (doc_bool(body, "cancel", false)) {
		suites_cancel_all(c->m->suites, "cancelled: the master was told to stop");
		runs_cancel_all(c->m, "cancelled: the master was told to stop");
		loop_timer_set(c->m->idle, 0);
	} else {
		loop_soon(c->m->loop, stop_now, c->m);
	}
	return 0;
}

/* Splits a path at '/' and decodes its parts, which are never used as file names. */
static int path_parts(struct str path, struct arena *a, struct str parts[static PATH_MAX_PARTS])
{
	int n = 0;
	struct str rest = {path.p + 1, path.n - 1};

	while (rest.p) {
		struct buf text;
		if (n == PATH_MAX_PARTS)
			return -1;
		buf_init(&text, 4096);
		bool ok = url_decode(&text, str_cut(&rest, '/'), false);
		parts[n++] = arena_str(a, buf_str(&text));
		ok = ok && !text.overflow;
		buf_release(&text);
		if (!ok)
			return -1;
	}
	return n;
}

static bool route_matches(const struct api_route *r, const struct str *parts, int n,
			  struct str params[static API_MAX_PARAMS])
{
	struct str rest = str_from(r->path + 1);
	int i = 0, k = 0;

	while (rest.p) {
		struct str want = str_cut(&rest, '/');
		if (i == n)
			return false;
		if (want.n && want.p[0] == ':' && k < API_MAX_PARAMS && parts[i].n)
			params[k++] = parts[i];
		else if (!str_eq(want, parts[i]))
			return false;
		i++;
	}
	return i == n;
}

/* A route with GET answers HEAD as well (http_reply() leaves the body out), except a login link,
 * which a HEAD would use up. */
static bool has_head(const struct api_route *r)
{
	return !strcmp(r->method, "GET") && r->fn != api_login;
}

/* The route of a request; NULL: none, and *ret_status and err are set. */
static const struct api_route *find_route(struct api_call *c, int *ret_status, struct err *err)
{
	struct str parts[PATH_MAX_PARTS];
	int n = path_parts(c->req->path, c->arena, parts);
	struct buf allow;

	buf_init(&allow, 256);
	for (size_t i = 0; n > 0 && i < ROUTES; i++) {
		struct str params[API_MAX_PARAMS] = {0};
		if (!route_matches(&routes[i], parts, n, params))
			continue;
		if (str_is(c->req->method, routes[i].method) ||
		    (str_is(c->req->method, "HEAD") && has_head(&routes[i]))) {
			memcpy(c->params, params, sizeof(params));
			buf_release(&allow);
			return &routes[i];
		}
		buf_printf(&allow, "%s%s%s", allow.n ? ", " : "", routes[i].method,
			   has_head(&routes[i]) ? ", HEAD" : "");
	}
	*ret_status = allow.n ? 405 : 404;
	if (allow.n) {
		http_add_header(c->x, "Allow", allow.p);
		err_set(err, ERR_INVALID, "this path does not take that method");
	} else {
		err_set(err, ERR_NOT_FOUND, "no such path");
	}
	buf_release(&allow);
	return NULL;
}

/* Security and cache headers, added to every answer. */
static void add_headers(struct http_exchange *x, bool is_page, bool is_report)
{
	http_add_header(x, "Content-Security-Policy", is_report ? REPORT_CSP : PAGE_CSP);
	http_add_header(x, "X-Content-Type-Options", "nosniff");
	http_add_header(x, "Referrer-Policy", "no-referrer");
	http_add_header(x, "Cross-Origin-Resource-Policy", "same-origin");
	http_add_header(x, "Cache-Control", is_page ? "no-cache" : "no-store");
}

/* No handler of a GET reads a body: a GET with one is refused before the body takes memory. */
static bool has_needless_body(const struct http_exchange *x, const struct api_route *r)
{
	struct str length = http_header(x, "content-length");

	return !strcmp(r->method, "GET") && length.p && !str_is(length, "0");
}

/* Called before a body is read: checks the caller, and opens the file that an upload goes to. */
static int on_headers(void *ctx, struct http_exchange *x)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct master *m = ctx;
	struct api_call c = {.m = m, .x = x, .req = http_request(x), .arena = a};
	struct err err = {0}, why = {0};
	int status = 0, denied = 0;
	const struct api_route *r = find_route(&c, &status, &err);

	add_headers(x, r && r->fn == api_page, r && r->fn == api_run_report);
	enum api_auth scope = auth_check(&c, r ? r->auth : API_READ, &denied, &why);
	if (!scope) {
		reply_error(&c, denied, &why);
		return -2;
	}
	if (!r) {
		reply_error(&c, status, &err);
		return -2;
	}
	if (has_needless_body(x, r)) {
		err_set(&err, ERR_INVALID, "a GET takes no body");
		reply_error(&c, 400, &err);
		return -2;
	}
	http_set_user(x, auth_user(scope, c.holder));
	if (!r->open)
		return -1;
	int fd = r->open(&c, &err);

	if (fd >= 0)
		return fd;
	reply_error(&c, status_of(err.kind), &err);
	return -2;
}

static void on_request(void *ctx, struct http_exchange *x)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct api_call c = {.m = ctx, .x = x, .req = http_request(x), .arena = a};
	struct err err = {0};
	int status = 403;
	const struct api_route *r = find_route(&c, &status, &err);

	c.scope = auth_user_scope(http_user(x));
	if (!r || c.scope < r->auth ||
	    (c.scope == API_NODE && r->auth != API_NODE)) { /* on_headers() refused these already */
		reply_error(&c, status, &err);
		return;
	}
	if (r->auth != API_OPEN)
		c.m->last_busy_ms = master_now(c.m);
	if (r->fn(&c, &err) < 0)
		reply_error(&c, status_of(err.kind), &err);
}

/* The client closed the connection, or was too slow, in the middle of a body. */
static void on_abort(void *ctx, struct http_exchange *x)
{
	CLEANUP(arena_freep) struct arena *a = arena_new();
	struct api_call c = {.m = ctx, .x = x, .req = http_request(x), .arena = a};
	int status;
	const struct api_route *r = find_route(&c, &status, NULL);

	if (r && r->abort)
		r->abort(&c);
}

const struct http_handler api_handler = {
	.on_headers = on_headers, .on_request = on_request, .on_abort = on_abort};
