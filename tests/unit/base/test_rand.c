#include "unit.h"

#include <string.h>

#include "base/rand.h"

static void secrets_fill_every_byte_and_never_repeat(void **state)
{
	unsigned char a[300], b[300], seen[300] = {0};

	(void)state;
	for (int i = 0; i < 40; i++) {
		rand_bytes(a, sizeof(a));
		rand_bytes(b, sizeof(b));
		assert_memory_not_equal(a, b, sizeof(a));
		for (size_t k = 0; k < sizeof(a); k++)
			seen[k] |= a[k];
	}
	/* 40 draws of zero for one byte: 2^-320. */
	for (size_t k = 0; k < sizeof(seen); k++)
		assert_int_not_equal(seen[k], 0);
	rand_bytes(NULL, 0);
	assert_true(rand_u64() != rand_u64());
}

static void one_seed_gives_one_sequence(void **state)
{
	struct rng a, b, c;
	int same = 0;

	(void)state;
	rng_seed(&a, 7);
	rng_seed(&b, 7);
	rng_seed(&c, 8);
	for (int i = 0; i < 1000; i++) {
		uint64_t x = rng_next(&a);
		assert_true(x == rng_next(&b));
		same += x == rng_next(&c);
	}
	assert_int_equal(same, 0);
}

/* From the authors' reference code: splitmix64(0) fills the state of xoshiro256**. */
static void the_sequence_is_that_of_the_published_generators(void **state)
{
	static const uint64_t splitmix[4] = {
		UINT64_C(0xe220a8397b1dcdaf),
		UINT64_C(0x6e789e6aa1b965f4),
		UINT64_C(0x06c45d188009454f),
		UINT64_C(0xf88bb8a8724c81ec),
	};
	struct rng r;

	(void)state;
	rng_seed(&r, 0);
	for (size_t i = 0; i < 4; i++)
		assert_true(r.s[i] == splitmix[i]);

	r = (struct rng){{1, 2, 3, 4}};
	assert_true(rng_next(&r) == 11520);
	assert_true(rng_next(&r) == 0);
	assert_true(rng_next(&r) == 1509978240);
	assert_true(rng_next(&r) == UINT64_C(1215971899390074240));
}

static void draws_below_n_cover_it_evenly(void **state)
{
	struct rng r;
	unsigned count[10] = {0};

	(void)state;
	rng_seed(&r, 42);
	for (int i = 0; i < 100000; i++) {
		uint64_t x = rng_below(&r, 10);
		assert_true(x < 10);
		count[x]++;
	}
	for (size_t i = 0; i < 10; i++)
		assert_in_range(count[i], 9500, 10500);
	/* A quarter of all draws must be drawn again here, or the first third gets half of them. */
	unsigned low = 0;
	for (int i = 0; i < 10000; i++) {
		uint64_t x = rng_below(&r, UINT64_C(3) << 62);
		assert_true(x < UINT64_C(3) << 62);
		low += x < UINT64_C(1) << 62;
		assert_true(rng_below(&r, 1) == 0);
		assert_true(rng_below(&r, UINT64_MAX) < UINT64_MAX);
	}
	assert_in_range(low, 3100, 3570);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(secrets_fill_every_byte_and_never_repeat),
		cmocka_unit_test(one_seed_gives_one_sequence),
		cmocka_unit_test(the_sequence_is_that_of_the_published_generators),
		cmocka_unit_test(draws_below_n_cover_it_evenly),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
