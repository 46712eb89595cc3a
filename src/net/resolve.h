#pragma once
/*
 * resolve - names of hosts to addresses with a deadline (libevent's evdns): blocking, or on a loop.
 *
 * A static glibc cannot do it.  The hosts file is asked first, then the name servers of
 * resolv.conf (nameserver, search or domain, options ndots, timeout, attempts), A and
 * AAAA at once.  Both files are read anew by every call and nothing is cached: a change
 * is seen by the next call, and calls on several threads share nothing (docs/adr/0011).
 */
#include <stddef.h>
#include <stdint.h>
#include "net/address.h"

struct deadline;
struct err;

#define RESOLVE_MAX 8 /* addresses of one name that are kept */

struct resolve_options {
	const char *hosts_file; /* NULL: /etc/hosts */
	/* NULL: /etc/resolv.conf; a server may have a port here: 127.0.0.1:5353 */
	const char *resolv_conf;
};

/*
 * The addresses of a host, without port; a numeric one is itself.  IPv4 and IPv6 take turns,
 * IPv4 first.  A name that ends in a dot is not searched for.  `o` may be NULL.
 * ERR_INVALID: no name at all.  ERR_UNAVAILABLE: nobody knows the name, or the servers fail.
 * ERR_TIMEOUT, ERR_CANCELLED.  Never ERR_NOT_FOUND: an unknown host says nothing about
 * what is on it.
 */
int resolve_host(const struct resolve_options *o, const char *host, const struct deadline *d,
		 struct address ret[static RESOLVE_MAX], size_t *ret_n, struct err *err);

/* The same without blocking: fn is called once, from the loop, with n addresses or, if n is 0, with
 * the reason.  It may call resolving_free, which everybody does in the end. */
struct loop;
struct resolving;
typedef void (*resolved_fn)(void *ctx, const struct address *all, size_t n, const struct err *why);
struct resolving *resolve_start(struct loop *l, const struct resolve_options *o, const char *host,
				int64_t limit_ms, resolved_fn fn, void *ctx);
/* No callback comes any more.  NULL allowed.  Returns NULL. */
struct resolving *resolving_free(struct resolving *r);
