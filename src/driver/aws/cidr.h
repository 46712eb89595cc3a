#pragma once
/* cidr - ranges of IPv4 addresses, and a free one of a size.  Pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/str.h"

struct cidr {
	uint32_t first; /* address, host order */
	int bits;
};

#define CIDR_TEXT 20

/* "10.1.0.0/16"; false if it is no such thing, or has bits behind its prefix. */
bool cidr_parse(struct str text, struct cidr *ret);
void cidr_text(struct cidr c, char out[static CIDR_TEXT]);
bool cidr_overlap(struct cidr a, struct cidr b);
/* The prefix of a subnet for so many machines: as small as can be, with ten addresses to spare, of
 * which AWS takes five.  /28 is the smallest that AWS makes, /16 the largest. */
int cidr_bits_for(int machines);
/* A range of this size in one of `spaces` that overlaps none of `taken`: of all such, the one behind `skip` others,
 * round and round, so that two who look at the same time with random numbers rarely find the same one.  They are counted
 * downwards from the end of each space: people and other tools take the first ones.  False if there is none. */
bool cidr_free(const struct cidr *spaces, size_t nspaces, const struct cidr *taken, size_t ntaken,
	       int bits, uint64_t skip, struct cidr *ret);
