#include "base/rand.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

void rand_bytes(void *p, size_t n)
{
	char *at = p;

	while (n) {
		ssize_t got = getrandom(at, n, 0);

		if (got < 0) {
			if (errno == EINTR)
				continue;
			perror("regatta: no randomness");
			abort();
		}
		at += got;
		n -= (size_t)got;
	}
}

uint64_t rand_u64(void)
{
	uint64_t v;

	rand_bytes(&v, sizeof(v));
	return v;
}

/* xoshiro256**, seeded by splitmix64 as its authors ask. */
void rng_seed(struct rng *r, uint64_t seed)
{
	for (size_t i = 0; i < 4; i++) {
		seed += UINT64_C(0x9e3779b97f4a7c15);
		uint64_t z = seed;
		z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
		r->s[i] = z ^ z >> 31;
	}
}

static uint64_t rotl(uint64_t x, int k)
{
	return x << k | x >> (64 - k);
}

uint64_t rng_next(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t result = rotl(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return result;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	/* Draws below 2^64 mod n are rejected: they would favour the small results. */
	uint64_t unfair = (0 - n) % n, x;

	do {
		x = rng_next(r);
	} while (x < unfair);
	return x % n;
}
