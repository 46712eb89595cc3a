#include "fmt/url.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/hex.h"

#define QUERY_MAX_BYTES (64 * 1024) /* of one name or value, decoded */

static bool is_unreserved(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

void url_encode(struct buf *out, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		if (is_unreserved(s.p[i]))
			buf_addc(out, s.p[i]);
		else
			buf_printf(out, "%%%02X", (unsigned char)s.p[i]);
	}
}

bool url_decode(struct buf *out, struct str s, bool plus_is_space)
{
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '%') {
			if (s.n - i < 3 || !hex_decode((struct str){s.p + i + 1, 2}, &c))
				return false;
			i += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		if (c == '\0')
			return false;
		buf_addc(out, c);
	}
	return !out->overflow;
}

static bool decode(struct str s, struct arena *a, struct buf *scratch, struct str *ret_text)
{
	buf_reset(scratch);
	if (!url_decode(scratch, s, true))
		return false;
	*ret_text = arena_str(a, buf_str(scratch));
	return true;
}

bool query_parse(struct str text, struct arena *a, struct url_query *ret)
{
	CLEANUP(buf_release) struct buf scratch = {0};
	struct url_query q = {.v = arena_array(a, struct query_pair, QUERY_MAX_PAIRS)};

	buf_init(&scratch, QUERY_MAX_BYTES);
	while (text.p) {
		struct str value = str_cut(&text, '&');
		struct query_pair pair;

		if (value.n == 0)
			continue;
		struct str name = str_cut(&value, '=');

		if (q.n == QUERY_MAX_PAIRS || !decode(name, a, &scratch, &pair.name) ||
		    !decode(value, a, &scratch, &pair.value))
			return false;
		q.v[q.n++] = pair;
	}
	*ret = q;
	return true;
}

struct str query_get(const struct url_query *q, const char *name, struct str fallback)
{
	for (size_t i = 0; i < q->n; i++) {
		if (str_is(q->v[i].name, name))
			return q->v[i].value;
	}
	return fallback;
}
