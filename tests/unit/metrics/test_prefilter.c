#include "unit.h"

#include <string.h>
#include "base/str.h"
#include "metrics/prefilter.h"
#include "seed.h"

/* Folded search, one byte after the other: what the automaton must agree with. */
static bool ends_here(const char *text, size_t end, const struct literal *l)
{
	if (end < l->n)
		return false;
	for (size_t i = 0; i < l->n; i++)
		if (literal_fold((unsigned char)text[end - l->n + i]) != l->b[i])
			return false;
	return true;
}

static struct prefilter_hits naive_at(const char *text, size_t end, const struct literal_set *sets,
				      size_t n)
{
	struct prefilter_hits h = {0};

	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < sets[i].n; j++)
			if (ends_here(text, end, &sets[i].v[j]))
				h.w[i / 64] |= (uint64_t)1 << (i % 64);
	return h;
}

static void agree(const char *text, size_t len, const struct literal_set *sets, size_t n)
{
	struct prefilter *pf = prefilter_new(sets, n);
	struct prefilter_scan scan = {0};
	const char *p = text;
	size_t at = 0;

	for (;;) {
		struct prefilter_hits got = {0}, want = {0};

		p = prefilter_next(pf, &scan, p, text + len, &got);
		while (at < len && !want.w[0] && !want.w[1])
			want = naive_at(text, ++at, sets, n);
		assert_memory_equal(&got, &want, sizeof(got));
		if (!p) {
			assert_int_equal(at, len);
			break;
		}
		assert_int_equal((size_t)(p - text), at);
	}
	prefilter_free(pf);
}

static struct literal_set set_of(const char *a, const char *b)
{
	struct literal_set set = literal_exactly(a, strlen(a));

	if (b)
		set.v[set.n++] = literal_exactly(b, strlen(b)).v[0];
	return set;
}

static void every_end_of_a_literal_is_found_with_its_sets(void **state)
{
	const struct literal_set sets[] = {set_of("loss=", NULL),
					   set_of("ss", "oss"),
					   {0},
					   set_of("he", "she"),
					   set_of("hers", NULL)};
	static const char text[] = "ushers: Loss=0.5 LOSS=1 los s= ssss\nlo\nss=\n=";

	(void)state;
	agree(text, strlen(text), sets, COUNT(sets));
}

static void short_texts_and_bytes_of_one_are_found_too(void **state)
{
	const struct literal_set sets[] = {set_of("%", NULL), set_of("a%", NULL)};

	(void)state;
	for (size_t n = 0; n <= 40; n++) {
		for (size_t at = 0; at < n; at++) {
			char text[40];

			memset(text, 'x', sizeof(text));
			text[at] = '%';
			if (at > 0)
				text[at - 1] = 'A';
			agree(text, n, sets, COUNT(sets));
		}
	}
}

static void no_literal_at_all_finds_nothing(void **state)
{
	const struct literal_set none[2] = {0};
	struct prefilter *pf = prefilter_new(none, 2);
	struct prefilter_scan scan = {0};
	struct prefilter_hits hits = {0};
	static const char text[] = "whatever stands here, and more than sixteen bytes of it";

	(void)state;
	assert_null(prefilter_next(pf, &scan, text, text + strlen(text), &hits));
	assert_int_equal(hits.w[0] | hits.w[1], 0);
	assert_null(prefilter_free(pf));
	assert_null(prefilter_free(NULL));
}

static void the_highest_set_has_its_own_bit(void **state)
{
	struct literal_set sets[PREFILTER_MAX_SETS] = {0};
	struct prefilter_scan scan = {0};
	struct prefilter_hits hits = {0};
	static const char text[] = "last";

	(void)state;
	sets[PREFILTER_MAX_SETS - 1] = set_of("last", NULL);
	sets[63] = set_of("last", NULL);
	struct prefilter *pf = prefilter_new(sets, PREFILTER_MAX_SETS);
	assert_non_null(prefilter_next(pf, &scan, text, text + 4, &hits));
	assert_true(prefilter_hit(&hits, PREFILTER_MAX_SETS - 1));
	assert_true(prefilter_hit(&hits, 63));
	assert_false(prefilter_hit(&hits, 64));
	prefilter_free(pf);
}

/* Few letters, so that literals overlap, stand inside each other and nearly match all the time. */
static void random_literals_in_random_text_agree_with_a_naive_search(void **state)
{
	static const char letters[] = "abAB=\n\xe9";
	struct rng rng;

	(void)state;
	seed_rng(&rng);
	for (int round = 0; round < 400; round++) {
		struct literal_set sets[12] = {0};
		size_t n = 1 + rng_below(&rng, COUNT(sets));
		char text[300];
		size_t len = rng_below(&rng, sizeof(text));

		for (size_t i = 0; i < n; i++) {
			sets[i].n = rng_below(&rng, 4);
			for (size_t j = 0; j < sets[i].n; j++) {
				struct literal *l = &sets[i].v[j];

				l->n = (uint8_t)(1 + rng_below(&rng,
							       round % 2 ? 4 : LITERAL_MAX_BYTES));
				for (size_t k = 0; k < l->n; k++) {
					unsigned char c =
						(unsigned char)letters[rng_below(&rng, 7)];

					l->b[k] = c == '\n' ? 'c' : literal_fold(c);
				}
			}
		}
		for (size_t i = 0; i < len; i++)
			text[i] = letters[rng_below(&rng, 7)];
		agree(text, len, sets, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_end_of_a_literal_is_found_with_its_sets),
		cmocka_unit_test(short_texts_and_bytes_of_one_are_found_too),
		cmocka_unit_test(no_literal_at_all_finds_nothing),
		cmocka_unit_test(the_highest_set_has_its_own_bit),
		cmocka_unit_test(random_literals_in_random_text_agree_with_a_naive_search),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
