#pragma once
/*
 * proxy - which proxy, if any, a host is reached through.
 *
 * The settings are values, as the variables http_proxy, https_proxy and no_proxy have them;
 * the environment is the caller's to read.
 */
#include <stdbool.h>
#include "net/http_url.h"

struct err;

struct proxy_settings {
	const char *http_proxy;	 /* of plain connections: "http://[user:password@]host[:port]" */
	const char *https_proxy; /* of TLS connections; the proxy itself is spoken to without TLS */
	/* "*", or a list of names (their subdomains too), addresses and
	 * networks (10.0.0.0/8), each with or without a port */
	const char *no_proxy;
};

/* *ret_used: is there one?  This host itself (localhost, loopback addresses) is never reached
 * through one.  ERR_INVALID if the setting is no such URL. */
int proxy_for(const struct proxy_settings *s, const char *host, int port, bool tls,
	      struct http_url *ret, bool *ret_used, struct err *err);
/* A "Proxy-Authorization" line, if the URL has a user. */
void proxy_authorization(struct buf *out, const struct http_url *proxy);
