/*
 * A request is one passage: a worker dials the master and reads the head of its answer, the loop begins to answer the
 * browser, and from then on a worker waits for the next bytes and the loop passes them on, one read at a time.
 * Connections to the master whose answer was read to its end are used again.
 */
#include "cli/client/browser_gateway.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/deadline.h"
#include "base/err.h"
#include "base/vec.h"
#include "cli/client/target.h"
#include "fmt/jsonw.h"
#include "master/api/origin.h"
#include "master/api/session.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "sys/loop.h"
#include "sys/worker.h"
#include "web/page.h"

#define THREADS 16 /* a browser has six connections to one address */
#define DIAL_MS 10000
#define CALL_MS 60000
#define TURN_MS 500 /* a stream without bytes gives its thread to others so often */
#define CHUNK (64u << 10)
#define MOST_QUEUED (512u << 10) /* for a browser that reads slowly */
#define MOST_IDLE 8
#define MAX_ANSWER (4u << 20) /* of an answer other than 2xx */

struct browser_gateway {
	const struct target *to;
	char *run;
	struct loop *loop;
	struct http_server *http;
	struct workers *workers;
	struct sessions *sessions;
	int port;
	VEC(struct http_client *) idle;
};

struct passage {
	struct browser_gateway *g;
	struct http_exchange *x; /* NULL: the browser has left */
	char *method, *path, *type;
	struct http_field fields[2]; /* of the request; their values are owned */
	size_t nfields;
	struct buf body; /* of the request */
	struct http_client *c;
	struct http_answer ans; /* its body: of an answer other than 2xx */
	struct buf bytes;
	volatile int stop;
	int rc;	    /* of the last call */
	bool busy;  /* a worker has it */
	bool whole; /* the answer was read to its end */
	struct err err;
};

static void read_more(void *ctx);

static void passage_free(struct passage *p)
{
	struct browser_gateway *g = p->g;

	if (p->c && p->whole && g->idle.n < MOST_IDLE)
		*vec_push(&g->idle) = p->c;
	else
		http_client_free(p->c);
	http_answer_release(&p->ans);
	buf_release(&p->body);
	buf_release(&p->bytes);
	free(p->method);
	free(p->path);
	free(p->type);
	for (size_t i = 0; i < p->nfields; i++)
		free((char *)(uintptr_t)p->fields[i].value);
	free(p);
}

static void browser_left(void *ctx)
{
	struct passage *p = ctx;

	p->x = NULL;
	p->stop = 1;
	if (!p->busy)
		passage_free(p);
}

/* As a master answers. */
static void refuse(struct http_exchange *x, int status, const struct err *err)
{
	CLEANUP(buf_release) struct buf text = {0};
	struct jsonw w;

	buf_init(&text, 8192);
	jsonw_init(&w, &text);
	jsonw_open_error(&w, err);
	jsonw_close(&w);
	jsonw_close(&w);
	http_reply(x, status, "application/json", buf_str(&text));
}

static void refuse_because(struct http_exchange *x, int status, enum err_kind kind, const char *why)
{
	struct err err;

	err_set(&err, kind, "%s", why);
	refuse(x, status, &err);
}

/* ---- a passage ---- */

static void read_run(void *arg, const struct deadline *d)
{
	struct passage *p = arg;
	char bytes[CHUNK];
	size_t n = 0;

	(void)d;
	p->err = (struct err){0};
	p->rc = http_stream_read(p->c, bytes, sizeof(bytes), TURN_MS, &p->stop, &n, &p->err);
	p->whole = p->rc == 0 && n == 0;
	buf_reset(&p->bytes);
	buf_add(&p->bytes, bytes, n);
}

static void read_done(void *arg, enum err_kind how)
{
	struct passage *p = arg;
	bool waits = p->rc < 0 && p->err.kind == ERR_TIMEOUT;

	p->busy = false;
	if (!p->x) {
		passage_free(p);
	} else if (how != ERR_NONE || p->whole || (p->rc < 0 && !waits)) {
		http_stream_end(p->x);
		passage_free(p);
	} else if (p->bytes.n > 0 && !http_stream_write(p->x, buf_str(&p->bytes))) {
		; /* browser_left() follows */
	} else if (http_stream_queued(p->x) > MOST_QUEUED) {
		http_stream_when_empty(p->x, read_more, p);
	} else {
		read_more(p);
	}
}

static void read_more(void *ctx)
{
	struct passage *p = ctx;

	p->busy = true;
	workers_submit(p->g->workers, read_run, read_done, p, -1);
}

static void ask_run(void *arg, const struct deadline *d)
{
	struct passage *p = arg;
	const struct http_outgoing r = {
		.method = p->method,
		.path = p->path,
		.timeout_ms = CALL_MS,
		.fields = p->fields,
		.nfields = p->nfields,
		.body = buf_str(&p->body),
		.type = p->body.n ? p->type : NULL,
	};

	p->rc = p->c ? 0 : target_dial(p->g->to, DIAL_MS, d->stop, &p->c, &p->err);
	if (p->rc == 0) {
		http_client_set_stop(p->c, d->stop);
		p->rc = http_send_stream(p->c, &r, &p->ans, &p->err);
	}
}

static void add_headers(struct http_exchange *x, const char *policy, bool is_page)
{
	http_add_header(x, "Content-Security-Policy", policy);
	http_add_header(x, "X-Content-Type-Options", "nosniff");
	http_add_header(x, "Referrer-Policy", "no-referrer");
	http_add_header(x, "Cross-Origin-Resource-Policy", "same-origin");
	http_add_header(x, "Cache-Control", is_page ? "no-cache" : "no-store");
}

/* Those that say something about the bytes. */
static void pass_headers(struct passage *p)
{
	static const char *const names[] = {"Content-Disposition", "Content-Range", "Accept-Ranges",
					    "Regatta-Offset",	   "Link",	    "Retry-After"};
	struct str policy = http_client_header(p->c, "Content-Security-Policy");
	CLEANUP(freep) char *text = policy.p ? xstrndup(policy.p, policy.n) : NULL;

	add_headers(p->x, text ? text : PAGE_CSP, false);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct str value = http_client_header(p->c, names[i]);
		CLEANUP(freep) char *copy = value.p ? xstrndup(value.p, value.n) : NULL;

		if (copy)
			http_add_header(p->x, names[i], copy);
	}
}

static void ask_done(void *arg, enum err_kind how)
{
	struct passage *p = arg;
	struct http_exchange *x = p->x;

	p->busy = false;
	if (!x) {
		passage_free(p);
		return;
	}
	if (how != ERR_NONE || p->rc < 0) {
		refuse(x, 502, &p->err);
		passage_free(p);
		return;
	}
	pass_headers(p);
	if (p->ans.status / 100 != 2) {
		p->whole = true;
		http_reply(x, p->ans.status, p->ans.type, buf_str(&p->ans.body));
		passage_free(p);
		return;
	}
	p->busy = true; /* a browser that has left is told of at once */
	http_stream_begin(x, p->ans.status, p->ans.type, browser_left, p);
	if (p->x)
		read_more(p);
	else
		passage_free(p);
}

static void take_field(struct passage *p, const char *name)
{
	struct str value = http_header(p->x, name);

	if (value.p)
		p->fields[p->nfields++] = (struct http_field){name, xstrndup(value.p, value.n)};
}

/* A browser that leaves before the answer begins is noticed when it does. */
static void pass_on(struct browser_gateway *g, struct http_exchange *x)
{
	const struct http_request *q = http_request(x);
	struct str type = http_header(x, "content-type");
	struct passage *p = xcalloc(1, sizeof(*p));

	p->g = g;
	p->x = x;
	p->method = xstrndup(q->method.p, q->method.n);
	p->path = xasprintf("%.*s%s%.*s", STR_ARG(q->path), q->raw_query.n ? "?" : "",
			    STR_ARG(q->raw_query));
	p->type = type.p ? xstrndup(type.p, type.n) : NULL;
	take_field(p, "Last-Event-ID");
	take_field(p, "Range");
	buf_init(&p->body, q->body.n + 1);
	buf_addstr(&p->body, q->body);
	buf_init(&p->bytes, CHUNK);
	http_answer_init(&p->ans, MAX_ANSWER);
	if (g->idle.n > 0)
		p->c = g->idle.v[--g->idle.n];
	p->busy = true;
	workers_submit(g->workers, ask_run, ask_done, p, -1);
}

/* ---- who asks ---- */

/* A browser sends cookies to every port of this machine: the name tells them apart. */
static void cookie_name(const struct browser_gateway *g, char out[static 32])
{
	snprintf(out, 32, SESSION_COOKIE "%d", g->port);
}

static void log_in(struct browser_gateway *g, struct http_exchange *x)
{
	struct str code = query_get(&http_request(x)->query, "code", STR(""));
	CLEANUP(freep) char *place = xasprintf("/run/%s", g->run);
	char secret[65], name[32], cookie[256];
	uint32_t forgotten;

	if (!session_begin(g->sessions, code, clock_wall_ms(), secret, &forgotten)) {
		http_reply(x, 403, "text/plain; charset=utf-8",
			   STR("This link was used already, or is older than two minutes.\n"
			       "'regatta ui' prints a new one.\n"));
		return;
	}
	cookie_name(g, name);
	snprintf(cookie, sizeof(cookie), "%s=%s; HttpOnly; SameSite=Strict; Path=/; Max-Age=%d",
		 name, secret, SESSION_MS / 1000);
	http_add_header(x, "Set-Cookie", cookie);
	http_add_header(x, "Location", place);
	http_reply(x, 303, "text/plain; charset=utf-8", STR("welcome\n"));
	explicit_bzero(secret, sizeof(secret));
	explicit_bzero(cookie, sizeof(cookie));
}

static bool is_known(const struct browser_gateway *g, const struct http_exchange *x)
{
	char name[32];

	cookie_name(g, name);
	struct str cookie = cookie_get(http_header(x, "cookie"), name);

	return cookie.n && session_scope(g->sessions, cookie, clock_wall_ms(), NULL);
}

static bool comes_from_page(const struct http_exchange *x)
{
	return cookie_is_meant(http_request(x)->method, http_header(x, "regatta-request"),
			       http_header(x, "sec-fetch-site"), http_header(x, "sec-fetch-mode"));
}

static void serve_page(struct http_exchange *x, const struct page_asset *a)
{
	add_headers(x, PAGE_CSP, true);
	http_add_header(x, "ETag", a->etag);
	http_add_header(x, "Content-Encoding", "gzip");
	http_reply(x, 200, a->type, (struct str){(const char *)a->gzip, a->n});
}

static void on_request(void *ctx, struct http_exchange *x)
{
	struct browser_gateway *g = ctx;
	const struct http_request *q = http_request(x);
	struct str host = http_header(x, "host"), origin = http_header(x, "origin");
	const struct page_asset *asset;
	char own[64];

	http_own_address(x, own);
	if (!host_is_own(host, str_from(own), false))
		refuse_because(x, 403, ERR_DENIED, "unknown Host");
	else if (origin.p && !origin_is_own(origin, host, false))
		refuse_because(x, 403, ERR_DENIED,
			       "requests from another web page are not accepted");
	else if (str_is(q->path, "/login"))
		log_in(g, x);
	else if ((asset = page_find(q->path)))
		serve_page(x, asset);
	else if (!str_starts(q->path, STR("/api/")))
		refuse_because(x, 404, ERR_NOT_FOUND, "no such path");
	else if (!is_known(g, x))
		refuse_because(x, 401, ERR_DENIED, "open the link that 'regatta ui' printed");
	else if (!comes_from_page(x))
		refuse_because(
			x, 403, ERR_DENIED,
			"a browser's request needs the header 'Regatta-Request: 1' and our own page");
	else
		pass_on(g, x);
}

/* ---- its life ---- */

int browser_gateway_open(const struct target *to, const char *run, struct browser_gateway **ret,
			 struct err *err)
{
	static const struct http_handler handler = {.on_request = on_request};
	struct browser_gateway *g = xcalloc(1, sizeof(*g));

	g->to = to;
	g->run = xstrdup(run);
	g->loop = loop_new();
	g->http = http_server_new(g->loop, NULL, &handler, g);
	g->workers = workers_new(g->loop, "gateway", THREADS);
	g->sessions = sessions_new();
	if (http_server_listen_tcp(g->http, "127.0.0.1", 0, &g->port, err) < 0) {
		browser_gateway_free(g);
		return -1;
	}
	*ret = g;
	return 0;
}

void browser_gateway_link(struct browser_gateway *g, struct buf *out)
{
	char code[65];

	session_code(g->sessions, API_ADMIN, clock_wall_ms(), code);
	buf_printf(out, "http://127.0.0.1:%d/login?code=%s", g->port, code);
	explicit_bzero(code, sizeof(code));
}

static void on_signal(void *ctx, int signo)
{
	(void)signo;
	loop_stop(ctx);
}

void browser_gateway_run(struct browser_gateway *g)
{
	loop_on_signal(g->loop, SIGINT, on_signal, g->loop);
	loop_on_signal(g->loop, SIGTERM, on_signal, g->loop);
	loop_on_signal(g->loop, SIGHUP, on_signal, g->loop);
	loop_run(g->loop);
}

struct browser_gateway *browser_gateway_free(struct browser_gateway *g)
{
	if (!g)
		return NULL;
	workers_stop(g->workers);
	workers_free(g->workers); /* each passage is answered */
	http_server_free(g->http);
	for (size_t i = 0; i < g->idle.n; i++)
		http_client_free(g->idle.v[i]);
	vec_release(&g->idle);
	sessions_free(g->sessions);
	loop_free(g->loop);
	free(g->run);
	free(g);
	return NULL;
}
