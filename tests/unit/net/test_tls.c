/* TLS: the server on its own thread, our blocking client in front of it. */
#include "unit.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/deadline.h"
#include "base/err.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "net/listener.h"
#include "net/tls.h"
#include "net/tls_handshake.h"
#include "net/tls_key.h"
#include "net/tls_transport.h"
#include "net/transport.h"
#include "sys/loop.h"

#define LONG_MS 10000
#define BIG (8 * 1024 * 1024)

struct served {
	char *dir, *big;
	pthread_t thread;
	int stop_fd, ready_fd, port;
	struct loop *loop;
	char pin[TLS_PIN_SIZE], own[64];
	bool saw_tls;
};

static char big_byte(size_t i)
{
	return (char)('a' + i % 23);
}

static void on_request(void *ctx, struct http_exchange *x)
{
	struct served *s = ctx;
	const struct http_request *q = http_request(x);

	s->saw_tls = q->tls;
	http_own_address(x, s->own);
	if (str_is(q->path, "/big")) {
		http_reply(x, 200, "text/plain", (struct str){s->big, BIG});
	} else if (str_is(q->path, "/file")) {
		char *path = xasprintf("%s/big", s->dir);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		free(path);
		http_reply_file(x, 200, "text/plain", fd, 1, BIG - 1);
	} else if (str_is(q->path, "/echo")) {
		http_reply(x, 200, "text/plain", q->body);
	} else {
		http_reply(x, 404, "text/plain", STR("no"));
	}
}

static void stop(void *ctx, int fd, int events)
{
	(void)fd, (void)events;
	loop_stop(ctx);
}

static void *serve(void *arg)
{
	static const struct http_handler handler = {.on_request = on_request};
	struct served *s = arg;
	struct tls_server *tls;
	struct err err = {0};
	uint64_t one = 1;

	s->loop = loop_new();
	struct http_server *http = http_server_new(s->loop, NULL, &handler, s);
	struct loop_io *io = loop_io_new(s->loop, s->stop_fd, LOOP_READ, stop, s->loop);
	if (tls_server_open(s->dir, &tls, &err) < 0 ||
	    http_server_listen_tls(http, "127.0.0.1", 0, tls, &s->port, &err) < 0)
		abort();
	tls_server_pin(tls, s->pin);
	if (write(s->ready_fd, &one, sizeof(one)) != sizeof(one))
		abort();
	loop_run(s->loop);
	http_server_free(http);
	tls_server_free(tls);
	loop_io_free(io);
	loop_free(s->loop);
	return NULL;
}

static int start(void **state)
{
	struct served *s = xcalloc(1, sizeof(*s));
	void *dir = NULL;
	uint64_t one;

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(unit_make_dir(&dir), 0);
	s->dir = dir;
	s->big = xmalloc(BIG);
	for (size_t i = 0; i < BIG; i++)
		s->big[i] = big_byte(i);
	char *path = xasprintf("%s/big", s->dir);
	assert_int_equal(file_write_atomic(path, (struct str){s->big, BIG}, 0600, false, NULL), 0);
	free(path);
	s->stop_fd = eventfd(0, EFD_CLOEXEC);
	s->ready_fd = eventfd(0, EFD_CLOEXEC);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	assert_int_equal(read(s->ready_fd, &one, sizeof(one)), sizeof(one));
	*state = s;
	return 0;
}

static int finish(void **state)
{
	struct served *s = *state;
	uint64_t one = 1;
	void *dir = s->dir;

	assert_int_equal(write(s->stop_fd, &one, sizeof(one)), sizeof(one));
	pthread_join(s->thread, NULL);
	close(s->stop_fd);
	close(s->ready_fd);
	unit_remove_dir(&dir);
	free(s->big);
	free(s);
	return 0;
}

static struct http_client *connect_to(struct served *s)
{
	struct http_target t = {
		.host = "127.0.0.1", .port = s->port, .tls = {.mode = TLS_PIN, .pin = s->pin}};
	struct http_client *c;
	struct err err = {0};

	if (http_client_open(&t, LONG_MS, &c, &err) < 0)
		fail_msg("%s", err.msg);
	return c;
}

static void call(struct http_client *c, const char *method, const char *path, struct str body,
		 struct http_answer *a)
{
	struct err err = {0};

	if (http_call(c, method, path, body, "text/plain", LONG_MS, a, &err) < 0)
		fail_msg("%s", err.msg);
}

/* Rule: the same exchanges as without. */

static void answers_of_any_size_come_whole_on_one_connection(void **state)
{
	struct served *s = *state;
	struct http_client *c = connect_to(s);
	struct http_answer a;

	http_answer_init(&a, BIG + 1);
	call(c, "POST", "/echo", STR("hello"), &a);
	assert_true(str_is(buf_str(&a.body), "hello"));
	int fd = http_client_fd(c);
	call(c, "GET", "/big", STR(""), &a);
	assert_int_equal(a.body.n, BIG);
	assert_memory_equal(a.body.p, s->big, BIG);
	call(c, "GET", "/file", STR(""), &a);
	assert_int_equal(a.body.n, BIG - 1);
	assert_memory_equal(a.body.p, s->big + 1, BIG - 1);
	call(c, "GET", "/nothing", STR(""), &a);
	assert_int_equal(a.status, 404);
	assert_int_equal(http_client_fd(c), fd); /* nothing came in between that ended it */
	assert_true(s->saw_tls);
	char own[64];
	snprintf(own, sizeof(own), "127.0.0.1:%d", s->port);
	assert_string_equal(s->own, own);
	http_answer_release(&a);
	http_client_free(c);
}

static void a_large_body_goes_up_whole(void **state)
{
	struct served *s = *state;
	struct http_client *c = connect_to(s);
	struct http_answer a;
	struct str body = {s->big, 1024 * 1024};

	http_answer_init(&a, BIG);
	call(c, "POST", "/echo", body, &a);
	assert_int_equal(a.body.n, body.n);
	assert_memory_equal(a.body.p, body.p, body.n);
	http_answer_release(&a);
	http_client_free(c);
}

/* Rule: a server is known by its key. */

static void another_key_than_the_pinned_one_is_refused(void **state)
{
	struct served *s = *state;
	struct http_target t = {.host = "127.0.0.1", .port = s->port, .tls.mode = TLS_PIN};
	struct http_client *c;
	char nearly[TLS_PIN_SIZE];
	const char *const pins[] = {"sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "",
				    "sha256//", "x", nearly};

	snprintf(nearly, sizeof(nearly), "%s", s->pin);
	nearly[strlen(nearly) - 2] ^= 1;
	for (size_t i = 0; i < COUNT(pins); i++) {
		struct err err = {0};
		t.tls.pin = pins[i];
		assert_int_equal(http_client_open(&t, LONG_MS, &c, &err), -1);
		assert_int_equal(err.kind, ERR_DENIED);
		assert_non_null(strstr(err.msg, s->pin));
	}
}

static void who_does_not_speak_tls_gets_no_answer(void **state)
{
	struct served *s = *state;
	struct http_target t = {.host = "127.0.0.1", .port = s->port, .tls.mode = TLS_OFF};
	struct http_client *c;
	struct http_answer a;
	struct err err = {0};

	http_answer_init(&a, 4096);
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &err), 0);
	assert_int_equal(http_call(c, "GET", "/echo", STR(""), NULL, LONG_MS, &a, &err), -1);
	http_client_free(c);
	http_answer_release(&a);
}

static void a_server_that_says_nothing_is_a_timeout(void **state)
{
	const struct tls_trust trust = {.mode = TLS_PIN, .pin = "sha256//"};
	struct deadline soon = deadline_in(20, NULL), late = deadline_in(LONG_MS, NULL);
	struct transport t;
	struct err err = {0};
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(tls_connect(&t, pair[0], &trust, "x", &soon, &err), -1);
	assert_int_equal(err.kind, ERR_TIMEOUT);
	close(pair[1]);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(write(pair[1], "HTTP/1.1 400 no\r\n\r\n", 19), 19);
	assert_int_equal(tls_connect(&t, pair[0], &trust, "x", &late, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	close(pair[1]);
}

/* Rule: the key is made once and is the user's alone. */

static void the_key_is_made_once_and_private(void **state)
{
	char first[TLS_PIN_SIZE], again[TLS_PIN_SIZE];
	struct tls_server *tls;
	struct stat sb;
	struct err err = {0};

	assert_int_equal(tls_server_open(*state, &tls, &err), 0);
	tls_server_pin(tls, first);
	tls_server_free(tls);
	assert_int_equal(strncmp(first, "sha256//", 8), 0);
	assert_int_equal(strlen(first), 8 + 44);
	assert_int_equal(stat(unit_path(state, "tls.key"), &sb), 0);
	assert_int_equal(sb.st_mode & 07777, 0600);
	assert_int_equal(tls_server_open(*state, &tls, &err), 0);
	tls_server_pin(tls, again);
	assert_string_equal(first, again);
	assert_null(tls_server_free(tls));
	assert_null(tls_server_free(NULL));
}

static void a_key_and_a_certificate_that_are_no_pair_are_refused(void **state)
{
	struct tls_server *tls;
	struct err err = {0};

	assert_int_equal(tls_server_open(*state, &tls, &err), 0);
	tls_server_free(tls);
	assert_int_equal(
		file_write_atomic(unit_path(state, "tls.key"), STR("junk"), 0600, false, NULL), 0);
	assert_int_equal(tls_server_open(*state, &tls, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_non_null(strstr(err.msg, "remove both"));
	/* A new key does not fit the old certificate. */
	assert_int_equal(unlink(unit_path(state, "tls.key")), 0);
	assert_int_equal(rename(unit_path(state, "tls.crt"), unit_path(state, "old.crt")), 0);
	assert_int_equal(tls_server_open(*state, &tls, &err), 0);
	tls_server_free(tls);
	assert_int_equal(rename(unit_path(state, "old.crt"), unit_path(state, "tls.crt")), 0);
	assert_int_equal(tls_server_open(*state, &tls, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	assert_int_equal(unlink(unit_path(state, "tls.crt")), 0);
	assert_int_equal(tls_server_open(*state, &tls, &err), 0);
	tls_server_free(tls);
}

/* Rule: who made the key of a server from a secret knows its pin before the server is there. */
static void a_key_made_from_a_secret_has_the_pin_that_was_told(void **state)
{
	static const char secret[] = "0123456789abcdef0123456789abcdef",
			  other[] = "1123456789abcdef0123456789abcdef";
	char told[TLS_PIN_SIZE], again[TLS_PIN_SIZE], pin[TLS_PIN_SIZE];
	CLEANUP(buf_release) struct buf pem = {0};
	struct tls_server *tls;
	struct err err = {0};

	buf_init(&pem, 4096);
	assert_int_equal(tls_key_of_secret(str_from(secret), &pem, told, &err), 0);
	assert_int_equal(
		file_write_atomic(unit_path(state, "tls.key"), buf_str(&pem), 0600, false, NULL),
		0);
	assert_int_equal(tls_server_open(*state, &tls, &err), 0);
	tls_server_pin(tls, pin);
	tls_server_free(tls);
	assert_string_equal(pin, told);
	buf_reset(&pem);
	assert_int_equal(tls_key_of_secret(str_from(secret), &pem, again, &err), 0);
	assert_string_equal(again, told);
	assert_int_equal(tls_key_of_secret(str_from(other), &pem, again, &err), 0);
	assert_string_not_equal(again, told);
	assert_int_equal(tls_key_of_secret(STR("short"), &pem, again, &err), -1);
}

static void a_place_that_cannot_be_written_is_told(void **state)
{
	struct tls_server *tls;
	struct err err = {0};

	assert_int_equal(tls_server_open(unit_path(state, "nowhere"), &tls, &err), -1);
	assert_int_equal(err.kind, ERR_NOT_FOUND);
}

/* Contexts without certificates, at the lowest level of security: only the version can be refused. */
static SSL_CTX *context_of_version(const SSL_METHOD *method, int max_version, bool ours)
{
	SSL_CTX *ctx = NULL;
	struct err err;

	if (ours)
		assert_int_equal(tls_context_new(method, &ctx, &err), 0);
	else
		ctx = SSL_CTX_new(method);
	assert_int_equal(SSL_CTX_set_cipher_list(ctx, "aNULL:@SECLEVEL=0"), 1);
	assert_int_equal(SSL_CTX_set_dh_auto(ctx, 1), 1);
	if (!ours)
		assert_int_equal(SSL_CTX_set_min_proto_version(ctx, TLS1_VERSION), 1);
	assert_int_equal(SSL_CTX_set_max_proto_version(ctx, max_version), 1);
	return ctx;
}

/* Does a server shake hands with a client, of which one speaks nothing newer than this? */
static bool shake_hands(int version, bool our_server)
{
	SSL_CTX *server = context_of_version(TLS_server_method(),
					     our_server ? TLS1_2_VERSION : version, our_server);
	SSL_CTX *client = context_of_version(TLS_client_method(),
					     our_server ? version : TLS1_2_VERSION, !our_server);
	SSL *s = SSL_new(server), *c = SSL_new(client);
	BIO *one, *other;
	bool done = false;

	assert_int_equal(BIO_new_bio_pair(&one, 0, &other, 0), 1);
	SSL_set_bio(s, one, one);
	SSL_set_bio(c, other, other);
	SSL_set_accept_state(s);
	SSL_set_connect_state(c);
	for (int i = 0; i < 10 && !done; i++) {
		(void)SSL_do_handshake(c);
		(void)SSL_do_handshake(s);
		done = SSL_is_init_finished(s) && SSL_is_init_finished(c);
	}
	ERR_clear_error();
	SSL_free(s);
	SSL_free(c);
	SSL_CTX_free(server);
	SSL_CTX_free(client);
	return done;
}

static void versions_before_tls_1_2_are_refused_by_both_ends(void **state)
{
	(void)state;
	for (int ours = 0; ours < 2; ours++) {
		assert_true(shake_hands(TLS1_2_VERSION, ours));
		assert_false(shake_hands(TLS1_1_VERSION, ours));
		assert_false(shake_hands(TLS1_VERSION, ours));
	}
}

static void count_shaken(void *ctx, struct transport *t, const struct err *why)
{
	int *failed = ctx;

	(void)t;
	*failed += why->kind != ERR_NONE;
}

/* Rule: handshakes that come at once are spread over rounds, so that others are served in between. */
static void handshakes_are_spread_over_rounds(void **state)
{
	struct loop *l = loop_new();
	struct tls_handshake *h[100];
	struct tls_server *server;
	struct err err = {0};
	int fds[COUNT(h)][2], failed = 0;

	assert_int_equal(tls_server_open(*state, &server, &err), 0);
	for (size_t i = 0; i < COUNT(h); i++) {
		struct transport t;

		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds[i]), 0);
		assert_int_equal(write(fds[i][1], "this is not a handshake", 23), 23);
		tls_accept(server, &t, fds[i][0]);
		h[i] = tls_handshake_new(l, &t, INT64_C(3600) * 1000, count_shaken, &failed);
	}
	while (failed < (int)COUNT(h)) {
		int before = failed;

		loop_round(l, 1000);
		assert_true(failed > before);
		assert_true(failed - before <= LOOP_COSTLY);
	}
	for (size_t i = 0; i < COUNT(h); i++) {
		tls_handshake_free(h[i]);
		close(fds[i][1]);
	}
	tls_server_free(server);
	loop_free(l);
}

static void note_why(void *ctx, struct transport *t, const struct err *why)
{
	(void)t;
	*(struct err *)ctx = *why;
}

/* Rule: a server does not work for a client that has left, whatever that one has sent. */
static void a_client_that_has_left_is_not_answered(void **state)
{
	struct loop *l = loop_new();
	struct tls_handshake *h;
	struct tls_server *server;
	struct transport ours, theirs;
	struct tls_trust trust = {.mode = TLS_ANYONE};
	struct err err = {0}, why = {0};
	short wait;
	int fds[2];

	assert_int_equal(tls_server_open(*state, &server, &err), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
	assert_int_equal(tls_client_begin(&theirs, fds[1], &trust, "x", NULL, &err), 0);
	assert_int_equal(tls_shake(&theirs, &wait, &err), 0); /* its first message is sent */
	tls_accept(server, &ours, fds[0]);
	assert_int_equal(shutdown(fds[1], SHUT_WR), 0);
	h = tls_handshake_new(l, &ours, INT64_C(3600) * 1000, note_why, &why);
	loop_round(l, 1000);
	assert_string_equal(why.msg, "TLS: the peer has left");
	char answer;
	assert_true(recv(fds[1], &answer, 1, 0) <= 0);
	tls_handshake_free(h);
	theirs.ops->close(&theirs);
	tls_server_free(server);
	loop_free(l);
}

int main(void)
{
#define served(t) cmocka_unit_test_setup_teardown(t, start, finish)
#define on_dir(t) cmocka_unit_test_setup_teardown(t, unit_make_dir, unit_remove_dir)
	const struct CMUnitTest tests[] = {
		served(answers_of_any_size_come_whole_on_one_connection),
		served(a_large_body_goes_up_whole),
		served(another_key_than_the_pinned_one_is_refused),
		served(who_does_not_speak_tls_gets_no_answer),
		cmocka_unit_test(a_server_that_says_nothing_is_a_timeout),
		on_dir(the_key_is_made_once_and_private),
		on_dir(handshakes_are_spread_over_rounds),
		on_dir(a_client_that_has_left_is_not_answered),
		on_dir(a_key_and_a_certificate_that_are_no_pair_are_refused),
		on_dir(a_key_made_from_a_secret_has_the_pin_that_was_told),
		on_dir(a_place_that_cannot_be_written_is_told),
		cmocka_unit_test(versions_before_tls_1_2_are_refused_by_both_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
