#include "base/hex.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"

void hex_encode(const void *p, size_t n, char *out)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *s = p;

	for (size_t i = 0; i < n; i++) {
		*out++ = hex[s[i] >> 4];
		*out++ = hex[s[i] & 15];
	}
	*out = '\0';
}

int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool hex_decode(struct str s, void *out)
{
	unsigned char *o = out;

	if (s.n % 2)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (hex_digit(s.p[i]) < 0)
			return false;
	for (size_t i = 0; i < s.n; i += 2)
		*o++ = (unsigned char)(hex_digit(s.p[i]) << 4 | hex_digit(s.p[i + 1]));
	return true;
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void b64_encode(struct buf *out, const void *p, size_t n)
{
	const unsigned char *s = p;
	size_t groups = n / 3 + (n % 3 != 0);
	char *o = groups <= SIZE_MAX / 4 ? buf_reserve(out, groups * 4) : NULL;

	if (!o) {
		out->overflow = true;
		return;
	}
	for (size_t i = 0; i < n; i += 3) {
		size_t left = n - i;
		uint32_t v = (uint32_t)s[i] << 16;

		if (left > 1)
			v |= (uint32_t)s[i + 1] << 8;
		if (left > 2)
			v |= s[i + 2];
		*o++ = digits[v >> 18];
		*o++ = digits[v >> 12 & 63];
		*o++ = left > 1 ? digits[v >> 6 & 63] : '=';
		*o++ = left > 2 ? digits[v & 63] : '=';
	}
	buf_commit(out, groups * 4);
}

void b64_decode(struct buf *out, struct str text)
{
	uint32_t bits = 0;
	int n = 0; /* of them that are no byte yet */

	for (size_t i = 0; i < text.n; i++) {
		const char *digit = text.p[i] ? strchr(digits, text.p[i]) : NULL;

		if (text.p[i] == '\n' || text.p[i] == '\r' || text.p[i] == ' ')
			continue;
		if (!digit)
			return;
		bits = bits << 6 | (uint32_t)(digit - digits);
		n += 6;
		if (n < 8)
			continue;
		n -= 8;
		buf_addc(out, (char)(bits >> n & 255));
	}
}
