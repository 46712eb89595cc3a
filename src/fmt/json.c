/*
 * json - a strict RFC 8259 reader that keeps the position of every value
 * (docs/adr/0002-json-reader.md says why it is our own).
 *
 * No comments, no trailing commas, no duplicate names, no lone surrogates;
 * a number without fraction and exponent is an integer of 64 bits or refused.
 */
#include "fmt/doc.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/number.h"
#include "fmt/quote.h"
#include "fmt/reader.h"

static int read_value(struct reader *r, struct doc **ret_doc);

static void skip_space(struct reader *r)
{
	while (r->p < r->end) {
		char c = *r->p;

		if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
			return;
		r->p++;
		if (c == '\n')
			reader_newline(r);
	}
}

/* After white space: is this byte next?  Then pass it. */
static bool take(struct reader *r, char c)
{
	skip_space(r);
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* "\uXXXX", a pair of them above U+FFFF; the cursor is behind the first 'u'. */
static int read_unicode(struct reader *r, struct doc_pos pos)
{
	uint32_t c, low;

	if (!reader_hex(r, 4, &c))
		return reader_expected(r, "four hexadecimal digits after \\u");
	if (c >= 0xD800 && c <= 0xDBFF) {
		if (r->end - r->p < 2 || r->p[0] != '\\' || r->p[1] != 'u')
			return reader_fail(r, pos, "found half of a surrogate pair, expected both");
		r->p += 2;
		if (!reader_hex(r, 4, &low))
			return reader_expected(r, "four hexadecimal digits after \\u");
		if (low < 0xDC00 || low > 0xDFFF)
			return reader_fail(r, pos, "found half of a surrogate pair, expected both");
		c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
	}
	if (!reader_add_char(r, c))
		return reader_fail(r, pos, "found half of a surrogate pair, expected both");
	return 0;
}

/* The cursor is behind the backslash. */
static int read_escape(struct reader *r)
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	char c = r->p < r->end ? *r->p : '\0';
	const char *at = c ? strchr(names, c) : NULL;
	struct doc_pos pos = reader_pos(r);

	pos.col--;
	if (at) {
		buf_addc(&r->scratch, values[at - names]);
		r->p++;
		return 0;
	}
	if (c != 'u')
		return reader_expected(r, "one of \" \\ / b f n r t u after a backslash");
	r->p++;
	return read_unicode(r, pos);
}

/* The text of a string into scratch; the cursor is behind the opening quote. */
static int read_string(struct reader *r)
{
	buf_reset(&r->scratch);
	for (;;) {
		const char *from = r->p;

		while (r->p < r->end && *r->p != '"' && *r->p != '\\' &&
		       (unsigned char)*r->p >= 0x20)
			r->p++;
		buf_add(&r->scratch, from, (size_t)(r->p - from));
		if (r->p == r->end || (unsigned char)*r->p < 0x20)
			return reader_expected(r, "the end of the string");
		if (*r->p++ == '"')
			return 0;
		if (read_escape(r) < 0)
			return -1;
	}
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '+' || c == '-' || c == '.';
}

/* true, false, null and numbers. */
static int read_word(struct reader *r, struct doc **ret_doc)
{
	char shown[QUOTE_MAX];
	struct doc_pos pos = reader_pos(r);
	struct str word = {r->p, 0};

	while (r->p < r->end && is_word(*r->p))
		r->p++;
	word.n = (size_t)(r->p - word.p);
	if (word.n == 0)
		return reader_expected(r, "a value");

	struct doc *d;
	if (num_shape(word) != NUM_NONE) {
		d = reader_number(r, word, pos);
	} else if (str_is(word, "true") || str_is(word, "false")) {
		d = reader_node(r, DOC_BOOL, pos);
		if (d)
			d->b = word.n == 4;
	} else if (str_is(word, "null")) {
		d = reader_node(r, DOC_NULL, pos);
	} else {
		return reader_fail(r, pos, "found '%s', expected a value (a string needs quotes)",
				   str_quote(word, shown));
	}
	if (!d)
		return -1;
	*ret_doc = d;
	return 0;
}

static int read_array(struct reader *r, struct doc *d)
{
	if (take(r, ']'))
		return 0;
	for (;;) {
		struct doc *item = NULL;

		skip_space(r);
		if (r->p < r->end && *r->p == ']')
			return reader_expected(r, "a value after the comma");
		if (read_value(r, &item) < 0)
			return -1;
		doc_append(r->a, d, item);
		if (take(r, ']'))
			return 0;
		if (!take(r, ','))
			return reader_expected(r, "',' or ']'");
	}
}

static int read_object(struct reader *r, struct doc *d)
{
	if (take(r, '}'))
		return 0;
	for (;;) {
		skip_space(r);
		struct doc_pos key_pos = reader_pos(r);

		if (!take(r, '"'))
			return reader_expected(r, d->table.n ? "a name in quotes after the comma"
							     : "a name in quotes or '}'");
		if (read_string(r) < 0)
			return -1;
		struct str key = arena_str(r->a, buf_str(&r->scratch));
		struct doc *value = NULL;

		if (!take(r, ':'))
			return reader_expected(r, "':'");
		if (read_value(r, &value) < 0 || reader_put(r, d, key, key_pos, value) < 0)
			return -1;
		if (take(r, '}'))
			return 0;
		if (!take(r, ','))
			return reader_expected(r, "',' or '}'");
	}
}

static int read_value(struct reader *r, struct doc **ret_doc)
{
	skip_space(r);
	struct doc_pos pos = reader_pos(r);
	char c = r->p < r->end ? *r->p : '\0';

	if (c != '"' && c != '[' && c != '{')
		return read_word(r, ret_doc);

	struct doc *d = reader_node(r,
				    c == '"'   ? DOC_STRING
				    : c == '[' ? DOC_ARRAY
					       : DOC_TABLE,
				    pos);
	if (!d)
		return -1;
	r->p++;
	if (c == '"') {
		if (read_string(r) < 0)
			return -1;
		d->s = arena_str(r->a, buf_str(&r->scratch));
	} else {
		if (reader_enter(r, pos) < 0)
			return -1;
		if ((c == '[' ? read_array(r, d) : read_object(r, d)) < 0)
			return -1;
		r->depth--;
	}
	*ret_doc = d;
	return 0;
}

int json_parse(struct str text, struct arena *a, struct doc **ret_doc, struct err *err)
{
	return json_parse_limited(text, DOC_MAX_BYTES, DOC_MAX_NODES, a, ret_doc, err);
}

int json_parse_limited(struct str text, size_t max_bytes, size_t max_nodes, struct arena *a,
		       struct doc **ret_doc, struct err *err)
{
	CLEANUP(reader_release) struct reader r = {0};
	struct doc *d = NULL;

	if (reader_open_limited(&r, text, max_bytes, max_nodes, a, err) < 0 ||
	    read_value(&r, &d) < 0)
		return -1;
	skip_space(&r);
	if (r.p < r.end)
		return reader_expected(&r, "the end of the text");
	*ret_doc = d;
	return 0;
}
