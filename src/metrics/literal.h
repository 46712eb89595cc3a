#pragma once
/*
 * literal - text without which a pattern cannot match.
 *
 * A pattern like 'loss=(\S+)' matches no line without "loss=", so a scan for
 * that text spares the regular expression on nearly every line.  The answer is
 * conservative: a construct that is not understood gives no literal, never a
 * literal that a match might lack.  Letters are folded to lower case and are to
 * be searched without regard to case, so case flags need no care.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LITERAL_MAX_BYTES 12 /* of one literal; a longer one is cut */
#define LITERAL_MAX_SET 16   /* alternatives of one pattern */

struct literal {
	uint8_t n;
	unsigned char b[LITERAL_MAX_BYTES]; /* folded; never a newline */
};

/* Alternatives: every match holds at least one of them. */
struct literal_set {
	size_t n;
	struct literal v[LITERAL_MAX_SET];
};

/* The pattern must compile in PCRE2 without PCRE2_EXTENDED, PCRE2_LITERAL or UTF.
 * n == 0 in the answer: no literal is known, so the pattern must be tried on every line. */
struct literal_set literal_required(const char *pattern);
/* A set of one, from text taken as it is.  Empty text, or text with a newline, gives n == 0. */
struct literal_set literal_exactly(const char *text, size_t n);

static inline unsigned char literal_fold(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c + 32) : c;
}
