#pragma once
/* escape - outside bytes made safe to show on a terminal. */
#include "base/str.h"

struct buf;
/* Printable UTF-8 and tab stay; control, C1, bidi controls and bad bytes become \xNN or \u{NNNN}. */
void escape_terminal(struct buf *out, struct str bytes);
