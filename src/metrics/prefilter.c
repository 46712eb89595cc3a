/*
 * The automaton is a table of rows, one per state, one column per byte class
 * (class 0: every byte that is in no literal).  A state is kept as the offset of
 * its row, and states that end a literal are numbered last, so that the inner
 * loop is one load, one add, one load and one comparison per byte.
 *
 * Nearly all bytes of a log are read in the start state.  Where the
 * processor has SSSE3, 16 positions at a time are skipped there by the first
 * two bytes of the literals; see skip().
 */
#include "metrics/prefilter.h"

#include <stdlib.h>
#include <string.h>
#include "base/alloc.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_SKIP 1
#else
#define HAVE_SKIP 0
#endif

struct prefilter {
	uint32_t *next;		     /* states x classes */
	struct prefilter_hits *hits; /* by state, from first_hit on */
	uint32_t classes;
	uint32_t first_hit; /* row offset */
	uint8_t class_of[256];
	bool can_skip;
	/* Bit i of entry b: a literal of group i may have a first (second) byte with that low (high) half. */
	uint8_t low[2][16], high[2][16];
};

/* The trie while it is built; states are plain numbers here, 0 is the start. */
struct trie {
	uint32_t *next;
	uint32_t *fail;
	uint32_t *order; /* breadth first */
	struct prefilter_hits *hits;
	uint32_t n, classes;
};

static size_t number_classes(struct prefilter *pf, const struct literal_set *sets, size_t n)
{
	size_t bytes = 0;

	pf->classes = 1;
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < sets[i].n; j++) {
			const struct literal *l = &sets[i].v[j];

			bytes += l->n;
			for (size_t k = 0; k < l->n; k++)
				if (!pf->class_of[l->b[k]])
					pf->class_of[l->b[k]] = (uint8_t)pf->classes++;
		}
	}
	for (int c = 'A'; c <= 'Z'; c++)
		pf->class_of[c] = pf->class_of[literal_fold((unsigned char)c)];
	return bytes;
}

static void trie_init(struct trie *t, size_t max_states, uint32_t classes)
{
	t->classes = classes;
	t->n = 1;
	t->next = xcalloc(max_states * classes, sizeof(*t->next));
	t->fail = xcalloc(max_states, sizeof(*t->fail));
	t->order = xcalloc(max_states, sizeof(*t->order));
	t->hits = xcalloc(max_states, sizeof(*t->hits));
}

static void trie_release(struct trie *t)
{
	free(t->next);
	free(t->fail);
	free(t->order);
	free(t->hits);
}

static void trie_add(struct trie *t, const struct prefilter *pf, const struct literal *l,
		     size_t set)
{
	uint32_t s = 0;

	for (size_t k = 0; k < l->n; k++) {
		uint32_t *to = &t->next[s * t->classes + pf->class_of[l->b[k]]];

		if (*to == 0)
			*to = t->n++;
		s = *to;
	}
	t->hits[s].w[set / 64] |= (uint64_t)1 << (set % 64);
}

/* Breadth first: a state's failure is complete before the state is visited. */
static void trie_close(struct trie *t)
{
	uint32_t head = 0, tail = 1; /* order[0] is the start */

	while (head < tail) {
		uint32_t s = t->order[head++];

		for (size_t w = 0; w < PREFILTER_MAX_SETS / 64 && s != 0; w++)
			t->hits[s].w[w] |= t->hits[t->fail[s]].w[w];
		for (uint32_t c = 0; c < t->classes; c++) {
			uint32_t *to = &t->next[s * t->classes + c];
			uint32_t back = s == 0 ? 0 : t->next[t->fail[s] * t->classes + c];

			if (*to != 0) {
				t->fail[*to] = back;
				t->order[tail++] = *to;
			} else {
				*to = back;
			}
		}
	}
}

static bool any_hit(const struct prefilter_hits *h)
{
	for (size_t w = 0; w < PREFILTER_MAX_SETS / 64; w++)
		if (h->w[w])
			return true;
	return false;
}

/* Copy the rows, states without a hit first, each as the offset of its row. */
static void number_states(struct prefilter *pf, const struct trie *t)
{
	uint32_t *row = xcalloc(t->n, sizeof(*row));
	uint32_t plain = 0, n = 0;

	for (uint32_t i = 0; i < t->n; i++)
		if (!any_hit(&t->hits[i]))
			row[i] = plain++ * t->classes;
	pf->first_hit = plain * t->classes;
	pf->next = xcalloc((size_t)t->n * t->classes, sizeof(*pf->next));
	pf->hits = xcalloc(t->n - plain + 1, sizeof(*pf->hits));
	for (uint32_t i = 0; i < t->n; i++) {
		if (any_hit(&t->hits[i])) {
			row[i] = (plain + n) * t->classes;
			pf->hits[n++] = t->hits[i];
		}
	}
	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t c = 0; c < t->classes; c++)
			pf->next[row[i] + c] = row[t->next[i * t->classes + c]];
	free(row);
}

#if HAVE_SKIP
/* Literals are spread over eight groups so that one bit per group tells which first byte
 * goes with which second byte; both cases of a letter are entered. */
static void prepare_skip(struct prefilter *pf, const struct literal_set *sets, size_t n)
{
	unsigned group = 0;

	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < sets[i].n; j++, group = (group + 1) % 8) {
			for (size_t at = 0; at < 2; at++) {
				uint8_t bit = (uint8_t)(1u << group);

				if (at >=
				    sets[i].v[j].n) { /* one byte long: any second byte will do */
					for (int h = 0; h < 16; h++) {
						pf->low[at][h] |= bit;
						pf->high[at][h] |= bit;
					}
					continue;
				}
				for (int c = 0; c < 256; c++) {
					if (literal_fold((unsigned char)c) != sets[i].v[j].b[at])
						continue;
					pf->low[at][c & 15] |= bit;
					pf->high[at][c >> 4] |= bit;
				}
			}
		}
	}
	pf->can_skip = __builtin_cpu_supports("ssse3");
}

/* From the start state: the first position where a literal may begin, or the last 16 bytes. */
__attribute__((target("ssse3"))) static const char *skip(const struct prefilter *pf, const char *p,
							 const char *end)
{
	const __m128i low0 = _mm_loadu_si128((const __m128i *)pf->low[0]);
	const __m128i high0 = _mm_loadu_si128((const __m128i *)pf->high[0]);
	const __m128i low1 = _mm_loadu_si128((const __m128i *)pf->low[1]);
	const __m128i high1 = _mm_loadu_si128((const __m128i *)pf->high[1]);
	const __m128i half = _mm_set1_epi8(15);

	while (end - p >= 17) {
		__m128i a = _mm_loadu_si128((const __m128i *)p);
		__m128i b = _mm_loadu_si128((const __m128i *)(p + 1));
		__m128i ga = _mm_and_si128(
			_mm_shuffle_epi8(low0, _mm_and_si128(a, half)),
			_mm_shuffle_epi8(high0, _mm_and_si128(_mm_srli_epi16(a, 4), half)));
		__m128i gb = _mm_and_si128(
			_mm_shuffle_epi8(low1, _mm_and_si128(b, half)),
			_mm_shuffle_epi8(high1, _mm_and_si128(_mm_srli_epi16(b, 4), half)));
		__m128i none = _mm_cmpeq_epi8(_mm_and_si128(ga, gb), _mm_setzero_si128());
		unsigned found = ~(unsigned)_mm_movemask_epi8(none) & 0xffff;

		if (found)
			return p + __builtin_ctz(found);
		p += 16;
	}
	return p;
}
#else
static void prepare_skip(struct prefilter *pf, const struct literal_set *sets, size_t n)
{
	(void)pf, (void)sets, (void)n;
}

static const char *skip(const struct prefilter *pf, const char *p, const char *end)
{
	(void)pf, (void)end;
	return p;
}
#endif

struct prefilter *prefilter_new(const struct literal_set *sets, size_t n)
{
	struct prefilter *pf = xcalloc(1, sizeof(*pf));
	size_t states =
		number_classes(pf, sets, n) + 1; /* an upper bound: literals may share beginnings */
	struct trie t = {0};

	trie_init(&t, states, pf->classes);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < sets[i].n; j++)
			trie_add(&t, pf, &sets[i].v[j], i);
	trie_close(&t);
	number_states(pf, &t);
	trie_release(&t);
	prepare_skip(pf, sets, n);
	return pf;
}

struct prefilter *prefilter_free(struct prefilter *pf)
{
	if (pf) {
		free(pf->next);
		free(pf->hits);
		free(pf);
	}
	return NULL;
}

const char *prefilter_next(const struct prefilter *pf, struct prefilter_scan *scan, const char *p,
			   const char *end, struct prefilter_hits *hits)
{
	const uint32_t *next = pf->next;
	uint32_t s = scan->state;

	while (p < end) {
		if (s == 0 && pf->can_skip)
			p = skip(pf, p, end); /* never reaches the end */
		s = next[s + pf->class_of[(unsigned char)*p++]];
		if (s >= pf->first_hit) {
			const struct prefilter_hits *h =
				&pf->hits[(s - pf->first_hit) / pf->classes];

			for (size_t w = 0; w < PREFILTER_MAX_SETS / 64; w++)
				hits->w[w] |= h->w[w];
			scan->state = s;
			return p;
		}
	}
	scan->state = s;
	return NULL;
}
