#pragma once
/*
 * http1 - the strict HTTP/1.1 parser of server and client.  Pure.
 *
 * A head (request line or status line, headers, empty line) is fed in pieces and stored here, with a
 * size limit; a body is decoded in place by http1_body_feed.  Input that two parsers could read
 * differently is refused: bare CR or LF, folded lines, space before the colon, control characters, two
 * lengths, a length beside a transfer coding, two Hosts.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"

enum http1_kind { HTTP1_REQUEST, HTTP1_RESPONSE };
enum http1_result { HTTP1_MORE, HTTP1_DONE, HTTP1_BAD };

struct http1_field { /* offsets into text, which moves while it grows */
	uint32_t name, name_n, value, value_n;
};

struct http1 {
	enum http1_kind kind;
	size_t max_headers;
	struct buf text; /* the head; its maximum is max_bytes */
	size_t line;	 /* where the current line begins */
	struct http1_field *fields;
	size_t nfields, fields_cap;
	uint32_t target, target_n, method_n;

	/* Valid after HTTP1_DONE. */
	int status; /* of a response */
	int minor;  /* HTTP/1.<minor> */
	bool has_length, chunked, has_host, wants_close, expects_continue;
	uint64_t length;

	/* After HTTP1_BAD: the status for the answer, and the reason. */
	int bad_status;
	const char *bad_why;
};

void http1_init(struct http1 *h, enum http1_kind kind, size_t max_bytes, size_t max_headers);
/* Forget the head and its memory; ready for the next one. */
void http1_reset(struct http1 *h);
/* Has any byte of a head been seen? */
static inline bool http1_started(const struct http1 *h)
{
	return h->text.n > 0;
}
/* Parse bytes up to the end of the head; *ret_used of them are consumed.  After HTTP1_DONE and
 * HTTP1_BAD call http1_reset first. */
enum http1_result http1_feed(struct http1 *h, struct str in, size_t *ret_used);

/* Views, valid until reset. */
struct str http1_method(const struct http1 *h);
struct str http1_target(const struct http1 *h);
/* The first header of that name (any case); p == NULL if absent. */
struct str http1_header(const struct http1 *h, const char *name);

enum http1_body_mode { HTTP1_NO_BODY, HTTP1_LENGTH, HTTP1_CHUNKED, HTTP1_UNTIL_CLOSE };

struct http1_body {
	enum http1_body_mode mode;
	uint64_t left; /* of the body, or of the current chunk */
	int state;     /* of the chunk decoder */
	size_t line_n;
	bool done;
};

/* How the body after this head is delimited. */
void http1_body_of_request(struct http1_body *b, const struct http1 *h);
void http1_body_of_response(struct http1_body *b, const struct http1 *h, bool was_head_request);
/* Decode: *ret_data are the next body bytes inside `in` (maybe empty), *ret_used the bytes consumed.
 * HTTP1_MORE: call again with the bytes that follow.  HTTP1_DONE: the body is complete. */
enum http1_result http1_body_feed(struct http1_body *b, struct str in, struct str *ret_data,
				  size_t *ret_used);

/* "Not Found"; "" for a number without a name. */
const char *http1_reason(int status);
/* Is it a token of RFC 9110 (a method, a header name)? */
bool http1_is_token(struct str s);
/* Can it be sent as a header value: no control characters? */
bool http1_is_value(struct str s);
