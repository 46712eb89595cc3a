#pragma once
/*
 * http_request - the head of a request as text: private to net/http_*.c.
 */
#include <stdbool.h>
#include "base/buf.h"
#include "net/http_client.h"

/* Where a request goes: the target of the client, or where a redirect led. */
struct http_origin {
	char host[HTTP_HOST_MAX]; /* "": the unix socket */
	int port;
	bool tls;
};

struct http_request_head {
	const struct http_outgoing *r;
	const struct http_origin *origin;
	const char *path;
	const char *token;
	bool abroad;		      /* not the target's own origin */
	const struct http_url *proxy; /* absolute form through it; NULL: not */
};

/* ERR_INVALID for what would break the request, or is ours to say. */
int http_request_check(const struct http_outgoing *r, bool has_token, struct err *err);
/* ERR_INVALID if it becomes too long. */
int http_request_write(const struct http_request_head *h, struct buf *out, struct err *err);
uint64_t http_request_length(const struct http_outgoing *r);

/* Where an answer with this Location leads from `from`, whose request was for `path`. */
int http_redirect(const struct http_origin *from, const char *path, struct str location,
		  struct http_origin *ret_to, struct buf *ret_path, struct err *err);
bool http_origin_equal(const struct http_origin *a, const struct http_origin *b);
