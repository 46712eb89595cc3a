#pragma once
/*
 * http_url - parsing of absolute http and https URLs.
 */
#include <stdbool.h>
#include "base/buf.h"
#include "base/str.h"

struct err;

#define HTTP_URL_MAX 8192
#define HTTP_HOST_MAX 256

struct http_url {
	bool tls;		  /* https */
	char host[HTTP_HOST_MAX]; /* name or numeric address, without brackets */
	int port;		  /* 80 or 443 when the URL has none */
	struct str user;	  /* "user:password", not decoded; a view; n == 0: none */
	struct str path; /* "/…?query" without fragment, a view; n == 0: the URL has none */
};

/* "https://host:port/path?query#fragment"; a URL without scheme is http if scheme_optional. */
int http_url_parse(struct http_url *ret, struct str text, bool scheme_optional, struct err *err);
/* Can it be sent as the target of a request: "/...", without blanks, control characters and a fragment? */
bool http_url_is_target(struct str s);
/* "host" or "[v6]", with ":port" unless it is the scheme's default and not always_port: for a Host
 * header, or the target of CONNECT. */
void http_url_authority(struct buf *out, const char *host, int port, bool tls, bool always_port);
