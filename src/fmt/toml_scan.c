#include "fmt/toml_scan.h"

#include "base/arena.h"

/* How many times in a row c is at the cursor, at most max. */
static int run_of(const struct reader *r, char c, int max)
{
	int n = 0;

	while (n < max && r->p + n < r->end && r->p[n] == c)
		n++;
	return n;
}

static bool at_newline(const struct reader *r)
{
	return r->p < r->end &&
	       (*r->p == '\n' || (*r->p == '\r' && r->end - r->p > 1 && r->p[1] == '\n'));
}

static void take_newline(struct reader *r)
{
	r->p += *r->p == '\r' ? 2 : 1;
	reader_newline(r);
}

/* Control characters other than the tab are forbidden everywhere. */
static bool is_forbidden(char c)
{
	unsigned char u = (unsigned char)c;

	return (u < 0x20 && u != '\t') || u == 0x7F;
}

void toml_skip_blank(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
		r->p++;
}

static int skip_comment(struct reader *r)
{
	toml_skip_blank(r);
	if (r->p == r->end || *r->p != '#')
		return 0;
	while (r->p < r->end && !at_newline(r)) {
		if (is_forbidden(*r->p))
			return reader_expected(r, "the text of a comment");
		r->p++;
	}
	return 0;
}

int toml_skip_lines(struct reader *r)
{
	for (;;) {
		if (skip_comment(r) < 0)
			return -1;
		if (!at_newline(r))
			return 0;
		take_newline(r);
	}
}

int toml_end_line(struct reader *r)
{
	if (skip_comment(r) < 0)
		return -1;
	if (r->p == r->end)
		return 0;
	if (!at_newline(r))
		return reader_expected(r, "the end of the line");
	take_newline(r);
	return 0;
}

/* In a multi-line string a backslash at the line's end swallows all white space that follows. */
static bool skip_line_join(struct reader *r)
{
	const char *p = r->p;

	toml_skip_blank(r);
	if (!at_newline(r)) {
		r->p = p;
		return false;
	}
	while (at_newline(r)) {
		take_newline(r);
		toml_skip_blank(r);
	}
	return true;
}

/* The cursor is behind the backslash. */
static int read_escape(struct reader *r, bool multi)
{
	static const char names[] = "btnfr\"\\", values[] = "\b\t\n\f\r\"\\";
	char c = r->p < r->end ? *r->p : '\0';
	const char *at = c ? strchr(names, c) : NULL;
	struct doc_pos pos = reader_pos(r);
	uint32_t scalar;

	pos.col--;
	if (at) {
		buf_addc(&r->scratch, values[at - names]);
		r->p++;
		return 0;
	}
	if (multi && skip_line_join(r))
		return 0;
	if (c != 'u' && c != 'U')
		return reader_expected(r, "one of b t n f r \" \\ u U after a backslash");
	r->p++;
	if (!reader_hex(r, c == 'u' ? 4 : 8, &scalar))
		return reader_expected(r, c == 'u' ? "four hexadecimal digits after \\u"
						   : "eight hexadecimal digits after \\U");
	if (!reader_add_char(r, scalar))
		return reader_fail(r, pos, "found U+%04X, expected a Unicode scalar value", scalar);
	return 0;
}

/* "..." and '...', into scratch; the cursor is behind the opening quote. */
static int read_single(struct reader *r, char quote)
{
	for (;;) {
		if (r->p == r->end || is_forbidden(*r->p))
			return reader_expected(r, "the closing quote of the string");
		char c = *r->p++;

		if (c == quote)
			return 0;
		if (c != '\\' || quote == '\'')
			buf_addc(&r->scratch, c);
		else if (read_escape(r, false) < 0)
			return -1;
	}
}

/* The same in triple quotes.  A line end becomes LF; up to two quotes may come before the closing
 * three. */
static int read_multi(struct reader *r, char quote)
{
	if (at_newline(r))
		take_newline(r);
	for (;;) {
		if (at_newline(r)) {
			take_newline(r);
			buf_addc(&r->scratch, '\n');
			continue;
		}
		if (r->p == r->end || is_forbidden(*r->p))
			return reader_expected(r, "the three closing quotes of the string");
		if (*r->p == quote) {
			int n = run_of(r, quote, 5);

			for (int i = n >= 3 ? 3 : 0; i < n; i++)
				buf_addc(&r->scratch, quote);
			r->p += n;
			if (n >= 3)
				return 0;
			continue;
		}
		char c = *r->p++;

		if (c != '\\' || quote == '\'')
			buf_addc(&r->scratch, c);
		else if (read_escape(r, true) < 0)
			return -1;
	}
}

int toml_read_string(struct reader *r, struct doc **ret_doc)
{
	struct doc *d = reader_node(r, DOC_STRING, reader_pos(r));
	char quote = *r->p;

	if (!d)
		return -1;
	buf_reset(&r->scratch);
	bool multi = run_of(r, quote, 3) == 3;

	r->p += multi ? 3 : 1;
	if ((multi ? read_multi(r, quote) : read_single(r, quote)) < 0)
		return -1;
	d->s = arena_str(r->a, buf_str(&r->scratch));
	*ret_doc = d;
	return 0;
}

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

static int read_key(struct reader *r, struct str *ret_key)
{
	const char *from = r->p;

	if (r->p < r->end && (*r->p == '"' || *r->p == '\'')) {
		char quote = *r->p++;

		buf_reset(&r->scratch);
		if (read_single(r, quote) < 0)
			return -1;
		*ret_key = arena_str(r->a, buf_str(&r->scratch));
		return 0;
	}
	while (r->p < r->end && is_bare(*r->p))
		r->p++;
	if (r->p == from)
		return reader_expected(r, "a key");
	*ret_key = arena_str(r->a, (struct str){from, (size_t)(r->p - from)});
	return 0;
}

int toml_read_path(struct reader *r, struct toml_path *ret_path)
{
	ret_path->n = 0;
	for (;;) {
		struct toml_part part = {.pos = reader_pos(r)};

		if (ret_path->n == DOC_MAX_DEPTH)
			return reader_fail(
				r, part.pos,
				"found a key of more than %d parts, expected at most that many",
				DOC_MAX_DEPTH);
		if (read_key(r, &part.key) < 0)
			return -1;
		ret_path->v[ret_path->n++] = part;
		toml_skip_blank(r);
		if (r->p == r->end || *r->p != '.')
			return 0;
		r->p++;
		toml_skip_blank(r);
	}
}
