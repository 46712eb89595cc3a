#pragma once
/*
 * tls_client - whom a dialler trusts, and the handshake with a deadline.
 *
 * Contexts are shared: one per distinct setting, made at first use and kept, so that a
 * bundle of 140 certificates is read once and not per connection.  A file that changed is
 * another setting.  Safe on any thread.
 */
#include "base/str.h"

struct deadline;
struct err;
struct transport;

enum tls_mode {
	TLS_UNDECIDED, /* an error: whom to trust is always said */
	TLS_OFF,       /* plain: for http_target; nothing is shaken here */
	TLS_PIN,       /* the server whose key has the pin, whatever its certificate says */
	TLS_CA,	       /* a chain to a CA, not expired, for the name that was dialled */
};

struct tls_trust {
	enum tls_mode mode;
	const char *pin; /* TLS_PIN: see tls.h */

	/* TLS_CA: the certificates (PEM) of these CAs and no others; or of this file; or, with
	 * neither, of SSL_CERT_FILE or the system's bundle. */
	struct str ca_pem;
	const char *ca_file;
	const char *server_name; /* checked and asked for (SNI) instead of the dialled host; NULL */

	/* Shown to the server if it asks; both or neither (PEM).  The certificate may bring its chain. */
	struct str cert_pem, key_pem;
};

/* ERR_INVALID if the settings cannot be used: what and why.  A connection finds out too; this is
 * for those who want to say it earlier. */
int tls_trust_check(const struct tls_trust *trust, struct err *err);
/* Takes over fd (any outcome) and shakes hands; host is a name or a numeric address.  A server that
 * is not trusted is ERR_DENIED, one that does not speak TLS ERR_UNAVAILABLE. */
int tls_connect(struct transport *t, int fd, const struct tls_trust *trust, const char *host,
		const struct deadline *d, struct err *err);

/* The same in steps, for a loop (tls_handshake.h shakes hands in between).  `protocol` is asked for
 * and insisted on (ALPN); NULL: http/1.1 is asked for and anything is taken. */
int tls_client_begin(struct transport *t, int fd, const struct tls_trust *trust, const char *host,
		     const char *protocol, struct err *err);
int tls_client_check(struct transport *t, const struct tls_trust *trust, const char *protocol,
		     struct err *err);
