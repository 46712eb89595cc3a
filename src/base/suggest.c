#include "base/suggest.h"

#define WORD_MAX 48 /* bytes of a word that are compared */

/* Lower case, and '_' for '-': these differences do not count. */
static struct str fold(struct str s, char out[static WORD_MAX])
{
	size_t n = s.n < WORD_MAX ? s.n : WORD_MAX;

	for (size_t i = 0; i < n; i++) {
		char c = s.p[i];

		out[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c == '-' ? '_' : c;
	}
	return (struct str){out, n};
}

const char *suggest_word(const char *const *words, size_t n, struct str given)
{
	char given_room[WORD_MAX], word_room[WORD_MAX];
	struct str wanted = fold(given, given_room);
	/* One wrong letter is allowed in a short word, at most three in a long one. */
	size_t best = 1 + (wanted.n < 4 ? 1u : wanted.n < 8 ? 2u : 3u);
	const char *nearest = NULL, *longer = NULL;

	for (size_t i = 0; i < n; i++) {
		struct str word = fold(str_from(words[i]), word_room);
		size_t distance = str_distance(wanted, word, best);

		if (distance < best && distance < word.n) {
			best = distance;
			nearest = words[i];
		}
		if (!longer && wanted.n >= 3 && str_starts(word, wanted))
			longer = words[i];
	}
	return nearest ? nearest : longer;
}
