#pragma once
/* live_view - the text that is shown while a run is active; screen.h draws it.  Pure. */
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
	bool hide_tail;	      /* -f prints the lines: do not show them */
};

void view_init(struct view *v);
void view_release(struct view *v);
/* A line of output came. */
void view_line(struct view *v, struct str node, struct str line);
/* At most height - 1 lines, none wider than st->width - 1. */
void view_render(const struct view *v, const struct doc *run, int height, const struct style *st,
		 struct buf *out);
