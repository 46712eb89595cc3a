#include "fmt/argv.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/vec.h"
#include "fmt/schema.h"

#define ARGV_MAX_WORD (1024 * 1024)

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Take quoted text; the cursor is behind the opening quote.  False without a closing quote. */
static bool take_quoted(struct str text, size_t *i, char quote, struct buf *word)
{
	for (; *i < text.n; (*i)++) {
		char c = text.p[*i];

		if (c == quote) {
			(*i)++;
			return true;
		}
		/* Within "..." a backslash quotes only these four bytes. */
		if (c == '\\' && quote == '"' && *i + 1 < text.n &&
		    strchr("$`\"\\\n", text.p[*i + 1]) && text.p[*i + 1] != '\0') {
			c = text.p[++*i];
			if (c == '\n')
				continue;
		}
		buf_addc(word, c);
	}
	return false;
}

/* Take one word; the cursor is at its first byte. */
static bool take_word(struct str text, size_t *i, struct buf *word, const char **ret_why)
{
	buf_reset(word);
	while (*i < text.n && !is_blank(text.p[*i])) {
		char c = text.p[(*i)++];

		if (c == '\'' || c == '"') {
			if (!take_quoted(text, i, c, word)) {
				*ret_why = c == '"' ? "a \" is not closed" : "a ' is not closed";
				return false;
			}
		} else if (c == '\\') {
			if (*i == text.n) {
				*ret_why = "nothing follows the last backslash";
				return false;
			}
			c = text.p[(*i)++];
			if (c != '\n')
				buf_addc(word, c);
		} else {
			buf_addc(word, c);
		}
	}
	return true;
}

/* Blanks, and a backslash with a line end, which joins two lines. */
static void skip_blank(struct str text, size_t *i)
{
	for (;;) {
		if (*i < text.n && is_blank(text.p[*i]))
			(*i)++;
		else if (*i + 1 < text.n && text.p[*i] == '\\' && text.p[*i + 1] == '\n')
			*i += 2;
		else
			return;
	}
}

bool argv_split(struct str text, struct arena *a, struct strs *ret_words, const char **ret_why)
{
	CLEANUP(buf_release) struct buf word = {0};
	VEC(const char *) words = {0};
	size_t i = 0;
	bool good = true;

	buf_init(&word, ARGV_MAX_WORD);
	for (skip_blank(text, &i); good && i < text.n; skip_blank(text, &i)) {
		good = take_word(text, &i, &word, ret_why);
		if (good)
			*vec_push(&words) = arena_strndup(a, buf_str(&word).p, word.n);
	}
	if (good) {
		ret_words->n = words.n;
		ret_words->v = arena_array(a, const char *, words.n + 1);
		if (words.n > 0)
			memcpy(ret_words->v, words.v, words.n * sizeof(*words.v));
	}
	vec_release(&words);
	return good;
}
