#pragma once
/*
 * dialer - one call to a host from the loop, without ever blocking it: resolve the name, connect to
 * its addresses in turn, shake hands, check whom we reached.
 *
 * Every stage has its share of the one time limit.  A server that is reached but not trusted
 * (ERR_DENIED) ends the call: another address of the name does not make it right.
 */
#include <stdint.h>
#include "net/tls_client.h"

struct dialer;
struct err;
struct loop;
struct resolve_options;
struct transport;

struct dialer_target {	  /* kept by value: what it points to outlives the dialer */
	const char *host; /* a name or a numeric address */
	int port;
	struct tls_trust trust;		       /* TLS_OFF: plain */
	const char *protocol;		       /* ALPN, insisted on; NULL: any */
	const struct resolve_options *resolve; /* NULL: the system's files */
	int64_t limit_ms;
};

/* The transport (non-blocking) is the callee's; NULL: it failed, and why. */
typedef void (*dialed_fn)(void *ctx, const struct transport *t, const struct err *why);

/* fn is called once, from the loop, never inside this call; it may free the dialer. */
struct dialer *dialer_start(struct loop *l, const struct dialer_target *target, dialed_fn fn,
			    void *ctx);
/* Ends the call if it is not over, without a callback.  NULL allowed.  Returns NULL. */
struct dialer *dialer_free(struct dialer *d);
