#include "base/hex.h"

#include <stdint.h>

#include "base/buf.h"

void hex_encode(const void *p, size_t n, char *out)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *s = p;

	for (size_t i = 0; i < n; i++) {
		*out++ = digits[s[i] >> 4];
		*out++ = digits[s[i] & 15];
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

void b64_encode(struct buf *out, const void *p, size_t n)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
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

static int b64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	if (c == '+')
		return 62;
	return c == '/' ? 63 : -1;
}

/* Strict: full groups, padding only at the end, unused bits zero; so each byte sequence has exactly one text. */
bool b64_decode(struct buf *out, struct str s)
{
	size_t pad = 0;

	if (s.n % 4)
		return false;
	while (pad < 2 && pad < s.n && s.p[s.n - 1 - pad] == '=')
		pad++;
	size_t digits = s.n - pad, n = s.n / 4 * 3 - pad, done = 0;
	unsigned char *o = (unsigned char *)buf_reserve(out, n);
	if (!o)
		return false;

	uint32_t v = 0;
	for (size_t i = 0; i < digits; i++) {
		int d = b64_value(s.p[i]);
		if (d < 0)
			return false;
		v = v << 6 | (uint32_t)d;
		if (i % 4 == 3) {
			o[done++] = (unsigned char)(v >> 16);
			o[done++] = (unsigned char)(v >> 8);
			o[done++] = (unsigned char)v;
			v = 0;
		}
	}
	if (pad == 1) {
		o[done++] = (unsigned char)(v >> 10);
		o[done++] = (unsigned char)(v >> 2);
	} else if (pad == 2) {
		o[done++] = (unsigned char)(v >> 4);
	}
	if ((pad == 1 && (v & 3)) || (pad == 2 && (v & 15)))
		return false;
	buf_commit(out, done);
	return true;
}
