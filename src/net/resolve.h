#pragma once
/*
 * resolve - names of hosts to addresses, blocking, with a deadline (libevent's evdns).
 *
 * A static glibc cannot do it.  The hosts file is asked first, then the name servers of
 * resolv.conf (nameserver, search or domain, options ndots, timeout, attempts), A and
 * AAAA at once.  Both files are read anew by every call and nothing is cached: a change
 * is seen by the next call, and calls on several threads share nothing (docs/adr/0011).
 */
#include <stddef.h>
#include "net/address.h"

struct deadline;
struct err;

#define RESOLVE_MAX 8 /* addresses of one name that are kept */

struct resolve_options {
	const char *hosts_file; /* NULL: /etc/hosts */
	const char *
		resolv_conf; /* NULL: /etc/resolv.conf; a server may have a port here: 127.0.0.1:5353 */
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
