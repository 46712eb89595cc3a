/*
 * schema - a table of a document into a struct, by the rows of its schema:
 * unknown and missing keys, defaults, positions.
 */
#include "fmt/schema.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/suggest.h"
#include "fmt/quote.h"
#include "fmt/schema_load.h"

#define KEYS_LISTED 12 /* known keys that are listed when none is near */

static const struct field *find_field(const struct schema *sc, struct str key)
{
	for (const struct field *f = sc->fields; f->name; f++) {
		if (str_is(key, f->name))
			return f;
	}
	return NULL;
}

static const struct doc_entry *find_entry(const struct doc *table, const char *key)
{
	for (size_t i = 0; table && i < table->table.n; i++) {
		if (str_is(table->table.v[i].key, key))
			return &table->table.v[i];
	}
	return NULL;
}

static size_t count_fields(const struct schema *sc)
{
	size_t n = 0;

	while (sc->fields[n].name)
		n++;
	return n;
}

static void unknown_key(struct load *l, const struct schema *sc, const struct place *at,
			const struct doc_entry *e)
{
	CLEANUP(buf_release) struct buf text = {0};
	char shown[QUOTE_MAX];
	size_t n = count_fields(sc);
	const char **words = arena_array(l->a, const char *, n + 1);

	for (size_t i = 0; i < n; i++)
		words[i] = sc->fields[i].name;
	const char *near = suggest_word(words, n, e->key);

	buf_init(&text, PROBLEM_MAX);
	buf_printf(&text, "unknown key '%s'", str_quote(e->key, shown));
	if (at->up) {
		buf_addz(&text, " in ");
		place_text(at, &text);
	}
	if (near)
		buf_printf(&text, ": did you mean '%s'?", near);
	for (size_t i = 0; !near && n <= KEYS_LISTED && i < n; i++)
		buf_printf(&text, "%s%s", i == 0 ? ": the known keys are " : ", ", words[i]);
	problems_add(l->ps, l->a, e->key_pos, "%s", buf_str(&text).p);
}

static void missing_key(struct load *l, const struct field *f, const struct place *at,
			struct doc_pos pos)
{
	CLEANUP(buf_release) struct buf where = {0};

	buf_init(&where, PROBLEM_MAX);
	place_text(at, &where);
	problems_add(l->ps, l->a, pos, "missing key '%s'%s%s", f->name, where.n ? " in " : "",
		     buf_str(&where).p);
}

/* The default's text as the value that a document would hold; NULL if it is no value. */
static struct doc *fallback_value(struct load *l, const struct field *f)
{
	struct str text = str_from(f->fallback);
	bool one_string = f->type == FIELD_STR || f->type == FIELD_NAME ||
			  f->type == FIELD_CHOICE || f->type == FIELD_DURATION ||
			  f->type == FIELD_SIZE;
	bool maybe_list = f->type == FIELD_STRS || f->type == FIELD_ARGV;
	struct doc *d;

	if (one_string || (maybe_list && !str_starts(text, STR("["))))
		return doc_new_str(l->a, text);
	const char *toml = arena_printf(l->a, "v = %s", f->fallback);

	if (toml_parse(str_from(toml), l->a, &d, NULL) < 0 || d->table.n != 1)
		return NULL;
	d = d->table.v[0].value;
	d->pos = (struct doc_pos){0}; /* no position: it is in no file */
	return d;
}

static void load_fallback(struct load *l, const struct field *f, const struct place *at, void *out)
{
	if (!f->fallback) {
		if (f->type == FIELD_TABLE)
			schema_load_table(l, f->sub, at, NULL, out);
		return;
	}
	const struct doc *d = fallback_value(l, f);

	/* A default that its own row refuses is a bug in the table: report it. */
	if (!d)
		problems_add(l->ps, l->a, (struct doc_pos){0},
			     "the default of '%s' is not a value: %s", f->name, f->fallback);
	else
		schema_load_value(l, f, at, d, out);
}

static void load_field(struct load *l, const struct field *f, const struct place *at,
		       const struct doc *table, char *out)
{
	const struct doc_entry *e = find_entry(table, f->name);
	struct place below = {.up = at, .key = str_from(f->name)};

	if (e && schema_load_value(l, f, &below, e->value, out + f->offset)) {
		struct doc_pos pos = e->value->pos.line ? e->value->pos : e->key_pos;

		if (f->set_offset)
			*(bool *)(out + f->set_offset) = true;
		if (f->pos_offset)
			*(struct doc_pos *)(out + f->pos_offset) = pos;
		return;
	}
	if (!e && table && f->required)
		missing_key(l, f, at, table->pos);
	load_fallback(l, f, &below, out + f->offset);
}

void schema_load_table(struct load *l, const struct schema *sc, const struct place *at,
		       const struct doc *table, void *out)
{
	memset(out, 0, sc->size);
	if (table && sc->pos_offset)
		*(struct doc_pos *)((char *)out + sc->pos_offset) = table->pos;
	for (size_t i = 0; table && i < table->table.n; i++) {
		const struct doc_entry *e = &table->table.v[i];

		if (find_field(sc, e->key))
			continue;
		l->ps->unknown++;
		/* The list is full: do not spend time on a text that will not be shown. */
		if (l->ps->n == PROBLEMS_MAX)
			l->ps->more++;
		else
			unknown_key(l, sc, at, e);
	}
	for (const struct field *f = sc->fields; f->name; f++)
		load_field(l, f, at, table, out);
}

bool schema_load(const struct schema *sc, const struct doc *table, void *out, struct arena *a,
		 struct problems *ps)
{
	struct load l = {.a = a, .ps = ps};
	struct place root = {0};
	size_t before = ps->n + ps->more;

	if (table && table->type != DOC_TABLE) {
		problems_add(ps, a, table->pos, "expected a table of keys, got a %s",
			     doc_type_name(table->type));
		table = NULL;
	}
	schema_load_table(&l, sc, &root, table, out);
	return ps->n + ps->more == before;
}
