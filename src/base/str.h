#pragma once
/* str - a view of bytes, passed by value; it owns nothing and may hold NULs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *p;
	size_t n;
};

#define STR(lit) ((struct str){(lit), sizeof(lit) - 1})
/* For printf("%.*s", STR_ARG(s)). */
#define STR_ARG(s) (int)(s).n, (s).p

static inline struct str str_from(const char *z)
{
	return (struct str){z, z ? strlen(z) : 0};
}
bool str_eq(struct str a, struct str b);
bool str_is(struct str a, const char *z);
bool str_starts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_trim(struct str s);
/* Cut at the first sep: returns what is before it and leaves the rest in *s.
 * Without sep returns all and leaves *s with p == NULL. */
struct str str_cut(struct str *s, char sep);
/* The last line that is not blank, trimmed: what a program said at its end. */
struct str str_last_line(struct str s);
/* Whole text must be the number; false and *ret untouched otherwise. */
bool str_to_i64(struct str s, int64_t *ret);
bool str_to_u64(struct str s, uint64_t *ret);
bool str_to_double(struct str s, double *ret); /* finite decimals only; no hex, no locale */
/* "90s", "1h30m", "250ms", "2d", "1.5h" -> milliseconds; units in falling order, nothing inexact. */
bool str_to_duration_ms(struct str s, int64_t *ret);
/* "512", "64KiB", "2GiB", "10MB", "1.5GiB" -> bytes; kB, MB are powers of 1000, KiB, MiB of 1024. */
bool str_to_size(struct str s, uint64_t *ret);
/* Edits between two words, for "did you mean"; at most `max` + 1. */
size_t str_distance(struct str a, struct str b, size_t max);
/* Is it valid UTF-8 (no surrogates, no overlongs)? */
bool str_is_utf8(struct str s);
