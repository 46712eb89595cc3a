/* Whom the client trusts: real TLS servers on loopback, good ones and bad ones. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/err.h"
#include "net/http_client.h"
#include "peer.h"

#define LONG_MS 10000
#define TLS12 0x0303
#define TLS13 0x0304

static struct peer_cert ca, other_ca, good, expired, early, wrong_name, alone, client_cert;

static int make_certificates(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	peer_cert_make(&ca, NULL, "CA", -1, 100);
	peer_cert_make(&other_ca, NULL, "CA", -1, 100);
	peer_cert_make(&good, &ca, "DNS:api.test,DNS:*.wild.test,IP:127.0.0.1", -1, 10);
	peer_cert_make(&expired, &ca, "DNS:api.test,IP:127.0.0.1", -10, -1);
	peer_cert_make(&early, &ca, "DNS:api.test,IP:127.0.0.1", 1, 10);
	peer_cert_make(&wrong_name, &ca, "DNS:elsewhere.test,IP:127.0.0.2", -1, 10);
	peer_cert_make(&alone, NULL, "DNS:api.test,IP:127.0.0.1", -1, 10);
	peer_cert_make(&client_cert, &ca, "DNS:somebody", -1, 10);
	return 0;
}

static int drop_certificates(void **state)
{
	struct peer_cert *const all[] = {&ca,	 &other_ca,   &good,  &expired,
					 &early, &wrong_name, &alone, &client_cert};

	(void)state;
	for (size_t i = 0; i < COUNT(all); i++)
		peer_cert_release(all[i]);
	return 0;
}

static bool say_hello(struct peer_conn *c, const char *head)
{
	(void)head;
	peer_ok(c, "hello");
	return true;
}

static void start(struct peer *p, const struct peer_cert *cert, int version)
{
	*p = (struct peer){.answer = say_hello, .tls = peer_tls(cert, version, NULL)};
	peer_start(p);
}

static void stop(struct peer *p)
{
	peer_stop(p);
	peer_tls_free(p->tls);
}

static struct http_target target(const struct peer *p, const struct peer_cert *trusted)
{
	return (struct http_target){
		.host = "127.0.0.1",
		.port = p->port,
		.tls = {.mode = TLS_CA, .ca_pem = str_from(trusted->cert)},
	};
}

static int open_and_call(const struct http_target *t, int calls, struct err *err)
{
	struct http_client *c = NULL;
	struct http_answer a;
	int rc = http_client_open(t, LONG_MS, &c, err);

	http_answer_init(&a, 1000);
	for (int i = 0; i < calls && rc == 0; i++) {
		rc = http_call(c, "GET", "/", STR(""), NULL, LONG_MS, &a, err);
		if (rc == 0)
			assert_true(str_is(buf_str(&a.body), "hello"));
	}
	http_answer_release(&a);
	http_client_free(c);
	return rc;
}

static void must_work(const struct http_target *t, int calls)
{
	struct err err = {0};

	if (open_and_call(t, calls, &err) < 0)
		fail_msg("%s", err.msg);
}

static void must_be_denied(const struct http_target *t, const char *why)
{
	struct err err = {0};

	assert_int_equal(open_and_call(t, 1, &err), -1);
	if (err.kind != ERR_DENIED || !strstr(err.msg, why))
		fail_msg("expected '%s', got '%s'", why, err.msg);
}

/* Rule: session tickets are no answer. */

static void calls_share_a_connection_with_a_server_that_sends_tickets(void **state)
{
	static const int versions[] = {TLS12, TLS13};

	(void)state;
	for (size_t i = 0; i < COUNT(versions); i++) {
		struct peer p;

		start(&p, &good, versions[i]);
		struct http_target t = target(&p, &ca);

		must_work(&t, 4);
		stop(&p);
		assert_int_equal(p.conns, 1);
		assert_int_equal(p.requests, 4);
	}
}

static bool take_upload(struct peer_conn *c, const char *head)
{
	char *body = xmalloc(3000000);
	size_t n = 0;

	(void)head;
	for (int i = 0; i < 3; i++) { /* while the body is on its way */
		peer_ticket(c);
		n += peer_take(c, body, 1000000);
	}
	peer_ok(c, n == 3000000 ? "hello" : "short");
	free(body);
	return true;
}

static void a_large_upload_is_not_stopped_by_tickets(void **state)
{
	struct peer p = {.answer = take_upload, .tls = peer_tls(&good, TLS13, NULL)};
	struct http_client *c = NULL;
	struct http_answer a;
	struct err err = {0};
	char *body = xcalloc(1, 3000000);

	(void)state;
	peer_start(&p);
	struct http_target t = target(&p, &ca);

	http_answer_init(&a, 1000);
	assert_int_equal(http_client_open(&t, LONG_MS, &c, &err), 0);
	if (http_call(c, "PUT", "/", (struct str){body, 3000000}, NULL, LONG_MS, &a, &err) < 0)
		fail_msg("%s", err.msg);
	assert_true(str_is(buf_str(&a.body), "hello"));
	http_client_free(c);
	http_answer_release(&a);
	free(body);
	stop(&p);
}

/* openssl's own server, whose page has no length: it ends with a proper goodbye. */
static void the_server_that_openssl_brings_is_understood(void **state)
{
	struct http_client *c = NULL;
	struct http_answer a;
	struct err err = {0};
	int from[2], port = 0;
	char line[256] = "";
	size_t n = 0;

	if (access("/usr/bin/openssl", X_OK) < 0)
		skip();
	const char *cert = unit_path(state, "cert"), *key = unit_path(state, "key");

	assert_int_equal(file_write(cert, str_from(good.cert), 0600, NULL), 0);
	assert_int_equal(file_write(key, str_from(good.key), 0600, NULL), 0);
	assert_int_equal(pipe(from), 0);
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(from[1], 1);
		execl("/usr/bin/openssl", "openssl", "s_server", "-accept", "127.0.0.1:0", "-cert",
		      cert, "-key", key, "-www", (char *)NULL);
		_exit(127);
	}
	close(from[1]);
	/* Some lines, and among them "ACCEPT 127.0.0.1:41234". */
	while (sscanf(line, "ACCEPT 127.0.0.1:%d\n", &port) != 1 || line[n - 1] != '\n') {
		if (n > 0 && line[n - 1] == '\n')
			n = 0;
		assert_true(n + 1 < sizeof(line) && read(from[0], line + n, 1) == 1);
		line[++n] = '\0';
	}
	struct http_target t = {.host = "127.0.0.1",
				.port = port,
				.tls = {.mode = TLS_CA, .ca_pem = str_from(ca.cert)}};

	http_answer_init(&a, 1 << 20);
	if (http_client_open(&t, LONG_MS, &c, &err) < 0)
		fail_msg("%s", err.msg);
	for (int i = 0; i < 2; i++) {
		if (http_call(c, "GET", "/", STR(""), NULL, LONG_MS, &a, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(a.status, 200);
		assert_non_null(strstr(a.body.p, "TLSv1.3"));
	}
	http_client_free(c);
	http_answer_release(&a);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(from[0]);
}

/* Rule: a chain to a CA, in time, for the name that was dialled. */

static void the_right_ca_is_enough(void **state)
{
	struct peer p;

	start(&p, &good, TLS13);
	struct http_target t = target(&p, &ca);

	must_work(&t, 1);
	assert_string_equal(p.sni, ""); /* addresses are not sent as names */
	/* From a file, alone or as the system's. */
	const char *path = unit_path(state, "bundle");
	char *both = xasprintf("%s%s", other_ca.cert, ca.cert);

	assert_int_equal(file_write(path, str_from(both), 0600, NULL), 0);
	t.tls = (struct tls_trust){.mode = TLS_CA, .ca_file = path};
	must_work(&t, 1);
	t.tls = (struct tls_trust){.mode = TLS_CA};
	setenv("SSL_CERT_FILE", path, 1);
	must_work(&t, 1);
	unsetenv("SSL_CERT_FILE");
	must_be_denied(&t, "unable to get local issuer"); /* the real world does not know it */
	/* A file that changed counts. */
	t.tls.ca_file = path;
	assert_int_equal(file_write_atomic(path, str_from(other_ca.cert), 0600, false, NULL), 0);
	must_be_denied(&t, "unable to get local issuer");
	free(both);
	stop(&p);
}

static void whoever_is_not_vouched_for_is_refused(void **state)
{
	const struct {
		const struct peer_cert *cert, *trusted;
		const char *why;
	} cases[] = {
		{&good, &other_ca, "unable to get local issuer"},
		{&alone, &ca, "self-signed"},
		{&expired, &ca, "expired"},
		{&early, &ca, "not yet valid"},
		{&wrong_name, &ca, "IP address mismatch"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct peer p;

		start(&p, cases[i].cert, TLS13);
		struct http_target t = target(&p, cases[i].trusted);

		must_be_denied(&t, cases[i].why);
		stop(&p);
		assert_int_equal(p.requests, 0);
	}
}

static void the_name_is_asked_for_and_checked(void **state)
{
	static const struct {
		const char *name;
		bool ok;
	} cases[] = {
		{"api.test", true},	  {"API.test.", true},	    {"x.wild.test", true},
		{"wild.test", false},	  {"a.b.wild.test", false}, {"other.test", false},
		{"api.test.evil", false},
	};
	const char *hosts = unit_path(state, "hosts");
	struct peer p;

	start(&p, &good, TLS13);
	struct http_target t = target(&p, &ca);

	assert_int_equal(file_write(hosts,
				    STR("127.0.0.1 api.test x.wild.test wild.test a.b.wild.test "
					"other.test api.test.evil\n"),
				    0600, NULL),
			 0);
	t.resolve.hosts_file = hosts;
	for (size_t i = 0; i < COUNT(cases); i++) {
		t.host = cases[i].name;
		if (cases[i].ok)
			must_work(&t, 1);
		else
			must_be_denied(&t, "hostname mismatch");
		if (cases[i].ok) /* a server hears the name without its last dot */
			assert_int_equal(strncmp(p.sni, cases[i].name, strlen(p.sni)), 0);
		assert_true(strlen(p.sni) > 0);
	}
	t.host = "127.0.0.1"; /* as a kubeconfig's tls-server-name */
	t.tls.server_name = "api.test";
	must_work(&t, 1);
	assert_string_equal(p.sni, "api.test");
	t.tls.server_name = "other.test";
	must_be_denied(&t, "hostname mismatch");
	stop(&p);
}

/* Rule: a pin says it all. */

static void a_pin_needs_no_chain_and_is_not_replaced_by_one(void **state)
{
	struct peer p;
	struct err err = {0};
	char pin[64] = "";

	(void)state;
	start(&p, &expired, TLS13);
	struct http_target t = {.host = "127.0.0.1",
				.port = p.port,
				.tls = {.mode = TLS_PIN, .pin = "sha256//wrong"}};

	assert_int_equal(open_and_call(&t, 1, &err), -1);
	assert_int_equal(err.kind, ERR_DENIED);
	assert_int_equal(sscanf(strstr(err.msg, "sha256//"), "%63[^,]", pin), 1);
	t.tls.pin = pin; /* as the message had it */
	must_work(&t, 3);
	/* A chain that would do is not asked about. */
	t.tls.pin = "sha256//wrong";
	t.tls.ca_pem = str_from(ca.cert);
	must_be_denied(&t, "expected sha256//wrong");
	stop(&p);
}

/* Rule: we show who we are, where we are asked. */

static void a_client_certificate_is_shown(void **state)
{
	struct peer p = {.answer = say_hello, .tls = peer_tls(&good, TLS13, &ca)};
	struct err err = {0};

	(void)state;
	peer_start(&p);
	struct http_target t = target(&p, &ca);

	assert_int_equal(open_and_call(&t, 1, &err), -1); /* it asks for one */
	assert_int_equal(p.requests, 0);
	t.tls.cert_pem = str_from(client_cert.cert);
	t.tls.key_pem = str_from(client_cert.key);
	must_work(&t, 2);
	t.tls.cert_pem = str_from(alone.cert);
	t.tls.key_pem = str_from(alone.key);
	assert_int_equal(open_and_call(&t, 1, &err), -1);
	stop(&p);
}

static void settings_that_cannot_be_used_are_told_before_anything_is_dialled(void **state)
{
	const struct tls_trust bad[] = {
		{0},
		{.mode = TLS_PIN},
		{.mode = TLS_CA, .ca_pem = STR("no certificate")},
		{.mode = TLS_CA, .ca_file = "/nonexistent/bundle"},
		{.mode = TLS_CA, .ca_file = "/dev/null"},
		{.mode = TLS_CA, .ca_pem = str_from(ca.cert), .cert_pem = str_from(good.cert)},
		{.mode = TLS_CA,
		 .ca_pem = str_from(ca.cert),
		 .cert_pem = str_from(good.cert),
		 .key_pem = str_from(alone.key)},
		{.mode = TLS_CA,
		 .ca_pem = str_from(ca.cert),
		 .cert_pem = STR("x"),
		 .key_pem = str_from(alone.key)},
	};
	char *broken = xasprintf("%s-----BEGIN CERTIFICATE-----\n!!\n-----END CERTIFICATE-----\n",
				 ca.cert);
	struct err err = {0};

	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct http_target t = {.host = "192.0.2.1", .port = 1, .tls = bad[i]};

		err = (struct err){0};
		assert_int_equal(open_and_call(&t, 1, &err), -1);
		assert_int_equal(err.kind, ERR_INVALID);
	}
	struct tls_trust half = {.mode = TLS_CA, .ca_pem = str_from(broken)};

	assert_int_equal(tls_trust_check(&half, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
	free(broken);
	struct http_target t = {.unix_dir = "/", .unix_name = "x", .tls.mode = TLS_CA};

	assert_int_equal(open_and_call(&t, 1, &err), -1);
	assert_int_equal(err.kind, ERR_INVALID);
}

static void many_settings_do_not_crowd_each_other_out(void **state)
{
	struct peer p;

	(void)state;
	start(&p, &good, TLS13);
	struct http_target t = target(&p, &ca);

	for (int i = 0; i < 40; i++) {
		char *own = xasprintf("%s# %d\n", ca.cert, i);

		t.tls.ca_pem = str_from(own);
		assert_int_equal(tls_trust_check(&t.tls, NULL), 0);
		if (i % 13 == 0)
			must_work(&t, 1);
		free(own);
	}
	stop(&p);
}

/* Rule: an end without a goodbye is no end. */

static bool cut_off(struct peer_conn *c, const char *head)
{
	(void)head;
	peer_sayz(c, "HTTP/1.1 200 OK\r\n\r\nhalf of it");
	shutdown(c->fd, 2);
	return false;
}

static void a_body_that_is_cut_off_is_an_error(void **state)
{
	struct peer p = {.answer = cut_off, .tls = peer_tls(&good, TLS13, NULL)};
	struct err err = {0};

	(void)state;
	peer_start(&p);
	struct http_target t = target(&p, &ca);

	assert_int_equal(open_and_call(&t, 1, &err), -1);
	assert_int_equal(err.kind, ERR_UNAVAILABLE);
	stop(&p);
}

#define T(f) cmocka_unit_test_setup_teardown(f, unit_make_dir, unit_remove_dir)
int main(void)
{
	const struct CMUnitTest tests[] = {
		T(calls_share_a_connection_with_a_server_that_sends_tickets),
		T(a_large_upload_is_not_stopped_by_tickets),
		T(the_server_that_openssl_brings_is_understood),
		T(the_right_ca_is_enough),
		T(whoever_is_not_vouched_for_is_refused),
		T(the_name_is_asked_for_and_checked),
		T(a_pin_needs_no_chain_and_is_not_replaced_by_one),
		T(a_client_certificate_is_shown),
		T(settings_that_cannot_be_used_are_told_before_anything_is_dialled),
		T(many_settings_do_not_crowd_each_other_out),
		T(a_body_that_is_cut_off_is_an_error),
	};

	return cmocka_run_group_tests(tests, make_certificates, drop_certificates);
}
