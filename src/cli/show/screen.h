#pragma once
/* screen - lines on a terminal that are redrawn in place. */
#include "base/buf.h"
#include "base/str.h"

struct screen {
	int fd;
	struct buf shown; /* the text that was drawn last, for its widths */
};
void screen_init(struct screen *s, int fd);
void screen_release(struct screen *s);
/* text ends with a newline; width is that of the terminal now. */
void screen_draw(struct screen *s, struct str text, int width);
void screen_clear(struct screen *s, int width);
