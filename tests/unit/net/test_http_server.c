/* The server: requests, their limits and deadlines, connections. */
#include "http_rig.h"

#include <sys/resource.h>

static void a_request_is_answered_however_it_is_cut(void **state)
{
	struct rig *r = *state;
	struct str text = STR("POST /echo?x=1 HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello");

	start(r, NULL);
	struct client c = dialled(r);

	for (size_t cut = 0; cut <= text.n; cut++) {
		say(&c, (struct str){text.p, cut});
		pump(r);
		say(&c, (struct str){text.p + cut, text.n - cut});
		hear(r, &c, "\r\n\r\nhello");
		assert_true(heard(&c, "HTTP/1.1 200 OK\r\n"));
		assert_true(heard(&c, "Content-Length: 5\r\n"));
		assert_true(heard(&c, "\r\nDate: "));
		assert_false(heard(&c, "Connection: close"));
		forget(&c);
	}
	for (size_t i = 0; i < text.n; i++) { /* and byte by byte */
		say(&c, (struct str){text.p + i, 1});
		loop_round(r->loop, 0);
	}
	hear(r, &c, "\r\n\r\nhello");
	assert_int_equal(r->requests, (int)text.n + 2);
	assert_int_equal(http_server_connections(r->server), 1);
	hang_up(&c);
	pump(r);
	assert_int_equal(http_server_connections(r->server), 0);
}

static void the_handler_sees_who_asks_what(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR("PUT /facts?a=b%20c&d HTTP/1.1\r\n" HOST "x-TEST: v w\r\n\r\n"));
	hear(r, &c,
	     "method=PUT path=/facts query=a=b%20c&d a=b c x=v w local=1 tls=0 uid=me peer=unix uid ");
	/* Nothing that a handler passes on can add a line. */
	assert_true(heard(&c, "X-Evil: a??Set-Cookie: b?\r\n"));
	assert_true(heard(&c, "Content-Type: text/plain??X: y\r\n"));
	hang_up(&c);
}

static void pipelined_requests_are_answered_in_order(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR(GET("/hello") GET("/async") GET("/facts?1") GET("/facts?2")));
	hear(r, &c, "hello");
	pump(r);
	listen_once(&c);
	assert_int_equal(r->requests, 2); /* the third waits for the second's answer */
	assert_int_equal(count(&c, "HTTP/1.1"), 1);
	http_reply(r->held, 200, "text/plain", STR("later"));
	hear(r, &c, "query=2");
	const char *later = strstr(c.got.p, "later"), *first = strstr(c.got.p, "query=1");

	assert_true(later && first && later < first && first < strstr(c.got.p, "query=2"));
	/* The client ends its side: what it sent before is still answered. */
	forget(&c);
	say(&c, STR(GET("/async") GET("/facts?3") GET("/hello")));
	shutdown(c.fd, SHUT_WR);
	pump(r);
	http_reply(r->held, 200, "text/plain", STR("later"));
	hear(r, &c, NULL);
	assert_int_equal(count(&c, "HTTP/1.1 200"), 3);
	assert_true(heard(&c, "hello"));
	hang_up(&c);
}

static void reading_ahead_is_bounded(void **state)
{
	struct rig *r = *state;
	struct str text = STR(GET("/hello"));
	int sent = 0, more = 0;

	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR(GET("/async")));
	pump(r);
	/* Nothing takes these: the socket fills up instead of the server. */
	while (more < 3) {
		if (send(c.fd, text.p, text.n, MSG_NOSIGNAL) == (ssize_t)text.n) {
			sent++;
			more = 0;
		} else {
			pump(r);
			more++;
		}
		assert_true(sent < 100000);
	}
	http_reply(r->held, 200, "text/plain", STR("later"));
	for (int i = 0; i < 2000 && count(&c, "HTTP/1.1 200") < sent + 1; i++) {
		loop_round(r->loop, 5);
		listen_once(&c);
	}
	assert_int_equal(count(&c, "HTTP/1.1 200"), sent + 1);
	hang_up(&c);
}

static void ambiguous_requests_are_answered_400_and_closed(void **state)
{
	struct rig *r = *state;
	static const struct {
		struct str text;
		const char *status;
	} cases[] = {
		{STR("POST /echo HTTP/1.1\r\n" HOST
		     "Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG"),
		 "400"},
		{STR("POST /echo HTTP/1.1\r\n" HOST
		     "Content-Length: 5\r\nContent-Length: 0\r\n\r\n" GET("/hello")),
		 "400"},
		{STR("POST /echo HTTP/1.1\r\n" HOST
		     "Content-Length: 5\r\n Content-Length: 0\r\n\r\n" GET("/hello")),
		 "400"},
		{STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length : 5\r\n\r\n" GET("/hello")),
		 "400"},
		{STR("GET /hello HTTP/1.1\n" HOST "\n\n"), "400"},
		{STR("GET /hello HTTP/1.1\r\n" HOST HOST "\r\n"), "400"},
		{STR("GET /hello\r\n\r\n"), "400"},
		{STR("GET http://x/hello HTTP/1.1\r\n" HOST "\r\n"), "400"},
		{STR("GET /hello?a=%zz HTTP/1.1\r\n" HOST "\r\n"), "400"},
		{STR("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), "400"},
		{STR("\r\n\r\n"), "400"},
		{STR("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
		 "411"},
		{STR("POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n\r\n"), "501"},
		{STR("GET /hello HTTP/3.0\r\n" HOST "\r\n"), "505"},
		{STR("GET /hello HTTP/1.1\r\n" HOST "Expect: tea\r\n\r\n"), "417"},
	};

	start(r, NULL);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct client c = dialled(r);
		char want[32];

		snprintf(want, sizeof(want), "HTTP/1.1 %s ", cases[i].status);
		say(&c, cases[i].text);
		hear(r, &c, want);
		hear(r, &c, NULL);
		assert_int_equal(count(&c, "\r\nDate: "), 1);
		assert_true(heard(&c, "Connection: close\r\n"));
		hang_up(&c);
		assert_int_equal(r->requests, 0);
	}
	pump(r);
	assert_int_equal(http_server_connections(r->server), 0);
}

static void what_is_too_large_is_refused(void **state)
{
	struct rig *r = *state;
	struct http_limits limits = {
		.max_header_bytes = 200, .max_headers = 3, .max_body = 10, .max_upload = 20};
	static const struct {
		const char *text, *status;
	} cases[] = {
		{"GET /%0250d HTTP/1.1\r\n\r\n", "414"},
		{"GET / HTTP/1.1\r\n" HOST "A: %0250d\r\n\r\n", "431"},
		{"GET / HTTP/1.1\r\n" HOST "A: %d\r\nB: 2\r\nC: 3\r\n\r\n", "431"},
		{"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1%d\r\n\r\n", "413"},
		{"POST /upload HTTP/1.1\r\n" HOST "Content-Length: 2%d\r\n\r\n", "413"},
	};

	start(r, &limits);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct client c = dialled(r);
		char *want = xasprintf("HTTP/1.1 %s ", cases[i].status);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		char *text = xasprintf(cases[i].text, 1);
#pragma GCC diagnostic pop

		say(&c, str_from(text));
		hear(r, &c, want);
		hear(r, &c, NULL);
		hang_up(&c);
		free(want);
		free(text);
	}
	assert_int_equal(r->requests, 0);
	struct client c = dialled(r);

	say(&c, STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n0123456789"));
	hear(r, &c, "\r\n\r\n0123456789");
	hang_up(&c);
}

static void headers_that_drip_meet_the_deadline(void **state)
{
	struct rig *r = *state;
	struct http_limits limits = {.header_ms = 40, .idle_ms = 5000};
	int64_t began = clock_boot_ms(), next = 0;

	start(r, &limits);
	struct client c = dialled(r);

	say(&c, STR("GET /hello HTTP/1.1\r\nA: "));
	while (!c.eof &&
	       clock_boot_ms() - began < 3000) { /* a byte every 5 ms never ends the headers */
		loop_round(r->loop, 1);
		if (clock_boot_ms() >= next && send(c.fd, "x", 1, MSG_NOSIGNAL) == 1)
			next = clock_boot_ms() + 5;
		listen_once(&c);
	}
	int64_t took = clock_boot_ms() - began;

	assert_true(c.eof);
	assert_true(took >= 40 && took < 1500);
	assert_true(heard(&c, "HTTP/1.1 408 "));
	hang_up(&c);
}

static void a_body_that_does_not_come_meets_the_deadline(void **state)
{
	struct rig *r = *state;
	struct http_limits limits = {.body_ms = 20, .stall_ms = 15};

	start(r, &limits);
	struct client c = dialled(r);

	say(&c, STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhal"));
	hear(r, &c, "HTTP/1.1 408 ");
	hear(r, &c, NULL);
	pump(r);
	assert_int_equal(r->aborts, 1);
	assert_int_equal(r->requests, 0);
	hang_up(&c);
	/* An upload may not pause, either. */
	c = dialled(r);
	say(&c, STR("PUT /upload HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhal"));
	hear(r, &c, "HTTP/1.1 408 ");
	pump(r);
	assert_int_equal(r->aborts, 2);
	hang_up(&c);
	/* Nor come byte by byte for longer than the whole may take. */
	c = dialled(r);
	say(&c, STR("PUT /upload HTTP/1.1\r\n" HOST "Content-Length: 5000\r\n\r\n"));
	for (int64_t end = clock_boot_ms() + 3000, next = 0;
	     clock_boot_ms() < end && !heard(&c, "408");) {
		if (clock_boot_ms() >= next && send(c.fd, "x", 1, MSG_NOSIGNAL) == 1)
			next = clock_boot_ms() + 2;
		loop_round(r->loop, 1);
		listen_once(&c);
	}
	assert_true(heard(&c, "HTTP/1.1 408 "));
	pump(r);
	assert_int_equal(r->aborts, 3);
	hang_up(&c);
}

static void an_idle_connection_is_closed_in_silence(void **state)
{
	struct rig *r = *state;
	struct http_limits limits = {.idle_ms = 20};

	start(r, &limits);
	struct client a = dialled(r), b = dialled(r);

	say(&b, STR(GET("/hello")));
	hear(r, &b, "hello");
	forget(&b);
	hear(r, &a, NULL);
	hear(r, &b, NULL);
	assert_int_equal(a.got.n + b.got.n, 0);
	hang_up(&a);
	hang_up(&b);
}

static void an_upload_goes_to_the_descriptor(void **state)
{
	struct rig *r = *state;
	struct stat st;
	size_t at = 0;
	char head[200];

	start(r, NULL);
	struct client c = dialled(r);

	snprintf(head, sizeof(head), "PUT /upload HTTP/1.1\r\n" HOST "Content-Length: %d\r\n\r\n",
		 BIG);
	say(&c, str_from(head));
	while (at < BIG) {
		ssize_t n = send(c.fd, r->big + at, BIG - at, MSG_NOSIGNAL);

		if (n > 0)
			at += (size_t)n;
		loop_round(r->loop, 0);
	}
	hear(r, &c, "\r\n\r\nhello");
	assert_int_equal(fstat(r->upload_fd, &st), 0);
	assert_int_equal(st.st_size, BIG);
	forget(&c);
	/* Told to go on before the body is sent; and an empty body is a body. */
	say(&c, STR("PUT /upload HTTP/1.1\r\n" HOST
		    "Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"));
	hear(r, &c, "HTTP/1.1 100 Continue\r\n\r\n");
	say(&c, STR("abc"));
	hear(r, &c, "\r\n\r\nhello");
	forget(&c);
	say(&c, STR("PUT /upload HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n" GET("/facts")));
	hear(r, &c, "path=/facts");
	assert_int_equal(fstat(r->upload_fd, &st), 0);
	assert_int_equal(st.st_size, BIG + 3);
	assert_int_equal(r->aborts, 0);
	hang_up(&c);
}

static void an_upload_that_cannot_be_stored_is_refused(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR("PUT /full HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"));
	hear(r, &c, "HTTP/1.1 507 ");
	hear(r, &c, NULL);
	pump(r);
	assert_int_equal(r->aborts, 1);
	hang_up(&c);
	c = dialled(r);
	say(&c, STR("PUT /readonly HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"));
	hear(r, &c, "HTTP/1.1 500 ");
	pump(r);
	assert_int_equal(r->aborts, 2);
	assert_int_equal(r->requests, 0);
	hang_up(&c);
}

static void an_answer_before_the_body_ends_the_connection(void **state)
{
	struct rig *r = *state;
	static const char *const paths[] = {"/deny", "/sloppy", "/keep"};

	start(r, NULL);
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct client c = dialled(r);
		char *head = xasprintf(
			"PUT %s HTTP/1.1\r\n" HOST "Content-Length: 100000000\r\n\r\n", paths[i]);

		say(&c, str_from(head));
		say(&c, (struct str){r->big, 100000});
		pump(r);
		if (i == 2)
			http_reply(r->held, 403, "text/plain", STR("no"));
		hear(r, &c, "HTTP/1.1 403 Forbidden\r\n");
		hear(r, &c, NULL);
		assert_true(heard(&c, "Connection: close\r\n"));
		hang_up(&c);
		free(head);
	}
	/* Without a body the connection lives on. */
	struct client c = dialled(r);

	say(&c, STR(GET("/deny") GET("/hello")));
	hear(r, &c, "\r\n\r\nhello");
	assert_int_equal(r->requests, 1);
	assert_int_equal(r->aborts, 0);
	hang_up(&c);
}

static void the_client_may_ask_to_close(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR("GET /hello HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
	hear(r, &c, NULL);
	assert_true(heard(&c, "Connection: close\r\n"));
	hang_up(&c);
	c = dialled(r);
	say(&c, STR("GET /hello HTTP/1.0\r\n\r\n"));
	hear(r, &c, NULL);
	assert_true(heard(&c, "hello"));
	hang_up(&c);
}

static void the_longest_idle_makes_room(void **state)
{
	struct rig *r = *state;
	struct http_limits limits = {.max_connections = 3};

	start(r, &limits);
	struct client a = dialled_tcp(r), b = dialled_tcp(r), c = dialled_tcp(r);

	pump(r);
	say(&a, STR(GET("/hello"))); /* now b is the longest idle */
	hear(r, &a, "hello");
	struct client d = dialled_tcp(r);

	hear(r, &b, NULL);
	assert_int_equal(http_server_connections(r->server), 3);
	say(&c, STR(GET("/hello")));
	hear(r, &c, "hello");
	/* All at work: the new one is told. */
	say(&a, STR(GET("/stream")));
	hear(r, &a, "chunked");
	struct http_exchange *stream = r->held;

	say(&c, STR(GET("/async")));
	pump(r);
	struct http_exchange *first = r->held;

	say(&d, STR(GET("/async")));
	pump(r);
	struct client e = dialled_tcp(r);

	hear(r, &e, "HTTP/1.1 503 ");
	hear(r, &e, NULL);
	assert_int_equal(http_server_connections(r->server), 3);
	/* Over the unix socket there is still a way in. */
	struct client f = dialled(r);

	say(&f, STR(GET("/hello")));
	hear(r, &f, "hello");
	http_reply(first, 200, "text/plain", STR("x"));
	http_reply(r->held, 200, "text/plain", STR("x"));
	http_stream_end(stream);
	hang_up(&a);
	hang_up(&b);
	hang_up(&c);
	hang_up(&d);
	hang_up(&e);
	hang_up(&f);
}

#define MANY 2000
static void many_idle_connections_cost_little(void **state)
{
	struct rig *r = *state;
	static struct client v[MANY];
	struct rlimit files;
	struct rusage before, after;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
	if (files.rlim_cur < 2 * MANY + 100) {
		files.rlim_cur = files.rlim_max < 2 * MANY + 100 ? files.rlim_max : 2 * MANY + 100;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
	}
	size_t many = files.rlim_cur < 2 * MANY + 100 ? (files.rlim_cur - 100) / 2 : MANY;

	start(r, NULL);
	getrusage(RUSAGE_SELF, &before);
	for (size_t i = 0; i < many; i++) {
		v[i] = dialled(r);
		loop_round(r->loop, 0);
	}
	/* Each has been used once and keeps nothing of it. */
	for (size_t i = 0; i < many; i++) {
		say(&v[i], STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello"));
		hear(r, &v[i], "\r\n\r\nhello");
		buf_release(&v[i].got);
	}
	getrusage(RUSAGE_SELF, &after);
	assert_int_equal(http_server_connections(r->server), many);
	long each = (after.ru_maxrss - before.ru_maxrss) * 1024 / (long)many;

	if (each > 8192)
		fail_msg("%ld bytes per idle connection", each);
	for (size_t i = 0; i < many; i++)
		hang_up(&v[i]);
	for (int i = 0; i < 100 && http_server_connections(r->server); i++)
		loop_round(r->loop, 10);
	assert_int_equal(http_server_connections(r->server), 0);
}

static void tcp_takes_numeric_addresses(void **state)
{
	struct rig *r = *state;
	struct err err = {0};
	int port = 0, other = 0;
	struct client c = {.fd = -1};
	char want[80];

	start(r, NULL);
	assert_int_equal(http_server_listen_tcp(r->server, "127.0.0.1", 0, &port, &err), 0);
	assert_in_range(port, 1, 65535);
	assert_int_equal(http_server_listen_tcp(r->server, "127.0.0.1", port, &other, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	snprintf(want, sizeof(want), "port %d on 127.0.0.1 is taken", port);
	assert_string_equal(err.msg, want);
	assert_int_equal(http_server_listen_tcp(r->server, "localhost", 0, &other, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(http_server_listen_tcp(r->server, "127.0.0.1", 65536, &other, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(http_server_listen_tcp(r->server, "192.0.2.1", 0, &other, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(other, 0);
	assert_int_equal(http_server_listen_unix(r->server, "/nonexistent", "s", &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);

	buf_init(&c.got, 100000);
	assert_int_equal(dial_tcp("127.0.0.1", port, 1000, &c.fd, &err), 0);
	assert_int_equal(fcntl(c.fd, F_SETFL, O_NONBLOCK), 0);
	say(&c, STR(GET("/facts")));
	hear(r, &c, "local=0 tls=0 uid=none peer=127.0.0.1");
	hang_up(&c);
	if (http_server_listen_tcp(r->server, "::1", 0, &port, &err) == 0) {
		buf_init(&c.got, 100000);
		assert_int_equal(dial_tcp("::1", port, 1000, &c.fd, &err), 0);
		assert_int_equal(fcntl(c.fd, F_SETFL, O_NONBLOCK), 0);
		say(&c, STR(GET("/facts")));
		hear(r, &c, "uid=none peer=[::1]:");
		hang_up(&c);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_request_is_answered_however_it_is_cut),
		T(the_handler_sees_who_asks_what),
		T(pipelined_requests_are_answered_in_order),
		T(reading_ahead_is_bounded),
		T(ambiguous_requests_are_answered_400_and_closed),
		T(what_is_too_large_is_refused),
		T(headers_that_drip_meet_the_deadline),
		T(a_body_that_does_not_come_meets_the_deadline),
		T(an_idle_connection_is_closed_in_silence),
		T(an_upload_goes_to_the_descriptor),
		T(an_upload_that_cannot_be_stored_is_refused),
		T(an_answer_before_the_body_ends_the_connection),
		T(the_client_may_ask_to_close),
		T(the_longest_idle_makes_room),
		T(many_idle_connections_cost_little),
		T(tcp_takes_numeric_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
