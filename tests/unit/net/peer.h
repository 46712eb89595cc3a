#pragma once
/*
 * peer - servers of the outside world on loopback, each on a thread of its own: HTTP with or
 * without TLS (plain OpenSSL with its defaults, so it sends session tickets), a proxy, a name
 * server; and certificates for them.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct ssl_ctx_st;
struct ssl_st;

#define PEER_TEXT 16384

struct peer;
struct peer_conn {
	struct peer *peer;
	int fd;
	struct ssl_st *ssl;
	int nth; /* request on this connection, from 0 on */
};

/* Answers one request, whose head is `head`; false: hang up. */
typedef bool (*peer_fn)(struct peer_conn *c, const char *head);

struct peer {
	const char *address; /* to listen on; NULL: 127.0.0.1 */
	struct ssl_ctx_st *tls;
	bool never_shakes;  /* takes connections and says nothing at all */
	bool proxy;	    /* CONNECT and absolute forms are passed on to `beyond` */
	int beyond;	    /* a port of 127.0.0.1 */
	const char *refuse; /* a proxy's whole answer instead */
	peer_fn answer;
	void *ctx;

	int port, conns, requests;
	char heads[PEER_TEXT]; /* of all requests, one after the other */
	char sni[256];
	volatile int quit;
	int fd;
	pthread_t thread;
};

void peer_start(struct peer *p);
void peer_stop(struct peer *p);
void peer_say(struct peer_conn *c, const char *text, size_t n);
void peer_sayz(struct peer_conn *c, const char *text);
/* n bytes of a body that follows the head; what was read with the head is lost: ask for 100-continue. */
size_t peer_take(struct peer_conn *c, char *out, size_t n);
/* Another session ticket, in the middle of whatever goes on (TLS 1.3). */
void peer_ticket(struct peer_conn *c);
/* A 200 with this body. */
void peer_ok(struct peer_conn *c, const char *body);

/* A name server.  Names are asked for in any case. */
struct peer_name {
	const char *name, *address; /* v4 or v6; several rows of one name are several records */
};
struct peer_dns {
	const struct peer_name *names;
	size_t n;
	bool silent, fails;
	char asked[PEER_TEXT]; /* names, each with a newline */
	int port, fd;
	volatile int quit;
	pthread_t thread;
};
void peer_dns_start(struct peer_dns *d);
void peer_dns_stop(struct peer_dns *d);

/* Keys and certificates (PEM), made for the occasion. */
struct peer_cert {
	char cert[4096], key[4096];
	void *cert_, *key_;
};
/* Signed by issuer (NULL: itself).  names: "DNS:a.test,IP:127.0.0.1", or "CA". */
void peer_cert_make(struct peer_cert *out, const struct peer_cert *issuer, const char *names,
		    int days_from, int days_to);
void peer_cert_release(struct peer_cert *c);
/* A context with the certificate; max_version 0x0303 (TLS 1.2), 0x0304.  client_ca: clients must
 * show a certificate of it. */
struct ssl_ctx_st *peer_tls(const struct peer_cert *c, int max_version,
			    const struct peer_cert *client_ca);
void peer_tls_free(struct ssl_ctx_st *ctx);
