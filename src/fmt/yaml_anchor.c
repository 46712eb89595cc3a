#include "fmt/yaml_anchor.h"

#include "base/arena.h"
#include "base/map.h"
#include "fmt/quote.h"

void yaml_anchors_release(struct yaml_anchors *an)
{
	an->named = map_free(an->named);
}

void yaml_anchors_clear(struct yaml_anchors *an)
{
	yaml_anchors_release(an);
	an->named = map_new();
}

void yaml_anchors_add(struct yaml_anchors *an, struct str name, struct doc *value)
{
	map_put(an->named, name, value);
}

static int count_bytes(struct yaml_anchors *an, struct reader *r, size_t n, struct doc_pos pos)
{
	an->copied += n;
	if (an->copied <= DOC_MAX_BYTES)
		return 0;
	return reader_fail(
		r, pos,
		"found aliases that stand for more than %d bytes, expected at most that many",
		DOC_MAX_BYTES);
}

static struct doc *copy(struct yaml_anchors *an, struct reader *r, const struct doc *from,
			struct doc_pos pos);

static int copy_items(struct yaml_anchors *an, struct reader *r, const struct doc *from,
		      struct doc *to, struct doc_pos pos)
{
	for (size_t i = 0; i < from->array.n; i++) {
		struct doc *item = copy(an, r, from->array.v[i], pos);

		if (!item)
			return -1;
		doc_append(r->a, to, item);
	}
	return 0;
}

static int copy_entries(struct yaml_anchors *an, struct reader *r, const struct doc *from,
			struct doc *to, struct doc_pos pos)
{
	for (size_t i = 0; i < from->table.n; i++) {
		const struct doc_entry *e = &from->table.v[i];
		struct doc *value;

		if (count_bytes(an, r, e->key.n, pos) < 0 ||
		    !(value = copy(an, r, e->value, pos)) ||
		    reader_put(r, to, e->key, e->key_pos, value) < 0)
			return -1;
	}
	return 0;
}

/* Texts are shared with the value that is copied: the arena keeps both. */
static struct doc *copy(struct yaml_anchors *an, struct reader *r, const struct doc *from,
			struct doc_pos pos)
{
	struct doc *to = reader_node(r, from->type, pos);

	if (!to)
		return NULL;
	if (from->type == DOC_ARRAY || from->type == DOC_TABLE) {
		to->pos = from->pos;
		if (reader_enter(r, pos) < 0 ||
		    (from->type == DOC_ARRAY ? copy_items(an, r, from, to, pos)
					     : copy_entries(an, r, from, to, pos)) < 0)
			return NULL;
		r->depth--;
		return to;
	}
	if (from->type == DOC_STRING && count_bytes(an, r, from->s.n, pos) < 0)
		return NULL;
	*to = *from;
	return to;
}

struct doc *yaml_anchors_copy(struct yaml_anchors *an, struct reader *r, struct str name,
			      struct doc_pos pos)
{
	char shown[QUOTE_MAX];
	const struct doc *from = map_get(an->named, name);

	if (from)
		return copy(an, r, from, pos);
	reader_fail(r, pos, "found the alias '%s', expected one of an anchor before it",
		    str_quote(name, shown));
	return NULL;
}

static int merge_table(struct reader *r, struct doc *table, const struct doc *from)
{
	if (from->type != DOC_TABLE)
		return reader_fail(
			r, from->pos,
			"found a %s after the merge key '<<', expected a table or a list of "
			"tables",
			doc_type_name(from->type));
	for (size_t i = 0; i < from->table.n; i++) {
		const struct doc_entry *e = &from->table.v[i];

		if (!reader_has(r, table, e->key) &&
		    reader_put(r, table, e->key, e->key_pos, e->value) < 0)
			return -1;
	}
	return 0;
}

int yaml_merge(struct reader *r, struct doc *table, const struct doc *from)
{
	if (from->type != DOC_ARRAY)
		return merge_table(r, table, from);
	for (size_t i = 0; i < from->array.n; i++)
		if (merge_table(r, table, from->array.v[i]) < 0)
			return -1;
	return 0;
}
