#pragma once
/*
 * A server and a handler that shows every way to answer, spoken to over raw sockets from
 * the thread that runs its loop.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/http_server.h"
#include "net/dial.h"
#include "net/listener.h"
#include "sys/loop.h"

#define BIG (8 * 1024 * 1024)
#define HOST "Host: x\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

struct rig {
	struct loop *loop;
	struct http_server *server;
	char *dir;
	struct http_exchange *held; /* of /async and /stream */
	int requests, aborts, gone, empty, upload_fd, port;
	char *big;
	char user[8];
};

struct client {
	int fd;
	bool eof;
	struct buf got;
};

static inline void stream_gone(void *ctx)
{
	struct rig *r = ctx;

	r->gone++;
	r->held = NULL;
}

static inline void stream_empty(void *ctx)
{
	struct rig *r = ctx;

	r->empty++;
}

static inline int open_file(struct rig *r, const char *name)
{
	char *path = xasprintf("%s/%s", r->dir, name);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	free(path);
	return fd;
}

static inline int on_headers(void *ctx, struct http_exchange *x)
{
	struct rig *r = ctx;
	struct str path = http_request(x)->path;

	assert_null(http_user(x));
	http_set_user(x, r->user);
	if (str_is(path, "/upload"))
		return dup(r->upload_fd);
	if (str_is(path, "/full"))
		return open("/dev/full", O_WRONLY | O_CLOEXEC);
	if (str_is(path, "/readonly"))
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (str_is(path, "/deny")) {
		http_reply(x, 403, "text/plain", STR("no"));
		return -2;
	}
	if (str_is(path, "/sloppy")) { /* answers and still asks for the body */
		http_reply(x, 403, "text/plain", STR("no"));
		return dup(r->upload_fd);
	}
	if (str_is(path, "/keep")) {
		r->held = x;
		return -2;
	}
	return -1;
}

static inline void on_abort(void *ctx, struct http_exchange *x)
{
	struct rig *r = ctx;

	assert_ptr_equal(http_user(x), r->user);
	r->aborts++;
}

static inline void answer_facts(struct http_exchange *x)
{
	const struct http_request *q = http_request(x);
	struct str a = query_get(&q->query, "a", STR("-")), h = http_header(x, "x-test");
	struct buf out;

	buf_init(&out, 4096);
	buf_printf(
		&out,
		"method=%.*s path=%.*s query=%.*s a=%.*s x=%.*s local=%d tls=%d uid=%s peer=%.9s",
		STR_ARG(q->method), STR_ARG(q->path), STR_ARG(q->raw_query), STR_ARG(a), STR_ARG(h),
		q->local, q->tls,
		q->peer_uid == (int64_t)getuid() ? "me"
		: q->peer_uid < 0		 ? "none"
						 : "other",
		q->peer);
	http_add_header(x, "X-Evil", "a\r\nSet-Cookie: b\n");
	http_reply(x, 200, "text/plain\r\nX: y", buf_str(&out));
	buf_release(&out);
}

static inline void on_request(void *ctx, struct http_exchange *x)
{
	struct rig *r = ctx;
	const struct http_request *q = http_request(x);

	r->requests++;
	if (str_is(q->path, "/hello") || str_is(q->path, "/upload")) {
		http_reply(x, 200, "text/plain", STR("hello"));
	} else if (str_is(q->path, "/echo")) {
		http_reply(x, 200, "application/octet-stream",
			   q->body); /* a view into the request itself */
	} else if (str_is(q->path, "/facts")) {
		answer_facts(x);
	} else if (str_is(q->path, "/nothing")) {
		http_reply(x, 204, NULL, STR(""));
	} else if (str_is(q->path, "/big")) {
		http_reply(x, 200, "text/plain", (struct str){r->big, BIG});
	} else if (str_is(q->path, "/file")) {
		http_reply_file(x, 206, "text/plain", open_file(r, "file"), 2, BIG - 4);
	} else if (str_is(q->path, "/short")) {
		http_reply_file(x, 200, "text/plain", open_file(r, "file"), 0, BIG + 1);
	} else if (str_is(q->path, "/stream")) {
		r->held = x;
		http_add_header(x, "X-Kind", "stream");
		http_stream_begin(x, 200, "text/plain", stream_gone, r);
	} else if (str_is(q->path, "/async")) {
		r->held = x;
	} else {
		http_reply(x, 404, "text/plain", STR("not here"));
	}
}

static const struct http_handler handler = {on_headers, on_request, on_abort};

static inline void start(struct rig *r, const struct http_limits *limits)
{
	struct err err = {0};

	r->server = http_server_new(r->loop, limits, &handler, r);
	assert_int_equal(http_server_listen_unix(r->server, r->dir, "api.sock", &err), 0);
	assert_int_equal(http_server_listen_tcp(r->server, "127.0.0.1", 0, &r->port, &err), 0);
}

static inline int setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	void *dir = NULL;

	if (unit_make_dir(&dir) < 0)
		return -1;
	r->dir = dir;
	r->loop = loop_new();
	r->big = xmalloc(BIG);
	memset(r->big, 'b', BIG);
	r->upload_fd = open_file(r, "uploaded");
	*state = r;
	return 0;
}

static inline int teardown(void **state)
{
	struct rig *r = *state;
	void *dir = r->dir;

	r->server = http_server_free(r->server);
	loop_free(r->loop);
	close(r->upload_fd);
	free(r->big);
	free(r);
	return unit_remove_dir(&dir);
}

static inline void pump(struct rig *r)
{
	for (int i = 0; i < 6; i++)
		loop_round(r->loop, 0);
}

static inline struct client dialled(struct rig *r)
{
	struct client c = {.fd = -1};
	struct err err = {0};

	buf_init(&c.got, 64 * 1024 * 1024);
	if (dial_unix(r->dir, "api.sock", 1000, &c.fd, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(fcntl(c.fd, F_SETFL, O_NONBLOCK), 0);
	return c;
}

/* A stranger: over TCP. */
static inline struct client dialled_tcp(struct rig *r)
{
	struct client c = {.fd = -1};
	struct err err = {0};

	buf_init(&c.got, 64 * 1024 * 1024);
	if (dial_tcp("127.0.0.1", r->port, 1000, &c.fd, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(fcntl(c.fd, F_SETFL, O_NONBLOCK), 0);
	return c;
}

static inline void hang_up(struct client *c)
{
	if (c->fd >= 0)
		close(c->fd);
	buf_release(&c->got);
	*c = (struct client){.fd = -1};
}

static inline void say(struct client *c, struct str text)
{
	assert_int_equal(send(c->fd, text.p, text.n, MSG_NOSIGNAL), text.n);
}

static inline void listen_once(struct client *c)
{
	char chunk[65536];
	ssize_t n;

	while ((n = recv(c->fd, chunk, sizeof(chunk), 0)) > 0)
		buf_add(&c->got, chunk, (size_t)n);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		c->eof = true;
}

/* Until the text has come, or the end of the connection for NULL; within 5 s. */
static inline void hear(struct rig *r, struct client *c, const char *needle)
{
	int64_t give_up = clock_boot_ms() + 5000;

	for (;;) {
		listen_once(c);
		if (needle && c->got.n && memmem(c->got.p, c->got.n, needle, strlen(needle)))
			return;
		if (c->eof && !needle)
			return;
		if (c->eof || clock_boot_ms() > give_up)
			fail_msg("did not hear %s, but %zu bytes (eof %d): %.300s",
				 needle ? needle : "the end", c->got.n, c->eof,
				 c->got.n ? c->got.p : "");
		loop_round(r->loop, 5);
	}
}

static inline void forget(struct client *c)
{
	buf_reset(&c->got);
}

static inline bool heard(const struct client *c, const char *text)
{
	return c->got.n && memmem(c->got.p, c->got.n, text, strlen(text));
}

static inline int count(const struct client *c, const char *text)
{
	int n = 0;

	for (const char *p = c->got.n ? c->got.p : ""; (p = strstr(p, text)); p++)
		n++;
	return n;
}
