/* kube_tree - moving parts of a manifest to where a native job has them. */
#include <string.h>

#include "base/arena.h"
#include "dialect/internal.h"
#include "dialect/kube.h"

struct doc *kube_within(struct doc *table, const char *key, enum doc_type type)
{
	for (size_t i = 0; table && table->type == DOC_TABLE && i < table->table.n; i++)
		if (str_is(table->table.v[i].key, key) && table->table.v[i].value->type == type)
			return table->table.v[i].value;
	return NULL;
}

struct doc_entry kube_take(struct doc *table, const char *key)
{
	for (size_t i = 0; table && table->type == DOC_TABLE && i < table->table.n; i++) {
		struct doc_entry e = table->table.v[i];

		if (!str_is(e.key, key))
			continue;
		memmove(&table->table.v[i], &table->table.v[i + 1],
			(table->table.n - i - 1) * sizeof(e));
		table->table.n--;
		return e;
	}
	return (struct doc_entry){0};
}

void kube_put(struct kube *x, struct doc *to, const char *key, struct doc *value,
	      struct doc_pos key_pos)
{
	doc_set(x->a, to, str_from(key), value);
	dialect_place_key(to, key, key_pos);
}

void kube_put_text(struct kube *x, struct doc *to, const char *key, const char *text,
		   struct doc_pos pos)
{
	struct doc *value = doc_new_str(x->a, str_from(text));

	value->pos = pos;
	kube_put(x, to, key, value, pos);
}

void kube_move(struct kube *x, struct doc *from, const char *name, struct doc *to, const char *key)
{
	struct doc_entry e = kube_take(from, name);

	if (e.value)
		kube_put(x, to, key, e.value, e.key_pos);
}

static bool is_empty(const struct doc *d)
{
	return (d->type == DOC_TABLE && d->table.n == 0) ||
	       (d->type == DOC_ARRAY && d->array.n == 0);
}

void kube_prune(struct doc *table, const char *const *path, size_t n)
{
	for (size_t i = 0; n > 0 && i < table->table.n; i++) {
		struct doc *value = table->table.v[i].value;

		if (!str_is(table->table.v[i].key, path[0]))
			continue;
		if (value->type == DOC_TABLE)
			kube_prune(value, path + 1, n - 1);
		if (is_empty(value))
			kube_take(table, path[0]);
		return;
	}
}
