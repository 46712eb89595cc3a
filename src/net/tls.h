#pragma once
/*
 * tls - transports with TLS 1.2 and later (OpenSSL): the server's side.  tls_client.h is the client's.
 *
 * A Regatta server is identified by its key, not by a name: it makes a key and a self-signed
 * certificate once.  Clients have its pin, "sha256//" and the base64 of the SHA-256 of the public key
 * (the format of curl's --pinnedpubkey).
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

/* Load key (P-256) and certificate from dir/tls.key and dir/tls.crt, mode 0600, or make what is missing.
 * ERR_INVALID if they do not belong together. */
int tls_server_open(const char *dir, struct tls_server **ret, struct err *err);
/* NULL allowed.  Returns NULL. */
struct tls_server *tls_server_free(struct tls_server *s);
void tls_server_pin(const struct tls_server *s, char out[static TLS_PIN_SIZE]);
/* Accept this ALPN protocol, preferred to "http/1.1".  A client that asks only for others gets none.
 * `protocol` is not copied. */
void tls_server_offer(struct tls_server *s, const char *protocol);
/* Takes over fd, which is non-blocking; the handshake happens in the first reads, or see
 * tls_handshake.h. */
void tls_accept(struct tls_server *s, struct transport *t, int fd);

/* The ALPN protocol chosen in the handshake; "" if none. */
struct str tls_protocol(const struct transport *t);
/* Take as many records from the socket at once as there are: one system call and not two for each.  What waits in
 * OpenSSL's buffer the socket does not tell: for owners that ask ops->pending. */
void tls_read_ahead(struct transport *t);
/* From now on an end of file without close_notify is an error (ECONNRESET). */
void tls_expect_goodbye(struct transport *t);
