#pragma once
/* text - outside bytes made safe for a web page and for a spreadsheet, and numbers as text. */
#include <stdint.h>
#include "base/str.h"

struct buf;

/* One line of text inside an element or a quoted attribute: control and bidi characters and bad
 * bytes are shown as on a terminal, then & < > " ' are coded. */
void html_text(struct buf *out, struct str text);
void html_z(struct buf *out, const char *text); /* NULL is "" */
/* The same of many lines; newlines stay. */
void html_lines(struct buf *out, struct str text);

/* One field after RFC 4180.  What a spreadsheet would take for a formula gets a ' in front. */
void csv_text(struct buf *out, struct str text);

/* A decimal that reads back as v, as short as can be found quickly; whole numbers without ".0"; nan,
 * inf, -inf. */
void number_exact(struct buf *out, double v);
/* For people: 5 significant digits. */
void number_short(struct buf *out, double v);
/* "2026-01-31T23:59:59.123Z"; the text of a second is reused while the second stays the same. */
struct time_text {
	int64_t second;
	char text[32]; /* of that second */
};
void time_add(struct buf *out, struct time_text *last, int64_t wall_ms);
