#include "fmt/reader.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/hex.h"
#include "base/map.h"
#include "base/utf8.h"
#include "fmt/number.h"
#include "fmt/quote.h"

#define SCANNED_KEYS 16 /* keys of one table that are compared one by one; more get an index */

/* Where the text stops being UTF-8; only called when it does. */
static int fail_utf8(struct reader *r)
{
	for (;;) {
		uint32_t c;
		size_t len = utf8_decode(r->p, (size_t)(r->end - r->p), &c);

		if (len == 0)
			break;
		r->p += len;
		if (c == '\n')
			reader_newline(r);
	}
	return reader_fail(r, reader_pos(r), "found the byte 0x%02x, expected UTF-8 text",
			   (unsigned char)*r->p);
}

int reader_open(struct reader *r, struct str text, struct arena *a, struct err *err)
{
	return reader_open_limited(r, text, DOC_MAX_BYTES, DOC_MAX_NODES, a, err);
}

int reader_open_limited(struct reader *r, struct str text, size_t max_bytes, size_t max_nodes,
			struct arena *a, struct err *err)
{
	static const struct str bom = {"\xEF\xBB\xBF", 3};

	*r = (struct reader){
		.p = text.p ? text.p : "",
		.line = 1,
		.max_nodes = max_nodes,
		.a = a,
		.err = err,
	};
	buf_init(&r->scratch, max_bytes);
	buf_init(&r->key_buf, max_bytes + sizeof(void *));
	r->end = r->p + text.n;
	r->line_start = r->p;
	if (text.n > max_bytes)
		return reader_fail(r, reader_pos(r),
				   "found a text of %zu bytes, expected at most %zu", text.n,
				   max_bytes);
	if (!str_is_utf8(text))
		return fail_utf8(r);
	if (str_starts(text, bom)) {
		r->p += bom.n;
		r->line_start = r->p;
	}
	r->keys = map_new();
	return 0;
}

void reader_release(struct reader *r)
{
	r->keys = map_free(r->keys);
	buf_release(&r->scratch);
	buf_release(&r->key_buf);
}

struct doc_pos reader_pos(const struct reader *r)
{
	return (struct doc_pos){r->line, (int)(r->p - r->line_start) + 1};
}

void reader_newline(struct reader *r)
{
	r->line++;
	r->line_start = r->p;
}

const char *reader_found(const struct reader *r, char out[static FOUND_MAX])
{
	if (r->p == r->end) {
		snprintf(out, FOUND_MAX, "the end of the text");
		return out;
	}
	unsigned char c = (unsigned char)*r->p;
	bool crlf = c == '\r' && r->end - r->p > 1 && r->p[1] == '\n';

	if (c == '\n' || crlf) {
		snprintf(out, FOUND_MAX, "the end of the line");
	} else if (c == '\t') {
		snprintf(out, FOUND_MAX, "a tab");
	} else if (c < 0x20 || c == 0x7F) {
		snprintf(out, FOUND_MAX, "the control character 0x%02x", c);
	} else {
		char shown[QUOTE_MAX];
		uint32_t decoded;
		size_t len = utf8_decode(r->p, (size_t)(r->end - r->p), &decoded);

		snprintf(out, FOUND_MAX, "'%.32s'", str_quote((struct str){r->p, len}, shown));
	}
	return out;
}

int reader_fail(struct reader *r, struct doc_pos pos, const char *fmt, ...)
{
	char text[sizeof(r->err->msg)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return err_set(r->err, ERR_INVALID, "%d:%d: %s", pos.line, pos.col, text);
}

int reader_expected(struct reader *r, const char *what)
{
	char found[FOUND_MAX];

	return reader_fail(r, reader_pos(r), "found %s, expected %s", reader_found(r, found), what);
}

struct doc *reader_node(struct reader *r, enum doc_type t, struct doc_pos pos)
{
	if (r->nodes == r->max_nodes) {
		reader_fail(r, pos, "found more than %zu values, expected at most that many",
			    r->max_nodes);
		return NULL;
	}
	r->nodes++;
	struct doc *d = doc_new(r->a, t);

	d->pos = pos;
	return d;
}

int reader_enter(struct reader *r, struct doc_pos pos)
{
	if (r->depth == DOC_MAX_DEPTH)
		return reader_fail(r, pos, "found more than %d levels, expected at most that many",
				   DOC_MAX_DEPTH);
	r->depth++;
	return 0;
}

struct doc *reader_number(struct reader *r, struct str text, struct doc_pos pos)
{
	char shown[QUOTE_MAX];
	enum num_shape shape = num_shape(text);
	struct doc *d = reader_node(r, shape == NUM_FLOAT ? DOC_FLOAT : DOC_INT, pos);

	if (!d)
		return NULL;
	if (shape == NUM_FLOAT && str_to_double(text, &d->f)) {
		d->f_text = arena_str(r->a, text);
		return d;
	}
	if (shape == NUM_INT && str_to_i64(text, &d->i))
		return d;
	reader_fail(r, pos, "found %s, expected a number within %s", str_quote(text, shown),
		    shape == NUM_FLOAT ? "a 64-bit float" : "64 bits (-2^63 to 2^63-1)");
	return NULL;
}

bool reader_hex(struct reader *r, int n, uint32_t *ret_value)
{
	uint32_t value = 0;

	for (int i = 0; i < n; i++, r->p++) {
		int digit = r->p < r->end ? hex_digit(*r->p) : -1;

		if (digit < 0)
			return false;
		value = value << 4 | (uint32_t)digit;
	}
	*ret_value = value;
	return true;
}

bool reader_add_char(struct reader *r, uint32_t c)
{
	char bytes[4];
	size_t n = utf8_encode(c, bytes);

	buf_add(&r->scratch, bytes, n);
	return n > 0;
}

/* The map's key is the address of the table followed by the bytes of the key. */
static struct str map_key(struct reader *r, const struct doc *table, struct str key)
{
	buf_reset(&r->key_buf);
	buf_add(&r->key_buf, &table, sizeof(table));
	buf_addstr(&r->key_buf, key);
	return buf_str(&r->key_buf);
}

void *reader_recall(struct reader *r, const struct doc *table, struct str key)
{
	return map_get(r->keys, map_key(r, table, key));
}

void reader_remember(struct reader *r, const struct doc *table, struct str key, void *what)
{
	map_put(r->keys, map_key(r, table, key), what);
}

int reader_duplicate(struct reader *r, struct str key, struct doc_pos key_pos, struct doc_pos first)
{
	char shown[QUOTE_MAX];

	return reader_fail(r, key_pos,
			   "found the key '%s' again, expected it once (first at %d:%d)",
			   str_quote(key, shown), first.line, first.col);
}

/* The entry of the key, or NULL.  In a table of few keys by comparing, in a larger one by the index. */
static const struct doc_entry *find_entry(struct reader *r, const struct doc *table, struct str key)
{
	if (table->table.n > SCANNED_KEYS) {
		uintptr_t number = (uintptr_t)reader_recall(r, table, key);

		return number ? &table->table.v[number - 1] : NULL;
	}
	for (size_t i = 0; i < table->table.n; i++) {
		if (str_eq(table->table.v[i].key, key))
			return &table->table.v[i];
	}
	return NULL;
}

bool reader_has(struct reader *r, const struct doc *table, struct str key)
{
	return find_entry(r, table, key);
}

int reader_put(struct reader *r, struct doc *table, struct str key, struct doc_pos key_pos,
	       struct doc *value)
{
	const struct doc_entry *first = find_entry(r, table, key);

	if (first)
		return reader_duplicate(r, key, key_pos, first->key_pos);
	*doc_entry_push(r->a, table) = (struct doc_entry){
		.key = key,
		.key_pos = key_pos,
		.value = value,
	};
	size_t n = table->table.n;

	/* Index every key when the table outgrows SCANNED_KEYS, then each new one. */
	for (size_t i = n == SCANNED_KEYS + 1 ? 0 : n - 1; n > SCANNED_KEYS && i < n; i++)
		reader_remember(r, table, table->table.v[i].key, (void *)(uintptr_t)(i + 1));
	return 0;
}
