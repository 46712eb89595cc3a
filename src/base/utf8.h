#pragma once
/* utf8 - one code point at a time, strict: no overlongs, no surrogates, at most U+10FFFF. */
#include <stddef.h>
#include <stdint.h>

/* Bytes of the code point at p (1..4) and itself in *ret_cp; 0 when there is no valid one in n bytes. */
size_t utf8_decode(const char *p, size_t n, uint32_t *ret_cp);
/* Writes 1..4 bytes; 0 when cp is not a Unicode scalar value. */
size_t utf8_encode(uint32_t cp, char out[static 4]);
