#include "report/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "fmt/jsonw.h"

#define LINE_MAX_BYTES (4u << 20) /* of one escaped text */
#define WHOLE_MAX 1e15		  /* below 2^53 */
#define MAX_PLACES 9
#define SMALLEST_PLAIN 1e-5 /* others are written with an exponent */
#define LARGEST_PLAIN 1e15

static void html_coded(struct buf *out, struct str s)
{
	size_t from = 0;

	for (size_t i = 0; i < s.n; i++) {
		const char *code = NULL;
		switch (s.p[i]) {
		case '&':
			code = "&amp;";
			break;
		case '<':
			code = "&lt;";
			break;
		case '>':
			code = "&gt;";
			break;
		case '"':
			code = "&quot;";
			break;
		case '\'':
			code = "&#39;";
			break;
		default:
			continue;
		}
		buf_add(out, s.p + from, i - from);
		buf_addz(out, code);
		from = i + 1;
	}
	buf_add(out, s.p + from, s.n - from);
}

void html_text(struct buf *out, struct str text)
{
	CLEANUP(buf_release) struct buf shown = {0};

	buf_init(&shown, LINE_MAX_BYTES);
	escape_terminal(&shown, text);
	html_coded(out, buf_str(&shown));
}

void html_z(struct buf *out, const char *text)
{
	html_text(out, str_from(text ? text : ""));
}

void html_lines(struct buf *out, struct str text)
{
	struct str rest = text;

	while (rest.p && rest.n) {
		html_text(out, str_cut(&rest, '\n'));
		buf_addc(out, '\n');
	}
}

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

void csv_text(struct buf *out, struct str text)
{
	/* The characters with which a formula begins in a spreadsheet. */
	bool guard = text.n && is_one_of(text.p[0], "=+-@\t\r"), quote = guard;

	for (size_t i = 0; i < text.n && !quote; i++)
		quote = is_one_of(text.p[i], ",\"\r\n");
	if (!quote) {
		buf_addstr(out, text);
		return;
	}
	buf_addz(out, guard ? "\"'" : "\"");
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '"')
			buf_addc(out, '"');
		buf_addc(out, text.p[i]);
	}
	buf_addc(out, '"');
}

#define DECIMAL_MAX 48

/* The digits of a whole number, and a point before the last `places` of them; returns the first. */
static const char *decimal(char text[static DECIMAL_MAX], bool negative, uint64_t whole, int places)
{
	char *p = &text[DECIMAL_MAX - 1];
	int n = 0;

	*p = '\0';
	do {
		*--p = (char)('0' + whole % 10);
		whole /= 10;
		if (++n == places && places)
			*--p = '.';
	} while (whole || n <= places);
	if (negative)
		*--p = '-';
	return p;
}

/* Short decimals, as jobs print them: w / 10^k with w below 2^53 is rounded once, as reading the decimal would be, so
 * if the quotient equals the number, the text reads back exactly. */
static bool add_few_digits(struct buf *out, bool negative, double size)
{
	static const double powers[MAX_PLACES + 1] = {1,   1e1, 1e2, 1e3, 1e4,
						      1e5, 1e6, 1e7, 1e8, 1e9};
	char text[DECIMAL_MAX];

	for (int k = 0; k <= MAX_PLACES && size * powers[k] < WHOLE_MAX; k++) {
		double w = nearbyint(size * powers[k]);
		if (w / powers[k] == size) {
			buf_addz(out, decimal(text, negative, (uint64_t)w, k));
			return true;
		}
	}
	return false;
}

/* 15 to 17 digits, as programs print a double: found by a multiplication, and checked by reading them back. */
static bool add_many_digits(struct buf *out, bool negative, double size)
{
	static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,	 1e4L,	1e5L,  1e6L,  1e7L,
					     1e8L,  1e9L,  1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L,
					     1e16L, 1e17L, 1e18L, 1e19L, 1e20L, 1e21L, 1e22L};
	static const double edges[] = {1e-4, 1e-3, 1e-2, 1e-1, 1e0,  1e1,  1e2,	 1e3,  1e4, 1e5,
				       1e6,  1e7,  1e8,	 1e9,  1e10, 1e11, 1e12, 1e13, 1e14};
	char text[DECIMAL_MAX];
	int before = -4; /* digits before the point; 0 of 0.1, -1 of 0.01 */

	for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]) && size >= edges[i]; i++)
		before++;
	for (int digits = 15; digits <= 17; digits++) {
		int places = digits - before;
		uint64_t w = (uint64_t)rintl((long double)size * powers[places]);
		/* Reading the text back proves it, but is slow: not for digits that are already
		 * known to be too few. */
		if ((double)((long double)w / powers[places]) != size)
			continue;
		for (; places > 0 && w % 10 == 0; places--)
			w /= 10;
		const char *z = decimal(text, negative, w, places);
		if (fabs(strtod(z, NULL)) == size) {
			buf_addz(out, z);
			return true;
		}
	}
	return false;
}

/* A file may have a million numbers: the usual ones are written without printf. */
void number_exact(struct buf *out, double v)
{
	double size = fabs(v);
	bool negative = signbit(v) && size > 0,
	     usual = size >= SMALLEST_PLAIN && size < LARGEST_PLAIN;
	struct jsonw w;

	if (size == 0)
		buf_addc(out, '0');
	else if (!isfinite(v))
		buf_addz(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
	else if (!usual ||
		 (!add_few_digits(out, negative, size) && !add_many_digits(out, negative, size))) {
		jsonw_init(&w, out);
		jsonw_double(&w, v);
	}
}

void number_short(struct buf *out, double v)
{
	if (!isfinite(v))
		buf_addz(out, isnan(v) ? "–" : v < 0 ? "-∞" : "∞");
	else
		buf_printf(out, "%.5g", v);
}

void time_add(struct buf *out, struct time_text *last, int64_t wall_ms)
{
	int64_t second = wall_ms / 1000, ms = wall_ms % 1000;
	char part[6];

	if (wall_ms < 0) {
		char text[32];
		clock_format(wall_ms, text);
		buf_addz(out, text);
		return;
	}
	if (!last->text[0] || last->second != second) {
		clock_format(second * 1000, last->text);
		last->second = second;
	}
	/* The year may have more digits than four, the tail ".000Z" is always there. */
	buf_add(out, last->text, strlen(last->text) - 5);
	part[0] = '.';
	part[1] = (char)('0' + ms / 100);
	part[2] = (char)('0' + ms / 10 % 10);
	part[3] = (char)('0' + ms % 10);
	part[4] = 'Z';
	buf_add(out, part, 5);
}
