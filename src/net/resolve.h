#pragma once
/*
 * resolve - host names to addresses with a deadline (libevent's evdns): blocking, or on a loop.
 *
 * A static glibc cannot resolve names.  The hosts file is used first, then the name servers of
 * resolv.conf (nameserver, search or domain, options ndots, timeout, attempts), A and AAAA in
 * parallel.  Every call reads both files, and nothing is cached: the next call sees a change, and
 * threads share nothing (docs/adr/0011).
 */
#include <stddef.h>
#include <stdint.h>
#include "net/address.h"

struct deadline;
struct err;

#define RESOLVE_MAX 8 /* addresses per name */

struct resolve_options {
	const char *hosts_file; /* NULL: /etc/hosts */
	/* NULL: /etc/resolv.conf; a server may have a port here: 127.0.0.1:5353 */
	const char *resolv_conf;
};

/*
 * The addresses of a host, without port; a numeric address is returned as it is.  IPv4 and IPv6
 * alternate, IPv4 first.  The search list is not used for a name that ends in a dot.  `o` may be NULL.
 * ERR_INVALID: not a host name.  ERR_UNAVAILABLE: the name is unknown, or the servers fail.
 * ERR_TIMEOUT, ERR_CANCELLED.  Never ERR_NOT_FOUND, which callers take for an absent resource.
 */
int resolve_host(const struct resolve_options *o, const char *host, const struct deadline *d,
		 struct address ret[static RESOLVE_MAX], size_t *ret_n, struct err *err);

/* The same without blocking: fn is called once, from the loop, with n addresses or, if n is 0, with the
 * error.  fn may call resolving_free, which must be called in any case. */
struct loop;
struct resolving;
typedef void (*resolved_fn)(void *ctx, const struct address *all, size_t n, const struct err *why);
struct resolving *resolve_start(struct loop *l, const struct resolve_options *o, const char *host,
				int64_t limit_ms, resolved_fn fn, void *ctx);
/* Frees r; fn is not called any more.  NULL allowed.  Returns NULL. */
struct resolving *resolving_free(struct resolving *r);
