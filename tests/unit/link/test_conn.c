/* Connections: framing under every cut, back-pressure, ends of all kinds. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/err.h"
#include "link/conn.h"
#include "sys/loop.h"
#include "tls_pair.h"

struct end {
	struct conn *conn;
	int frames, closes, drains;
	size_t bytes;
	uint32_t sum; /* order-dependent, over types and payloads */
	struct err why;
	/* What to do in on_frame. */
	bool close_at_frame, free_at_frame, free_at_close;
	char last[64];
};

struct world {
	struct loop *loop;
	struct end a, b;
	int raw; /* the other end of a, when it is no conn */
};

static uint32_t mix(uint32_t h, const void *p, size_t n)
{
	const uint8_t *in = p;

	for (size_t i = 0; i < n; i++)
		h = (h ^ in[i]) * 16777619u;
	return h;
}

static void on_frame(void *ctx, const struct frame *f)
{
	struct end *e = ctx;

	assert_int_equal(e->closes, 0);
	e->frames++;
	e->bytes += f->payload.n;
	e->sum = mix(mix(e->sum, &f->type, 1), f->payload.p, f->payload.n);
	size_t n = f->payload.n < sizeof(e->last) - 1 ? f->payload.n : sizeof(e->last) - 1;

	memcpy(e->last, f->payload.p, n);
	e->last[n] = '\0';
	if (e->close_at_frame) {
		conn_send(e->conn, FRAME_BYE, 0, STR("enough"), STR(""));
		conn_close(e->conn);
	}
	if (e->free_at_frame)
		e->conn = conn_free(e->conn);
}

static void on_drained(void *ctx)
{
	struct end *e = ctx;

	e->drains++;
}

static void on_close(void *ctx, const struct err *why)
{
	struct end *e = ctx;

	e->closes++;
	e->why = *why;
	if (e->free_at_close)
		e->conn = conn_free(e->conn);
}

static const struct conn_events events = {on_frame, on_drained, on_close};

static int setup_pair(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	int fd[2];

	w->loop = loop_new();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
		return -1;
	w->a.conn = conn_new(w->loop, fd[0], &events, &w->a);
	w->b.conn = conn_new(w->loop, fd[1], &events, &w->b);
	w->raw = -1;
	*state = w;
	return 0;
}

static int setup_tls_pair(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	struct transport t[2];

	w->loop = loop_new();
	pair_new(t);
	w->a.conn = conn_new_over(w->loop, &t[0], &events, &w->a);
	w->b.conn = conn_new_over(w->loop, &t[1], &events, &w->b);
	w->raw = -1;
	*state = w;
	return 0;
}

static int setup_raw(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	int fd[2];

	w->loop = loop_new();
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) < 0)
		return -1;
	w->a.conn = conn_new(w->loop, fd[0], &events, &w->a);
	w->raw = fd[1];
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	conn_free(w->a.conn);
	conn_free(w->b.conn);
	if (w->raw >= 0)
		close(w->raw);
	loop_free(w->loop);
	free(w);
	return 0;
}

static void run_until(struct world *w, const int *counter, int at_least)
{
	for (int i = 0; i < 20000 && *counter < at_least; i++)
		loop_round(w->loop, 200);
	assert_true(*counter >= at_least);
}

static void quiet(struct world *w)
{
	for (int i = 0; i < 20; i++)
		loop_round(w->loop, 0);
}

static size_t put_frame(uint8_t *out, uint8_t type, const char *payload)
{
	size_t n = strlen(payload);

	frame_header(out, type, 0, 0, (uint32_t)n);
	memcpy(out + FRAME_HEADER, payload, n);
	return FRAME_HEADER + n;
}

static void head_and_body_arrive_as_one_payload(void **state)
{
	struct world *w = *state;

	conn_send(w->a.conn, FRAME_HELLO, 0, STR("head "), STR("body"));
	run_until(w, &w->b.frames, 1);
	assert_string_equal(w->b.last, "head body");
	conn_send(w->b.conn, FRAME_PONG, 0, STR(""), STR(""));
	run_until(w, &w->a.frames, 1);
	assert_int_equal(w->a.bytes, 0);
	assert_int_equal(conn_queued(w->a.conn), 0);
}

static void a_peer_may_send_as_much_as_it_was_allowed_last(void **state)
{
	struct world *w = *state;
	uint8_t wire[256];
	size_t n;

	conn_set_max(w->a.conn, 4);
	n = put_frame(wire, FRAME_HELLO, "four");
	assert_int_equal(write(w->raw, wire, n), n);
	run_until(w, &w->a.frames, 1);
	conn_set_max(w->a.conn, FRAME_MAX_PAYLOAD);
	n = put_frame(wire, FRAME_HELLO, "more than four");
	assert_int_equal(write(w->raw, wire, n), n);
	run_until(w, &w->a.frames, 2);
	conn_set_max(w->a.conn, 4);
	/* The header is enough. */
	assert_int_equal(write(w->raw, wire, FRAME_HEADER), FRAME_HEADER);
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->a.frames, 2);
	assert_int_equal(w->a.why.kind, ERR_PROTOCOL);
}

/* Three frames cut at every pair of places. */
static void frames_survive_every_cut(void **state)
{
	struct world *w = *state;
	uint8_t wire[256];
	size_t n = 0;
	uint32_t want = 0;
	static const char *const texts[] = {"first", "", "the third one"};

	for (int i = 0; i < 3; i++) {
		uint8_t type = (uint8_t)(FRAME_HELLO + i);

		n += put_frame(wire + n, type, texts[i]);
		want = mix(mix(want, &type, 1), texts[i], strlen(texts[i]));
	}
	for (size_t i = 0; i <= n; i++) {
		for (size_t j = i; j <= n; j++) {
			w->a.frames = 0;
			w->a.sum = 0;
			assert_int_equal(write(w->raw, wire, i), i);
			loop_round(w->loop, 0);
			assert_int_equal(write(w->raw, wire + i, j - i), j - i);
			loop_round(w->loop, 0);
			assert_int_equal(write(w->raw, wire + j, n - j), n - j);
			for (int k = 0; k < 3 && w->a.frames < 3; k++)
				loop_round(w->loop, 0);
			assert_int_equal(w->a.frames, 3);
			assert_true(w->a.sum == want);
		}
	}
	assert_int_equal(w->a.closes, 0);
}

/* More than the socket takes: big and small frames queue up, keep their order, and drain. */
static void what_the_socket_does_not_take_is_queued_in_order(void **state)
{
	struct world *w = *state;
	size_t big = 700 * 1024;
	char *body = xcalloc(1, big);
	uint32_t want = 0;
	uint8_t type = FRAME_DATA;

	for (int i = 0; i < 9; i++) {
		memset(body, 'a' + i, big);
		size_t n = i % 3 == 2 ? 11 : big - (size_t)i;

		conn_send(w->a.conn, FRAME_DATA, 1, (struct str){body, 3},
			  (struct str){body + 3, n - 3});
		want = mix(mix(want, &type, 1), body, n);
	}
	assert_true(conn_queued(w->a.conn) >= CONN_LOW_WATER);
	run_until(w, &w->b.frames, 9);
	assert_true(w->b.sum == want);
	run_until(w, &w->a.drains, 1);
	assert_int_equal(w->a.drains, 1);
	assert_int_equal(conn_queued(w->a.conn), 0);
	free(body);
}

/* Small frames behind a full socket share chunks, and more chunks wait than one write takes. */
static void many_waiting_frames_keep_their_order(void **state)
{
	struct world *w = *state;
	size_t n = 60 * 1024;
	char *body = xcalloc(1, n);
	uint32_t want = 0;
	int sent = 0;

	while (conn_queued(w->a.conn) < 5 * 1024 * 1024) {
		uint8_t type = FRAME_DATA;
		size_t len = sent % 4 == 0 ? n : 30;

		memset(body, sent, 100);
		conn_send(w->a.conn, FRAME_DATA, 0, STR(""), (struct str){body, len});
		want = mix(mix(want, &type, 1), body, len);
		sent++;
	}
	run_until(w, &w->b.frames, sent);
	assert_int_equal(w->b.frames, sent);
	assert_true(w->b.sum == want);
	free(body);
}

/* One frame for many: sent at once, queued whole and queued in part, between frames of one peer only. */
static void a_shared_frame_arrives_in_its_place_and_outlives_its_maker(void **state)
{
	struct world *w = *state;
	size_t n = 700 * 1024;
	char *body = xcalloc(1, n);
	uint8_t steer = FRAME_PING, members = FRAME_MEMBERS;
	uint32_t want = 0;

	memset(body, 'm', n);
	struct conn_shared *s = conn_shared_new(FRAME_MEMBERS, (struct str){body, n});

	for (int i = 0; i < 4; i++) {
		char text[2] = {(char)('0' + i), '\0'};

		conn_send_shared(w->a.conn, s);
		conn_send(w->a.conn, FRAME_PING, 0, str_from(text), STR(""));
		want = mix(mix(want, &members, 1), body, n);
		want = mix(mix(want, &steer, 1), text, 1);
	}
	assert_true(conn_queued(w->a.conn) > 0);
	assert_null(conn_shared_free(s)); /* the queue has its own share */
	run_until(w, &w->b.frames, 8);
	assert_true(w->b.sum == want);
	assert_int_equal(conn_queued(w->a.conn), 0);
	free(body);
}

static void a_connection_that_ends_gives_its_share_back(void **state)
{
	struct world *w = *state;
	char *body = xcalloc(1, FRAME_MAX_PAYLOAD);
	struct conn_shared *s =
		conn_shared_new(FRAME_MEMBERS, (struct str){body, FRAME_MAX_PAYLOAD});

	for (int i = 0; i < 4; i++)
		conn_send_shared(w->a.conn, s);
	assert_true(conn_queued(w->a.conn) > 0);
	w->a.conn = conn_free(w->a.conn);
	conn_shared_free(s); /* the last one: the leak checker tells */
	free(body);
}

static void the_largest_frame_passes(void **state)
{
	struct world *w = *state;
	char *body = xcalloc(1, FRAME_MAX_PAYLOAD);

	conn_send(w->a.conn, FRAME_DATA, 0, STR(""), (struct str){body, FRAME_MAX_PAYLOAD});
	conn_send(w->a.conn, FRAME_PING, 0, STR("x"), STR(""));
	run_until(w, &w->b.frames, 2);
	assert_int_equal(w->b.bytes, FRAME_MAX_PAYLOAD + 1);
	free(body);
}

static void close_flushes_first(void **state)
{
	struct world *w = *state;
	size_t n = 1000 * 1000;
	char *body = xcalloc(1, n);

	for (int i = 0; i < 6; i++)
		conn_send(w->a.conn, FRAME_DATA, 0, STR(""), (struct str){body, n});
	assert_true(conn_queued(w->a.conn) > 0);
	conn_close(w->a.conn);
	conn_send(w->a.conn, FRAME_PING, 0, STR("dropped"), STR(""));
	conn_close(w->a.conn);
	assert_int_equal(w->a.closes, 0);
	run_until(w, &w->b.closes, 1);
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->b.frames, 6);
	assert_int_equal(w->b.why.kind, ERR_NONE);
	assert_int_equal(w->a.why.kind, ERR_NONE);
	quiet(w);
	assert_int_equal(w->a.closes, 1);
	assert_int_equal(w->b.closes, 1);
	free(body);
}

static void closing_an_idle_connection_is_told_later(void **state)
{
	struct world *w = *state;

	w->a.free_at_close = w->b.free_at_close = true;
	conn_close(w->a.conn);
	assert_int_equal(w->a.closes, 0);
	run_until(w, &w->a.closes, 1);
	run_until(w, &w->b.closes, 1);
	assert_null(w->a.conn);
	assert_null(w->b.conn);
}

static void after_close_in_on_frame_no_frame_comes(void **state)
{
	struct world *w = *state;

	w->b.close_at_frame = true;
	for (int i = 0; i < 5; i++)
		conn_send(w->a.conn, FRAME_PING, 0, STR("ping"), STR(""));
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->b.frames, 1);
	assert_int_equal(w->a.frames, 1);
	assert_string_equal(w->a.last, "enough");
	run_until(w, &w->b.closes, 1);
}

static void even_a_free_in_on_frame_is_survived(void **state)
{
	struct world *w = *state;

	w->b.free_at_frame = true;
	for (int i = 0; i < 5; i++)
		conn_send(w->a.conn, FRAME_PING, 0, STR("ping"), STR(""));
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->b.frames, 1);
	assert_null(w->b.conn);
	assert_int_equal(w->b.closes, 0);
}

static void free_says_nothing(void **state)
{
	struct world *w = *state;

	conn_close(w->a.conn);
	w->a.conn = conn_free(w->a.conn);
	assert_null(conn_free(NULL));
	run_until(w, &w->b.closes, 1);
	assert_int_equal(w->b.why.kind, ERR_NONE);
	quiet(w);
	assert_int_equal(w->a.closes, 0);
}

static void a_peer_that_does_not_read_is_cut(void **state)
{
	struct world *w = *state;
	size_t n = 512 * 1024;
	char *body = xcalloc(1, n);
	int sent = 0;

	while (w->a.closes == 0 && sent < 100) {
		conn_send(w->a.conn, FRAME_DATA, 0, STR(""), (struct str){body, n});
		assert_true(conn_queued(w->a.conn) <= CONN_MAX_QUEUE);
		assert_int_equal(w->a.closes, 0); /* never from inside */
		sent++;
		if (conn_queued(w->a.conn) == 0 && sent > 10)
			loop_round(w->loop, 0);
	}
	assert_int_equal(w->a.closes, 1);
	assert_int_equal(w->a.why.kind, ERR_CAPACITY);
	free(body);
}

static void garbage_ends_the_connection(void **state)
{
	struct world *w = *state;
	uint8_t wire[64];
	size_t n = put_frame(wire, FRAME_PING, "fine");

	memset(wire + n, 0xff, FRAME_HEADER);
	assert_int_equal(write(w->raw, wire, n + FRAME_HEADER), n + FRAME_HEADER);
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->a.frames, 1);
	assert_int_equal(w->a.why.kind, ERR_PROTOCOL);
}

static void a_peer_that_leaves_inside_a_frame_is_noticed(void **state)
{
	struct world *w = *state;
	uint8_t wire[64];
	size_t n = put_frame(wire, FRAME_PING, "cut off");

	assert_int_equal(write(w->raw, wire, n - 1), n - 1);
	quiet(w);
	close(w->raw);
	w->raw = -1;
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->a.frames, 0);
	assert_int_equal(w->a.why.kind, ERR_UNAVAILABLE);
}

static void a_peer_that_leaves_inside_a_header_is_noticed(void **state)
{
	struct world *w = *state;

	assert_int_equal(write(w->raw, "\0\0", 2), 2);
	quiet(w);
	close(w->raw);
	w->raw = -1;
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->a.why.kind, ERR_UNAVAILABLE);
}

/* The peer says why and leaves while we send: its last words come first. */
static void the_last_words_are_heard_although_sending_fails(void **state)
{
	struct world *w = *state;
	uint8_t wire[64];
	size_t n = put_frame(wire, FRAME_REFUSE, "go away");

	assert_int_equal(write(w->raw, wire, n), n);
	close(w->raw);
	w->raw = -1;
	conn_send(w->a.conn, FRAME_HELLO, 0, STR("hello"), STR(""));
	conn_send(w->a.conn, FRAME_HELLO, 0, STR("hello"), STR(""));
	assert_int_equal(w->a.closes, 0);
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->a.frames, 1);
	assert_string_equal(w->a.last, "go away");
	assert_int_equal(w->a.why.kind, ERR_UNAVAILABLE);
}

static void a_reset_is_an_error(void **state)
{
	struct world *w = *state;

	/* Unread bytes at the peer's close make it a reset. */
	conn_send(w->a.conn, FRAME_PING, 0, STR("unread"), STR(""));
	close(w->raw);
	w->raw = -1;
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->a.why.kind, ERR_UNAVAILABLE);
}

static void closing_towards_a_dead_peer_ends(void **state)
{
	struct world *w = *state;
	char *body = xcalloc(1, FRAME_MAX_PAYLOAD);

	for (int i = 0; i < 5; i++)
		conn_send(w->a.conn, FRAME_DATA, 0, STR(""), (struct str){body, FRAME_MAX_PAYLOAD});
	assert_true(conn_queued(w->a.conn) > 0);
	conn_close(w->a.conn);
	close(w->raw);
	w->raw = -1;
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->a.why.kind, ERR_UNAVAILABLE);
	free(body);
}

/* The test is built with a short CONN_FLUSH_MS. */
static void closing_towards_a_peer_that_does_not_read_ends(void **state)
{
	struct world *w = *state;
	char *body = xcalloc(1, FRAME_MAX_PAYLOAD);

	for (int i = 0; i < 5; i++)
		conn_send(w->a.conn, FRAME_DATA, 0, STR(""), (struct str){body, FRAME_MAX_PAYLOAD});
	assert_true(conn_queued(w->a.conn) > 0);
	conn_close(w->a.conn);
	run_until(w, &w->a.closes, 1);
	assert_int_equal(w->a.why.kind, ERR_TIMEOUT);
	free(body);
}

static void accept_b(void *ctx, int fd)
{
	struct world *w = ctx;

	w->b.conn = conn_new(w->loop, fd, &events, &w->b);
}

static void it_works_over_tcp(void **state)
{
	struct world *w = *state;
	struct listener *li = NULL;
	struct err err = {0};
	int port = 0, fd = -1;

	w->raw = -1;
	assert_int_equal(listen_tcp(w->loop, "127.0.0.1", 0, accept_b, w, &port, &li, &err), 0);
	assert_int_equal(dial_tcp("127.0.0.1", port, 1000, &fd, &err), 0);
	w->a.conn = conn_new(w->loop, fd, &events, &w->a);
	conn_send(w->a.conn, FRAME_HELLO, 0, STR("over tcp"), STR(""));
	run_until(w, &w->b.frames, 1);
	assert_string_equal(w->b.last, "over tcp");
	listener_free(li);
}

static int setup_nothing(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	w->loop = loop_new();
	*state = w;
	return 0;
}

/* Each rule of a pair holds on every transport. */
#define PAIR(f)                                                                                    \
	cmocka_unit_test_setup_teardown(f, setup_pair, teardown),                                  \
	{                                                                                          \
#f "_over_tls", f, setup_tls_pair, teardown, NULL                                  \
	}
#define RAW(f) cmocka_unit_test_setup_teardown(f, setup_raw, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR(head_and_body_arrive_as_one_payload),
		RAW(a_peer_may_send_as_much_as_it_was_allowed_last),
		RAW(frames_survive_every_cut),
		PAIR(what_the_socket_does_not_take_is_queued_in_order),
		PAIR(many_waiting_frames_keep_their_order),
		PAIR(a_shared_frame_arrives_in_its_place_and_outlives_its_maker),
		PAIR(a_connection_that_ends_gives_its_share_back),
		PAIR(the_largest_frame_passes),
		PAIR(close_flushes_first),
		PAIR(closing_an_idle_connection_is_told_later),
		PAIR(after_close_in_on_frame_no_frame_comes),
		PAIR(even_a_free_in_on_frame_is_survived),
		PAIR(free_says_nothing),
		RAW(a_peer_that_does_not_read_is_cut),
		RAW(garbage_ends_the_connection),
		RAW(a_peer_that_leaves_inside_a_frame_is_noticed),
		RAW(a_peer_that_leaves_inside_a_header_is_noticed),
		RAW(the_last_words_are_heard_although_sending_fails),
		RAW(a_reset_is_an_error),
		RAW(closing_towards_a_dead_peer_ends),
		RAW(closing_towards_a_peer_that_does_not_read_ends),
		cmocka_unit_test_setup_teardown(it_works_over_tcp, setup_nothing, teardown),
	};

	signal(SIGPIPE, SIG_IGN); /* as every program of ours does: OpenSSL writes with write() */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
