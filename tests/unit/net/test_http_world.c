/* The client against what the world answers: proxies, redirects, odd bodies, silence. */
#include "unit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "net/dial.h"
#include "net/http_client.h"
#include "peer.h"

#define LONG_MS 10000
#define TLS13 0x0304

struct world {
	void *dir;
	struct peer a, b, proxy;
	struct peer_cert ca, cert;
	struct peer_dns dns;
	char hosts[200], conf[200];
	struct http_client *client;
	struct http_answer answer;
	struct err err;
};

static int setup(void **state)
{
	struct world *w = xcalloc(1, sizeof(*w));

	signal(SIGPIPE, SIG_IGN);
	if (unit_make_dir(&w->dir) < 0)
		return -1;
	peer_cert_make(&w->ca, NULL, "CA", -1, 100);
	peer_cert_make(&w->cert, &w->ca, "DNS:a.test,DNS:b.test,IP:127.0.0.1,IP:::1", -1, 10);
	snprintf(w->hosts, sizeof(w->hosts), "%s", unit_path(&w->dir, "hosts"));
	snprintf(w->conf, sizeof(w->conf), "%s", unit_path(&w->dir, "resolv.conf"));
	http_answer_init(&w->answer, 1 << 20);
	*state = w;
	return file_write(w->hosts,
			  STR("127.0.0.1 a.test b.test\n192.0.2.1 black.test\n"
			      "127.0.0.1 black.test\n"),
			  0600, NULL);
}

static int teardown(void **state)
{
	struct world *w = *state;
	struct peer *const peers[] = {&w->a, &w->b, &w->proxy};
	void *dir = w->dir;

	http_client_free(w->client);
	http_answer_release(&w->answer);
	for (size_t i = 0; i < COUNT(peers); i++) {
		if (peers[i]->port)
			peer_stop(peers[i]);
		peer_tls_free(peers[i]->tls);
	}
	if (w->dns.port)
		peer_dns_stop(&w->dns);
	peer_cert_release(&w->ca);
	peer_cert_release(&w->cert);
	free(w);
	return unit_remove_dir(&dir);
}

static void serve(struct world *w, struct peer *p, bool tls, peer_fn answer)
{
	p->answer = answer;
	p->ctx = w;
	if (tls)
		p->tls = peer_tls(&w->cert, TLS13, NULL);
	peer_start(p);
}

static struct http_target target(struct world *w, const char *host, const struct peer *p)
{
	struct http_target t = {.host = host, .port = p->port, .resolve.hosts_file = w->hosts};

	t.tls.mode = p->tls ? TLS_CA : TLS_OFF;
	t.tls.ca_pem = str_from(w->ca.cert);
	return t;
}

static int open_client(struct world *w, const struct http_target *t, int timeout_ms)
{
	w->client = http_client_free(w->client);
	w->err = (struct err){0};
	return http_client_open(t, timeout_ms, &w->client, &w->err);
}

static int get(struct world *w, const char *path, int max_redirects)
{
	struct http_outgoing r = {.method = "GET",
				  .path = path,
				  .timeout_ms = LONG_MS,
				  .max_redirects = max_redirects};

	w->err = (struct err){0};
	return http_send(w->client, &r, &w->answer, &w->err);
}

static void must_get(struct world *w, const char *path, const char *body)
{
	if (get(w, path, 0) < 0)
		fail_msg("%s", w->err.msg);
	if (!str_is(buf_str(&w->answer.body), body))
		fail_msg("expected '%s', got %d '%.200s'", body, w->answer.status,
			 w->answer.body.n ? w->answer.body.p : "");
}

static void must_open(struct world *w, const struct http_target *t)
{
	if (open_client(w, t, LONG_MS) < 0)
		fail_msg("%s", w->err.msg);
}

static bool hello(struct peer_conn *c, const char *head)
{
	(void)head;
	peer_ok(c, "hello");
	return true;
}

/* Rule: a host is reached by any of its addresses. */

static void ipv6_is_an_address_like_others(void **state)
{
	struct world *w = *state;
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool none = fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0;

	close(fd);
	if (none)
		skip();
	w->a.address = "::1";
	serve(w, &w->a, true, hello);
	struct http_target t = target(w, "::1", &w->a);

	must_open(w, &t);
	must_get(w, "/", "hello");
	char *host = xasprintf("Host: [::1]:%d\r\n", w->a.port);

	assert_non_null(strstr(w->a.heads, host));
	free(host);
}

/* The first address is a black hole (or unreachable): the second gets its share of the time. */
static void a_dead_address_does_not_hide_a_live_one(void **state)
{
	struct world *w = *state;

	serve(w, &w->a, false, hello);
	struct http_target t = target(w, "black.test", &w->a);
	int64_t began = clock_boot_ms();

	if (open_client(w, &t, 2000) < 0)
		fail_msg("%s", w->err.msg);
	assert_true(clock_boot_ms() - began < 2000);
	must_get(w, "/", "hello");
}

static void a_name_is_resolved_by_the_name_server(void **state)
{
	static const struct peer_name names[] = {{"svc.cluster.test", "127.0.0.1"}};
	struct world *w = *state;

	w->dns = (struct peer_dns){.names = names, .n = 1};
	peer_dns_start(&w->dns);
	char *conf = xasprintf("nameserver 127.0.0.1:%d\nsearch cluster.test\n", w->dns.port);

	assert_int_equal(file_write(w->conf, str_from(conf), 0600, NULL), 0);
	free(conf);
	serve(w, &w->a, false, hello);
	struct http_target t = target(w, "svc", &w->a);

	t.resolve.resolv_conf = w->conf;
	must_open(w, &t);
	must_get(w, "/", "hello");
	char *host = xasprintf("Host: svc:%d\r\n", w->a.port);

	assert_non_null(strstr(w->a.heads, host));
	free(host);
	t.host = "unknown";
	assert_int_equal(open_client(w, &t, LONG_MS), -1);
	assert_int_equal(w->err.kind, ERR_UNAVAILABLE);
}

/* Rule: the caller's headers go out as they are, and cannot break the message. */

static void headers_go_out_and_cannot_cut_the_message(void **state)
{
	struct world *w = *state;
	const struct http_field good[] = {{"X-Amz-Date", "20300101T000000Z"},
					  {"Authorization", "AWS4-HMAC-SHA256 x"}};
	const struct http_field bad[] = {
		{"X\r\nY", "1"},
		{"X", "1\r\nY: 2"},
		{"", "1"},
		{"X", NULL},
		{NULL, "1"},
		{"host", "x"},
		{"Content-length", "5"},
		{"Connection", "close"},
		{"Transfer-Encoding", "chunked"},
		{"Expect", "x"},
	};
	struct http_field many[HTTP_MAX_FIELDS + 1];
	struct http_outgoing r = {.method = "GET", .path = "/", .timeout_ms = LONG_MS};

	serve(w, &w->a, false, hello);
	struct http_target t = target(w, "127.0.0.1", &w->a);

	must_open(w, &t);
	r.fields = good;
	r.nfields = 2;
	assert_int_equal(http_send(w->client, &r, &w->answer, &w->err), 0);
	assert_non_null(strstr(w->a.heads, "\r\nX-Amz-Date: 20300101T000000Z\r\n"));
	assert_non_null(strstr(w->a.heads, "\r\nAuthorization: AWS4-HMAC-SHA256 x\r\n"));
	assert_non_null(strstr(w->a.heads, "\r\nUser-Agent: regatta/"));
	r.nfields = 1;
	for (size_t i = 0; i < COUNT(bad); i++) {
		r.fields = &bad[i];
		assert_int_equal(http_send(w->client, &r, &w->answer, &w->err), -1);
		assert_int_equal(w->err.kind, ERR_INVALID);
	}
	for (size_t i = 0; i < COUNT(many); i++)
		many[i] = (struct http_field){"X", "y"};
	r.fields = many;
	r.nfields = COUNT(many);
	assert_int_equal(http_send(w->client, &r, &w->answer, &w->err), -1);
	assert_int_equal(w->err.kind, ERR_INVALID);
	/* A token and an Authorization of the caller's are one too many. */
	t.token = "secret";
	must_open(w, &t);
	r.fields = &good[1];
	r.nfields = 1;
	assert_int_equal(http_send(w->client, &r, &w->answer, &w->err), -1);
	assert_int_equal(w->err.kind, ERR_INVALID);
	assert_int_equal(w->a.requests, 1);
}

/* Rule: a proxy passes TLS on unseen. */

static void use_proxy(struct world *w, struct http_target *t, char url[static 100],
		      const struct peer *beyond)
{
	w->proxy.proxy = true;
	w->proxy.beyond = beyond->port;
	if (!w->proxy.port)
		peer_start(&w->proxy);
	snprintf(url, 100, "http://us%%65r:pw@127.0.0.1:%d/", w->proxy.port);
	t->proxy.https_proxy = t->proxy.http_proxy = url;
}

static void tls_goes_through_a_proxy_by_connect(void **state)
{
	struct world *w = *state;
	char url[100];

	serve(w, &w->a, true, hello);
	struct http_target t = target(w, "a.test", &w->a);

	t.token = "secret";
	use_proxy(w, &t, url, &w->a);
	t.resolve.hosts_file = "/nonexistent"; /* names are the proxy's business */
	must_open(w, &t);
	must_get(w, "/one", "hello");
	must_get(w, "/two", "hello");
	char *connect = xasprintf("CONNECT a.test:%d HTTP/1.1\r\nHost: a.test:%d\r\n", w->a.port,
				  w->a.port);

	assert_int_equal(strncmp(w->proxy.heads, connect, strlen(connect)), 0);
	assert_non_null(strstr(w->proxy.heads, "Proxy-Authorization: Basic dXNlcjpwdw==\r\n"));
	assert_null(strstr(w->proxy.heads, "secret"));
	assert_null(strstr(w->a.heads, "Proxy-Authorization"));
	assert_int_equal(w->proxy.requests, 1);
	assert_int_equal(w->a.requests, 2);
	assert_string_equal(w->a.sni, "a.test");
	free(connect);
	/* The proxy cannot stand in for the server. */
	t.host = "elsewhere.test";
	assert_int_equal(open_client(w, &t, LONG_MS), -1);
	assert_int_equal(w->err.kind, ERR_DENIED);
	/* Hosts that are named, and this host itself, are reached directly. */
	t.host = "b.test";
	t.resolve.hosts_file = w->hosts;
	t.proxy.no_proxy = "other, .b.test";
	must_open(w, &t);
	t.proxy.no_proxy = NULL;
	t.host = "127.0.0.1";
	must_open(w, &t);
	assert_int_equal(w->proxy.requests, 2);
}

static void plain_goes_through_a_proxy_in_absolute_form(void **state)
{
	struct world *w = *state;
	char url[100];

	serve(w, &w->a, false, hello);
	struct http_target t = target(w, "a.test", &w->a);

	use_proxy(w, &t, url, &w->a);
	must_open(w, &t);
	must_get(w, "/one?x=1", "hello");
	char *line = xasprintf("GET http://a.test:%d/one?x=1 HTTP/1.1\r\nHost: a.test:%d\r\n",
			       w->a.port, w->a.port);

	assert_int_equal(strncmp(w->proxy.heads, line, strlen(line)), 0);
	free(line);
}

static void a_proxy_that_refuses_is_told(void **state)
{
	static const struct {
		const char *answer;
		enum err_kind kind;
		const char *why;
	} cases[] = {
		{"HTTP/1.1 407 no\r\nContent-Length: 0\r\n\r\n", ERR_DENIED, "407"},
		{"HTTP/1.1 403 no\r\nContent-Length: 4\r\n\r\nnope", ERR_UNAVAILABLE,
		 "403 Forbidden"},
		{"HTTP/1.1 200 ok\r\n\r\nsurprise", ERR_PROTOCOL, "before it was asked"},
		{"what?\r\n\r\n", ERR_PROTOCOL, "not HTTP"},
		{"", ERR_UNAVAILABLE, "hung up"},
	};
	struct world *w = *state;
	char url[100];

	serve(w, &w->a, true, hello);
	struct http_target t = target(w, "a.test", &w->a);

	use_proxy(w, &t, url, &w->a);
	for (size_t i = 0; i < COUNT(cases); i++) {
		w->proxy.refuse = cases[i].answer;
		assert_int_equal(open_client(w, &t, LONG_MS), -1);
		if (w->err.kind != cases[i].kind || !strstr(w->err.msg, cases[i].why) ||
		    !strstr(w->err.msg, "proxy"))
			fail_msg("case %zu: %s", i, w->err.msg);
	}
	t.proxy.https_proxy = "https://127.0.0.1:1";
	assert_int_equal(open_client(w, &t, LONG_MS), -1);
	assert_int_equal(w->err.kind, ERR_INVALID);
	t.proxy.https_proxy = "socks5://127.0.0.1:1";
	assert_int_equal(open_client(w, &t, LONG_MS), -1);
	assert_int_equal(w->err.kind, ERR_INVALID);
	assert_int_equal(w->a.conns, 0);
}

/* Rule: redirects are followed where asked, and carry no secrets away. */

static void redirect(struct peer_conn *c, const char *to)
{
	char *text = xasprintf(
		"HTTP/1.1 302 Found\r\nLocation: %s\r\nContent-Length: 4\r\n\r\naway", to);

	peer_sayz(c, text);
	free(text);
}

static bool show_way(struct peer_conn *c, const char *head)
{
	struct world *w = c->peer->ctx;
	char *far = xasprintf("https://b.test:%d/end#part", w->b.port);
	char *down = xasprintf("http://b.test:%d/end", w->b.port);

	if (strstr(head, " /near "))
		redirect(c, "/end");
	else if (strstr(head, " /dir/name?q "))
		redirect(c, "beside");
	else if (strstr(head, " /loop "))
		redirect(c, "/loop");
	else if (strstr(head, " /far "))
		redirect(c, far);
	else if (strstr(head, " /down "))
		redirect(c, down);
	else if (strstr(head, " /bad "))
		redirect(c, "http://");
	else if (strstr(head, " /nowhere "))
		peer_sayz(c, "HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n");
	else
		peer_ok(c, strstr(head, " /dir/beside ") ? "beside" : "end");
	free(far);
	free(down);
	return true;
}

static void redirects_are_followed_only_where_asked(void **state)
{
	struct world *w = *state;

	serve(w, &w->a, true, show_way);
	struct http_target t = target(w, "a.test", &w->a);

	must_open(w, &t);
	must_get(w, "/near", "away");
	assert_int_equal(w->answer.status, 302);
	assert_true(str_is(http_client_header(w->client, "location"), "/end"));
	assert_int_equal(get(w, "/near", 1), 0);
	assert_true(str_is(buf_str(&w->answer.body), "end"));
	assert_int_equal(get(w, "/dir/name?q", 1), 0);
	assert_true(str_is(buf_str(&w->answer.body), "beside"));
	int before = w->a.requests;

	assert_int_equal(get(w, "/loop", 5), -1);
	assert_int_equal(w->err.kind, ERR_PROTOCOL);
	assert_int_equal(w->a.requests, before + 6);
	assert_int_equal(get(w, "/bad", 5), -1);
	assert_int_equal(get(w, "/nowhere", 5), -1);
	assert_int_equal(w->err.kind, ERR_PROTOCOL);
	struct http_outgoing post = {
		.method = "POST", .path = "/near", .timeout_ms = LONG_MS, .max_redirects = 5};

	assert_int_equal(http_send(w->client, &post, &w->answer, &w->err), 0);
	assert_int_equal(w->answer.status, 302);
	post.max_redirects = HTTP_MAX_REDIRECTS + 1;
	assert_int_equal(http_send(w->client, &post, &w->answer, &w->err), -1);
	assert_int_equal(w->err.kind, ERR_INVALID);
}

static void another_host_gets_no_secrets(void **state)
{
	struct world *w = *state;
	const struct http_field fields[] = {{"X-Secret", "s3cret"}, {"Range", "bytes=0-"}};
	struct http_outgoing r = {.method = "GET",
				  .path = "/far",
				  .timeout_ms = LONG_MS,
				  .max_redirects = 3,
				  .fields = fields,
				  .nfields = 2};

	serve(w, &w->a, true, show_way);
	serve(w, &w->b, true, show_way);
	struct http_target t = target(w, "a.test", &w->a);

	t.token = "t0ken";
	t.inner_token = "1nner";
	must_open(w, &t);
	if (http_send(w->client, &r, &w->answer, &w->err) < 0)
		fail_msg("%s", w->err.msg);
	assert_true(str_is(buf_str(&w->answer.body), "end"));
	assert_non_null(strstr(w->a.heads, "Authorization: Bearer t0ken\r\n"));
	assert_non_null(strstr(w->a.heads, "X-Secret: s3cret\r\n"));
	assert_non_null(strstr(w->b.heads, "GET /end HTTP/1.1\r\n"));
	assert_non_null(strstr(w->b.heads, "Range: bytes=0-\r\n"));
	assert_non_null(strstr(w->a.heads, "1nner"));
	assert_null(strstr(w->b.heads, "t0ken"));
	assert_null(strstr(w->b.heads, "1nner"));
	assert_null(strstr(w->b.heads, "s3cret"));
	assert_string_equal(w->b.sni, "b.test");
	/* The next call is to the target again, with its token. */
	w->a.heads[0] = '\0';
	must_get(w, "/end", "end");
	assert_non_null(strstr(w->a.heads, "Authorization: Bearer t0ken\r\n"));
}

static void another_host_does_not_see_our_certificate(void **state)
{
	struct world *w = *state;
	struct peer_cert own;

	peer_cert_make(&own, &w->ca, "DNS:me", -1, 10);
	serve(w, &w->a, true, show_way);
	w->b.tls = peer_tls(&w->cert, TLS13, &w->ca); /* wants to see one */
	serve(w, &w->b, false, show_way);
	struct http_target t = target(w, "b.test", &w->b);

	t.tls.cert_pem = str_from(own.cert);
	t.tls.key_pem = str_from(own.key);
	must_open(w, &t);
	must_get(w, "/end", "end");
	t.host = "a.test";
	t.port = w->a.port;
	must_open(w, &t);
	assert_int_equal(get(w, "/far", 3), -1);
	assert_int_equal(w->b.requests, 1);
	peer_cert_release(&own);
}

static void https_does_not_lead_to_http(void **state)
{
	struct world *w = *state;

	serve(w, &w->a, true, show_way);
	serve(w, &w->b, false, show_way);
	struct http_target t = target(w, "a.test", &w->a);

	must_open(w, &t);
	assert_int_equal(get(w, "/down", 3), -1);
	assert_int_equal(w->err.kind, ERR_DENIED);
	assert_int_equal(w->b.conns, 0);
}

static void http_may_lead_to_https_where_the_chain_holds(void **state)
{
	struct world *w = *state;

	serve(w, &w->a, false, show_way);
	serve(w, &w->b, true, show_way);
	struct http_target t = target(w, "a.test", &w->a);

	must_open(w, &t);
	assert_int_equal(get(w, "/far", 3), 0);
	assert_true(str_is(buf_str(&w->answer.body), "end"));
	t.tls.ca_pem = (struct str){0}; /* then the system's CAs, who do not know it */
	must_open(w, &t);
	assert_int_equal(get(w, "/far", 3), -1);
	assert_int_equal(w->err.kind, ERR_DENIED);
}

/* Rule: bodies of every shape, and limits to all of them. */

static bool say_ctx(struct peer_conn *c, const char *head)
{
	(void)head;
	peer_sayz(c, c->peer->ctx);
	return true;
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static void chunks_and_trailers_are_read(void **state)
{
	static char text[] = CHUNKED "5;x=y\r\nhello\r\n1\r\n \r\n5\r\nworld\r\n0\r\n"
				     "X-Sum: 1\r\nX-More: 2\r\n\r\n";
	struct world *w = *state;

	serve(w, &w->a, true, say_ctx);
	w->a.ctx = text;
	struct http_target t = target(w, "a.test", &w->a);

	must_open(w, &t);
	for (int i = 0; i < 3; i++)
		must_get(w, "/", "hello world");
	assert_int_equal(w->a.conns, 1);
}

static void malformed_and_endless_answers_are_errors(void **state)
{
	struct world *w = *state;
	char *huge = xmalloc(200000), *many = xcalloc(1, 200000), *interims = xcalloc(1, 2000);
	const char *const bad[] = {
		CHUNKED "zz\r\nhello\r\n0\r\n\r\n",
		CHUNKED "5\r\nhelloX\r\n0\r\n\r\n",
		CHUNKED "-5\r\nhello\r\n0\r\n\r\n",
		CHUNKED "ffffffffffffffff\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"<html>captive portal</html>\r\n\r\n",
		huge,
		many,
		interims,
	};
	size_t at = (size_t)snprintf(many, 200000, "HTTP/1.1 200 OK\r\n");

	memset(huge, 'x', 199999);
	memcpy(huge, "HTTP/1.1 200 OK\r\nX: ", 20);
	huge[199999] = '\0';
	for (int i = 0; i < 1000; i++)
		at += (size_t)snprintf(many + at, 200000 - at, "X-%d: y\r\n", i);
	for (int i = 0; i < 20; i++)
		snprintf(interims + strlen(interims), 2000 - strlen(interims),
			 "HTTP/1.1 102 Processing\r\n\r\n");
	serve(w, &w->a, false, say_ctx);
	struct http_target t = target(w, "a.test", &w->a);

	for (size_t i = 0; i < COUNT(bad); i++) {
		w->a.ctx = (void *)(uintptr_t)bad[i];
		must_open(w, &t);
		assert_int_equal(get(w, "/", 0), -1);
		if (w->err.kind != ERR_PROTOCOL)
			fail_msg("case %zu: %s", i, w->err.msg);
	}
	free(huge);
	free(many);
	free(interims);
}

static bool close_after_one(struct peer_conn *c, const char *head)
{
	(void)head;
	peer_ok(c, "hello");
	return false;
}

static void a_server_that_closes_between_calls_is_dialled_anew(void **state)
{
	struct world *w = *state;

	serve(w, &w->a, true, close_after_one);
	struct http_target t = target(w, "a.test", &w->a);

	must_open(w, &t);
	for (int i = 0; i < 3; i++) {
		must_get(w, "/", "hello");
		/* Its goodbye has come: nothing is sent into a closed connection. */
		struct pollfd p = {.fd = http_client_fd(w->client), .events = POLLRDHUP};

		assert_int_equal(poll(&p, 1, LONG_MS), 1);
	}
	assert_int_equal(w->a.conns, 3);
}

/* Rule: every stage has the deadline and the stop flag. */

static bool never(struct peer_conn *c, const char *head)
{
	(void)head;
	while (!c->peer->quit)
		poll(NULL, 0, 10);
	return false;
}

static bool drip(struct peer_conn *c, const char *head)
{
	(void)head;
	peer_sayz(c, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
	for (int i = 0; i < 1000 && !c->peer->quit; i++) {
		peer_sayz(c, "x");
		poll(NULL, 0, 10);
	}
	return false;
}

enum stage { RESOLVING, CONNECTING, PROXYING, SHAKING, ANSWERING, DRIPPING, SENDING, STAGES };

struct blocked {
	struct world *w;
	enum stage stage;
	struct http_target t;
	char url[100];
	char *body;
	int full[64]; /* a backlog without room */
	int nfull, listen_fd;
};

static void fill_backlog(struct blocked *b, int port)
{
	for (; b->nfull < 64; b->nfull++)
		if (dial_tcp("127.0.0.1", port, 50, &b->full[b->nfull], NULL) < 0)
			return;
}

static void prepare(struct blocked *b)
{
	struct world *w = b->w;
	char *conf;

	switch (b->stage) {
	case RESOLVING:
		w->dns.silent = true;
		peer_dns_start(&w->dns);
		conf = xasprintf("nameserver 127.0.0.1:%d\n", w->dns.port);
		assert_int_equal(file_write(w->conf, str_from(conf), 0600, NULL), 0);
		free(conf);
		b->t = (struct http_target){.host = "slow.test", .port = 1, .tls.mode = TLS_OFF};
		b->t.resolve.resolv_conf = w->conf;
		break;
	case CONNECTING: {
		struct sockaddr_in at = {.sin_family = AF_INET,
					 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		socklen_t len = sizeof(at);

		b->listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(bind(b->listen_fd, (struct sockaddr *)&at, len), 0);
		assert_int_equal(listen(b->listen_fd, 0), 0);
		assert_int_equal(getsockname(b->listen_fd, (struct sockaddr *)&at, &len), 0);
		fill_backlog(b, ntohs(at.sin_port));
		b->t = (struct http_target){
			.host = "127.0.0.1", .port = ntohs(at.sin_port), .tls.mode = TLS_OFF};
		break;
	}
	case PROXYING:
		w->proxy.never_shakes = true;
		serve(w, &w->a, true, hello);
		b->t = target(w, "a.test", &w->a);
		use_proxy(w, &b->t, b->url, &w->a);
		break;
	case SHAKING:
		w->a.never_shakes = true;
		serve(w, &w->a, true, hello);
		b->t = target(w, "a.test", &w->a);
		break;
	case ANSWERING:
	case SENDING:
		serve(w, &w->a, true, never);
		b->t = target(w, "a.test", &w->a);
		break;
	case DRIPPING:
		serve(w, &w->a, true, drip);
		b->t = target(w, "a.test", &w->a);
		break;
	case STAGES:
		break;
	}
}

static int run_blocked(struct blocked *b, int timeout_ms, struct err *err)
{
	struct http_client *c = NULL;
	struct http_outgoing r = {.method = "PUT", .path = "/", .timeout_ms = timeout_ms};
	int rc = http_client_open(&b->t, timeout_ms, &c, err);

	if (b->stage == SENDING)
		r.body = (struct str){b->body, 32 << 20};
	if (rc == 0)
		rc = http_send(c, &r, &b->w->answer, err);
	http_client_free(c);
	return rc;
}

static void release_blocked(struct blocked *b)
{
	struct world *w = b->w;

	for (int i = 0; i < b->nfull; i++)
		close(b->full[i]);
	if (b->listen_fd)
		close(b->listen_fd);
	free(b->body);
	if (w->a.port)
		peer_stop(&w->a);
	if (w->proxy.port)
		peer_stop(&w->proxy);
	if (w->dns.port)
		peer_dns_stop(&w->dns);
	peer_tls_free(w->a.tls);
	w->a = w->proxy = (struct peer){0};
	w->dns = (struct peer_dns){0};
}

static void the_deadline_holds_in_every_stage(void **state)
{
	for (enum stage s = 0; s < STAGES; s++) {
		struct blocked b = {.w = *state, .stage = s, .body = xcalloc(1, 32 << 20)};
		struct err err = {0};

		prepare(&b);
		int64_t began = clock_boot_ms();
		int rc = run_blocked(&b, 200, &err);
		int64_t took = clock_boot_ms() - began;

		if (rc == 0 || err.kind != ERR_TIMEOUT || took < 200 || took > 4000)
			fail_msg("stage %u: %s after %" PRId64 " ms", s, err.msg, took);
		release_blocked(&b);
	}
}

static void *set_soon(void *flag)
{
	poll(NULL, 0, 100);
	*(volatile int *)flag = 1;
	return NULL;
}

static void a_stop_is_seen_in_every_stage(void **state)
{
	for (enum stage s = 0; s < STAGES; s++) {
		struct blocked b = {.w = *state, .stage = s, .body = xcalloc(1, 32 << 20)};
		volatile int stop = 0;
		struct err err = {0};
		pthread_t thread;

		prepare(&b);
		b.t.stop = &stop;
		assert_int_equal(pthread_create(&thread, NULL, set_soon, (void *)&stop), 0);
		int64_t began = clock_boot_ms();
		int rc = run_blocked(&b, 60000, &err);
		int64_t took = clock_boot_ms() - began;

		pthread_join(thread, NULL);
		if (rc == 0 || err.kind != ERR_CANCELLED || took > 4000)
			fail_msg("stage %u: %s after %" PRId64 " ms", s, err.msg, took);
		release_blocked(&b);
	}
}

/* Rule: uploads and downloads begin where the caller says. */

static bool continue_or_not(struct peer_conn *c, const char *head)
{
	char body[6] = "";

	assert_non_null(strstr(head, "Expect: 100-continue\r\n"));
	if (strstr(head, " /no ")) {
		peer_sayz(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
		return false;
	}
	if (strstr(head, " /yes "))
		peer_sayz(c, "HTTP/1.1 100 Continue\r\n\r\n");
	if (strstr(head, " /late ")) { /* so late that the body is under way */
		char first;

		peer_take(c, &first, 1);
		peer_sayz(c, "HTTP/1.1 100 Continue\r\n\r\n");
		body[0] = first;
	}
	peer_take(c, body + strlen(body), 5 - strlen(body));
	peer_ok(c, body);
	return true;
}

static void an_upload_waits_for_continue_and_begins_at_its_offset(void **state)
{
	struct world *w = *state;
	int fd = open(unit_path(&w->dir, "source"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct http_outgoing r = {.method = "PUT",
				  .timeout_ms = LONG_MS,
				  .from_fd = true,
				  .fd = fd,
				  .offset = 3,
				  .size = 5,
				  .expect_continue = true};

	assert_int_equal(write(fd, "abchello", 8), 8);
	serve(w, &w->a, false, continue_or_not);
	struct http_target t = target(w, "a.test", &w->a);
	static const char *const paths[] = {"/yes", "/yes", "/silent", "/late"};

	must_open(w, &t);
	for (size_t i = 0; i < COUNT(paths); i++) {
		r.path = paths[i];
		if (http_send(w->client, &r, &w->answer, &w->err) < 0)
			fail_msg("%s: %s", paths[i], w->err.msg);
		assert_true(str_is(buf_str(&w->answer.body), "hello"));
	}
	assert_int_equal(w->a.conns, 1);
	r.path = "/no";
	assert_int_equal(http_send(w->client, &r, &w->answer, &w->err), 0);
	assert_int_equal(w->answer.status, 403);
	close(fd);
}

static void an_upload_goes_on_as_soon_as_the_server_says_so(void **state)
{
	struct world *w = *state;
	const struct http_outgoing r = {.method = "PUT",
					.path = "/yes",
					.timeout_ms = LONG_MS,
					.body = STR("hello"),
					.expect_continue = true};

	serve(w, &w->a, false, continue_or_not);
	struct http_target t = target(w, "a.test", &w->a);
	int64_t began = clock_boot_ms();

	must_open(w, &t);
	for (int i = 0; i < 8; i++)
		assert_int_equal(http_send(w->client, &r, &w->answer, &w->err), 0);
	/* A second each is how long a server that says nothing is waited for. */
	assert_true(clock_boot_ms() - began < 4000);
}

static const char whole[] = "0123456789abcdefghij";

static bool give_ranges(struct peer_conn *c, const char *head)
{
	const char *range = strstr(head, "Range: bytes=");
	size_t from = 0, size = strlen(whole);
	char text[200];

	if (range && !strstr(head, " /plain "))
		from = (size_t)strtoul(range + 13, NULL, 10);
	if (strstr(head, " /short "))
		size = 5;
	if (from >= size) {
		snprintf(
			text, sizeof(text),
			"HTTP/1.1 416 x\r\nContent-Range: bytes */%zu\r\nContent-Length: 0\r\n\r\n",
			size);
		peer_sayz(c, text);
		return true;
	}
	if (strstr(head, " /lies "))
		from++;
	snprintf(text, sizeof(text), "HTTP/1.1 %d x\r\nContent-Length: %zu\r\n", from ? 206 : 200,
		 size - from);
	peer_sayz(c, text);
	snprintf(text, sizeof(text), "Content-Range: bytes %zu-%zu/%zu\r\n", from, size - 1, size);
	peer_sayz(c, from ? text : "");
	peer_sayz(c, "\r\n");
	if (strstr(head, " /cut ") && from == 0) {
		peer_say(c, whole, 7);
		return false;
	}
	peer_sayz(c, whole + from);
	return true;
}

static int download(struct world *w, const char *path, struct http_download *d)
{
	d->get.path = path;
	d->get.timeout_ms = LONG_MS;
	w->err = (struct err){0};
	return http_download(w->client, d, &w->answer, &w->err);
}

static void a_download_that_was_cut_goes_on_where_it_was(void **state)
{
	struct world *w = *state;
	int fd = open(unit_path(&w->dir, "got"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct http_download d = {.fd = fd, .max_bytes = 20, .stall_ms = 5000};
	char back[21] = "";

	serve(w, &w->a, true, give_ranges);
	struct http_target t = target(w, "a.test", &w->a);

	must_open(w, &t);
	assert_int_equal(download(w, "/cut", &d), -1);
	assert_int_equal(w->err.kind, ERR_UNAVAILABLE);
	assert_int_equal(d.offset, 7);
	if (download(w, "/cut", &d) < 0)
		fail_msg("%s", w->err.msg);
	assert_int_equal(w->answer.status, 206);
	assert_int_equal(d.offset, 20);
	assert_int_equal(pread(fd, back, 21, 0), 20);
	assert_string_equal(back, whole);
	/* Nothing more to get is complete, too; a shorter file is another file. */
	assert_int_equal(download(w, "/cut", &d), 0);
	assert_int_equal(d.offset, 20);
	assert_int_equal(download(w, "/short", &d), -1);
	assert_int_equal(w->err.kind, ERR_CONFLICT);
	/* A server without ranges begins again. */
	d.offset = 7;
	assert_int_equal(download(w, "/plain", &d), 0);
	assert_int_equal(w->answer.status, 200);
	assert_int_equal(d.offset, 20);
	/* A part that was not asked for is not written. */
	d.offset = 7;
	assert_int_equal(download(w, "/lies", &d), -1);
	assert_int_equal(w->err.kind, ERR_PROTOCOL);
	assert_int_equal(d.offset, 7);
	d.offset = 0;
	d.max_bytes = 19;
	assert_int_equal(download(w, "/whole", &d), -1);
	assert_int_equal(w->err.kind, ERR_CAPACITY);
	close(fd);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(ipv6_is_an_address_like_others),
		T(a_dead_address_does_not_hide_a_live_one),
		T(a_name_is_resolved_by_the_name_server),
		T(headers_go_out_and_cannot_cut_the_message),
		T(tls_goes_through_a_proxy_by_connect),
		T(plain_goes_through_a_proxy_in_absolute_form),
		T(a_proxy_that_refuses_is_told),
		T(redirects_are_followed_only_where_asked),
		T(another_host_gets_no_secrets),
		T(another_host_does_not_see_our_certificate),
		T(https_does_not_lead_to_http),
		T(http_may_lead_to_https_where_the_chain_holds),
		T(chunks_and_trailers_are_read),
		T(malformed_and_endless_answers_are_errors),
		T(a_server_that_closes_between_calls_is_dialled_anew),
		T(the_deadline_holds_in_every_stage),
		T(a_stop_is_seen_in_every_stage),
		T(an_upload_waits_for_continue_and_begins_at_its_offset),
		T(an_upload_goes_on_as_soon_as_the_server_says_so),
		T(a_download_that_was_cut_goes_on_where_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
