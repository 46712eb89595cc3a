#include "spec/variable.h"

#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/path.h"

#define SHOWN 60 /* bytes of a word in a message */

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

bool variable_name_ok(struct str name)
{
	if (name.n == 0 || name.n > VARIABLE_MAX || (name.p[0] >= '0' && name.p[0] <= '9'))
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (!is_name_char(name.p[i]))
			return false;
	return true;
}

const char *variable_fault(struct str name, struct str value)
{
	if (!variable_name_ok(name))
		return " cannot be the name of a variable: use letters, digits and _, and no digit first";
	if (str_starts(name, STR("REGATTA_")))
		return ": names that start with REGATTA_ are set by regatta itself: choose another";
	if (name.n + 1 + value.n > VARIABLE_MAX)
		return " is longer than the 131071 bytes that Linux takes: put it in a file";
	return NULL;
}

bool variable_pattern_ok(struct str pattern)
{
	bool fixed = false;

	for (size_t i = 0; i < pattern.n; i++) {
		char c = pattern.p[i];

		if (!is_name_char(c) && c != '*' && c != '?')
			return false;
		fixed = fixed || is_name_char(c);
	}
	return fixed && !(pattern.p[0] >= '0' && pattern.p[0] <= '9');
}

bool variable_matches(const struct strs *patterns, struct str name)
{
	CLEANUP(freep) char *z = patterns->n ? xstrndup(name.p, name.n) : NULL;

	for (size_t i = 0; i < patterns->n; i++)
		if (path_match(patterns->v[i], z))
			return true;
	return false;
}

/* ---- files ---- */

struct env_reader {
	const char *file;
	struct str rest;
	int line; /* of the first character of rest */
	struct arena *a;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct env_reader *r)
{
	while (r->rest.n && is_blank(r->rest.p[0]))
		r->rest = (struct str){r->rest.p + 1, r->rest.n - 1};
}

static char take(struct env_reader *r)
{
	char c = r->rest.p[0];

	r->line += c == '\n';
	r->rest = (struct str){r->rest.p + 1, r->rest.n - 1};
	return c;
}

static char unescape(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	default:
		return c;
	}
}

/* The text between quotes; the first of them is the next character. */
static int read_quoted(struct env_reader *r, struct buf *value, struct err *err)
{
	int began = r->line;
	char quote = take(r);

	while (r->rest.n) {
		char c = take(r);

		if (c == quote)
			return 0;
		if (c == '\\' && quote == '"' && r->rest.n && r->rest.p[0] != '\0' &&
		    strchr("nrt\"\\$", r->rest.p[0]))
			c = unescape(take(r));
		buf_addc(value, c);
	}
	return err_set(err, ERR_INVALID, "%s:%d: the quote %c is not closed", r->file, began,
		       quote);
}

/* Up to the end of the line, or to a '#' after a blank. */
static void read_plain(struct env_reader *r, struct buf *value)
{
	while (r->rest.n && r->rest.p[0] != '\n') {
		if (r->rest.p[0] == '#' && (value->n == 0 || is_blank(value->p[value->n - 1])))
			break;
		buf_addc(value, take(r));
	}
	while (value->n && is_blank(value->p[value->n - 1]))
		value->n--;
}

/* What may follow a value: blanks and a comment. */
static int end_line(struct env_reader *r, struct err *err)
{
	skip_blanks(r);
	if (r->rest.n && r->rest.p[0] != '\n' && r->rest.p[0] != '#')
		return err_set(
			err, ERR_INVALID,
			"%s:%d: there is more after the closing quote: quote the whole value",
			r->file, r->line);
	while (r->rest.n && take(r) != '\n')
		;
	return 0;
}

static int read_name(struct env_reader *r, struct str *ret, struct err *err)
{
	const char *from = r->rest.p;

	while (r->rest.n && r->rest.p[0] != '=' && r->rest.p[0] != '\n')
		take(r);
	struct str name = str_trim((struct str){from, (size_t)(r->rest.p - from)});

	if (str_starts(name, STR("export ")))
		name = str_trim((struct str){name.p + 7, name.n - 7});
	/* The text of a line without '=' may be a secret, or part of one. */
	if (!r->rest.n || r->rest.p[0] != '=')
		return err_set(err, ERR_INVALID, "%s:%d: expected NAME=VALUE", r->file, r->line);
	take(r);
	*ret = name;
	return 0;
}

static int read_variable(struct env_reader *r, struct env_list *list, struct err *err)
{
	CLEANUP(buf_release) struct buf value = {0};
	int line = r->line;
	struct str name;

	if (read_name(r, &name, err) < 0)
		return -1;
	buf_init(&value, VARIABLE_MAX + 1);
	skip_blanks(r);
	if (r->rest.n && (r->rest.p[0] == '"' || r->rest.p[0] == '\'')) {
		if (read_quoted(r, &value, err) < 0)
			return -1;
	} else {
		read_plain(r, &value);
	}
	if (end_line(r, err) < 0)
		return -1;
	const char *fault = variable_fault(name, buf_str(&value));

	if (fault)
		return err_set(err, ERR_INVALID, "%s:%d: '%.*s'%s", r->file, line,
			       (int)(name.n < SHOWN ? name.n : SHOWN), name.p, fault);
	if (!str_is_utf8(buf_str(&value)) || (value.n && memchr(value.p, '\0', value.n)))
		return err_set(err, ERR_INVALID, "%s:%d: the value of %.*s is not UTF-8 text",
			       r->file, line, STR_ARG(name));
	variables_set(r->a, list, arena_str(r->a, name).p, arena_str(r->a, buf_str(&value)).p);
	return 0;
}

int variables_parse(const char *file, struct str text, struct arena *a, struct env_list *ret,
		    struct err *err)
{
	struct env_reader r = {.file = file, .rest = text, .line = 1, .a = a};

	if (str_starts(r.rest, STR("\xef\xbb\xbf")))
		r.rest = (struct str){r.rest.p + 3, r.rest.n - 3};
	while (skip_blanks(&r), r.rest.n) {
		if (r.rest.p[0] == '\n' || r.rest.p[0] == '#') {
			if (end_line(&r, err) < 0)
				return -1;
		} else if (read_variable(&r, ret, err) < 0) {
			return -1;
		}
	}
	return 0;
}

void variables_set(struct arena *a, struct env_list *list, const char *name, const char *value)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->v[i].name, name) == 0) {
			list->v[i].value = value;
			return;
		}
	/* Grows in powers of two. */
	if ((list->n & (list->n - 1)) == 0) {
		struct env_pair *more = arena_array(a, struct env_pair, list->n ? 2 * list->n : 1);

		if (list->n)
			memcpy(more, list->v, list->n * sizeof(*more));
		list->v = more;
	}
	list->v[list->n++] = (struct env_pair){name, value};
}
