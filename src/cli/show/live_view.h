#pragma once
/*
 * live_view - the live view of one run: what is shown (pure), and how it is redrawn in place.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"

struct doc;
struct map;
struct style;

#define VIEW_TAIL_LINES 5
#define VIEW_TAIL_BYTES 512 /* of one line that are kept */

struct view {
	struct { /* the last lines, oldest first */
		char node[64];
		char text[VIEW_TAIL_BYTES];
		size_t n;
	} tail[VIEW_TAIL_LINES];
	size_t ntail;
	struct map *progress; /* node -> struct view_step, from lines like "step 3/10" */
	const char *notice;   /* shown in the headline; NULL = none */
	int64_t elapsed_ms;   /* of the run, now */
	bool hide_tail;	      /* the lines are printed elsewhere */
};

void view_init(struct view *v);
void view_release(struct view *v);
/* A line of output came. */
void view_line(struct view *v, struct str node, struct str line);
/* At most height - 1 lines, none wider than st->width - 1. */
void view_render(const struct view *v, const struct doc *run, int height, const struct style *st,
		 struct buf *out);

/* The place on the terminal where the view is redrawn. */
struct screen {
	int fd;
	struct buf shown; /* what is there now, without colours: for its widths */
};
void screen_init(struct screen *s, int fd);
void screen_release(struct screen *s);
/* text ends with a newline; width is that of the terminal now. */
void screen_draw(struct screen *s, struct str text, int width);
void screen_clear(struct screen *s, int width);
