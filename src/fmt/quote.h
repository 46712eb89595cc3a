#pragma once
/* quote - outside text made short and harmless enough for a message.  Internal to fmt/. */
#include "base/str.h"

#define QUOTE_TEXT 40 /* bytes of the text that are shown */
#define QUOTE_MAX 400 /* room for them when every one is escaped */

/* The text, cut at QUOTE_TEXT bytes with "...", control and bad bytes escaped.  Returns out. */
const char *str_quote(struct str s, char out[static QUOTE_MAX]);
