/* The parser: what it understands, what it refuses, and that cuts change nothing. */
#include "unit.h"

#include "net/http1.h"

#define MAX_HEAD 1000
#define MAX_FIELDS 8

/* Feed in pieces of `step` bytes; *ret_used counts all that were spent. */
static enum http1_result feed(struct http1 *h, struct str text, size_t step, size_t *ret_used)
{
	enum http1_result r = HTTP1_MORE;
	size_t at = 0;

	while (r == HTTP1_MORE && at < text.n) {
		size_t n = text.n - at < step ? text.n - at : step, used = 0;

		r = http1_feed(h, (struct str){text.p + at, n}, &used);
		assert_true(used <= n);
		at += used;
	}
	*ret_used = at;
	return r;
}

static void expect_bad(enum http1_kind kind, struct str text, int status)
{
	for (size_t step = 1; step <= text.n; step += step < 4 ? 1 : text.n) {
		struct http1 h;
		size_t used;

		http1_init(&h, kind, MAX_HEAD, MAX_FIELDS);
		enum http1_result r = feed(&h, text, step, &used);

		if (r != HTTP1_BAD || h.bad_status != status)
			fail_msg("result %d, status %d instead of %d for: %.*s", r, h.bad_status,
				 status, STR_ARG(text));
		assert_non_null(h.bad_why);
		http1_reset(&h);
	}
}

static void a_request_is_understood_in_pieces_of_any_size(void **state)
{
	struct str text = STR("POST /a/b%20c?x=1&y={|} HTTP/1.1\r\n"
			      "Host: 127.0.0.1:5436\r\n"
			      "content-LENGTH:  12 \t\r\n"
			      "X-Empty:\r\n"
			      "X-High: \xc3\xa9\ttab\r\n"
			      "Connection: keep-alive, Close\r\n"
			      "Expect: 100-Continue\r\n"
			      "\r\nbody of the");

	(void)state;
	for (size_t step = 1; step <= text.n; step++) {
		struct http1 h;
		size_t used;

		http1_init(&h, HTTP1_REQUEST, MAX_HEAD, MAX_FIELDS);
		assert_false(http1_started(&h));
		assert_int_equal(feed(&h, text, step, &used), HTTP1_DONE);
		assert_true(http1_started(&h));
		assert_int_equal(used, text.n - strlen("body of the"));
		assert_true(str_is(http1_method(&h), "POST"));
		assert_true(str_is(http1_target(&h), "/a/b%20c?x=1&y={|}"));
		assert_int_equal(h.minor, 1);
		assert_true(h.has_length);
		assert_int_equal(h.length, 12);
		assert_false(h.chunked);
		assert_true(h.wants_close);
		assert_true(h.expects_continue);
		assert_true(str_is(http1_header(&h, "HOST"), "127.0.0.1:5436"));
		assert_true(str_is(http1_header(&h, "x-empty"), ""));
		assert_non_null(http1_header(&h, "x-empty").p);
		assert_true(str_is(http1_header(&h, "X-High"), "\xc3\xa9\ttab"));
		assert_null(http1_header(&h, "X-None").p);
		http1_reset(&h);
		assert_false(http1_started(&h));
	}
}

static void a_reset_parser_takes_the_next_head(void **state)
{
	struct http1 h;
	size_t used;

	(void)state;
	http1_init(&h, HTTP1_REQUEST, MAX_HEAD, MAX_FIELDS);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(feed(&h, STR("GET / HTTP/1.1\r\nHost:\r\n\r\n"), 7, &used),
				 HTTP1_DONE);
		assert_false(h.wants_close);
		http1_reset(&h);
	}
	assert_int_equal(feed(&h, STR("GET / HTTP/1.0\r\n\r\n"), 100, &used), HTTP1_DONE);
	assert_int_equal(h.minor, 0);
	http1_reset(&h);
}

#define REQ(rest) STR("GET / HTTP/1.1\r\n" rest)
#define HOST "Host: x\r\n"
static void ambiguous_and_malformed_requests_are_refused(void **state)
{
	static const struct {
		struct str text;
		int status;
	} cases[] = {
		/* lines */
		{STR("\r\nGET / HTTP/1.1\r\n\r\n"), 400},
		{STR("GET / HTTP/1.1\nHost: x\n\n"), 400},
		{REQ("Host: x\n\r\n"), 400},
		{REQ("Host: x\r\r\n\r\n"), 400},
		{REQ("Host: x\rA: b\r\n\r\n"), 400},
		{REQ(HOST "\n"), 400},
		{STR("\n"), 400},
		/* request line */
		{STR("GET /\r\n"), 400},
		{STR("GET\r\n"), 400},
		{STR("GET  / HTTP/1.1\r\n"), 400},
		{STR("GET / x HTTP/1.1\r\n"), 400},
		{STR("GET / HTTP/1.1 \r\n"), 400},
		{STR(" GET / HTTP/1.1\r\n"), 400},
		{STR("G@T / HTTP/1.1\r\n"), 400},
		{STR("ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFGHIJ / HTTP/1.1\r\n"), 400},
		{STR("GET http://x/ HTTP/1.1\r\n"), 400},
		{STR("OPTIONS * HTTP/1.1\r\n"), 400},
		{STR("GET /a#b HTTP/1.1\r\n"), 400},
		{STR("GET /\xc3\xa9 HTTP/1.1\r\n"), 400},
		{STR("GET /a\tb HTTP/1.1\r\n"), 400},
		{STR("GET /<script> HTTP/1.1\r\n"), 400},
		{STR("GET / HTTP/1.2\r\n"), 505},
		{STR("GET / HTTP/2.0\r\n"), 505},
		{STR("GET / HTTP/0.9\r\n"), 505},
		{STR("GET / HTTP/1.10\r\n"), 400},
		{STR("GET / http/1.1\r\n"), 400},
		{STR("GET / HTTX/1.1\r\n"), 400},
		{STR("GET / HTTP/1,1\r\n"), 400},
		/* bytes */
		{STR("\x16\x03\x01\x02"), 400},
		{STR("GET /\0 HTTP/1.1\r\n"), 400},
		{REQ("A: b\0c\r\n"), 400},
		{REQ("A: b\x7f\r\n"), 400},
		{REQ("A: b\x0b"
		     "c\r\n"),
		 400},
		/* headers */
		{REQ(HOST "A : b\r\n\r\n"), 400},
		{REQ(HOST " A: b\r\n\r\n"), 400},
		{REQ(HOST "A: b\r\n c\r\n\r\n"), 400},
		{REQ(HOST "A: b\r\n\tc\r\n\r\n"), 400},
		{REQ(HOST ": b\r\n\r\n"), 400},
		{REQ(HOST "A\r\n\r\n"), 400},
		{REQ(HOST "A(b): c\r\n\r\n"), 400},
		{REQ(HOST "\xc3\xa9: c\r\n\r\n"), 400},
		{REQ("\r\n"), 400}, /* no Host */
		{REQ(HOST "host: y\r\n\r\n"), 400},
		{REQ("Host: x/y\r\n\r\n"), 400},
		{REQ("Host: a b\r\n\r\n"), 400},
		{REQ("Host: a@b\r\n\r\n"), 400},
		{REQ(HOST "Expect: magic\r\n\r\n"), 417},
		/* lengths */
		{REQ(HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n"), 400},
		{REQ(HOST "Content-Length: 1\r\ncontent-length: 2\r\n\r\n"), 400},
		{REQ(HOST "Content-Length: 1, 1\r\n\r\n"), 400},
		{REQ(HOST "Content-Length: +1\r\n\r\n"), 400},
		{REQ(HOST "Content-Length: -1\r\n\r\n"), 400},
		{REQ(HOST "Content-Length: 0x10\r\n\r\n"), 400},
		{REQ(HOST "Content-Length: 1 2\r\n\r\n"), 400},
		{REQ(HOST "Content-Length:\r\n\r\n"), 400},
		{REQ(HOST "Content-Length: 9999999999999999999\r\n\r\n"), 400},
		{REQ(HOST "Content-Length: 18446744073709551617\r\n\r\n"), 400},
		{REQ(HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
		{REQ(HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n"), 400},
		{REQ(HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
		{REQ(HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"),
		 400},
		{REQ(HOST "Transfer-Encoding: xchunked\r\n\r\n"), 501},
		{REQ(HOST "Transfer-Encoding: identity, chunked\r\n\r\n"), 501},
		{REQ(HOST "Transfer-Encoding: chunked;q=1\r\n\r\n"), 501},
		{REQ(HOST "Transfer-Encoding: \"chunked\"\r\n\r\n"), 501},
		{REQ(HOST "Transfer-Encoding:\r\n\r\n"), 501},
		{STR("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		expect_bad(HTTP1_REQUEST, cases[i].text, cases[i].status);
}

static void heads_are_bounded(void **state)
{
	char text[2 * MAX_HEAD];

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "GET /", 5);
	expect_bad(HTTP1_REQUEST, (struct str){text, sizeof(text)}, 414);
	memcpy(text, "GET / HTTP/1.1\r\nA: ", 19);
	expect_bad(HTTP1_REQUEST, (struct str){text, sizeof(text)}, 431);
	expect_bad(HTTP1_REQUEST, REQ("A:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\nA:\r\n\r\n"),
		   431);
	memset(text, 'a', sizeof(text));
	expect_bad(HTTP1_RESPONSE, (struct str){text, sizeof(text)}, 431);
}

static void responses_are_understood(void **state)
{
	static const struct {
		struct str text;
		int status, minor;
		bool was_head;
		enum http1_body_mode mode;
		bool done;
	} cases[] = {
		{STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), 200, 1, false, HTTP1_LENGTH,
		 false},
		{STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), 200, 1, true, HTTP1_NO_BODY,
		 true},
		{STR("HTTP/1.1 404 Not  Found \xe9\r\nContent-Length: 0\r\n\r\n"), 404, 1, false,
		 HTTP1_LENGTH, true},
		{STR("HTTP/1.1 200\r\nTransfer-Encoding: Chunked\r\n\r\n"), 200, 1, false,
		 HTTP1_CHUNKED, false},
		{STR("HTTP/1.0 200 \r\n\r\n"), 200, 0, false, HTTP1_UNTIL_CLOSE, false},
		{STR("HTTP/1.1 100 Continue\r\n\r\n"), 100, 1, false, HTTP1_NO_BODY, true},
		{STR("HTTP/1.1 204 No Content\r\n\r\n"), 204, 1, false, HTTP1_NO_BODY, true},
		{STR("HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n"), 304, 1, false, HTTP1_NO_BODY,
		 true},
		{STR("HTTP/1.1 200 OK\r\nHost: a/b\r\nHost: c\r\nExpect: x\r\n\r\n"), 200, 1, false,
		 HTTP1_UNTIL_CLOSE, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct http1 h;
		struct http1_body b;
		size_t used;

		http1_init(&h, HTTP1_RESPONSE, MAX_HEAD, MAX_FIELDS);
		assert_int_equal(feed(&h, cases[i].text, 3, &used), HTTP1_DONE);
		assert_int_equal(used, cases[i].text.n);
		assert_int_equal(h.status, cases[i].status);
		assert_int_equal(h.minor, cases[i].minor);
		http1_body_of_response(&b, &h, cases[i].was_head);
		assert_int_equal(b.mode, cases[i].mode);
		assert_int_equal(b.done, cases[i].done);
		http1_reset(&h);
	}
}

static void malformed_responses_are_refused(void **state)
{
	static const struct str cases[] = {
		STR("HTTP/1.1 20 OK\r\n"),
		STR("HTTP/1.1 2x0 OK\r\n"),
		STR("HTTP/1.1 099 OK\r\n"),
		STR("HTTP/1.1 2000 OK\r\n"),
		STR("HTTP/1.1  200 OK\r\n"),
		STR("HTTP/1.1\r\n"),
		STR("ICY 200 OK of old\r\n"),
		STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"),
		STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		expect_bad(HTTP1_RESPONSE, cases[i], 400);
	expect_bad(HTTP1_RESPONSE, STR("HTTP/3.0 200 OK\r\n"), 505);
}

static void bodies_of_requests_follow_their_head(void **state)
{
	struct http1 h = {.kind = HTTP1_REQUEST};
	struct http1_body b;

	(void)state;
	http1_body_of_request(&b, &h);
	assert_int_equal(b.mode, HTTP1_NO_BODY);
	assert_true(b.done);
	h.has_length = true;
	http1_body_of_request(&b, &h);
	assert_int_equal(b.mode, HTTP1_LENGTH);
	assert_true(b.done);
	h.length = 7;
	http1_body_of_request(&b, &h);
	assert_false(b.done);
	assert_int_equal(b.left, 7);
	h.has_length = false;
	h.chunked = true;
	http1_body_of_request(&b, &h);
	assert_int_equal(b.mode, HTTP1_CHUNKED);
	assert_false(b.done);
}

/* Decode in pieces; the result is in out. */
static enum http1_result decode(struct http1_body *b, struct str text, size_t step, struct buf *out,
				size_t *ret_used)
{
	enum http1_result r = HTTP1_MORE;
	size_t at = 0;

	while (r == HTTP1_MORE && at < text.n) {
		size_t n = text.n - at < step ? text.n - at : step, used;
		struct str data;

		r = http1_body_feed(b, (struct str){text.p + at, n}, &data, &used);
		if (r == HTTP1_BAD)
			break;
		assert_true(used <= n && data.n <= used);
		buf_addstr(out, data);
		at += used;
	}
	*ret_used = at;
	return r;
}

static void chunks_are_joined_whatever_the_cut(void **state)
{
	struct str text = STR("5\r\nhello\r\n"
			      "00A;name=\"v\";x\r\n0123456789\r\n"
			      "1\r\n!\r\n"
			      "0\r\nX-Trailer: a\r\nY: b\r\n\r\nnext");

	(void)state;
	for (size_t step = 1; step <= text.n; step++) {
		struct http1_body b = {.mode = HTTP1_CHUNKED};
		struct buf out;
		size_t used;

		buf_init(&out, 100);
		assert_int_equal(decode(&b, text, step, &out, &used), HTTP1_DONE);
		assert_int_equal(used, text.n - 4);
		assert_true(str_is(buf_str(&out), "hello0123456789!"));
		buf_release(&out);
	}
}

static void malformed_chunks_are_refused(void **state)
{
	static const struct str cases[] = {
		STR("\r\n"),
		STR("g\r\n"),
		STR(";x\r\n"),
		STR(" 5\r\nhello\r\n"),
		STR("5 \r\nhello\r\n"),
		STR("0x5\r\nhello\r\n"),
		STR("-5\r\nhello\r\n"),
		STR("5\nhello\r\n"),
		STR("5\r\rhello\r\n"),
		STR("5;\x01\r\nhello\r\n"),
		STR("5\r\nhelloX\r\n"),
		STR("5\r\nhello\n"),
		STR("5\r\nhello\r\r"),
		STR("1000000000000000\r\n"),
		STR("0\r\nbad\x01\r\n\r\n"),
		STR("0\r\na: b\n\r\n"),
		STR("0\r\na: b\r\r\n"),
		STR("0\r\n\rX"),
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t step = 1; step < 4; step++) {
			struct http1_body b = {.mode = HTTP1_CHUNKED};
			struct buf out;
			size_t used;

			buf_init(&out, 100);
			if (decode(&b, cases[i], step, &out, &used) != HTTP1_BAD)
				fail_msg("accepted: %.*s", STR_ARG(cases[i]));
			buf_release(&out);
		}
	}
}

static void extensions_and_trailers_are_bounded(void **state)
{
	char text[10000];
	struct buf out;
	size_t used;

	(void)state;
	buf_init(&out, 100);
	memset(text, 'x', sizeof(text));
	memcpy(text, "5;", 2);
	struct http1_body b = {.mode = HTTP1_CHUNKED};

	assert_int_equal(decode(&b, (struct str){text, sizeof(text)}, 50, &out, &used), HTTP1_BAD);
	memcpy(text, "0\r\n", 3);
	b = (struct http1_body){.mode = HTTP1_CHUNKED};
	assert_int_equal(decode(&b, (struct str){text, sizeof(text)}, 50, &out, &used), HTTP1_BAD);
	assert_int_equal(out.n, 0);
	buf_release(&out);
}

static void a_length_is_kept_to(void **state)
{
	struct http1_body b = {.mode = HTTP1_LENGTH, .left = 5};
	struct buf out;
	size_t used;

	(void)state;
	buf_init(&out, 100);
	assert_int_equal(decode(&b, STR("hello and more"), 3, &out, &used), HTTP1_DONE);
	assert_int_equal(used, 5);
	assert_true(str_is(buf_str(&out), "hello"));
	assert_int_equal(decode(&b, STR("more"), 3, &out, &used), HTTP1_DONE);
	assert_int_equal(used, 0);
	buf_release(&out);
	b = (struct http1_body){.mode = HTTP1_UNTIL_CLOSE};
	assert_int_equal(decode(&b, STR("hello"), 3, &out, &used), HTTP1_MORE);
	assert_true(str_is(buf_str(&out), "hello"));
	buf_release(&out);
	b = (struct http1_body){.mode = HTTP1_NO_BODY};
	assert_int_equal(decode(&b, STR("hello"), 3, &out, &used), HTTP1_DONE);
	assert_int_equal(used, 0);
	buf_release(&out);
}

static void statuses_have_names(void **state)
{
	(void)state;
	assert_string_equal(http1_reason(200), "OK");
	assert_string_equal(http1_reason(507), "Insufficient Storage");
	assert_string_equal(http1_reason(299), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_understood_in_pieces_of_any_size),
		cmocka_unit_test(a_reset_parser_takes_the_next_head),
		cmocka_unit_test(ambiguous_and_malformed_requests_are_refused),
		cmocka_unit_test(heads_are_bounded),
		cmocka_unit_test(responses_are_understood),
		cmocka_unit_test(malformed_responses_are_refused),
		cmocka_unit_test(bodies_of_requests_follow_their_head),
		cmocka_unit_test(chunks_are_joined_whatever_the_cut),
		cmocka_unit_test(malformed_chunks_are_refused),
		cmocka_unit_test(extensions_and_trailers_are_bounded),
		cmocka_unit_test(a_length_is_kept_to),
		cmocka_unit_test(statuses_have_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
