#include "unit.h"

#include <inttypes.h>
#include <string.h>

#include "base/map.h"
#include "base/rand.h"

static char values[64];

static void a_value_is_found_under_its_key(void **state)
{
	struct map *m = map_new();

	(void)state;
	assert_null(map_get(m, STR("a")));
	assert_null(map_del(m, STR("a")));
	assert_null(map_put(m, STR("a"), &values[0]));
	assert_null(map_put(m, STR("b"), &values[1]));
	assert_ptr_equal(map_get(m, STR("a")), &values[0]);
	assert_ptr_equal(map_get(m, STR("b")), &values[1]);
	assert_null(map_get(m, STR("c")));
	assert_int_equal(map_count(m), 2);
	assert_null(map_free(m));
	assert_null(map_free(NULL));
}

static void keys_are_copied_and_may_hold_any_bytes(void **state)
{
	struct map *m = map_new();
	char key[] = "k\0y";

	(void)state;
	map_put(m, (struct str){key, 3}, &values[0]);
	key[0] = 'x';
	assert_ptr_equal(map_get(m, STR("k\0y")), &values[0]);
	assert_null(map_get(m, STR("k\0z")));
	assert_null(map_get(m, STR("k")));
	map_put(m, (struct str){NULL, 0}, &values[1]);
	assert_ptr_equal(map_get(m, STR("")), &values[1]);
	map_free(m);
}

static void putting_again_replaces_and_keeps_the_place(void **state)
{
	struct map *m = map_new();
	struct str key;
	void *value;
	size_t it = 0;

	(void)state;
	map_put(m, STR("a"), &values[0]);
	map_put(m, STR("b"), &values[1]);
	assert_ptr_equal(map_put(m, STR("a"), &values[2]), &values[0]);
	assert_int_equal(map_count(m), 2);
	assert_true(map_at(m, &it, &key, &value));
	assert_true(str_is(key, "a"));
	assert_ptr_equal(value, &values[2]);
	map_free(m);
}

static void iteration_keeps_the_order_and_skips_the_deleted(void **state)
{
	struct map *m = map_new();
	char seen[64] = "";
	struct str key;
	void *value;

	(void)state;
	for (char c = 'a'; c <= 'z'; c++)
		map_put(m, (struct str){&c, 1}, &values[c - 'a']);
	for (char c = 'a'; c <= 'z'; c += 2)
		assert_ptr_equal(map_del(m, (struct str){&c, 1}), &values[c - 'a']);
	map_put(m, STR("a"), &values[40]);
	for (size_t it = 0, n = 0; map_at(m, &it, &key, &value);) {
		assert_int_equal(key.n, 1);
		seen[n++] = key.p[0];
	}
	assert_string_equal(seen, "bdfhjlnprtvxza");
	assert_int_equal(map_count(m), 14);
	map_free(m);
}

static void an_empty_map_has_nothing_to_iterate(void **state)
{
	struct map *m = map_new();
	struct str key;
	void *value;
	size_t it = 0;

	(void)state;
	assert_false(map_at(m, &it, &key, &value));
	map_put(m, STR("a"), &values[0]);
	map_del(m, STR("a"));
	it = 0;
	assert_false(map_at(m, &it, &key, &value));
	assert_int_equal(map_count(m), 0);
	map_free(m);
}

static void putting_and_deleting_for_ever_needs_no_more_room(void **state)
{
	struct map *m = map_new();

	(void)state;
	map_put(m, STR("stays"), &values[1]);
	for (int i = 0; i < 100000; i++) {
		char key[32];
		int n = snprintf(key, sizeof(key), "%d", i);
		struct str k = {key, (size_t)n};

		assert_null(map_put(m, k, &values[0]));
		assert_ptr_equal(map_del(m, k), &values[0]);
		assert_null(map_get(m, k));
	}
	assert_int_equal(map_count(m), 1);
	assert_ptr_equal(map_get(m, STR("stays")), &values[1]);
	map_free(m);
}

/* Against the plainest model there is: one slot per key. */
static void a_long_random_life_agrees_with_a_plain_array(void **state)
{
	enum { KEYS = 500 };
	void *model[KEYS] = {0};
	size_t live = 0;
	uint64_t seed = rand_u64();
	struct rng rng;
	struct map *m = map_new();

	(void)state;
	print_message("seed %" PRIu64 "\n", seed);
	rng_seed(&rng, seed);
	for (int i = 0; i < 200000; i++) {
		size_t k = (size_t)rng_below(&rng, KEYS);
		void *value = &values[rng_below(&rng, sizeof(values))];
		char text[32];
		struct str key = {text, (size_t)snprintf(text, sizeof(text), "key-%zu", k * k)};

		switch (rng_below(&rng, 3)) {
		case 0:
			assert_ptr_equal(map_put(m, key, value), model[k]);
			live += !model[k];
			model[k] = value;
			break;
		case 1:
			assert_ptr_equal(map_del(m, key), model[k]);
			live -= model[k] != NULL;
			model[k] = NULL;
			break;
		default:
			assert_ptr_equal(map_get(m, key), model[k]);
		}
		assert_int_equal(map_count(m), live);
	}
	size_t walked = 0;
	struct str key;
	void *value;
	for (size_t it = 0; map_at(m, &it, &key, &value); walked++)
		assert_ptr_equal(map_get(m, key), value);
	assert_int_equal(walked, live);
	map_free(m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_is_found_under_its_key),
		cmocka_unit_test(keys_are_copied_and_may_hold_any_bytes),
		cmocka_unit_test(putting_again_replaces_and_keeps_the_place),
		cmocka_unit_test(iteration_keeps_the_order_and_skips_the_deleted),
		cmocka_unit_test(an_empty_map_has_nothing_to_iterate),
		cmocka_unit_test(putting_and_deleting_for_ever_needs_no_more_room),
		cmocka_unit_test(a_long_random_life_agrees_with_a_plain_array),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
