/*
 * toml - strict TOML 1.0: statements, tables, arrays.
 *
 * Whether a table may be extended depends on how it was defined;
 * that is kept beside the tree, in a slot per key, and dropped at the end.
 */
#include "fmt/doc.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/quote.h"
#include "fmt/reader.h"
#include "fmt/toml_scan.h"

enum origin {
	BY_VALUE,  /* key = value, inline tables and arrays too: closed for ever */
	BY_PATH,   /* the "a" of [a.b]: [a] may still come, once */
	BY_HEADER, /* [a] */
	BY_DOTS,   /* the "a" of a.b = 1: more dots may extend it, [a] may not */
	BY_LIST,   /* [[a]]: each further one adds an item */
};

struct slot {
	struct doc *value;
	enum origin origin;
	struct doc_pos pos;
};

static int read_value(struct reader *r, struct doc **ret_doc);

static void put(struct reader *r, struct doc *table, const struct toml_part *part,
		enum origin origin, struct doc *value)
{
	struct slot *s = arena_new_of(r->a, struct slot);

	*s = (struct slot){.value = value, .origin = origin, .pos = part->pos};
	reader_remember(r, table, part->key, s);
	*doc_entry_push(r->a, table) = (struct doc_entry){
		.key = part->key,
		.key_pos = part->pos,
		.value = value,
	};
}

static struct doc *put_new(struct reader *r, struct doc *table, const struct toml_part *part,
			   enum origin origin, enum doc_type type)
{
	struct doc *d = reader_node(r, type, part->pos);

	if (d)
		put(r, table, part, origin, d);
	return d;
}

static int cannot_extend(struct reader *r, const struct toml_part *part, const struct slot *s)
{
	static const char *const what[] = {
		[BY_VALUE] = "a value",
		[BY_PATH] = "a table",
		[BY_HEADER] = "a [table]",
		[BY_DOTS] = "a table of dotted keys",
		[BY_LIST] = "a list of [[tables]]",
	};
	char shown[QUOTE_MAX];

	return reader_fail(r, part->pos,
			   "found the key '%s' again, expected it once (first at %d:%d, as %s)",
			   str_quote(part->key, shown), s->pos.line, s->pos.col, what[s->origin]);
}

/* One step of a header's path, not the last. */
static int enter_header_part(struct reader *r, struct doc **table, const struct toml_part *part)
{
	struct slot *s = reader_recall(r, *table, part->key);

	if (reader_enter(r, part->pos) < 0)
		return -1;
	if (!s) {
		*table = put_new(r, *table, part, BY_PATH, DOC_TABLE);
		return *table ? 0 : -1;
	}
	if (s->origin == BY_VALUE)
		return cannot_extend(r, part, s);
	*table = s->value;
	if (s->origin == BY_LIST) {
		*table = s->value->array.v[s->value->array.n - 1];
		r->depth++; /* the depth was checked when the list was made */
	}
	return 0;
}

/* Enters the table of the last part of a header such as [a.b]. */
static int open_table(struct reader *r, struct doc **table, const struct toml_part *part,
		      struct doc_pos pos)
{
	struct slot *s = reader_recall(r, *table, part->key);

	if (reader_enter(r, part->pos) < 0)
		return -1;
	if (s && s->origin != BY_PATH)
		return cannot_extend(r, part, s);
	if (s) {
		s->origin = BY_HEADER;
		*table = s->value;
	} else {
		*table = put_new(r, *table, part, BY_HEADER, DOC_TABLE);
		if (!*table)
			return -1;
	}
	(*table)->pos = pos;
	return 0;
}

/* [[a.b]]: its last part. */
static int open_item(struct reader *r, struct doc **table, const struct toml_part *part,
		     struct doc_pos pos)
{
	struct slot *s = reader_recall(r, *table, part->key);

	/* Two levels: the list and the table in it. */
	for (int i = 0; i < 2; i++) {
		if (reader_enter(r, part->pos) < 0)
			return -1;
	}
	if (s && s->origin != BY_LIST)
		return cannot_extend(r, part, s);

	struct doc *list = s ? s->value : put_new(r, *table, part, BY_LIST, DOC_ARRAY);
	struct doc *item = list ? reader_node(r, DOC_TABLE, pos) : NULL;

	if (!item)
		return -1;
	doc_append(r->a, list, item);
	*table = item;
	return 0;
}

/* [path] or [[path]]: *table becomes the table that the next lines fill. */
static int read_header(struct reader *r, struct doc *root, struct doc **table)
{
	struct doc_pos pos = reader_pos(r);
	bool list = r->end - r->p > 1 && r->p[1] == '[';
	struct toml_path path;

	r->p += list ? 2 : 1;
	toml_skip_blank(r);
	if (toml_read_path(r, &path) < 0)
		return -1;
	for (int i = list ? 2 : 1; i > 0; i--) {
		if (r->p == r->end || *r->p != ']')
			return reader_expected(r, list ? "']]'" : "']' or '.'");
		r->p++;
	}
	*table = root;
	r->depth = 1;
	for (size_t i = 0; i + 1 < path.n; i++) {
		if (enter_header_part(r, table, &path.v[i]) < 0)
			return -1;
	}
	const struct toml_part *last = &path.v[path.n - 1];

	return list ? open_item(r, table, last, pos) : open_table(r, table, last, pos);
}

/* One step of the path of "a.b = value", not the last. */
static int enter_dotted_part(struct reader *r, struct doc **table, const struct toml_part *part)
{
	struct slot *s = reader_recall(r, *table, part->key);

	if (reader_enter(r, part->pos) < 0)
		return -1;
	if (!s) {
		*table = put_new(r, *table, part, BY_DOTS, DOC_TABLE);
		return *table ? 0 : -1;
	}
	if (s->origin != BY_DOTS && s->origin != BY_PATH)
		return cannot_extend(r, part, s);
	s->origin = BY_DOTS;
	*table = s->value;
	return 0;
}

/* path = value, into this table. */
static int read_pair(struct reader *r, struct doc *table)
{
	struct toml_path path;
	int depth = r->depth;

	if (toml_read_path(r, &path) < 0)
		return -1;
	if (r->p == r->end || *r->p != '=')
		return reader_expected(r, "'=' after the key");
	r->p++;
	toml_skip_blank(r);
	for (size_t i = 0; i + 1 < path.n; i++) {
		if (enter_dotted_part(r, &table, &path.v[i]) < 0)
			return -1;
	}
	const struct toml_part *last = &path.v[path.n - 1];
	struct slot *s = reader_recall(r, table, last->key);
	struct doc *value;

	if (s)
		return cannot_extend(r, last, s);
	if (read_value(r, &value) < 0)
		return -1;
	r->depth = depth;
	put(r, table, last, BY_VALUE, value);
	return 0;
}

static int read_array(struct reader *r, struct doc *d)
{
	for (;;) {
		struct doc *item;

		if (toml_skip_lines(r) < 0)
			return -1;
		if (r->p < r->end && *r->p == ']')
			break;
		if (read_value(r, &item) < 0)
			return -1;
		doc_append(r->a, d, item);
		if (toml_skip_lines(r) < 0)
			return -1;
		if (r->p < r->end && *r->p == ']')
			break;
		if (r->p == r->end || *r->p != ',')
			return reader_expected(r, "',' or ']'");
		r->p++;
	}
	r->p++;
	return 0;
}

/* On one line, no comma before the end. */
static int read_inline_table(struct reader *r, struct doc *d)
{
	toml_skip_blank(r);
	if (r->p < r->end && *r->p == '}') {
		r->p++;
		return 0;
	}
	for (;;) {
		toml_skip_blank(r);
		if (read_pair(r, d) < 0)
			return -1;
		toml_skip_blank(r);
		char c = r->p < r->end ? *r->p : '\0';

		if (c != '}' && c != ',')
			return reader_expected(r, "',' or '}' on the same line");
		r->p++;
		if (c == '}')
			return 0;
	}
}

static int read_value(struct reader *r, struct doc **ret_doc)
{
	struct doc_pos pos = reader_pos(r);
	char c = r->p < r->end ? *r->p : '\0';

	if (c == '"' || c == '\'')
		return toml_read_string(r, ret_doc);
	if (c != '[' && c != '{')
		return toml_read_plain(r, ret_doc);

	struct doc *d = reader_node(r, c == '[' ? DOC_ARRAY : DOC_TABLE, pos);
	if (!d || reader_enter(r, pos) < 0)
		return -1;
	r->p++;
	if ((c == '[' ? read_array(r, d) : read_inline_table(r, d)) < 0)
		return -1;
	r->depth--;
	*ret_doc = d;
	return 0;
}

int toml_parse(struct str text, struct arena *a, struct doc **ret_doc, struct err *err)
{
	CLEANUP(reader_release) struct reader r = {0};

	if (reader_open(&r, text, a, err) < 0)
		return -1;
	struct doc *root = reader_node(&r, DOC_TABLE, reader_pos(&r));
	struct doc *table = root;

	r.depth = 1;
	for (;;) {
		if (toml_skip_lines(&r) < 0)
			return -1;
		if (r.p == r.end)
			break;
		if ((*r.p == '[' ? read_header(&r, root, &table) : read_pair(&r, table)) < 0)
			return -1;
		if (toml_end_line(&r) < 0)
			return -1;
	}
	*ret_doc = root;
	return 0;
}
