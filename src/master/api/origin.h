#pragma once
/*
 * origin - what a request over TCP may say about where it comes from.  Pure.
 *
 * A page of another origin can make a browser send requests here, and a name that
 * resolves to us for a moment can make such a page look like ours: the Host must
 * be an address of ours, and an Origin must be the one our own page has.
 */
#include <stdbool.h>
#include "base/str.h"

/* `own` is the address and port that the client reached, "127.0.0.1:5436" or "[::1]:5436".  On
 * this machine localhost and the other loopback address are as good. */
bool host_is_own(struct str host, struct str own, bool tls);
/* Is it the origin of a page that this Host serves? */
bool origin_is_own(struct str origin, struct str host, bool tls);
/* The value of a cookie in a Cookie header; n == 0 if it is not there. */
struct str cookie_get(struct str header, const char *name);
/* "127.0.0.1:4711" -> "127.0.0.1". */
struct str address_without_port(struct str peer);
