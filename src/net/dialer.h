#pragma once
/*
 * dialer - connect to a host without blocking the loop: resolve the name, try its addresses in turn,
 * do the TLS handshake, check the server's key or certificate.
 *
 * Each address has a share of the time limit.  A server that is not trusted (ERR_DENIED) ends the
 * call: other addresses are not tried.
 */
#include <stdint.h>
#include "net/tls_client.h"

struct dialer;
struct err;
struct loop;
struct resolve_options;
struct transport;

struct dialer_target {	  /* copied; the texts it points to must outlive the dialer */
	const char *host; /* a name or a numeric address */
	int port;
	struct tls_trust trust;		       /* TLS_OFF: plain */
	const char *protocol;		       /* required ALPN protocol; NULL: any */
	const struct resolve_options *resolve; /* NULL: the system's files */
	int64_t limit_ms;
};

/* The callee owns the transport (non-blocking).  NULL: the call failed, with the error `why`. */
typedef void (*dialed_fn)(void *ctx, const struct transport *t, const struct err *why);

/* fn is called once, from the loop, never inside this call; it may free the dialer, and read `why` after that. */
struct dialer *dialer_start(struct loop *l, const struct dialer_target *target, dialed_fn fn,
			    void *ctx);
/* Ends the call if it is not over, without a callback.  NULL allowed.  Returns NULL. */
struct dialer *dialer_free(struct dialer *d);
