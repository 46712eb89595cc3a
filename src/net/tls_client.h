#pragma once
/*
 * tls_client - the client's side of TLS: which server is trusted, and the handshake with a deadline.
 *
 * OpenSSL contexts are shared: one per distinct setting, made at first use and kept, so that a bundle
 * of 140 certificates is not read for every connection.  A changed file is a distinct setting.  Safe
 * on any thread.
 */
#include "base/str.h"

struct buf;
struct deadline;
struct err;
struct transport;

enum tls_mode {
	TLS_UNDECIDED, /* an error: the caller must choose a mode */
	TLS_OFF,       /* plain, for http_target and dialer_target */
	TLS_PIN,       /* trust a server whose key has the pin; its certificate is not checked */
	TLS_CA,	       /* trust a valid certificate of a CA for the host's name */
	TLS_ANYONE,    /* trust whoever answers: only where the user's own configuration says so */
};

struct tls_trust {
	enum tls_mode mode;
	const char *pin; /* TLS_PIN: see tls.h */

	/* TLS_CA: the certificates (PEM) of these CAs and no others; or of this file; or, with
	 * neither, of SSL_CERT_FILE or the system's bundle. */
	struct str ca_pem;
	const char *ca_file;
	const char
		*server_name; /* for SNI and the check of the name, instead of the host; or NULL */

	/* Client certificate, with its chain, and key (PEM), sent if the server asks; both or neither. */
	struct str cert_pem, key_pem;
};

/* Appends the certificates (PEM) of the file; NULL: of SSL_CERT_FILE or the system's bundle. */
int tls_bundle_read(const char *ca_file, struct buf *out, struct err *err);
/* ERR_INVALID if the settings cannot be used.  Connecting checks them too; this reports it earlier. */
int tls_trust_check(const struct tls_trust *trust, struct err *err);
/* Takes over fd (also on error) and does the handshake; host is a name or numeric address.  ERR_DENIED:
 * the server is not trusted.  ERR_UNAVAILABLE: it does not speak TLS. */
int tls_connect(struct transport *t, int fd, const struct tls_trust *trust, const char *host,
		const struct deadline *d, struct err *err);

/* The same in steps, for a loop, with tls_handshake.h in between.  `protocol` is the required ALPN
 * protocol; NULL: http/1.1 is requested and any is accepted. */
int tls_client_begin(struct transport *t, int fd, const struct tls_trust *trust, const char *host,
		     const char *protocol, struct err *err);
int tls_client_check(struct transport *t, const struct tls_trust *trust, const char *protocol,
		     struct err *err);
