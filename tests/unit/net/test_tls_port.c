/*
 * One TLS port for HTTP and another protocol, and the dialer: both ends on one loop, so whoever
 * blocked it would wait for itself.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/dialer.h"
#include "net/http_server.h"
#include "net/listener.h"
#include "net/resolve.h"
#include "net/tls.h"
#include "net/transport.h"
#include "sys/loop.h"

#define OTHER "other/1"

struct port {
	struct loop *loop;
	struct http_server *http;
	struct tls_server *tls;
	char *dir, pin[TLS_PIN_SIZE];
	int number, requests, of_tls;
	int others; /* connections of the other protocol, and the last one */
	struct transport other;
};

/* One call of the dialer. */
struct call {
	struct dialer *d;
	int done;
	bool connected;
	struct transport t;
	struct err why;
};

static void on_request(void *ctx, struct http_exchange *x)
{
	struct port *p = ctx;

	p->requests++;
	p->of_tls += http_request(x)->tls;
	http_reply(x, 200, "text/plain", STR("http"));
}

static void on_other(void *ctx, struct transport *t)
{
	struct port *p = ctx;

	if (p->others++)
		p->other.ops->close(&p->other);
	p->other = *t;
}

static int setup(void **state)
{
	static const struct http_handler handler = {.on_request = on_request};
	struct port *p = xcalloc(1, sizeof(*p));
	struct err err = {0};
	void *dir = NULL;

	assert_int_equal(unit_make_dir(&dir), 0);
	p->dir = dir;
	p->loop = loop_new();
	p->http = http_server_new(p->loop, NULL, &handler, p);
	http_server_other(p->http, OTHER, on_other, p);
	if (tls_server_open(p->dir, &p->tls, &err) < 0 ||
	    http_server_listen_tls(p->http, "127.0.0.1", 0, p->tls, &p->number, &err) < 0)
		fail_msg("%s", err.msg);
	tls_server_pin(p->tls, p->pin);
	*state = p;
	return 0;
}

static int teardown(void **state)
{
	struct port *p = *state;
	void *dir = p->dir;

	if (p->others)
		p->other.ops->close(&p->other);
	http_server_free(p->http);
	tls_server_free(p->tls);
	for (int i = 0; i < 5; i++)
		loop_round(p->loop, 0); /* what was given up lets go */
	loop_free(p->loop);
	unit_remove_dir(&dir);
	free(p);
	return 0;
}

static void dialed(void *ctx, const struct transport *t, const struct err *why)
{
	struct call *c = ctx;

	c->done++;
	c->connected = t != NULL;
	if (t)
		c->t = *t;
	c->d = dialer_free(c->d);
	c->why = *why; /* is good for longer than the dialer */
}

static struct dialer_target target_of(const struct port *p, const char *protocol)
{
	return (struct dialer_target){.host = "127.0.0.1",
				      .port = p->number,
				      .trust = {.mode = TLS_PIN, .pin = p->pin},
				      .protocol = protocol,
				      .limit_ms = 20000};
}

static void dial(struct port *p, const struct dialer_target *t, struct call *c)
{
	*c = (struct call){0};
	c->d = dialer_start(p->loop, t, dialed, c);
	assert_int_equal(c->done, 0);
	for (int i = 0; i < 3000 && !c->done; i++)
		loop_round(p->loop, 10);
	assert_int_equal(c->done, 1);
}

static void hang_up(struct call *c)
{
	if (c->connected)
		c->t.ops->close(&c->t);
	c->connected = false;
}

/* "HTTP" if a request is answered on it. */
static bool speaks_http(struct port *p, struct call *c)
{
	static const char get[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
	struct iovec iov = {(void *)(uintptr_t)get, sizeof(get) - 1};
	char text[1024] = "";

	assert_int_equal(c->t.ops->writev(&c->t, &iov, 1), sizeof(get) - 1);
	for (int i = 0; i < 200; i++) {
		loop_round(p->loop, 10);
		if (c->t.ops->read(&c->t, text, sizeof(text) - 1) > 0)
			return strncmp(text, "HTTP/1.1 200", 12) == 0;
	}
	return false;
}

static void turn_until(struct port *p, const int *counter, int at_least)
{
	for (int i = 0; i < 1000 && *counter < at_least; i++)
		loop_round(p->loop, 10);
	assert_true(*counter >= at_least);
}

static void the_protocol_says_whose_a_connection_is(void **state)
{
	struct port *p = *state;
	struct dialer_target t = target_of(p, OTHER);
	struct call c;

	dial(p, &t, &c);
	assert_true(c.connected);
	turn_until(p, &p->others, 1);
	assert_true(str_is(tls_protocol(&p->other), OTHER));
	hang_up(&c);
	t.protocol = "http/1.1";
	dial(p, &t, &c);
	assert_true(c.connected);
	assert_true(speaks_http(p, &c));
	hang_up(&c);
	assert_int_equal(p->others, 1);
	assert_int_equal(p->requests, 1);
}

/* A plain connection to a port. */
static void connect_plain(int port, struct call *c)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	*c = (struct call){.connected = true};
	transport_plain(&c->t, fd);
}

static void a_port_for_both_takes_plain_http_and_tls(void **state)
{
	struct port *p = *state;
	struct dialer_target t = target_of(p, OTHER);
	struct call c;
	int both;

	assert_int_equal(http_server_listen_both(p->http, "127.0.0.1", 0, p->tls, &both, NULL), 0);
	connect_plain(both, &c);
	assert_true(speaks_http(p, &c));
	assert_true(speaks_http(p, &c)); /* the next request of the same connection */
	assert_int_equal(p->of_tls, 0);
	hang_up(&c);
	t.port = both;
	dial(p, &t, &c);
	assert_true(c.connected);
	turn_until(p, &p->others, 1);
	hang_up(&c);
	t.protocol = "http/1.1";
	dial(p, &t, &c);
	assert_true(speaks_http(p, &c));
	assert_int_equal(p->of_tls, 1);
	hang_up(&c);
	/* The other port is for TLS only. */
	connect_plain(p->number, &c);
	assert_false(speaks_http(p, &c));
	hang_up(&c);
	assert_int_equal(p->requests, 3);
}

static void a_protocol_that_nobody_speaks_is_told(void **state)
{
	struct port *p = *state;
	struct dialer_target t = target_of(p, "other/2");
	struct call c;

	dial(p, &t, &c);
	assert_false(c.connected);
	assert_int_equal(c.why.kind, ERR_UNAVAILABLE);
	assert_non_null(strstr(c.why.msg, "does not speak other/2"));
	assert_int_equal(p->others, 0);
}

static void a_wrong_key_is_denied(void **state)
{
	struct port *p = *state;
	struct dialer_target t = target_of(p, OTHER);
	struct call c;

	t.trust.pin = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";
	dial(p, &t, &c);
	assert_false(c.connected);
	assert_int_equal(c.why.kind, ERR_DENIED);
	assert_non_null(strstr(c.why.msg, "expected sha256//AAAA"));
}

static void nobody_there_is_unavailable(void **state)
{
	struct port *p = *state;
	struct dialer_target t = target_of(p, OTHER);
	struct call c;

	t.port = 1;
	dial(p, &t, &c);
	assert_false(c.connected);
	assert_int_equal(c.why.kind, ERR_UNAVAILABLE);
	assert_non_null(strstr(c.why.msg, "nobody listens on port 1"));
	t.host = "no such name";
	dial(p, &t, &c);
	assert_int_equal(c.why.kind, ERR_INVALID);
}

static const char *write_file(struct port *p, const char *name, const char *text)
{
	const char *path = unit_path((void **)&p->dir, name);

	assert_int_equal(file_write_atomic(path, str_from(text), 0600, false, NULL), 0);
	return path;
}

static void the_addresses_of_a_name_are_tried_in_turn(void **state)
{
	struct port *p = *state;
	struct dialer_target t = target_of(p, OTHER);
	struct resolve_options o = {
		.hosts_file = write_file(p, "hosts",
					 "127.0.0.77 here.test\n127.0.0.78 here.test\n"
					 "127.0.0.1 here.test\n"),
		.resolv_conf = write_file(p, "resolv.conf", "nameserver 127.0.0.1:1\n")};
	struct call c;

	t.host = "here.test";
	t.resolve = &o;
	dial(p, &t, &c);
	if (!c.connected)
		fail_msg("%s", c.why.msg);
	hang_up(&c);
}

/* The loop goes on while a name server is silent. */
static void a_silent_name_server_does_not_block(void **state)
{
	struct port *p = *state;
	struct dialer_target t = target_of(p, OTHER);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int silent = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	char text[64];
	struct call c = {0}, other;

	assert_int_equal(bind(silent, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(silent, (struct sockaddr *)&at, &len), 0);
	snprintf(text, sizeof(text), "nameserver 127.0.0.1:%d\n", ntohs(at.sin_port));
	struct resolve_options o = {.hosts_file = write_file(p, "hosts", ""),
				    .resolv_conf = write_file(p, "resolv.conf", text)};

	t.host = "far.test";
	t.resolve = &o;
	t.limit_ms = 300;
	c.d = dialer_start(p->loop, &t, dialed, &c);
	t = target_of(p, OTHER);
	dial(p, &t, &other);
	assert_true(other.connected);
	assert_int_equal(c.done, 0);
	hang_up(&other);
	turn_until(p, &c.done, 1);
	assert_int_equal(c.why.kind, ERR_TIMEOUT);
	/* Given up in the middle. */
	t.host = "far.test";
	t.resolve = &o;
	c = (struct call){.d = dialer_start(p->loop, &t, dialed, &c)};
	loop_round(p->loop, 0);
	dialer_free(c.d);
	turn_until(p, &other.done, 1);
	close(silent);
	assert_int_equal(c.done, 0);
}

/* At any stage a call can be given up, and a second one is not harmed. */
static void a_call_can_be_given_up_at_any_time(void **state)
{
	struct port *p = *state;
	struct dialer_target t = target_of(p, OTHER);

	for (int rounds = 0; rounds < 12; rounds++) {
		struct call c = {0};

		c.d = dialer_start(p->loop, &t, dialed, &c);
		for (int i = 0; i < rounds && !c.done; i++)
			loop_round(p->loop, 1);
		dialer_free(c.d);
		hang_up(&c);
		for (int i = 0; i < 3; i++)
			loop_round(p->loop, 0);
	}
	struct call c;

	dial(p, &t, &c);
	assert_true(c.connected);
	hang_up(&c);
}

/* A server that takes the connection and says nothing. */
static void a_server_that_does_not_shake_hands_is_given_up(void **state)
{
	struct port *p = *state;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int l = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct dialer_target t = target_of(p, OTHER);
	struct call c;

	assert_int_equal(bind(l, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(l, 4), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&at, &len), 0);
	t.port = ntohs(at.sin_port);
	t.limit_ms = 100;
	dial(p, &t, &c);
	assert_false(c.connected);
	assert_int_equal(c.why.kind, ERR_TIMEOUT);
	close(l);
}

static int raw_client(const struct port *p)
{
	struct sockaddr_in at = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons((uint16_t)p->number)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static bool was_closed(int fd)
{
	char byte;
	ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno == ECONNRESET);
}

/* Built with a short HANDSHAKE_MS. */
static void a_client_that_does_not_shake_hands_is_cut(void **state)
{
	struct port *p = *state;
	int quiet = raw_client(p), garbage = raw_client(p), slow = raw_client(p);
	int64_t start = clock_boot_ms();

	assert_int_equal(send(garbage, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
	assert_int_equal(send(slow, "\x16\x03\x01", 3, 0), 3);
	for (int i = 0; i < 500 && !(was_closed(quiet) && was_closed(slow)); i++)
		loop_round(p->loop, 10);
	assert_true(was_closed(quiet) && was_closed(slow));
	assert_true(clock_boot_ms() - start < 5000);
	assert_int_equal(http_server_connections(p->http), 0);
	close(quiet);
	close(garbage);
	close(slow);
}

/* Those who hold handshakes open keep nobody out. */
static void many_half_handshakes_keep_nobody_out(void **state)
{
	struct port *p = *state;
	struct dialer_target t = target_of(p, OTHER);
	static int fds[700];
	struct call c;
	int closed = 0;

	for (size_t i = 0; i < COUNT(fds); i++) {
		fds[i] = raw_client(p);
		if (i % 50 == 0)
			loop_round(p->loop, 0);
	}
	dial(p, &t, &c);
	assert_true(c.connected);
	turn_until(p, &p->others, 1);
	for (size_t i = 0; i < COUNT(fds); i++)
		closed += was_closed(fds[i]);
	assert_true(closed >= 180); /* the oldest */
	for (size_t i = 0; i < COUNT(fds); i++)
		close(fds[i]);
	hang_up(&c);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_protocol_says_whose_a_connection_is),
		T(a_port_for_both_takes_plain_http_and_tls),
		T(a_protocol_that_nobody_speaks_is_told),
		T(a_wrong_key_is_denied),
		T(nobody_there_is_unavailable),
		T(the_addresses_of_a_name_are_tried_in_turn),
		T(a_silent_name_server_does_not_block),
		T(a_call_can_be_given_up_at_any_time),
		T(a_server_that_does_not_shake_hands_is_given_up),
		T(a_client_that_does_not_shake_hands_is_cut),
		T(many_half_handshakes_keep_nobody_out),
	};

	signal(SIGPIPE, SIG_IGN);
	mallopt(M_PERTURB, 0xa5); /* nothing that was freed stays readable */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
