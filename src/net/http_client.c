/*
 * Blocking calls: the target, connecting to it (socket, host, proxy, TLS), redirects and answers.
 * http_wire.c moves the bytes of one connection, http_request.c writes heads.
 */
#include "net/http_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "net/dial.h"
#include "net/http_request.h"
#include "net/http_wire.h"

#define MAX_REQUEST_HEAD (64 * 1024)

struct http_client {
	struct arena *arena; /* of the target's texts */
	struct http_target t;
	struct http_origin home;  /* of the target */
	struct http_origin there; /* of the connection */
	struct http_wire wire;
	struct http_url proxy; /* of the connection, if requests to it name the whole URL */
	bool through_proxy;
};

/* The target. */

static char *copy(struct arena *a, const char *z)
{
	return z ? arena_strdup(a, z) : NULL;
}

static struct str copy_str(struct arena *a, struct str s)
{
	return s.n > 0 ? arena_str(a, s) : (struct str){0};
}

static void copy_target(struct http_client *c, const struct http_target *t)
{
	struct arena *a = c->arena;

	c->t = (struct http_target){
		.unix_dir = copy(a, t->unix_dir),
		.unix_name = copy(a, t->unix_name),
		.host = copy(a, t->host),
		.port = t->port,
		.tls = {.mode = t->tls.mode,
			.pin = copy(a, t->tls.pin),
			.ca_pem = copy_str(a, t->tls.ca_pem),
			.ca_file = copy(a, t->tls.ca_file),
			.server_name = copy(a, t->tls.server_name),
			.cert_pem = copy_str(a, t->tls.cert_pem),
			.key_pem = copy_str(a, t->tls.key_pem)},
		.proxy = {.http_proxy = copy(a, t->proxy.http_proxy),
			  .https_proxy = copy(a, t->proxy.https_proxy),
			  .no_proxy = copy(a, t->proxy.no_proxy)},
		.resolve = {.hosts_file = copy(a, t->resolve.hosts_file),
			    .resolv_conf = copy(a, t->resolve.resolv_conf)},
		.token = copy(a, t->token),
		.prefix = copy(a, t->prefix),
		.inner_token = copy(a, t->inner_token),
		.stop = t->stop,
	};
	if (t->unix_dir)
		return;
	c->home.port = t->port;
	c->home.tls = t->tls.mode != TLS_OFF;
	memcpy(c->home.host, t->host, strlen(t->host) + 1);
}

static int check_target(const struct http_target *t, struct err *err)
{
	if (t->unix_dir ? !t->unix_name : !t->host)
		return err_set(err, ERR_INVALID, "no address to call");
	if ((t->token && !http1_is_value(str_from(t->token))) ||
	    (t->inner_token && !http1_is_value(str_from(t->inner_token))))
		return err_set(err, ERR_INVALID, "control characters in the token");
	if (t->prefix && *t->prefix && !http_url_is_target(str_from(t->prefix)))
		return err_set(err, ERR_INVALID, "bad characters in the path before all others");
	if (t->unix_dir)
		return t->tls.mode > TLS_OFF
			       ? err_set(err, ERR_INVALID, "no TLS over a unix socket")
			       : 0;
	if (!*t->host || strlen(t->host) >= HTTP_HOST_MAX || !http1_is_value(str_from(t->host)))
		return err_set(err, ERR_INVALID, "'%.60s' is not the name of a host", t->host);
	if (t->tls.mode == TLS_UNDECIDED)
		return err_set(err, ERR_INVALID, "plain or TLS to '%s': not chosen", t->host);
	return t->tls.mode == TLS_OFF ? 0 : tls_trust_check(&t->tls, err);
}

/* Connecting. */

/* The trust for this origin; only the target gets the client certificate. */
static struct tls_trust trust_for(const struct http_client *c, const struct http_origin *o)
{
	struct tls_trust trust = c->t.tls;

	if (http_origin_equal(o, &c->home))
		return trust;
	if (trust.mode == TLS_OFF)
		trust.mode = TLS_CA;
	trust.server_name = NULL;
	trust.cert_pem = trust.key_pem = (struct str){0};
	return trust;
}

/* Ask the proxy for a connection to the origin, on the wire that leads to the proxy. */
static int ask_proxy(struct http_client *c, const struct http_origin *o, const struct http_url *p,
		     const struct deadline *d, struct err *err)
{
	CLEANUP(buf_release) struct buf head = {0};
	struct http_wire *w = &c->wire;

	buf_init(&head, MAX_REQUEST_HEAD);
	buf_addz(&head, "CONNECT ");
	http_url_authority(&head, o->host, o->port, true, true);
	buf_addz(&head, " HTTP/1.1\r\nHost: ");
	http_url_authority(&head, o->host, o->port, true, true);
	buf_addz(&head, "\r\n");
	proxy_authorization(&head, p);
	buf_addz(&head, "\r\n");
	http_wire_begin(w);
	if (http_wire_send(w, buf_str(&head), d, err) < 0 ||
	    http_wire_read_head(w, true, d, err) < 0)
		return -1;
	if (w->head.status / 100 != 2)
		return err_set(err, w->head.status == 407 ? ERR_DENIED : ERR_UNAVAILABLE,
			       "it refuses to connect: %d %s", w->head.status,
			       http1_reason(w->head.status));
	if (w->at < w->n)
		return err_set(err, ERR_PROTOCOL, "it sent bytes before it was asked");
	return 0;
}

static int dial_origin(struct http_client *c, const struct http_origin *o, const struct deadline *d,
		       struct err *err)
{
	struct http_url proxy = {0};
	bool proxied = false;
	int fd = -1;

	if (!*o->host) {
		if (dial_unix_until(c->t.unix_dir, c->t.unix_name, d, &fd, err) < 0)
			return -1;
		transport_plain(&c->wire.transport, fd);
		return 0;
	}
	if (proxy_for(&c->t.proxy, o->host, o->port, o->tls, &proxy, &proxied, err) < 0)
		return -1;
	if (dial_host(proxied ? proxy.host : o->host, proxied ? proxy.port : o->port, &c->t.resolve,
		      d, &fd, err) < 0)
		return proxied ? err_wrap(err, "proxy '%s'", proxy.host) : -1;
	transport_plain(&c->wire.transport, fd);
	c->through_proxy = proxied && !o->tls;
	c->proxy = proxy;
	if (!o->tls)
		return 0;
	if (proxied && ask_proxy(c, o, &proxy, d, err) < 0)
		return err_wrap(err, "proxy '%s'", proxy.host);
	struct tls_trust trust = trust_for(c, o);

	c->wire.transport.fd = -1; /* tls_connect takes it over */
	return tls_connect(&c->wire.transport, fd, &trust, o->host, d, err);
}

/* Make sure that the connection leads to this origin and is usable. */
static int be_connected(struct http_client *c, const struct http_origin *o,
			const struct deadline *d, struct err *err)
{
	if (http_wire_is_ready(&c->wire) && http_origin_equal(o, &c->there))
		return 0;
	http_wire_hang_up(&c->wire);
	if (deadline_check(d, "the server was not dialled", err) < 0)
		return -1;
	c->there = *o;
	c->through_proxy = false;
	if (dial_origin(c, o, d, err) == 0)
		return 0;
	http_wire_hang_up(&c->wire);
	return -1;
}

int http_client_open(const struct http_target *t, int timeout_ms, struct http_client **ret,
		     struct err *err)
{
	struct deadline d = deadline_in(timeout_ms, t->stop);
	struct http_client *c;

	if (check_target(t, err) < 0)
		return -1;
	c = xcalloc(1, sizeof(*c));
	c->arena = arena_new();
	copy_target(c, t);
	http_wire_init(&c->wire);
	if (be_connected(c, &c->home, &d, err) < 0) {
		http_client_free(c);
		return -1;
	}
	*ret = c;
	return 0;
}

struct http_client *http_client_free(struct http_client *c)
{
	if (!c)
		return NULL;
	http_wire_release(&c->wire);
	arena_free(c->arena);
	free(c);
	return NULL;
}

int http_client_fd(const struct http_client *c)
{
	return c->wire.transport.fd;
}

void http_client_set_stop(struct http_client *c, const volatile int *stop)
{
	c->t.stop = stop;
}

struct str http_client_header(const struct http_client *c, const char *name)
{
	return http1_header(&c->wire.head, name);
}

void http_answer_init(struct http_answer *a, size_t max_body)
{
	*a = (struct http_answer){0};
	buf_init(&a->body, max_body);
}

void http_answer_release(struct http_answer *a)
{
	buf_release(&a->body);
}

/* Sending. */

static int send_fd(struct http_wire *w, const struct http_outgoing *r, const struct deadline *d,
		   struct err *err)
{
	CLEANUP(freep) char *chunk = xmalloc(HTTP_WIRE_BUFFER);
	uint64_t sent = 0;

	while (sent < r->size) {
		uint64_t left = r->size - sent;
		size_t max = left < HTTP_WIRE_BUFFER ? (size_t)left : HTTP_WIRE_BUFFER;
		ssize_t n = r->offset < 0 ? read(r->fd, chunk, max)
					  : pread(r->fd, chunk, max, r->offset + (int64_t)sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "read what is to be uploaded");
		if (n == 0)
			return err_set(err, ERR_INVALID,
				       "the file to upload ends %" PRIu64 " bytes early", left);
		int rc = http_wire_send(w, (struct str){chunk, (size_t)n}, d, err);

		if (rc <= 0)
			return rc;
		sent += (uint64_t)n;
	}
	return 1;
}

/* Returns as http_wire_send. */
static int send_request(struct http_wire *w, struct buf *head, const struct http_outgoing *r,
			const struct deadline *d, struct err *err)
{
	bool asks = r->expect_continue && http_request_length(r) > 0;
	/* A small body is sent with its head; a large one is not copied. */
	bool joined = !asks && !r->from_fd && r->body.n <= HTTP_WIRE_BUFFER;

	if (joined)
		buf_addstr(head, r->body);
	int rc = http_wire_send(w, buf_str(head), d, err);

	if (rc > 0 && asks)
		rc = http_wire_await_continue(w, d, err);
	if (rc > 0 && r->from_fd)
		rc = send_fd(w, r, d, err);
	else if (rc > 0 && !joined)
		rc = http_wire_send(w, r->body, d, err);
	return rc;
}

/* Send the request to an origin and read the head of the answer. */
static int ask(struct http_client *c, const struct http_outgoing *r, const struct http_origin *o,
	       const char *path, const struct deadline *d, struct err *err)
{
	CLEANUP(buf_release) struct buf head = {0};

	if (be_connected(c, o, d, err) < 0)
		return -1;
	struct http_request_head h = {
		.r = r,
		.origin = o,
		.path = path,
		.token = c->t.token,
		.inner_token = c->t.inner_token,
		.abroad = !http_origin_equal(o, &c->home),
		.proxy = c->through_proxy ? &c->proxy : NULL,
	};

	buf_init(&head, MAX_REQUEST_HEAD + HTTP_WIRE_BUFFER);
	if (http_request_write(&h, &head, err) < 0)
		return -1;
	if (head.n > MAX_REQUEST_HEAD)
		return err_set(err, ERR_INVALID, "the request has %zu bytes of headers", head.n);
	http_wire_begin(&c->wire);
	int rc = send_request(&c->wire, &head, r, d, err);

	if (rc < 0)
		return -1;
	if (rc == 0)
		c->wire.spoiled = true;
	return http_wire_read_head(&c->wire, strcmp(r->method, "HEAD") == 0, d, err);
}

static bool is_redirect(const struct http_client *c, const struct http_outgoing *r)
{
	int status = c->wire.head.status;

	return r->max_redirects > 0 &&
	       (strcmp(r->method, "GET") == 0 || strcmp(r->method, "HEAD") == 0) &&
	       ((status >= 301 && status <= 303) || status == 307 || status == 308);
}

/* Send the request and follow up to max_redirects redirects. */
static int begin(struct http_client *c, const struct http_outgoing *r, const struct deadline *d,
		 struct err *err)
{
	CLEANUP(buf_release) struct buf path = {0};
	CLEANUP(buf_release) struct buf next = {0};
	struct http_origin o = c->home, to;

	buf_init(&path, MAX_REQUEST_HEAD);
	buf_init(&next, HTTP_URL_MAX);
	if (http_request_check(r, c->t.token, err) < 0)
		return -1;
	buf_printf(&path, "%s%s", c->t.prefix ? c->t.prefix : "", r->path);
	if (path.overflow)
		return err_set(err, ERR_INVALID, "the request for a path of %zu bytes is too long",
			       strlen(r->path));
	for (int i = 0;; i++) {
		if (ask(c, r, &o, path.p, d, err) < 0)
			return -1;
		if (!is_redirect(c, r))
			return 0;
		struct str location = http1_header(&c->wire.head, "Location");

		if (i == r->max_redirects)
			return err_set(err, ERR_PROTOCOL, "more than %d redirects", i);
		if (http_redirect(&o, path.p, location, &to, &next, err) < 0)
			return err_wrap(err, "redirect to '%.*s'",
					location.n < 80 ? (int)location.n : 80, location.p);
		if (!c->wire.body.done)
			c->wire.spoiled = true; /* the body of a redirect is not read */
		o = to;
		buf_reset(&path);
		buf_addstr(&path, buf_str(&next));
	}
}

/* Answers. */

static void note_answer(struct http_client *c, struct http_answer *a)
{
	struct str type = http1_header(&c->wire.head, "Content-Type");

	a->status = c->wire.head.status;
	snprintf(a->type, sizeof(a->type), "%.*s", STR_ARG(type));
}

static int read_answer(struct http_client *c, const struct deadline *d, struct http_answer *a,
		       struct err *err)
{
	struct str part;

	do {
		if (http_wire_read_body(&c->wire, HTTP_WIRE_BUFFER, d, &part, err) < 0)
			return -1;
		buf_addstr(&a->body, part);
		if (a->body.overflow)
			return err_set(err, ERR_CAPACITY, "the answer is larger than %zu bytes",
				       a->body.max);
	} while (part.n > 0);
	return 0;
}

static int failed(struct http_client *c, const struct http_outgoing *r, struct err *err)
{
	http_wire_hang_up(&c->wire); /* the rest of an answer may still arrive */
	return err_wrap(err, "%s %s", r->method, r->path);
}

int http_send(struct http_client *c, const struct http_outgoing *r, struct http_answer *ret,
	      struct err *err)
{
	struct deadline d = deadline_in(r->timeout_ms, c->t.stop);

	buf_reset(&ret->body);
	if (begin(c, r, &d, err) < 0 || read_answer(c, &d, ret, err) < 0)
		return failed(c, r, err);
	note_answer(c, ret);
	return 0;
}

int http_send_stream(struct http_client *c, const struct http_outgoing *r,
		     struct http_answer *ret_error, struct err *err)
{
	struct deadline d = deadline_in(r->timeout_ms, c->t.stop);

	buf_reset(&ret_error->body);
	if (begin(c, r, &d, err) < 0)
		return failed(c, r, err);
	if (c->wire.head.status / 100 == 2)
		c->wire.open_answer = true;
	else if (read_answer(c, &d, ret_error, err) < 0)
		return failed(c, r, err);
	note_answer(c, ret_error);
	return 0;
}

int http_stream_read(struct http_client *c, void *p, size_t max, int timeout_ms,
		     const volatile int *stop, size_t *ret_n, struct err *err)
{
	struct deadline d = deadline_in(timeout_ms, stop ? stop : c->t.stop);
	struct err own;
	struct str part = STR("");

	if (!err)
		err = &own;
	if (c->wire.open_answer && http_wire_read_body(&c->wire, max, &d, &part, err) < 0) {
		if (err->kind != ERR_TIMEOUT && err->kind != ERR_CANCELLED)
			http_wire_hang_up(&c->wire);
		return -1;
	}
	memcpy(p, part.p, part.n);
	if (part.n == 0)
		c->wire.open_answer = false;
	*ret_n = part.n;
	return 0;
}

/* Shorter forms. */

int http_call(struct http_client *c, const char *method, const char *path, struct str body,
	      const char *body_type, int timeout_ms, struct http_answer *ret, struct err *err)
{
	struct http_outgoing r = {.method = method,
				  .path = path,
				  .type = body_type,
				  .body = body,
				  .timeout_ms = timeout_ms};

	return http_send(c, &r, ret, err);
}

int http_upload(struct http_client *c, const char *method, const char *path, int fd, uint64_t size,
		int timeout_ms, struct http_answer *ret, struct err *err)
{
	struct http_outgoing r = {.method = method,
				  .path = path,
				  .type = "application/octet-stream",
				  .from_fd = true,
				  .fd = fd,
				  .offset = -1,
				  .size = size,
				  .timeout_ms = timeout_ms};

	return http_send(c, &r, ret, err);
}

int http_stream_open(struct http_client *c, const char *method, const char *path, int timeout_ms,
		     struct http_answer *ret_error, struct err *err)
{
	struct http_outgoing r = {.method = method, .path = path, .timeout_ms = timeout_ms};

	return http_send_stream(c, &r, ret_error, err);
}
