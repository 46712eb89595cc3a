#include "fmt/argv.h"

#include <ctype.h>
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

static bool is_operator(struct str word)
{
	static const char *const whole[] = {"|", "||", "&", "&&"}, *const first[] = {"<", ">", "2>",
										     "&>"};

	for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
		if (str_is(word, whole[i]))
			return true;
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		if (str_starts(word, str_from(first[i])))
			return true;
	return str_ends(word, STR(";"));
}

/* Is something put in here by a shell: $NAME, ${NAME}, $(command), `command`? */
static bool is_expansion(struct str rest)
{
	if (*rest.p == '`')
		return true;
	if (*rest.p != '$' || rest.n < 2 || str_starts(rest, STR("${params.")))
		return false;
	return isalpha((unsigned char)rest.p[1]) || strchr("_({", rest.p[1]);
}

/* The end of the word that begins at i; *ret_shell: it is for a shell. */
static size_t word_end(struct str text, size_t i, bool *ret_shell)
{
	size_t from = i;
	bool quoted = false; /* a part of it is */
	char quote = '\0';

	*ret_shell = false;
	for (; i < text.n && (quote || !is_blank(text.p[i])); i++) {
		char c = text.p[i];

		if (c == quote)
			quote = '\0';
		else if (!quote && (c == '\'' || c == '"'))
			quote = c;
		else if (c == '\\' && quote != '\'')
			i++;
		else if (quote != '\'' && is_expansion((struct str){text.p + i, text.n - i}))
			*ret_shell = true;
		quoted = quoted || quote || c == '\\';
	}
	i = i < text.n ? i : text.n;
	if (!quoted && is_operator((struct str){text.p + from, i - from}))
		*ret_shell = true;
	return i;
}

const char *argv_shell_word(struct str text, struct arena *a)
{
	size_t i = 0;

	for (skip_blank(text, &i); i < text.n; skip_blank(text, &i)) {
		bool shell;
		size_t end = word_end(text, i, &shell);

		if (shell)
			return arena_strndup(a, text.p + i, end - i);
		i = end;
	}
	return NULL;
}
