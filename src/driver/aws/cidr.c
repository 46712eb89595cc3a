#include "driver/aws/cidr.h"

#include <arpa/inet.h>
#include <stdio.h>

#define SPARE 10
#define SMALLEST 28
#define LARGEST 16

static uint32_t size_of(int bits)
{
	return bits ? UINT32_C(1) << (32 - bits) : 0;
}

static uint32_t mask_of(int bits)
{
	return bits ? ~(size_of(bits) - 1) : 0;
}

bool cidr_parse(struct str text, struct cidr *ret)
{
	struct str address = str_cut(&text, '/');
	char plain[16];
	struct in_addr at;
	int64_t bits;

	if (!text.p || address.n >= sizeof(plain) || !str_to_i64(text, &bits) || bits < 0 ||
	    bits > 32)
		return false;
	snprintf(plain, sizeof(plain), "%.*s", STR_ARG(address));
	if (inet_pton(AF_INET, plain, &at) != 1)
		return false;
	struct cidr c = {ntohl(at.s_addr), (int)bits};

	if (c.first & ~mask_of(c.bits))
		return false;
	*ret = c;
	return true;
}

void cidr_text(struct cidr c, char out[static CIDR_TEXT])
{
	snprintf(out, CIDR_TEXT, "%u.%u.%u.%u/%d", c.first >> 24, c.first >> 16 & 255,
		 c.first >> 8 & 255, c.first & 255, c.bits);
}

bool cidr_overlap(struct cidr a, struct cidr b)
{
	uint32_t mask = mask_of(a.bits < b.bits ? a.bits : b.bits);

	return (a.first & mask) == (b.first & mask);
}

int cidr_bits_for(int machines)
{
	int bits = SMALLEST;

	while (bits > LARGEST && (int64_t)size_of(bits) < (int64_t)machines + SPARE)
		bits--;
	return bits;
}

static const struct cidr *meets(struct cidr c, const struct cidr *taken, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (cidr_overlap(c, taken[i]))
			return &taken[i];
	return NULL;
}

/* The free range of the space behind *skip others, downwards from its end; *skip is less by those that were
 * passed.  A taken range is passed as a whole. */
static bool free_in(struct cidr space, const struct cidr *taken, size_t n, int bits, uint64_t *skip,
		    struct cidr *ret)
{
	int64_t step = size_of(bits), least = space.first;
	int64_t at = least + (space.bits ? (int64_t)size_of(space.bits) : INT64_C(1) << 32) - step;

	while (at >= least) {
		struct cidr c = {(uint32_t)at, bits};
		const struct cidr *other = meets(c, taken, n);

		if (!other && (*skip)-- == 0) {
			*ret = c;
			return true;
		}
		int64_t below = other ? (int64_t)(other->first & mask_of(bits)) - step : at - step;

		at = below < at - step ? below : at - step;
	}
	return false;
}

bool cidr_free(const struct cidr *spaces, size_t nspaces, const struct cidr *taken, size_t ntaken,
	       int bits, uint64_t skip, struct cidr *ret)
{
	uint64_t left = UINT64_MAX;

	for (size_t i = 0; i < nspaces; i++)
		if (spaces[i].bits <= bits)
			(void)free_in(spaces[i], taken, ntaken, bits, &left, ret);
	if (left == UINT64_MAX)
		return false;
	skip %= UINT64_MAX - left;
	for (size_t i = 0; i < nspaces; i++)
		if (spaces[i].bits <= bits && free_in(spaces[i], taken, ntaken, bits, &skip, ret))
			return true;
	return false;
}
