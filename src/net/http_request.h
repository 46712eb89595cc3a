#pragma once
/*
 * http_request - the head of a request as text: private to net/http_*.c.
 */
#include <stdbool.h>
#include "base/buf.h"
#include "net/http_client.h"

/* Where a request goes: the client's target, or the target of a redirect. */
struct http_origin {
	char host[HTTP_HOST_MAX]; /* "": the unix socket */
	int port;
	bool tls;
};

struct http_request_head {
	const struct http_outgoing *r;
	const struct http_origin *origin;
	const char *path;
	const char *token, *inner_token;
	bool abroad;		      /* the origin is not the client's target */
	const struct http_url *proxy; /* use the absolute form for this proxy; NULL: none */
};

/* ERR_INVALID for characters that would break the request, or headers that the client sets itself. */
int http_request_check(const struct http_outgoing *r, bool has_token, struct err *err);
/* ERR_INVALID if the head becomes too long. */
int http_request_write(const struct http_request_head *h, struct buf *out, struct err *err);
uint64_t http_request_length(const struct http_outgoing *r);

/* Resolve the Location of an answer to a request for `path` at `from`. */
int http_redirect(const struct http_origin *from, const char *path, struct str location,
		  struct http_origin *ret_to, struct buf *ret_path, struct err *err);
bool http_origin_equal(const struct http_origin *a, const struct http_origin *b);
