#pragma once
/*
 * lines - bytes in, lines out, without copying whole lines where possible.
 *
 * A line ends at \n; \r before it is dropped.  A line longer than LINE_MAX_BYTES
 * is cut into pieces, each given once with `cut` set.  `end` is the stream
 * offset just behind the line (newline included), so a caller can say how far
 * it has looked.
 */
#include <stdbool.h>
#include <stdint.h>
#include "base/buf.h"
#include "base/str.h"

#define LINE_MAX_BYTES (64 * 1024)

struct lines {
	struct buf rest;
	uint64_t offset; /* of the first byte not yet given out as a line */
	bool cutting;	 /* pieces of the current line were given out already */
};
typedef void (*line_fn)(void *ctx, struct str line, uint64_t end, bool cut);

void lines_init(struct lines *l, uint64_t offset);
void lines_release(struct lines *l);
void lines_feed(struct lines *l, struct str bytes, line_fn fn, void *ctx);
/* The last line without a newline, if any. */
void lines_end(struct lines *l, line_fn fn, void *ctx);
