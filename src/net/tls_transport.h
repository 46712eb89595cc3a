#pragma once
/*
 * tls_transport - functions for both sides of TLS, private to net/tls_*.c.
 */
#include <stdbool.h>
#include "net/tls.h"

struct err;
struct ssl_ctx_st;
struct ssl_method_st;
struct transport;
struct evp_pkey_st;
struct x509_st;

/* TLS 1.2 and later, writes in parts, no renegotiation, no compression, no sessions. */
int tls_context_new(const struct ssl_method_st *method, struct ssl_ctx_st **ret, struct err *err);
/* A connection of this context on fd, which it takes over; it has a reference to the context.  -1: out
 * of memory, and fd is closed. */
int tls_transport_new(struct transport *t, struct ssl_ctx_st *ctx, int fd, struct err *err);
/* One step of the handshake: 1 done, 0 wait for *ret_poll, -1 failed. */
int tls_shake(struct transport *t, short *ret_poll, struct err *err);
bool tls_is_server(const struct transport *t);
int tls_pin_of(struct x509_st *cert, char out[static TLS_PIN_SIZE], struct err *err);
int tls_pin_of_key(struct evp_pkey_st *key, char out[static TLS_PIN_SIZE], struct err *err);
/* Set "TLS: what: reason", with the reason from OpenSSL's error queue, which is emptied.  Returns -1. */
int tls_fail(struct err *err, int kind /* enum err_kind */, const char *what);
