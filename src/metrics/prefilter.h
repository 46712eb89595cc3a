#pragma once
/*
 * prefilter - one pass over a block of lines for the literals of all patterns.
 *
 * An Aho-Corasick automaton over folded bytes, made once, read-only afterwards.
 * A byte that is in no literal, the newline among them, leads back to the start,
 * so a literal is never found across two lines.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "metrics/literal.h"

#define PREFILTER_MAX_SETS 128

/* A set of set numbers. */
struct prefilter_hits {
	uint64_t w[PREFILTER_MAX_SETS / 64];
};

struct prefilter;

/* A set with n == 0 keeps its number and is never found.  n <= PREFILTER_MAX_SETS. */
struct prefilter *prefilter_new(const struct literal_set *sets, size_t n);
/* NULL is allowed.  Returns NULL. */
struct prefilter *prefilter_free(struct prefilter *pf);

/* The position of a scan; {0} starts a new line. */
struct prefilter_scan {
	uint32_t state;
};

/* Reads on until a literal ends; returns the byte behind it and adds the sets it belongs to,
 * or NULL at `end`.  Call again with the answer to go on. */
const char *prefilter_next(const struct prefilter *pf, struct prefilter_scan *scan, const char *p,
			   const char *end, struct prefilter_hits *hits);

static inline bool prefilter_hit(const struct prefilter_hits *hits, size_t set)
{
	return hits->w[set / 64] >> (set % 64) & 1;
}
