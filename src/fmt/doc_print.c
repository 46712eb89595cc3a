/* doc_print - a tree as JSON or TOML text. */
#include "fmt/doc.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/utf8.h"
#include "fmt/jsonw.h"
#include "fmt/number.h"

void doc_put_json(const struct doc *d, struct jsonw *w)
{
	switch (d->type) {
	case DOC_NULL:
		jsonw_null(w);
		break;
	case DOC_BOOL:
		jsonw_bool(w, d->b);
		break;
	case DOC_INT:
		jsonw_int(w, d->i);
		break;
	case DOC_FLOAT:
		if (d->f_text.p)
			jsonw_raw(w, d->f_text);
		else
			jsonw_double(w, d->f);
		break;
	case DOC_STRING:
	case DOC_TIME:
		jsonw_str(w, d->s);
		break;
	case DOC_ARRAY:
		jsonw_open(w, '[');
		for (size_t i = 0; i < d->array.n; i++)
			doc_put_json(d->array.v[i], w);
		jsonw_close(w);
		break;
	case DOC_TABLE:
		jsonw_open(w, '{');
		for (size_t i = 0; i < d->table.n; i++) {
			jsonw_key_str(w, d->table.v[i].key);
			doc_put_json(d->table.v[i].value, w);
		}
		jsonw_close(w);
		break;
	}
}

void doc_to_json(const struct doc *d, struct buf *out)
{
	struct jsonw w;

	jsonw_init(&w, out);
	doc_put_json(d, &w);
}

static void toml_string(struct buf *out, struct str s)
{
	static const char names[] = "\"\\bfnrt", values[] = "\"\\\b\f\n\r\t";

	buf_addc(out, '"');
	for (size_t i = 0; i < s.n;) {
		unsigned char c = (unsigned char)s.p[i];
		const char *at = c ? strchr(values, c) : NULL;
		uint32_t decoded;
		size_t len = utf8_decode(s.p + i, s.n - i, &decoded);

		if (at)
			buf_printf(out, "\\%c", names[at - values]);
		else if (c < 0x20 || c == 0x7F)
			buf_printf(out, "\\u%04X", c);
		else
			buf_addstr(out, len ? (struct str){s.p + i, len} : STR("\xEF\xBF\xBD"));
		i += len ? len : 1;
	}
	buf_addc(out, '"');
}

static void toml_key(struct buf *out, struct str key)
{
	bool bare = key.n > 0;

	for (size_t i = 0; i < key.n; i++) {
		char c = key.p[i];

		bare = bare && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
				(c >= '0' && c <= '9') || c == '_' || c == '-');
	}
	if (bare)
		buf_addstr(out, key);
	else
		toml_string(out, key);
}

static void toml_value(struct buf *out, const struct doc *d);

static void toml_inline_table(struct buf *out, const struct doc *d)
{
	const char *comma = "";

	buf_addc(out, '{');
	for (size_t i = 0; i < d->table.n; i++) {
		const struct doc_entry *e = &d->table.v[i];

		if (e->value->type == DOC_NULL)
			continue;
		buf_addz(out, comma);
		buf_addc(out, ' ');
		toml_key(out, e->key);
		buf_addz(out, " = ");
		toml_value(out, e->value);
		comma = ",";
	}
	buf_addz(out, *comma ? " }" : "}");
}

static void toml_array(struct buf *out, const struct doc *d)
{
	const char *comma = "";

	buf_addc(out, '[');
	for (size_t i = 0; i < d->array.n; i++) {
		if (d->array.v[i]->type == DOC_NULL)
			continue;
		buf_addz(out, comma);
		toml_value(out, d->array.v[i]);
		comma = ", ";
	}
	buf_addc(out, ']');
}

static void toml_value(struct buf *out, const struct doc *d)
{
	char text[NUM_TEXT_MAX];

	switch (d->type) {
	case DOC_NULL:
		break;
	case DOC_BOOL:
		buf_addz(out, d->b ? "true" : "false");
		break;
	case DOC_INT:
		buf_printf(out, "%lld", (long long)d->i);
		break;
	case DOC_FLOAT:
		buf_addz(out, d->f_text.p ? d->f_text.p : num_text(d->f, text));
		break;
	case DOC_STRING:
		toml_string(out, d->s);
		break;
	case DOC_TIME:
		buf_addstr(out, d->s);
		break;
	case DOC_ARRAY:
		toml_array(out, d);
		break;
	case DOC_TABLE:
		toml_inline_table(out, d);
		break;
	}
}

/* An array that is written as [[tables]]. */
static bool is_table_list(const struct doc *d)
{
	if (d->type != DOC_ARRAY || d->array.n == 0)
		return false;
	for (size_t i = 0; i < d->array.n; i++) {
		if (d->array.v[i]->type != DOC_TABLE)
			return false;
	}
	return true;
}

static bool has_header(const struct doc *d)
{
	return d->type == DOC_TABLE || is_table_list(d);
}

/* The keys from the root to a table, for its header. */
struct way {
	const struct way *up;
	struct str key;
};

static void add_way(struct buf *out, const struct way *w)
{
	if (w->up) {
		add_way(out, w->up);
		buf_addc(out, '.');
	}
	toml_key(out, w->key);
}

static void add_header(struct buf *out, const struct way *w, const char *open, const char *close)
{
	if (out->n > 0)
		buf_addc(out, '\n');
	buf_addz(out, open);
	add_way(out, w);
	buf_addz(out, close);
}

/* Plain values first: after a [header] they would belong to that table. */
static void toml_table(struct buf *out, const struct doc *d, const struct way *w);

static void toml_section(struct buf *out, const struct doc *d, const struct way *w)
{
	if (d->type == DOC_ARRAY) {
		for (size_t i = 0; i < d->array.n; i++) {
			add_header(out, w, "[[", "]]\n");
			toml_table(out, d->array.v[i], w);
		}
		return;
	}
	/* [a] is not needed when [a.b] follows and a has no plain value. */
	bool only_sections = d->table.n > 0;

	for (size_t i = 0; i < d->table.n; i++)
		only_sections = only_sections && has_header(d->table.v[i].value);
	if (!only_sections)
		add_header(out, w, "[", "]\n");
	toml_table(out, d, w);
}

static void toml_table(struct buf *out, const struct doc *d, const struct way *w)
{
	for (size_t i = 0; i < d->table.n; i++) {
		const struct doc_entry *e = &d->table.v[i];

		if (e->value->type == DOC_NULL || has_header(e->value))
			continue;
		toml_key(out, e->key);
		buf_addz(out, " = ");
		toml_value(out, e->value);
		buf_addc(out, '\n');
	}
	for (size_t i = 0; i < d->table.n; i++) {
		const struct doc_entry *e = &d->table.v[i];
		struct way below = {.up = w, .key = e->key};

		if (has_header(e->value))
			toml_section(out, e->value, &below);
	}
}

void doc_to_toml(const struct doc *d, struct buf *out)
{
	if (d->type == DOC_TABLE)
		toml_table(out, d, NULL);
	else
		toml_value(out, d);
}

void doc_value_to_toml(const struct doc *d, struct buf *out)
{
	toml_value(out, d);
}

const char *doc_json_text(struct arena *a, const struct doc *d)
{
	struct buf text;

	if (!d)
		return "{}";
	buf_init(&text, SIZE_MAX / 2);
	doc_to_json(d, &text);
	const char *z = arena_strndup(a, buf_str(&text).p, text.n);
	buf_release(&text);
	return z;
}
