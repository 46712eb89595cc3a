/*
 * Blocking calls over one connection.
 *
 * The socket is non-blocking underneath: every wait is a poll() with a deadline.  While
 * a request is being sent the answer is watched for, because a server that refuses an
 * upload says so and stops reading.
 */
#include "net/http_client.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/dial.h"
#include "net/http1.h"
#include "net/tls.h"
#include "net/transport.h"

#define MAX_HEAD (64 * 1024)
#define MAX_HEADERS 128
#define MAX_REQUEST_HEAD (64 * 1024)
#define BUFFER (64 * 1024)
#define STOP_CHECK_MS 100

struct http_client {
	char *unix_dir, *unix_name, *address, *pin, *token;
	int port;
	struct transport transport; /* fd -1: to be dialled */
	struct http1 head;
	struct http1_body body;
	char *in;	  /* BUFFER bytes */
	size_t at, n;	  /* unread: in[at..n) */
	bool open_answer; /* a streamed answer is not at its end */
	bool spoiled;	  /* the connection cannot carry another call */
};

/* One wait: until when, and who may interrupt it. */
struct wait {
	int64_t deadline_ms; /* INT64_MAX: none */
	const volatile int *stop;
};

static struct wait wait_for(int timeout_ms, const volatile int *stop)
{
	return (struct wait){timeout_ms < 0 ? INT64_MAX : clock_boot_ms() + timeout_ms, stop};
}

/* The events that happened (> 0), or -1: ERR_TIMEOUT, ERR_CANCELLED. */
static int wait_socket(struct http_client *c, short events, const struct wait *w, struct err *err)
{
	for (;;) {
		struct pollfd p = {.fd = c->transport.fd, .events = events};
		int64_t left =
			w->deadline_ms == INT64_MAX ? INT64_MAX : w->deadline_ms - clock_boot_ms();
		int ms = left < 0 ? 0 : left > INT32_MAX ? -1 : (int)left;

		if (w->stop && *w->stop)
			return err_set(err, ERR_CANCELLED, "cancelled");
		if (w->stop && (ms < 0 || ms > STOP_CHECK_MS))
			ms = STOP_CHECK_MS;
		int n = poll(&p, 1, ms);

		if (n > 0)
			return p.revents;
		if (n < 0 && errno != EINTR)
			return err_errno(err, errno, "wait for the server");
		if (n == 0 && left <= ms)
			return err_set(err, ERR_TIMEOUT, "the server did not answer in time");
	}
}

static void hang_up(struct http_client *c)
{
	if (c->transport.fd >= 0)
		c->transport.ops->close(&c->transport);
	c->transport.fd = -1;
	c->at = c->n = 0;
	c->open_answer = c->spoiled = false;
}

static int dial(struct http_client *c, int timeout_ms, struct err *err)
{
	int fd = -1;
	int rc = c->unix_dir ? dial_unix(c->unix_dir, c->unix_name, timeout_ms, &fd, err)
			     : dial_tcp(c->address, c->port, timeout_ms, &fd, err);

	if (rc < 0)
		return -1;
	if (c->pin)
		return tls_connect(&c->transport, fd, c->pin, timeout_ms, err);
	transport_plain(&c->transport, fd);
	return 0;
}

static char *copy(const char *z)
{
	return z ? xstrdup(z) : NULL;
}

int http_client_open(const struct http_target *t, int timeout_ms, struct http_client **ret,
		     struct err *err)
{
	struct http_client *c;

	if (t->unix_dir ? !t->unix_name : !t->address)
		return err_set(err, ERR_INVALID, "no address to call");
	if (t->token && !http1_is_value(str_from(t->token)))
		return err_set(err, ERR_INVALID, "control characters in the token");
	c = xcalloc(1, sizeof(*c));
	*c = (struct http_client){
		.unix_dir = copy(t->unix_dir),
		.unix_name = copy(t->unix_name),
		.address = copy(t->address),
		.port = t->port,
		.pin = copy(t->pin),
		.token = copy(t->token),
		.transport.fd = -1,
		.in = xmalloc(BUFFER),
	};
	http1_init(&c->head, HTTP1_RESPONSE, MAX_HEAD, MAX_HEADERS);
	if (dial(c, timeout_ms, err) < 0) {
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
	hang_up(c);
	http1_reset(&c->head);
	free(c->unix_dir);
	free(c->unix_name);
	free(c->address);
	free(c->pin);
	free(c->token);
	free(c->in);
	free(c);
	return NULL;
}

int http_client_fd(const struct http_client *c)
{
	return c->transport.fd;
}

struct str http_client_header(const struct http_client *c, const char *name)
{
	return http1_header(&c->head, name);
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

/* 1: sent.  0: the server has something to say first (or hung up).  -1: error. */
static int send_all(struct http_client *c, struct str bytes, const struct wait *w, struct err *err)
{
	while (bytes.n > 0) {
		int events = wait_socket(c, POLLOUT | POLLIN, w, err);

		if (events < 0)
			return -1;
		if (events & POLLIN)
			return 0;
		struct iovec iov = {(void *)(uintptr_t)bytes.p, bytes.n};
		ssize_t n = c->transport.ops->writev(&c->transport, &iov, 1);

		if (n < 0 && errno != EAGAIN)
			return 0; /* what it said before it hung up may still be read */
		if (n > 0) {
			bytes.p += n;
			bytes.n -= (size_t)n;
		}
	}
	return 1;
}

static int send_fd(struct http_client *c, int fd, uint64_t size, const struct wait *w,
		   struct err *err)
{
	CLEANUP(freep) char *chunk = xmalloc(BUFFER);

	while (size > 0) {
		ssize_t n = read(fd, chunk, size < BUFFER ? (size_t)size : BUFFER);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_errno(err, errno, "read what is to be uploaded");
		if (n == 0)
			return err_set(err, ERR_INVALID,
				       "the file to upload ends %" PRIu64 " bytes early", size);
		int rc = send_all(c, (struct str){chunk, (size_t)n}, w, err);

		if (rc <= 0)
			return rc;
		size -= (uint64_t)n;
	}
	return 1;
}

static int make_head(const struct http_client *c, struct buf *out, const char *method,
		     const char *path, const char *type, uint64_t length, struct err *err)
{
	bool v6 = c->address && strchr(c->address, ':');

	if (!http1_is_token(str_from(method)) || !http1_is_target(str_from(path)) ||
	    (type && !http1_is_value(str_from(type))))
		return err_set(err, ERR_INVALID, "bad characters in the request for '%s'", path);
	buf_printf(out, "%s %s HTTP/1.1\r\n", method, path);
	if (c->unix_dir)
		buf_addz(out, "Host: localhost\r\n");
	else
		buf_printf(out, "Host: %s%s%s:%d\r\n", v6 ? "[" : "", c->address, v6 ? "]" : "",
			   c->port);
	if (c->token)
		buf_printf(out, "Authorization: Bearer %s\r\n", c->token);
	if (type)
		buf_printf(out, "Content-Type: %s\r\n", type);
	if (length > 0 || (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0))
		buf_printf(out, "Content-Length: %" PRIu64 "\r\n", length);
	buf_addz(out, "\r\n");
	if (out->overflow)
		return err_set(err, ERR_INVALID, "the request for a path of %zu bytes is too long",
			       strlen(path));
	return 0;
}

/* A connection on which a request can be sent now. */
static int be_ready(struct http_client *c, const struct wait *w, struct err *err)
{
	struct pollfd p = {.fd = c->transport.fd, .events = POLLIN};
	int64_t left = w->deadline_ms - clock_boot_ms();

	if (c->open_answer || c->spoiled)
		hang_up(c);
	/* Nothing can be due on an idle connection but its end. */
	if (c->transport.fd >= 0 && (c->at < c->n || poll(&p, 1, 0) != 0))
		hang_up(c);
	c->at = c->n = 0;
	if (c->transport.fd >= 0)
		return 0;
	return dial(c, w->deadline_ms == INT64_MAX ? -1 : left > 0 ? (int)left : 0, err);
}

/* Receiving. */

/* 1: there are unread bytes.  0: end of input. */
static int fill(struct http_client *c, const struct wait *w, struct err *err)
{
	while (c->at == c->n) {
		ssize_t n = c->transport.ops->read(&c->transport, c->in, BUFFER);

		if (n == 0)
			return 0;
		if (n > 0) {
			c->at = 0;
			c->n = (size_t)n;
		} else if (errno != EAGAIN) {
			return err_errno(err, errno, "read the answer");
		} else if (wait_socket(c, POLLIN, w, err) < 0) {
			return -1;
		}
	}
	return 1;
}

static int read_head(struct http_client *c, bool is_head, const struct wait *w, struct err *err)
{
	enum http1_result r = HTTP1_MORE;

	http1_reset(&c->head);
	while (r == HTTP1_MORE) {
		size_t used;
		int rc = fill(c, w, err);

		if (rc < 0)
			return -1;
		if (rc == 0)
			return err_set(err, ERR_UNAVAILABLE,
				       "the server hung up without an answer");
		r = http1_feed(&c->head, (struct str){c->in + c->at, c->n - c->at}, &used);
		c->at += used;
		if (r == HTTP1_DONE && c->head.status < 200) { /* 100 Continue and its kind */
			http1_reset(&c->head);
			r = HTTP1_MORE;
		}
	}
	if (r == HTTP1_BAD)
		return err_set(err, ERR_PROTOCOL, "the answer is not HTTP: %s", c->head.bad_why);
	http1_body_of_response(&c->body, &c->head, is_head);
	if (c->head.wants_close || c->head.minor == 0 || c->body.mode == HTTP1_UNTIL_CLOSE)
		c->spoiled = true;
	return 0;
}

/* At most max bytes of the body; *ret->n == 0 at its end. */
static int read_body(struct http_client *c, size_t max, const struct wait *w, struct str *ret,
		     struct err *err)
{
	*ret = STR("");
	while (!c->body.done && ret->n == 0) {
		size_t used;
		int rc = fill(c, w, err);

		if (rc < 0)
			return -1;
		if (rc == 0 && c->body.mode == HTTP1_UNTIL_CLOSE) {
			c->body.done = true;
			break;
		}
		if (rc == 0)
			return err_set(err, ERR_UNAVAILABLE,
				       "the server hung up in the middle of its answer");
		size_t n = c->n - c->at < max ? c->n - c->at : max;

		if (http1_body_feed(&c->body, (struct str){c->in + c->at, n}, ret, &used) ==
		    HTTP1_BAD)
			return err_set(err, ERR_PROTOCOL, "the body of the answer is malformed");
		c->at += used;
	}
	return 0;
}

static void note_answer(struct http_client *c, struct http_answer *a)
{
	struct str type = http1_header(&c->head, "Content-Type");

	a->status = c->head.status;
	snprintf(a->type, sizeof(a->type), "%.*s", STR_ARG(type));
}

static int read_answer(struct http_client *c, const struct wait *w, struct http_answer *a,
		       struct err *err)
{
	struct str part;

	do {
		if (read_body(c, BUFFER, w, &part, err) < 0)
			return -1;
		buf_addstr(&a->body, part);
		if (a->body.overflow)
			return err_set(err, ERR_CAPACITY, "the answer is larger than %zu bytes",
				       a->body.max);
	} while (part.n > 0);
	return 0;
}

struct client_request {
	const char *method, *path, *type;
	struct str body;
	int fd; /* body of fd_size bytes instead, or -1 */
	uint64_t fd_size;
};

/* Send the request and read the head of the answer. */
static int begin(struct http_client *c, const struct client_request *r, const struct wait *w,
		 struct err *err)
{
	CLEANUP(buf_release) struct buf head = {0};
	uint64_t length = r->fd >= 0 ? r->fd_size : r->body.n;

	buf_init(&head, MAX_REQUEST_HEAD + r->body.n);
	if (make_head(c, &head, r->method, r->path, r->type, length, err) < 0 ||
	    be_ready(c, w, err) < 0)
		return -1;
	/* A small body goes out with its head; a large one is not copied for that. */
	bool joined = r->body.n <= BUFFER;

	if (joined)
		buf_addstr(&head, r->body);
	int rc = send_all(c, buf_str(&head), w, err);

	if (rc > 0 && !joined)
		rc = send_all(c, r->body, w, err);
	if (rc > 0 && r->fd >= 0)
		rc = send_fd(c, r->fd, r->fd_size, w, err);
	if (rc < 0)
		return -1;
	if (rc == 0)
		c->spoiled = true;
	return read_head(c, strcmp(r->method, "HEAD") == 0, w, err);
}

static int call(struct http_client *c, const struct client_request *r, int timeout_ms,
		struct http_answer *a, struct err *err)
{
	struct wait w = wait_for(timeout_ms, NULL);

	buf_reset(&a->body);
	if (begin(c, r, &w, err) < 0 || read_answer(c, &w, a, err) < 0) {
		hang_up(c); /* half an answer may be under way */
		return err_wrap(err, "%s %s", r->method, r->path);
	}
	note_answer(c, a);
	return 0;
}

int http_call(struct http_client *c, const char *method, const char *path, struct str body,
	      const char *body_type, int timeout_ms, struct http_answer *ret, struct err *err)
{
	struct client_request r = {
		.method = method, .path = path, .type = body_type, .body = body, .fd = -1};

	return call(c, &r, timeout_ms, ret, err);
}

int http_upload(struct http_client *c, const char *method, const char *path, int fd, uint64_t size,
		int timeout_ms, struct http_answer *ret, struct err *err)
{
	struct client_request r = {
		.method = method, .path = path, .type = "application/octet-stream"};

	r.fd = fd;
	r.fd_size = size;
	return call(c, &r, timeout_ms, ret, err);
}

int http_stream_open(struct http_client *c, const char *method, const char *path, int timeout_ms,
		     struct http_answer *ret_error, struct err *err)
{
	struct client_request r = {.method = method, .path = path, .fd = -1};
	struct wait w = wait_for(timeout_ms, NULL);
	int rc = begin(c, &r, &w, err);

	buf_reset(&ret_error->body);
	if (rc == 0 && c->head.status / 100 == 2)
		c->open_answer = true;
	else if (rc == 0)
		rc = read_answer(c, &w, ret_error, err);
	if (rc < 0) {
		hang_up(c);
		return err_wrap(err, "%s %s", method, path);
	}
	note_answer(c, ret_error);
	return 0;
}

int http_stream_read(struct http_client *c, void *p, size_t max, int timeout_ms,
		     const volatile int *stop, size_t *ret_n, struct err *err)
{
	struct wait w = wait_for(timeout_ms, stop);
	struct err own;
	struct str part = STR("");

	if (!err)
		err = &own;
	if (c->open_answer && read_body(c, max, &w, &part, err) < 0) {
		if (err->kind != ERR_TIMEOUT && err->kind != ERR_CANCELLED)
			hang_up(c);
		return -1;
	}
	memcpy(p, part.p, part.n);
	if (part.n == 0)
		c->open_answer = false;
	*ret_n = part.n;
	return 0;
}
