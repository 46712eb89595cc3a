#pragma once
/* hex, b64 - bytes as text, and hexadecimal text as bytes. */
#include <stdbool.h>
#include <stddef.h>
#include "base/str.h"

struct buf;
void hex_encode(const void *p, size_t n, char *out /* 2n+1 */);
int hex_digit(char c); /* its value, -1 if it is none */
bool hex_decode(struct str s, void *out /* s.n/2 */);
void b64_encode(struct buf *out, const void *p, size_t n);
