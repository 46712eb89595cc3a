/* The client: against our server on a thread, and against scripts that answer as they like. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/listener.h"
#include "sys/loop.h"

#define LONG_MS 5000

/* A whole server on its own thread. */
struct served {
	char *dir;
	pthread_t thread;
	int stop_fd, ready_fd;
	struct loop *loop;
	struct http_exchange *stream;
	struct loop_timer *more;
	int left, upload_fd, port, port6;
	struct http_client *client;
	struct http_answer answer;
	struct err err;
};

static void next_line(void *ctx)
{
	struct served *s = ctx;
	char line[32];

	snprintf(line, sizeof(line), "line %d\n", s->left);
	http_stream_write(s->stream, str_from(line));
	if (--s->left > 0)
		loop_timer_set(s->more, 1);
	else
		http_stream_end(s->stream);
}

static void stream_gone(void *ctx)
{
	struct served *s = ctx;

	loop_timer_cancel(s->more);
}

static int on_headers(void *ctx, struct http_exchange *x)
{
	struct served *s = ctx;

	if (str_is(http_request(x)->path, "/upload"))
		return dup(s->upload_fd);
	if (str_is(http_request(x)->path, "/refuse")) {
		http_reply(x, 403, "text/plain", STR("not you"));
		return -2;
	}
	return -1;
}

static void on_request(void *ctx, struct http_exchange *x)
{
	struct served *s = ctx;
	const struct http_request *q = http_request(x);

	if (str_is(q->path, "/echo")) {
		struct str token = http_header(x, "Authorization"),
			   type = http_header(x, "Content-Type");
		char text[200];

		snprintf(text, sizeof(text), "%.*s|%.*s|%.*s", STR_ARG(q->method), STR_ARG(token),
			 STR_ARG(type));
		struct str host = http_header(x, "Host");
		char host_text[100];

		snprintf(host_text, sizeof(host_text), "%.*s", STR_ARG(host));
		http_add_header(x, "X-Host", host_text);
		http_add_header(x, "X-Seen", text);
		http_reply(x, 200, "text/plain; charset=utf-8", q->body);
	} else if (str_is(q->path, "/lines") || str_is(q->path, "/silence")) {
		s->stream = x;
		s->left = 20;
		http_stream_begin(x, 200, "application/x-ndjson", stream_gone, s);
		if (str_is(q->path, "/lines"))
			loop_timer_set(s->more, 0);
	} else if (str_is(q->path, "/close")) {
		http_add_header(x, "Connection", "close");
		http_reply(x, 200, NULL, STR("bye"));
	} else if (str_is(q->path, "/upload")) {
		http_reply(x, 201, NULL, STR(""));
	} else {
		http_reply(x, 404, "application/json", STR("{\"error\":1}"));
	}
}

static void asked_to_stop(void *ctx, int fd, int events)
{
	struct served *s = ctx;

	(void)fd;
	(void)events;
	loop_stop(s->loop);
}

static void *serve(void *ctx)
{
	static const struct http_handler handler = {.on_headers = on_headers,
						    .on_request = on_request};
	struct served *s = ctx;
	struct err err = {0};

	s->loop = loop_new();
	struct http_server *server = http_server_new(s->loop, NULL, &handler, s);
	struct loop_io *io = loop_io_new(s->loop, s->stop_fd, LOOP_READ, asked_to_stop, s);

	s->more = loop_timer_new(s->loop, next_line, s);
	if (http_server_listen_unix(server, s->dir, "api.sock", &err) < 0)
		abort();
	if (http_server_listen_tcp(server, "127.0.0.1", 0, &s->port, &err) < 0)
		abort();
	if (http_server_listen_tcp(server, "::1", 0, &s->port6, &err) < 0)
		s->port6 = 0; /* no IPv6 here */
	eventfd_write(s->ready_fd, 1);
	loop_run(s->loop);
	http_server_free(server);
	loop_timer_free(s->more);
	loop_io_free(io);
	loop_free(s->loop);
	return NULL;
}

static int setup(void **state)
{
	struct served *s = xcalloc(1, sizeof(*s));
	eventfd_t n;
	void *dir = NULL;

	if (unit_make_dir(&dir) < 0)
		return -1;
	s->dir = dir;
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	s->ready_fd = eventfd(0, EFD_CLOEXEC);
	s->upload_fd = open(unit_path(&dir, "uploaded"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	http_answer_init(&s->answer, 1 << 20);
	if (pthread_create(&s->thread, NULL, serve, s) != 0 || eventfd_read(s->ready_fd, &n) < 0)
		return -1;
	struct http_target t = {.unix_dir = s->dir, .unix_name = "api.sock", .token = "t0k3n"};

	*state = s;
	return http_client_open(&t, LONG_MS, &s->client, &s->err);
}

static int teardown(void **state)
{
	struct served *s = *state;
	void *dir = s->dir;

	http_client_free(s->client);
	http_answer_release(&s->answer);
	eventfd_write(s->stop_fd, 1);
	pthread_join(s->thread, NULL);
	close(s->stop_fd);
	close(s->ready_fd);
	close(s->upload_fd);
	free(s);
	return unit_remove_dir(&dir);
}

static void call(struct served *s, const char *method, const char *path, struct str body,
		 const char *type)
{
	if (http_call(s->client, method, path, body, type, LONG_MS, &s->answer, &s->err) < 0)
		fail_msg("%s", s->err.msg);
}

static void calls_share_one_connection(void **state)
{
	struct served *s = *state;
	int fd = http_client_fd(s->client);

	call(s, "POST", "/echo", STR("some body"), "text/x");
	assert_int_equal(s->answer.status, 200);
	assert_string_equal(s->answer.type, "text/plain; charset=utf-8");
	assert_true(str_is(buf_str(&s->answer.body), "some body"));
	assert_true(str_is(http_client_header(s->client, "x-seen"), "POST|Bearer t0k3n|text/x"));
	assert_null(http_client_header(s->client, "X-None").p);
	call(s, "GET", "/nowhere", STR(""), NULL);
	assert_int_equal(s->answer.status, 404);
	assert_true(str_is(buf_str(&s->answer.body), "{\"error\":1}"));
	call(s, "HEAD", "/echo", STR(""), NULL);
	assert_int_equal(s->answer.status, 200);
	assert_int_equal(s->answer.body.n, 0);
	call(s, "POST", "/echo", STR(""), NULL);
	assert_int_equal(http_client_fd(s->client), fd);
}

static void calls_go_over_tcp_too(void **state)
{
	struct served *s = *state;
	const struct http_target targets[] = {
		{.host = "127.0.0.1", .port = s->port, .tls.mode = TLS_OFF},
		{.host = "::1", .port = s->port6, .tls.mode = TLS_OFF},
	};

	for (size_t i = 0; i < (s->port6 ? 2 : 1); i++) {
		char *host = xasprintf(i ? "[::1]:%d" : "127.0.0.1:%d", targets[i].port);

		http_client_free(s->client);
		s->client = NULL;
		assert_int_equal(http_client_open(&targets[i], LONG_MS, &s->client, &s->err), 0);
		for (int k = 0; k < 2; k++) {
			call(s, "POST", "/echo", STR("over tcp"), NULL);
			assert_true(str_is(buf_str(&s->answer.body), "over tcp"));
			assert_true(str_is(http_client_header(s->client, "X-Host"), host));
			assert_true(str_is(http_client_header(s->client, "X-Seen"), "POST||"));
		}
		free(host);
	}
}

static void a_large_body_goes_both_ways(void **state)
{
	struct served *s = *state;
	size_t n = 1000 * 1000;
	char *body = xmalloc(n);

	for (size_t i = 0; i < n; i++)
		body[i] = (char)(i * 31 >> 3);
	call(s, "POST", "/echo", (struct str){body, n}, NULL);
	assert_int_equal(s->answer.body.n, n);
	assert_memory_equal(s->answer.body.p, body, n);
	free(body);
}

static void a_closed_connection_is_dialled_anew(void **state)
{
	struct served *s = *state;

	for (int i = 0; i < 3; i++) {
		call(s, "GET", "/close", STR(""), NULL);
		assert_true(str_is(buf_str(&s->answer.body), "bye"));
	}
	call(s, "POST", "/echo", STR("x"), NULL);
	assert_true(str_is(buf_str(&s->answer.body), "x"));
}

static void an_upload_arrives_from_where_the_descriptor_stands(void **state)
{
	struct served *s = *state;
	void *dir = s->dir;
	int fd = open(unit_path(&dir, "source"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	size_t n = 3000 * 1000;
	char *data = xmalloc(n), *back = xmalloc(n);

	for (size_t i = 0; i < n; i++)
		data[i] = (char)(i * 7 >> 2);
	assert_int_equal(write(fd, data, n), n);
	assert_int_equal(lseek(fd, 100, SEEK_SET), 100);
	assert_int_equal(
		http_upload(s->client, "PUT", "/upload", fd, n - 100, LONG_MS, &s->answer, &s->err),
		0);
	assert_int_equal(s->answer.status, 201);
	assert_int_equal(pread(s->upload_fd, back, n, 0), n - 100);
	assert_memory_equal(back, data + 100, n - 100);
	/* It is at its end now: nothing more to send. */
	assert_int_equal(
		http_upload(s->client, "PUT", "/upload", fd, 1, LONG_MS, &s->answer, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	assert_int_equal(http_upload(s->client, "PUT", "/upload", s->stop_fd + 1000, 1, LONG_MS,
				     &s->answer, &s->err),
			 -1);
	assert_int_equal(s->err.kind, ERR_IO);
	/* A refusal is heard although the body was not taken. */
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(
		http_upload(s->client, "PUT", "/refuse", fd, n, LONG_MS, &s->answer, &s->err), 0);
	assert_int_equal(s->answer.status, 403);
	assert_true(str_is(buf_str(&s->answer.body), "not you"));
	call(s, "POST", "/echo", STR("and on"), NULL);
	assert_true(str_is(buf_str(&s->answer.body), "and on"));
	close(fd);
	free(data);
	free(back);
}

static void a_stream_is_read_to_its_end(void **state)
{
	struct served *s = *state;
	struct buf all;
	char few[7];
	size_t n;
	int fd = http_client_fd(s->client);

	buf_init(&all, 10000);
	assert_int_equal(http_stream_open(s->client, "GET", "/lines", LONG_MS, &s->answer, &s->err),
			 0);
	assert_int_equal(s->answer.status, 200);
	assert_string_equal(s->answer.type, "application/x-ndjson");
	do {
		assert_int_equal(
			http_stream_read(s->client, few, sizeof(few), LONG_MS, NULL, &n, &s->err),
			0);
		assert_true(n <= sizeof(few));
		buf_add(&all, few, n);
	} while (n > 0);
	assert_non_null(strstr(all.p, "line 20\nline 19\n"));
	assert_true(str_ends(buf_str(&all), STR("line 1\n")));
	assert_int_equal(http_stream_read(s->client, few, sizeof(few), LONG_MS, NULL, &n, &s->err),
			 0);
	assert_int_equal(n, 0);
	call(s, "POST", "/echo", STR("x"), NULL);
	assert_int_equal(http_client_fd(s->client), fd);
	buf_release(&all);
}

static void a_stream_that_is_refused_says_why(void **state)
{
	struct served *s = *state;
	char few[7];
	size_t n = 5;

	assert_int_equal(
		http_stream_open(s->client, "GET", "/nowhere", LONG_MS, &s->answer, &s->err), 0);
	assert_int_equal(s->answer.status, 404);
	assert_true(str_is(buf_str(&s->answer.body), "{\"error\":1}"));
	assert_int_equal(http_stream_read(s->client, few, sizeof(few), LONG_MS, NULL, &n, &s->err),
			 0);
	assert_int_equal(n, 0);
}

static volatile int stop_now;

static void want_stop(int signo)
{
	(void)signo;
	stop_now = 1;
}

static void a_silent_stream_can_be_waited_for_and_left(void **state)
{
	struct served *s = *state;
	struct sigaction act = {.sa_handler = want_stop}, old;
	char few[7];
	size_t n = 5;

	assert_int_equal(
		http_stream_open(s->client, "GET", "/silence", LONG_MS, &s->answer, &s->err), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
			http_stream_read(s->client, few, sizeof(few), 5, NULL, &n, &s->err), -1);
		assert_int_equal(s->err.kind, ERR_TIMEOUT);
		assert_int_equal(n, 5);
	}
	/* A stop that is set already, and one that comes with a signal. */
	stop_now = 1;
	assert_int_equal(
		http_stream_read(s->client, few, sizeof(few), LONG_MS, &stop_now, &n, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_CANCELLED);
	stop_now = 0;
	sigaction(SIGUSR1, &act, &old);
	timer_t timer;
	struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
	struct itimerspec soon = {.it_value.tv_nsec = 10 * 1000 * 1000};
	int64_t began = clock_boot_ms();

	assert_int_equal(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &soon, NULL), 0);
	assert_int_equal(http_stream_read(s->client, few, sizeof(few), 60000, &stop_now, &n, NULL),
			 -1);
	assert_true(clock_boot_ms() - began < 3000);
	timer_delete(timer);
	sigaction(SIGUSR1, &old, NULL);
	/* The stream is left behind; the client is not lost. */
	call(s, "POST", "/echo", STR("x"), NULL);
	assert_true(str_is(buf_str(&s->answer.body), "x"));
}

static void an_answer_larger_than_its_buffer_is_an_error(void **state)
{
	struct served *s = *state;
	struct http_answer small;

	http_answer_init(&small, 5);
	assert_int_equal(http_call(s->client, "POST", "/echo", STR("123456"), NULL, LONG_MS, &small,
				   &s->err),
			 -1);
	assert_int_equal(s->err.kind, ERR_CAPACITY);
	assert_int_equal(
		http_call(s->client, "POST", "/echo", STR("12345"), NULL, LONG_MS, &small, &s->err),
		0);
	assert_true(str_is(buf_str(&small.body), "12345"));
	http_answer_release(&small);
}

static void what_would_break_the_request_is_not_sent(void **state)
{
	struct served *s = *state;
	static const struct {
		const char *method, *path, *type;
	} cases[] = {
		{"GET", "/a b", NULL},
		{"GET", "/a\r\nX: y", NULL},
		{"GET", "nopath", NULL},
		{"GET", "", NULL},
		{"GE T", "/", NULL},
		{"", "/", NULL},
		{"POST", "/", "text/x\r\nA: b"},
	};
	struct http_target t = {.unix_dir = s->dir, .unix_name = "api.sock", .token = "a\nb"};
	struct http_client *c = NULL;

	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(http_call(s->client, cases[i].method, cases[i].path, STR(""),
					   cases[i].type, LONG_MS, &s->answer, &s->err),
				 -1);
		assert_int_equal(s->err.kind, ERR_INVALID);
	}
	char *path = xmalloc(100002);

	memset(path, '/', 100001);
	path[100001] = '\0';
	assert_int_equal(
		http_call(s->client, "GET", path, STR(""), NULL, LONG_MS, &s->answer, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	free(path);
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	t = (struct http_target){0};
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	t = (struct http_target){
		.unix_dir = s->dir, .unix_name = "api.sock", .prefix = "/a\r\nX: y"};
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	t = (struct http_target){.host = "127.0.0.1\r\nX: y", .port = 1, .tls = {.mode = TLS_OFF}};
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	t = (struct http_target){.host = "127.0.0.1", .port = 1}; /* plain must be said */
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	t.tls = (struct tls_trust){.mode = TLS_PIN}; /* a pin that is missing is not plain */
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	t = (struct http_target){.host = "not a name", .port = 1, .tls.mode = TLS_OFF};
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_INVALID);
	t = (struct http_target){.unix_dir = s->dir, .unix_name = "nobody"};
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &s->err), -1);
	assert_int_equal(s->err.kind, ERR_UNAVAILABLE);
	assert_null(c);
	assert_null(http_client_free(NULL));
}

/* A script: takes one connection, waits for a request, says its text, hangs up. */
struct script {
	int fd;
	struct str text;
	bool stay; /* until the client leaves */
};

static void *run_script(void *ctx)
{
	struct script *s = ctx;
	char request[4096];
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
	size_t at = 0;

	if (fd < 0)
		return NULL;
	if (recv(fd, request, sizeof(request), 0) <= 0)
		at = s->text.n;
	while (at < s->text.n) { /* in odd pieces */
		ssize_t n = send(fd, s->text.p + at, s->text.n - at < 7 ? s->text.n - at : 7,
				 MSG_NOSIGNAL);

		if (n < 0)
			break;
		at += (size_t)n;
	}
	while (s->stay && recv(fd, request, sizeof(request), 0) > 0)
		;
	close(fd);
	return NULL;
}

/* The outcome of one call against a scripted answer. */
static int call_script(struct script *s, const char *method, int timeout_ms, struct http_answer *a,
		       struct err *err)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct http_client *c = NULL;
	pthread_t thread;
	void *dir = NULL;

	assert_int_equal(unit_make_dir(&dir), 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s/s", (char *)dir);
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s->fd, 5), 0);
	struct http_target t = {.unix_dir = dir, .unix_name = "s"};

	assert_int_equal(http_client_open(&t, LONG_MS, &c, err), 0);
	assert_int_equal(pthread_create(&thread, NULL, run_script, s), 0);
	http_answer_init(a, 100);
	int rc = http_call(c, method, "/", STR(""), NULL, timeout_ms, a, err);

	http_client_free(c);
	pthread_join(thread, NULL);
	close(s->fd);
	unit_remove_dir(&dir);
	return rc;
}

static void answers_of_every_shape_are_read(void **state)
{
	static const struct {
		struct str text;
		int status;
		const char *body;
		bool stay;
	} cases[] = {
		{STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), 200, "hello", true},
		{STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\nT: x\r\n\r\n"),
		 200, "hello", true},
		{STR("HTTP/1.0 200 OK\r\n\r\nuntil the end"), 200, "until the end", false},
		{STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\nHTTP/1.1 201 "
		     "Created\r\nContent-Length: 1\r\n\r\nx"),
		 201, "x", true},
		{STR("HTTP/1.1 204 No Content\r\n\r\n"), 204, "", true},
		{STR("HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"), 500, "", true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct script s = {.text = cases[i].text, .stay = cases[i].stay};
		struct http_answer a;
		struct err err = {0};

		if (call_script(&s, "GET", LONG_MS, &a, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(a.status, cases[i].status);
		assert_true(str_is(buf_str(&a.body), cases[i].body));
		http_answer_release(&a);
	}
	struct script s = {.text = STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
			   .stay = true};
	struct http_answer a;
	struct err err = {0};

	assert_int_equal(call_script(&s, "HEAD", LONG_MS, &a, &err), 0);
	http_answer_release(&a);
}

static void broken_answers_are_errors(void **state)
{
	static const struct {
		struct str text;
		enum err_kind kind;
		int timeout_ms;
		bool stay;
	} cases[] = {
		{STR(""), ERR_UNAVAILABLE, LONG_MS, false},
		{STR("HTTP/1.1 200 O"), ERR_UNAVAILABLE, LONG_MS, false},
		{STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal"), ERR_UNAVAILABLE, LONG_MS,
		 false},
		{STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
		 ERR_UNAVAILABLE, LONG_MS, false},
		{STR("SSH-2.0-OpenSSH_9.2\r\n"), ERR_PROTOCOL, LONG_MS, true},
		{STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
		 ERR_PROTOCOL, LONG_MS, true},
		{STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n"), ERR_PROTOCOL,
		 LONG_MS, true},
		{STR("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n"
		     "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890x"),
		 ERR_CAPACITY, LONG_MS, true},
		{STR(""), ERR_TIMEOUT, 10, true},
		{STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhal"), ERR_TIMEOUT, 10, true},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct script s = {.text = cases[i].text, .stay = cases[i].stay};
		struct http_answer a;
		struct err err = {0};

		if (call_script(&s, "GET", cases[i].timeout_ms, &a, &err) == 0)
			fail_msg("case %zu was taken", i);
		if (err.kind != cases[i].kind)
			fail_msg("case %zu: %s (%s)", i, err_kind_name(err.kind), err.msg);
		assert_non_null(strstr(err.msg, "GET /: "));
		http_answer_release(&a);
	}
}

/* A stream that breaks in the middle, and one that does not begin. */
static void a_stream_that_is_cut_is_an_error(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	static const struct str texts[] = {
		STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
		STR("HTTP/1.1 2"),
	};
	struct script s = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	struct http_target t = {.unix_dir = *state, .unix_name = "s"};
	struct http_client *c = NULL;
	struct http_answer a;
	struct err err = {0};
	pthread_t thread;
	char few[16];
	size_t n = 0;

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", unit_path(state, "s"));
	assert_int_equal(bind(s.fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s.fd, 5), 0);
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &err), 0);
	http_answer_init(&a, 100);
	s.text = texts[0];
	assert_int_equal(pthread_create(&thread, NULL, run_script, &s), 0);
	assert_int_equal(http_stream_open(c, "GET", "/", LONG_MS, &a, &err), 0);
	for (size_t got = 0; got < 5; got += n)
		assert_int_equal(http_stream_read(c, few, sizeof(few), LONG_MS, NULL, &n, &err), 0);
	assert_int_equal(http_stream_read(c, few, sizeof(few), LONG_MS, NULL, &n, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(http_client_fd(c), -1);
	pthread_join(thread, NULL);
	s.text = texts[1];
	assert_int_equal(pthread_create(&thread, NULL, run_script, &s), 0);
	assert_int_equal(http_stream_open(c, "GET", "/", LONG_MS, &a, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	pthread_join(thread, NULL);
	http_client_free(c);
	http_answer_release(&a);
	close(s.fd);
}

/* Ended by the server after its answer, without a word about it. */
static void a_connection_that_died_while_idle_is_dialled_anew(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct script s = {.text = STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")};
	struct http_target t = {.unix_dir = *state, .unix_name = "s"};
	struct http_client *c = NULL;
	struct http_answer a;
	struct err err = {0};
	pthread_t thread;

	s.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	snprintf(at.sun_path, sizeof(at.sun_path), "%s", unit_path(state, "s"));
	assert_int_equal(bind(s.fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(s.fd, 5), 0);
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &err), 0);
	http_answer_init(&a, 100);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pthread_create(&thread, NULL, run_script, &s), 0);
		if (http_call(c, "POST", "/", STR("x"), NULL, LONG_MS, &a, &err) < 0)
			fail_msg("call %d: %s", i, err.msg);
		assert_true(str_is(buf_str(&a.body), "hello"));
		pthread_join(thread, NULL);
	}
	http_client_free(c);
	http_answer_release(&a);
	close(s.fd);
}

static void a_request_that_nobody_takes_times_out(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct http_client *c = NULL;
	struct http_answer a;
	struct err err = {0};
	char *body = xcalloc(1, 4 << 20);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(at.sun_path, sizeof(at.sun_path), "%s", unit_path(state, "s"));
	assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(fd, 0), 0);
	struct http_target t = {.unix_dir = *state, .unix_name = "s"};
	struct http_client *second = NULL;

	assert_int_equal(http_client_open(&t, LONG_MS, &c, &err), 0);
	http_answer_init(&a, 100);
	assert_int_equal(http_call(c, "POST", "/", (struct str){body, 4 << 20}, NULL, 10, &a, &err),
			 -1);
	assert_int_equal(err.kind, ERR_TIMEOUT);
	/* Its place in the backlog is still taken: the next does not even get a connection. */
	assert_int_equal(http_client_open(&t, 10, &second, &err), -1);
	assert_int_equal(err.kind, ERR_TIMEOUT);
	http_client_free(c);
	http_answer_release(&a);
	close(fd);
	free(body);
}

static void nobody_on_a_port_is_unavailable(void **state)
{
	struct loop *l = loop_new();
	struct listener *li = NULL;
	struct http_client *c = NULL;
	struct err err = {0};
	int port = 0;

	(void)state;
	assert_int_equal(listen_tcp(l, "127.0.0.1", 0, NULL, NULL, &port, &li, &err), 0);
	struct http_target t = {.host = "127.0.0.1", .port = port, .tls.mode = TLS_OFF};

	assert_int_equal(http_client_open(&t, LONG_MS, &c, &err), 0);
	c = http_client_free(c);
	listener_free(li);
	loop_free(l);
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_null(c);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(calls_share_one_connection),
		T(calls_go_over_tcp_too),
		T(a_large_body_goes_both_ways),
		T(a_closed_connection_is_dialled_anew),
		T(an_upload_arrives_from_where_the_descriptor_stands),
		T(a_stream_is_read_to_its_end),
		T(a_stream_that_is_refused_says_why),
		T(a_silent_stream_can_be_waited_for_and_left),
		T(an_answer_larger_than_its_buffer_is_an_error),
		T(what_would_break_the_request_is_not_sent),
		cmocka_unit_test(answers_of_every_shape_are_read),
		cmocka_unit_test(broken_answers_are_errors),
		cmocka_unit_test_setup_teardown(a_stream_that_is_cut_is_an_error, unit_make_dir,
						unit_remove_dir),
		cmocka_unit_test_setup_teardown(a_connection_that_died_while_idle_is_dialled_anew,
						unit_make_dir, unit_remove_dir),
		cmocka_unit_test_setup_teardown(a_request_that_nobody_takes_times_out,
						unit_make_dir, unit_remove_dir),
		cmocka_unit_test(nobody_on_a_port_is_unavailable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
