/*
 * reply - answers of the master as a tree.
 *
 * json_parse bounds its text and its nodes, because most of what it reads comes
 * from outside.  A run with thousands of nodes is larger than that, and it
 * comes from our own master: it is split at the commas of its large arrays and
 * objects, and each piece is read by json_parse.
 */
#include <string.h>

#include "base/arena.h"
#include "cli/client/api.h"
#include "fmt/doc.h"

#define PIECE (64 * 1024) /* read in one go; cannot hold more nodes than json_parse takes */

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static struct str skip_space(struct str s)
{
	while (s.n && is_space(*s.p))
		s = (struct str){s.p + 1, s.n - 1};
	return s;
}

/* Length of the value or key at the front: up to a comma, colon or closing bracket outside
 * strings and brackets. */
static size_t item_length(struct str s)
{
	int depth = 0;
	bool in_string = false;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];
		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			continue;
		}
		if (c == '"')
			in_string = true;
		else if (c == '{' || c == '[')
			depth++;
		else if (depth == 0 && (c == ',' || c == ':' || c == '}' || c == ']'))
			return i;
		else if (c == '}' || c == ']')
			depth--;
	}
	return s.n;
}

static int parse_large(struct str text, int depth, struct arena *a, struct doc **ret,
		       struct err *err);

/* One "key":value or value; *s moves behind it. */
static int parse_member(struct str *s, struct doc *into, int depth, struct arena *a,
			struct err *err)
{
	struct str key = {0};
	struct doc *value;

	size_t n = item_length(*s);
	if (into->type == DOC_TABLE) {
		struct doc *k;
		if (n == s->n || s->p[n] != ':' ||
		    json_parse((struct str){s->p, n}, a, &k, err) < 0 || k->type != DOC_STRING)
			return err_set(err, ERR_PROTOCOL, "not JSON: a key is missing");
		key = k->s;
		*s = (struct str){s->p + n + 1, s->n - n - 1};
		n = item_length(*s);
	}
	if (parse_large((struct str){s->p, n}, depth + 1, a, &value, err) < 0)
		return -1;
	*s = (struct str){s->p + n, s->n - n};
	if (into->type == DOC_TABLE)
		doc_set(a, into, key, value);
	else
		doc_append(a, into, value);
	return 0;
}

static int parse_large(struct str text, int depth, struct arena *a, struct doc **ret,
		       struct err *err)
{
	struct str s = skip_space(text);

	if (text.n <= PIECE || s.n == 0 || (*s.p != '{' && *s.p != '[')) {
		if (json_parse(text, a, ret, err) == 0)
			return 0;
		err->kind = ERR_PROTOCOL;
		return err_wrap(err, "not JSON");
	}
	if (depth > DOC_MAX_DEPTH)
		return err_set(err, ERR_PROTOCOL, "not JSON: nested too deeply");
	char end = *s.p == '{' ? '}' : ']';
	struct doc *d = doc_new(a, *s.p == '{' ? DOC_TABLE : DOC_ARRAY);
	s = skip_space((struct str){s.p + 1, s.n - 1});
	while (s.n && *s.p != end) {
		if (parse_member(&s, d, depth, a, err) < 0)
			return -1;
		s = skip_space(s);
		if (s.n && *s.p == ',')
			s = skip_space((struct str){s.p + 1, s.n - 1});
		else if (s.n && *s.p != end)
			return err_set(err, ERR_PROTOCOL, "not JSON: a comma is missing");
	}
	if (s.n == 0 || skip_space((struct str){s.p + 1, s.n - 1}).n)
		return err_set(err, ERR_PROTOCOL, "not JSON: it ends too early or too late");
	*ret = d;
	return 0;
}

int reply_parse(struct str text, struct arena *a, struct doc **ret, struct err *err)
{
	return parse_large(text, 0, a, ret, err);
}
