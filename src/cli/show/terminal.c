#include "cli/show/terminal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/utf8.h"

#define DEFAULT_WIDTH 80
#define DEFAULT_HEIGHT 24
#define MAX_COLUMNS 10000

static const char *const tints[] = {
	[TINT_NONE] = "",	  [TINT_GOOD] = "\x1b[32m", [TINT_BAD] = "\x1b[31m",
	[TINT_WARN] = "\x1b[33m", [TINT_DIM] = "\x1b[2m",   [TINT_BOLD] = "\x1b[1m",
};

static bool locale_is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *v = getenv(names[i]);
		if (v && *v)
			return strcasestr(v, "UTF-8") || strcasestr(v, "UTF8");
	}
	return false;
}

bool term_live(int fd)
{
	const char *term = getenv("TERM");

	return isatty(fd) && term && *term && strcmp(term, "dumb") != 0;
}

void term_size(int fd, int *ret_width, int *ret_height)
{
	struct winsize ws = {0};
	const char *columns = getenv("COLUMNS");
	int64_t v;

	ioctl(fd, TIOCGWINSZ, &ws);
	*ret_width = ws.ws_col;
	*ret_height = ws.ws_row ? ws.ws_row : DEFAULT_HEIGHT;
	if (*ret_width == 0 && columns && str_to_i64(str_from(columns), &v) && v > 0 &&
	    v < MAX_COLUMNS)
		*ret_width = (int)v;
	if (*ret_width == 0)
		*ret_width = DEFAULT_WIDTH;
}

struct style style_detect(int fd)
{
	struct style st = {0};
	const char *no_color = getenv("NO_COLOR");
	int height;

	if (!isatty(fd))
		return st;
	term_size(fd, &st.width, &height);
	st.colour = term_live(fd) && !(no_color && *no_color);
	st.unicode = locale_is_utf8();
	return st;
}

void tint_on(struct buf *out, const struct style *st, enum tint t)
{
	if (st->colour)
		buf_addz(out, tints[t]);
}

void tint_off(struct buf *out, const struct style *st, enum tint t)
{
	if (st->colour && t != TINT_NONE)
		buf_addz(out, "\x1b[0m");
}

void text_add_tinted(struct buf *out, const struct style *st, enum tint t, struct str text)
{
	tint_on(out, st, t);
	buf_addstr(out, text);
	tint_off(out, st, t);
}

/* The C library's wcwidth follows a locale, which a static binary does not have. */
static int columns_of(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
		int columns;
	} ranges[] = {
		{0x0300, 0x036f, 0},   {0x0483, 0x0489, 0},   {0x0591, 0x05bd, 0},
		{0x0610, 0x061a, 0},   {0x064b, 0x065f, 0},   {0x1100, 0x115f, 2},
		{0x1ab0, 0x1aff, 0},   {0x1dc0, 0x1dff, 0},   {0x200b, 0x200d, 0},
		{0x20d0, 0x20ff, 0},   {0x231a, 0x231b, 2},   {0x23e9, 0x23ec, 2},
		{0x2e80, 0x303e, 2},   {0x3041, 0x33ff, 2},   {0x3400, 0x4dbf, 2},
		{0x4e00, 0x9fff, 2},   {0xa000, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},
		{0xf900, 0xfaff, 2},   {0xfe00, 0xfe0f, 0},   {0xfe20, 0xfe2f, 0},
		{0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},   {0xffe0, 0xffe6, 2},
		{0x1f300, 0x1f64f, 2}, {0x1f680, 0x1f6ff, 2}, {0x1f900, 0x1f9ff, 2},
		{0x20000, 0x3fffd, 2},
	};

	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]) && cp >= ranges[i].first; i++)
		if (cp <= ranges[i].last)
			return ranges[i].columns;
	return 1;
}

/* Columns and bytes of the character at the front.  A byte that is no character counts as one
 * column. */
static int front_columns(struct str s, int column, size_t *ret_bytes)
{
	uint32_t cp;
	size_t n = utf8_decode(s.p, s.n, &cp);

	*ret_bytes = n ? n : 1;
	if (n == 1 && cp == '\t')
		return 8 - column % 8;
	return n ? columns_of(cp) : 1;
}

int text_width(struct str s)
{
	int w = 0;
	size_t n;

	for (; s.n; s = (struct str){s.p + n, s.n - n})
		w += front_columns(s, w, &n);
	return w;
}

int text_clip(struct buf *out, struct str s, int width, const struct style *st)
{
	int total = text_width(s), w = 0;

	if (total <= width) {
		buf_addstr(out, s);
		return total;
	}
	if (width <= 0)
		return 0;
	while (s.n) {
		size_t n;
		int c = front_columns(s, w, &n);
		if (w + c > width - 1)
			break;
		buf_add(out, s.p, n);
		w += c;
		s = (struct str){s.p + n, s.n - n};
	}
	buf_addz(out, st->unicode ? "…" : "~");
	return w + 1;
}

void text_fit(struct buf *out, struct str text, const struct style *st)
{
	while (text.p && text.n) {
		struct str line = str_cut(&text, '\n');
		if (st->width)
			text_clip(out, line, st->width, st);
		else
			buf_addstr(out, line);
		buf_addc(out, '\n');
	}
}

void number_format(double v, char out[static 32])
{
	if (v == floor(v) && fabs(v) < 1e9)
		snprintf(out, 32, "%.0f", v);
	else
		snprintf(out, 32, "%.5g", v);
}

void bytes_format(int64_t n, char out[static 32])
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	double v = (double)n / 1024;
	size_t i = 0;

	if (n < 1024) {
		snprintf(out, 32, "%" PRId64 " B", n);
		return;
	}
	for (; v >= 1023.95 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
		v /= 1024;
	snprintf(out, 32, "%.1f %s", v, units[i]);
}
