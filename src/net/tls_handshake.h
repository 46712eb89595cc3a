#pragma once
/*
 * tls_handshake - a handshake on the loop, of either side, with a time limit.
 */
#include <stdint.h>

struct err;
struct loop;
struct tls_handshake;
struct transport;

/* The transport is the callee's if why->kind is ERR_NONE; otherwise it is closed and t is NULL.
 * The handshake may be freed inside. */
typedef void (*tls_shaken_fn)(void *ctx, struct transport *t, const struct err *why);

/* Takes over *t.  fn is called from the loop, never inside this call. */
struct tls_handshake *tls_handshake_new(struct loop *l, const struct transport *t, int64_t limit_ms,
					tls_shaken_fn fn, void *ctx);
/* Closes the transport if it is not handed over yet; no callback.  NULL allowed.  Returns NULL. */
struct tls_handshake *tls_handshake_free(struct tls_handshake *h);
