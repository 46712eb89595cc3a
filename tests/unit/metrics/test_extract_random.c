/*
 * The prefilter must never lose a match.  Random patterns from a grammar of
 * everything that log patterns use, over lines built from the same alphabet, go through
 * the extractor and, one line at a time, through PCRE2's interpreter alone.
 */
#include "samples.h"

#include <string.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include "seed.h"

#define ROUNDS 3000
#define PATTERNS_EACH 3
#define LINES_EACH 12

static const char *pick(struct rng *r, const char *const *from, size_t n)
{
	return from[rng_below(r, n)];
}

static void add_atom(struct buf *b, struct rng *r)
{
	static const char *const atoms[] = {
		"a",	  "b",	   "l",	   "L",	   "=",	   ":",		" ",	   "1",
		".",	  "\\.",   "\\d",  "\\w",  "\\s",  "\\S",	"\\b",	   "^",
		"$",	  "[ab]",  "[Ll]", "[=]",  "[^a]", "[a-c]",	"[]a]",	   "[[:digit:]b]",
		"[\\]1]", "\\x61", "\\t",  "loss", "acc=", "\\Qa.b\\E", "\\Q=\\E", "\\D",
		"\\h",	  "ab",	   "1.5",  "{",	   "}",	   "\\=",	"\\[",	   "-",
		"%",
	};

	buf_addz(b, pick(r, atoms, COUNT(atoms)));
}

static void add_branches(struct buf *b, struct rng *r, int depth);

static void add_item(struct buf *b, struct rng *r, int depth)
{
	static const char *const groups[] = {"(",    "(?:",  "(?i:",  "(?>",  "(?=", "(?!",
					     "(?<=", "(?<!", "(?-i:", "(?s:", "(?|", "(?U:"};
	static const char *const quantifiers[] = {"?",	 "*",	  "+",	  "{0}",   "{1}",
						  "{2}", "{0,2}", "{1,}", "{1,3}", "??",
						  "*?",	 "+?",	  "?+",	  "++",	   "{2}?"};
	size_t start = b->n;

	if (depth > 0 && rng_below(r, 4) == 0) {
		const char *open = pick(r, groups, COUNT(groups));

		buf_addz(b, open);
		if (strchr(open, '<')) /* fixed length */
			buf_addz(b, rng_below(r, 2) ? "a" : "s=|b");
		else
			add_branches(b, r, depth - 1);
		buf_addc(b, ')');
	} else {
		add_atom(b, r);
	}
	char last = b->p[b->n - 1];
	if (rng_below(r, 3) == 0 && last != '^' && last != '$' && b->n > start)
		buf_addz(b, pick(r, quantifiers, COUNT(quantifiers)));
	if (rng_below(r, 25) == 0)
		buf_addz(b, rng_below(r, 2) ? "(?i)" : "(?-i)");
}

static void add_branches(struct buf *b, struct rng *r, int depth)
{
	for (;;) {
		for (size_t n = 1 + rng_below(r, 3); n > 0; n--)
			add_item(b, r, depth);
		if (rng_below(r, 4) != 0)
			return;
		buf_addc(b, '|');
		if (rng_below(r, 8) == 0)
			return;
	}
}

static char *random_pattern(struct rng *r)
{
	struct buf b;

	buf_init(&b, 4096);
	if (rng_below(r, 8) == 0)
		buf_addz(&b, "(?i)");
	if (rng_below(r, 2))
		add_branches(&b, r, 2);
	buf_addz(&b, rng_below(r, 3) ? "(?<value>[-+.\\d]+)" : "(?<value>\\d*)");
	if (rng_below(r, 2))
		add_branches(&b, r, 2);
	return buf_take(&b);
}

static void add_line(struct buf *b, struct rng *r)
{
	static const char *const words[] = {
		"a",  "b",    "c",    "l",    "L",	"=",   ":",    " ", "1", "2.5",
		"-3", "loss", "LOSS", "acc=", "Acc",	"a.b", "\t",   "]", "[", "{",
		"}",  "%",    ".",    "\r",   "loss=1", "1.5", "\xff", "-",
	};

	for (size_t n = rng_below(r, 12); n > 0; n--)
		buf_addz(b, pick(r, words, COUNT(words)));
}

struct plain {
	pcre2_code *code; /* for the interpreter, every optimisation of the start switched off */
	/* the same compiled, to see whether the extractor may run into its limits */
	pcre2_code *jit;
};

static struct plain plain_compile(const char *pattern)
{
	struct plain p;
	int error;
	PCRE2_SIZE at;

	p.code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, PCRE2_NO_START_OPTIMIZE,
			       &error, &at, NULL);
	assert_non_null(p.code);
	p.jit = pcre2_code_copy(p.code);
	assert_non_null(p.jit);
	pcre2_jit_compile(p.jit, PCRE2_JIT_COMPLETE);
	return p;
}

/* The plain way: every pattern on every line.  False if the work is beyond the limits. */
static bool reference_line(const struct plain *plain, pcre2_match_context *limits, struct str line,
			   struct buf *out, uint64_t *bad)
{
	pcre2_code *code = plain->code;
	pcre2_match_data *md = pcre2_match_data_create_from_pattern(code, NULL);
	int group = pcre2_substring_number_from_name(code, (PCRE2_SPTR) "value");
	size_t from = 0;
	int rc = 0;

	while (from <= line.n) {
		rc = pcre2_match(plain->jit, (PCRE2_SPTR)line.p, line.n, from, 0, md, limits);
		if (rc >= PCRE2_ERROR_NOMATCH)
			rc = pcre2_match(code, (PCRE2_SPTR)line.p, line.n, from, 0, md, NULL);
		if (rc < 0)
			break;
		PCRE2_SIZE *at = pcre2_get_ovector_pointer(md), *v = at + 2 * group;
		double value;
		bool unset = rc <= group || v[0] == PCRE2_UNSET;

		if (!unset && v[1] > v[0] &&
		    str_to_double((struct str){line.p + v[0], v[1] - v[0]}, &value))
			samples_note(out, &(struct sample){
						  .name = STR("m"), .value = value, .step = -1});
		else if (at[1] > at[0] || (!unset && v[1] > v[0]))
			++*bad;
		from = at[1] > at[0] && at[1] > from ? at[1] : (at[1] > from ? at[1] : from) + 1;
	}
	pcre2_match_data_free(md);
	return rc == PCRE2_ERROR_NOMATCH || from > line.n;
}

static bool reference(struct metric_pattern *pats, size_t n, struct str block, struct buf *out,
		      uint64_t *bad)
{
	pcre2_match_context *limits = pcre2_match_context_create(NULL);
	struct plain plain[PATTERNS_EACH];
	bool fine = true;

	pcre2_set_match_limit(limits, 50000); /* half of the extractor's */
	for (size_t i = 0; i < n; i++)
		plain[i] = plain_compile(pats[i].pattern);
	while (block.p) {
		struct str line = str_cut(&block, '\n');

		if (!block.p && line.n == 0)
			break; /* behind the last newline */
		if (line.n > 0 && line.p[line.n - 1] == '\r')
			line.n--;
		for (size_t i = 0; i < n; i++)
			fine &= reference_line(&plain[i], limits, line, out, bad);
	}
	for (size_t i = 0; i < n; i++) {
		pcre2_code_free(plain[i].code);
		pcre2_code_free(plain[i].jit);
	}
	pcre2_match_context_free(limits);
	return fine;
}

static bool compiles(const char *pattern)
{
	struct metric_pattern pat = {"m", pattern};
	struct extract *ex;

	if (extract_new(&pat, 1, "", &ex, NULL) < 0)
		return false;
	extract_free(ex);
	return true;
}

static void one_round(struct rng *r, size_t *compared, size_t *found)
{
	struct metric_pattern pats[PATTERNS_EACH];
	size_t n = 1 + rng_below(r, PATTERNS_EACH);
	struct buf text, want, got;
	uint64_t bad = 0;
	struct extract *ex;

	for (size_t i = 0; i < n; i++) {
		char *p = random_pattern(r);

		while (!compiles(p)) {
			free(p);
			p = random_pattern(r);
		}
		pats[i] = (struct metric_pattern){"m", p};
	}
	buf_init(&text, 1u << 20);
	buf_init(&want, 1u << 20);
	buf_init(&got, 1u << 20);
	for (size_t i = 0; i < LINES_EACH; i++) {
		add_line(&text, r);
		buf_addz(&text, i + 1 < LINES_EACH || rng_below(r, 2) ? "\n" : "");
	}
	assert_int_equal(extract_new(pats, n, "", &ex, NULL), 0);
	extract_block(ex, buf_str(&text), samples_note, &got);
	if (reference(pats, n, buf_str(&text), &want,
		      &bad)) { /* else a limit was hit: not comparable */
		++*compared;
		*found += want.n > 0;
		if (!str_eq(buf_str(&got), buf_str(&want)) || extract_bad(ex) != bad)
			fail_msg(
				"patterns %s , %s , %s over\n%s\ngave %s(%llu bad), plainly %s(%llu bad)",
				pats[0].pattern, n > 1 ? pats[1].pattern : "",
				n > 2 ? pats[2].pattern : "", text.p, buf_str(&got).p,
				(unsigned long long)extract_bad(ex), buf_str(&want).p,
				(unsigned long long)bad);
	}
	extract_free(ex);
	for (size_t i = 0; i < n; i++)
		free((void *)(uintptr_t)pats[i].pattern);
	buf_release(&text);
	buf_release(&want);
	buf_release(&got);
}

static void filtered_extraction_equals_plain_matching_of_every_line(void **state)
{
	size_t compared = 0, found = 0;
	struct rng rng;

	(void)state;
	seed_rng(&rng);
	for (int i = 0; i < ROUNDS; i++)
		one_round(&rng, &compared, &found);
	print_message("# %zu of %d rounds compared, %zu with samples\n", compared, ROUNDS, found);
	assert_true(compared > ROUNDS * 9 / 10);
	assert_true(found > ROUNDS / 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filtered_extraction_equals_plain_matching_of_every_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
