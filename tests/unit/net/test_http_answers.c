/* The server: answers whole, from files and streamed; clients that leave or do not read. */
#include "http_rig.h"

static void an_answer_without_body_has_none(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR("HEAD /hello HTTP/1.1\r\n" HOST "\r\n"));
	hear(r, &c, "Content-Length: 5\r\n");
	pump(r);
	listen_once(&c);
	assert_false(heard(&c, "hello"));
	forget(&c);
	say(&c, STR("HEAD /file HTTP/1.1\r\n" HOST "\r\n"));
	hear(r, &c, "Content-Length: 8388604\r\n");
	say(&c, STR(GET("/nothing")));
	hear(r, &c, "204 No Content");
	pump(r);
	listen_once(&c);
	assert_int_equal(count(&c, "Content-Length"), 1);
	forget(&c);
	say(&c, STR("HEAD /stream HTTP/1.1\r\n" HOST "\r\n"));
	hear(r, &c, "Transfer-Encoding: chunked\r\n");
	/* The head is the answer: nobody goes on writing, the connection takes the next request. */
	if (r->held)
		assert_false(http_stream_write(r->held, STR("unseen")));
	say(&c, STR(GET("/hello")));
	hear(r, &c, "\r\n\r\nhello");
	assert_false(heard(&c, "unseen"));
	assert_int_equal(r->gone, 1);
	hang_up(&c);
}

static void a_client_that_takes_nothing_is_cut(void **state)
{
	struct rig *r = *state;
	struct http_limits limits = {.stall_ms = 30};

	start(r, &limits);
	struct client c = dialled(r);

	say(&c, STR(GET("/big")));
	int64_t began = clock_boot_ms();

	while (http_server_connections(r->server) != 0 || clock_boot_ms() - began < 10) {
		loop_round(r->loop, 5);
		assert_true(clock_boot_ms() - began < 3000);
	}
	assert_true(clock_boot_ms() - began >= 30);
	listen_once(&c);
	assert_true(c.got.n < BIG);
	hang_up(&c);
}

/* It takes a little every few milliseconds, for hours: no stall, and still not to be waited for. */
static void a_client_that_takes_very_little_is_cut(void **state)
{
	static const char *const paths[] = {GET("/big"), GET("/file")};
	struct rig *r = *state;
	struct http_limits limits = {.stall_ms = 200, .min_rate = BIG * 10};
	char sip[16384];

	start(r, &limits);
	int fd = open_file(r, "file");
	assert_int_equal(ftruncate(fd, BIG), 0);
	close(fd);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct client c = dialled(r);
		int64_t began = clock_boot_ms();

		say(&c, str_from(paths[i]));
		while (http_server_connections(r->server) != 0 || clock_boot_ms() - began < 10) {
			(void)!recv(c.fd, sip, sizeof(sip), 0);
			loop_round(r->loop, 5);
			assert_true(clock_boot_ms() - began < 1500);
		}
		assert_true(clock_boot_ms() - began >= 200);
		hang_up(&c);
	}
}

static void a_large_answer_arrives_whole(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client c = dialled(r);

	for (int i = 0; i < 2; i++) {
		say(&c, STR(GET("/big") GET("/hello")));
		hear(r, &c, "hello");
		const char *body = strstr(c.got.p, "\r\n\r\n");

		assert_non_null(body);
		assert_memory_equal(body + 4, r->big, BIG);
		assert_memory_equal(body + 4 + BIG, "HTTP/1.1 200", 12);
		forget(&c);
	}
	hang_up(&c);
}

static void fill_file(struct rig *r)
{
	int fd = open_file(r, "file");

	memcpy(r->big, "<<", 2);
	memcpy(r->big + BIG - 2, ">>", 2);
	assert_int_equal(write(fd, r->big, BIG), BIG);
	close(fd);
}

static void a_part_of_a_file_arrives(void **state)
{
	struct rig *r = *state;

	fill_file(r);
	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR(GET("/file") GET("/hello")));
	hear(r, &c, "hello");
	const char *body = strstr(c.got.p, "\r\n\r\n");

	assert_true(heard(&c, "206 Partial Content"));
	assert_memory_equal(body + 4, r->big + 2, BIG - 4);
	assert_memory_equal(body + 4 + BIG - 4, "HTTP/1.1 200", 12);
	hang_up(&c);
}

static void a_file_shorter_than_promised_cuts_the_connection(void **state)
{
	struct rig *r = *state;

	fill_file(r);
	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR(GET("/short")));
	hear(r, &c, NULL);
	assert_true(heard(&c, ">>"));
	hang_up(&c);
	/* And a client that leaves in the middle of a file raises no SIGPIPE. */
	c = dialled(r);
	say(&c, STR(GET("/file")));
	for (int i = 0; i < 50 && c.got.n == 0; i++) {
		char few[100];
		ssize_t n = recv(c.fd, few, sizeof(few), 0);

		if (n > 0)
			buf_add(&c.got, few, (size_t)n);
		loop_round(r->loop, 1);
	}
	assert_true(c.got.n > 0);
	hang_up(&c);
	for (int i = 0; i < 100 && http_server_connections(r->server); i++)
		loop_round(r->loop, 5);
	assert_int_equal(http_server_connections(r->server), 0);
}

static void a_stream_is_chunked_and_the_connection_lives_on(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR(GET("/stream")));
	hear(r, &c, "Transfer-Encoding: chunked\r\nX-Kind: stream\r\n\r\n");
	assert_true(http_stream_write(r->held, STR("first line\n")));
	hear(r, &c, "b\r\nfirst line\n\r\n");
	assert_true(http_stream_write(r->held, STR(""))); /* must not look like the end */
	assert_int_equal(http_stream_queued(r->held), 0);
	http_stream_when_empty(r->held, stream_empty, r);
	assert_int_equal(r->empty, 0);
	pump(r);
	pump(r);
	assert_int_equal(r->empty, 1);
	http_stream_write(r->held, STR("x"));
	http_stream_end(r->held);
	hear(r, &c, "1\r\nx\r\n0\r\n\r\n");
	say(&c, STR(GET("/hello")));
	hear(r, &c, "\r\n\r\nhello");
	assert_int_equal(r->gone, 0);
	hang_up(&c);
	/* HTTP/1.0 knows no chunks: the end of the connection is the end. */
	c = dialled(r);
	say(&c, STR("GET /stream HTTP/1.0\r\n\r\n"));
	hear(r, &c, "Connection: close\r\n");
	http_stream_write(r->held, STR("raw"));
	http_stream_end(r->held);
	hear(r, &c, NULL);
	assert_true(heard(&c, "\r\n\r\nraw"));
	assert_false(heard(&c, "chunked"));
	hang_up(&c);
}

static void a_stream_tells_when_its_queue_is_empty(void **state)
{
	struct rig *r = *state;
	struct http_limits limits = {.max_queue = BIG};
	struct str piece = {r->big, 300000};

	start(r, &limits);
	struct client c = dialled(r);

	say(&c, STR(GET("/stream")));
	hear(r, &c, "chunked");
	while (http_stream_queued(r->held) == 0)
		assert_true(http_stream_write(r->held, piece));
	http_stream_when_empty(r->held, stream_empty, r);
	pump(r);
	assert_int_equal(r->empty, 0);
	for (int i = 0; i < 1000 && !r->empty; i++) {
		listen_once(&c);
		loop_round(r->loop, 5);
	}
	assert_int_equal(r->empty, 1);
	assert_int_equal(http_stream_queued(r->held), 0);
	http_stream_end(r->held);
	hang_up(&c);
}

static void a_stream_that_is_not_read_is_cut_with_bounded_memory(void **state)
{
	struct rig *r = *state;
	struct http_limits limits = {.max_queue = 100000};
	struct str piece = {r->big, 10000};
	int wrote = 0;

	start(r, &limits);
	struct client c = dialled(r);

	say(&c, STR(GET("/stream")));
	hear(r, &c, "chunked");
	while (http_stream_write(r->held, piece)) {
		assert_true(http_stream_queued(r->held) <= 100000);
		assert_true(++wrote < 100000);
	}
	assert_int_equal(r->gone, 0); /* never from inside */
	assert_non_null(r->held);
	assert_false(http_stream_write(r->held, piece));
	assert_int_equal(http_stream_queued(r->held), 0);
	pump(r);
	assert_int_equal(r->gone, 1);
	assert_int_equal(http_server_connections(r->server), 0);
	/* It sees that the stream was cut: no last chunk. */
	hear(r, &c, NULL);
	assert_false(heard(&c, "0\r\n\r\n"));
	hang_up(&c);
	/* Ended by its owner before the loop could tell: then nothing is told. */
	c = dialled(r);
	say(&c, STR(GET("/stream")));
	hear(r, &c, "chunked");
	while (http_stream_write(r->held, piece))
		;
	http_stream_end(r->held);
	pump(r);
	assert_int_equal(r->gone, 1);
	hang_up(&c);
	/* A stream whose bytes wait for too long without growing. */
	http_server_free(r->server);
	limits = (struct http_limits){.stall_ms = 20};
	start(r, &limits);
	c = dialled(r);
	say(&c, STR(GET("/stream")));
	hear(r, &c, "chunked");
	while (http_stream_queued(r->held) == 0)
		assert_true(http_stream_write(r->held, piece));
	for (int i = 0; i < 200 && r->gone == 1; i++)
		loop_round(r->loop, 5);
	assert_int_equal(r->gone, 2);
	hang_up(&c);
}

static void one_large_write_is_no_fault_of_the_client(void **state)
{
	struct rig *r = *state;
	struct http_limits limits = {.max_queue = 100000};

	start(r, &limits);
	struct client c = dialled(r);

	say(&c, STR(GET("/stream")));
	hear(r, &c, "chunked");
	assert_true(http_stream_write(r->held, (struct str){r->big, BIG}));
	assert_true(http_stream_queued(r->held) > 100000);
	/* It is behind now: one more is too much. */
	assert_false(http_stream_write(r->held, STR("more")));
	pump(r);
	assert_int_equal(r->gone, 1);
	hang_up(&c);
	c = dialled(r);
	say(&c, STR(GET("/stream")));
	hear(r, &c, "chunked");
	assert_true(http_stream_write(r->held, (struct str){r->big, BIG}));
	http_stream_end(r->held);
	hear(r, &c, "\r\n0\r\n\r\n");
	assert_true(c.got.n > BIG);
	hang_up(&c);
}

static void a_client_that_leaves_is_noticed(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR(GET("/stream")));
	hear(r, &c, "chunked");
	hang_up(&c);
	pump(r);
	assert_int_equal(r->gone, 1);
	/* While its request is handled: the answer goes nowhere, safely. */
	for (int i = 0; i < 3; i++) {
		c = dialled(r);
		say(&c, STR(GET("/async")));
		pump(r);
		assert_non_null(r->held);
		hang_up(&c);
		pump(r);
		if (i == 0)
			http_reply(r->held, 200, "text/plain", STR("nobody"));
		else if (i == 1)
			http_reply_file(r->held, 200, "text/plain", open_file(r, "file"), 0, 0);
		else
			http_stream_begin(r->held, 200, "text/plain", stream_gone, r);
		pump(r);
	}
	assert_int_equal(r->gone, 2);
	/* In the middle of a body. */
	c = dialled(r);
	say(&c, STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhal"));
	pump(r);
	hang_up(&c);
	pump(r);
	assert_int_equal(r->aborts, 1);
	assert_int_equal(http_server_connections(r->server), 0);
}

/* A close with unread bytes is a reset: then the exchange loses its connection at once. */
static void a_reset_leaves_the_exchange_to_its_handler(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	for (int i = 0; i < 3; i++) {
		struct client c = dialled(r);

		say(&c, STR(GET("/hello") GET("/async")));
		pump(r);
		hang_up(&c);
		pump(r);
		assert_int_equal(http_server_connections(r->server), 0);
		assert_int_equal(http_stream_queued(r->held), 0);
		if (i == 0)
			http_reply(r->held, 200, "text/plain", STR("nobody"));
		else if (i == 1)
			http_reply_file(r->held, 200, "text/plain", open_file(r, "file"), 0, 5);
		else
			http_stream_begin(r->held, 200, "text/plain", stream_gone, r);
		pump(r);
	}
	assert_int_equal(r->gone, 1);
	/* In the middle of an answer that waits. */
	struct client c = dialled(r);

	say(&c, STR(GET("/big")));
	pump(r);
	hang_up(&c);
	pump(r);
	assert_int_equal(http_server_connections(r->server), 0);
	/* And of a stream: the write finds out before the loop does. */
	c = dialled(r);
	say(&c, STR(GET("/stream")));
	pump(r);
	hang_up(&c);
	assert_false(http_stream_write(r->held, STR("x")));
	pump(r);
	assert_int_equal(r->gone, 2);
}

static void a_half_closed_client_still_gets_its_answer(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client c = dialled(r);

	say(&c, STR(GET("/async")));
	shutdown(c.fd, SHUT_WR);
	pump(r);
	http_reply(r->held, 200, "text/plain", STR("late but here"));
	hear(r, &c, "late but here");
	hear(r, &c, NULL);
	hang_up(&c);
}

static void freeing_tells_everybody(void **state)
{
	struct rig *r = *state;

	start(r, NULL);
	struct client a = dialled(r), b = dialled(r), c = dialled(r), d = dialled(r);

	say(&a, STR(GET("/stream")));
	pump(r);
	say(&b, STR("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhal"));
	pump(r);
	say(&c, STR(GET("/async")));
	pump(r);
	struct http_exchange *first = r->held;

	say(&d, STR(GET("/async")));
	pump(r);
	struct http_exchange *second = r->held;

	r->server = http_server_free(r->server);
	assert_int_equal(r->gone, 1);
	assert_int_equal(r->aborts, 1);
	/* A handler that answers after that is safe. */
	http_reply(first, 200, "text/plain", STR("x"));
	http_stream_begin(second, 200, "text/plain", stream_gone, r);
	assert_int_equal(r->gone, 2);
	assert_null(http_server_free(NULL));
	hang_up(&a);
	hang_up(&b);
	hang_up(&c);
	hang_up(&d);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_answer_without_body_has_none),
		T(a_client_that_takes_nothing_is_cut),
		T(a_client_that_takes_very_little_is_cut),
		T(a_large_answer_arrives_whole),
		T(a_part_of_a_file_arrives),
		T(a_file_shorter_than_promised_cuts_the_connection),
		T(a_stream_is_chunked_and_the_connection_lives_on),
		T(a_stream_tells_when_its_queue_is_empty),
		T(a_stream_that_is_not_read_is_cut_with_bounded_memory),
		T(one_large_write_is_no_fault_of_the_client),
		T(a_client_that_leaves_is_noticed),
		T(a_reset_leaves_the_exchange_to_its_handler),
		T(a_half_closed_client_still_gets_its_answer),
		T(freeing_tells_everybody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
