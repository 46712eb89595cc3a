#pragma once
/*
 * proxy - the choice of a proxy for a host.
 *
 * The settings have the syntax of the variables http_proxy, https_proxy and no_proxy; the caller reads
 * the environment.
 */
#include <stdbool.h>
#include "fmt/http_url.h"

struct err;

struct proxy_settings {
	const char *http_proxy;	 /* of plain connections: "http://[user:password@]host[:port]" */
	const char *https_proxy; /* of TLS connections; the connection to the proxy has no TLS */
	/* "*", or a list of names (their subdomains too), addresses and
	 * networks (10.0.0.0/8), each with or without a port */
	const char *no_proxy;
};

/* *ret_used: is a proxy used?  Never for this machine (localhost, loopback addresses).  ERR_INVALID if
 * the setting is not a proxy URL. */
int proxy_for(const struct proxy_settings *s, const char *host, int port, bool tls,
	      struct http_url *ret, bool *ret_used, struct err *err);
/* A "Proxy-Authorization" line, if the URL has a user. */
void proxy_authorization(struct buf *out, const struct http_url *proxy);
