#pragma once
/* utf8 - one code point at a time, strict: no overlongs, no surrogates, at most U+10FFFF. */
#include <stddef.h>
#include <stdint.h>

/* Length of the code point at p (1..4), the code point in *ret_cp; 0 when the n bytes do not begin with a valid one. */
size_t utf8_decode(const char *p, size_t n, uint32_t *ret_cp);
/* Writes 1..4 bytes; 0 when cp is not a Unicode scalar value. */
size_t utf8_encode(uint32_t cp, char out[static 4]);
