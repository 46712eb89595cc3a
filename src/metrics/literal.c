/*
 * A small recursive reader of PCRE2's syntax.  It follows the branches of the
 * pattern and keeps, for each, the best set of alternatives that any match must
 * hold.  Whatever it does not know for certain sets `lost`, and the whole
 * pattern then has no literal.  Only patterns that PCRE2 has accepted come here,
 * so malformed text needs no message: it sets `lost`.
 */
#include "metrics/literal.h"

#include <ctype.h>
#include <string.h>

#define MAX_DEPTH 64

struct pattern_reader {
	const char *p;
	int depth;
	bool lost;
};

/* One branch, as far as it was read: `run` is text that every match holds in one piece. */
struct branch {
	struct literal run;
	struct literal_set best;
};

static struct literal_set read_alternatives(struct pattern_reader *r);

/* Longer is rarer, and punctuation is rarer in logs than letters, blanks and digits. */
static int weight(const struct literal *l)
{
	int w = 0;

	for (int i = 0; i < l->n; i++)
		w += l->b[i] == ' ' || isdigit(l->b[i]) ? 2 : isalpha(l->b[i]) ? 3 : 4;
	return w;
}

/* A set is as good as its worst member; many members cost a little. */
static int score(const struct literal_set *set)
{
	int worst = 0;

	for (size_t i = 0; i < set->n; i++) {
		int w = weight(&set->v[i]);

		if (i == 0 || w < worst)
			worst = w;
	}
	return set->n == 0 ? 0 : 8 * worst - (int)set->n;
}

static void consider(struct branch *b, const struct literal_set *set)
{
	if (score(set) > score(&b->best))
		b->best = *set;
}

static void end_run(struct branch *b)
{
	if (b->run.n > 0) {
		struct literal_set one = {.n = 1, .v = {b->run}};

		consider(b, &one);
	}
	b->run.n = 0;
}

static void add_byte(struct branch *b, unsigned char c)
{
	if (c == '\n') { /* no line holds a newline: useless as a literal */
		end_run(b);
		return;
	}
	if (b->run.n == LITERAL_MAX_BYTES)
		end_run(b);
	b->run.b[b->run.n++] = literal_fold(c);
}

/* "{2}", "{2,}" or "{2,5}" at p: its length, and the minimum; 0 if it is no quantifier. */
static size_t brace_quantifier(struct pattern_reader *r, int *ret_min)
{
	const char *p = r->p + 1;
	size_t odd = strspn(p, "0123456789, \t");
	int min = 0;

	if (p[odd] != '}' || odd == 0)
		return 0; /* plain text */
	if (!isdigit((unsigned char)*p)) {
		r->lost = true; /* "{,5}" and "{ 1}" changed their meaning between versions */
		return 0;
	}
	for (; isdigit((unsigned char)*p); p++)
		min = min > 0 || *p != '0' ? 1 : 0;
	if (*p == ',')
		p++;
	while (isdigit((unsigned char)*p))
		p++;
	if (*p != '}') {
		r->lost = true;
		return 0;
	}
	*ret_min = min;
	return (size_t)(p + 1 - r->p);
}

/* Reads any quantifiers here.  -1: none; 0: the item may be absent; 1: it is there at least once. */
static int read_quantifier(struct pattern_reader *r)
{
	int result = -1;

	for (;;) {
		int min = 0;
		size_t n = 1;

		if (*r->p == '+')
			min = 1;
		else if (*r->p == '{')
			n = brace_quantifier(r, &min);
		else if (*r->p != '*' && *r->p != '?')
			n = 0;
		if (n == 0)
			return result;
		r->p += n;
		if (*r->p == '?' || *r->p == '+') /* lazy, possessive */
			r->p++;
		result = result == 0 ? 0 : min;
	}
}

/* One byte of the pattern that stands for itself, with the quantifier behind it. */
static void take_byte(struct pattern_reader *r, struct branch *b, unsigned char c)
{
	int min = read_quantifier(r);

	if (min != 0)
		add_byte(b, c);
	if (min >= 0)
		end_run(b);
	if (min == 1) /* the last repetition is next to what follows */
		add_byte(b, c);
}

/* Something that may match anything, or nothing. */
static void take_unknown(struct pattern_reader *r, struct branch *b)
{
	read_quantifier(r);
	end_run(b);
}

static void skip_past(struct pattern_reader *r, char close)
{
	const char *end = strchr(r->p, close);

	if (end)
		r->p = end + 1;
	else
		r->lost = true;
}

/* The argument of \g \k \p \x \o: in brackets, or what `plain` allows, at most `max` of it. */
static void skip_argument(struct pattern_reader *r, const char *plain, size_t max)
{
	static const char open[] = "{<'", close[] = "}>'";
	const char *o = *r->p ? strchr(open, *r->p) : NULL;

	if (o) {
		r->p++;
		skip_past(r, close[o - open]);
		return;
	}
	for (size_t i = 0; i < max && *r->p && strchr(plain, *r->p); i++)
		r->p++;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *d = c ? strchr(digits, tolower((unsigned char)c)) : NULL;

	return d ? (int)(d - digits) : -1;
}

static void take_hex(struct pattern_reader *r, struct branch *b)
{
	int value = 0;

	if (*r->p == '{') {
		skip_past(r, '}');
		take_unknown(r, b);
		return;
	}
	for (int i = 0; i < 2 && hex_digit(*r->p) >= 0; i++)
		value = value * 16 + hex_digit(*r->p++);
	take_byte(r, b, (unsigned char)value);
}

/* "\Q...\E": every byte is plain; a quantifier behind \E belongs to the last one. */
static void take_quoted(struct pattern_reader *r, struct branch *b)
{
	const char *end = strstr(r->p, "\\E");
	const char *p = r->p;

	if (!end)
		end = p + strlen(p);
	if (end == p) {
		r->lost = true; /* "a\Q\E+": not followed */
		return;
	}
	for (; p + 1 < end; p++)
		add_byte(b, (unsigned char)*p);
	r->p = *end ? end + 2 : end;
	take_byte(r, b, (unsigned char)*p);
}

static void take_escape(struct pattern_reader *r, struct branch *b)
{
	static const char plain[] = "tfaer", meaning[] = "\t\f\a\033\r";
	char c = *r->p++;

	if (!isalnum((unsigned char)c)) {
		if (c == '\0') {
			r->lost = true;
			r->p--;
			return;
		}
		take_byte(r, b, (unsigned char)c);
		return;
	}
	const char *m = strchr(plain, c);
	if (m) {
		take_byte(r, b, (unsigned char)meaning[m - plain]);
		return;
	}
	if (isdigit((unsigned char)c)) { /* a back reference or octal */
		r->p += strspn(r->p, "0123456789");
	} else if (c == 'Q') {
		take_quoted(r, b);
		return;
	} else if (c == 'x') {
		take_hex(r, b);
		return;
	} else if (c == 'o' || c == 'k') {
		skip_argument(r, "", 0);
	} else if (c == 'g') {
		skip_argument(r, "+-0123456789", 16);
	} else if (c == 'p' || c == 'P') {
		skip_argument(r, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", 1);
	} else if (c == 'N' && *r->p == '{') {
		r->lost = true;
	} else if (!strchr("dDwWsShHvVRNXbBAzZGKn", c)) {
		r->lost = true; /* \c, a lone \E, or an escape that is not known here */
	}
	take_unknown(r, b);
}

/* "[:alpha:]" inside a class: skip it. */
static bool skip_posix(struct pattern_reader *r)
{
	const char *p = r->p + 2;

	p += *p == '^';
	while (islower((unsigned char)*p))
		p++;
	if (p[0] != ':' || p[1] != ']')
		return false;
	r->p = p + 2;
	return true;
}

/* A class stands for one byte if all its members fold to the same: [.] or [Ll]. */
static void take_class(struct pattern_reader *r, struct branch *b)
{
	bool many = false, empty = true;
	unsigned char only = 0;

	if (*r->p == '^') {
		many = true;
		r->p++;
	}
	for (bool first = true; first || *r->p != ']'; first = false) {
		unsigned char c = (unsigned char)*r->p;

		if (c == '\0') {
			r->lost = true;
			return;
		}
		if (c == '[' && r->p[1] != '\0' && strchr(":.=", r->p[1])) {
			if (r->p[1] != ':' || !skip_posix(r)) {
				r->lost = true;
				return;
			}
			many = true;
			continue;
		}
		if (c == '\\') {
			c = (unsigned char)*++r->p;
			if (c == '\0' || strchr("QEc", c)) {
				r->lost = true;
				return;
			}
			/* What follows a letter, as in \x41 or \p{L}, holds no bracket: read on as members. */
			many |= isalnum(c) != 0;
		}
		c = literal_fold(c);
		many |= !empty && c != only;
		only = c;
		empty = false;
		r->p++;
	}
	r->p++;
	if (many || empty)
		take_unknown(r, b);
	else
		take_byte(r, b, only);
}

enum group_kind {
	GROUP_PLAIN,  /* its contents are part of every match */
	GROUP_DENIED, /* negative assertion */
	GROUP_CALL,   /* recursion or back reference: read to its end already */
	GROUP_FLAGS,  /* (?i): read to its end already */
	GROUP_LOST,
};

/* "(?i)", "(?-i)", "(?i-m:...)".  Case does not matter here; extended syntax would. */
static enum group_kind read_flags(struct pattern_reader *r)
{
	for (; *r->p == '-' || isalpha((unsigned char)*r->p); r->p++)
		if (!strchr("-imsnJU", *r->p))
			return GROUP_LOST;
	if (*r->p == ':') {
		r->p++;
		return GROUP_PLAIN;
	}
	if (*r->p != ')')
		return GROUP_LOST;
	r->p++;
	return GROUP_FLAGS;
}

static enum group_kind read_call(struct pattern_reader *r)
{
	skip_past(r, ')');
	return GROUP_CALL;
}

static enum group_kind read_name(struct pattern_reader *r, size_t skip, char close)
{
	r->p += skip;
	skip_past(r, close);
	return GROUP_PLAIN;
}

/* Behind "(": says what kind of group it is and stops at the first byte of its contents. */
static enum group_kind open_group(struct pattern_reader *r)
{
	static const struct {
		const char *text;
		enum group_kind kind;
	} fixed[] = {
		{":", GROUP_PLAIN},  {"|", GROUP_PLAIN},   {">", GROUP_PLAIN},
		{"=", GROUP_PLAIN},  {"!", GROUP_DENIED},  {"*", GROUP_PLAIN},
		{"<=", GROUP_PLAIN}, {"<!", GROUP_DENIED}, {"<*", GROUP_PLAIN},
	};

	if (*r->p == '*')
		return GROUP_LOST; /* (*ACCEPT) and other verbs may end a match anywhere */
	if (*r->p != '?')
		return GROUP_PLAIN;
	r->p++;
	for (size_t i = 0; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
		if (strncmp(r->p, fixed[i].text, strlen(fixed[i].text)) == 0) {
			r->p += strlen(fixed[i].text);
			return fixed[i].kind;
		}
	}
	if (r->p[0] == '<')
		return read_name(r, 1, '>');
	if (r->p[0] == '\'')
		return read_name(r, 1, '\'');
	if (r->p[0] == 'P' && r->p[1] == '<')
		return read_name(r, 2, '>');
	if (r->p[0] == 'P' || r->p[0] == 'R' || r->p[0] == '&' || r->p[0] == '+' ||
	    isdigit((unsigned char)r->p[0]) || (r->p[0] == '-' && isdigit((unsigned char)r->p[1])))
		return read_call(r);
	return read_flags(r); /* (?C, (?(, (?#, (?^ and (?x end as lost there */
}

static void take_group(struct pattern_reader *r, struct branch *b)
{
	enum group_kind kind = open_group(r);
	struct literal_set inner = {0};

	switch (kind) {
	case GROUP_FLAGS:
		return;
	case GROUP_LOST:
		r->lost = true;
		return;
	case GROUP_CALL:
		take_unknown(r, b);
		return;
	case GROUP_PLAIN:
	case GROUP_DENIED:
		break;
	}
	inner = read_alternatives(r);
	if (*r->p != ')') {
		r->lost = true;
		return;
	}
	r->p++;
	int min = read_quantifier(r);
	end_run(b);
	if (kind == GROUP_PLAIN && min != 0)
		consider(b, &inner);
}

static struct literal_set read_branch(struct pattern_reader *r)
{
	struct branch b = {0};

	while (!r->lost && *r->p != '\0' && *r->p != '|' && *r->p != ')') {
		char c = *r->p++;

		switch (c) {
		case '\\':
			take_escape(r, &b);
			break;
		case '[':
			take_class(r, &b);
			break;
		case '(':
			take_group(r, &b);
			break;
		case '.':
			take_unknown(r, &b);
			break;
		case '^':
		case '$':
			take_unknown(r, &b);
			break;
		default:
			take_byte(r, &b, (unsigned char)c);
			break;
		}
	}
	end_run(&b);
	return b.best;
}

static bool join(struct literal_set *into, const struct literal_set *from)
{
	if (from->n == 0 || into->n + from->n > LITERAL_MAX_SET)
		return false;
	memcpy(&into->v[into->n], from->v, from->n * sizeof(from->v[0]));
	into->n += from->n;
	return true;
}

static struct literal_set read_alternatives(struct pattern_reader *r)
{
	struct literal_set all = {0};
	bool known = true;

	if (++r->depth > MAX_DEPTH)
		r->lost = true;
	for (;;) {
		struct literal_set one = read_branch(r);

		known = known && join(&all, &one);
		if (r->lost || *r->p != '|')
			break;
		r->p++;
	}
	r->depth--;
	if (!known)
		all.n = 0;
	return all;
}

struct literal_set literal_required(const char *pattern)
{
	struct pattern_reader r = {.p = pattern};
	struct literal_set set = read_alternatives(&r);

	if (r.lost || *r.p != '\0')
		set.n = 0;
	return set;
}

struct literal_set literal_exactly(const char *text, size_t n)
{
	struct literal_set set = {0};

	if (n > LITERAL_MAX_BYTES)
		n = LITERAL_MAX_BYTES;
	if (n == 0 || memchr(text, '\n', n))
		return set;
	set.n = 1;
	set.v[0].n = (uint8_t)n;
	for (size_t i = 0; i < n; i++)
		set.v[0].b[i] = literal_fold((unsigned char)text[i]);
	return set;
}
