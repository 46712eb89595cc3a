#pragma once
/* url - percent coding and query strings. */
#include <stdbool.h>
#include "base/str.h"

struct arena;
struct buf;
struct query_pair {
	struct str name, value;
};
struct url_query {
	struct query_pair *v;
	size_t n;
};
#define QUERY_MAX_PAIRS 64
void url_encode(struct buf *out, struct str s); /* RFC 3986 unreserved stay */
/* Strict: false on a bad %XX, a NUL, or more than out may hold; out then has a part of it. */
bool url_decode(struct buf *out, struct str s, bool plus_is_space);
/* "a=1&b=2": decoded ('+' is a space) and copied; empty pairs are skipped, a name without '=' has
 * the value "".  False on bad coding or more than QUERY_MAX_PAIRS. */
bool query_parse(struct str text, struct arena *a, struct url_query *ret);
/* The first of that name. */
struct str query_get(const struct url_query *q, const char *name, struct str fallback);
