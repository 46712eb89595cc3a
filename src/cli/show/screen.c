#include "cli/show/screen.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/file.h"
#include "cli/show/terminal.h"

#define MAX_TEXT (256 * 1024)

void screen_init(struct screen *s, int fd)
{
	s->fd = fd;
	buf_init(&s->shown, MAX_TEXT);
}

void screen_release(struct screen *s)
{
	buf_release(&s->shown);
}

/* Columns of a drawn line; colour sequences take none. */
static int drawn_width(struct str line)
{
	int w = 0;

	while (line.n) {
		const char *esc = memchr(line.p, '\x1b', line.n);
		size_t n = esc ? (size_t)(esc - line.p) : line.n;
		w += text_width((struct str){line.p, n});
		line = (struct str){line.p + n, line.n - n};
		while (line.n && *line.p != 'm')
			line = (struct str){line.p + 1, line.n - 1};
		if (line.n)
			line = (struct str){line.p + 1, line.n - 1};
	}
	return w;
}

/* Rows that the drawn text takes now: a terminal that became narrower has wrapped it. */
static int shown_rows(const struct screen *s, int width)
{
	struct str rest = buf_str(&s->shown);
	int rows = 0;

	while (rest.p && rest.n) {
		struct str line = str_cut(&rest, '\n');
		int w = drawn_width(line);
		rows += w > width && width > 0 ? (w + width - 1) / width : 1;
	}
	return rows;
}

void screen_draw(struct screen *s, struct str text, int width)
{
	CLEANUP(buf_release) struct buf out = {0};
	struct err ignored;
	int rows = shown_rows(s, width);

	buf_init(&out, 2 * MAX_TEXT);
	if (rows > 0)
		buf_printf(&out, "\x1b[%dA", rows);
	buf_addz(&out, "\r");
	struct str rest = text;
	while (rest.p && rest.n) {
		struct str line = str_cut(&rest, '\n');
		buf_addstr(&out, line);
		buf_addz(&out, "\x1b[K\n");
	}
	buf_addz(&out, "\x1b[J");
	/* A view that cannot be drawn must not stop the run. */
	(void)file_write_all(s->fd, out.p, out.n, &ignored);
	buf_reset(&s->shown);
	buf_addstr(&s->shown, text);
}

void screen_clear(struct screen *s, int width)
{
	if (s->shown.n)
		screen_draw(s, STR(""), width);
}
