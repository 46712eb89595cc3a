/* Connections: framing under every cut, back-pressure, ends of all kinds, unix sockets. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/err.h"
#include "link/conn.h"
#include "sys/loop.h"

struct end {
	struct conn *conn;
	int frames, closes, drains;
	size_t bytes;
	uint32_t sum; /* order-dependent, over types and payloads */
	struct err why;
	/* What to do in on_frame. */
	bool close_at_frame, free_at_frame, free_at_close, pause_at_frame;
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
	if (e->pause_at_frame)
		conn_pause(e->conn, true);
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
	assert_int_equal(conn_peer_uid(w->a.conn), getuid());
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

static void a_paused_connection_reads_nothing(void **state)
{
	struct world *w = *state;
	char body[1000] = {0};

	conn_pause(w->b.conn, true);
	conn_send(w->a.conn, FRAME_DATA, 0, STR(""), (struct str){body, sizeof(body)});
	quiet(w);
	assert_int_equal(w->b.frames, 0);
	conn_pause(w->b.conn, false);
	run_until(w, &w->b.frames, 1);
	w->b.pause_at_frame = true;
	conn_send(w->a.conn, FRAME_DATA, 0, STR(""), (struct str){body, sizeof(body)});
	run_until(w, &w->b.frames, 2);
	conn_send(w->a.conn, FRAME_DATA, 0, STR(""), (struct str){body, sizeof(body)});
	quiet(w);
	assert_int_equal(w->b.frames, 2);
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

/* Unix sockets. */

struct accepted {
	int n, fd;
	struct listener **free_me;
};

static void on_accept(void *ctx, int fd)
{
	struct accepted *a = ctx;

	a->n++;
	if (a->fd >= 0)
		close(a->fd);
	a->fd = fd;
	if (a->free_me)
		*a->free_me = listener_free(*a->free_me);
}

struct place {
	struct world w; /* only the loop */
	char base[64], *dir;
};

static int setup_place(void **state)
{
	struct place *p = xcalloc(1, sizeof(*p));
	struct err err;

	snprintf(p->base, sizeof(p->base), "/tmp/regatta-conn-XXXXXX");
	if (!mkdtemp(p->base))
		return -1;
	/* Longer than sun_path. */
	p->dir = xasprintf("%s/%0100d/%0100d", p->base, 1, 2);
	if (file_mkdir_p(p->dir, 0700, &err) < 0)
		return -1;
	p->w.loop = loop_new();
	*state = p;
	return 0;
}

static int teardown_place(void **state)
{
	struct place *p = *state;
	struct err err;

	loop_free(p->w.loop);
	if (file_remove_tree(p->base, &err) < 0)
		return -1;
	free(p->dir);
	free(p);
	return 0;
}

static void listen_and_dial(struct place *p, const char *dir)
{
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	struct stat st;
	char *path = xasprintf("%s/link.sock", dir);
	int fd = -1;

	assert_int_equal(listen_unix(p->w.loop, dir, "link.sock", on_accept, &a, &li, &err), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(dial_unix(dir, "link.sock", 1000, &fd, &err), 0);
	run_until(&p->w, &a.n, 1);
	assert_int_equal(socket_peer_uid(a.fd), getuid());
	assert_int_equal(write(fd, "x", 1), 1);
	listener_free(li);
	assert_int_equal(lstat(path, &st), -1);
	close(fd);
	close(a.fd);
	free(path);
}

static void a_short_path_works(void **state)
{
	struct place *p = *state;

	listen_and_dial(p, p->base);
}

static void a_path_longer_than_sun_path_works(void **state)
{
	struct place *p = *state;

	listen_and_dial(p, p->dir);
}

static void a_second_listener_is_a_conflict(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL, *second = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};

	assert_int_equal(listen_unix(p->w.loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	assert_int_equal(listen_unix(p->w.loop, p->dir, "s", on_accept, &a, &second, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_null(second);
	listener_free(li);
	if (a.fd >= 0)
		close(a.fd);
}

static void leave_dead_socket(struct place *p)
{
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	char *path = xasprintf("%s/s", p->dir), *aside = xasprintf("%s/aside", p->dir);

	/* As if its process had been killed: the file stays. */
	assert_int_equal(listen_unix(p->w.loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	assert_int_equal(rename(path, aside), 0);
	listener_free(li);
	assert_int_equal(rename(aside, path), 0);
	free(path);
	free(aside);
}

static void a_dead_socket_is_replaced_and_nobody_answers_there(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	int fd = -1;

	leave_dead_socket(p);
	assert_int_equal(dial_unix(p->dir, "s", 1000, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(listen_unix(p->w.loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	assert_int_equal(dial_unix(p->dir, "s", 1000, &fd, &err), 0);
	run_until(&p->w, &a.n, 1);
	listener_free(li);
	close(fd);
	close(a.fd);
}

static void somebody_elses_socket_is_left_alone_at_the_end(void **state)
{
	struct place *p = *state;
	struct listener *old = NULL, *new = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	char *path = xasprintf("%s/s", p->dir);

	assert_int_equal(listen_unix(p->w.loop, p->dir, "s", on_accept, &a, &old, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(listen_unix(p->w.loop, p->dir, "s", on_accept, &a, &new, &err), 0);
	listener_free(old);
	assert_true(file_exists(path));
	listener_free(new);
	assert_false(file_exists(path));
	free(path);
}

static void bad_places_are_refused(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL;
	struct accepted a = {.fd = -1};
	struct err err = {0};
	char *path = xasprintf("%s/file", p->dir), *nowhere = xasprintf("%s/nowhere", p->dir);
	char name[200];
	int fd = -1;

	assert_int_equal(file_write_atomic(path, STR("x"), 0600, false, &err), 0);
	assert_int_equal(listen_unix(p->w.loop, p->dir, "file", on_accept, &a, &li, &err), -1);
	assert_int_equal(err.kind, ERR_CONFLICT);
	assert_int_equal(listen_unix(p->w.loop, nowhere, "s", on_accept, &a, &li, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
	assert_int_equal(listen_unix(p->w.loop, p->dir, "a/b", on_accept, &a, &li, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(listen_unix(p->w.loop, p->dir, name, on_accept, &a, &li, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(dial_unix(nowhere, "s", 100, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(dial_unix(path, "s", 100, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(dial_unix(p->dir, "none", 100, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	assert_int_equal(dial_unix(p->dir, "", 100, &fd, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(fd, -1);
	assert_null(li);
	free(path);
	free(nowhere);
}

static void the_accept_callback_may_free_the_listener(void **state)
{
	struct place *p = *state;
	struct listener *li = NULL;
	struct accepted a = {.fd = -1, .free_me = &li};
	struct err err = {0};
	int fd[2] = {-1, -1};

	assert_int_equal(listen_unix(p->w.loop, p->dir, "s", on_accept, &a, &li, &err), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(dial_unix(p->dir, "s", 1000, &fd[i], &err), 0);
	run_until(&p->w, &a.n, 1);
	quiet(&p->w);
	assert_int_equal(a.n, 1);
	assert_null(li);
	close(fd[0]);
	close(fd[1]);
	close(a.fd);
}

#define PAIR(f) cmocka_unit_test_setup_teardown(f, setup_pair, teardown)
#define RAW(f) cmocka_unit_test_setup_teardown(f, setup_raw, teardown)
#define PLACE(f) cmocka_unit_test_setup_teardown(f, setup_place, teardown_place)
int main(void)
{
	const struct CMUnitTest tests[] = {
		PAIR(head_and_body_arrive_as_one_payload),
		RAW(frames_survive_every_cut),
		PAIR(what_the_socket_does_not_take_is_queued_in_order),
		PAIR(the_largest_frame_passes),
		PAIR(close_flushes_first),
		PAIR(closing_an_idle_connection_is_told_later),
		PAIR(after_close_in_on_frame_no_frame_comes),
		PAIR(even_a_free_in_on_frame_is_survived),
		PAIR(free_says_nothing),
		PAIR(a_paused_connection_reads_nothing),
		RAW(a_peer_that_does_not_read_is_cut),
		RAW(garbage_ends_the_connection),
		RAW(a_peer_that_leaves_inside_a_frame_is_noticed),
		RAW(a_peer_that_leaves_inside_a_header_is_noticed),
		RAW(the_last_words_are_heard_although_sending_fails),
		RAW(a_reset_is_an_error),
		RAW(closing_towards_a_dead_peer_ends),
		PLACE(a_short_path_works),
		PLACE(a_path_longer_than_sun_path_works),
		PLACE(a_second_listener_is_a_conflict),
		PLACE(a_dead_socket_is_replaced_and_nobody_answers_there),
		PLACE(somebody_elses_socket_is_left_alone_at_the_end),
		PLACE(bad_places_are_refused),
		PLACE(the_accept_callback_may_free_the_listener),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
