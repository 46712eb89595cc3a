#pragma once
/*
 * origin - checks the Host and Origin of a request over TCP.  Pure.
 *
 * A page of another origin can make a browser send requests to this master, and DNS rebinding
 * can make such a page look like ours.  So the Host must be an address of this master, and an
 * Origin must be that of its own page.
 */
#include <stdbool.h>
#include "base/str.h"

/* `own`: address and port that the client connected to, "127.0.0.1:5436" or "[::1]:5436".  If
 * that is a loopback address, localhost and the other loopback address are accepted as well. */
bool host_is_own(struct str host, struct str own, bool tls);
/* Is it that of a URL by which others were told to reach this master ("https://192.0.2.7:5436")? */
bool host_is_given(struct str host, const char *url);
/* True if `origin` is that of a page served by this Host. */
bool origin_is_own(struct str origin, struct str host, bool tls);
/* False for a request that another page may have made the browser send.  A page on another port of this host can make a
 * browser send our cookie (SameSite ignores ports), but it can neither set the header Regatta-Request nor change
 * Sec-Fetch-Site and Sec-Fetch-Mode.  p == NULL: the request has no such header. */
bool cookie_is_meant(struct str method, struct str request, struct str site, struct str mode);
/* The value of a cookie in a Cookie header; n == 0 if the cookie is missing. */
struct str cookie_get(struct str header, const char *name);
/* "127.0.0.1:4711" -> "127.0.0.1". */
struct str address_without_port(struct str peer);
bool address_is_loopback(struct str address);
