/* Connections over TLS whose other end is no conn: records cut anywhere, ends of all kinds. */
#include "tls_pair.h"

#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>

#include <openssl/ssl.h>

#include "base/clock.h"
#include "base/rand.h"
#include "link/conn.h"
#include "net/address.h"
#include "sys/loop.h"

#define IDLE 1000
#define WAIT_MS 20000

struct world {
	struct loop *loop;
	struct conn *conn;
	struct transport peer; /* fd -1: closed */
	int frames, closes, drains;
	size_t bytes;
	struct err why;
	char types[256]; /* of the frames, one letter each */
};

static void on_frame(void *ctx, const struct frame *f)
{
	struct world *w = ctx;

	if ((size_t)w->frames < sizeof(w->types) - 1)
		w->types[w->frames] = (char)('a' + f->type);
	w->frames++;
	w->bytes += f->payload.n;
}

static void on_drained(void *ctx)
{
	struct world *w = ctx;

	w->drains++;
}

static void on_close(void *ctx, const struct err *why)
{
	struct world *w = ctx;

	w->closes++;
	w->why = *why;
}

static const struct conn_events events = {on_frame, on_drained, on_close};

static void begin(struct world *w, const struct transport t[2])
{
	w->loop = loop_new();
	w->conn = conn_new_over(w->loop, &t[0], &events, w);
	w->peer = t[1];
}

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	struct transport t[2];

	pair_new(t);
	begin(w, t);
	*state = w;
	return 0;
}

static int setup_old(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	struct transport t[2];
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
	pair_begin(fd, t);
	SSL_set_max_proto_version(t[1].ssl, TLS1_2_VERSION);
	pair_finish(t);
	begin(w, t);
	*state = w;
	return 0;
}

static void tcp_pair(int fd[2])
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	fd[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(l, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&at, &len), 0);
	assert_int_equal(connect(fd[1], (struct sockaddr *)&at, sizeof(at)), 0);
	fd[0] = accept4(l, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd[0] >= 0);
	close(l);
}

static int setup_tcp(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));
	struct transport t[2];
	int fd[2];

	tcp_pair(fd);
	pair_begin(fd, t);
	pair_finish(t);
	begin(w, t);
	*state = w;
	return 0;
}

static void close_peer(struct world *w)
{
	if (w->peer.fd >= 0)
		w->peer.ops->close(&w->peer);
}

static int teardown(void **state)
{
	struct world *w = *state;

	conn_free(w->conn);
	close_peer(w);
	loop_free(w->loop);
	free(w);
	return 0;
}

static void run_until(struct world *w, const int *counter, int at_least)
{
	int64_t give_up = clock_boot_ms() + WAIT_MS;

	while (*counter < at_least && clock_boot_ms() < give_up)
		loop_round(w->loop, 100);
	assert_true(*counter >= at_least);
}

static void peer_write(struct world *w, const void *p, size_t n)
{
	struct iovec iov = {(void *)(uintptr_t)p, n};

	assert_int_equal(w->peer.ops->writev(&w->peer, &iov, 1), n);
}

static size_t put_frame(uint8_t *out, uint8_t type, const char *payload)
{
	size_t n = strlen(payload);

	frame_header(out, type, 0, 0, (uint32_t)n);
	memcpy(out + FRAME_HEADER, payload, n);
	return FRAME_HEADER + n;
}

/* Read what comes until n bytes are there or the end; the bytes of type at each frame's border. */
static size_t peer_read(struct world *w, uint8_t *out, size_t n)
{
	size_t got = 0;

	for (int i = 0; i < 20000 && got < n; i++) {
		ssize_t r = w->peer.ops->read(&w->peer, out + got, n - got);

		if (r == 0 || (r < 0 && errno != EAGAIN))
			break;
		if (r < 0)
			loop_round(w->loop, 1);
		else
			got += (size_t)r;
	}
	return got;
}

/* Every pair of cuts is a record of its own. */
static void frames_survive_records_cut_anywhere(void **state)
{
	struct world *w = *state;
	uint8_t wire[256];
	size_t n = put_frame(wire, FRAME_PING, "first");

	n += put_frame(wire + n, FRAME_PONG, "");
	n += put_frame(wire + n, FRAME_DATA, "third");
	for (size_t i = 1; i < n; i++) {
		w->frames = 0;
		peer_write(w, wire, i);
		loop_round(w->loop, 0);
		peer_write(w, wire + i, n - i);
		run_until(w, &w->frames, 3);
		assert_memory_equal(w->types, "rsj", 3);
	}
	w->frames = 0;
	for (size_t i = 0; i < n; i++)
		peer_write(w, wire + i, 1); /* n records at once */
	run_until(w, &w->frames, 3);
	assert_int_equal(w->closes, 0);
}

/* The bytes of records themselves arrive one by one. */
static void records_may_arrive_byte_by_byte(void **state)
{
	struct world *w = *state;
	uint8_t wire[64], cipher[512];
	size_t n = put_frame(wire, FRAME_PING, "slow");
	int side[2];

	/* The peer's TLS writes to a socket of ours; from there the bytes are passed on singly. */
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, side), 0);
	int real = dup(w->peer.fd);

	assert_int_equal(dup2(side[0], w->peer.fd), w->peer.fd);
	peer_write(w, wire, n);
	ssize_t got = recv(side[1], cipher, sizeof(cipher), 0);

	assert_true(got > 0);
	for (ssize_t i = 0; i < got; i++) {
		assert_int_equal(w->frames, 0);
		assert_int_equal(send(real, cipher + i, 1, 0), 1);
		loop_round(w->loop, 100);
	}
	run_until(w, &w->frames, 1);
	close(real);
	close(side[0]);
	close(side[1]);
}

/* One round reads 1 MiB and a bit.  What is sent ends in the record in whose middle that is: the rest
 * of it is in OpenSSL, where no readiness tells of it. */
static void nothing_waits_inside_openssl(void **state)
{
	enum { FRAMES = 1047, PAYLOAD = 1000, RECORD = 16000 };
	struct world *w = *state;
	size_t frame = FRAME_HEADER + PAYLOAD, total = FRAMES * frame;
	int room = 4 << 20;
	uint8_t *all = xcalloc(1, total);

	if (setsockopt(w->peer.fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)) < 0) {
		free(all);
		skip(); /* only root may */
	}
	for (size_t i = 0; i < FRAMES; i++)
		frame_header(all + i * frame, FRAME_DATA, 0, 0, PAYLOAD);
	for (size_t at = 0; at < total; at += RECORD)
		peer_write(w, all + at, total - at < RECORD ? total - at : RECORD);
	run_until(w, &w->frames, FRAMES);
	free(all);
}

/* A record that is not whole yet lies in OpenSSL's buffer: the loop sleeps until the rest comes. */
static void half_a_record_is_waited_for_without_turning(void **state)
{
	static const uint8_t head[] = {23, 3, 3};
	struct world *w = *state;
	uint8_t wire[64];

	peer_write(w, wire, put_frame(wire, FRAME_PING, "whole"));
	assert_int_equal(send(w->peer.fd, head, sizeof(head), 0), sizeof(head));
	run_until(w, &w->frames, 1);
	loop_round(w->loop, 0);
	int64_t start = clock_boot_ms();

	for (int i = 0; i < 3; i++)
		loop_round(w->loop, 50);
	assert_true(clock_boot_ms() - start >= 100);
	assert_int_equal(w->closes, 0);
}

static void an_orderly_end_is_told_as_one(void **state)
{
	struct world *w = *state;
	uint8_t wire[64];

	peer_write(w, wire, put_frame(wire, FRAME_BYE, "bye"));
	w->peer.ops->end_output(&w->peer);
	run_until(w, &w->closes, 1);
	assert_int_equal(w->frames, 1);
	assert_int_equal(w->why.kind, ERR_NONE);
	/* We said goodbye, too. */
	uint8_t byte;

	assert_int_equal(w->peer.ops->read(&w->peer, &byte, 1), 0);
}

static void an_end_without_a_goodbye_is_an_error(void **state)
{
	struct world *w = *state;
	uint8_t wire[64];

	/* At the border of a frame: only TLS can tell that something may be missing. */
	peer_write(w, wire, put_frame(wire, FRAME_PING, "whole"));
	close_peer(w);
	run_until(w, &w->closes, 1);
	assert_int_equal(w->frames, 1);
	assert_int_equal(w->why.kind, ERR_UNAVAILABLE);
}

/* What an attacker on the way changes is no frame. */
static void a_changed_byte_ends_the_connection(void **state)
{
	struct world *w = *state;

	static const uint8_t record[] = {23, 3,	 3,  0,	 20, 1,	 2,  3,	 4,  5,	 6,  7, 8,
					 9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
	assert_int_equal(send(w->peer.fd, record, sizeof(record), 0), sizeof(record));
	run_until(w, &w->closes, 1);
	assert_int_equal(w->frames, 0);
	assert_int_not_equal(w->why.kind, ERR_NONE);
}

static void a_reset_at_any_byte_ends_it_once(void **state)
{
	struct linger now = {.l_onoff = 1};
	struct rng rng;
	uint64_t seed = rand_u64();
	void *again;

	(void)state;
	print_message("# seed %llu\n", (unsigned long long)seed);
	rng_seed(&rng, seed);
	for (int i = 0; i < 60; i++) {
		uint8_t wire[4096], cipher[8192];
		char text[3000];
		int side[2];

		setup_tcp(&again);
		struct world *w = again;
		memset(text, 'x', sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		size_t n = put_frame(wire, FRAME_DATA, text);

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, side), 0);
		int real = dup(w->peer.fd);
		assert_int_equal(dup2(side[0], w->peer.fd), w->peer.fd);
		peer_write(w, wire, n);
		ssize_t got = recv(side[1], cipher, sizeof(cipher), 0);
		size_t cut = (size_t)rng_below(&rng, (uint64_t)got + 1);

		if (cut > 0)
			assert_int_equal(send(real, cipher, cut, 0), cut);
		if (i % 2)
			loop_round(w->loop, 0);
		setsockopt(real, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
		close(real);
		run_until(w, &w->closes, 1);
		assert_true(w->frames == 0 || cut == (size_t)got);
		assert_int_not_equal(w->why.kind, ERR_NONE);
		assert_int_equal(w->closes, 1);
		close(side[0]);
		close(side[1]);
		teardown(&again);
	}
}

/* Types of the frames in a text of n bytes. */
static void list_frames(const uint8_t *p, size_t n, char *types, size_t room)
{
	struct frame f;
	size_t used, k = 0;

	while (k + 1 < room && frame_decode((struct str){(const char *)p, n}, &f, &used) > 0) {
		types[k++] = (char)('a' + f.type);
		p += used;
		n -= used;
	}
	assert_int_equal(n, 0);
	types[k] = '\0';
}

static void steering_frames_overtake_what_waits(void **state)
{
	struct world *w = *state;
	size_t frame = 200 * 1024, total = 0;
	char *body = xcalloc(1, frame);
	int sent = 0;

	while (conn_queued(w->conn) < 3 * 1024 * 1024) {
		conn_send(w->conn, FRAME_DATA, 0, STR(""), (struct str){body, frame});
		total += FRAME_HEADER + frame;
		sent++;
	}
	conn_send(w->conn, FRAME_STARTED, 0, STR("{}"), STR(""));
	conn_send(w->conn, FRAME_METRICS, 0, STR("{}"), STR(""));
	conn_send(w->conn, FRAME_EXIT, 0, STR("{}"), STR(""));
	conn_send(w->conn, FRAME_BYE, 0, STR("{}"), STR(""));
	total += 4 * (FRAME_HEADER + 2);
	uint8_t *all = xmalloc(total);
	char types[64];

	assert_int_equal(peer_read(w, all, total), total);
	list_frames(all, total, types, sizeof(types));
	const char *started = strchr(types, 'a' + FRAME_STARTED),
		   *ended = strchr(types, 'a' + FRAME_EXIT);

	/* In order among themselves, before most of the data; metrics and goodbye stay behind it. */
	assert_non_null(started);
	assert_ptr_equal(ended, started + 1);
	assert_true(strlen(ended) > (size_t)sent / 2);
	assert_int_equal(types[strlen(types) - 1], 'a' + FRAME_BYE);
	assert_int_equal(types[strlen(types) - 2], 'a' + FRAME_METRICS);
	free(all);
	free(body);
}

/* The peer takes a little now and then: the socket is full again and again, in the middle of records
 * that OpenSSL holds, while steering frames come between. */
static void a_slow_reader_gets_every_byte_in_order(void **state)
{
	struct world *w = *state;
	struct rng rng;
	uint64_t seed = rand_u64();
	size_t room = 40u << 20, got = 0, total = 0;
	uint8_t *all = xmalloc(room);
	uint8_t *body = xmalloc(300000);
	unsigned char next = 0;

	print_message("# seed %llu\n", (unsigned long long)seed);
	rng_seed(&rng, seed);
	for (int i = 0; i < 400; i++) {
		size_t n = (size_t)rng_below(&rng, 60000);

		if (conn_queued(w->conn) < 2 * 1024 * 1024) {
			for (size_t k = 0; k < n; k++)
				body[k] = next++;
			conn_send(w->conn, FRAME_DATA, 0, STR(""), (struct str){(char *)body, n});
			total += FRAME_HEADER + n;
		}
		if (rng_below(&rng, 3) == 0) {
			conn_send(w->conn, FRAME_PONG, 0, STR("{}"), STR(""));
			total += FRAME_HEADER + 2;
		}
		ssize_t r = w->peer.ops->read(&w->peer, all + got, rng_below(&rng, 50000) + 1);

		if (r > 0)
			got += (size_t)r;
		loop_round(w->loop, 0);
	}
	got += peer_read(w, all + got, total - got);
	assert_int_equal(got, total);
	struct str rest = {(char *)all, got};
	struct frame f;
	size_t used;

	next = 0;
	while (frame_decode(rest, &f, &used) > 0) {
		for (size_t k = 0; f.type == FRAME_DATA && k < f.payload.n; k++)
			assert_int_equal((unsigned char)f.payload.p[k], next++);
		rest.p += used;
		rest.n -= used;
	}
	assert_int_equal(rest.n, 0);
	free(all);
	free(body);
}

static void a_peer_that_stops_reading_is_cut(void **state)
{
	struct world *w = *state;
	size_t n = 512 * 1024;
	char *body = xcalloc(1, n);

	for (int i = 0; i < 100 && w->closes == 0; i++) {
		conn_send(w->conn, FRAME_DATA, 0, STR(""), (struct str){body, n});
		assert_true(conn_queued(w->conn) <= CONN_MAX_QUEUE);
		loop_round(w->loop, 0);
	}
	assert_int_equal(w->closes, 1);
	assert_int_equal(w->why.kind, ERR_CAPACITY);
	free(body);
}

/* TCP, one way closed by the peer: its last words are heard, and we end. */
static void half_open_is_an_end(void **state)
{
	struct world *w = *state;
	uint8_t wire[64];

	peer_write(w, wire, put_frame(wire, FRAME_PING, "last"));
	shutdown(w->peer.fd, SHUT_WR);
	run_until(w, &w->closes, 1);
	assert_int_equal(w->frames, 1);
	assert_int_not_equal(w->why.kind, ERR_NONE);
}

static void little_is_left_to_the_kernel(void **state)
{
	struct world *w = *state;
	int lowat = 0;
	socklen_t len = sizeof(lowat);
	struct address own;
	char iface[CONN_INTERFACE], text[ADDRESS_TEXT];

	assert_true(conn_own_address(w->conn, &own, iface));
	address_text(&own, text);
	assert_string_equal(text, "127.0.0.1");
	assert_string_equal(iface, "lo");
	for (int fd = 3; fd < 64; fd++)
		if (getsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &lowat, &len) == 0 && lowat > 0)
			break;
	assert_true(lowat > 0 && lowat <= 1024 * 1024);
}

/* Keys are changed on the way (TLS 1.3): neither side loses a byte. */
static void new_keys_on_the_way_change_nothing(void **state)
{
	struct world *w = *state;
	uint8_t wire[64], back[64];
	size_t n = put_frame(wire, FRAME_PING, "again");

	for (int i = 1; i <= 20; i++) {
		assert_int_equal(SSL_key_update(w->peer.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
		peer_write(w, wire, n);
		run_until(w, &w->frames, i);
		conn_send(w->conn, FRAME_PING, 0, STR("again"), STR(""));
		assert_int_equal(peer_read(w, back, n), n);
		assert_memory_equal(wire, back, n);
	}
	assert_int_equal(w->closes, 0);
}

/* TLS 1.2, where a client could ask for it again and again. */
static void nobody_negotiates_anew(void **state)
{
	struct world *w = *state;
	uint8_t wire[64];
	size_t n = put_frame(wire, FRAME_PING, "before");
	struct err err = {0};
	short wait;

	assert_int_equal(SSL_version(w->peer.ssl), TLS1_2_VERSION);
	peer_write(w, wire, n);
	run_until(w, &w->frames, 1);
	SSL_clear_options(w->peer.ssl, SSL_OP_NO_RENEGOTIATION); /* ours would not even ask */
	assert_int_equal(SSL_renegotiate(w->peer.ssl), 1);
	int rc = 0;

	for (int i = 0; i < 100 && rc == 0; i++) {
		rc = tls_shake(&w->peer, &wait, &err);
		loop_round(w->loop, 1);
	}
	assert_int_equal(rc, -1);
	assert_int_equal(w->frames, 1);
}

/* Both ends are counted: what a master holds is half of it. */
static void idle_connections_are_small(void **state)
{
	struct loop *l = loop_new();
	struct conn **all = xcalloc(2 * IDLE, sizeof(struct conn *));
	struct world w = {.loop = l};

	(void)state;
	struct mallinfo2 before = mallinfo2();
	for (int i = 0; i < IDLE; i++) {
		struct transport t[2];

		pair_new(t);
		all[2 * i] = conn_new_over(l, &t[0], &events, &w);
		all[2 * i + 1] = conn_new_over(l, &t[1], &events, &w);
		conn_send(all[2 * i], FRAME_PING, 0, STR("{}"), STR(""));
		conn_send(all[2 * i + 1], FRAME_PONG, 0, STR("{}"), STR(""));
		if (i % 64 == 63)
			loop_round(l, 0);
	}
	run_until(&w, &w.frames, 2 * IDLE);
	struct mallinfo2 after = mallinfo2();
	size_t each = (after.uordblks - before.uordblks) / (2 * IDLE);

	print_message("# %zu bytes each\n", each);
	assert_true(each <= 24 * 1024); /* 0 where a sanitizer has replaced malloc */
	for (int i = 0; i < 2 * IDLE; i++)
		conn_free(all[i]);
	free(all);
	loop_free(l);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
#define TCP(f) cmocka_unit_test_setup_teardown(f, setup_tcp, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(frames_survive_records_cut_anywhere),
		T(records_may_arrive_byte_by_byte),
		T(nothing_waits_inside_openssl),
		T(half_a_record_is_waited_for_without_turning),
		T(an_orderly_end_is_told_as_one),
		T(an_end_without_a_goodbye_is_an_error),
		T(a_changed_byte_ends_the_connection),
		cmocka_unit_test(a_reset_at_any_byte_ends_it_once),
		T(steering_frames_overtake_what_waits),
		T(a_slow_reader_gets_every_byte_in_order),
		TCP(a_slow_reader_gets_every_byte_in_order),
		T(a_peer_that_stops_reading_is_cut),
		TCP(half_open_is_an_end),
		TCP(little_is_left_to_the_kernel),
		T(new_keys_on_the_way_change_nothing),
		cmocka_unit_test_setup_teardown(nobody_negotiates_anew, setup_old, teardown),
		cmocka_unit_test(idle_connections_are_small),
	};

	signal(SIGPIPE, SIG_IGN); /* as every program of ours does: OpenSSL writes with write() */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
