#include "peer.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "net/address.h"

#define LOOK_MS 20

static void must(bool ok, const char *what)
{
	if (!ok) {
		perror(what);
		ERR_print_errors_fp(stderr);
		abort();
	}
}

/* -1: nothing for now.  0: the end. */
static ssize_t take(struct peer_conn *c, char *out, size_t n)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};

	if (!(c->ssl && SSL_pending(c->ssl)) && poll(&p, 1, LOOK_MS) == 0)
		return -1;
	ssize_t got = c->ssl ? SSL_read(c->ssl, out, (int)n) : recv(c->fd, out, n, 0);

	if (c->ssl && got <= 0 && SSL_get_error(c->ssl, (int)got) == SSL_ERROR_WANT_READ)
		return -1;
	return got > 0 ? got : 0;
}

size_t peer_take(struct peer_conn *c, char *out, size_t n)
{
	size_t at = 0;

	while (at < n && !c->peer->quit) {
		ssize_t got = take(c, out + at, n - at);

		if (got == 0)
			break;
		at += got > 0 ? (size_t)got : 0;
	}
	return at;
}

void peer_say(struct peer_conn *c, const char *text, size_t n)
{
	while (n > 0) {
		ssize_t put = c->ssl ? SSL_write(c->ssl, text, (int)n)
				     : send(c->fd, text, n, MSG_NOSIGNAL);

		if (put <= 0)
			return;
		text += put;
		n -= (size_t)put;
	}
}

void peer_sayz(struct peer_conn *c, const char *text)
{
	peer_say(c, text, strlen(text));
}

void peer_ticket(struct peer_conn *c)
{
	must(SSL_new_session_ticket(c->ssl) == 1 && SSL_do_handshake(c->ssl) == 1, "ticket");
}

void peer_ok(struct peer_conn *c, const char *body)
{
	char head[100];

	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
		 strlen(body));
	peer_sayz(c, head);
	peer_sayz(c, body);
}

/* One head, byte by byte so that the body stays; false at the end. */
static bool take_head(struct peer_conn *c, char *head, size_t max)
{
	size_t n = 0;

	while (!c->peer->quit && n + 1 < max) {
		ssize_t got = take(c, head + n, 1);

		if (got == 0)
			return false;
		n += got > 0 ? 1 : 0;
		head[n] = '\0';
		if (n >= 4 && memcmp(head + n - 4, "\r\n\r\n", 4) == 0)
			return true;
	}
	return false;
}

static int dial_beyond(const struct peer *p)
{
	struct address a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address_ip(&a, "127.0.0.1", p->beyond);
	must(connect(fd, &a.sa, a.len) == 0, "connect beyond");
	return fd;
}

static bool pass(int from, int to)
{
	char some[16384];
	ssize_t n = recv(from, some, sizeof(some), 0);

	return n > 0 && send(to, some, (size_t)n, MSG_NOSIGNAL) == n;
}

static void pass_on(struct peer_conn *c, const char *head)
{
	int fd = dial_beyond(c->peer);
	struct pollfd v[2] = {{.fd = c->fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	if (strncmp(head, "CONNECT ", 8) == 0) {
		peer_sayz(c, "HTTP/1.1 200 Connection established\r\nX-Proxy: yes\r\n\r\n");
	} else { /* "GET http://host/path HTTP/1.1" */
		const char *path = strchr(head + strlen("GET http://"), '/');

		must(path && strncmp(head, "GET http://", 11) == 0, "absolute form");
		must(send(fd, "GET ", 4, MSG_NOSIGNAL) == 4, "send");
		must(send(fd, path, strlen(path), MSG_NOSIGNAL) > 0, "send");
	}
	while (!c->peer->quit) {
		if (poll(v, 2, LOOK_MS) <= 0)
			continue;
		if ((v[0].revents && !pass(c->fd, fd)) || (v[1].revents && !pass(fd, c->fd)))
			break;
	}
	close(fd);
}

static void serve_conn(struct peer *p, int fd)
{
	struct peer_conn c = {.peer = p, .fd = fd};
	char head[8192];

	p->conns++;
	while (p->never_shakes && !p->quit)
		poll(NULL, 0, LOOK_MS);
	if (p->tls && !p->quit) {
		c.ssl = SSL_new(p->tls);
		SSL_set_fd(c.ssl, fd);
		if (SSL_accept(c.ssl) != 1) {
			SSL_free(c.ssl);
			close(fd);
			ERR_clear_error();
			return;
		}
		const char *sni = SSL_get_servername(c.ssl, TLSEXT_NAMETYPE_host_name);

		snprintf(p->sni, sizeof(p->sni), "%s", sni ? sni : "");
	}
	while (take_head(&c, head, sizeof(head))) {
		size_t at = strlen(p->heads);

		p->requests++;
		snprintf(p->heads + at, sizeof(p->heads) - at, "%s", head);
		if (p->proxy && p->refuse)
			peer_sayz(&c, p->refuse);
		else if (p->proxy)
			pass_on(&c, head);
		if (p->proxy || !p->answer(&c, head))
			break;
		c.nth++;
	}
	if (c.ssl)
		SSL_shutdown(c.ssl);
	SSL_free(c.ssl);
	ERR_clear_error();
	close(fd);
}

static void *serve(void *ctx)
{
	struct peer *p = ctx;

	while (!p->quit) {
		struct pollfd in = {.fd = p->fd, .events = POLLIN};

		if (poll(&in, 1, LOOK_MS) <= 0)
			continue;
		int fd = accept4(p->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd >= 0) {
			/* A client that stops in the middle does not hold the test. */
			struct timeval most = {.tv_sec = 2};

			setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most));
			setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
			serve_conn(p, fd);
		}
	}
	return NULL;
}

static int bound_socket(const char *address, int type, int *ret_port)
{
	struct address a;

	must(address_ip(&a, address, 0), "address");
	int fd = socket(a.sa.sa_family, type | SOCK_CLOEXEC, 0);

	must(fd >= 0 && bind(fd, &a.sa, a.len) == 0, "bind");
	must(getsockname(fd, &a.sa, &a.len) == 0, "getsockname");
	*ret_port = address_port(&a);
	return fd;
}

void peer_start(struct peer *p)
{
	p->fd = bound_socket(p->address ? p->address : "127.0.0.1", SOCK_STREAM, &p->port);
	must(listen(p->fd, 16) == 0, "listen");
	must(pthread_create(&p->thread, NULL, serve, p) == 0, "thread");
}

void peer_stop(struct peer *p)
{
	p->quit = 1;
	pthread_join(p->thread, NULL);
	close(p->fd);
}

/* The name server. */

static size_t read_name(const uint8_t *q, size_t n, size_t at, char *out, size_t max)
{
	size_t used = 0;

	out[0] = '\0';
	while (at < n && q[at] && at + 1 + q[at] < n && used + q[at] + 2 < max) {
		if (used)
			out[used++] = '.';
		memcpy(out + used, q + at + 1, q[at]);
		used += q[at];
		out[used] = '\0';
		at += 1U + q[at];
	}
	return at + 1;
}

static size_t add_record(uint8_t *out, size_t at, const char *text, bool six)
{
	struct address a;
	uint8_t fixed[] = {0xc0, 12, 0, six ? 28 : 1, 0, 1, 0, 0, 0, 0, 0, six ? 16 : 4};

	address_ip(&a, text, 0);
	memcpy(out + at, fixed, sizeof(fixed)); /* TTL 0 */
	at += sizeof(fixed);
	memcpy(out + at, six ? (void *)&a.in6.sin6_addr : (void *)&a.in4.sin_addr, six ? 16 : 4);
	return at + (six ? 16 : 4);
}

static size_t dns_answer(struct peer_dns *d, uint8_t *q, size_t n)
{
	char name[300];
	size_t end = read_name(q, n, 12, name, sizeof(name)) + 4, at = strlen(d->asked);
	bool six = q[end - 3] == 28, known = false;
	int records = 0;

	snprintf(d->asked + at, sizeof(d->asked) - at, "%s\n", name);
	n = end;
	for (size_t i = 0; i < d->n; i++) {
		if (strcasecmp(d->names[i].name, name) != 0)
			continue;
		known = true;
		if (!strchr(d->names[i].address, ':') != six) {
			n = add_record(q, n, d->names[i].address, six);
			records++;
		}
	}
	q[2] = 0x81;
	q[3] = (uint8_t)(0x80 | (d->fails ? 2 : known ? 0 : 3));
	q[7] = d->fails ? 0 : (uint8_t)records;
	q[9] = q[11] = 0;
	return n;
}

static void *serve_dns(void *ctx)
{
	struct peer_dns *d = ctx;
	uint8_t q[1024];

	while (!d->quit) {
		struct pollfd in = {.fd = d->fd, .events = POLLIN};
		struct address from = {.len = sizeof(from.in6)};

		if (poll(&in, 1, LOOK_MS) <= 0)
			continue;
		ssize_t n = recvfrom(d->fd, q, 400, 0, &from.sa, &from.len);

		if (n < 17 || d->silent)
			continue;
		size_t len = dns_answer(d, q, (size_t)n);

		sendto(d->fd, q, len, 0, &from.sa, from.len);
	}
	return NULL;
}

void peer_dns_start(struct peer_dns *d)
{
	d->fd = bound_socket("127.0.0.1", SOCK_DGRAM, &d->port);
	must(pthread_create(&d->thread, NULL, serve_dns, d) == 0, "thread");
}

void peer_dns_stop(struct peer_dns *d)
{
	d->quit = 1;
	pthread_join(d->thread, NULL);
	close(d->fd);
}

/* Certificates. */

static void add_extension(X509 *cert, int nid, const char *value)
{
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

	must(e && X509_add_ext(cert, e, -1) == 1, "extension");
	X509_EXTENSION_free(e);
}

static void to_text(BIO *bio, char *out, size_t max)
{
	char *p;
	long n = BIO_get_mem_data(bio, &p);

	must(n > 0 && (size_t)n < max, "PEM");
	memcpy(out, p, (size_t)n);
	out[n] = '\0';
	BIO_free(bio);
}

void peer_cert_make(struct peer_cert *out, const struct peer_cert *issuer, const char *names,
		    int days_from, int days_to)
{
	static int serial;
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = X509_new();
	X509_NAME *subject = X509_get_subject_name(cert);
	char cn[40];

	snprintf(cn, sizeof(cn), "peer %d", ++serial);
	X509_set_version(cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
	X509_time_adj_ex(X509_getm_notBefore(cert), days_from, 0, NULL);
	X509_time_adj_ex(X509_getm_notAfter(cert), days_to, 0, NULL);
	X509_set_pubkey(cert, key);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (unsigned char *)cn, -1, -1, 0);
	X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer->cert_) : subject);
	if (strcmp(names, "CA") == 0)
		add_extension(cert, NID_basic_constraints, "critical,CA:TRUE");
	else
		add_extension(cert, NID_subject_alt_name, names);
	must(X509_sign(cert, issuer ? issuer->key_ : key, EVP_sha256()) > 0, "sign");

	BIO *cert_text = BIO_new(BIO_s_mem()), *key_text = BIO_new(BIO_s_mem());

	PEM_write_bio_X509(cert_text, cert);
	PEM_write_bio_PrivateKey(key_text, key, NULL, NULL, 0, NULL, NULL);
	to_text(cert_text, out->cert, sizeof(out->cert));
	to_text(key_text, out->key, sizeof(out->key));
	out->cert_ = cert;
	out->key_ = key;
}

void peer_cert_release(struct peer_cert *c)
{
	X509_free(c->cert_);
	EVP_PKEY_free(c->key_);
}

SSL_CTX *peer_tls(const struct peer_cert *c, int max_version, const struct peer_cert *client_ca)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());

	must(SSL_CTX_use_certificate(ctx, c->cert_) == 1 &&
		     SSL_CTX_use_PrivateKey(ctx, c->key_) == 1 &&
		     SSL_CTX_set_max_proto_version(ctx, max_version) == 1,
	     "context");
	if (client_ca) {
		X509_STORE_add_cert(SSL_CTX_get_cert_store(ctx), client_ca->cert_);
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		SSL_CTX_set_session_id_context(ctx, (const unsigned char *)"peer", 4);
	}
	return ctx;
}

void peer_tls_free(SSL_CTX *ctx)
{
	SSL_CTX_free(ctx);
}
