/*
 * yaml_print - a tree as YAML in block style.
 *
 * A string that any reader of YAML 1.1 or 1.2 could take for something else is quoted as in JSON.
 */
#include "base/buf.h"
#include "fmt/doc.h"
#include "fmt/jsonw.h"
#include "fmt/number.h"

static void print_value(struct buf *out, const struct doc *d, int depth);

static bool is_word_of_yaml(struct str s)
{
	static const char *const words[] = {"y",   "n",	   "yes",   "no",   "on",
					    "off", "true", "false", "null", "nan"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (s.n == strlen(words[i]) && strncasecmp(s.p, words[i], s.n) == 0)
			return true;
	return false;
}

/* Only texts that begin with a letter or '/' and have nothing that YAML looks at. */
static bool is_plain(struct str s)
{
	if (s.n == 0 || is_word_of_yaml(s))
		return false;
	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		bool digit = c >= '0' && c <= '9';
		bool inner = i > 0 && i + 1 < s.n;

		if (!letter && c != '/' && !(i > 0 && digit) && !(i > 0 && strchr("_-.", c) && c) &&
		    !(inner && c == ':' && s.p[i + 1] != ' '))
			return false;
	}
	return true;
}

static void print_text(struct buf *out, struct str s)
{
	struct jsonw w;

	if (is_plain(s)) {
		buf_addstr(out, s);
		return;
	}
	jsonw_init(&w, out);
	jsonw_str(&w, s);
}

static void indent(struct buf *out, int depth)
{
	for (int i = 0; i < depth; i++)
		buf_addz(out, "  ");
}

static bool is_block(const struct doc *d)
{
	return (d->type == DOC_TABLE && d->table.n > 0) || (d->type == DOC_ARRAY && d->array.n > 0);
}

/* The first entry stands on the line of the "- " before it. */
static void print_table(struct buf *out, const struct doc *d, int depth)
{
	for (size_t i = 0; i < d->table.n; i++) {
		const struct doc *value = d->table.v[i].value;

		if (i > 0)
			indent(out, depth);
		print_text(out, d->table.v[i].key);
		buf_addc(out, ':');
		if (!is_block(value)) {
			buf_addc(out, ' ');
			print_value(out, value, depth);
			buf_addc(out, '\n');
			continue;
		}
		buf_addc(out, '\n');
		/* The items of a list are not indented below its key. */
		int below = value->type == DOC_TABLE ? depth + 1 : depth;

		indent(out, below);
		print_value(out, value, below);
	}
}

static void print_list(struct buf *out, const struct doc *d, int depth)
{
	for (size_t i = 0; i < d->array.n; i++) {
		const struct doc *item = d->array.v[i];

		if (i > 0)
			indent(out, depth);
		buf_addz(out, "- ");
		print_value(out, item, depth + 1);
		if (!is_block(item))
			buf_addc(out, '\n');
	}
}

static void print_value(struct buf *out, const struct doc *d, int depth)
{
	char number[NUM_TEXT_MAX];

	switch (d->type) {
	case DOC_NULL:
		buf_addz(out, "null");
		break;
	case DOC_BOOL:
		buf_addz(out, d->b ? "true" : "false");
		break;
	case DOC_INT:
		buf_printf(out, "%lld", (long long)d->i);
		break;
	case DOC_FLOAT:
		buf_addz(out, d->f_text.p ? d->f_text.p : num_text(d->f, number));
		break;
	case DOC_STRING:
	case DOC_TIME:
		print_text(out, d->s);
		break;
	case DOC_ARRAY:
		if (d->array.n > 0)
			print_list(out, d, depth);
		else
			buf_addz(out, "[]");
		break;
	case DOC_TABLE:
		if (d->table.n > 0)
			print_table(out, d, depth);
		else
			buf_addz(out, "{}");
		break;
	}
}

void doc_to_yaml(const struct doc *d, struct buf *out)
{
	print_value(out, d, 0);
	if (!is_block(d))
		buf_addc(out, '\n');
}
