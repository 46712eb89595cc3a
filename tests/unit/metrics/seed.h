#pragma once
/* seed - of a random test: REGATTA_SEED, or a fixed one; printed, so that a failure can be run again. */
#include "unit.h"

#include "base/rand.h"
#include "base/str.h"

static inline void seed_rng(struct rng *rng)
{
	const char *given = getenv("REGATTA_SEED");
	uint64_t seed;

	if (!given || !str_to_u64(str_from(given), &seed))
		seed = 20260314;
	print_message("# REGATTA_SEED=%llu\n", (unsigned long long)seed);
	rng_seed(rng, seed);
}

/* A number in [0, 1). */
static inline double random_unit(struct rng *r)
{
	return (double)(rng_next(r) >> 11) * 0x1.0p-53;
}
