#pragma once
/* terminal - what a terminal can show, and text measured in its columns. */
#include <stdbool.h>
#include "base/str.h"

struct buf;

struct style {
	int width; /* columns; 0 = do not cut */
	bool colour;
	bool unicode; /* UTF-8 on a terminal: blocks and the ellipsis may be used */
};

enum tint { TINT_NONE, TINT_GOOD, TINT_BAD, TINT_WARN, TINT_DIM, TINT_BOLD };

/* From the descriptor, NO_COLOR, TERM, LC_ALL/LC_CTYPE/LANG.  Not a terminal: nothing is cut or
 * coloured. */
struct style style_detect(int fd);
/* A terminal that can redraw in place (TERM is not "dumb"). */
bool term_live(int fd);
void term_size(int fd, int *ret_width, int *ret_height);

void tint_on(struct buf *out, const struct style *st, enum tint t);
void tint_off(struct buf *out, const struct style *st, enum tint t);
void text_add_tinted(struct buf *out, const struct style *st, enum tint t, struct str text);

/* Columns that a text takes; it must have passed escape_terminal(). */
int text_width(struct str s);
/* At most width columns of it; a cut is marked ("…", or "~" without unicode).  Returns the
 * columns used. */
int text_clip(struct buf *out, struct str s, int width, const struct style *st);
/* Every line of text clipped to the width of the style and added. */
void text_fit(struct buf *out, struct str text, const struct style *st);

/* 0.02134, 1250, 3.2e+07: at most 9 columns. */
void number_format(double v, char out[static 32]);
/* "512 B", "3.1 MiB". */
void bytes_format(int64_t n, char out[static 32]);
