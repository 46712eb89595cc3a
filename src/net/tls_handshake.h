#pragma once
/*
 * tls_handshake - a TLS handshake on the loop, for server or client, with a time limit.
 */
#include <stdint.h>

struct err;
struct loop;
struct tls_handshake;
struct transport;

/* If why->kind is ERR_NONE the callee owns the transport; otherwise it is closed and t is NULL.  The
 * callee may free the handshake. */
typedef void (*tls_shaken_fn)(void *ctx, struct transport *t, const struct err *why);

/* Takes over *t.  fn is called from the loop, never inside this call. */
struct tls_handshake *tls_handshake_new(struct loop *l, const struct transport *t, int64_t limit_ms,
					tls_shaken_fn fn, void *ctx);
/* Closes the transport if fn was not called yet; then fn is not called.  NULL allowed.  Returns NULL. */
struct tls_handshake *tls_handshake_free(struct tls_handshake *h);
