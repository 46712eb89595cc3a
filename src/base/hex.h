#pragma once
/* hex, b64 - bytes as text, and back. */
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

struct buf;
void hex_encode(const void *p, size_t n, char *out /* 2n+1 */);
int hex_digit(char c); /* its value, -1 if it is none */
bool hex_decode(struct str s, void *out /* s.n/2 */);
void b64_encode(struct buf *out, const void *p, size_t n);
/* Appends the bytes of the text, up to the first character that is neither a digit of base64 nor a
 * blank; past the maximum of `out` nothing more. */
void b64_decode(struct buf *out, struct str text);
