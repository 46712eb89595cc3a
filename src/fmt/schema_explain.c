/* schema_explain - finding a row by its path, and its text for `regatta explain`. */
#include "fmt/schema.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/suggest.h"
#include "fmt/quote.h"
#include "fmt/schema_words.h"

#define TEXT_COLUMNS 80
#define PATH_MAX_BYTES 1024
#define WORDS_MAX 128 /* most keys that are compared for a suggestion */

/* What a path leads to: a field, or the root when field is NULL. */
struct key_target {
	const struct field *field;
	const struct schema *table; /* the table whose keys may follow; NULL after a plain value */
	struct buf path;	    /* as the reference writes it: roles.NAME.count */
};

static void key_target_release(struct key_target *t)
{
	buf_release(&t->path);
}

/* One part off the front of the path; quotes keep dots together. */
static struct str cut_part(struct str *path)
{
	char quote_mark = path->n > 0 ? path->p[0] : '\0';
	struct str part;

	if (quote_mark == '"' || quote_mark == '\'') {
		const char *end = memchr(path->p + 1, quote_mark, path->n - 1);

		if (end) {
			part = (struct str){path->p + 1, (size_t)(end - path->p) - 1};
			path->n -= part.n + 2;
			path->p += part.n + 2;
			str_cut(path, '.');
			return part;
		}
	}
	return str_cut(path, '.');
}

/* "data[0]" is the list data. */
static struct str without_index(struct str part)
{
	const char *bracket = part.n > 0 ? memchr(part.p, '[', part.n) : NULL;

	if (bracket && part.p[part.n - 1] == ']')
		part.n = (size_t)(bracket - part.p);
	return part;
}

static const struct field *field_of(const struct schema *sc, struct str name)
{
	for (const struct field *f = sc->fields; f->name; f++) {
		if (str_is(name, f->name))
			return f;
	}
	return NULL;
}

static void add_path(struct buf *path, const char *part)
{
	buf_printf(path, "%s%s", path->n ? "." : "", part);
}

/* Follow the path; on failure *ret_bad is the unknown part, and t the table where it was
 * looked up. */
static bool follow(const struct schema *root, struct str path, struct key_target *t,
		   struct str *ret_bad)
{
	*t = (struct key_target){.table = root};
	buf_init(&t->path, PATH_MAX_BYTES);
	while (path.p && (path.n > 0 || t->field)) {
		struct str part = cut_part(&path);
		const struct field *f = t->table ? field_of(t->table, without_index(part)) : NULL;

		if (!f) {
			*ret_bad = part;
			return false;
		}
		t->field = f;
		t->table = f->sub;
		add_path(&t->path, f->name);
		/* The keys below these are the user's own. */
		if ((f->type == FIELD_MAP || f->type == FIELD_ENV) && path.p) {
			cut_part(&path);
			add_path(&t->path, "NAME");
		}
		while (f->type == FIELD_DOC && path.p) {
			cut_part(&path);
			add_path(&t->path, "NAME");
		}
	}
	return true;
}

const struct field *schema_find(const struct schema *root, struct str path)
{
	CLEANUP(key_target_release) struct key_target t = {0};
	struct str bad;

	return follow(root, path, &t, &bad) ? t.field : NULL;
}

/* Words broken at TEXT_COLUMNS; the cursor is at column `at`, further lines are indented by
 * `indent`. */
static void add_wrapped(struct buf *out, struct str text, size_t at, size_t indent)
{
	bool first = true;

	while (text.p) {
		struct str word = str_cut(&text, ' ');

		if (!first && at + 1 + word.n > TEXT_COLUMNS) {
			buf_printf(out, "\n%*s", (int)indent, "");
			at = indent;
			first = true;
		}
		if (!first)
			buf_addc(out, ' ');
		buf_addstr(out, word);
		at += word.n + (first ? 0 : 1);
		first = false;
	}
	buf_addc(out, '\n');
}

static void add_indented(struct buf *out, struct str text)
{
	while (text.p) {
		struct str line = str_cut(&text, '\n');

		buf_printf(out, "    %.*s\n", STR_ARG(line));
	}
}

/* Up to the first full stop: enough for a list. */
static struct str first_sentence(const char *help)
{
	const char *stop = strstr(help, ". ");

	return stop ? (struct str){help, (size_t)(stop - help) + 1} : str_from(help);
}

static void explain_keys(const struct schema *sc, struct buf *out)
{
	size_t width = 0;

	for (const struct field *f = sc->fields; f->name; f++)
		width = strlen(f->name) > width ? strlen(f->name) : width;
	buf_addz(out, "\nKeys:\n");
	for (const struct field *f = sc->fields; f->name; f++) {
		buf_printf(out, "  %-*s  ", (int)width, f->name);
		add_wrapped(out, first_sentence(f->help ? f->help : ""), width + 4, width + 4);
	}
}

static void explain_field(const struct key_target *t, struct buf *out)
{
	const struct field *f = t->field;
	CLEANUP(buf_release) struct buf type = {0};
	CLEANUP(buf_release) struct buf fallback = {0};

	buf_init(&type, PATH_MAX_BYTES);
	buf_init(&fallback, PATH_MAX_BYTES);
	words_field(f, &type);
	words_default(f, &fallback);
	buf_printf(out, "%s: %s", buf_str(&t->path).p, buf_str(&type).p);
	if (f->required)
		buf_addz(out, ", required");
	else if (fallback.n)
		buf_printf(out, ", default %s", buf_str(&fallback).p);
	buf_addz(out, "\n\n");
	add_wrapped(out, str_from(f->help ? f->help : ""), 0, 0);
	if (f->example) {
		buf_addz(out, "\nExample:\n");
		add_indented(out, str_from(f->example));
	}
	if (f->sub)
		explain_keys(f->sub, out);
}

/* A key of this name below the tables of sc, as the reference writes it. */
static bool find_below(const struct schema *sc, struct str name, const char *prefix,
		       struct buf *ret_path)
{
	char path[PATH_MAX_BYTES];

	for (const struct field *f = sc->fields; f->name; f++) {
		if (!f->sub)
			continue;
		snprintf(path, sizeof(path), "%s%s%s.", prefix, f->name,
			 f->type == FIELD_MAP ? ".NAME" : "");
		if (field_of(f->sub, name)) {
			buf_printf(ret_path, "%s%.*s", path, STR_ARG(name));
			return true;
		}
		if (find_below(f->sub, name, path, ret_path))
			return true;
	}
	return false;
}

static int no_such_key(const struct key_target *t, struct str path, struct str bad, struct err *err)
{
	const char *words[WORDS_MAX];
	size_t n = 0;
	char shown[QUOTE_MAX], shown_bad[QUOTE_MAX];

	if (!t->table)
		return err_set(err, ERR_NOT_FOUND, "no key '%s': '%s' has no keys of its own",
			       str_quote(path, shown), buf_str(&t->path).p);
	CLEANUP(buf_release) struct buf elsewhere = {0};
	buf_init(&elsewhere, PATH_MAX_BYTES);
	/* A key of exactly this name in another table is a better hint than a similar name in this one. */
	if (!t->field && find_below(t->table, without_index(bad), "", &elsewhere))
		return err_set(err, ERR_NOT_FOUND, "no key '%s': did you mean '%s'?",
			       str_quote(path, shown), buf_str(&elsewhere).p);
	for (const struct field *f = t->table->fields; f->name && n < WORDS_MAX; f++)
		words[n++] = f->name;
	const char *near = suggest_word(words, n, without_index(bad));

	if (!near)
		return err_set(err, ERR_NOT_FOUND, "no key '%s' (there is no '%s' in %s)",
			       str_quote(path, shown), str_quote(bad, shown_bad),
			       t->path.n ? buf_str(&t->path).p : t->table->name);
	return err_set(err, ERR_NOT_FOUND, "no key '%s': did you mean '%s%s%s'?",
		       str_quote(path, shown), buf_str(&t->path).p, t->path.n ? "." : "", near);
}

int schema_explain(const struct schema *root, struct str path, struct buf *out, struct err *err)
{
	CLEANUP(key_target_release) struct key_target t = {0};
	struct str bad;

	if (!follow(root, path, &t, &bad))
		return no_such_key(&t, path, bad, err);
	if (t.field) {
		explain_field(&t, out);
		return 0;
	}
	buf_printf(out, "%s\n\n", root->name);
	add_wrapped(out, str_from(root->help ? root->help : ""), 0, 0);
	explain_keys(root, out);
	return 0;
}
