#pragma once
/* clock - CLOCK_BOOTTIME for everything that waits; the wall clock only for times that are shown. */
#include <stddef.h>
#include <stdint.h>

int64_t clock_boot_ms(void);
int64_t clock_boot_us(void);
int64_t clock_wall_ms(void);
/* RFC 3339 UTC with milliseconds into out[32]. */
void clock_format(int64_t wall_ms, char out[static 32]);
/* "1.2 s", "3 min 20 s", "2 h 5 min" for people. */
void clock_format_span(int64_t ms, char out[static 32]);
