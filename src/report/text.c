#include "report/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/escape.h"
#include "fmt/jsonw.h"

#define LINE_MAX_BYTES (4u << 20)    /* of one escaped text */
#define WHOLE_MAX 9007199254740992.0 /* 2^53 */
#define MAX_PLACES 9

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

static bool looks_like_formula(struct str s)
{
	return s.n && memchr("=+-@\t\r", s.p[0], 6);
}

void csv_text(struct buf *out, struct str text)
{
	bool guard = looks_like_formula(text), quote = guard;

	for (size_t i = 0; i < text.n && !quote; i++)
		quote = memchr(",\"\r\n", text.p[i], 4);
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

/* The digits of a whole number below 2^53, and a point before the last `places` of them. */
static void add_decimal(struct buf *out, bool negative, uint64_t whole, int places)
{
	char text[40], *p = text + sizeof(text);
	int n = 0;

	do {
		*--p = (char)('0' + whole % 10);
		whole /= 10;
		if (++n == places && places)
			*--p = '.';
	} while (whole || n <= places);
	if (negative)
		*--p = '-';
	buf_add(out, p, (size_t)(text + sizeof(text) - p));
}

/*
 * A million of these make a file, so the usual numbers must not cost a printf.  w / 10^k with w
 * below 2^53 is rounded once, as reading the decimal would be: where it gives v, it is exact.
 */
void number_exact(struct buf *out, double v)
{
	static const double powers[MAX_PLACES + 1] = {1,   1e1, 1e2, 1e3, 1e4,
						      1e5, 1e6, 1e7, 1e8, 1e9};
	double size = fabs(v);

	for (int k = 0; k <= MAX_PLACES && size * powers[k] < WHOLE_MAX / 8; k++) {
		double w = nearbyint(size * powers[k]);
		if (w / powers[k] == size && (w > 0 || k == 0) && (size >= 1e-5 || size == 0)) {
			add_decimal(out, signbit(v) && size > 0, (uint64_t)w, k);
			return;
		}
		if (size == 0)
			break;
	}
	if (!isfinite(v)) {
		buf_addz(out, isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
		return;
	}
	struct jsonw w;
	jsonw_init(&w, out);
	jsonw_double(&w, v);
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
