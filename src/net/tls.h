#pragma once
/*
 * tls - TLS 1.2 and later below a transport (OpenSSL).  The server's side; tls_client.h dials.
 *
 * A server of ours is known by its key, not by a name: it makes a key and a self-signed
 * certificate once, and whoever dials has its pin, "sha256//" and the base64 of the
 * SHA-256 of the public key (as curl's --pinnedpubkey takes it).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct err;
struct tls_server;
struct transport;

#define TLS_PIN_SIZE 64

/* Has the text the form of a pin? */
bool tls_pin_ok(const char *text);

/* The key (P-256) and certificate in dir/tls.key and dir/tls.crt, made if they are not there;
 * 0600.  ERR_INVALID if they do not belong together. */
int tls_server_open(const char *dir, struct tls_server **ret, struct err *err);
/* NULL allowed.  Returns NULL. */
struct tls_server *tls_server_free(struct tls_server *s);
void tls_server_pin(const struct tls_server *s, char out[static TLS_PIN_SIZE]);
/* Chosen (ALPN) for clients that ask for it, before "http/1.1".  A client that asks for no protocol known here
 * gets none.  `protocol` is kept as it is, not copied. */
void tls_server_offer(struct tls_server *s, const char *protocol);
/* Takes over fd, which is non-blocking; the handshake happens in the first reads, or see
 * tls_handshake.h. */
void tls_accept(struct tls_server *s, struct transport *t, int fd);

/* What both sides agreed on in the handshake (ALPN); "" if nothing. */
struct str tls_protocol(const struct transport *t);
/* From now on an end without TLS's own goodbye is an error (ECONNRESET), not an end. */
void tls_expect_goodbye(struct transport *t);
