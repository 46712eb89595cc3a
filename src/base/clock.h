#pragma once
/* clock - CLOCK_BOOTTIME for everything that waits; the wall clock only for times that are shown. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

int64_t clock_boot_ms(void);
int64_t clock_boot_us(void);
int64_t clock_wall_ms(void);
/* RFC 3339 UTC with milliseconds into out[32]. */
void clock_format(int64_t wall_ms, char out[static 32]);
/* RFC 3339 (any offset, fractions dropped below a millisecond), or the date of an HTTP header
 * ("Sun, 06 Nov 1994 08:49:37 GMT"), or 20150830T123600Z; false and *ret untouched otherwise. */
bool clock_parse(struct str text, int64_t *ret_wall_ms);
/* "1.2 s", "3 min 20 s", "2 h 5 min" for people. */
void clock_format_span(int64_t ms, char out[static 32]);
