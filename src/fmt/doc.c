#include "fmt/doc.h"

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fmt/quote.h"
#include "fmt/reader.h"
#include "fmt/toml_scan.h"

int doc_parse_named(const char *filename, struct str text, struct arena *a, struct doc **ret_all,
		    struct err *err)
{
	static const struct {
		struct str ending;
		int (*parse)(struct str text, struct arena *a, struct doc **ret_doc,
			     struct err *err);
		bool list; /* it parses to a list of documents */
	} formats[] = {
		{{".toml", 5}, toml_parse, false},
		{{".yaml", 5}, yaml_parse_documents, true},
		{{".yml", 4}, yaml_parse_documents, true},
		{{".json", 5}, json_parse, false},
	};
	char shown[QUOTE_MAX];

	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct doc *d;

		if (!str_ends(str_from(filename), formats[i].ending))
			continue;
		if (formats[i].parse(text, a, &d, err) < 0)
			return -1;
		*ret_all = formats[i].list ? d : doc_new(a, DOC_ARRAY);
		if (!formats[i].list)
			doc_append(a, *ret_all, d);
		return 0;
	}
	return err_set(err, ERR_INVALID,
		       "'%s': expected a name that ends in .toml, .yaml, .yml or .json",
		       str_quote(str_from(filename), shown));
}

const char *doc_type_name(enum doc_type t)
{
	switch (t) {
	case DOC_NULL:
		return "null";
	case DOC_BOOL:
		return "boolean";
	case DOC_INT:
		return "whole number";
	case DOC_FLOAT:
		return "number";
	case DOC_STRING:
		return "string";
	case DOC_TIME:
		return "date or time";
	case DOC_ARRAY:
		return "list";
	case DOC_TABLE:
		return "table";
	}
	return "unknown";
}

struct doc *doc_new(struct arena *a, enum doc_type t)
{
	struct doc *d = arena_new_of(a, struct doc);

	d->type = t;
	if (t == DOC_STRING || t == DOC_TIME)
		d->s = STR("");
	return d;
}

struct doc *doc_new_str(struct arena *a, struct str s)
{
	struct doc *d = doc_new(a, DOC_STRING);

	d->s = arena_str(a, s);
	return d;
}

struct doc *doc_new_int(struct arena *a, int64_t i)
{
	struct doc *d = doc_new(a, DOC_INT);

	d->i = i;
	return d;
}

struct doc *doc_new_bool(struct arena *a, bool b)
{
	struct doc *d = doc_new(a, DOC_BOOL);

	d->b = b;
	return d;
}

struct doc *doc_new_float(struct arena *a, double f)
{
	struct doc *d = doc_new(a, DOC_FLOAT);

	d->f = f;
	return d;
}

/* Room for one item more than n.  The capacity doubles, so that the arena holds at most twice what is used. */
static void *grow(struct arena *a, void *v, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return v;
	*cap = *cap ? *cap * 2 : 4;
	void *bigger = arena_alloc(a, *cap * size);

	if (n > 0)
		memcpy(bigger, v, n * size);
	return bigger;
}

struct doc *doc_copy(struct arena *a, const struct doc *d)
{
	struct doc *copy = doc_new(a, d->type);

	*copy = *d;
	if (d->type == DOC_STRING || d->type == DOC_TIME)
		copy->s = arena_str(a, d->s);
	if (d->type == DOC_FLOAT && d->f_text.p)
		copy->f_text = arena_str(a, d->f_text);
	if (d->type == DOC_ARRAY) {
		copy->array.n = copy->array.cap = 0;
		for (size_t i = 0; i < d->array.n; i++)
			doc_append(a, copy, doc_copy(a, d->array.v[i]));
	}
	if (d->type == DOC_TABLE) {
		copy->table.n = copy->table.cap = 0;
		for (size_t i = 0; i < d->table.n; i++)
			*doc_entry_push(a, copy) = (struct doc_entry){
				.key = arena_str(a, d->table.v[i].key),
				.key_pos = d->table.v[i].key_pos,
				.value = doc_copy(a, d->table.v[i].value),
			};
	}
	return copy;
}

void doc_append(struct arena *a, struct doc *array, struct doc *item)
{
	array->array.v =
		grow(a, array->array.v, array->array.n, &array->array.cap, sizeof(*array->array.v));
	array->array.v[array->array.n++] = item;
}

struct doc_entry *doc_entry_push(struct arena *a, struct doc *table)
{
	table->table.v =
		grow(a, table->table.v, table->table.n, &table->table.cap, sizeof(*table->table.v));
	return &table->table.v[table->table.n++];
}

static struct doc_entry *find(const struct doc *d, struct str key)
{
	for (size_t i = 0; i < d->table.n; i++) {
		if (str_eq(d->table.v[i].key, key))
			return &d->table.v[i];
	}
	return NULL;
}

void doc_set(struct arena *a, struct doc *table, struct str key, struct doc *value)
{
	struct doc_entry *e = find(table, key);

	if (!e) {
		e = doc_entry_push(a, table);
		e->key = arena_str(a, key);
	}
	e->value = value;
}

/* Levels of tables and arrays, the deepest branch. */
static int levels(const struct doc *d)
{
	int deepest = 0;

	if (d->type == DOC_ARRAY) {
		for (size_t i = 0; i < d->array.n; i++) {
			int n = levels(d->array.v[i]);

			deepest = n > deepest ? n : deepest;
		}
	} else if (d->type == DOC_TABLE) {
		for (size_t i = 0; i < d->table.n; i++) {
			int n = levels(d->table.v[i].value);

			deepest = n > deepest ? n : deepest;
		}
	} else {
		return 0;
	}
	return deepest + 1;
}

static int read_set_path(struct arena *a, struct str path, struct toml_path *ret_parts,
			 struct err *err)
{
	CLEANUP(reader_release) struct reader r = {0};
	char shown[QUOTE_MAX];

	if (reader_open(&r, path, a, err) < 0 || toml_read_path(&r, ret_parts) < 0 ||
	    (r.p < r.end && reader_expected(&r, "'.' or the end of the key") < 0))
		return err_wrap(err, "key '%s'", str_quote(path, shown));
	return 0;
}

int doc_set_path(struct arena *a, struct doc *root, struct str path, struct doc *value,
		 struct err *err)
{
	char shown[QUOTE_MAX], shown_part[QUOTE_MAX];
	struct toml_path parts;
	struct doc *table = root;
	size_t i = 0;

	if (read_set_path(a, path, &parts, err) < 0)
		return -1;
	if ((int)parts.n + levels(value) > DOC_MAX_DEPTH)
		return err_set(err, ERR_INVALID, "key '%s': more than %d levels",
			       str_quote(path, shown), DOC_MAX_DEPTH);
	for (;; i++) {
		if (table->type != DOC_TABLE)
			return err_set(err, ERR_INVALID, "key '%s': '%s' is a %s, not a table",
				       str_quote(path, shown),
				       i ? str_quote(parts.v[i - 1].key, shown_part)
					 : "the document",
				       doc_type_name(table->type));
		struct doc_entry *e = find(table, parts.v[i].key);

		if (!e || i + 1 == parts.n)
			break;
		table = e->value;
	}
	for (; i + 1 < parts.n; i++) {
		struct doc *made = doc_new(a, DOC_TABLE);

		doc_set(a, table, parts.v[i].key, made);
		table = made;
	}
	doc_set(a, table, parts.v[i].key, value);
	return 0;
}

const struct doc *doc_get(const struct doc *d, const char *key)
{
	if (!d || d->type != DOC_TABLE)
		return NULL;
	const struct doc_entry *e = find(d, str_from(key));

	return e ? e->value : NULL;
}

/* The value of that key if it has this type. */
static const struct doc *get_typed(const struct doc *d, const char *key, enum doc_type t)
{
	const struct doc *v = doc_get(d, key);

	return v && v->type == t ? v : NULL;
}

struct str doc_str(const struct doc *d, const char *key, struct str fallback)
{
	const struct doc *v = get_typed(d, key, DOC_STRING);

	return v ? v->s : fallback;
}

int64_t doc_int(const struct doc *d, const char *key, int64_t fallback)
{
	const struct doc *v = get_typed(d, key, DOC_INT);

	return v ? v->i : fallback;
}

double doc_num(const struct doc *d, const char *key, double fallback)
{
	const struct doc *v = get_typed(d, key, DOC_FLOAT);

	if (v)
		return v->f;
	v = get_typed(d, key, DOC_INT);
	return v ? (double)v->i : fallback;
}

bool doc_bool(const struct doc *d, const char *key, bool fallback)
{
	const struct doc *v = get_typed(d, key, DOC_BOOL);

	return v ? v->b : fallback;
}

const struct doc *doc_array(const struct doc *d, const char *key)
{
	return get_typed(d, key, DOC_ARRAY);
}

const struct doc *doc_table(const struct doc *d, const char *key)
{
	return get_typed(d, key, DOC_TABLE);
}
