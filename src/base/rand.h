#pragma once
/* rand - getrandom() for secrets and names; a seeded generator for everything that must be repeatable. */
#include <stddef.h>
#include <stdint.h>

/* From getrandom(); aborts if it fails. */
void rand_bytes(void *p, size_t n);
uint64_t rand_u64(void);

struct rng {
	uint64_t s[4];
};
void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
/* 0 .. n-1, without bias; n > 0. */
uint64_t rng_below(struct rng *r, uint64_t n);
