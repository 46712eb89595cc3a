#include "base/str.h"

#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/utf8.h"

/* A decimal longer than this is not a measurement; it is refused as text. */
#define DOUBLE_TEXT_MAX 1023
/* Longer words are not compared: they are names of keys and commands. */
#define DISTANCE_WORD_MAX 128

bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

bool str_is(struct str a, const char *z)
{
	return str_eq(a, str_from(z));
}

bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && str_eq((struct str){s.p, prefix.n}, prefix);
}

bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n &&
	       (suffix.n == 0 || str_eq((struct str){s.p + (s.n - suffix.n), suffix.n}, suffix));
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct str str_trim(struct str s)
{
	while (s.n && is_space(s.p[0])) {
		s.p++;
		s.n--;
	}
	while (s.n && is_space(s.p[s.n - 1]))
		s.n--;
	return s;
}

struct str str_cut(struct str *s, char sep)
{
	const char *at = s->n ? memchr(s->p, sep, s->n) : NULL;
	struct str head = *s;

	if (!at) {
		*s = (struct str){NULL, 0};
		return head;
	}
	head.n = (size_t)(at - s->p);
	s->n -= head.n + 1;
	s->p = at + 1;
	return head;
}

struct str str_last_line(struct str s)
{
	struct str text = str_trim(s);
	const char *at = text.n ? memrchr(text.p, '\n', text.n) : NULL;

	if (at)
		text = (struct str){at + 1, text.n - (size_t)(at + 1 - text.p)};
	return str_trim(text);
}

bool str_to_u64(struct str s, uint64_t *ret)
{
	uint64_t v = 0;

	if (s.n == 0)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		unsigned digit = (unsigned)(unsigned char)s.p[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit, &v))
			return false;
	}
	*ret = v;
	return true;
}

bool str_to_i64(struct str s, int64_t *ret)
{
	bool negative = s.n && s.p[0] == '-';
	uint64_t v;

	if (s.n && (s.p[0] == '-' || s.p[0] == '+')) {
		s.p++;
		s.n--;
	}
	if (!str_to_u64(s, &v))
		return false;
	if (v > (uint64_t)INT64_MAX + (negative ? 1u : 0u))
		return false;
	*ret = negative ? (int64_t)(0 - v) : (int64_t)v;
	return true;
}

/* A decimal text as mantissa * 10^exponent; `exact` is false when digits were dropped. */
struct decimal {
	uint64_t mantissa;
	int exponent;
	bool negative, exact;
};

static bool scan_exponent(const char *p, const char *end, int *exponent)
{
	bool negative = false;
	int e = 0;

	if (p < end && (*p == '-' || *p == '+'))
		negative = *p++ == '-';
	if (p == end)
		return false;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9')
			return false;
		if (e < 100000)
			e = e * 10 + (*p - '0');
	}
	*exponent += negative ? -e : e;
	return true;
}

/* [+-] digits [. digits] [e [+-] digits], with a digit on at least one side of the point. */
static bool scan_decimal(struct str s, struct decimal *d)
{
	const char *p = s.p, *end = s.p + s.n;
	bool point = false;
	size_t digits = 0;

	*d = (struct decimal){.exact = true};
	if (p < end && (*p == '-' || *p == '+'))
		d->negative = *p++ == '-';
	for (; p < end; p++) {
		unsigned digit = (unsigned)(unsigned char)*p - '0';

		if (*p == '.' && !point) {
			point = true;
			continue;
		}
		if (digit > 9)
			break;
		digits++;
		if (d->mantissa > (UINT64_MAX - 9) / 10) {
			d->exact = false;
			continue;
		}
		d->mantissa = d->mantissa * 10 + digit;
		d->exponent -= point;
	}
	if (digits == 0)
		return false;
	if (p == end)
		return true;
	if (*p != 'e' && *p != 'E')
		return false;
	return scan_exponent(p + 1, end, &d->exponent);
}

static locale_t c_locale;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static bool slow_double(struct str s, double *ret)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[DOUBLE_TEXT_MAX + 1];

	pthread_once(&once, make_c_locale);
	if (s.n > DOUBLE_TEXT_MAX)
		return false;
	memcpy(text, s.p, s.n);
	text[s.n] = '\0';
	double v = strtod_l(text, NULL, c_locale);
	if (!isfinite(v))
		return false;
	*ret = v;
	return true;
}

bool str_to_double(struct str s, double *ret)
{
	/* Powers of ten that a double holds exactly. */
	static const double tens[] = {1e0,  1e1,  1e2,	1e3,  1e4,  1e5,  1e6,	1e7,
				      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
				      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
	struct decimal d;

	if (s.n == 0 || !scan_decimal(s, &d)) /* an empty text may have no address either */
		return false;
	/* With two exact operands and one rounding the result is the nearest double: nearly all numbers take this
	 * path. */
	if (!d.exact || d.mantissa > (UINT64_C(1) << 53) || d.exponent < -22 || d.exponent > 22)
		return slow_double(s, ret);
	double v = (double)d.mantissa;
	v = d.exponent < 0 ? v / tens[-d.exponent] : v * tens[d.exponent];
	*ret = d.negative ? -v : v;
	return true;
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Insertions, deletions, replacements and swaps of neighbours cost one each. */
size_t str_distance(struct str a, struct str b, size_t max)
{
	size_t rows[3][DISTANCE_WORD_MAX + 1];
	size_t *before = rows[0], *above = rows[1], *row = rows[2];

	if (str_eq(a, b))
		return 0;
	if (a.n > DISTANCE_WORD_MAX || b.n > DISTANCE_WORD_MAX)
		return max + 1;
	for (size_t j = 0; j <= b.n; j++) {
		above[j] = j;
		before[j] = 0;
	}
	for (size_t i = 1; i <= a.n; i++) {
		row[0] = i;
		for (size_t j = 1; j <= b.n; j++) {
			size_t cost = a.p[i - 1] == b.p[j - 1] ? 0 : 1;

			row[j] = least(above[j - 1] + cost, least(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && a.p[i - 1] == b.p[j - 2] && a.p[i - 2] == b.p[j - 1])
				row[j] = least(row[j], before[j - 2] + 1);
		}
		size_t *oldest = before;
		before = above;
		above = row;
		row = oldest;
	}
	return least(above[b.n], max + 1);
}

bool str_is_utf8(struct str s)
{
	size_t i = 0;

	while (i < s.n) {
		uint64_t eight;
		uint32_t cp;

		if (s.n - i >= sizeof(eight)) {
			memcpy(&eight, s.p + i, sizeof(eight));
			if (!(eight & UINT64_C(0x8080808080808080))) {
				i += sizeof(eight);
				continue;
			}
		}
		size_t len = utf8_decode(s.p + i, s.n - i, &cp);
		if (!len)
			return false;
		i += len;
	}
	return true;
}
