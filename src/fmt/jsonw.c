#include "fmt/jsonw.h"

#include <assert.h>
#include <math.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/utf8.h"
#include "fmt/number.h"

void jsonw_init(struct jsonw *w, struct buf *out)
{
	*w = (struct jsonw){.out = out};
}

static void before_value(struct jsonw *w)
{
	if (w->need_comma)
		buf_addc(w->out, ',');
	w->need_comma = true;
}

void jsonw_open(struct jsonw *w, char bracket)
{
	assert(w->depth < JSONW_MAX_DEPTH && (bracket == '{' || bracket == '['));
	before_value(w);
	buf_addc(w->out, bracket);
	w->stack[w->depth++] = bracket;
	w->need_comma = false;
}

void jsonw_close(struct jsonw *w)
{
	assert(w->depth > 0);
	buf_addc(w->out, w->stack[--w->depth] == '{' ? '}' : ']');
	w->need_comma = true;
}

/* A byte that must be escaped, or that starts a UTF-8 sequence, which must be checked. */
static bool is_special(char c)
{
	unsigned char u = (unsigned char)c;

	return u < 0x20 || u == '"' || u == '\\' || u >= 0x80;
}

static void add_special(struct buf *out, unsigned char c)
{
	static const char names[] = "\"\\bfnrt", values[] = "\"\\\b\f\n\r\t";
	const char *at = c ? strchr(values, c) : NULL;

	if (at)
		buf_add(out, (char[]){'\\', names[at - values]}, 2);
	else
		buf_printf(out, "\\u%04x", c);
}

static void add_quoted(struct buf *out, struct str s)
{
	size_t i = 0;

	buf_addc(out, '"');
	while (i < s.n) {
		size_t from = i;

		while (i < s.n && !is_special(s.p[i]))
			i++;
		buf_add(out, s.p + from, i - from);
		if (i == s.n)
			break;
		unsigned char c = (unsigned char)s.p[i];

		if (c < 0x80) {
			add_special(out, c);
			i++;
			continue;
		}
		uint32_t decoded;
		size_t len = utf8_decode(s.p + i, s.n - i, &decoded);

		buf_addstr(out, len ? (struct str){s.p + i, len} : STR("\xEF\xBF\xBD"));
		i += len ? len : 1;
	}
	buf_addc(out, '"');
}

void jsonw_key_str(struct jsonw *w, struct str key)
{
	assert(w->depth > 0 && w->stack[w->depth - 1] == '{');
	before_value(w);
	add_quoted(w->out, key);
	buf_addc(w->out, ':');
	w->need_comma = false;
}

void jsonw_key(struct jsonw *w, const char *key)
{
	jsonw_key_str(w, str_from(key));
}

void jsonw_str(struct jsonw *w, struct str s)
{
	before_value(w);
	add_quoted(w->out, s);
}

void jsonw_z(struct jsonw *w, const char *z)
{
	if (z)
		jsonw_str(w, str_from(z));
	else
		jsonw_null(w);
}

void jsonw_int(struct jsonw *w, int64_t i)
{
	before_value(w);
	buf_addint(w->out, i);
}

void jsonw_double(struct jsonw *w, double d)
{
	char text[NUM_TEXT_MAX];

	before_value(w);
	buf_addz(w->out, isfinite(d) ? num_text(d, text) : "null");
}

void jsonw_bool(struct jsonw *w, bool b)
{
	before_value(w);
	buf_addz(w->out, b ? "true" : "false");
}

void jsonw_null(struct jsonw *w)
{
	before_value(w);
	buf_addz(w->out, "null");
}

void jsonw_raw(struct jsonw *w, struct str json)
{
	before_value(w);
	buf_addstr(w->out, json);
}

void jsonw_kstr(struct jsonw *w, const char *key, struct str s)
{
	jsonw_key(w, key);
	jsonw_str(w, s);
}

void jsonw_kz(struct jsonw *w, const char *key, const char *z)
{
	jsonw_key(w, key);
	jsonw_z(w, z);
}

void jsonw_kint(struct jsonw *w, const char *key, int64_t i)
{
	jsonw_key(w, key);
	jsonw_int(w, i);
}

void jsonw_kdouble(struct jsonw *w, const char *key, double d)
{
	jsonw_key(w, key);
	jsonw_double(w, d);
}

void jsonw_kbool(struct jsonw *w, const char *key, bool b)
{
	jsonw_key(w, key);
	jsonw_bool(w, b);
}

void jsonw_open_error(struct jsonw *w, const struct err *err)
{
	jsonw_open(w, '{');
	jsonw_key(w, "error");
	jsonw_open(w, '{');
	jsonw_kz(w, "kind", err_kind_name(err->kind));
	jsonw_kz(w, "message", err->msg);
}
